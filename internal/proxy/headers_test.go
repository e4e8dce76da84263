package proxy

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// lines are the header lines of a request or an answer, as NAME: VALUE in lower
// case, without those named.
func lines(fields []drill.Field, without ...string) []string {
	var out []string
	for _, f := range fields {
		if name := strings.ToLower(f.Name); !slices.Contains(without, name) {
			out = append(out, name+": "+f.Value)
		}
	}
	slices.Sort(out)
	return out
}

// Case 30: what is end-to-end in a request reaches the upstream, repeated lines
// apart, unknown ones and other letters as they came; what belongs to the connection
// or to a browser stops here, and nothing is invented.
func TestRequestHeadersPassEndToEnd(t *testing.T) {
	u := play(t, page("application/json", okMessage))
	r := newRig(t, over("", u.URL()))
	r.is(r.post("/v1/messages", `{"model":"vm"}`,
		"anthropic-beta", "output-128k-2025-02-19", "anthropic-beta", "context-1m-2025-08-07, files-api-2025-04-14",
		"anthropic-version", "2023-06-01", "OpenAI-Organization", "org-1", "X-Custom", "é", "X-Latin", "\xe9\xff", "X-Empty", "", "X-Odd", "a,b;c=\"d\"\t e",
		"User-Agent", "claude-cli/2.0 (external, cli)", "X-Stainless-Lang", "js", "x_under_score", "1", "Accept", "application/json", "Accept", "text/event-stream", "Accept-Language", "*",
		"Idempotency-Key", "k", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Via", "1.1 corp", "Content-Type", "application/json; charset=utf-8",
		"Connection", "X-Hop, close", "X-Hop", "1", "connection", "x-hop2", "X-Hop2", "2", "Keep-Alive", "timeout=5", "Proxy-Connection", "keep-alive", "TE", "trailers", "Trailer", "X-Sum",
		"Proxy-Authorization", "Basic Zm9vOmJhcg==", "Upgrade", "h2c", "Expect", "100-continue",
		"Origin", "http://"+r.addr, "Referer", "http://"+r.addr+"/x", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Forwarded", "for=1.2.3.4",
		"X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Real-IP", "1.2.3.4", "x-understudy-request-id", "mine", "X-Understudy-Anything", "1"),
		200, okMessage)
	want := []string{
		"accept-encoding: identity", "accept-language: *", "accept: application/json", "accept: text/event-stream",
		"anthropic-beta: context-1m-2025-08-07, files-api-2025-04-14", "anthropic-beta: output-128k-2025-02-19", "anthropic-version: 2023-06-01",
		"authorization: Bearer sk-upstream-secret-1", "content-length: 14", "content-type: application/json; charset=utf-8", "host: " + u.Addr(),
		"idempotency-key: k", "openai-organization: org-1", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"user-agent: claude-cli/2.0 (external, cli)", "via: 1.1 corp", "x-custom: é", "x-empty: ", "x-latin: \xe9\xff", "x-odd: a,b;c=\"d\"\t e", "x-stainless-lang: js", "x_under_score: 1",
	}
	slices.Sort(want)
	q := only(t, u)
	if got := lines(q.Header); !slices.Equal(got, want) {
		t.Errorf("upstream got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v := q.Values("anthropic-beta"); v[0] != "output-128k-2025-02-19" {
		t.Errorf("repeated lines changed their order: %q", v)
	}
	if !strings.HasPrefix(string(q.Head), "POST /v1/messages HTTP/1.1\r\n") {
		t.Errorf("head %q", q.Head)
	}
}

// Case 30: a client without a User-Agent is not given one, nor any other header, by
// us or by Go, whatever the method.
func TestNoRequestHeaderIsInvented(t *testing.T) {
	u := play(t, page("application/json", `{"ok":true}`))
	r := newRig(t, pool("", u.URL()))
	for method, want := range map[string][]string{"GET": nil, "DELETE": nil, "POST": {"accept-encoding: identity", "content-length: 0"}} {
		before := u.Count()
		r.send(drill.Query{Method: method, Path: "/v1/x"})
		if got := lines(u.Requests()[before].Header, "host"); !slices.Equal(got, want) {
			t.Errorf("%s: upstream got %q, want %q", method, got, want)
		}
	}
	before := u.Count()
	r.get("/v1/x", "Accept-Encoding", "gzip;q=0.5", "Accept-Encoding", "br", "Range", "bytes=0-5", "If-None-Match", `"x"`)
	if got := lines(u.Requests()[before].Header, "host"); !slices.Equal(got, []string{"accept-encoding: br", "accept-encoding: gzip;q=0.5", `if-none-match: "x"`, "range: bytes=0-5"}) {
		t.Errorf("upstream got %q", got)
	}
}

// Case 30: what is end-to-end in an answer reaches the client, what belongs to the
// upstream's connection stops here. There is one Date and one Transfer-Encoding.
func TestAnswerHeadersPassEndToEnd(t *testing.T) {
	own := []string{"x-understudy-candidate", "x-understudy-attempts", "x-understudy-request-id", "transfer-encoding", "content-length"}
	header := []string{"Content-Type", "application/json; charset=utf-8", "Date", "Tue, 15 Nov 1994 08:12:31 GMT", "Server", "cloudflare",
		"x-ratelimit-remaining-requests", "3", "request-id", "abc", "retry-after", "7", "X-Multi", "a", "X-Multi", "b", "X-Custom", "é", "X-Latin", "\xe9", "Via", "1.1 varnish", "ETag", `"x"`, "Vary", "Accept",
		"Connection", "close, X-Up", "X-Up", "1", "Keep-Alive", "timeout=5", "Proxy-Authenticate", "Basic", "Upgrade", "h2c",
		"Set-Cookie", "a=1", "Set-Cookie", "b=2", "Alt-Svc", `h3=":443"`, "Clear-Site-Data", `"*"`, "Strict-Transport-Security", "max-age=31536000; includeSubDomains", "NEL", "{}", "Report-To", "{}", "Service-Worker-Allowed", "/", "Set-Login", "logged-out", "Use-As-Dictionary", "match=\"/*\"", "X-Accel-Redirect", "/internal/keys", "X-Sendfile", "/etc/passwd", "X-Reproxy-URL", "http://169.254.169.254/", "Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", "x", "X-Understudy-Candidate", "liar", "x-understudy-attempts", "99"}
	want := []string{"content-type: application/json; charset=utf-8", "date: Tue, 15 Nov 1994 08:12:31 GMT", "etag: \"x\"", "request-id: abc", "retry-after: 7", "server: cloudflare",
		"vary: Accept", "via: 1.1 varnish", "x-custom: é", "x-latin: \xe9", "x-multi: a", "x-multi: b", "x-ratelimit-remaining-requests: 3"}
	for name, c := range map[string]struct {
		script drill.Script
		body   string
		status int
		extra  []string
	}{
		"with a length": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Length(len(okChat)), header...)
			w.Chunk([]byte(okChat))
		}, okChat, 200, nil},
		"chunked": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, header...)
			w.Chunk([]byte(okChat))
			w.End()
		}, okChat, 200, nil},
		"until close": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.UntilClose, header...)
			w.Chunk([]byte(okChat))
			w.End()
		}, okChat, 200, nil},
		"an error passed on": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(422, drill.Length(2), header...)
			w.Chunk([]byte("{}"))
		}, "{}", 422, nil},
		"a stream": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, append([]string{"Content-Type", "text/event-stream"}, header[2:]...)...)
			w.Chunk([]byte(okSSE))
			w.End()
		}, okSSE, 200, []string{"x-accel-buffering: no", "cache-control: no-cache"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := play(t, c.script)
			r := newRig(t, over("", u.URL()))
			got := r.post("/v1/chat/completions", fmt.Sprintf(`{"model":"vm","stream":%v}`, name == "a stream"))
			r.is(got, c.status, c.body)
			wanted := append(slices.Clone(want), c.extra...)
			if name == "a stream" {
				wanted[0] = "content-type: text/event-stream"
			}
			slices.Sort(wanted)
			if n := len(got.Values("Transfer-Encoding")) + len(got.Values("Content-Length")); n != 1 {
				t.Errorf("%d lines frame the answer: %s", n, got.Head)
			}
			if have := lines(got.Header, own...); !slices.Equal(have, wanted) {
				t.Errorf("client got\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(wanted, "\n"))
			}
			if got.Get("X-Understudy-Candidate") != "u1" || len(got.Values("X-Understudy-Candidate")) != 1 || len(got.Values("X-Understudy-Attempts")) != 1 || got.Get("X-Understudy-Attempts") != "1" {
				t.Errorf("our own headers: %s", got.Head)
			}
		})
	}
}

