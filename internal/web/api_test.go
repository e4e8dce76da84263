package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/proxy"
	"understudy/internal/stats"
)

func decode[T any](t *testing.T, a *http.Response) (v T) {
	t.Helper()
	body := text(t, a)
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func TestState(t *testing.T) {
	r := newRig(t, models)
	a := r.ask("GET", "/api/state", "")
	v := decode[map[string]any](t, a)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" || v["version"] != "1.2.3" || len(v["virtual_models"].([]any)) != 2 {
		t.Errorf("%d %v", a.StatusCode, v)
	}
}

func TestHealthzNeedsNothing(t *testing.T) {
	r := newRig(t, guarded)
	for _, head := range []string{"Host: 127.0.0.1", "Host: some.container", "Origin: https://evil.example.com"} {
		a := r.ask("GET", "/healthz", "", head)
		if body := text(t, a); a.StatusCode != 200 || body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: %d %s", head, a.StatusCode, body)
		}
	}
}

func TestRequestLists(t *testing.T) {
	r := newRig(t, models)
	for i := range 3 {
		r.book(success(fmt.Sprint("good-", i)))
	}
	r.book(stats.Record{ID: "bad", Model: "other", Start: time.Now(), Status: 502, Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage()})
	type list struct {
		Requests []struct {
			ID       string
			Failed   bool
			Sequence uint64
		}
		Sequence, Dropped uint64
	}
	for target, want := range map[string]string{
		"":                             "bad good-2 good-1 good-0",
		"?limit=2":                     "bad good-2",
		"?model=auto&limit=1":          "good-2",
		"?model=other":                 "bad",
		"?model=*":                     "",
		"?failed=true":                 "bad",
		"?failed=1&model=auto":         "",
		"?failed=false&limit=2":        "good-2 good-1",
		"?after=2":                     "bad good-2",
		"?after=18446744073709551615":  "",
		"?limit=&model=&failed=&none=": "bad good-2 good-1 good-0",
	} {
		got := decode[list](t, r.ask("GET", "/api/requests"+target, ""))
		var ids []string
		for _, q := range got.Requests {
			ids = append(ids, q.ID)
		}
		if text := strings.Join(ids, " "); text != want || got.Sequence != 4 {
			t.Errorf("%s gives %s, want %s", target, text, want)
		}
	}
	for _, target := range []string{"?limit=0", "?limit=-1", "?limit=1001", "?limit=x", "?failed=perhaps", "?after=-1", "?after=x"} {
		a := r.ask("GET", "/api/requests"+target, "")
		if body := text(t, a); a.StatusCode != 400 || !strings.Contains(body, `"error":"`) {
			t.Errorf("%s: %d %s", target, a.StatusCode, body)
		}
	}
	a := r.ask("GET", "/api/requests/good-1", "")
	trail := decode[map[string]any](t, a)
	if a.StatusCode != 200 || trail["id"] != "good-1" || len(trail["attempts"].([]any)) != 1 || trail["candidate"] != "a" {
		t.Errorf("%d %v", a.StatusCode, trail)
	}
	for _, id := range []string{"nothing", "%2e%2e", "good-1%00"} {
		if a := r.ask("GET", "/api/requests/"+id, ""); a.StatusCode != 404 {
			t.Errorf("%s: %d", id, a.StatusCode)
		}
	}
}

func TestCommands(t *testing.T) {
	r := newRig(t, models)
	run := func(line string) (int, done, string) {
		body, _ := json.Marshal(map[string]string{"line": line})
		a := r.ask("POST", "/api/command", string(body), jsonType)
		both := decode[struct {
			done
			Error string
		}](t, a)
		return a.StatusCode, both.done, both.Error
	}
	if status, got, _ := run("freeze add auto 1 600"); status != 200 || !got.OK || !strings.Contains(got.Output, "frozen for 10m0s") {
		t.Errorf("%d %+v", status, got)
	}
	id := r.proxy.Snapshot().Routes.Chains()[0].Tiers[0][0].ID
	if f := r.proxy.Board().Freezes(time.Now()); len(f) != 1 || f[0].Key != proxy.Key(id) {
		t.Errorf("%+v", f)
	}
	if status, got, why := run("freeze add nothing 1 600"); status != 400 || got.OK || !strings.Contains(why, "no virtual model") {
		t.Errorf("%d %+v %s", status, got, why)
	}
	if status, got, _ := run("set stall_timeout 7"); status != 200 || !got.OK || r.proxy.Snapshot().Config.Server.StallTimeout != 7*time.Second {
		t.Errorf("%d %+v", status, got)
	}
	if status, got, _ := run(""); status != 200 || !got.OK || got.Output != "" {
		t.Errorf("%d %+v", status, got)
	}
	// quit ends the console that sent it, and nothing here.
	if status, got, _ := run("quit"); status != 200 || !got.OK || !got.Quit {
		t.Errorf("%d %+v", status, got)
	}
	if !strings.Contains(r.log.String(), "who=web") {
		t.Errorf("the log does not say who: %s", r.log)
	}
}

