package campaign

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"understudy/internal/drill"
	"understudy/internal/drill/h2"
)

type transport int

const (
	plainHTTP transport = iota
	overTLS
	overHTTP2
)

// A host is an upstream on a port of its own, which can be killed.
type host struct {
	name string
	over transport
	b    *book
	gate *gate
	up   *drill.Upstream
	seed uint64

	mu     sync.Mutex
	shared map[int]*shared // of HTTP/2, by connection
}

func newHost(name string, over transport, w *world, b *book) *host {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	h := &host{name: name, over: over, b: b, seed: w.seed, gate: &gate{Listener: l, open: map[*gated]struct{}{}}}
	switch over {
	case plainHTTP:
		h.up = drill.StartOn(h.gate, h.serve)
	case overTLS:
		h.up = drill.StartOn(tls.NewListener(h.gate, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}), h.serve)
	case overHTTP2:
		h.up = h2.Start(h.gate, certificate, h.turn)
	}
	return h
}

func (h *host) url() string {
	if h.over == plainHTTP {
		return h.up.URL()
	}
	return "https://" + h.up.Addr()
}

func (h *host) close() { h.up.Close() }

// serve answers a request in a way that depends on the seed, the request and how
// often it was asked.
func (h *host) serve(w *drill.Wire, r drill.Request, n int) {
	q, a := h.b.arrive(h, r)
	if a == nil {
		return
	}
	script, fault := h.plan(q, a, r)
	a.mu.Lock()
	a.fault = fault
	a.mu.Unlock()
	h.b.figures.fault(fault)
	w.Record(a.note)
	defer func() { a.ended(w.Err() != nil) }()
	script(w, r, n)
}

// excluded are faults that take too long or too much in thousands of requests.
var excluded = []string{"endless-headers", "long-line", "keep-alives-for-ever", "blank-events-for-ever"}

// answer is a healthy one that nobody else gives.
func answer(random *rand.Rand, token string) drill.Answer {
	a := drill.Answer{ID: token, Wait: time.Duration(5+random.IntN(150)) * time.Millisecond, RetryAfter: time.Second}
	words := 3 + random.IntN(30)
	switch size := random.IntN(100); {
	case size < 2:
		words, a.Pieces = 2_000+random.IntN(20_000), 1+random.IntN(30)
	case size < 15:
		words, a.Pieces = 100+random.IntN(900), 1+random.IntN(60)
	case size < 25:
		words = 1
	}
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "%s.%d ", token, i)
	}
	a.Text = text.String()
	if random.IntN(10) == 0 && words < 50 {
		a.Gap = time.Duration(random.IntN(4000)) * time.Microsecond
	}
	return a
}

// plan is what becomes of one attempt.
func (h *host) plan(q *asked, a *arrival, r drill.Request) (drill.Script, string) {
	q.mu.Lock()
	nth := len(q.arrivals)
	q.mu.Unlock()
	random := chance(h.seed, q.id, nth)
	say := answer(random, a.token)
	healthy := drill.Healthy(say)
	switch p := random.IntN(100); {
	case p < 60:
		return healthy, "healthy"
	case p < 80:
		harm := h.harm(random, len(say.Text))
		script, name := healthy, harm.Ruin.String()
		if random.IntN(4) == 0 {
			f := catalogue(random)
			script, name = f.Script(say), name+" over "+f.Name
		}
		return drill.Harmed(script, harm), name
	case p < 97:
		f := catalogue(random)
		return f.Script(say), f.Name
	}
	echo := func(w *drill.Wire, r drill.Request, _ int) {
		status := pick(random, 200, 400, 401, 403, 429, 500, 503)
		w.JSON(status, fmt.Appendf(nil, `{"error":{"message":"no: %s asked %s with %s %s","type":"invalid_request_error","code":null}}`, a.token, r.Path(), a.candidate.secret, r.Get("Authorization")))
	}
	if random.IntN(2) == 0 {
		harm := h.harm(random, 20)
		if harm.Ruin == drill.Garbage || harm.Ruin == drill.BadGzip {
			harm.Ruin = drill.Close // what is left of a key behind garbage, nobody knows as one
		}
		return drill.Harmed(echo, harm), harm.Ruin.String() + " over an echo of the credential"
	}
	return echo, "echo of the credential"
}

// catalogue picks a fault of the catalogue.
func catalogue(random *rand.Rand) drill.Fault {
	for {
		f := drill.Faults()[random.IntN(len(drill.Faults()))]
		ok := true
		for _, name := range excluded {
			ok = ok && f.Name != name
		}
		if ok {
			return f
		}
	}
}

