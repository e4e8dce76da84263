//go:build e2e

package agents

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"understudy/internal/drill"
)

// installed are the agents that can be run here.
func installed() []agent {
	return slices.DeleteFunc(slices.Clone(agents), func(a agent) bool { return a.command() == nil })
}

// checkTurn fails the test unless the agent took one whole turn, of the second upstream's making: it called the tool
// once, and said what it was told.
func (r *run) checkTurn(t *testing.T) {
	t.Helper()
	if r.exit != 0 {
		t.Errorf("exit status %d", r.exit)
	}
	if r.horn != "second\n" {
		t.Errorf("the tool wrote %q, want one line of the second upstream's", r.horn)
	}
	if !strings.Contains(spoken(r.stdout), said("second")) {
		t.Error("the agent does not say what the second upstream said")
	}
	for _, never := range []string{"says the first", said("first"), "echo first"} {
		if strings.Contains(r.stdout+r.stderr, never) {
			t.Errorf("the agent shows what the first upstream said: %q", never)
		}
	}
}

// checkRequests fails the test unless an upstream was asked with its own model and key, and never saw the agent's.
func (c *chain) checkRequests(t *testing.T, u *drill.Upstream, name string) {
	t.Helper()
	for _, r := range u.Requests() {
		if got := r.Model(); got != "model-of-"+name {
			t.Errorf("the %s upstream was asked for %q", name, got)
		}
		if !strings.Contains(string(r.Head), "sk-of-the-"+name+"-upstream") || bytes.Contains(r.Head, []byte(clientKey)) {
			t.Errorf("the %s upstream was sent another key than its own:\n%s", name, r.Head)
		}
	}
}

// TestHealthyTurn is the measure of the others: how many requests a turn takes that nothing disturbs.
func TestHealthyTurn(t *testing.T) {
	for _, a := range installed() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if n := a.requests(t); n < 2 {
				t.Errorf("%d requests for a turn with a tool call", n)
			}
		})
	}
}

var (
	measured   = map[string]int{}
	measuredMu sync.Mutex
)

// requests is how many requests an undisturbed turn takes.
func (a agent) requests(t *testing.T) int {
	t.Helper()
	measuredMu.Lock()
	defer measuredMu.Unlock()
	if n := measured[a.name]; n > 0 {
		return n
	}
	c := newChain(t, a, "auto-strong", "stream", a.well("second"), a.well("third"))
	url, _ := serve(t, []*chain{c})
	r := a.run(t, url, c.model)
	r.checkTurn(t)
	if n := c.second.Count(); n != 0 {
		t.Errorf("a second candidate got %d requests", n)
	}
	measured[a.name] = c.first.Count()
	t.Logf("%s: %d requests, %s; elsewhere: %s", a.name, c.first.Count(), r.took, r.elsewhere)
	return c.first.Count()
}

// TestFirstUpstreamFails: a whole turn with a tool call while the first upstream fails, in each of the ways there are.
// What comes after words have gone out needs delivery: complete. The agent notices nothing: it makes as many requests as
// in a turn that nothing disturbs.
func TestFirstUpstreamFails(t *testing.T) {
	for _, a := range installed() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			requests := a.requests(t)
			var chains []*chain
			for _, f := range drill.Faults() {
				if !a.meets(f) {
					continue
				}
				delivery := "stream"
				if f.AfterRelease {
					delivery = "complete"
				}
				chains = append(chains, newChain(t, a, f.Name, delivery, a.ill(f, "first"), a.well("second")))
			}
			url, _ := serve(t, chains)
			for _, c := range chains {
				t.Run(c.model, func(t *testing.T) {
					t.Parallel()
					a.run(t, url, c.model).checkTurn(t)
					if n := c.second.Count(); n != requests {
						t.Errorf("the second upstream got %d requests, want %d as in an undisturbed turn", n, requests)
					}
					if n := c.first.Count(); n < requests {
						t.Errorf("the first upstream got %d requests, want each of the %d", n, requests)
					}
					c.checkRequests(t, c.first, "first")
					c.checkRequests(t, c.second, "second")
				})
			}
		})
	}
}

