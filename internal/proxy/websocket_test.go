package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// hub is an upstream that speaks WebSocket, with a library's real handshake.
type hub struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
}

// newHub answers every handshake with talk, which gets the connection; how says what
// else the 101 holds.
func newHub(t *testing.T, how websocket.AcceptOptions, header http.Header, talk func(ctx context.Context, c *websocket.Conn)) *hub {
	t.Helper()
	u := &hub{}
	u.Server = httptest.NewServer(u.handler(how, header, talk))
	t.Cleanup(u.Close)
	return u
}

func (u *hub) handler(how websocket.AcceptOptions, header http.Header, talk func(ctx context.Context, c *websocket.Conn)) http.Handler {
	how.InsecureSkipVerify = true
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.asked = append(u.asked, r)
		u.mu.Unlock()
		for name, values := range header {
			w.Header()[name] = values
		}
		c, err := websocket.Accept(w, r, &how)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(8 << 20)
		talk(r.Context(), c)
	})
}

// requests are the handshakes that it got.
func (u *hub) requests() []*http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*http.Request(nil), u.asked...)
}

// echo sends back what it gets.
func echo(ctx context.Context, c *websocket.Conn) {
	for {
		kind, p, err := c.Read(ctx)
		if err != nil || c.Write(ctx, kind, p) != nil {
			return
		}
	}
}

// connect opens a WebSocket through the proxy.
func (r *rig) connect(path string, o websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, "ws://"+r.addr+path, &o)
	if c != nil {
		c.SetReadLimit(8 << 20)
		r.t.Cleanup(func() { c.CloseNow() })
	}
	return c, resp, err
}

// opened is connect where it must succeed, and be answered by a candidate.
func (r *rig) opened(path, candidate string, o websocket.DialOptions) (*websocket.Conn, *http.Response) {
	r.t.Helper()
	c, resp, err := r.connect(path, o)
	if err != nil {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		r.t.Fatalf("no WebSocket: %d, %v\n%s", status, err, r.log.last())
	}
	if got := resp.Header.Get("X-Understudy-Candidate"); got != candidate || resp.StatusCode != http.StatusSwitchingProtocols {
		r.t.Errorf("answered %d by %q, want %q\n%s", resp.StatusCode, got, candidate, r.log.last())
	}
	return c, resp
}

// says sends a text and expects one back.
func says(t *testing.T, c *websocket.Conn, text, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	hears(t, c, want)
}

// hears expects a text.
func hears(t *testing.T, c *websocket.Conn, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if kind, p, err := c.Read(ctx); err != nil || kind != websocket.MessageText || string(p) != want {
		t.Fatalf("heard %v %q, %v, want %q", kind, brief(string(p)), err, want)
	}
}

