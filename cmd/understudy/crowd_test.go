package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/internal/drill"
)

// A crowd is what several clients want of a proxy, and what they got. What the
// upstreams are to do stands in each request, as the word of a plot.
type crowd struct {
	t       *testing.T
	proxy   string // host:port
	got     [plots]atomic.Int64
	strange atomic.Int64 // answers that the plot did not foresee
}

// plot is what is to become of a request.
type plot int

const (
	well     plot = iota // the first candidate answers
	saved                // the first fails, the second answers
	deserted             // both fail
	cut                  // the first's answer breaks off after release
	aborted              // the client leaves in the middle of the answer
	plots
)

func (p plot) String() string { return [...]string{"well", "saved", "deserted", "cut", "aborted"}[p] }

// The tokens that a whole answer reports.
const tokensIn, tokensOut = 12, 3

// actors starts the two upstreams that play the plots.
func actors(t *testing.T) (first, second *drill.Upstream) {
	healthy := drill.Healthy(drill.Answer{Text: "a whole answer", Usage: drill.Usage{Input: tokensIn, Output: tokensOut}})
	refuse := answer(500, `{"error":{"message":"not today"}}`)
	part := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"the beginning of an answer\"},\"finish_reason\":null}]}\n\n")
	play := func(scripts map[plot]drill.Script) *drill.Upstream {
		u := drill.Start(func(w *drill.Wire, r drill.Request, n int) {
			for p := range plots {
				if bytes.Contains(r.Body, []byte("plot "+p.String())) {
					scripts[p](w, r, n)
				}
			}
		})
		t.Cleanup(u.Close)
		return u
	}
	begin := func(w *drill.Wire) {
		w.Head(200, drill.Chunked, "Content-Type", "text/event-stream")
		w.Chunk(part)
	}
	first = play(map[plot]drill.Script{well: healthy, saved: refuse, deserted: refuse,
		cut:     func(w *drill.Wire, _ drill.Request, _ int) { begin(w); w.Stop(drill.FIN) },
		aborted: func(w *drill.Wire, _ drill.Request, _ int) { begin(w); w.Silence() }})
	second = play(map[plot]drill.Script{saved: healthy, deserted: refuse})
	return first, second
}

// cast is a configuration with the virtual model auto over both.
func cast(more string, first, second *drill.Upstream) string {
	return fmt.Sprintf(`%s
rules: [{match: {fault: [server, capacity]}, action: next}]
virtual_models:
  auto:
    - {name: first, base_url: %q, auth_style: none, model: m-1}
    - {name: second, base_url: %q, auth_style: none, model: m-2}
`, more, first.URL(), second.URL())
}

// A client is one of the crowd, with a connection that it keeps while it can.
type client struct {
	*crowd
	conn *drill.Client
}

// close closes the connection, if there is one.
func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// ask sends a request, and gives the id it was answered with once the answer was over.
func (c *client) ask(ctx context.Context, p plot) (id string) {
	if c.conn == nil {
		conn, err := drill.Dial(ctx, c.proxy)
		if err != nil {
			return ""
		}
		c.conn = conn
	}
	q := drill.Query{Path: "/v1/chat/completions", Header: []string{"Content-Type", "application/json"},
		Body: fmt.Appendf(nil, `{"model":"auto","stream":%v,"messages":[{"role":"user","content":"plot %s"}]}`, p == cut || p == aborted, p)}
	if p == aborted {
		q.Watch = func(r drill.Reply) bool { return len(r.Body) == 0 }
	}
	r := c.conn.Ask(ctx, q)
	if !r.Clean || r.Get("Connection") == "close" {
		c.close()
	}
	want := map[plot]bool{well: r.Status == 200 && r.Clean, saved: r.Status == 200 && r.Clean, deserted: r.Status == 502 && r.Clean,
		cut: r.Status == 200 && !r.Clean, aborted: r.Err == drill.ErrLeft}[p]
	if ctx.Err() != nil {
		return ""
	}
	if !want {
		c.strange.Add(1)
		return ""
	}
	c.got[p].Add(1)
	return r.Get("X-Understudy-Request-Id")
}

// plotOf spreads the plots over requests by their number.
func plotOf(n int) plot {
	switch n % 20 {
	case 3, 7, 11:
		return saved
	case 5:
		return deserted
	case 13:
		return cut
	case 17:
		return aborted
	}
	return well
}

// play has so many clients send so many requests in all.
func (c *crowd) play(ctx context.Context, clients, requests int) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range clients {
		wg.Go(func() {
			one := client{crowd: c}
			for n := int(next.Add(1)); n <= requests; n = int(next.Add(1)) {
				one.ask(ctx, plotOf(n))
			}
			one.close()
		})
	}
	wg.Wait()
}

// fetch gets a page as text.
func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", url, resp.StatusCode, err, body)
	}
	return string(body)
}

// metric is one value of a page of metrics.
func metric(t *testing.T, page, name string, labels ...string) int64 {
	t.Helper()
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, name) {
			continue
		}
		matches := true
		for _, l := range labels {
			matches = matches && strings.Contains(line, l)
		}
		if matches {
			var v float64
			if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &v); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return int64(v)
		}
	}
	t.Fatalf("no %s%v", name, labels)
	return 0
}
