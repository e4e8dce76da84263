package h1

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An answering connection gives the same answer to every request, without a system
// below: what is measured is what we do.
type answering struct {
	net.Conn
	pieces []string // what one read gets each
	next   int
}

func (c *answering) Write(p []byte) (int, error) { c.next = 0; return len(p), nil }
func (c *answering) Close() error                { return nil }

func (c *answering) Read(p []byte) (int, error) {
	if c.next == len(c.pieces) {
		return 0, io.EOF
	}
	c.next++
	return copy(p, c.pieces[c.next-1]), nil
}

// apiHead are the fields of an answer as an API behind a load balancer sends them.
const apiHead = "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 17:00:00 GMT\r\nContent-Type: application/json\r\nServer: cloudflare\r\n" +
	"Connection: keep-alive\r\nX-Request-Id: req_0123456789abcdef0123456789abcdef\r\nOpenai-Processing-Ms: 412\r\nOpenai-Version: 2020-10-01\r\n" +
	"X-Ratelimit-Limit-Requests: 10000\r\nX-Ratelimit-Remaining-Requests: 9999\r\nStrict-Transport-Security: max-age=31536000\r\n"

func BenchmarkRoundTrip(b *testing.B) {
	body := strings.Repeat("x", 1024)
	for name, answer := range map[string]string{
		"small":   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n" + body,
		"usual":   apiHead + "Content-Length: 1024\r\n\r\n" + body,
		"chunked": apiHead + "Transfer-Encoding: chunked\r\n\r\n400\r\n" + body + "\r\n0\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			conn := &answering{pieces: []string{answer}}
			client := &Client{Dial: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
			defer client.CloseIdle()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			req, parts := post("127.0.0.1:8000", []byte(body))
			for name, value := range map[string]string{"Accept": "*/*", "Accept-Encoding": "identity", "Authorization": "Bearer sk-0123456789", "User-Agent": "client/1.0"} {
				req.Header.Set(name, value)
			}
			buf := make([]byte, 2048)
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.RoundTrip(ctx, req, parts, false, told{})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = resp.Body.Read(buf)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// A stream's events, one chunk and one read each.
func BenchmarkChunks(b *testing.B) {
	const event = "94\r\ndata: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n\r\n"
	conn := &answering{pieces: []string{apiHead + "Transfer-Encoding: chunked\r\n\r\n"}}
	for range 1000 {
		conn.pieces = append(conn.pieces, event)
	}
	conn.pieces = append(conn.pieces, "0\r\n\r\n")
	client := &Client{Dial: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	defer client.CloseIdle()
	buf := make([]byte, 2048)
	var resp *http.Response
	err := io.EOF
	b.ReportAllocs()
	for b.Loop() {
		if err == io.EOF {
			req, parts := post("127.0.0.1:8000", []byte("{}"))
			if resp, err = client.RoundTrip(b.Context(), req, parts, false, told{}); err != nil {
				b.Fatal(err)
			}
		}
		if _, err = resp.Body.Read(buf); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
}
