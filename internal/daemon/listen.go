package daemon

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"understudy/internal/config"
)

// serveOn serves a listener, with TLS where the file names a certificate.
func (d *Daemon) serveOn(s *http.Server, l net.Listener) error {
	l = clientListener{l}
	if d.certificate == nil {
		return s.Serve(l)
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.certificate.get}
	return s.ServeTLS(l, "", "")
}

// sendBuffer is how much of an answer the system holds for one client. Left to
// itself it holds megabytes and wakes the writer only when a third of them has gone:
// a client that reads slowly, but all the time, would look like one that takes
// nothing (write_idle_timeout).
const sendBuffer = 64 << 10

// clientListener accepts connections with a send buffer of that size.
type clientListener struct{ net.Listener }

// Accept implements net.Listener.
func (l clientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // advice; without it all else works
	}
	return c, err
}

// openCertificate reads the certificate that the file names, nil where it names none.
func openCertificate(s config.Server) (*certificate, error) {
	if s.TLSCert == "" {
		return nil, nil
	}
	c := &certificate{cert: s.TLSCert, key: s.TLSKey}
	if _, err := c.get(nil); err != nil {
		return nil, fmt.Errorf("server.tls_cert and tls_key: %w", err)
	}
	return c, nil
}

// certificate is a key pair on disk, read again when its file has changed.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	read   time.Time // the certificate file's time when it was read
	loaded *tls.Certificate
}

// get is tls.Config.GetCertificate. A renewed pair that cannot be read leaves the
// former one in use: its two files may just be half replaced.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.read) {
		return c.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		if c.loaded != nil {
			return c.loaded, nil
		}
		return nil, err
	}
	c.loaded = &pair
	if info != nil {
		c.read = info.ModTime()
	}
	return c.loaded, nil
}
