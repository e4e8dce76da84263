package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// bigBody is a request of about n bytes that names a model at its end.
func bigBody(n int) string {
	return `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", n/24) + `"}}]}],"model":"vm"}`
}

// sameBytes compares without printing megabytes.
func sameBytes(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if string(got) == want {
		return
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s: %d bytes, want %d; they differ from byte %d on", what, len(got), len(want), i)
}

// Case 25: a body of 20 MiB is sent whole to every candidate.
func TestFailoverSendsABigBodyAgain(t *testing.T) {
	u1, u2 := play(t, refusal(503, `{"error":{"message":"overloaded"}}`)), play(t, page("application/json", okChat))
	r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
	for _, chunked := range []bool{false, true} {
		body := bigBody(20 << 20)
		r.is(r.send(drill.Query{Path: "/v1/chat/completions", Body: []byte(body), Chunked: chunked, Piece: 64 << 10}), 200, okChat)
		for i, u := range []*drill.Upstream{u1, u2} {
			q := u.Requests()[u.Count()-1]
			sameBytes(t, fmt.Sprintf("u%d, chunked %v", i+1, chunked), q.Body, strings.Replace(body, `"vm"`, fmt.Sprintf(`"m%d"`, i+1), 1))
			if q.Get("Content-Length") != strconv.Itoa(len(q.Body)) || q.Get("Transfer-Encoding") != "" {
				t.Errorf("u%d: Content-Length %q, Transfer-Encoding %q", i+1, q.Get("Content-Length"), q.Get("Transfer-Encoding"))
			}
		}
	}
}

// Case 25: without a setting 32 MiB and more are taken.
func TestDefaultLimitTakesBigBodies(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("", u.URL()))
	r.is(r.post("/v1/chat/completions", bigBody(40<<20)), 200, okChat)
}

// Case 25: a client that sends its whole body before it reads still hears the 413,
// however much larger the body is and however it is framed; nobody is called, and
// the connection ends cleanly or takes another request.
func TestBodyOverTheLimitIsAnsweredNotReset(t *testing.T) {
	u := play(t, page("application/json", okChat))
	for name, limit := range map[string]int{"a small limit": 1 << 10, "a megabyte": 1 << 20} {
		r := newRig(t, over(fmt.Sprintf("server: {max_body_bytes: %d}", limit), u.URL()))
		for path, envelope := range map[string]string{
			"/v1/chat/completions": `"error":{`, "/v1/responses": `"code":"request_too_large"`, "/v1/messages": `"type":"request_too_large"`,
			"/v1beta/models/vm:generateContent": `"status":"INVALID_ARGUMENT"`, "/api/chat": `"error":"the request body`,
		} {
			for _, chunked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, chunked %v", name, path, chunked), func(t *testing.T) {
					c, err := net.Dial("tcp", r.addr)
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					c.SetDeadline(time.Now().Add(20 * time.Second))
					body := bigBody(12 << 20)
					if chunked {
						fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x.localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", path, len(body))
						body += "\r\n0\r\n\r\n"
					} else {
						fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x.localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, len(body))
					}
					if _, err := io.WriteString(c, body); err != nil {
						t.Fatalf("sending the body: %v", err)
					}
					br := bufio.NewReader(c)
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Fatalf("reading the answer: %v", err)
					}
					got, err := io.ReadAll(resp.Body)
					if err != nil || resp.StatusCode != 413 || !strings.Contains(string(got), envelope) || !strings.Contains(string(got), "max_body_bytes") {
						t.Fatalf("client got %d %s, %v", resp.StatusCode, got, err)
					}
					if !resp.Close {
						fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: x.localhost\r\n\r\n")
						if resp, err = http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
							t.Errorf("the connection was kept, but not usable: %v", err)
						}
					} else if _, err := br.ReadByte(); err != io.EOF {
						t.Errorf("the connection ended with %v", err)
					}
				})
			}
		}
	}
	uncalled(t, u)
}

// The limit itself is no more than the limit.
func TestBodyAtTheLimitPasses(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("server: {max_body_bytes: 4096}", u.URL()))
	body := `{"model":"vm","x":"` + strings.Repeat("x", 4096) + `"}`
	body = strings.Replace(body, strings.Repeat("x", len(body)-4096), "", 1)
	for _, chunked := range []bool{false, true} {
		r.is(r.send(drill.Query{Path: chatPath, Body: []byte(body), Chunked: chunked}), 200, okChat)
		r.fails(r.send(drill.Query{Path: chatPath, Body: []byte(body + " "), Chunked: chunked}), 413)
	}
}

