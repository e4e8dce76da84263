package daemon

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy/internal/drill"
)

// speaking is a client of one protocol alone, that trusts any certificate.
func speaking(t *testing.T, set func(*http.Protocols)) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // self-signed, on loopback
	set(tr.Protocols)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

func inTheClear(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }

// withAdmin has a rig serve a word at the admin listener.
func withAdmin(o *Options) {
	o.Admin, o.AdminHandler = new("127.0.0.1:0"), ping
}

// Both listeners speak HTTP/2: over TLS by negotiation, and in the clear, on loopback,
// to whoever begins with it. HTTP/1.1 is spoken beside either.
func TestBothListenersSpeakHTTP2(t *testing.T) {
	u := well(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key := issue(t, 1)
	put(t, certFile, cert, time.Hour)
	put(t, keyFile, key, time.Hour)
	for scheme, more := range map[string]string{"http": "", "https": ", tls_cert: \"" + certFile + "\", tls_key: \"" + keyFile + "\""} {
		r := newRig(t, vm(more, "a "+u.URL()+" m"), withAdmin).serve()
		for proto, client := range map[int]*http.Client{
			1: speaking(t, func(p *http.Protocols) { p.SetHTTP1(true) }),
			2: speaking(t, func(p *http.Protocols) { p.SetHTTP2(scheme == "https"); p.SetUnencryptedHTTP2(scheme == "http") }),
		} {
			for range 2 { // the second one on a connection that was kept
				resp, err := client.Post(scheme+"://"+r.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"vm","messages":[]}`))
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || resp.ProtoMajor != proto {
					t.Errorf("%s: the proxy answers %d over %s", scheme, resp.StatusCode, resp.Proto)
				}
				resp, err = client.Get(scheme + "://" + r.AdminAddr() + "/")
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != "admin" || resp.ProtoMajor != proto {
					t.Errorf("%s: the admin listener answers %q over %s", scheme, body, resp.Proto)
				}
			}
		}
	}
}

// Nobody speaks HTTP/2 in the clear over a network, and TLS is never left out.
func TestWhereHTTP2IsSpoken(t *testing.T) {
	for _, c := range []struct {
		addr          net.Addr
		secure        bool
		overTLS, bare bool
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, false, false, true},
		{&net.TCPAddr{IP: net.IPv4(127, 8, 8, 8)}, false, false, true},
		{&net.TCPAddr{IP: net.IPv6loopback}, false, false, true},
		{&net.TCPAddr{IP: net.IPv4zero}, false, false, false},
		{&net.TCPAddr{IP: net.IPv6zero}, false, false, false},
		{&net.TCPAddr{}, false, false, false},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, false, false, false},
		{&net.UnixAddr{Name: "/run/x"}, false, false, false},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, true, true, false},
		{&net.TCPAddr{IP: net.IPv4zero}, true, true, false},
	} {
		p := protocols(c.addr, c.secure)
		if !p.HTTP1() || p.HTTP2() != c.overTLS || p.UnencryptedHTTP2() != c.bare {
			t.Errorf("%v, TLS %v: %v", c.addr, c.secure, p)
		}
	}
}

// An Upgrade to h2c is not followed: the answer is HTTP/1.1's, the connection stays
// with it, and the upstream hears nothing of it.
func TestAnUpgradeToHTTP2IsNotFollowed(t *testing.T) {
	u := well(t)
	r := newRig(t, vm("", "a "+u.URL()+" m"), withAdmin).serve()
	const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
	body := `{"model":"vm","messages":[]}`
	c := dial(t, r.Addr())
	in := bufio.NewReader(c)
	for range 2 {
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", upgrade, len(body), body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != 200 || resp.Proto != "HTTP/1.1" || resp.Header.Get("Upgrade") != "" {
			t.Errorf("client got %d %s %v", resp.StatusCode, resp.Proto, resp.Header)
		}
	}
	for _, q := range u.Requests() {
		for _, name := range []string{"Upgrade", "Connection", "HTTP2-Settings"} {
			if v := q.Values(name); len(v) != 0 {
				t.Errorf("upstream got %s: %q", name, v)
			}
		}
	}
	c = dial(t, r.AdminAddr())
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n", upgrade)
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("the admin listener: %v, %v", resp, err)
	}
}

// bare opens HTTP/2 in the clear.
func bare(t *testing.T, addr string) (net.Conn, *http2.Framer) {
	t.Helper()
	c := dial(t, addr)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c, f
}

// statusOf reads frames until a stream's head, or its end, has come.
func statusOf(t *testing.T, f *http2.Framer, stream uint32) string {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err.Error()
		}
		if frame.Header().StreamID != stream {
			continue
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return frame.ErrCode.String()
		}
	}
}

// What holds for HTTP/1.1 holds for HTTP/2 in the clear: the time for the first bytes,
// the number of connections, the size of a head, who may call, and what is no target.
func TestHTTP2InTheClearIsBounded(t *testing.T) {
	t.Run("slow beginnings", func(t *testing.T) {
		r := newRig(t, vm("", "a http://127.0.0.1:1 m"))
		r.proxyServer.HTTP.ReadHeaderTimeout = 200 * time.Millisecond // 30 s are too long for a test
		r.serve()
		for _, begun := range []string{"P", "PRI * HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM"} {
			c := dial(t, r.Addr())
			io.WriteString(c, begun)
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q waits for ever", begun)
			}
		}
	})
	t.Run("connections", func(t *testing.T) {
		r := newRig(t, vm(", max_connections: 2", "a http://127.0.0.1:1 m")).serve()
		for range 2 {
			_, f := bare(t, r.Addr())
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: getting("/healthz"), EndHeaders: true, EndStream: true})
			if got := statusOf(t, f, 1); got != "200" {
				t.Fatal(got)
			}
		}
		if got := status(dial(t, r.Addr())); got != "503 2 true" {
			t.Errorf("one too many: %s", got)
		}
	})
	u := well(t)
	r := newRig(t, vm(", websocket: true", "a "+u.URL()+" m")).serve()
	t.Run("streams", func(t *testing.T) {
		_, f := bare(t, r.Addr())
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := frame.(*http2.SettingsFrame); ok && !s.IsAck() {
				if n, ok := s.Value(http2.SettingMaxConcurrentStreams); !ok || n > 250 || n < 50 {
					t.Errorf("%d streams at once are offered (%v)", n, ok)
				}
				return
			}
		}
	})
	large := hpack.HeaderField{Name: "x-large", Value: strings.Repeat("x", maxHead+8<<10)}
	for name, c := range map[string]struct {
		head []byte
		want string
	}{
		"a foreign page":      {getting("/v1/models", hpack.HeaderField{Name: "origin", Value: "https://evil.example"}), "403"},
		"a foreign name":      {heading("GET", "evil.example", "/v1/models"), "403"},
		"a tunnel":            {headed(":method", "CONNECT", ":authority", "upstream.example:443"), "400"},
		"a trace":             {heading("TRACE", "localhost", "/v1/models"), "400"},
		"a whole URL":         {heading("GET", "localhost", "http://localhost/v1/models"), "400"},
		"no path":             {heading("OPTIONS", "localhost", "*"), "400"},
		"another way up":      {heading("GET", "localhost", "/v1/../x"), "400"},
		"HTTP/1.1's framing":  {getting("/v1/models", hpack.HeaderField{Name: "transfer-encoding", Value: "chunked"}), "400"},
		"HTTP/1.1's upgrade":  {getting("/v1/responses", hpack.HeaderField{Name: "upgrade", Value: "websocket"}, hpack.HeaderField{Name: "connection", Value: "upgrade"}), "400"},
		"a line in a header":  {getting("/v1/models", hpack.HeaderField{Name: "x-a", Value: "b\r\nx-evil: 1"}), "PROTOCOL_ERROR"},
		"a line in a name":    {getting("/v1/models", hpack.HeaderField{Name: "x-a\r\nx-evil", Value: "1"}), "PROTOCOL_ERROR"},
		"a line in the path":  {getting("/v1/models HTTP/1.1\r\nX-Evil: 1"), "PROTOCOL_ERROR"},
		"a path in a method":  {heading("GET /v1/files?x=", "localhost", "/v1/models"), "400"},
		"a space in a path":   {getting("/v1/batches HTTP/1.1 /models"), "400"},
		"a tab in a query":    {getting("/v1/models?a=\tb"), "PROTOCOL_ERROR"},
		"a line in a method":  {heading("GET / HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET", "localhost", "/v1/models"), "PROTOCOL_ERROR"},
		"a trace in disguise": {heading("trace", "localhost", "/v1/models"), "400"},
		"a line in the name":  {heading("GET", "localhost\r\nX-Evil: 1", "/v1/models"), "PROTOCOL_ERROR"},
		"a space in the name": {heading("GET", "localhost evil", "/v1/models"), "403"},
		"a large head":        {getting("/healthz", large), "EOF"}, // Go's server ends the connection
		"an extended CONNECT": {headed(":method", "CONNECT", ":protocol", "websocket", ":scheme", "http", ":authority", "localhost", ":path", "/v1/responses"), "PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := bare(t, r.Addr())
			block, first := c.head, true
			for len(block) > 0 { // in frames that fit
				part := block[:min(len(block), 16<<10)]
				block = block[len(part):]
				var err error
				if first {
					err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: part, EndHeaders: len(block) == 0, EndStream: true})
				} else {
					err = f.WriteContinuation(1, len(block) == 0, part)
				}
				if err != nil {
					t.Fatal(err)
				}
				first = false
			}
			got := statusOf(t, f, 1)
			if strings.Contains(got, "reset") {
				got = "EOF"
			}
			if got != c.want {
				t.Errorf("client got %s, want %s", got, c.want)
			}
		})
	}
	if n := u.Count(); n != 0 {
		t.Errorf("somebody was called %d times", n)
	}
}

// headed is a block of these fields; heading one of a request.
func headed(fields ...string) []byte {
	var list []hpack.HeaderField
	for i := 0; i < len(fields); i += 2 {
		list = append(list, hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return block(list)
}

func heading(method, authority, path string, more ...hpack.HeaderField) []byte {
	return block(append([]hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: authority}, {Name: ":path", Value: path}}, more...))
}

func getting(path string, more ...hpack.HeaderField) []byte {
	return heading("GET", "localhost", path, more...)
}

// A program that ends lets HTTP/2 in the clear finish: the running stream is whole, and
// the connection is told to go away; one on which nothing runs does not hold it up.
func TestHTTP2InTheClearIsDrained(t *testing.T) {
	release := make(chan struct{})
	u := upstream(t, func(w *drill.Wire, _ drill.Request, _ int) {
		<-release
		w.JSON(200, []byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"held back"},"finish_reason":"stop"}]}`))
	})
	r := newRig(t, vm("", "a "+u.URL()+" m")).serve()
	_, idle := bare(t, r.Addr())
	idle.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: getting("/healthz"), EndHeaders: true, EndStream: true})
	if got := statusOf(t, idle, 1); got != "200" {
		t.Fatal(got)
	}
	client := speaking(t, inTheClear)
	answered := make(chan error, 1)
	go func() {
		resp, err := client.Post("http://"+r.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"vm","messages":[]}`))
		if err == nil {
			var body []byte
			body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.Contains(string(body), "held back") {
				err = fmt.Errorf("%d %s", resp.StatusCode, body)
			}
		}
		answered <- err
	}()
	eventually(t, "the upstream is called", func() bool { return u.Count() == 1 })
	r.proxyConns.mu.RLock()
	if n := len(r.proxyConns.open); n != 0 {
		t.Errorf("%d connections are taken for HTTP/1.1's", n)
	}
	r.proxyConns.mu.RUnlock()
	r.drain()
	for {
		frame, err := idle.ReadFrame()
		if err != nil {
			t.Errorf("no word of the end: %v", err)
			break
		}
		if _, ok := frame.(*http2.GoAwayFrame); ok {
			break
		}
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	r.quits(10 * time.Second)
}
