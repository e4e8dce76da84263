package daemon

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// serveOn serves a listener, with TLS where the file names a certificate.
func (d *Daemon) serveOn(s *http.Server, l net.Listener) error {
	if d.bound.TLSCert == "" {
		return s.Serve(l)
	}
	c := &certificate{cert: d.bound.TLSCert, key: d.bound.TLSKey}
	if _, err := c.get(nil); err != nil {
		return err
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	return s.ServeTLS(l, "", "")
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
