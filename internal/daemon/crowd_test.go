package daemon

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy/internal/drill"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// healthy asks a connection for /healthz and returns the status line.
func status(c net.Conn) string {
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Retry-After"), " ", strings.Contains(string(body), "max_connections"))
}

// One connection too many gets 503 and is closed; those that are there are served on,
// and a place that is given up can be had.
func TestTooManyConnections(t *testing.T) {
	r := newRig(t, vm(", max_connections: 3", "a http://127.0.0.1:1 m")).serve()
	var open []net.Conn
	for range 3 {
		c := dial(t, r.Addr())
		if got := status(c); got != "200  false" {
			t.Fatal(got)
		}
		open = append(open, c)
	}
	for range 5 {
		c := dial(t, r.Addr())
		if got := status(c); got != "503 2 true" {
			t.Errorf("one too many: %s", got)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("it is not closed: %v", err)
		}
	}
	if got := status(open[1]); got != "200  false" {
		t.Error(got)
	}
	open[0].Close()
	for end := time.Now().Add(10 * time.Second); ; {
		c := dial(t, r.Addr())
		if got := status(c); got == "200  false" {
			break
		} else if time.Now().After(end) {
			t.Fatal(got)
		}
	}
	if n := mostConnections(20000, 1024); n != 480 {
		t.Errorf("%d of 1024 descriptors", n)
	}
	if n := mostConnections(5, 0); n != 5 {
		t.Errorf("%d", n)
	}
}

// One too many is told so though its request is large and goes out first: what nobody
// read would reset the connection, and the answer would be lost.
func TestOneTooManyWithALargeRequest(t *testing.T) {
	r := newRig(t, vm(", max_connections: 1", "a http://127.0.0.1:1 m")).serve()
	if got := status(dial(t, r.Addr())); got != "200  false" {
		t.Fatal(got)
	}
	c := dial(t, r.Addr())
	const size = 4 << 20
	if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)); err != nil {
		t.Errorf("sending: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != 503 || err != nil || !strings.Contains(string(body), "max_connections") {
		t.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
}

// A head that is too large gets 431 over HTTP/1, whether it is one header or many.
func TestLargeHeads(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m")).serve()
	for name, head := range map[string]string{
		"one header": "X-Large: " + strings.Repeat("x", maxHead+8<<10) + "\r\n",
		"many":       strings.Repeat("X-Many: 12345\r\n", maxHead/15+1000),
		"the target": "",
	} {
		c := dial(t, r.Addr())
		target := "/healthz"
		if head == "" {
			target += "?" + strings.Repeat("x", maxHead+8<<10)
		}
		go func() {
			// The server may close before it has read all.
			_, _ = io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: localhost\r\n"+head+"\r\n")
		}()
		got := make([]byte, 16)
		if _, err := io.ReadFull(c, got); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 431") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	c := dial(t, r.Addr())
	go func() {
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Fits: "+strings.Repeat("x", maxHead-1000)+"\r\n\r\n")
	}()
	got := make([]byte, 12)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "HTTP/1.1 200" {
		t.Errorf("one that fits: %q, %v", got, err)
	}
	if s := r.proxyServer.HTTP; s.ReadHeaderTimeout != headTime || s.IdleTimeout != idleTime || s.ReadTimeout != 0 || s.WriteTimeout != 0 {
		t.Errorf("%+v", s)
	}
}

// Who sends a head too slowly is let go.
func TestSlowHeads(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m"))
	r.proxyServer.HTTP.ReadHeaderTimeout = 200 * time.Millisecond // 30 s are too long for a test
	r.serve()
	c := dial(t, r.Addr())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for text := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("y", 1000); len(text) > 0; text = text[1:] {
		select {
		case <-ended:
			return
		case <-tick.C:
			_, _ = io.WriteString(c, text[:1])
		}
	}
	t.Error("it waits for ever")
}

// secured is a rig with TLS, and a client of its own for raw HTTP/2.
func secured(t *testing.T, more, url string) (*rig, func() (*tls.Conn, *http2.Framer)) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key := issue(t, 1)
	put(t, certFile, cert, time.Hour)
	put(t, keyFile, key, time.Hour)
	r := newRig(t, vm(more+", tls_cert: \""+certFile+"\", tls_key: \""+keyFile+"\"", "a "+url+" m")).serve()
	return r, func() (*tls.Conn, *http2.Framer) {
		c, err := tls.Dial("tcp", r.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // self-signed, on loopback
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
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
}

// heads is a block of headers for a request, block one of any fields.
func heads(path string, more ...hpack.HeaderField) []byte {
	return block(append([]hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: path}}, more...))
}

func block(fields []hpack.HeaderField) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, h := range fields {
		_ = e.WriteField(h) // a buffer takes everything
	}
	return b.Bytes()
}

