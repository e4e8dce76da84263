package proxy

import (
	"slices"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// corsOf are an answer's CORS header lines.
func corsOf(r drill.Reply) []string {
	var out []string
	for _, line := range lines(r.Header) {
		if strings.HasPrefix(line, "access-control-") {
			out = append(out, line)
		}
	}
	return out
}

const listedOrigin = "https://chat.example.com"

// Case 31: a listed origin's preflight is answered 204, without a key and without a
// call, and allows what was asked for.
func TestListedOriginsPreflight(t *testing.T) {
	u := play(t, page("application/json", okMessage))
	for _, more := range []string{"", "\nclients: [{name: me, key: client-key-0123456789}]"} {
		r := newRig(t, over("server: {cors_origins: ["+listedOrigin+"]}"+more, u.URL()))
		got := r.send(drill.Query{Method: "OPTIONS", Path: "/v1/messages", Header: []string{"Origin", listedOrigin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-stainless-os", "Sec-Fetch-Site", "cross-site", "Access-Control-Request-Private-Network", "true"}})
		want := []string{"access-control-allow-headers: authorization,content-type,x-stainless-os", "access-control-allow-methods: GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS",
			"access-control-allow-origin: " + listedOrigin, "access-control-allow-private-network: true", "access-control-max-age: 600"}
		if have := corsOf(got); got.Status != 204 || !got.Clean || len(got.Body) != 0 || !slices.Equal(have, want) {
			t.Errorf("client got %d %q %s", got.Status, have, got.Body)
		}
		if !strings.Contains(got.Get("Vary"), "Origin") {
			t.Errorf("Vary %q", got.Get("Vary"))
		}
	}
	uncalled(t, u)
}

// Case 31: exactly one Access-Control-Allow-Origin stands on real, error and stream
// answers and on refusals, whatever the upstream says; Origin and Referer go no
// further; the upstream's Vary stays.
func TestListedOriginsAnswers(t *testing.T) {
	header := []string{"Access-Control-Allow-Origin", "*", "Access-Control-Allow-Credentials", "true", "Access-Control-Allow-Origin", "https://other.example", "Vary", "Accept-Encoding"}
	u := play(t, func(w *drill.Wire, r drill.Request, _ int) {
		switch {
		case strings.Contains(string(r.Body), "stream"):
			w.Head(200, drill.Chunked, append([]string{"Content-Type", "text/event-stream"}, header...)...)
			w.Chunk([]byte(okSSE))
			w.End()
		case strings.Contains(string(r.Body), "mistake"):
			w.JSON(422, []byte(`{"error":{"message":"invalid"}}`), header...)
		case strings.Contains(string(r.Body), "down"):
			w.JSON(401, []byte(`{"error":{"message":"no"}}`), header...)
		default:
			w.JSON(200, []byte(okChat), header...)
		}
	})
	r := newRig(t, over("server: {cors_origins: ['HTTPS://Chat.Example.com', 'http://localhost:3000'], max_body_bytes: 2000}\nrules: [{match: {status: 422}, action: passthrough}]", u.URL()))
	for name, c := range map[string]struct {
		status     int
		path, body string
	}{
		"a stream":        {200, "/v1/chat/completions", `{"model":"vm","stream":true}`},
		"whole":           {200, "/v1/chat/completions", `{"model":"vm"}`},
		"passed on":       {422, "/v1/chat/completions", `{"model":"vm","x":"mistake"}`},
		"exhausted":       {502, "/v1/chat/completions", `{"model":"vm","x":"down"}`},
		"unknown model":   {404, "/v1/chat/completions", `{"model":"gpt-9"}`},
		"too large":       {413, "/v1/chat/completions", strings.Repeat(" ", 3000)},
		"broken":          {400, "/v1/chat/completions", `{`},
		"climbing":        {400, "/v1/..", `{}`},
		"a list":          {200, "/v1/models", ""},
		"a health answer": {200, "/healthz", ""},
	} {
		for _, origin := range []string{listedOrigin, "http://localhost:3000"} {
			q := drill.Query{Path: c.path, Header: []string{"Origin", origin, "Referer", origin + "/chat", "Sec-Fetch-Site", "cross-site"}}
			if c.body != "" {
				q.Body = []byte(c.body)
			}
			got := r.send(q)
			want := []string{"access-control-allow-origin: " + origin, "access-control-expose-headers: *"}
			if have := corsOf(got); got.Status != c.status || !got.Clean || !slices.Equal(have, want) {
				t.Errorf("%s: client got %d %q", name, got.Status, have)
			}
			vary := strings.Join(got.Values("Vary"), ", ")
			if upstream := got.Get("X-Understudy-Candidate") != ""; !strings.Contains(vary, "Origin") || upstream != strings.Contains(vary, "Accept-Encoding") {
				t.Errorf("%s: Vary %q", name, vary)
			}
		}
	}
	for _, q := range u.Requests() {
		for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site"} {
			if q.Get(name) != "" {
				t.Errorf("upstream got %s: %s", name, q.Get(name))
			}
		}
	}
}

// Case 31, section 12: a request that a page of another origin makes a browser send
// is refused before anybody is called; no CORS header is added for it.
func TestForeignPagesAreRefused(t *testing.T) {
	u := play(t, page("application/json", okChat))
	for _, cfg := range []string{over("", u.URL()), over("server: {cors_origins: ["+listedOrigin+"]}", u.URL()), pool("", u.URL())} {
		r := newRig(t, cfg)
		for name, header := range map[string][]string{
			"another origin":           {"Origin", "https://evil.example"},
			"an opaque origin":         {"Origin", "null"},
			"a listed name's cousin":   {"Origin", "https://chat.example.com.evil.example"},
			"another scheme":           {"Origin", "http://chat.example.com"},
			"another port":             {"Origin", "https://chat.example.com:8443"},
			"another local port":       {"Origin", "http://127.0.0.1:3000"},
			"cross-site, no origin":    {"Sec-Fetch-Site", "cross-site"},
			"same-site, no origin":     {"Sec-Fetch-Site", "same-site"},
			"own origin, yet cross":    {"Origin", "http://" + r.addr, "Sec-Fetch-Site", "cross-site"},
			"own origin, yet sibling":  {"Origin", "http://" + r.addr, "Sec-Fetch-Site", "same-site"},
			"an origin that is no URL": {"Origin", "file://"},
			"origins twice":            {"Origin", "https://evil.example", "Origin", listedOrigin},
		} {
			for _, q := range []drill.Query{
				{Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`)},
				{Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"Content-Type", "text/plain"}},
				{Path: "/v1/models"}, {Path: "/healthz"}, {Path: "/"},
				{Method: "OPTIONS", Path: "/v1/messages", Header: []string{"Access-Control-Request-Method", "POST"}},
			} {
				q.Header = append(slices.Clone(q.Header), header...)
				got := r.send(q)
				r.fails(got, 403, "cors_origins")
				if have := corsOf(got); len(have) != 0 {
					t.Errorf("%s: %q", name, have)
				}
			}
		}
	}
	uncalled(t, u)
}

// What is no foreign page's passes, and without cors_origins no CORS header is added,
// nor is the upstream's passed on.
func TestOwnPagesAndPlainClientsPass(t *testing.T) {
	u := play(t, refusal(200, okChat, "Access-Control-Allow-Origin", "*"))
	r := newRig(t, over("", u.URL()))
	for _, header := range [][]string{nil, {"Origin", "http://" + r.addr}, {"Origin", "http://" + r.addr, "Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Sec-Fetch-Site", "same-origin"}} {
		got := r.post("/v1/chat/completions", `{"model":"vm"}`, header...)
		r.is(got, 200, okChat)
		if have := corsOf(got); len(have) != 0 {
			t.Errorf("%q: %q", header, have)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		if got := r.send(drill.Query{Method: method, Path: "/"}); got.Status >= 500 || got.Status == 0 {
			t.Errorf("%s / gave %d", method, got.Status)
		}
	}
}

// An OPTIONS request that is no preflight is proxied like any other.
func TestOptionsIsProxied(t *testing.T) {
	u := play(t, refusal(200, `{}`, "Allow", "GET"))
	r := newRig(t, pool("server: {cors_origins: ["+listedOrigin+"]}", u.URL()))
	for _, header := range [][]string{nil, {"Origin", listedOrigin}, {"Access-Control-Request-Method", "POST"}} {
		if got := r.send(drill.Query{Method: "OPTIONS", Path: "/v1/x", Header: header}); got.Status != 200 || got.Get("Allow") != "GET" {
			t.Errorf("client got %d %s", got.Status, got.Head)
		}
	}
}

// Section 12: a Host that is no IP literal, loopback name, bound name or listed name
// is refused, whoever asks, unless a valid client key comes with it.
func TestForeignHostsAreRefused(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("server: {host: box.lan, allowed_hosts: [Proxy.Example.com, \"with.port:8787\"]}\nclients: [{name: me, key: client-key-0123456789}]", u.URL()))
	plain := newRig(t, over("server: {host: box.lan, allow_unauthenticated: true, allowed_hosts: [Proxy.Example.com]}", u.URL()))
	for host, known := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:1": true, "[::1]:8787": true, "[::1]": true, "192.168.1.7:8787": true, "10.0.0.1": true, "[fe80::1%25eth0]:80": true,
		"localhost": true, "LOCALHOST:8787": true, "localhost.:1": true, "app.localhost:3000": true, "box.lan:8787": true, "BOX.lan": true, "proxy.example.com": true, "proxy.example.com:443": true, "PROXY.example.com.": true,
		"evil.example": false, "evil.example:8787": false, "localhost.evil.example": false, "127.0.0.1.nip.io": false, "notlocalhost": false, "sub.proxy.example.com": false, "box.lan.evil": false, "1.2.3": false,
	} {
		for _, q := range []drill.Query{{Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`)}, {Path: "/v1/models"}, {Path: "/healthz"}} {
			before := u.Count()
			q.Header = []string{"Host", host}
			if got := plain.send(q); known != (got.Status == 200) {
				t.Errorf("%s %s: %d %s", host, q.Path, got.Status, got.Body)
			} else if !known {
				plain.fails(got, 403, "allowed_hosts: ["+host+"]")
				if u.Count() != before {
					t.Error("somebody was called")
				}
			}
			q.Header = append(q.Header, "Authorization", "Bearer client-key-0123456789")
			if got := r.send(q); got.Status != 200 {
				t.Errorf("%s %s with a key: %d", host, q.Path, got.Status)
			}
			q.Header[3] = "Bearer wrong"
			if got := r.send(q); !known && got.Status != 403 || known && q.Path != "/healthz" && got.Status != 401 {
				t.Errorf("%s %s with a wrong key: %d", host, q.Path, got.Status)
			}
		}
	}
}
