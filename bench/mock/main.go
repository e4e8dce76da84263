// Command mock is an upstream that costs little, for measurements: raw HTTP/1.1 on
// loopback, one goroutine per connection, one write per event.
//
//	POST .../v1/chat/completions    1 KB of JSON, or with "stream":true a stream
//	POST .../v1/responses           a response with an id of its own, which only this
//	                                upstream knows as a previous_response_id
//
// What a stream looks like stands in the request's headers, which proxies pass on:
// X-Bench-Chunks (deltas) and X-Bench-Gap-Us (microseconds between two of them). A
// prefix of the path makes requests fail: /fail/503/10/v1/... answers every tenth
// with 503, /fail/429/1/v1/... each one.
//
// Each delta holds "@T", the time of its writing as Unix nanoseconds in 19 digits,
// and "@": on one machine a client can tell from it how long the delta was on its way.
//
// With -tls the same answers come over HTTP/2, from a certificate that is written to
// the named file.
package main

import (
	"bufio"
	"flag"
	"log"
	"net"
	"strings"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "loopback address")
	secure := flag.String("tls", "", "speak HTTP/2 over TLS, and write the certificate to this file")
	flag.Parse()
	log.SetFlags(0)
	host, _, err := net.SplitHostPort(*listen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		log.Fatalf("-listen %q is no loopback address", *listen)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	if *secure != "" {
		log.Fatal(serveHTTP2(l, *secure))
	}
	log.Fatal(serve(l))
}

// serve answers connections until the listener is closed.
func serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go talk(c)
	}
}

// talk answers the requests of one connection, one after the other.
func talk(c net.Conn) {
	defer c.Close()
	r := reader{from: bufio.NewReaderSize(c, 4<<10)}
	for {
		q, err := r.next()
		if err != nil {
			return
		}
		if err := answer(c, q); err != nil {
			return
		}
	}
}

// answer writes what a request is answered with.
func answer(c net.Conn, q *request) error {
	status, fails := failing(q.path)
	switch {
	case fails:
		return plain(c, status, failure)
	case q.method != "POST":
		return plain(c, "200 OK", `{"object":"list","data":[{"id":"m-real","object":"model"}]}`)
	case q.stream:
		return stream(c, q)
	case strings.HasSuffix(q.path, "/responses"):
		return respond(c, q)
	}
	return plain(c, "200 OK", whole)
}

// plain writes a JSON answer in one go.
func plain(c net.Conn, status, body string) error {
	b := make([]byte, 0, 256+len(body))
	b = append(b, "HTTP/1.1 "+status+"\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = appendInt(b, len(body))
	b = append(b, "\r\n\r\n"...)
	_, err := c.Write(append(b, body...))
	return err
}

// failing reads a prefix such as /fail/503/10 and says whether this request is one
// of those that fail.
func failing(path string) (status string, fails bool) {
	rest, ok := strings.CutPrefix(path, "/fail/")
	if !ok {
		return "", false
	}
	code, rest, _ := strings.Cut(rest, "/")
	every, _, _ := strings.Cut(rest, "/")
	return code + " Mock", due(every)
}
