package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/health"
)

// begun is an upstream that begins its stream, and ends it when it is told to.
func begun(t *testing.T) (u *drill.Upstream, end chan struct{}) {
	end = make(chan struct{})
	chunk := func(text, reason string) []byte {
		return fmt.Appendf(nil, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":%s}]}`+"\n\n", text, reason)
	}
	return upstream(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", "text/event-stream")
		w.Chunk(chunk("a long enough beginning", "null"))
		if !w.Wait(end) {
			return
		}
		w.Chunk(chunk("", `"stop"`))
		w.Chunk([]byte("data: [DONE]\n\n"))
		w.End()
	}), end
}

// streaming asks for a stream in the background, and returns when it has begun.
func (r *rig) streaming(model string) <-chan drill.Reply {
	r.t.Helper()
	answer, first := make(chan drill.Reply, 1), make(chan struct{})
	go func() {
		seen := false
		answer <- drill.Ask(context.Background(), r.Addr(), drill.Query{Path: "/v1/chat/completions", Body: fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[]}`, model),
			Watch: func(got drill.Reply) bool {
				if !seen && len(got.Body) > 0 {
					seen = true
					close(first)
				}
				return true
			}})
	}()
	select {
	case <-first:
	case <-time.After(10 * time.Second):
		r.t.Fatal("the stream has not begun")
	}
	return answer
}

// refuses asserts that nobody listens any more.
func (r *rig) refuses() {
	r.t.Helper()
	eventually(r.t, "new connections are refused", func() bool {
		c, err := net.Dial("tcp", r.Addr())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// Spec section 13: SIGTERM stops accepting and lets running requests finish; then the
// daemon ends well, with its state on disk.
func TestRunningRequestsFinish(t *testing.T) {
	u, end := begun(t)
	r := newRig(t, vm("", "a "+u.URL()+" m")).serve()
	answer := r.streaming("vm")
	r.freeze("a", time.Hour, health.Person)
	r.drain()
	r.refuses()
	select {
	case err := <-r.ended:
		t.Fatalf("it ended before its request did: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(end)
	if got := <-answer; !got.Clean || !strings.HasSuffix(string(got.Body), "data: [DONE]\n\n") {
		t.Errorf("the running request got %q, %v", got.Body, got.Err)
	}
	r.quits(10 * time.Second)
	r.open()
	if left := r.left("a"); left < 59*time.Minute {
		t.Errorf("after it ended the freeze is %v long", left)
	}
}

// What still runs after drain_timeout is broken off: it never looks whole, and the
// upstream is let go.
func TestDrainTimeoutBreaksOff(t *testing.T) {
	for _, timeout := range []string{"0.3", "0"} {
		t.Run(timeout, func(t *testing.T) {
			u, _ := begun(t)
			silent := upstream(t, func(w *drill.Wire, _ drill.Request, _ int) { w.Silence() })
			r := newRig(t, vm(", drain_timeout: "+timeout, "a "+u.URL()+" m")+"  mute:\n    - {name: s, base_url: \""+silent.URL()+"\", api_key: sk-s, model: s}\n").serve()
			answer := r.streaming("vm")
			mute := make(chan drill.Reply, 1)
			go func() { mute <- r.ask("mute", true) }()
			silent.Await(t.Context(), func() bool { return silent.Count() == 1 })
			start := time.Now()
			r.drain()
			if got := <-answer; got.Clean || len(got.Body) == 0 || strings.Contains(string(got.Body), "[DONE]") {
				t.Errorf("the running stream got %q, clean %v", got.Body, got.Clean)
			}
			if got := <-mute; got.Clean || got.Status != 0 {
				t.Errorf("the silent one got %d %q", got.Status, got.Body)
			}
			r.quits(10 * time.Second)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			for _, u := range []*drill.Upstream{u, silent} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if !u.Await(ctx, func() bool { return u.Gone() == 1 && u.Open() == 0 }) {
					t.Errorf("the upstream has %d connections, and saw %d leave", u.Open(), u.Gone())
				}
				cancel()
			}
			if n := r.ledger.Totals().InFlight; n != 0 {
				t.Errorf("%d in flight", n)
			}
		})
	}
}

// A second signal stops at once.
func TestASecondSignalStopsAtOnce(t *testing.T) {
	u, _ := begun(t)
	r := newRig(t, vm("", "a "+u.URL()+" m")).serve()
	answer := r.streaming("vm")
	r.drain()
	r.refuses()
	r.stop()
	if got := <-answer; got.Clean {
		t.Errorf("the running request got %q as if it were whole", got.Body)
	}
	r.quits(5 * time.Second)
}

// Quit does what SIGTERM does, once or often, and a request that waits for its retry
// finishes too.
func TestQuit(t *testing.T) {
	a := upstream(t, func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(500, []byte(`{}`)) })
	b := well(t)
	r := newRig(t, vm("", "a "+a.URL()+" m1", "b "+b.URL()+" m2")+"rules: [{match: {status: 500}, action: retry, max_attempts: 2, max_wait: 0.3}]\n").serve()
	answer := make(chan drill.Reply, 1)
	go func() { answer <- r.ask("vm", false) }()
	a.Await(t.Context(), func() bool { return a.Count() == 1 })
	r.Quit()
	r.Quit()
	if got := <-answer; got.Status != 200 || got.Get("X-Understudy-Candidate") != "b" {
		t.Errorf("the waiting request got %d by %q", got.Status, got.Get("X-Understudy-Candidate"))
	}
	r.quits(10 * time.Second)
}

// Idle connections, and a dashboard that listens for ever, hold nothing up.
func TestWhatHoldsNothingUp(t *testing.T) {
	u := well(t)
	listening := make(chan struct{})
	r := newRig(t, strings.Replace(vm("", "a "+u.URL()+" m"), "admin: off", "admin: \"127.0.0.1:0\"", 1), func(o *Options) {
		o.AdminHandler = func(*Daemon) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				w.WriteHeader(200)
				w.(http.Flusher).Flush()
				close(listening)
				<-q.Context().Done()
			})
		}
	}).serve()
	c, err := drill.Dial(t.Context(), r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Ask(t.Context(), drill.Query{Path: "/healthz"}); got.Status != 200 {
		t.Fatalf("%d", got.Status)
	}
	go func() {
		if resp, err := http.Get("http://" + r.AdminAddr() + "/api/events"); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	<-listening
	start := time.Now()
	r.drain()
	r.quits(5 * time.Second)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

// A non-loopback address without client keys is refused, and so is an admin listener
// there without a token; the refusal names the cures, and leaves nothing open.
func TestRefusesToStartOpen(t *testing.T) {
	open := func(server string, more string, set ...func(*Options)) error {
		r := &rig{t: t, path: t.TempDir() + "/understudy.yaml", state: t.TempDir()}
		r.write("server: {state_dir: \"STATE\", " + server + "}\n" + more + "virtual_models:\n  vm:\n    - {base_url: \"http://127.0.0.1:1\", api_key: sk-1, model: m}\n")
		o := Options{ConfigPath: r.path, AdminHandler: ping}
		for _, f := range set {
			f(&o)
		}
		d, err := Open(o)
		if err == nil {
			d.Close()
		}
		return err
	}
	flag := func(o *Options) { o.AllowUnauthenticated = true }
	host := func(h string) func(*Options) { return func(o *Options) { o.Host = &h } }
	admin := func(a string) func(*Options) { return func(o *Options) { o.Admin = &a } }
	const clients = "clients: [{name: c, key: a-client-key-of-some-length}]\n"
	for _, c := range []struct {
		name, server, more string
		set                []func(*Options)
		cures              []string // nil: it starts
	}{
		{"loopback", "port: 0, admin: off", "", nil, nil},
		{"all addresses", "port: 0, admin: off, host: 0.0.0.0", "", nil, []string{"clients", "allow_unauthenticated"}},
		{"all addresses, v6", "port: 0, admin: off, host: \"::\"", "", nil, []string{"clients", "allow_unauthenticated"}},
		{"by flag", "port: 0, admin: off", "", []func(*Options){host("0.0.0.0")}, []string{"clients", "--allow-unauthenticated"}},
		{"nothing as a host, which is all addresses", "port: 0, admin: off", "", []func(*Options){host("")}, []string{"clients", "allow_unauthenticated"}},
		{"with client keys", "port: 0, admin: off, host: 0.0.0.0", clients, nil, nil},
		{"allowed by the file", "port: 0, admin: off, host: 0.0.0.0, allow_unauthenticated: true", "", nil, nil},
		{"allowed by flag", "port: 0, admin: off, host: 0.0.0.0", "", []func(*Options){flag}, nil},
		{"admin on a network", "port: 0, admin: \"0.0.0.0:0\"", "", nil, []string{"admin_token", "127.0.0.1"}},
		{"admin on a network, by flag", "port: 0, admin: off", "", []func(*Options){admin("0.0.0.0:0")}, []string{"admin_token"}},
		{"admin on a network is not what clients' keys are for", "port: 0, admin: \"0.0.0.0:0\"", clients, []func(*Options){flag}, []string{"admin_token"}},
		{"admin on a network with a token", "port: 0, admin: \"0.0.0.0:0\", admin_token: a-token-of-some-length", "", nil, nil},
		{"admin without a host, which is all addresses", "port: 0, admin: \":0\"", "", nil, []string{"admin_token"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := open(c.server, c.more, c.set...)
			if (err != nil) != (c.cures != nil) || err != nil && !errors.Is(err, ErrOpen) {
				t.Fatalf("error %v", err)
			}
			for _, cure := range c.cures {
				if !strings.Contains(err.Error(), cure) {
					t.Errorf("%q does not name %s", err, cure)
				}
			}
		})
	}
}

// A port that is taken is told by its address, and nothing stays open behind it.
func TestAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	r := &rig{t: t, path: t.TempDir() + "/understudy.yaml", state: t.TempDir()}
	r.write(strings.Replace(vm("", "a http://127.0.0.1:1 m"), "port: 0, admin: off", fmt.Sprintf("port: %d, admin: %q", port, l.Addr()), 1))
	if _, err := Open(Options{ConfigPath: r.path, AdminHandler: ping}); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("error %v does not name %v", err, l.Addr())
	}
	again, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the proxy's port stays open: %v", err)
	}
	again.Close()
}

// A reload cannot open a running network listener to everybody.
func TestReloadDoesNotOpenUp(t *testing.T) {
	closed := strings.Replace(vm(", reload_poll_interval: 0", "a http://127.0.0.1:1 m"), "port: 0", "port: 0, host: 0.0.0.0", 1)
	r := newRig(t, "clients: [{name: c, key: a-client-key-of-some-length}]\n"+closed).serve()
	r.write(closed)
	if err := r.Reload(t.Context()); !errors.Is(err, ErrOpen) {
		t.Errorf("error %v", err)
	}
	if got := r.ask("vm", false); got.Status != 401 {
		t.Errorf("a client without a key got %d", got.Status)
	}
	r.write(strings.Replace(closed, "port: 0", "port: 0, allow_unauthenticated: true", 1))
	if err := r.Reload(t.Context()); err != nil {
		t.Errorf("said to be meant so: %v", err)
	}
}

// A client of HTTP/1.0 knows the end of an answer by the connection's. What the end of
// the process cuts is reset, and a whole answer is not.
func TestWhatTheEndCutsIsResetForHTTP10(t *testing.T) {
	u, _ := begun(t)
	quick := upstream(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, vm(", drain_timeout: 0", "a "+u.URL()+" m")+"  quick:\n    - {name: q, base_url: \""+quick.URL()+"\", api_key: sk-q, model: q}\n").serve()
	ask := func(model string) net.Conn {
		c := dial(t, r.Addr())
		body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[]}`, model)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return c
	}
	if got, err := io.ReadAll(ask("quick")); err != nil || !strings.Contains(string(got), "[DONE]") {
		t.Errorf("a whole answer: %q, %v", got, err)
	}
	c := ask("vm")
	got := ""
	for buf := make([]byte, 4096); !strings.Contains(got, "a long enough beginning"); {
		n, err := c.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	r.drain()
	if rest, err := io.ReadAll(c); err == nil {
		t.Errorf("it ended as if it were whole, with %q", rest)
	}
	r.quits(10 * time.Second)
}
