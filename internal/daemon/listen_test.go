package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issue makes a key pair for 127.0.0.1 with that serial number.
func issue(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "understudy test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// put writes a file so that its time differs from the former one's.
func put(t *testing.T, path string, text []byte, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// The proxy listens with TLS, HTTP/2 included, and takes a renewed certificate for the
// next connection, without a restart; one that is half replaced or broken leaves the
// former in use.
func TestRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key := issue(t, 1)
	put(t, certFile, cert, time.Hour)
	put(t, keyFile, key, time.Hour)
	u := well(t)
	r := newRig(t, vm(", tls_cert: \""+certFile+"\", tls_key: \""+keyFile+"\"", "a "+u.URL()+" m")).serve()
	serial := func() int64 {
		t.Helper()
		c, err := tls.Dial("tcp", r.Addr(), &tls.Config{InsecureSkipVerify: true}) // self-signed, on loopback
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Errorf("serial %d", n)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	wires := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: wires}
	defer wires.CloseIdleConnections()
	resp, err := client.Post("https://"+r.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"vm","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%d over %s", resp.StatusCode, resp.Proto)
	}
	second, secondKey := issue(t, 2)
	put(t, certFile, second, time.Minute) // its key is not there yet
	if n := serial(); n != 1 {
		t.Errorf("half replaced: serial %d", n)
	}
	put(t, keyFile, secondKey, time.Minute)
	if n := serial(); n != 2 {
		t.Errorf("renewed: serial %d", n)
	}
	put(t, certFile, []byte("no certificate"), time.Second)
	if n := serial(); n != 2 {
		t.Errorf("broken: serial %d", n)
	}
	os.Remove(certFile)
	if n := serial(); n != 2 {
		t.Errorf("gone: serial %d", n)
	}
	plain, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.Write([]byte("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
	answer := make([]byte, 200)
	n, _ := plain.Read(answer)
	if strings.Contains(string(answer[:n]), "200 OK") {
		t.Errorf("it also answers without TLS: %q", answer[:n])
	}
}

// A certificate that cannot be used is told at the start.
func TestAnUnusableCertificateIsTold(t *testing.T) {
	dir := t.TempDir()
	r := &rig{t: t, path: filepath.Join(dir, "understudy.yaml"), state: filepath.Join(dir, "state")}
	r.write(vm(", tls_cert: \""+dir+"/none.pem\", tls_key: \""+dir+"/none.key\"", "a http://127.0.0.1:1 m"))
	d, err := Open(Options{ConfigPath: r.path})
	if err == nil {
		d.proxyListener.Close()
		t.Error("it starts with a certificate that is not there")
	} else if !strings.Contains(err.Error(), "none.pem") {
		t.Errorf("the error %q does not name the file", err)
	}
}

// The system holds little for a client that does not read: how much it has taken
// shows soon, and nobody is taken for dead who reads slowly.
func TestLittleIsHeldForAClient(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := clientListener{inner}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	held, piece := 0, make([]byte, 16<<10)
	for err == nil && held < 8<<20 {
		c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		var n int
		n, err = c.Write(piece)
		held += n
	}
	if held > 1<<20 {
		t.Errorf("%d bytes are held for a client that reads nothing", held)
	}
}

// What the admin listener serves is built when all that it may ask for is there.
func TestTheAdminHandlerFindsEverything(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m"), func(o *Options) {
		o.Admin = new("127.0.0.1:0")
		o.AdminHandler = func(d *Daemon) http.Handler {
			c := d.Control("test")
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if err := json.NewEncoder(w).Encode(c.View()); err != nil {
					t.Error(err)
				}
			})
		}
	}).serve()
	got, err := http.Get("http://" + r.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if _, err := io.Copy(io.Discard, got.Body); err != nil || got.StatusCode != 200 {
		t.Errorf("the admin listener answers %d, %v", got.StatusCode, err)
	}
}