// header makes request headers of names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// Codex's Responses over WebSocket goes through the pool: with its headers, its
// compression and its session, past a member that refuses the handshake; several
// turns on one socket, in flight until it is closed.
func TestCodexThroughThePool(t *testing.T) {
	const created, completed = `{"type":"response.created","response":{"id":"resp_1"}}`, `{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}`
	good := newHub(t, websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover}, header("X-Codex-Turn-State", "state-1", "X-Models-Etag", "etag", "Set-Cookie", "c=1", "Alt-Svc", "h3"),
		func(ctx context.Context, c *websocket.Conn) {
			for {
				_, p, err := c.Read(ctx)
				if err != nil {
					return
				}
				if !bytes.Contains(p, []byte(`"type":"response.create"`)) {
					c.Close(websocket.StatusPolicyViolation, "what is that")
					return
				}
				for _, event := range []string{created, `{"type":"response.output_text.delta","delta":"` + strings.Repeat("PONG ", 100) + `"}`, completed} {
					if c.Write(ctx, websocket.MessageText, []byte(event)) != nil {
						return
					}
				}
			}
		})
	bad := play(t, refusal(503, `{"error":{"message":"overloaded"}}`))
	r := newRig(t, fmt.Sprintf("server: {websocket: on}\npool: {}\nupstream:\n  - {id: bad, base_url: %q, api_key: sk-upstream-secret-1, weight: 1000000}\n  - {id: good, base_url: %q, api_key: sk-upstream-secret-2, weight: 0.000001}\n", bad.URL(), good.URL))
	codex := websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover, HTTPHeader: header(
		"Authorization", "Bearer client-own-key", "chatgpt-account-id", "acct", "OpenAI-Beta", "responses_websockets=2026-02-06",
		"originator", "codex_cli_rs", "session-id", "0197f3c2", "x-codex-window-id", "0197f3c2:0")}
	c, resp := r.opened("/v1/responses?x=%2F&y", "good", codex)
	for name, want := range map[string]string{"X-Codex-Turn-State": "state-1", "X-Models-Etag": "etag", "Set-Cookie": "", "Alt-Svc": "", "X-Understudy-Attempts": "2"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("the 101 has %s: %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(resp.Header.Get("X-Understudy-Request-Id"), "req_") {
		t.Errorf("request id %q", resp.Header.Get("X-Understudy-Request-Id"))
	}
	turn := `{"type":"response.create","model":"gpt-5","input":[{"role":"user","content":"` + strings.Repeat("ping ", 500) + `"}],"prompt_cache_key":"0197f3c2"}`
	for range 3 {
		says(t, c, turn, created)
		hears(t, c, `{"type":"response.output_text.delta","delta":"`+strings.Repeat("PONG ", 100)+`"}`)
		hears(t, c, completed)
	}
	asked := good.requests()[0]
	for name, want := range map[string]string{"Authorization": "Bearer sk-upstream-secret-2", "Chatgpt-Account-Id": "acct", "Openai-Beta": "responses_websockets=2026-02-06",
		"Originator": "codex_cli_rs", "Session-Id": "0197f3c2", "Upgrade": "websocket", "Connection": "Upgrade"} {
		if got := asked.Header.Get(name); got != want {
			t.Errorf("the upstream got %s: %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(asked.Header.Get("Sec-Websocket-Extensions"), "permessage-deflate") || asked.RequestURI != "/v1/responses?x=%2F&y" {
		t.Errorf("the upstream got %s with extensions %q", asked.RequestURI, asked.Header.Get("Sec-Websocket-Extensions"))
	}
	if n := r.handler.Ledger().Totals().InFlight; n != 1 {
		t.Errorf("%d requests in flight while it is open", n)
	}
	own, _ := Keys(&r.handler.Snapshot().Routes.Pool().Tiers[0][1])
	if n := r.handler.Board().InFlight(own); n != 1 {
		t.Errorf("%d leases while it is open", n)
	}
	if err := c.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("the closing handshake: %v", err)
	}
	records := r.settle()
	rec := records[0]
	if rec.Ending != stats.Success || rec.Status != 101 || rec.Winner != 1 || rec.Bytes < 100 || len(rec.Tries) != 2 || rec.Tries[0].Status != 503 || rec.Tries[1].Verdict != stats.OK {
		t.Errorf("booked %+v", rec)
	}
	if n := r.handler.Ledger().Totals().InFlight + int64(r.handler.Board().InFlight(own)); n != 0 {
		t.Errorf("%d in flight after it was closed", n)
	}
	r.opened("/v1/responses", "good", codex) // bad is cooling down
	if n := bad.Count(); n != 1 {
		t.Errorf("bad was called %d times", n)
	}
	if text := r.log.String(); strings.Contains(text, "sk-upstream-secret") || strings.Contains(text, "client-own-key") {
		t.Errorf("the log shows a secret:\n%s", text)
	}
}

// OpenAI's Realtime goes through a chain: the model in the query is replaced in
// place, a browser's key among the subprotocols goes no further, and text, large
// binary messages and the way it is closed pass as they are.
func TestRealtimeThroughAChain(t *testing.T) {
	u := newHub(t, websocket.AcceptOptions{Subprotocols: []string{"realtime"}}, nil, func(ctx context.Context, c *websocket.Conn) {
		for {
			kind, p, err := c.Read(ctx)
			switch {
			case err != nil:
				return
			case string(p) == "leave":
				c.Close(4001, "session expired")
				return
			case c.Write(ctx, kind, p) != nil:
				return
			}
		}
	})
	down := play(t, refusal(401, `{"error":{"message":"Incorrect API key"}}`))
	r := newRig(t, over("server: {websocket: on}\nrules: [{match: {status: 401}, action: next}]", down.URL(), u.URL))
	c, _ := r.opened("/v1/realtime?a=%41&model=vm&b=1;c", "u2", websocket.DialOptions{
		Subprotocols: []string{"realtime", "openai-insecure-api-key.client-secret", "openai-beta.realtime-v1"}, HTTPHeader: header("Origin", "http://"+r.addr)})
	if got := c.Subprotocol(); got != "realtime" {
		t.Errorf("subprotocol %q", got)
	}
	asked := u.requests()[0]
	if asked.RequestURI != "/v1/realtime?a=%41&model=m2&b=1;c" || asked.Header.Get("Authorization") != "Bearer sk-upstream-secret-2" || asked.Header.Get("Origin") != "" {
		t.Errorf("the upstream got %s %v", asked.RequestURI, asked.Header)
	}
	if got := strings.Join(asked.Header["Sec-Websocket-Protocol"], ", "); got != "realtime, openai-beta.realtime-v1" {
		t.Errorf("the upstream got the subprotocols %q", got)
	}
	if q := only(t, down); q.Target != "/v1/realtime?a=%41&model=m1&b=1;c" {
		t.Errorf("u1 got %s", q.Target)
	}
	says(t, c, "hello", "hello")
	big := bytes.Repeat([]byte{0, 1, 2, 255}, 1<<19)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	written := make(chan error, 1)
	go func() { written <- c.Write(ctx, websocket.MessageBinary, big) }()
	if kind, p, err := c.Read(ctx); err != nil || kind != websocket.MessageBinary || !bytes.Equal(p, big) {
		t.Errorf("%d bytes came back as %v, %v", len(p), kind, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if err := c.Ping(c.CloseRead(ctx)); err != nil {
		t.Errorf("ping: %v", err)
	}
	c, _ = r.opened("/v1/realtime?model=vm", "u2", websocket.DialOptions{})
	if err := c.Write(ctx, websocket.MessageText, []byte("leave")); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != 4001 || !strings.Contains(fmt.Sprint(err), "session expired") {
		t.Errorf("closed with %v", err)
	}
}

// off answers 426 at once and calls nobody; a candidate's own setting goes before the
// server's; a virtual model needs its name in the query.
func TestWhereWebSocketsGo(t *testing.T) {
	u := newHub(t, websocket.AcceptOptions{}, nil, echo)
	other := newHub(t, websocket.AcceptOptions{}, nil, echo)
	member := func(settings ...string) (cfg string) {
		cfg = "virtual_models:\n  vm:\n"
		for i, s := range settings {
			cfg += fmt.Sprintf("    - {name: u%d, base_url: %q, model: m%d, auth_style: none%s}\n", i+1, []string{u.URL, other.URL}[i], i+1, s)
		}
		return cfg
	}
	const on = "server: {websocket: on}\n"
	for name, c := range map[string]struct {
		cfg, path string
		status    int // of a refusal
		by        string
	}{
		"on":                               {on + member(""), "/v1/realtime?model=vm", 0, "u1"},
		"off":                              {member(""), "/v1/realtime?model=vm", 426, ""},
		"on for one candidate":             {member("", ", websocket: on"), "/v1/realtime?model=vm", 0, "u2"},
		"off for one candidate":            {on + member(", websocket: off", ""), "/v1/realtime?model=vm", 0, "u2"},
		"off for all candidates":           {on + member(", websocket: off"), "/v1/realtime?model=vm", 426, ""},
		"on for nobody in this chain":      {member("") + "  other:\n    - {base_url: \"http://u\", model: m, auth_style: none, websocket: on}\n", "/v1/realtime?model=vm", 426, ""},
		"no model in the query":            {on + member(""), "/v1/responses", 426, ""},
		"an unknown model":                 {on + member(""), "/v1/realtime?model=gpt", 404, ""},
		"an escaped model":                 {on + member(""), "/v1/realtime?mod%65l=%76m", 0, "u1"},
		"two models, the last counts":      {on + member(""), "/v1/realtime?model=gpt&model=vm", 0, "u1"},
		"the pool":                         {on + pool("", u.URL), "/v1/responses", 0, "p1"},
		"the pool, by an unknown model":    {on + pool("", u.URL), "/v1/realtime?model=gpt", 0, "p1"},
		"the pool, off":                    {pool("", u.URL), "/v1/responses", 426, ""},
		"no page of ours, but the pool's":  {on + pool("", u.URL), "/v1/models", 0, "p1"},
		"a virtual model, and the pool on": {"pool: {}\n" + member("") + fmt.Sprintf("upstream: [{id: p1, base_url: %q, websocket: on}]\n", u.URL), "/v1/realtime?model=vm", 426, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.cfg)
			before := len(u.requests()) + len(other.requests())
			if c.status == 0 {
				conn, _ := r.opened(c.path, c.by, websocket.DialOptions{})
				says(t, conn, "hi", "hi")
				return
			}
			_, resp, err := r.connect(c.path, websocket.DialOptions{})
			if err == nil || resp == nil || resp.StatusCode != c.status {
				t.Errorf("%v, %v, want %d", resp, err, c.status)
			}
			if n := len(u.requests()) + len(other.requests()); n != before || r.frozen() != 0 {
				t.Error("somebody was called, or is frozen")
			}
		})
	}
	if got := u.requests()[0].RequestURI; strings.Contains(got, "vm") {
		t.Errorf("an upstream got %s", got)
	}
	for _, q := range append(u.requests(), other.requests()...) {
		if strings.Contains(q.RequestURI, "vm") || strings.Contains(q.RequestURI, "%76m") {
			t.Errorf("an upstream got the virtual model: %s", q.RequestURI)
		}
	}
}

// What is no handshake is refused, and nobody is called.
func TestWhatIsNoHandshake(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("server: {websocket: on}", u.URL()))
	key := []string{"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	r.fails(r.send(drill.Query{Method: "POST", Path: "/v1/responses", Body: []byte(`{}`), Header: append(key, "Connection", "Upgrade", "Upgrade", "websocket")}), 400, "GET")
	r.fails(r.get("/v1/responses", append(key, "Connection", "keep-alive", "Upgrade", "websocket")...), 400, "Connection: Upgrade")
	for _, half := range [][]string{
		key[:2], key[2:], // no key, no version
		{"Sec-WebSocket-Version", "8", key[2], key[3]},
		append([]string{"Sec-WebSocket-Version", "8"}, key...),
		append([]string{key[2], "AAAAAAAAAAAAAAAAAAAAAA=="}, key...),
		{key[0], "13", "Sec-WebSocket-Key", "x"},
		{key[0], "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j"}, // 15 bytes
	} {
		r.fails(r.get("/v1/responses", append([]string{"Connection", "Upgrade", "Upgrade", "websocket"}, half...)...), 400, "Sec-WebSocket-Key")
	}
	r.fails(r.get("/v1/../responses", append(key, "Connection", "Upgrade", "Upgrade", "websocket")...), 400)

	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/responses HTTP/1.0\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", r.addr, key[3])
	if said, err := io.ReadAll(conn); err != nil || !strings.Contains(string(said), " 426 ") || !strings.Contains(string(said), "over HTTP/1.1") {
		t.Errorf("over HTTP/1.0: %s %v", said, err)
	}
	uncalled(t, u)
}

// A handshake that fails fails over by the rules, whatever it fails by.
func TestHandshakesFailOver(t *testing.T) {
	good := newHub(t, websocket.AcceptOptions{}, nil, echo)
	raw := func(head string) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte(head))
			w.FIN()
		}
	}
	gone := play(t, silent)
	gone.Close()
	for name, c := range map[string]struct {
		url   string
		class string
	}{
		"refused":                 {gone.URL(), "network"},
		"500":                     {play(t, refusal(500, `{"error":{"message":"no"}}`)).URL(), "500"},
		"429":                     {play(t, refusal(429, `{"error":{"message":"slow down"}}`)).URL(), "429"},
		"404":                     {play(t, refusal(404, `not here`)).URL(), "404"},
		"200":                     {play(t, page("text/html", "<p>hello")).URL(), "bad_stream"},
		"101 without an upgrade":  {play(t, raw("HTTP/1.1 101 Switching Protocols\r\n\r\n")).URL(), "bad_stream"},
		"101 for something else":  {play(t, raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")).URL(), "bad_stream"},
		"101 for another key":     {play(t, raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n")).URL(), "bad_stream"},
		"closed before an answer": {play(t, func(w *drill.Wire, _ drill.Request, _ int) { w.FIN() }).URL(), "network"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, over("server: {websocket: on}\nrules: []", c.url, good.URL))
			conn, resp := r.opened("/v1/realtime?model=vm", "u2", websocket.DialOptions{})
			says(t, conn, "hi", "hi")
			if n := resp.Header.Get("X-Understudy-Attempts"); n != "2" {
				t.Errorf("%s attempts", n)
			}
			conn.Close(websocket.StatusNormalClosure, "")
			rec := r.settle()[0]
			if try := rec.Tries[0]; try.Class != c.class || try.Verdict != stats.Failed {
				t.Errorf("booked %v %s: %s", try.Verdict, try.Class, try.Text)
			}
		})
	}
	t.Run("passed through", func(t *testing.T) {
		bad := play(t, refusal(400, `{"error":{"message":"no such session"}}`, "X-Request-Id", "abc"))
		r := newRig(t, over("server: {websocket: on}\nrules: [{match: {status: 400}, action: passthrough}]", bad.URL(), good.URL))
		_, resp, err := r.connect("/v1/realtime?model=vm", websocket.DialOptions{})
		if err == nil || resp == nil || resp.StatusCode != 400 || resp.Header.Get("X-Request-Id") != "abc" {
			t.Fatalf("%v, %v", resp, err)
		}
		if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "no such session") {
			t.Errorf("body %q", body)
		}
	})
	t.Run("all of them", func(t *testing.T) {
		bad := play(t, refusal(500, `{}`))
		r := newRig(t, over("server: {websocket: on}\nrules: []", bad.URL(), gone.URL()))
		_, resp, err := r.connect("/v1/realtime?model=vm", websocket.DialOptions{})
		if err == nil || resp == nil || resp.StatusCode != 502 || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", resp, err)
		}
		if n := r.handler.Ledger().Totals().InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
	})
}

