package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// A requestLine is what a client of HTTP/2 sends for :method and :path.
type requestLine struct{ method, path string }

// noLines are lines that HTTP/1.1 has not, or reads as more than one thing. Those with
// control characters in them Go's server refuses by itself.
var noLines = []requestLine{
	{"DELETE /v1/files/../../admin?x=", "/v1/chat/completions"}, {"GET / HTTP/1.1 POST", "/v1/chat/completions"},
	{"TRACE ", "/v1/chat/completions"}, {" TRACE", "/v1/chat/completions"}, {"TRACE\t", "/v1/chat/completions"}, {"CONNECT evil:443 HTTP/1.1", "/v1/chat/completions"},
	{"Trace", "/v1/chat/completions"}, {"trace", "/v1/chat/completions"}, {"TRACK", "/v1/chat/completions"}, {"connect", "/v1/chat/completions"},
	{"POST,GET", "/v1/chat/completions"}, {"P\xc3\x96ST", "/v1/chat/completions"},
	{"POST", "/v1/batches HTTP/1.1 /chat/completions"}, {"POST", "/v1/batches /chat/completions"}, {"POST", "/v1/batches#/chat/completions"},
	{"POST", "/v1/chat/completions?x=a b"}, {"POST", "/v1/chat/completions?x=a#b"}, {"POST", "/v1/chat/completions?a=1 HTTP/1.0"}, {"POST", "/v1/chat/completions "},
}

// clientOverHTTP2 serves a handler over HTTP/2 in the clear and returns what sends one
// request line there, as it is, with the body of a chat's.
func clientOverHTTP2(t *testing.T, h http.Handler) (ask func(l requestLine, header ...string) (status int, body string)) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return func(l requestLine, header ...string) (int, string) {
		t.Helper()
		status, body, err := askFramed(server.Listener.Addr().String(), l, header)
		if err != nil {
			t.Errorf("%q: %v", l, err)
		}
		return status, body
	}
}

// askFramed sends one request on a connection of its own, frame by frame, since net/http's
// client sends no such lines.
func askFramed(addr string, l requestLine, header []string) (status int, body string, err error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, http2.ClientPreface) // where it cannot be written nothing can be read
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	fields := append([]string{":method", l.method, ":scheme", "http", ":authority", "localhost", ":path", l.path, "Content-Type", "application/json"}, header...)
	for i := 0; i+1 < len(fields); i += 2 {
		e.WriteField(hpack.HeaderField{Name: strings.ToLower(fields[i]), Value: fields[i+1]})
	}
	f.WriteSettings()
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	f.WriteData(1, true, []byte(requestFor(chatPath, true)))
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return status, body, err
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			if status == 0 {
				status, _ = strconv.Atoi(frame.PseudoValue("status"))
			}
		case *http2.DataFrame:
			body += string(frame.Data())
		case *http2.RSTStreamFrame:
			return status, body, fmt.Errorf("the stream was reset: %v", frame.ErrCode)
		}
		if frame.Header().StreamID == 1 && frame.Header().Flags.Has(http2.FlagDataEndStream) { // a head's has the same bit
			return status, body, nil
		}
	}
}

// Whatever a client of HTTP/2 sends for a method and a path is one request line, or is
// refused: no upstream over HTTP/1.1 reads another request in it, and no key for certain
// models hides one behind the end of its path.
func TestALineOverHTTP2IsOneLine(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	for name, cfg := range map[string]string{
		"a chain": over("", u.URL()), "a pool": pool("", u.URL()),
		"a key for certain models": over("clients: [{name: some, key: client-key-some-0123456789, models: [vm]}]", u.URL()),
	} {
		h, _, _ := wired(t, cfg)
		ask := clientOverHTTP2(t, h)
		for _, l := range noLines {
			if status, body := ask(l, "X-Api-Key", "client-key-some-0123456789"); status != 400 || !strings.Contains(body, `"code":"bad_request"`) {
				t.Errorf("%s: %q got %d %s", name, l, status, brief(body))
			}
		}
		records, _ := h.Ledger().Since(0, 100)
		for _, rec := range records {
			if rec.Ending != stats.Refused || strings.ContainsAny(rec.Method, "\r\n\t\x00") {
				t.Errorf("%s: %q %q was booked as %v", name, rec.Method, rec.Path, rec.Ending)
			}
		}
		if n := u.Count(); n != 0 {
			t.Fatalf("%s: the upstream was called %d times, with\n%s", name, n, u.Requests()[0].Head)
		}
	}
	h, _, _ := wired(t, pool("", u.URL()))
	ask := clientOverHTTP2(t, h)
	for _, l := range []requestLine{{"POST", "/v1/chat/completions?a=%20%23%0d%0a&b=[\"<{|}>\"]`^\\"}, {"POST", "/v1/x\xc3\xa9\xff"}, {"m-search", "/v1/%20"}} {
		before := u.Count()
		if status, body := ask(l); status != 200 {
			t.Errorf("%q got %d %s", l, status, brief(body))
		} else if q := u.Requests()[before]; q.Method != l.method || q.Target != l.path || len(q.Values("Host")) != 1 || q.Get("Host") == "localhost" {
			t.Errorf("%q: upstream got\n%s", l, q.Head)
		}
	}
}