// TestCutAfterRelease: with plain streaming a break in mid-answer reaches the agent, as an error and not as an end. Each
// of them asks again by itself, and none takes the part for a whole: the tool is called once, with the answer that was
// whole.
func TestCutAfterRelease(t *testing.T) {
	for _, a := range installed() {
		for _, name := range []string{"reset-late", "clean-late", "stall-late", "failed-late"} {
			t.Run(a.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				f, ok := drill.Find(name)
				if !ok {
					t.Fatal("no such fault")
				}
				// The same upstream cuts its first answer to the user's request, and is well after that.
				cut, well := a.ill(f, "first"), a.well("second")
				var mu sync.Mutex
				cuts := 0
				script := func(w *drill.Wire, r drill.Request, n int) {
					mu.Lock()
					first := cuts == 0 && bytes.Contains(r.Body, []byte(a.tools))
					if first {
						cuts++
					}
					mu.Unlock()
					if first {
						cut(w, r, n)
						return
					}
					well(w, r, n)
				}
				c := newChain(t, a, "auto-strong", "stream", script, a.well("third"))
				url, _ := serve(t, []*chain{c})
				r := a.run(t, url, c.model)
				if r.exit != 0 && r.horn == "" {
					t.Logf("%s gave up after %s and %d requests, and said so", a.name, r.took, c.first.Count())
					return // no part was taken for a whole
				}
				t.Logf("%s asked again by itself: %d requests, %s", a.name, c.first.Count(), r.took)
				if r.exit != 0 || r.horn != "second\n" || !strings.Contains(spoken(r.stdout), said("second")) {
					t.Errorf("exit status %d, the tool wrote %q", r.exit, r.horn)
				}
				if n := c.second.Count(); n != 0 {
					t.Errorf("another candidate was called %d times after the release", n)
				}
			})
		}
	}
}

// TestNobodyAnswers: an exhausted chain ends the turn with an error that the agent shows, after attempts of its own.
func TestNobodyAnswers(t *testing.T) {
	for _, a := range installed() {
		if a.stubborn {
			continue // it would try again for minutes
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			f, _ := drill.Find("503")
			c := newChain(t, a, "auto-strong", "stream", a.ill(f, "first"), a.ill(f, "second"))
			url, _ := serve(t, []*chain{c})
			r := a.run(t, url, c.model)
			if r.horn != "" || strings.Contains(spoken(r.stdout), said("second")) {
				t.Errorf("a turn without an answer: the tool wrote %q", r.horn)
			}
			if !strings.Contains(r.stdout+r.stderr, "no upstream of virtual model") {
				t.Error("the agent does not show why")
			}
		})
	}
}

// exchange is one request that an agent made, and how it was answered.
type exchange struct {
	method, target, coding, upgrade string
	status                          int
}

// tap stands between an agent and the program, and notes what passes.
type tap struct {
	mu   sync.Mutex
	seen []exchange
}

func newTap(t *testing.T, to string) (*tap, string) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	n := &tap{}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			q := r.Request
			n.seen = append(n.seen, exchange{q.Method, q.URL.RequestURI(), q.Header.Get("Content-Encoding"), q.Header.Get("Upgrade"), r.StatusCode})
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return n, server.URL
}

// TestCodexSpeaksAsWithItsOwnProvider: logged in with an account Codex tries a WebSocket first, is told 426 and goes on
// over HTTP at once; it compresses its requests with zstd; it asks for the list of models and can read it.
func TestCodexSpeaksAsWithItsOwnProvider(t *testing.T) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == "codex" })
	a := agents[i]
	if a.command() == nil {
		return // main has said so
	}
	t.Parallel()
	c := newChain(t, a, "auto-strong", "stream", a.well("second"), a.well("third"))
	url, _ := serve(t, []*chain{c})
	seen, through := newTap(t, url)
	r := a.run(t, through, c.model)
	r.checkTurn(t)
	find := func(what string, fits func(exchange) bool) {
		t.Helper()
		if !slices.ContainsFunc(seen.seen, fits) {
			t.Errorf("Codex did not %s:\n%+v", what, seen.seen)
		}
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	find("try a WebSocket and hear 426", func(e exchange) bool {
		return e.method == "GET" && strings.HasPrefix(e.target, "/v1/responses") && e.upgrade == "websocket" && e.status == http.StatusUpgradeRequired
	})
	find("send a zstd body and get an answer", func(e exchange) bool {
		return e.method == "POST" && e.target == "/v1/responses" && e.coding == "zstd" && e.status == http.StatusOK
	})
	find("ask for the list of models", func(e exchange) bool {
		return e.method == "GET" && strings.HasPrefix(e.target, "/v1/models?client_version=") && e.status == http.StatusOK
	})
	if strings.Contains(r.stderr, "failed to decode models response") {
		t.Error("Codex could not read the list of models")
	}
	for _, q := range c.first.Requests() {
		if q.Get("Content-Encoding") != "" {
			t.Errorf("an upstream got a body in %s", q.Get("Content-Encoding"))
		}
	}
}