// Over TLS the upstream is asked by HTTP/1.1, though it offers HTTP/2.
func TestWebSocketOverTLS(t *testing.T) {
	u := &hub{}
	u.Server = httptest.NewUnstartedServer(u.handler(websocket.AcceptOptions{}, nil, echo))
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	u.EnableHTTP2 = true
	u.StartTLS()
	t.Cleanup(u.Close)
	r := newRig(t, over("server: {websocket: on}", u.URL))
	r.handler.transports.get("").upgrade.pooled.TLSClientConfig = u.Client().Transport.(*http.Transport).TLSClientConfig
	conn, _ := r.opened("/v1/realtime?model=vm", "u1", websocket.DialOptions{})
	says(t, conn, "hi", "hi")
	if p := u.requests()[0]; p.Proto != "HTTP/1.1" || p.TLS.NegotiatedProtocol == "h2" {
		t.Errorf("asked over %s, %q", p.Proto, p.TLS.NegotiatedProtocol)
	}
}

// With client keys a browser may send its own among the subprotocols, and it goes no
// further; a web page of another origin is refused.
func TestWhoMayOpenAWebSocket(t *testing.T) {
	u := newHub(t, websocket.AcceptOptions{Subprotocols: []string{"realtime"}}, nil, echo)
	r := newRig(t, pool("server: {websocket: on}\nclients: [{name: me, key: client-key-one}]", u.URL))
	for name, c := range map[string]struct {
		o      websocket.DialOptions
		status int
	}{
		"no key":         {websocket.DialOptions{}, 401},
		"a wrong key":    {websocket.DialOptions{Subprotocols: []string{"realtime", "openai-insecure-api-key.wrong"}}, 401},
		"another origin": {websocket.DialOptions{HTTPHeader: header("Origin", "https://evil.example", "Authorization", "Bearer client-key-one")}, 403},
		"a subprotocol":  {websocket.DialOptions{Subprotocols: []string{"realtime", "openai-insecure-api-key.client-key-one"}}, 0},
		"a header":       {websocket.DialOptions{HTTPHeader: header("Authorization", "Bearer client-key-one")}, 0},
	} {
		before := len(u.requests())
		if c.status == 0 {
			conn, _ := r.opened("/v1/responses", "p1", c.o)
			says(t, conn, "hi", "hi")
			continue
		}
		if _, resp, err := r.connect("/v1/responses", c.o); err == nil || resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, %v, want %d", name, resp, err, c.status)
		}
		if len(u.requests()) != before {
			t.Errorf("%s: the upstream was called", name)
		}
	}
	limited := newRig(t, fmt.Sprintf("server: {websocket: on}\nclients: [{name: me, key: client-key-one, models: [vm]}]\npool: {}\nupstream: [{id: p1, base_url: %q}]\nvirtual_models: {vm: [{name: u1, base_url: %q, model: m, auth_style: none}]}\n", u.URL, u.URL))
	for path, status := range map[string]int{"/v1/realtime?model=vm": 0, "/v1/realtime?model=gpt": 403, "/v1/responses": 403, "/v1/realtime?model=gpt&model=vm": 403, "/v1/responses?model=vm": 403, "/openai/realtime?deployment=gpt&model=vm": 403, "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?model=vm": 403} {
		o := websocket.DialOptions{HTTPHeader: header("Authorization", "Bearer client-key-one")}
		if status == 0 {
			limited.opened(path, "u1", o)
		} else if _, resp, err := limited.connect(path, o); err == nil || resp == nil || resp.StatusCode != status {
			t.Errorf("%s for a client with one model: %v, %v, want %d", path, resp, err, status)
		}
	}
	for _, q := range u.requests() {
		if strings.Contains(fmt.Sprint(q.Header), "client-key") {
			t.Errorf("the upstream got %v", q.Header)
		}
	}
}

// The account that answered with a routing token gets the connection that replays it.
func TestWebSocketsGoToTheirOwner(t *testing.T) {
	newMember := func(token string) *hub {
		return newHub(t, websocket.AcceptOptions{}, header("X-Codex-Turn-State", token), echo)
	}
	a, b := newMember("token-a"), newMember("token-b")
	r := newRig(t, pool("server: {websocket: on}", a.URL, b.URL))
	_, resp := r.opened("/v1/responses", "p1", websocket.DialOptions{})
	token := resp.Header.Get("X-Codex-Turn-State")
	for range 3 { // p1 is busier, and p2 would be next
		r.opened("/v1/responses", "p1", websocket.DialOptions{HTTPHeader: header("X-Codex-Turn-State", token)})
	}
	r.opened("/v1/responses", "p2", websocket.DialOptions{})
}
