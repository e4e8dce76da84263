package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"understudy/internal/config"
	"understudy/internal/files"
	"understudy/internal/h1server"
	"understudy/internal/handover"
)

// A listener is one of the two, with the address that it was opened for: as it is
// configured, or "" where the service manager chose it. The zero one is none.
type listener struct {
	net.Listener
	address string
}

// activate notes the addresses of listeners that the service manager has opened.
func (d *Daemon) activate() error {
	d.activated = map[string]net.Addr{}
	for _, name := range []string{handover.Proxy, handover.Admin} {
		address, err := d.options.Heir.Activated(name)
		if err != nil {
			return err
		}
		if address != nil {
			d.activated[name] = address
		}
	}
	for _, s := range d.options.Sockets {
		d.activated[s.Name] = s.Addr()
	}
	return nil
}

// listen opens both listeners, or none.
func (d *Daemon) listen() (err error) {
	if d.certificate, err = openCertificate(d.bound); err != nil {
		return err
	}
	addr := net.JoinHostPort(d.bound.Host, strconv.Itoa(d.bound.Port))
	if d.proxyListener, err = d.open(handover.Proxy, addr); err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	if d.bound.Admin == "" || d.options.AdminHandler == nil {
		return nil
	}
	if d.adminListener, err = d.open(handover.Admin, d.bound.Admin); err != nil {
		d.unlisten()
		return fmt.Errorf("listen on the admin address %s (server.admin; `off` does without): %w", d.bound.Admin, err)
	}
	return nil
}

// open gives a listener for an address: the one that was passed on, or a new one.
func (d *Daemon) open(name, address string) (listener, error) {
	if d.activated[name] != nil {
		address = ""
	}
	if f := d.options.Heir.Take(name, address); f != nil {
		l, err := net.FileListener(f)
		_ = f.Close() // the listener has a copy
		return listener{l, address}, err
	}
	for _, s := range d.options.Sockets {
		if s.Name == name {
			return listener{s.Listener, ""}, nil
		}
	}
	l, err := net.Listen("tcp", address)
	return listener{l, address}, err
}

// unlisten closes what listen has opened; connections that were accepted stay.
func (d *Daemon) unlisten() {
	for _, l := range []listener{d.proxyListener, d.adminListener} {
		if l.Listener != nil {
			_ = l.Close() // there is nothing to lose
		}
	}
}

// serveWith makes the servers of the open listeners.
func (d *Daemon) serveWith() {
	d.rush = newRush(d.log)
	quiet := log.New(d.Libraries(), "", 0)
	d.proxyServer = &h1server.Server{WatchAfter: watchAfter, HTTP: &http.Server{Handler: d.proxyConns.closing(d.rush.turning(d.handler)), ConnState: d.proxyConns.note, ConnContext: d.proxyConns.named, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		DisableGeneralOptionsHandler: true, ErrorLog: quiet}}
	if d.adminListener.Listener == nil {
		return
	}
	admin := d.options.AdminHandler(d)
	if c, ok := admin.(interface{ Close() }); ok {
		d.closeAdmin = c.Close
	}
	d.adminServer = &http.Server{Handler: d.adminConns.closing(admin), ConnState: d.adminConns.note, ConnContext: d.adminConns.named, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead, ErrorLog: quiet}
}

// serveProxy serves the proxy's listener.
func (d *Daemon) serveProxy() error {
	l := d.prepare(d.proxyServer.HTTP, d.proxyListener.Listener, mostConnections(d.bound.MaxConnections, descriptors()), d.rush)
	if d.certificate == nil {
		return d.proxyServer.Serve(l)
	}
	return d.proxyServer.HTTP.ServeTLS(l, "", "")
}

// serveAdmin serves the admin listener.
func (d *Daemon) serveAdmin() error {
	l := d.prepare(d.adminServer, d.adminListener.Listener, adminConnections, nil)
	if d.certificate == nil {
		return d.adminServer.Serve(l)
	}
	return d.adminServer.ServeTLS(l, "", "")
}

// prepare bounds a listener's connections, and has a server speak TLS where the file
// names a certificate.
func (d *Daemon) prepare(s *http.Server, l net.Listener, most int, r *rush) net.Listener {
	s.Protocols = protocols(l.Addr(), d.certificate != nil)
	if d.certificate != nil {
		s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: d.certificate.get}
	}
	return bounded(clientListener{l}, most, d.certificate != nil, r)
}

// protocols are what is spoken at an address: HTTP/1.1, and HTTP/2 over TLS. Without
// TLS, HTTP/2 from the first byte ("prior knowledge") where only this machine can
// reach it; nothing that arrives as HTTP/1.1 becomes HTTP/2 by an Upgrade.
func protocols(at net.Addr, secure bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(secure)
	tcp, ok := at.(*net.TCPAddr)
	p.SetUnencryptedHTTP2(!secure && ok && tcp.IP.IsLoopback())
	return p
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

// SetDeadline bounds the next Accept, where the listener can.
func (l clientListener) SetDeadline(t time.Time) error {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return d.SetDeadline(t)
	}
	return errors.ErrUnsupported
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
	pair, err := readPair(c.cert, c.key)
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

// maxPEM bounds, in bytes, a file of certificates or a key.
const maxPEM = 1 << 20

// readPair reads a certificate and its key.
func readPair(cert, key string) (pair tls.Certificate, err error) {
	certPEM, err := files.Read(cert, maxPEM)
	if err != nil {
		return pair, err
	}
	keyPEM, err := files.Read(key, maxPEM)
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}