// harm is a random one of those over HTTP/1.1, at a random byte of an answer of about
// so many characters.
func (h *host) harm(random *rand.Rand, size int) drill.Harm {
	harm := drill.Harm{Ruin: drill.Ruin(1 + random.IntN(int(drill.HugeHead))), Seed: random.Uint64()}
	switch most := 300 + 6*size; {
	case random.IntN(4) == 0:
		harm.At = random.IntN(350) // the head, and what comes first
	default:
		harm.At = random.IntN(most)
	}
	switch harm.Ruin {
	case drill.Trickle:
		harm.Gap, harm.Most = 2*time.Millisecond, random.IntN(200)
		if random.IntN(8) == 0 {
			harm.Gap, harm.Most = time.Second, 1
		}
	case drill.Interims:
		harm.At = random.IntN(300)
	case drill.HugeHead:
		harm.At = random.IntN(200_000)
	}
	return harm
}

// turn is serve over HTTP/2.
func (h *host) turn(r drill.Request, _ int) h2.Turn {
	q, a := h.b.arrive(h, r)
	if a == nil {
		return h2.Turn{}
	}
	q.mu.Lock()
	nth := len(q.arrivals)
	q.mu.Unlock()
	random := chance(h.seed, q.id, nth)
	t := h2.Turn{Answer: answer(random, a.token)}
	if t.Answer.Gap > 0 {
		t.Answer.Gap = time.Millisecond
	}
	body := t.Answer.Body(r)
	v := view{token: a.token, status: 200, body: body, clean: true}
	if random.IntN(3) == 0 {
		t.Harm = drill.Harm{Ruin: pick(random, drill.GoAway, drill.GoAwayUnanswered, drill.ResetStream, drill.Close, drill.Reset, drill.Silence), At: random.IntN(len(body)+20) - 10}
		if t.Harm.Ruin != drill.GoAway && t.Harm.At < len(body) {
			v.clean = false
			v.body = body[:max(0, t.Harm.At)]
		}
	}
	v.fault = "h2 " + t.Harm.Ruin.String()
	h.b.figures.fault(v.fault)
	a.mu.Lock()
	a.full, a.fault, a.over = &v, v.fault, true
	a.mu.Unlock()
	h.share(r.Conn, a, !v.clean && t.Harm.Ruin != drill.ResetStream && t.Harm.Ruin != drill.Silence)
	return t
}

// share notes who shares a connection of HTTP/2: when it ends, it does so for all.
func (h *host) share(conn int, a *arrival, ends bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared == nil {
		h.shared = map[int]*shared{}
	}
	s := h.shared[conn]
	if s == nil {
		s = &shared{}
		h.shared[conn] = s
	}
	s.arrivals = append(s.arrivals, a)
	if s.ended = s.ended || ends; s.ended {
		for _, a := range s.arrivals {
			a.ended(true)
		}
		s.arrivals = nil
	}
}

type shared struct {
	arrivals []*arrival
	ended    bool
}

// A gate is a listener whose connections can all be reset, and which resets new ones
// while it is down.
type gate struct {
	net.Listener
	mu    sync.Mutex
	down  bool
	kills [][2]time.Time // from, and until when it was down; zero = it is
	open  map[*gated]struct{}
}

type gated struct {
	*net.TCPConn
	g *gate
}

func (c *gated) Close() error {
	c.g.mu.Lock()
	delete(c.g.open, c)
	c.g.mu.Unlock()
	return c.TCPConn.Close()
}

// Reset closes the connection with a RST.
func (c *gated) Reset() error {
	_ = c.SetLinger(0) // it is closed in any case
	return c.Close()
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		t := c.(*net.TCPConn)
		g.mu.Lock()
		if !g.down {
			k := &gated{t, g}
			g.open[k] = struct{}{}
			g.mu.Unlock()
			return k, nil
		}
		g.mu.Unlock()
		reset(t)
	}
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it is closed in any case
	c.Close()
}

// kill resets everything.
func (g *gate) kill() {
	g.mu.Lock()
	g.down = true
	g.kills = append(g.kills, [2]time.Time{time.Now()})
	var all []*gated
	for c := range g.open {
		all = append(all, c)
	}
	g.mu.Unlock()
	for _, c := range all {
		reset(c.TCPConn)
	}
}

func (g *gate) revive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		g.kills[len(g.kills)-1][1] = time.Now()
	}
	g.down = false
}

// killed says whether it was down within a time. A request that had been read from a
// connection before may still arrive then, and dies with it.
func (g *gate) killed(from, to time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.kills {
		if (k[1].IsZero() || !k[1].Before(from)) && !k[0].After(to) {
			return true
		}
	}
	return false
}
