package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listener is a stand-in for an admin listener.
func listener(t *testing.T, serve http.HandlerFunc) Source {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	source, err := Admin{Address: s.URL + "/", Token: "the-token"}.Source()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestRemoteRunsCommandsAndReadsViews(t *testing.T) {
	want := *someView()
	source := listener(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-token" {
			t.Errorf("the token is missing: %v", r.Header)
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /api/state":
			_ = json.NewEncoder(w).Encode(want)
		case "POST /api/command":
			var asked struct{ Line string }
			if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&asked) != nil {
				t.Errorf("%v", r.Header)
			}
			switch asked.Line {
			case "quit":
				_, _ = w.Write([]byte(`{"ok": true, "output": "", "quit": true}`))
			case "bad":
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"ok": false, "error": "no command 'bad'; did you mean cand?"}`))
			default:
				_, _ = w.Write([]byte(`{"ok": true, "output": "did ` + asked.Line + `"}`))
			}
		}
	})
	got, err := source.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if out, err := source.Run(t.Context(), "vm"); err != nil || out.Text != "did vm" || out.Quit {
		t.Error(out, err)
	}
	if out, err := source.Run(t.Context(), "quit"); err != nil || !out.Quit {
		t.Error(out, err)
	}
	if _, err := source.Run(t.Context(), "bad"); err == nil || err.Error() != "no command 'bad'; did you mean cand?" {
		t.Error(err)
	}
}

func TestRemoteSaysWhoAnswersAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"a token is wanted": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"ok":false,"error":"log in at /login"}`))
		}, "UNDERSTUDY_ADMIN_TOKEN or --token"},
		"another host name": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"ok":false,"error":"add allowed_hosts: [x]"}`))
		}, "add allowed_hosts: [x]"},
		"a web page":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "no admin listener"},
		"something else": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"hello": 1}`)) }, "no admin listener"},
		"not found":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "no admin listener"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the token went elsewhere")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "no admin listener"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"ok":`))
		}, "nobody answers at http://127.0.0.1:"},
	} {
		if _, err := listener(t, c.serve).Run(t.Context(), "vm"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := listener(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }).View(t.Context()); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
}

func TestRemoteWithNobodyThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	source, err := Admin{Address: s.URL}.Source()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = source.View(t.Context()); err == nil || !strings.Contains(err.Error(), "is understudy running?") || strings.Count(err.Error(), s.URL) != 1 {
		t.Error(err)
	}
}

func TestRemoteCommandsCanBeBrokenOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	source := listener(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until it is read, nobody notices that the client leaves
		close(asked)
		<-r.Context().Done()
	})
	go func() {
		<-asked
		cancel()
	}()
	if _, err := source.Run(ctx, "reload"); err == nil || !strings.Contains(err.Error(), "broken off") {
		t.Error(err)
	}
}

func TestAdminAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8788":          "http://127.0.0.1:8788",
		"http://127.0.0.1:8788/":  "http://127.0.0.1:8788",
		"https://box.lan:1/base/": "https://box.lan:1/base",
		":8788":                   "http://127.0.0.1:8788",
		"0.0.0.0:8788":            "http://127.0.0.1:8788",
		"[::]:8788":               "http://[::1]:8788",
		"localhost:8788":          "http://localhost:8788",
	} {
		if got, err := adminURL(address); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", address, got, err, want)
		}
	}
	for _, address := range []string{"", "ftp://x", "http://", "http://user:geheimes-wort@h:1", "http://h/?a=b", "http://h:x"} {
		if got, err := adminURL(address); err == nil || strings.Contains(err.Error(), "geheimes") {
			t.Errorf("%s: %s %v", address, got, err)
		}
	}
}