// An upstream without a Date or a Content-Type: the client gets our Date, once, and
// no type that nobody stated.
func TestAnswerWithoutHeadersGetsOnlyADate(t *testing.T) {
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Raw([]byte("HTTP/1.1 200 Fine\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"))
	})
	r := newRig(t, over("", u.URL()))
	got := r.post("/v1/embeddings", `{"model":"vm"}`)
	r.is(got, 200, `{"ok":true}`)
	if len(got.Values("Date")) != 1 || len(got.Values("Content-Type")) != 0 {
		t.Errorf("head %s", got.Head)
	}
}

// Case 30: trailers reach a client of a chunked answer, whether it was held whole or
// streamed; those that are not the client's business stop here.
func TestTrailersPassAnnouncedOrNot(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, stream string }{
		"held whole": {"application/json", okChat, "false"},
		"streamed":   {"text/event-stream", okSSE, "true"},
	} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, announced %v", name, announced), func(t *testing.T) {
				u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
					header := []string{"Content-Type", c.kind}
					if announced {
						header = append(header, "Trailer", "X-Checksum, grpc-status")
					}
					w.Head(200, drill.Chunked, header...)
					w.Chunk([]byte(c.body))
					w.End("X-Checksum", "abc", "Grpc-Status", "0", "Set-Cookie", "a=1", "X-Understudy-Candidate", "liar",
						"Content-Length", "3", "Content-Type", "text/html", "Content-Encoding", "gzip", "Host", "evil.example", "Location", "https://evil.example", "Cache-Control", "public", "Transfer-Encoding", "x")
				})
				r := newRig(t, over("", u.URL()))
				got := r.post("/v1/chat/completions", `{"model":"vm","stream":`+c.stream+`}`)
				r.is(got, 200, c.body)
				if have := lines(got.Trailer); !slices.Equal(have, []string{"grpc-status: 0", "x-checksum: abc"}) {
					t.Errorf("trailers %q\n%s", have, got.Head)
				}
			})
		}
	}
}

