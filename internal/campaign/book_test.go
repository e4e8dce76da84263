package campaign

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/drill"
)

// A book holds what one epoch asked and what its upstreams saw.
type book struct {
	w       *world
	figures *figures

	rush atomic.Bool // the program turns requests away, as the machine is too busy

	mu       sync.Mutex
	asked    map[string]*asked
	arrivals int
	freezes  map[*candidate][]*frozen
}

// frozen is a time in which a person's freeze stood.
type frozen struct {
	from time.Time // it stood from here on
	to   time.Time // and until here, if nobody lifted it
	rm   time.Time // when somebody began to lift it; zero: not yet
}

// asked is one request of a client.
type asked struct {
	id       string
	model    string // as the client names it
	served   *model // nil where it names none
	question question
	body     func(model string) []byte
	key      string // the credential it shows
	start    time.Time

	mu       sync.Mutex
	done     bool // its client has what it got
	doneAt   time.Time
	arrivals []*arrival
	attempts int // as the answer's head says; -1: it says nothing
}

// arrival is a request that reached an upstream.
type arrival struct {
	candidate *candidate
	number    int
	token     string
	fault     string
	at        time.Time
	conn      int

	mu     sync.Mutex
	sealed bool   // nobody looks at it any more
	raw    []byte // what was sent, head and all
	full   *view  // of HTTP/2, instead of raw
	died   bool   // its connection ended otherwise than by a whole answer
	over   bool
}

func newBook(f *figures) *book {
	return &book{figures: f, asked: map[string]*asked{}, freezes: map[*candidate][]*frozen{}}
}

// chance is the chance of one thing, whatever else happens at the same time.
func chance(seed uint64, what string, n int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, what, n)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func (b *book) enter(q *asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[q.id] = q
}

// find returns the request that a body belongs to; nil where it is none of this
// epoch's.
func (b *book) find(body []byte) *asked {
	i := bytes.Index(body, []byte("rq-"))
	if i < 0 || len(body) < i+11 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[string(body[i:i+11])]
}

// arrive notes a request at an upstream and checks that it may be there.
func (b *book) arrive(h *host, r drill.Request) (*asked, *arrival) {
	now := time.Now()
	q := b.find(r.Body)
	c := b.w.byPath["/"+segment(r.Target)]
	if q == nil || c == nil {
		b.figures.violate("strangers", "an upstream was asked what nobody asked: %s %.200q", r.Target, r.Body)
		return nil, nil
	}
	if c.host != h {
		b.figures.violate("other upstream", "%s: asked %s for %s", q.id, h.name, c.name)
	}
	all := append(append([]byte{}, r.Head...), r.Body...)
	for _, f := range r.Header { // of HTTP/2, which has no head as bytes
		all = fmt.Appendf(all, "%s: %s\n", f.Name, f.Value)
	}
	switch n := bytes.Count(all, []byte(marker)); {
	case c.secret != "":
		if bytes.Count(all, []byte(c.secret)) != n || n == 0 {
			b.figures.violate("secret", "%s: %s saw a credential that is not its own, or not its own: %s", q.id, c.name, r.Head)
		}
	case n > 0 && (b.w.clients != nil || bytes.Count(all, []byte(b.w.own)) != n):
		b.figures.violate("secret", "%s: %s saw a credential: %s", q.id, c.name, r.Head)
	}
	want := c.model
	if want == "" {
		want = q.model
	}
	if r.Model() != want || !bytes.Equal(r.Body, q.body(want)) {
		b.figures.violate("fidelity", "%s: %s was asked for %s, and should be for %s:\n%.300q\nwant\n%.300q", q.id, c.name, r.Model(), want, r.Body, q.body(want))
	}
	if q.served == nil || q.served.name != c.chain {
		b.figures.violate("other chain", "%s: %s was asked for model %s", q.id, c.name, q.model)
	}
	b.mu.Lock()
	b.arrivals++
	a := &arrival{candidate: c, number: b.arrivals, at: now, conn: r.Conn}
	for _, f := range b.freezes[c] {
		end := f.to
		if !f.rm.IsZero() && f.rm.Before(end) {
			end = f.rm
		}
		if q.start.After(f.from) && now.Before(end) && !b.w.soonest {
			b.figures.violate("frozen", "%s: began %v after %s was frozen by hand, and called it %v before the freeze's end", q.id, q.start.Sub(f.from), c.name, end.Sub(now))
		}
	}
	b.mu.Unlock()
	a.token = fmt.Sprintf("tk%07x", a.number)
	q.mu.Lock()
	defer q.mu.Unlock()
	a.sealed = q.done
	q.arrivals = append(q.arrivals, a)
	return q, a
}

