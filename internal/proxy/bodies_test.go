package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// tapped is a scene whose bodies are collected as the request log does.
type tapped struct {
	*scene
	mu     sync.Mutex
	bodies []*stats.Bodies
}

func newTapped(t *testing.T, cfg string) *tapped {
	s := &tapped{scene: newScene(t, cfg)}
	s.handler.Ledger().Tap(func(_ *stats.Sequenced, b *stats.Bodies) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, b)
	})
	return s
}

// shown is what would be kept of the last request: its own body, and each answer
// after the index of its attempt; "" where nothing is.
func (s *tapped) shown() string {
	b := s.last()
	if b == nil {
		return ""
	}
	text := string(b.Hide(b.Request.Text))
	for _, a := range b.Answers {
		text += fmt.Sprintf(" | %d %s", a.Try, b.Hide(a.Text))
		if a.Size != int64(len(a.Text)) {
			text += fmt.Sprintf(" of %d", a.Size)
		}
	}
	return text
}

// last is what would be kept of the last request.
func (s *tapped) last() *stats.Bodies {
	synctest.Wait() // the client has its answer before the request is booked
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

const hello = `{"model":"vm","stream":true,"messages":[{"role":"user","content":"hello"}]}`

func TestBodiesAreKeptAsAsked(t *testing.T) {
	type step struct{ first, second string }
	failing := `{"error":{"message":"no, sk-upstream-secret-1 and sk-the-client-of-ours-own"}}`
	hidden := `{"error":{"message":"no, sk-ups***et-1 and sk-the***-own"}}`
	for mode, want := range map[string][4]string{
		// what is kept when all goes well; when a second attempt saves it; when nobody is left; when the answer breaks
		"":       {},
		"off":    {},
		"failed": {"", hello + " | 0 " + hidden, hello + " | 0 " + hidden + " | 1 " + hidden, hello + " | 0 " + said("a beginning of some length")},
		"all":    {hello + " | 0 " + okSSE, hello + " | 0 " + hidden + " | 1 " + okSSE, hello + " | 0 " + hidden + " | 1 " + hidden, hello + " | 0 " + said("a beginning of some length")},
	} {
		inBubble(t, "mode "+mode, func(t *testing.T) {
			more := "rules: []\n"
			if mode != "" {
				more += "request_log: {bodies: " + mode + "}\n"
			}
			s := newTapped(t, chain(2, more))
			say := map[string]drill.Script{"well": sayPong, "refused": refusal(500, failing), "cut": page(sseType, said("a beginning of some length"))}
			now := step{}
			s.play("u1", func(w *drill.Wire, r drill.Request, n int) { say[now.first](w, r, n) })
			s.play("u2", func(w *drill.Wire, r drill.Request, n int) { say[now.second](w, r, n) })
			for i, then := range []step{{"well", ""}, {"refused", "well"}, {"refused", "refused"}, {"cut", ""}} {
				now = then
				s.ask("POST", "/v1/chat/completions", hello, "Authorization", "Bearer sk-the-client-of-ours-own")
				if got := s.shown(); got != want[i] {
					t.Errorf("%+v: %q is kept, want %q", then, got, want[i])
				}
			}
			for _, r := range s.records() {
				if r.Bodies != nil {
					t.Error("the journal keeps bodies")
				}
			}
		})
	}
}

func TestLargeBodiesAreKeptInPart(t *testing.T) {
	inBubble(t, "large", func(t *testing.T) {
		s := newTapped(t, chain(1, "request_log: {bodies: all}"))
		large := strings.Repeat("y", 3<<20)
		s.play("u1", page("application/octet-stream", large))
		s.ask("POST", "/v1/files", `{"model":"vm","more":"`+large+`"}`)
		b := s.last()
		if n := len(b.Request.Text); n < keptBody || n > keptBody+hideAhead || b.Request.Size <= 3<<20 {
			t.Errorf("%d of %d", n, b.Request.Size)
		}
		if n := len(b.Answers[0].Text); n < keptBody || n > keptBody+hideAhead || b.Answers[0].Size != 3<<20 {
			t.Errorf("%d of %d", n, b.Answers[0].Size)
		}
	})
}

// What comes coded is kept decoded, so that secrets in it are seen; in a coding that
// nobody here knows it is not kept.
func TestCodedBodiesAreKeptDecoded(t *testing.T) {
	var coded bytes.Buffer
	z := gzip.NewWriter(&coded)
	fmt.Fprint(z, "the key sk-upstream-secret-1")
	z.Close()
	for coding, want := range map[string]string{"gzip": "{} | 0 the key sk-ups***et-1", "gzip-of-tomorrow": "{}"} {
		inBubble(t, coding, func(t *testing.T) {
			s := newTapped(t, chain(1, "server: {default_model: vm}\nrequest_log: {bodies: all}"))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Length(coded.Len()), "Content-Type", "application/octet-stream", "Content-Encoding", coding)
				w.Chunk(coded.Bytes())
			})
			s.ask("POST", "/v1/files", "{}", "Accept-Encoding", "gzip, gzip-of-tomorrow")
			if got := s.shown(); got != want {
				t.Errorf("%q is kept, want %q", got, want)
			}
		})
	}
}

// Who is refused leaves nothing behind, and neither does an ignored endpoint.
func TestBodiesOfNobody(t *testing.T) {
	inBubble(t, "refused", func(t *testing.T) {
		s := newTapped(t, chain(1, "request_log: {bodies: all}\nclients: [{name: me, key: sk-a-client-of-ours-1}]"))
		s.play("u1", refusal(500, `{}`))
		s.ask("POST", "/v1/chat/completions", hello)
		s.ask("POST", "/v1/messages/count_tokens", hello, "Authorization", "Bearer sk-a-client-of-ours-1")
		if s.last(); len(s.bodies) != 2 || s.bodies[0] != nil || s.bodies[1] != nil {
			t.Errorf("%+v", s.bodies)
		}
	})
}
