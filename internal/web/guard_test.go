package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestHosts(t *testing.T) {
	r := newRig(t, "server: {admin: \"box.example.com:8788\", admin_token: "+token+", allowed_hosts: [proxy.example.com]}"+models)
	for host, want := range map[string]int{
		"127.0.0.1:8788": 200, "127.0.0.1": 200, "[::1]:8788": 200, "[::1]": 200, "[fe80::1%25eth0]:8788": 200, "192.168.1.7:8788": 200,
		"localhost": 200, "localhost:8788": 200, "LOCALHOST.:8788": 200, "a.localhost": 200, "": 200,
		"box.example.com:8788": 200, "Box.Example.com": 200, "proxy.example.com:1": 200,
		"evil.example.com": 403, "localhost.evil.com": 403, "127.0.0.1.nip.io": 403, "xlocalhost": 403, "example.com": 403, "<b>": 403,
	} {
		a := r.ask("GET", "/api/state", "", "Host: "+host, "Authorization: Bearer "+token)
		body := text(t, a)
		if a.StatusCode != want {
			t.Errorf("%q: %d, want %d", host, a.StatusCode, want)
		}
		if want == 403 && (!strings.Contains(body, "allowed_hosts: [") || strings.Contains(body, "<b>")) {
			t.Errorf("%q: %s", host, body)
		}
	}
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	r := newRig(t, "server: {cors_origins: [\"https://chat.example.com\"]}"+models)
	for _, test := range []struct {
		head   []string
		status int
	}{
		{nil, 200},
		{[]string{"Origin: http://127.0.0.1:8788"}, 200},
		{[]string{"Origin: https://127.0.0.1:8788", "Sec-Fetch-Site: same-origin"}, 200},
		{[]string{"Sec-Fetch-Site: none"}, 200},
		{[]string{"Origin: http://127.0.0.1:8787"}, 403},
		{[]string{"Origin: http://localhost:8788"}, 403},
		{[]string{"Origin: null"}, 403},
		{[]string{"Origin: https://chat.example.com"}, 403}, // that list is for the proxy
		{[]string{"Origin: file://"}, 403},
		{[]string{"Origin: http://127.0.0.1:8788", "Origin: https://evil.example.com"}, 403},
		{[]string{"Origin: http://127.0.0.1:8788", "Sec-Fetch-Site: cross-site"}, 403},
		{[]string{"Sec-Fetch-Site: same-site"}, 403},
		{[]string{"Sec-Fetch-Site: cross-site"}, 403},
	} {
		for _, target := range []string{"GET /", "GET /api/state", "GET /api/events", "POST /api/command", "POST /login"} {
			method, path, _ := strings.Cut(target, " ")
			if path == "/api/events" && test.status == 200 {
				continue // it would not end
			}
			want := test.status
			if path == "/login" && want == 200 {
				want = 303
			}
			a := r.ask(method, path, `{"line":"vm"}`, append(test.head, jsonType)...)
			if a.StatusCode != want {
				t.Errorf("%s with %v: %d, want %d", target, test.head, a.StatusCode, want)
			}
		}
	}
	if r.proxy.Target().On() {
		t.Error("a refused command ran")
	}
}

func TestToken(t *testing.T) {
	r := newRig(t, guarded)
	for _, path := range []string{"/api/state", "/api/requests", "/api/requests/x", "/api/events", "/api/config", "/api/curves", "/metrics"} {
		for _, head := range []string{"X: y", "Authorization: Bearer wrong", "Authorization: Bearer ", "Authorization: Basic " + token, "Authorization: " + token, "X-Api-Key: " + token, "Cookie: understudy_admin=" + token} {
			a := r.ask("GET", path, "", head)
			if a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" || !strings.Contains(text(t, a), "admin token") {
				t.Errorf("%s with %s: %d", path, head, a.StatusCode)
			}
		}
	}
	if a := r.ask("POST", "/api/command", `{"line":"target on"}`, jsonType); a.StatusCode != 401 || r.proxy.Target().On() {
		t.Errorf("a command without a token: %d", a.StatusCode)
	}
	for _, head := range []string{"Authorization: Bearer " + token, "Authorization: bearer  " + token} {
		if a := r.ask("GET", "/api/state", "", head); a.StatusCode != 200 {
			t.Errorf("%s: %d", head, a.StatusCode)
		}
	}
	if a := r.ask("GET", "/", ""); a.StatusCode != 303 || a.Header.Get("Location") != "/login" {
		t.Errorf("the page without a token: %d", a.StatusCode)
	}
}