// Over HTTP/2 a client has at most so many streams at once, and one that opens and
// resets them in a flood (CVE-2023-44487) is no way around that: the connection ends,
// few requests run, and others are served.
func TestHTTP2Floods(t *testing.T) {
	var in, peak atomic.Int64
	hold := make(chan struct{})
	u := drill.Start(func(w *drill.Wire, _ drill.Request, _ int) {
		n := in.Add(1)
		for was := peak.Load(); n > was && !peak.CompareAndSwap(was, n); was = peak.Load() {
		}
		<-hold
		in.Add(-1)
		w.JSON(200, []byte(`{}`))
	})
	defer u.Close()
	defer close(hold)
	r, connect := secured(t, "", u.URL())
	body := []byte(`{"model":"vm","messages":[]}`)
	t.Run("streams at once", func(t *testing.T) {
		_, f := connect()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			s, ok := frame.(*http2.SettingsFrame)
			if !ok || s.IsAck() {
				continue
			}
			if n, ok := s.Value(http2.SettingMaxConcurrentStreams); !ok || n > 250 || n < 50 {
				t.Errorf("%d streams at once are offered (%v)", n, ok)
			}
			return
		}
	})
	t.Run("rapid reset", func(t *testing.T) {
		c, f := connect()
		go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
		for id := uint32(1); id < 2*20_000; id += 2 {
			if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: heads("/v1/chat/completions"), EndHeaders: true}) != nil ||
				f.WriteData(id, true, body) != nil || f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				break
			}
		}
		if n := peak.Load(); n > 300 {
			t.Errorf("%d requests ran at once", n)
		}
	})
	t.Run("CONTINUATION", func(t *testing.T) {
		c, f := connect()
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = io.Copy(io.Discard, c) }() // ends with the connection
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: heads("/healthz"), EndStream: true})
		block := heads("/healthz", hpack.HeaderField{Name: "x-long", Value: strings.Repeat("x", 8<<10), Sensitive: true})
		written := 0
		for ; written < 64<<20; written += len(block) {
			if f.WriteContinuation(1, false, block) != nil {
				break
			}
		}
		if written > 16<<20 {
			t.Errorf("%d MiB of headers were taken", written>>20)
		}
		<-ended
	})
	c, err := tls.Dial("tcp", r.Addr(), &tls.Config{InsecureSkipVerify: true}) // self-signed, on loopback
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := status(c); got != "200  false" {
		t.Errorf("others: %s", got)
	}
}

// A client that stops reading is let go after write_idle_timeout, its buffers full, and
// its upstream with it; over HTTP/2 the stream ends, and the connection serves others.
func TestAClientThatStopsReading(t *testing.T) {
	stream := func(gone chan<- struct{}) *drill.Upstream {
		return drill.Start(func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", "text/event-stream")
			event := `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("word ", 2000) + `"}}]}` + "\n\n"
			for w.Err() == nil {
				w.Chunk([]byte(event))
			}
			gone <- struct{}{}
		})
	}
	body := `{"model":"vm","stream":true,"messages":[]}`
	let := func(t *testing.T, gone <-chan struct{}, since time.Time) {
		t.Helper()
		select {
		case <-gone:
			if d := time.Since(since); d < 900*time.Millisecond {
				t.Errorf("let go after %v", d)
			}
		case <-time.After(20 * time.Second):
			t.Error("its upstream still sends")
		}
	}
	t.Run("HTTP/1", func(t *testing.T) {
		gone := make(chan struct{}, 1)
		u := stream(gone)
		defer u.Close()
		r := newRig(t, vm(", write_idle_timeout: 1", "a "+u.URL()+" m")).serve()
		c := dial(t, r.Addr())
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if _, err := io.ReadFull(c, make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		let(t, gone, time.Now())
		// What it finds when it reads on is no whole answer.
		all, err := io.ReadAll(c)
		if strings.HasSuffix(string(all), "\r\n0\r\n\r\n") || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer looks whole, or never ends: %v", err)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		gone := make(chan struct{}, 1)
		u := stream(gone)
		defer u.Close()
		_, connect := secured(t, ", write_idle_timeout: 1", u.URL())
		_, f := connect()
		if err := errors.Join(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: heads("/v1/chat/completions"), EndHeaders: true}), f.WriteData(1, true, []byte(body))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		let(t, gone, start) // no window is given back
		var once sync.Once
		reset := false
		for !reset {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			once.Do(func() {
				_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: heads("/healthz"), EndHeaders: true, EndStream: true})
			})
			_, reset = frame.(*http2.RSTStreamFrame)
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("the connection does not serve others: %v", err)
			}
			if h, ok := frame.(*http2.MetaHeadersFrame); ok && h.StreamID == 3 {
				return
			}
		}
	})
}
