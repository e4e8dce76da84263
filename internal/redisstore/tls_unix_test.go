//go:build unix

package redisstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/health"
	"understudy/internal/health/healthtest"
	"understudy/internal/redisstore/redistest"
)

// an authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate; the authority's own where it has none yet.
func (a *authority) issue(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// files are a certificate for these names and its key, in files.
func (a *authority) files(ip net.IP, names ...string) (cert, key string) {
	a.t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "a store"}, DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	made, private := a.issue(template)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: made.Raw}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// A store over TLS, with an authority of one's own and a password, keeps the contract.
func TestRedisOverTLSKeepsTheContract(t *testing.T) {
	ours := newAuthority(t)
	cert, key := ours.files(net.IPv4(127, 0, 0, 1))
	server := redistest.StartTLS(t, cert, key, "--requirepass", "hunter2-of-the-store")
	healthtest.Suite(t, func(t *testing.T, name string) health.Store {
		return openedWith(t, Options{URL: "rediss://" + server.Addr() + "/3", Password: "hunter2-of-the-store", RootCAs: ours.pool(), Name: name})
	})
}

// A server that cannot show who it is gets neither the password nor news, and one that
// speaks TLS is not spoken to without.
func TestAStoreThatIsNotWhoItShouldBe(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	good, goodKey := ours.files(net.IPv4(127, 0, 0, 1))
	named, namedKey := ours.files(nil, "redis.example.com")
	foreign, foreignKey := theirs.files(net.IPv4(127, 0, 0, 1))
	right := redistest.StartTLS(t, good, goodKey).Addr()
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	for what, c := range map[string]struct {
		url  string
		as   any
		pool *x509.CertPool
	}{
		"another authority":     {"rediss://" + redistest.StartTLS(t, foreign, foreignKey).Addr(), &unknown, ours.pool()},
		"another name":          {"rediss://" + redistest.StartTLS(t, named, namedKey).Addr(), &name, ours.pool()},
		"the system's trust":    {"rediss://" + right, &unknown, nil},
		"TLS where there is no": {"rediss://" + redistest.Start(t).Addr(), nil, ours.pool()},
		"no TLS where there is": {"redis://" + right, nil, ours.pool()},
	} {
		s := openedWith(t, Options{URL: c.url, Password: "hunter2-of-the-store", RootCAs: c.pool, Name: "one"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := s.Beat(ctx)
		cancel()
		if err == nil || c.as != nil && !errors.As(err, c.as) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := openedWith(t, Options{URL: "rediss://" + right, RootCAs: ours.pool(), Name: "one"})
	if _, err := s.Beat(t.Context()); err != nil {
		t.Errorf("the right one: %v", err)
	}
}
