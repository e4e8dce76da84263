package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/daemon"
)

// certificateFor writes a certificate and its key that hold no address at all.
func certificateFor(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{"llm.example.com"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestHealthcheckOverTLS: a process with a certificate of its own is asked at its
// address, which the certificate does not hold, and known by the certificate.
func TestHealthcheckOverTLS(t *testing.T) {
	dir := t.TempDir()
	certificateFor(t, dir)
	settings := func(port int) string {
		path := filepath.Join(dir, fmt.Sprintf("config-%d.yaml", port))
		text := fmt.Sprintf("server: {host: 0.0.0.0, port: %d, admin: \"off\", tls_cert: cert.pem, tls_key: key.pem, state_dir: state, allow_unauthenticated: true}\n"+
			"virtual_models:\n  a:\n    - {base_url: \"http://127.0.0.1:1\", auth_style: none, model: m}\n", port)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	d, err := daemon.Open(daemon.Options{ConfigPath: settings(0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, context.Background()) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	_, port, _ := strings.Cut(strings.TrimPrefix(d.Addr(), "[::]"), ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(d.Addr(), err)
	}
	var out, errs bytes.Buffer
	std := streams{out: &out, err: &errs}
	path := settings(number)
	if code := run([]string{"healthcheck", "-c", path}, std); code != 0 || !strings.HasPrefix(out.String(), "ok: https://127.0.0.1:") {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
	// Somebody else's certificate at that address is not this process.
	other := t.TempDir()
	cert, _ := certificateFor(t, other)
	if err := os.Rename(cert, filepath.Join(dir, "other.pem")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("tls_cert: cert.pem"), []byte("tls_cert: other.pem")), 0o600); err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	if code := run([]string{"healthcheck", "-c", path}, std); code != 1 || !strings.Contains(errs.String(), "not the one in") {
		t.Errorf("code %d: %s", code, errs.String())
	}
}

func TestReachable(t *testing.T) {
	for host, want := range map[string]string{"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1", "127.0.0.1": "127.0.0.1", "192.0.2.7": "192.0.2.7", "localhost": "localhost"} {
		if got := reachable(host); got != want {
			t.Errorf("%q is reached at %q", host, got)
		}
	}
}
