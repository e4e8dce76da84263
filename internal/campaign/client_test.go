package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"understudy/internal/drill"
)

// patience is how long a client waits that does not leave: what takes longer hangs.
const patience = 3 * time.Minute

// errBored is why a client leaves that does.
var errBored = errors.New("the client left")

// A client makes one request after another.
type client struct {
	w    *world
	b    *book
	addr string
	conn *drill.Client // nil: the next request dials
}

// dialects are the ways to ask, as formats of path and body for a model and a text.
var dialects = []struct {
	path, body string
	stream     bool
	inPath     bool // the model stands in the path
}{
	{"/v1/chat/completions", `{"model":%q,"stream":true,"messages":[{"role":"user","content":"%s"}]}`, true, false},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"%[2]s"}],"model": %[1]q}`, false, false},
	{"/v1/completions", `{"model":%q,"stream":true,"stream_options":{"include_usage":true},"prompt":"%s"}`, true, false},
	{"/v1/responses", `{"model":%q,"stream":true,"input":"%s"}`, true, false},
	{"/v1/responses", `{"model":%q,"input":"%s"}`, false, false},
	{"/v1/messages", `{"max_tokens":9007199254740993,"model":%q,"stream":true,"messages":[{"role":"user","content":"%s"}]}`, true, false},
	{"/v1/messages", `{"model":%q,"messages":[{"role":"user","content":"%s"}]}`, false, false},
	{"/v1beta/models/%s:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"%s"}]}]}`, true, true},
	{"/v1beta/models/%s:streamGenerateContent", `{"contents":[{"parts":[{"text":"%s"}]}]}`, true, true},
	{"/v1beta/models/%s:generateContent", `{"contents":[{"parts":[{"text":"%s"}]}]}`, false, true},
	{"/api/chat", `{"model":%q,"messages":[{"role":"user","content":"%s"}]}`, true, false},
	{"/api/chat", `{"model":%q,"stream":false,"messages":[{"role":"user","content":"%s"}]}`, false, false},
	{"/api/generate", `{"model":%q,"prompt":"%s"}`, true, false},
}

// request makes up the n-th request.
func (c *client) request(n int, random *rand.Rand) (*asked, drill.Query) {
	d := dialects[random.IntN(len(dialects))]
	q := &asked{id: fmt.Sprintf("rq-%08x", n), start: time.Now(), attempts: -1}
	q.question = question{stream: d.stream, errorEvent: c.w.errorEvent}
	m := pick(random, c.w.models...)
	q.served, q.model = m, m.name
	switch {
	case random.IntN(100) == 0:
		q.model = "nobody's-model"
		if q.served = nil; c.w.models[len(c.w.models)-1].name == "*" {
			q.served = c.w.models[len(c.w.models)-1]
		}
	case m.name == "*":
		q.model = pick(random, "gpt-of-the-pool", "claude-of-the-pool")
	}
	text := q.id
	switch size := random.IntN(100); {
	case size < 2:
		text += strings.Repeat(" and a long prompt", 1000+random.IntN(15_000))
	case size < 30:
		text += strings.Repeat(" and so on", random.IntN(300))
	}
	q.body = func(model string) []byte {
		if d.inPath {
			return fmt.Appendf(nil, d.body, text)
		}
		return fmt.Appendf(nil, d.body, model, text)
	}
	query := drill.Query{Path: d.path, Body: q.body(q.model)}
	if d.inPath {
		query.Path = fmt.Sprintf(d.path, q.model)
	}
	q.key = c.w.own
	switch {
	case c.w.clients != nil && random.IntN(40) == 0:
		q.key = "sk-fake-" + marker + "-wrong"
	case c.w.clients != nil:
		q.key = pick(random, c.w.clients...).key
	}
	switch random.IntN(4) {
	case 0:
		query.Header = []string{"x-api-key", q.key}
	case 1:
		query.Header = []string{"x-goog-api-key", q.key}
	default:
		query.Header = []string{"Authorization", "Bearer " + q.key}
	}
	if random.IntN(2) == 0 {
		query.Header = append(query.Header, "session_id", "session-"+strconv.Itoa(random.IntN(50)))
	}
	if random.IntN(20) == 0 {
		query.Header = append(query.Header, "x-understudy-delivery", pick(random, "stream", "complete", "window"))
	}
	if random.IntN(10) == 0 {
		query.Chunked, query.Piece = true, 1+len(query.Body)/(1+random.IntN(5))
	}
	return q, query
}

