package drill

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Certificate returns a certificate for 127.0.0.1 and ::1 that has signed itself,
// and the PEM of what has to be trusted for it. It is good for a day.
func Certificate() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err)) // nothing of ours is wrong
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "drill"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Trusting returns a client that trusts what Certificate told to trust, speaks HTTP/2 where
// it can, and gives up after 20 s. Connections are kept: the caller calls
// CloseIdleConnections.
func Trusting(pem []byte) *http.Client {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		panic("drill: no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}, Timeout: 20 * time.Second}
}

// StartTLS runs script behind TLS, over HTTP/1.1, on a free port of 127.0.0.1. Its
// base URL is "https://" + Addr(). It panics where there is no port. The caller calls
// Close.
func StartTLS(cert tls.Certificate, script Script) *Upstream {
	return StartOn(tls.NewListener(loopback(), &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}), script)
}

// StallTLS returns an upstream whose TLS handshakes never end: it sends the first at
// bytes of its side of them, and then nothing. The caller calls Close.
func StallTLS(cert tls.Certificate, at int) *Upstream {
	return StartRaw(loopback(), func(c net.Conn) {
		s := tls.Server(&muffled{Conn: c, left: at}, &tls.Config{Certificates: []tls.Certificate{cert}})
		// It fails when the peer leaves, or never says what it waits for.
		_ = s.Handshake()
		buf := make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
}

// loopback listens on a free port.
func loopback() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("drill: %v", err))
	}
	return l
}

// muffled is a connection of whose bytes only the first go out.
type muffled struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (m *muffled) Write(p []byte) (int, error) {
	m.mu.Lock()
	n := min(m.left, len(p))
	m.left -= n
	m.mu.Unlock()
	if n > 0 {
		if _, err := m.Conn.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
