package web

import (
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// imports of a module, and files that a page or a style sheet names.
	imported = regexp.MustCompile(`(?m)^import [^;]*?from "([^"]+)"|^import "([^"]+)"`)
	named    = regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"|url\((/static/[^)]+)\)`)
)

// A file that is missing, or is outside, would only show in a browser.
func TestEveryFileThatIsNamedIsThere(t *testing.T) {
	for name, a := range assets() {
		if strings.HasPrefix(name, "/static/vendor/") {
			continue
		}
		text := string(a.body)
		for _, m := range append(imported.FindAllStringSubmatch(text, -1), named.FindAllStringSubmatch(text, -1)...) {
			file := m[1] + m[2]
			if strings.HasPrefix(file, ".") {
				file = path.Join(path.Dir(name), file)
			}
			if _, ok := assets()[file]; !ok {
				t.Errorf("%s names %s, which is not there", name, file)
			}
		}
		for _, bad := range []string{"innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", `setAttribute("style"`, "style=\"", "javascript:", "onclick="} {
			if path.Ext(name) != ".svg" && strings.Contains(text, bad) {
				t.Errorf("%s holds %s", name, bad)
			}
		}
		if outside := regexp.MustCompile(`https?://[a-z]`).FindString(strings.ReplaceAll(text, "http://www.w3.org/", "")); outside != "" && !strings.HasSuffix(name, ".txt") && !strings.Contains(text, "curl http://${at}") {
			t.Errorf("%s names another host", name)
		}
		if n := strings.Count(text, "\n"); n > 500 && path.Ext(name) == ".js" {
			t.Errorf("%s has %d lines", name, n)
		}
	}
	for _, licence := range []string{"/static/vendor/uplot/LICENSE", "/static/fonts/LICENSE-geist.txt", "/static/fonts/LICENSE-geist-mono.txt", "/static/fonts/LICENSE-fraunces.txt"} {
		if len(assets()[licence].body) < 500 {
			t.Errorf("no %s", licence)
		}
	}
}

func TestAssetsAreKeptUntilTheyChange(t *testing.T) {
	r := newRig(t, guarded)
	for file, kind := range map[string]string{
		"/static/js/app.js": "text/javascript; charset=utf-8", "/static/css/base.css": "text/css; charset=utf-8", "/static/icon.svg": "image/svg+xml",
		"/static/fonts/geist.woff2": "font/woff2", "/static/vendor/uplot/LICENSE": "text/plain; charset=utf-8",
	} {
		a := r.ask("GET", file, "") // nobody needs a token for these
		tag := a.Header.Get("ETag")
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != kind || a.Header.Get("Cache-Control") != "no-cache" && kind != "font/woff2" || tag == "" || len(text(t, a)) == 0 {
			t.Errorf("%s: %d %v", file, a.StatusCode, a.Header)
		}
		if again := r.ask("GET", file, "", "If-None-Match: "+tag); again.StatusCode != 304 || len(text(t, again)) != 0 {
			t.Errorf("%s again: %d", file, again.StatusCode)
		}
		if again := r.ask("GET", file, "", `If-None-Match: "other"`); again.StatusCode != 200 {
			t.Errorf("%s, a newer one: %d", file, again.StatusCode)
		}
	}
}

func TestTheDashboardNeedsALogin(t *testing.T) {
	r := newRig(t, guarded)
	if a := r.ask("GET", "/", ""); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/login" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	a := r.ask("GET", "/", "", "Authorization: Bearer "+token)
	page := text(t, a)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(page, "/static/js/app.js") {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if strings.Contains(strings.ReplaceAll(page, `<script type="module" src="/static/js/app.js"></script>`, ""), "<script") {
		t.Error("a script in the page")
	}
	if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "script-src 'self';") || !strings.Contains(csp, "require-trusted-types-for 'script'") {
		t.Error(csp)
	}
}