// segment is a path's first.
func segment(target string) string {
	for i, s := range bytes.FieldsFunc([]byte(target), func(r rune) bool { return r == '/' }) {
		if i == 0 {
			return string(s)
		}
	}
	return ""
}

// note keeps what is sent.
func (a *arrival) note(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.sealed {
		a.raw = append(a.raw, p...)
	}
}

// ended notes that the script is over.
func (a *arrival) ended(died bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over, a.died = true, a.died || died
}

// view is what a careful client would make of what was sent.
func (a *arrival) view() view {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full != nil {
		return *a.full
	}
	c := replays.Get().(*drill.Client)
	defer replays.Put(c)
	c.Reset(&playback{r: bytes.NewReader(a.raw)})
	r := c.Ask(neverEnds, drill.Query{Path: "/", Body: []byte("{}")})
	v := view{token: a.token, fault: a.fault, status: r.Status, body: r.Body, clean: r.Clean}
	v.decoded = r.Body
	for range r.Values("Content-Encoding") { // all are gzip, and some answers have two
		v.decoded, v.coded = gunzip(v.decoded), true
	}
	return v
}

// answered closes a request, and returns what its upstreams had sent till then.
func (q *asked) answered() []view {
	q.mu.Lock()
	q.done, q.doneAt = true, time.Now()
	list := append([]*arrival{}, q.arrivals...)
	q.mu.Unlock()
	var views []view
	for _, a := range list {
		views = append(views, a.view())
		a.mu.Lock()
		a.sealed, a.raw = true, nil
		if a.full != nil {
			a.full = &view{}
		}
		a.mu.Unlock()
	}
	return views
}

// settle checks, when all is quiet, how often candidates were called.
func (b *book) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.asked {
		q.mu.Lock()
		per, excused := map[*candidate]int{}, 0
		trail := ""
		for _, a := range q.arrivals {
			a.mu.Lock()
			if !a.over {
				b.figures.violate("upstream", "%s: %s still answers (%s) when all is quiet", q.id, a.candidate.name, a.fault)
			}
			// A request that a dying connection swallowed goes out once more.
			if a.died || a.candidate.host.gate.killed(a.at, q.doneAt) {
				excused++
				per[a.candidate]--
			}
			per[a.candidate]++
			trail += fmt.Sprintf("\n  %s %s, %v after it was asked, on connection %d, died %v", a.candidate.name, a.fault, a.at.Sub(q.start), a.conn, a.died)
			a.mu.Unlock()
		}
		n := len(q.arrivals)
		if q.attempts >= 0 && n-excused > q.attempts {
			b.figures.violate("after release", "%s: its answer tells of %d attempts, and upstreams saw %d, of which %d died; it was over after %v:%s", q.id, q.attempts, n, excused, q.doneAt.Sub(q.start), trail)
		}
		if m := q.served; m != nil {
			most := m.perCandidate
			if m.hedged {
				// Whoever is given up for an answer that has shown to be good may be asked
				// again when that one fails all the same.
				most += len(m.candidates)
			}
			for c, k := range per {
				if k > most {
					b.figures.violate("bounds", "%s: %s was called %d times, at most %d are allowed:%s", q.id, c.name, k, most, trail)
				}
			}
			if m.total > 0 && n-excused > m.total {
				b.figures.violate("bounds", "%s: the pool made %d attempts, at most %d are allowed:%s", q.id, n-excused, m.total, trail)
			}
		}
		q.mu.Unlock()
	}
}

// replays are clients that hear once more what was sent.
var replays = sync.Pool{New: func() any { return drill.NewClient(&playback{}, "upstream") }}

// playback is a connection that plays what was sent.
type playback struct {
	net.Conn
	r *bytes.Reader
}

func (p *playback) Read(b []byte) (int, error)       { return p.r.Read(b) }
func (p *playback) Write(b []byte) (int, error)      { return len(b), nil }
func (p *playback) Close() error                     { return nil }
func (p *playback) SetWriteDeadline(time.Time) error { return nil }