// The same over HTTP/1.1, where Go's server lets less through, and for a WebSocket.
func TestALineIsOneLine(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("server: {websocket: true}", u.URL()))
	for _, l := range []requestLine{
		{"Trace", "/v1/x"}, {"trace", "/v1/x"}, {"TRACK", "/v1/x"}, {"Connect", "/v1/x"}, {"P(ST", "/v1/x"},
		{"POST", "/v1/batches#/chat/completions"}, {"POST", "/v1/x?a#b"}, {"POST", "/v1/x\x01"}, {"POST", "/v1/x\x7f"}, {"POST", "/v1/x y"}, {"POST", "/v1/x?a=\tb"},
	} {
		if got := r.send(drill.Query{Method: l.method, Path: l.path, Body: []byte(`{"model":"vm"}`)}); got.Status != 400 {
			t.Errorf("%q got %d %s", l, got.Status, got.Body)
		}
	}
	for _, path := range []string{"/v1/realtime?model=vm#", "/v1/realtime?model=vm HTTP/1.1", "/v1/realtime?model=v\tm", "/v1/realtime?model=v\x7fm"} {
		got := r.send(drill.Query{Method: "GET", Path: path, Header: []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}})
		if got.Status != 400 {
			t.Errorf("a WebSocket at %q got %d %s", path, got.Status, got.Body)
		}
	}
	uncalled(t, u)
}

// One client's requests that cannot be sent freeze nobody, however many: neither those
// that are refused at the door, nor those that only our own client of HTTP/2 refuses.
func TestWhatCannotBeSentIsNobodysFailure(t *testing.T) {
	for name, more := range map[string]string{"a chain": "", "a pool": "pool"} {
		well := func(w http.ResponseWriter, _ *http.Request) { say(w, whole) }
		h, addr, calls := overHTTP2(t, "", well, well)
		if more != "" {
			h.Swap(compile(t, pool("", urlsOf(h)...)))
		}
		ask := clientOverHTTP2(t, h)
		for range 8 {
			for _, l := range []requestLine{{"POST /x", "/v1/chat/completions"}, {"POST", "/v1/chat/completions?x=a b"}} {
				if status, body := ask(l); status != 400 {
					t.Errorf("%s: %q got %d %s", name, l, status, brief(body))
				}
			}
			// No server lets such a header in; in depth it does no harm either.
			r := httptest.NewRequest("POST", "http://localhost"+chatPath, strings.NewReader(requestFor(chatPath, true)))
			r.RequestURI = chatPath
			r.Header["X-A"] = []string{"b\r\nc: d"}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code < 500 {
				t.Errorf("%s: a header that is none got %d %s", name, w.Code, brief(w.Body.String()))
			}
		}
		if n := calls[0].Load() + calls[1].Load(); n != 0 {
			t.Errorf("%s: somebody was called %d times", name, n)
		}
		if freezes := h.Board().Freezes(time.Now()); len(freezes) != 0 {
			t.Errorf("%s: %d are frozen: %v", name, len(freezes), freezes)
		}
		resp := send(t, addr, chatPath, requestFor(chatPath, true))
		if body, err := io.ReadAll(resp.Body); string(body) != whole || err != nil || resp.Header.Get("X-Understudy-Attempts") != "1" {
			t.Errorf("%s: everybody else got %d %q, %v", name, resp.StatusCode, body, err)
		}
	}
}

// urlsOf are the base URLs of a handler's only chain.
func urlsOf(h *Handler) (urls []string) {
	chain, err := h.Snapshot().Routes.Route("vm")
	if err != nil {
		panic(fmt.Sprint("no vm: ", err))
	}
	for _, tier := range chain.Tiers {
		for _, c := range tier {
			urls = append(urls, c.BaseURL.String())
		}
	}
	return urls
}
