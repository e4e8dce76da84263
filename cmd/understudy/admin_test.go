package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process with a certificate of its own, which nobody's authorities know, is talked
// to by the file that names it: by that certificate and no other.
func TestTheConsoleKnowsAListenerByItsCertificate(t *testing.T) {
	dir := t.TempDir()
	certificateFor(t, dir)
	path := filepath.Join(dir, "understudy.yaml")
	write := func(admin, cert string) {
		text := fmt.Sprintf("server: {port: 0, admin: %q, admin_token: a-token-of-the-test, tls_cert: %s, tls_key: key.pem, state_dir: state}\n"+
			"virtual_models:\n  auto-strong:\n    - {base_url: \"http://127.0.0.1:1\", auth_style: none, model: m}\n", admin, cert)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("127.0.0.1:0", "cert.pem")
	p := launch(t, "serve", "--no-repl", "-c", path)
	write(strings.TrimPrefix(p.admin, "https://"), "cert.pem")
	var out, errs bytes.Buffer
	std := streams{in: strings.NewReader("vm\n"), out: &out, err: &errs}
	if code := run([]string{"console", "-c", path}, std); code != 0 || !strings.Contains(out.String(), "auto-strong") {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
	cert, _ := certificateFor(t, t.TempDir())
	write(strings.TrimPrefix(p.admin, "https://"), cert)
	errs.Reset()
	std.in = strings.NewReader("vm\n")
	if code := run([]string{"console", "-c", path}, std); code == 0 || !strings.Contains(errs.String(), "not the one in") {
		t.Errorf("code %d: %s", code, errs.String())
	}
}