// Candidate headers replace the client's lines of that name; a variable wins over
// the static value; a variable that is not there skips the candidate.
func TestCandidateHeadersReplace(t *testing.T) {
	t.Setenv("RIG_HEADER", "from-the-environment")
	u, v := play(t, page("application/json", okChat)), play(t, page("application/json", okChat))
	r := newRig(t, fmt.Sprintf(`
virtual_models:
  vm:
    - {base_url: %q, api_key: sk-upstream-secret-1, model: m1, header_env: {x-tenant: RIG_HEADER_MISSING}}
    - base_url: %q
      api_key: sk-upstream-secret-2
      model: m2
      headers: {x-client: fixed, X-Both: static, user-agent: "mine/1", anthropic-version: "2099-01-01", Accept: "*/*"}
      header_env: {x-both: RIG_HEADER, x-tenant: RIG_HEADER}
`, u.URL(), v.URL()))
	r.is(r.post("/v1/chat/completions", `{"model":"vm"}`, "X-Client", "a", "x-client", "b", "X-Both", "c", "User-Agent", "client/1", "X-Other", "kept", "Accept", "text/event-stream"), 200, okChat)
	uncalled(t, u)
	q := only(t, v)
	want := []string{"accept-encoding: identity", "accept: */*", "anthropic-version: 2099-01-01", "authorization: Bearer sk-upstream-secret-2", "content-type: application/json",
		"user-agent: mine/1", "x-both: from-the-environment", "x-client: fixed", "x-other: kept", "x-tenant: from-the-environment"}
	if got := lines(q.Header, "host", "content-length"); !slices.Equal(got, want) {
		t.Errorf("upstream got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every auth style sends its own header, and only that one.
func TestAuthStyles(t *testing.T) {
	for style, want := range map[string][]string{
		"bearer": {"authorization: Bearer sk-upstream-secret-1"}, "x-api-key": {"anthropic-version: 2023-06-01", "x-api-key: sk-upstream-secret-1"},
		"x-goog-api-key": {"x-goog-api-key: sk-upstream-secret-1"}, "api-key": {"api-key: sk-upstream-secret-1"}, "none": nil,
	} {
		u := play(t, page("application/json", okChat))
		key := "api_key: sk-upstream-secret-1, "
		if style == "none" {
			key = ""
		}
		r := newRig(t, "virtual_models: {vm: [{base_url: \""+u.URL()+"\", "+key+"model: m1, auth_style: "+style+"}]}")
		r.is(r.post("/v1/chat/completions", `{"model":"vm"}`), 200, okChat)
		if got := lines(only(t, u).Header, "host", "content-length", "content-type", "accept-encoding"); !slices.Equal(got, want) {
			t.Errorf("%s: upstream got %q, want %q", style, got, want)
		}
	}
	u := play(t, page("application/json", okChat))
	r := newRig(t, "virtual_models: {vm: [{base_url: \""+u.URL()+"\", api_key: sk-upstream-secret-1, model: m1, auth_style: x-api-key}]}")
	r.post("/v1/chat/completions", `{"model":"vm"}`, "Anthropic-Version", "2024-10-01")
	if v := only(t, u).Values("Anthropic-Version"); !slices.Equal(v, []string{"2024-10-01"}) {
		t.Errorf("anthropic-version %q", v)
	}
}

// Names that are no visible ASCII are percent-encoded in our headers.
func TestOwnHeadersAreVisibleASCII(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, "virtual_models: {vm: [{name: \"Größe 100% 渐\", base_url: \""+u.URL()+"\", api_key: sk-upstream-secret-1, model: m1}]}")
	got := r.post("/v1/chat/completions", `{"model":"vm"}`)
	if c := got.Get("X-Understudy-Candidate"); c != "Gr%C3%B6%C3%9Fe%20100%25%20%E6%B8%90" {
		t.Errorf("candidate %q", c)
	}
}

// A head that comes and goes byte by byte is read like any other.
func TestHeadsByteByByte(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Up: 1\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		for i := range len(answer) {
			w.Raw([]byte(answer[i : i+1]))
		}
	})
	r := newRig(t, over("", u.URL()))
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.(*net.TCPConn).SetNoDelay(true)
	head := "POST /v1/embeddings?a=b HTTP/1.1\r\nHost: localhost\r\nX-Custom: é\r\nX-Two: 1\r\nx-two: 2\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{\"model\":\"vm\"}"
	for i := range len(head) {
		if _, err := c.Write([]byte{head[i]}); err != nil {
			t.Fatal(err)
		}
	}
	var b [4096]byte
	var got string
	for {
		n, err := c.Read(b[:])
		got += string(b[:n])
		if err != nil {
			break
		}
	}
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\n{\"ok\":true}") || !strings.Contains(got, "\r\nX-Up: 1\r\n") {
		t.Errorf("client got %q", got)
	}
	if q := only(t, u); q.Get("X-Custom") != "é" || strings.Join(q.Values("X-Two"), "|") != "1|2" || string(q.Body) != `{"model":"m1"}` {
		t.Errorf("upstream got %q %q", q.Head, q.Body)
	}
}