// login logs in and gives the Cookie line of the session.
func (r *rig) login(head ...string) string {
	r.t.Helper()
	a := r.ask("POST", "/login", url.Values{"token": {token}}.Encode(), append(head, "Content-Type: application/x-www-form-urlencoded")...)
	cookies := a.Cookies()
	if a.StatusCode != 303 || a.Header.Get("Location") != "/" || len(cookies) != 1 {
		r.t.Fatalf("login: %d, %v", a.StatusCode, cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || strings.Contains(c.Value, token) {
		r.t.Errorf("the cookie is %s", c)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

func TestLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, guarded)
		if page := text(t, r.ask("GET", "/login", "")); !strings.Contains(page, `type="password"`) || strings.Contains(page, "<script") {
			t.Error(page)
		}
		form := "Content-Type: application/x-www-form-urlencoded"
		for _, body := range []string{"", "token=", "token=wrong", "other=" + token, "token=" + token + "x"} {
			a := r.ask("POST", "/login", body, form)
			if page := text(t, a); a.StatusCode != 401 || len(a.Cookies()) != 0 || !strings.Contains(page, "not the admin token") {
				t.Errorf("%s: %d", body, a.StatusCode)
			}
		}
		if !strings.Contains(r.log.String(), "admin login refused") || strings.Contains(r.log.String(), "wrong") {
			t.Errorf("the log is %s", r.log)
		}
		if a := r.ask("POST", "/login?token="+token, "", form); a.StatusCode != 401 {
			t.Errorf("the token in the query: %d", a.StatusCode)
		}
		if a := r.ask("POST", "/login", "token="+strings.Repeat("a", maxLogin), form); a.StatusCode != 400 {
			t.Errorf("a large form: %d", a.StatusCode)
		}

		cookie := r.login()
		ok := func(why string, want int, head ...string) {
			t.Helper()
			if a := r.ask("GET", "/api/state", "", head...); a.StatusCode != want {
				t.Errorf("%s: %d, want %d", why, a.StatusCode, want)
			}
		}
		ok("with the cookie", 200, cookie)
		ok("with two cookies", 200, "Cookie: understudy_admin=x; "+strings.TrimPrefix(cookie, "Cookie: "))
		ok("with a longer life", 401, strings.Replace(cookie, "=", "=9", 1))
		ok("without its signature", 401, cookie[:strings.Index(cookie, ".")])
		ok("with another signature", 401, cookie[:len(cookie)-1]+"g")
		if a := r.ask("POST", "/api/command", `{"line":"target on"}`, jsonType, cookie); a.StatusCode != 200 || !r.proxy.Target().On() {
			t.Errorf("a command with the cookie: %d", a.StatusCode)
		}
		if page := text(t, r.ask("GET", "/plain", "", cookie)); !strings.Contains(page, "Log out") {
			t.Error("no way out")
		}
		if a := newRig(t, guarded).ask("GET", "/api/state", "", cookie); a.StatusCode != 401 {
			t.Errorf("in another process: %d", a.StatusCode)
		}
		a := r.ask("POST", "/logout", "", cookie)
		if c := a.Cookies(); a.StatusCode != 303 || len(c) != 1 || c[0].MaxAge >= 0 {
			t.Errorf("logout: %d %v", a.StatusCode, c)
		}

		ok("after the logout", 401, cookie)
		cookie, other := r.login(), r.login() // at the same moment
		r.ask("POST", "/logout", "", other)
		ok("after another's logout", 200, cookie)
		ok("after its own", 401, other)
		r.ask("POST", "/logout", "", strings.Replace(other, ".", ".0", 1)) // none of ours ends nothing
		for range maxEnded - 2 {
			r.ask("POST", "/logout", "", r.login())
		}
		ok("after many logouts", 200, cookie)
		ok("after its own and many more", 401, other)
		r.ask("POST", "/logout", "", r.login())
		ok("after more than are remembered", 401, cookie)
		ok("after its own and more than are remembered", 401, other)

		cookie = r.login()
		time.Sleep(sessionLength - time.Second)
		ok("before its end", 200, cookie)
		time.Sleep(time.Second)
		ok("after its end", 401, cookie)
	})
}

func TestASessionEndsWithItsToken(t *testing.T) {
	r := newRig(t, guarded)
	cookie := r.login()
	other := newRig(t, strings.Replace(guarded, token, token+"-new", 1))
	r.proxy.Swap(other.proxy.Snapshot())
	if a := r.ask("GET", "/api/state", "", cookie); a.StatusCode != 401 {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestTheCookieIsSecureOverTLS(t *testing.T) {
	r := newRig(t, guarded)
	q := httptest.NewRequest("POST", "https://127.0.0.1/login", strings.NewReader("token="+token))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%v", c)
	}
}
