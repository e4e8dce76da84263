package campaign

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/drill"
)

// The checks of the campaign find what they are for: each broken promise here is one
// that a proxy could break.
func TestTheJudgeFindsBrokenPromises(t *testing.T) {
	ask := drill.NewRequest("POST", "/v1/chat/completions", []byte(`{"model":"m","stream":true}`))
	one := drill.Answer{ID: "tk1", Text: "tk1.0 tk1.1 tk1.2 "}.Body(ask)
	two := drill.Answer{ID: "tk2", Text: "tk2.0 tk2.1 tk2.2 "}.Body(ask)
	end := bytes.LastIndex(one, []byte("data: {")) // before the finish reason
	done := bytes.Index(one, []byte("data: [DONE]"))
	views := []view{
		{token: "tk1", fault: "healthy", status: 200, body: one, clean: true},
		{token: "tk2", fault: "fin", status: 200, body: two[:len(two)/2]},
		{token: "tk3", fault: "503", status: 503, body: []byte(`{"error":{"message":"full"}}`), clean: true},
		{token: "tk4", fault: "error-first", status: 200, body: []byte("data: {\"error\":{\"message\":\"no\"}}\n\n"), clean: true},
	}
	event := []byte(`data: {"error":{"message":"` + brokeOff + `"}}` + "\n\n")
	ours := []byte(`{"error":{"code":"upstream_all_failed","message":"no upstream","type":"upstream_all_failed"}}`)
	whole := func(status int, body ...[]byte) drill.Reply {
		return drill.Reply{Status: status, Clean: true, Body: bytes.Join(body, nil)}
	}
	cut := func(status int, body ...[]byte) drill.Reply {
		return drill.Reply{Status: status, Body: bytes.Join(body, nil), Err: fmt.Errorf("cut")}
	}
	for _, c := range []struct {
		what  string
		q     question
		reply drill.Reply
		left  bool
		kind  string // "": it is wrong
	}{
		{"a whole answer", question{stream: true}, whole(200, one), false, "whole"},
		{"one cut behind its end", question{stream: true}, whole(200, one[:done]), false, "whole"},
		{"a broken one that says so", question{stream: true}, cut(200, two[:len(two)/2]), false, "broken"},
		{"with an error event", question{stream: true, errorEvent: true}, cut(200, two[:len(two)/2], event), false, "broken, with an error event"},
		{"an error event that was not asked for", question{stream: true}, cut(200, two[:len(two)/2], event), false, ""},
		{"an error event, and a clean end", question{stream: true, errorEvent: true}, whole(200, two[:len(two)/2], event), false, ""},
		{"a clean end of a broken one", question{stream: true}, whole(200, two[:len(two)/2]), false, ""},
		{"a clean end before the end", question{stream: true}, whole(200, one[:end]), false, ""},
		{"two answers", question{stream: true}, whole(200, one, two), false, ""},
		{"half of one and the other", question{stream: true}, whole(200, two[:len(two)/2], one), false, ""},
		{"a mixture that breaks", question{stream: true, errorEvent: true}, cut(200, two[:len(two)/2], one[:20]), false, ""},
		{"a byte changed", question{stream: true}, whole(200, bytes.Replace(one, []byte("tk1.1"), []byte("tk1.x"), 1)), false, ""},
		{"a byte lost", question{stream: true}, whole(200, one[1:]), false, ""},
		{"the answer to somebody else", question{stream: true}, whole(200, drill.Answer{ID: "tk9", Text: "tk9.0"}.Body(ask)), false, ""},
		{"an error as an answer", question{stream: true}, whole(200, views[3].body), false, ""},
		{"an error passed on", question{}, whole(503, views[2].body), false, "passed on"},
		{"with another status", question{}, whole(500, views[2].body), false, ""},
		{"an error cut short", question{}, whole(503, views[2].body[:10]), false, ""},
		{"an error of the program's own", question{}, whole(502, ours), false, "own upstream_all_failed"},
		{"which breaks off", question{}, cut(502, ours[:20]), false, ""},
		{"an error that is nobody's", question{}, whole(502, []byte("bad gateway")), false, ""},
		{"nothing", question{}, drill.Reply{Err: fmt.Errorf("cut")}, false, ""},
		{"nothing, to one who left", question{}, drill.Reply{Err: drill.ErrLeft}, true, "left before an answer"},
		{"a part, to one who left", question{stream: true}, cut(200, one[:40]), true, "left within an answer"},
		{"a mixture, to one who left", question{stream: true}, cut(200, one[:40], two[:40]), true, ""},
	} {
		kind, wrong := judge(c.q, views, c.reply, c.left)
		if kind != c.kind || (wrong == "") != (c.kind != "") {
			t.Errorf("%s: %q, %q", c.what, kind, wrong)
		}
	}
}