// ask makes the n-th request, and checks what comes of it.
func (c *client) ask(n int) {
	f := c.b.figures
	random := chance(c.w.seed, "client", n)
	q, query := c.request(n, random)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.conn == nil {
		conn, err := drill.Dial(ctx, c.addr)
		if err != nil {
			f.violate("no answer", "%s: the program does not take a connection: %v", q.id, err)
			return
		}
		c.conn = conn
	}
	leaving, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	switch random.IntN(20) {
	case 0, 1: // before the answer, be it in the probe or while a retry waits
		after := time.AfterFunc(time.Duration(random.IntN(150_000))*time.Microsecond, func() { leave(errBored) })
		defer after.Stop()
	case 2: // within it
		at := 1 + random.IntN(3000)
		query.Leave = pick(random, drill.FIN, drill.RST)
		query.Watch = func(r drill.Reply) bool { return len(r.Body) < at }
	case 3: // after having read nothing for a while
		wait := time.Duration(random.IntN(60)) * time.Millisecond
		query.Leave = drill.RST
		query.Watch = func(r drill.Reply) bool {
			select {
			case <-time.After(wait):
			case <-leaving.Done():
			}
			return false
		}
	}
	c.b.enter(q)
	q.start = time.Now()
	reply := c.conn.Ask(leaving, query)
	f.requests.Add(1)
	if !reply.Clean || leaving.Err() != nil || strings.EqualFold(reply.Get("Connection"), "close") {
		c.close()
	}
	left := !reply.Clean && (errors.Is(reply.Err, drill.ErrLeft) || errors.Is(context.Cause(leaving), errBored))
	views := q.answered()
	if errors.Is(reply.Err, context.DeadlineExceeded) {
		f.violate("no answer", "%s: nothing more after %v: %d, %d bytes", q.id, patience, reply.Status, len(reply.Body))
		return
	}
	if !left {
		if k, err := strconv.Atoi(reply.Get("X-Understudy-Attempts")); err == nil {
			q.mu.Lock()
			q.attempts = k
			q.mu.Unlock()
		}
	}
	kind, wrong := judge(q.question, views, reply, left)
	if reply.Status == 0 && len(views) == 0 && c.b.rush.Load() {
		// In a rush a connection may be closed before its client has read why.
		kind, wrong = "turned away in a rush, without a word", ""
	}
	if wrong != "" {
		trail := ""
		for _, v := range views {
			trail += fmt.Sprintf("\n  %s: %d, %d bytes, clean %v", v.fault, v.status, len(v.body), v.clean)
		}
		f.violate("answer", "%s %s %s %+v: %s\n  got %d, %d bytes, clean %v, %v; %s%s", q.id, q.model, query.Path, q.question, wrong, reply.Status, len(reply.Body), reply.Clean, reply.Err, reply.Head, trail)
	}
	f.kind(kind)
	f.took(kind, reply.Elapsed)
	if s := leak(append(reply.Head[:len(reply.Head):len(reply.Head)], reply.Body...)); s != "" && !left && kind != "passed on" && kind != "passed on, broken" && kind != "embedded error" {
		f.violate("secret", "%s: in an answer (%s): %s", q.id, kind, s)
	}
	if leak(reply.Head) != "" {
		f.violate("secret", "%s: in the head of an answer: %s", q.id, reply.Head)
	}
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