// Case 25: a client that withholds its body until it is told to send it is told so,
// and only where the body will be read.
func TestExpectContinueIsAnswered(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("server: {max_body_bytes: 4096}", u.URL()))
	body := `{"model":"vm","messages":[]}`
	for _, chunked := range []bool{false, true} {
		got := r.send(drill.Query{Path: "/v1/chat/completions", Body: []byte(body), Expect: true, Chunked: chunked})
		r.is(got, 200, okChat)
		if len(got.Interim) != 1 || got.Interim[0] != 100 {
			t.Errorf("interim answers %v", got.Interim)
		}
	}
	for _, q := range u.Requests() {
		if q.Get("Expect") != "" || string(q.Body) != `{"model":"m1","messages":[]}` {
			t.Errorf("upstream got Expect %q and %q", q.Get("Expect"), q.Body)
		}
	}
	// Refused on sight: no body is asked for.
	for name, q := range map[string]drill.Query{
		"too large":     {Path: "/v1/chat/completions", Body: bytes.Repeat([]byte(" "), 5000)},
		"a page":        {Path: "/v1/chat/completions", Body: []byte(body), Header: []string{"Origin", "https://evil.example"}},
		"climbing path": {Path: "/v1/../x", Body: []byte(body)},
	} {
		q.Expect = true
		got := r.send(q)
		if got.Status < 400 || got.Status >= 500 || len(got.Interim) != 0 || !got.Clean {
			t.Errorf("%s: %d after %v (%v)", name, got.Status, got.Interim, got.Err)
		}
	}
	// Over the limit without saying so beforehand.
	r.fails(r.send(drill.Query{Path: "/v1/chat/completions", Body: bytes.Repeat([]byte(" "), 5000), Expect: true, Chunked: true}), 413)
	if u.Count() != 2 {
		t.Errorf("%d calls", u.Count())
	}
}

// Case 25: an upload without a length, in whatever pieces it comes, reaches the
// upstream with one.
func TestChunkedUploadGetsALength(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("", u.URL()))
	body := fmt.Sprintf(oddBody, `"vm"`)
	for _, piece := range []int{1, 7, 1000} {
		r.is(r.send(drill.Query{Path: "/v1/chat/completions", Body: []byte(body), Chunked: true, Piece: piece}), 200, okChat)
	}
	for _, q := range u.Requests() {
		if want := fmt.Sprintf(oddBody, `"m1"`); string(q.Body) != want || q.Get("Content-Length") != strconv.Itoa(len(want)) || q.Get("Transfer-Encoding") != "" {
			t.Errorf("upstream got %q, Content-Length %q, Transfer-Encoding %q", q.Body, q.Get("Content-Length"), q.Get("Transfer-Encoding"))
		}
	}
}

// A client that leaves in the middle of its upload calls nobody.
func TestCutUploadCallsNobody(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("", u.URL()))
	for _, framing := range []string{"Content-Length: 60\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3c\r\n"} {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%s{\"model\":\"vm\",\"mess", framing)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	r.settle()
	uncalled(t, u)
}

// Case 26: every attempt, a retry too, is the client's request anew: whole body,
// that candidate's model, length, credential, path and headers, and nothing that
// another candidate added.
func TestEveryAttemptIsBuiltAnew(t *testing.T) {
	u1, u2 := play(t, refusal(429, `{"error":{"message":"slow down"}}`)), play(t, refusal(500, `{"error":{"message":"oops"}}`))
	u3 := play(t, page("application/json", okMessage))
	r := newRig(t, fmt.Sprintf(`
rules:
  - {match: {status: 429}, action: retry, max_attempts: 2, max_wait: 0.01}
virtual_models:
  vm:
    - {base_url: "%s/one/v1", api_key: sk-upstream-secret-1, model: a, auth_style: x-api-key, headers: {x-one: "1", x-client: one}}
    - {base_url: "%s/two?tenant=2", api_key: sk-upstream-secret-2, model: a-much-longer-name, headers: {anthropic-beta: two}}
    - {base_url: "%s", api_key: sk-upstream-secret-3, model: vm, auth_style: api-key}
`, u1.URL(), u2.URL(), u3.URL()))
	body := fmt.Sprintf(oddBody, `"vm"`)
	r.is(r.post("/v1/messages?beta=true", body, "X-Client", "mine", "anthropic-beta", "b1", "anthropic-beta", "b2", "Authorization", "Bearer client-own-key"), 200, okMessage)
	type sent struct{ target, model, auth, xKey, apiKey, version, one, client, beta string }
	var got []sent
	for _, u := range []*drill.Upstream{u1, u2, u3} {
		for _, q := range u.Requests() {
			_, model, _ := strings.Cut(string(q.Body), `"model"  :  `)
			model, _, _ = strings.Cut(model, " ")
			if want := fmt.Sprintf(oddBody, model); string(q.Body) != want || q.Get("Content-Length") != strconv.Itoa(len(want)) {
				t.Errorf("%s got %q with length %q", q.Target, q.Body, q.Get("Content-Length"))
			}
			got = append(got, sent{q.Target, model, q.Get("Authorization"), q.Get("X-Api-Key"), q.Get("Api-Key"), q.Get("Anthropic-Version"),
				q.Get("X-One"), strings.Join(q.Values("X-Client"), "|"), strings.Join(q.Values("Anthropic-Beta"), "|")})
		}
	}
	one := sent{"/one/v1/messages?beta=true", `"a"`, "", "sk-upstream-secret-1", "", "2023-06-01", "1", "one", "b1|b2"}
	want := []sent{one, one,
		{"/two/v1/messages?tenant=2&beta=true", `"a-much-longer-name"`, "Bearer sk-upstream-secret-2", "", "", "", "", "mine", "two"},
		{"/v1/messages?beta=true", `"vm"`, "", "", "sk-upstream-secret-3", "", "", "mine", "b1|b2"}}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("attempts\n%q, want\n%q", got, want)
	}
}