// broken are the invariants of which violations were noted.
func (f *figures) broken() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.violations {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestTheBookFindsWhoMustNotBeCalled(t *testing.T) {
	at := &host{name: "h0", gate: &gate{}}
	secret, other := "sk-fake-1"+marker+"1", "sk-fake-2"+marker+"2"
	body := func(model string) []byte { return []byte(`{"model":"` + model + `","x":"rq-00000001"}`) }
	scene := func() (*book, *candidate, *asked, func(path, key, model string) *arrival) {
		f := newFigures(func(string, ...any) {})
		c := &candidate{host: at, chain: "vm", name: "a", path: "/a", model: "real", secret: secret}
		b := newBook(f)
		b.w = &world{byPath: map[string]*candidate{"/a": c}, own: "sk-own" + marker}
		q := &asked{id: "rq-00000001", model: "vm", served: &model{name: "vm", perCandidate: 1}, body: body, start: time.Now(), attempts: 1}
		b.enter(q)
		return b, c, q, func(path, key, model string) *arrival {
			r := drill.NewRequest("POST", path, body(model))
			r.Head = []byte("Authorization: Bearer " + key)
			_, a := b.arrive(at, r)
			if a != nil {
				a.ended(false)
			}
			return a
		}
	}
	for _, c := range []struct {
		what, path, key, model string
		before                 func(*book, *candidate, *asked)
		want                   string
	}{
		{"who may be", "/a/v1/chat/completions", secret, "real", nil, ""},
		{"a stranger", "/b/v1/chat/completions", secret, "real", nil, "strangers"},
		{"another's credential", "/a/v1/chat/completions", other, "real", nil, "secret"},
		{"the client's credential beside it", "/a/v1/chat/completions", secret + " sk-own" + marker, "real", nil, "secret"},
		{"another model", "/a/v1/chat/completions", secret, "vm", nil, "fidelity"},
		{"at another host", "/a/v1/chat/completions", secret, "real", func(_ *book, c *candidate, _ *asked) { c.host = &host{gate: &gate{}} }, "other upstream"},
		{"of another chain", "/a/v1/chat/completions", secret, "real", func(_ *book, _ *candidate, q *asked) { q.served = &model{name: "other", perCandidate: 1} }, "other chain"},
		{"frozen", "/a/v1/chat/completions", secret, "real", func(b *book, c *candidate, q *asked) {
			b.froze(c, q.start.Add(-time.Second), q.start.Add(time.Hour))
		}, "frozen"},
		{"frozen after it began", "/a/v1/chat/completions", secret, "real", func(b *book, c *candidate, q *asked) {
			b.froze(c, q.start.Add(time.Nanosecond), q.start.Add(time.Hour))
		}, ""},
		{"thawed", "/a/v1/chat/completions", secret, "real", func(b *book, c *candidate, q *asked) {
			b.froze(c, q.start.Add(-time.Second), q.start.Add(time.Hour))
			b.lifting(c)
		}, ""},
	} {
		b, cand, q, arrive := scene()
		if c.before != nil {
			c.before(b, cand, q)
		}
		arrive(c.path, c.key, c.model)
		b.settle()
		if got := b.figures.broken(); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	b, _, _, arrive := scene()
	arrive("/a/x", secret, "real")
	arrive("/a/x", secret, "real")
	if b.settle(); b.figures.broken() != "after release bounds" {
		t.Errorf("called twice: %q", b.figures.broken())
	}
	b, _, q, arrive := scene()
	first := arrive("/a/x", secret, "real")
	first.ended(true)
	arrive("/a/x", secret, "real")
	if b.settle(); b.figures.broken() != "" {
		t.Errorf("once more, as the connection had died: %q", b.figures.broken())
	}
	q.arrivals[0].over = false
	if b.settle(); b.figures.broken() != "upstream" {
		t.Errorf("one that never ends: %q", b.figures.broken())
	}
}

func TestSecretsAreFoundHoweverTheyLook(t *testing.T) {
	f := newFigures(func(string, ...any) {})
	if _, err := (watched{f, new(atomic.Bool)}).Write([]byte("sk-fake***0001")); err != nil || f.broken() != "" {
		t.Errorf("a mask: %q", f.broken())
	}
	for _, pad := range []string{"", "u:", "user:", "someone:"} {
		text := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pad+"sk-fake-1"+marker+"00"))
		if leak([]byte(text)) == "" {
			t.Errorf("%s is not found", text)
		}
	}
	if _, err := (watched{f, new(atomic.Bool)}).Write([]byte("key=sk-fake-1" + marker + "00")); err != nil || f.broken() != "secret" {
		t.Errorf("a whole one: %q", f.broken())
	}
}
