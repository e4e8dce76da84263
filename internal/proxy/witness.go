package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxHead bounds how much of an answer's head is looked at.
const maxHead = 1 << 20

// A witness is an HTTP/1 connection that tells of the bytes of an answer's head, of
// which net/http tells the first only, and notes what its Connection header names. Where that header says "close", net/http drops it whole
// (shouldClose in transfer.go), and the names of the headers that end with the
// connection would be lost.
type witness struct {
	ending

	mu       sync.Mutex
	watching bool
	heard    func()
	head     []byte   // of the answer that is awaited, as far as it was read
	named    []string // the lines of its Connection header
}

// witnessed dials witnesses.
func witnessed(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &witness{ending: ending{Conn: c}}, nil
	}
}

// An ending is a connection that notes that its peer has ended it.
type ending struct {
	net.Conn
	over atomic.Bool
}

// Read implements net.Conn.
func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	if err == io.EOF {
		e.over.Store(true)
	}
	return n, err
}

// beneath is the connection that carries the records of a TLS connection; nil where c
// is none. crypto/tls takes the end of that one between two records for the end of its
// own, though anybody on the way can send it; behind a close_notify it does not read on,
// and so sees no end there (RFC 8446, 6.1).
func beneath(c net.Conn) *ending {
	if w, ok := c.(*witness); ok {
		c = w.Conn
	}
	secured, ok := c.(*tls.Conn)
	if !ok {
		return nil
	}
	switch under := secured.NetConn().(type) {
	case *ending:
		return under
	case *witness: // a proxy's, through which net/http speaks TLS itself
		return &under.ending
	}
	return nil
}

// handshakeTime bounds a TLS handshake whose request has gone away meanwhile; the
// attempt's own clock is shorter.
const handshakeTime = 60 * time.Second

// secure dials TLS as http.Transport does, but for the witness around what will
// carry HTTP/1. HTTP/2 has no Connection header, and http.Transport knows a
// connection that will carry it by its type.
func secure(ctx context.Context, dial DialFunc, settings *tls.Config, network, addr string) (net.Conn, error) {
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	settings = settings.Clone() // http.Transport has put its protocols in
	if settings == nil {
		settings = new(tls.Config)
	}
	if settings.ServerName == "" {
		if settings.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			settings.ServerName = addr
		}
	}
	c := tls.Client(&ending{Conn: raw}, settings)
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		return c, nil
	}
	return &witness{ending: ending{Conn: c}}, nil
}

// watch awaits the next answer's head; heard is called whenever some of it has come.
// The request must not have been sent yet.
func (w *witness) watch(heard func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching, w.heard, w.head, w.named = true, heard, w.head[:0], nil
}

// connection is the last answer's Connection header; nil without one.
func (w *witness) connection() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.named
}

// Read implements net.Conn.
func (w *witness) Read(p []byte) (int, error) {
	n, err := w.ending.Read(p)
	w.note(p[:n])
	return n, err
}

func (w *witness) note(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watching && len(p) > 0 {
		w.heard()
	}
	for w.watching {
		from := max(0, len(w.head)-3) // where an end cut in two may begin
		w.head = append(w.head, p...)
		end := headEnd(w.head[from:])
		if end < 0 {
			w.watching = len(w.head) < maxHead
			return
		}
		end += from
		if interim(w.head) {
			p = bytes.Clone(w.head[end:])
			w.head = w.head[:0]
			continue
		}
		w.named, w.watching = connectionLines(w.head[:end]), false
	}
}

// headEnd is where a head ends, behind its blank line; -1 while it has not.
func headEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		if b[i] != '\n' {
			continue
		}
		switch rest := b[i+1:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return i + 2
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return i + 3
		}
	}
	return -1
}

// interim says whether a head is a 1xx answer's, which another one follows.
func interim(head []byte) bool {
	_, status, _ := bytes.Cut(head, []byte(" "))
	return len(status) > 3 && status[0] == '1' && !bytes.HasPrefix(status, []byte("101"))
}

// connectionLines are the values of a head's Connection lines.
func connectionLines(head []byte) (values []string) {
	const name = "connection:"
	mine := false
	for line := range bytes.Lines(head) {
		switch {
		case len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name):
			mine = true
			values = append(values, strings.TrimSpace(string(line[len(name):])))
		case mine && (line[0] == ' ' || line[0] == '\t'): // a folded line
			values[len(values)-1] += " " + strings.TrimSpace(string(line))
		default:
			mine = false
		}
	}
	return values
}