func TestCommandsThatAreNone(t *testing.T) {
	r := newRig(t, models)
	for _, test := range []struct {
		body   string
		head   string
		status int
	}{
		{`{"line":"target on"}`, "Content-Type: text/plain", 415},
		{`{"line":"target on"}`, "Content-Type: application/x-www-form-urlencoded", 415},
		{`{"line":"target on"}`, "X: y", 415},
		{`{"line":"target on"}`, "Content-Type: application/json; charset=utf-8", 200},
		{`{"line":"target on"`, jsonType, 400},
		{`{"line":"target on"} {}`, jsonType, 400},
		{`{"line":7}`, jsonType, 400},
		{`{"line":null}`, jsonType, 400},
		{`{}`, jsonType, 400},
		{`[]`, jsonType, 400},
		{``, jsonType, 400},
		{`{"line":"target on\ntarget off"}`, jsonType, 400},
		{`{"line":"` + strings.Repeat("a", maxCommand) + `"}`, jsonType, 413},
		{`{"line":"` + strings.Repeat("a", 100<<10) + `"}`, jsonType, 400},
	} {
		a := r.ask("POST", "/api/command", test.body, test.head)
		got := decode[map[string]any](t, a)
		if a.StatusCode != test.status || (got["ok"] == true) != (test.status == 200) || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%.40s with %s: %d %v, want %d", test.body, test.head, a.StatusCode, got, test.status)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	r := newRig(t, models)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"POST", "/", 405}, {"GET", "/plain", 200}, {"GET", "/static/plain.css", 200}, {"GET", "/login", 303}, {"GET", "/metrics", 200},
		{"POST", "/api/state", 405}, {"DELETE", "/api/requests/x", 405}, {"GET", "/api/command", 405}, {"OPTIONS", "/api/command", 405}, {"PUT", "/api/command", 405},
		{"GET", "/nothing", 404}, {"GET", "/api", 404}, {"GET", "/static/index.html", 404}, {"GET", "/static/", 404}, {"GET", "/static/js", 404}, {"GET", "/static/../api.go", 307}, {"GET", "/templates/plain.html", 404},
		{"POST", "/api/config", 405}, {"GET", "/api/config/check", 405}, {"POST", "/api/curves", 405}, {"POST", "/healthz", 404},
	} {
		if a := r.ask(test.method, test.path, ""); a.StatusCode != test.status {
			t.Errorf("%s %s: %d, want %d", test.method, test.path, a.StatusCode, test.status)
		}
	}
}

func TestPlainPage(t *testing.T) {
	r := newRig(t, models)
	r.ask("POST", "/api/command", `{"line":"freeze add auto 1 600 because <b>\u202e"}`, jsonType)
	r.failed = "understudy.yaml:3:1: <i>wrong</i>"
	a := r.ask("GET", "/plain", "")
	page := text(t, a)
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;b&gt;", "&lt;i&gt;wrong&lt;/i&gt;", "frozen 10m0s", "unknown", "auto 1 a: 10m0s left, by person",
		"other 1 the same as a", `content="light dark"`, `lang="en"`, `href="/static/plain.css"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, bad := range []string{"<script", "<b>", "style=", "onclick", "sk-literal", "\u202e", "Log out"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if ct := a.Header.Get("Content-Type"); ct != "text/html; charset=utf-8" {
		t.Error(ct)
	}
	if style := text(t, r.ask("GET", "/static/plain.css", "")); !strings.Contains(style, "prefers-color-scheme: dark") {
		t.Error("no colours for the dark")
	}
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	r := newRig(t, guarded)
	for _, test := range [][]string{
		{"GET", "/"}, {"GET", "/login"}, {"GET", "/static/plain.css"}, {"GET", "/api/state"}, {"GET", "/metrics"}, {"GET", "/nothing"}, {"GET", "/healthz"},
		{"GET", "/", "Host: evil.example.com"}, {"GET", "/", "Authorization: Bearer " + token}, {"POST", "/api/command", jsonType},
	} {
		a := r.ask(test[0], test[1], "", test[2:]...)
		h := a.Header
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%v: %v", test, h)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%v: %s", test, name)
			}
		}
		if !strings.HasPrefix(test[1], "/static/") && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%v may be cached: %s", test, h.Get("Cache-Control"))
		}
	}
}

func TestNoEndpointShowsAKey(t *testing.T) {
	r := newRig(t, guarded)
	r.book(stats.Record{ID: "x", Model: "auto", Start: time.Now(), Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage(),
		Tries: []stats.Try{{Verdict: stats.Failed, Name: "a", Text: "the key sk-literal-abcdefghijklmnop1234 is wrong, so is " + token}}})
	shown := ""
	for _, path := range []string{"/", "/plain", "/login", "/api/config", "/api/curves", "/api/state", "/api/requests", "/api/requests/x", "/metrics"} {
		a := r.ask("GET", path, "", "Authorization: Bearer "+token)
		if a.StatusCode != 200 && path != "/login" {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		shown += text(t, a)
	}
	if i := slices.IndexFunc([]string{"sk-literal-abc", token}, func(s string) bool { return strings.Contains(shown, s) }); i >= 0 {
		t.Errorf("secret %d is shown", i)
	}
}
