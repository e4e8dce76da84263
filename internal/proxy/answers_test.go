package proxy

import (
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// Answers that have no body by HTTP's own rules pass at once, whatever their header
// says of a body.
func TestAnswersWithoutABodyPass(t *testing.T) {
	for name, c := range map[string]struct {
		query  drill.Query
		status int
		answer string
	}{
		"204":                {drill.Query{Path: "/v1/x", Body: []byte(`{"model":"vm"}`)}, 204, "HTTP/1.1 204 No Content\r\nX-Up: 1\r\n\r\n"},
		"204 to chat":        {drill.Query{Path: chatPath, Body: []byte(`{"model":"vm","stream":true}`)}, 204, "HTTP/1.1 204 No Content\r\nX-Up: 1\r\n\r\n"},
		"205":                {drill.Query{Path: "/v1/x", Body: []byte(`{"model":"vm"}`)}, 205, "HTTP/1.1 205 Reset Content\r\nX-Up: 1\r\nContent-Length: 0\r\n\r\n"},
		"205 with a body":    {drill.Query{Path: "/v1/x", Body: []byte(`{"model":"vm"}`)}, 205, "HTTP/1.1 205 Reset Content\r\nX-Up: 1\r\nContent-Length: 5\r\n\r\nhello"},
		"304":                {drill.Query{Path: "/v1/x", Header: []string{"If-None-Match", `"x"`}}, 304, "HTTP/1.1 304 Not Modified\r\nX-Up: 1\r\nETag: \"x\"\r\n\r\n"},
		"HEAD":               {drill.Query{Method: "HEAD", Path: "/v1/x"}, 200, "HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Type: application/json\r\nContent-Length: 12345\r\n\r\n"},
		"HEAD chunked":       {drill.Query{Method: "HEAD", Path: "/v1/x"}, 200, "HTTP/1.1 200 OK\r\nX-Up: 1\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"},
		"HEAD with an error": {drill.Query{Method: "HEAD", Path: "/v1/x"}, 404, "HTTP/1.1 404 Not Found\r\nX-Up: 1\r\nContent-Type: application/json\r\nContent-Length: 77\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u := play(t, func(w *drill.Wire, _ drill.Request, _ int) { w.Raw([]byte(c.answer)) })
			r := newRig(t, over("server: {default_model: vm}", u.URL()))
			start := time.Now()
			got := r.send(c.query)
			if got.Status != c.status || !got.Clean || len(got.Body) != 0 || got.Get("X-Up") != "1" || time.Since(start) > 5*time.Second {
				t.Errorf("client got %d %s, clean %v, after %v\n%s", got.Status, got.Head, got.Clean, time.Since(start), r.log.last())
			}
			if name == "HEAD" && got.Get("Content-Length") != "12345" {
				t.Errorf("Content-Length %q", got.Get("Content-Length"))
			}
			only(t, u)
		})
	}
}

// Interim answers are no answers.
func TestInterimAnswersAreSkipped(t *testing.T) {
	u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Interim(100)
		w.Interim(103, "Link", "</x>; rel=preload", "X-Early", "1")
		w.Interim(102)
		w.JSON(200, []byte(okChat))
	})
	r := newRig(t, over("", u.URL()))
	got := r.post(chatPath, `{"model":"vm"}`)
	r.is(got, 200, okChat)
	if got.Get("X-Early") != "" {
		t.Errorf("head %s", got.Head)
	}
}

// An upstream that switches protocols though nobody asked for it is a failure like
// any other; what it says then goes nowhere, and nobody waits for it to end.
func TestUnaskedSwitchOfProtocolsFails(t *testing.T) {
	u1 := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
		w.Raw([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"))
		w.Silence()
	})
	u2 := play(t, page("application/json", okChat))
	for _, cfg := range []string{over("rules: []", u1.URL(), u2.URL()), over("rules: [{match: {fault: credential}, action: passthrough}]", u1.URL(), u2.URL())} {
		r := newRig(t, cfg)
		start := time.Now()
		r.is(r.post(chatPath, `{"model":"vm"}`), 200, okChat)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	}
	r := newRig(t, pool("", u1.URL()))
	got := r.post(chatPath, `{"model":"x"}`)
	if got.Status != 502 || got.Get("Upgrade") != "" {
		t.Errorf("the pool gave %d %s", got.Status, got.Head)
	}
}

// Odd heads that HTTP allows: an older version, a status nobody registered, no
// reason, two Dates.
func TestOddHeadsPass(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
	}{
		"HTTP/1.0":       {"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + okChat, 200},
		"no reason":      {"HTTP/1.1 200\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + okChat, 200},
		"an odd success": {"HTTP/1.1 299 Fine\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + okChat, 299},
		"two dates":      {"HTTP/1.1 200 OK\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nDate: Tue, 15 Nov 1994 08:12:32 GMT\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + okChat, 200},
		"bare newlines":  {"HTTP/1.1 200 OK\nContent-Type: application/json\nConnection: close\n\n" + okChat, 200},
	} {
		u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte(c.answer))
			w.FIN()
		})
		r := newRig(t, over("", u.URL()))
		got := r.post(chatPath, `{"model":"vm"}`)
		r.is(got, c.status, okChat)
		if len(got.Values("Date")) != 1 || len(got.Values("Connection")) != 0 {
			t.Errorf("%s: head %s", name, got.Head)
		}
	}
}

// A status that is no HTTP status any more is a failure of its own number, and
// never a panic of ours.
func TestImpossibleStatuses(t *testing.T) {
	for _, status := range []string{"600", "799", "999", "099", "000"} {
		u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 " + status + " What\r\nContent-Length: 2\r\n\r\n{}"))
		})
		r := newRig(t, over("rules: []", u.URL()))
		r.fails(r.post(chatPath, `{"model":"vm"}`), 502, "upstream_all_failed")
		r = newRig(t, over("rules: [{match: {fault: [client, server]}, action: passthrough}]", u.URL()))
		got := r.post(chatPath, `{"model":"vm"}`)
		if got.Status < 500 && got.Status < 200 || !got.Clean {
			t.Errorf("%s was passed on as %d (%v)", status, got.Status, got.Err)
		}
		if strings.Contains(r.log.String(), "panic") {
			t.Errorf("%s: %s", status, r.log.last())
		}
	}
}

// Our headers name who answered and how many attempts it took, on success, on an
// error passed on and on one of our own.
func TestOwnHeadersTellTheWay(t *testing.T) {
	down, mistake, well := play(t, refusal(500, `{}`)), play(t, refusal(422, `{"error":{"message":"no"}}`)), play(t, page("application/json", okChat))
	for name, c := range map[string]struct {
		urls      []string
		status    int
		candidate string
		attempts  string
	}{
		"second":    {[]string{down.URL(), well.URL()}, 200, "u2", "2"},
		"passed on": {[]string{down.URL(), down.URL(), mistake.URL()}, 422, "u3", "3"},
		"exhausted": {[]string{down.URL(), down.URL()}, 502, "", "2"},
	} {
		r := newRig(t, over("rules: [{match: {status: 422}, action: passthrough}]", c.urls...))
		got := r.post(chatPath, `{"model":"vm"}`)
		if got.Status != c.status || got.Get("X-Understudy-Candidate") != c.candidate || got.Get("X-Understudy-Attempts") != c.attempts || !strings.HasPrefix(got.Get("X-Understudy-Request-Id"), "req_") {
			t.Errorf("%s: %s", name, got.Head)
		}
		if records := r.settle(); records[0].ID != got.Get("X-Understudy-Request-Id") {
			t.Errorf("%s: booked as %s", name, records[0].ID)
		}
	}
}
