package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// serveHTTP2 answers over TLS, with HTTP/2 where the client offers it, and writes its
// certificate to a file.
func serveHTTP2(l net.Listener, file string) error {
	certificate, err := selfSigned(file)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answerHTTP), TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}}
	return server.ServeTLS(l, "", "")
}

// answerHTTP answers as answer does.
func answerHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !wantsStream(body) {
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	n, gap := 100, 10*time.Millisecond
	if v, err := strconv.Atoi(r.Header.Get("X-Bench-Chunks")); err == nil {
		n = v
	}
	if us, err := strconv.Atoi(r.Header.Get("X-Bench-Gap-Us")); err == nil {
		gap = time.Duration(us) * time.Microsecond
	}
	out := []byte(delta)
	at := bytes.Index(out, []byte(stamp)) + len("@T")
	_ = pace(n, gap, func(int) error {
		strconv.AppendInt(out[at:at], time.Now().UnixNano(), 10)
		if _, err := w.Write(out); err != nil {
			return err
		}
		return flush.Flush()
	}, func() error {
		_, err := io.WriteString(w, ending)
		return err
	})
}

// selfSigned makes a certificate for 127.0.0.1 that lives a day.
func selfSigned(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
