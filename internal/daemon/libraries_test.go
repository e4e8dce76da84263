package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// What an upstream sends behind its answer, net/http quotes in the standard library's
// log. None of it gets into ours, be it the end of a key the beginning of which
// was still the answer's, or a key that is the client's own.
func TestWhatLibrariesQuoteIsNotShown(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m"), func(o *Options) {})
	r.Daemon.log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	flags := stdlog.Flags()
	defer func() { stdlog.SetFlags(flags); stdlog.SetOutput(os.Stderr) }()
	stdlog.SetFlags(0)
	stdlog.SetOutput(r.Libraries())

	cert, pem := drill.Certificate()
	u := drill.StartTLS(cert, drill.Harmed(func(w *drill.Wire, _ drill.Request, _ int) {
		w.JSON(200, []byte(`{"a":1,"key":"sk-fake-of-the-candidate-0001"} and sk-fake-of-the-client-0002`))
	}, drill.Harm{Ruin: drill.WrongLength, At: 20}))
	defer u.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("https://" + u.Addr() + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if len(body) != 20 || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	eventually(t, "net/http says what came", func() bool { return r.log.count("Unsolicited response received on idle HTTP channel") == 1 })
	if text := r.log.String(); strings.Contains(text, "candidate-0001") || strings.Contains(text, "client-0002") || !strings.Contains(text, "err=<nil>") {
		t.Errorf("the log says %s", text)
	}
}
