package proxy

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"understudy/internal/drill"
)

// hostile are texts that try to be more than text: lines of a head or of a log, a
// terminal's commands, letters that turn a line around, a page's elements.
var hostile = []string{
	"a\r\nX-Evil: 1", "a\nX-Evil: 1\n", "a\rX-Evil: 1", "a\nlevel=ERROR msg=forged", "a\" level=ERROR msg=forged \"", "\x1b]0;owned\x07", "\x1b[2J\x1b[31mred", "\u009b31m", "a\u0085b", "a\u2028b\u2029c",
	"a\u202egpj.exe", "\u2066a\u2069", "a\x00b", "a\x7fb", `"><script>alert(1)</script>`, "%0d%0aX-Evil:%201", "a\\r\\nX-Evil: 1", strings.Repeat("\u202e", 400),
}

// harmless says what is wrong with a text that people are shown, "" if nothing is.
func harmless(text string) string {
	for _, c := range text {
		if c != '\n' && c != '\r' && (unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return fmt.Sprintf("%q is shown", c)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "level=ERROR msg=forged") || strings.HasPrefix(line, "X-Evil:") {
			return "a line that is not ours: " + line
		}
	}
	return ""
}

// Whatever a client calls a model, and whatever it asks for and says it is, is a text in
// our answers, in the log and in records, and in no head of anybody's.
func TestNothingIsInjectedByClients(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, over("server: {cors_origins: ["+listedOrigin+"]}", u.URL()))
	p := newRig(t, pool("", u.URL()))
	for _, text := range hostile {
		quoted, _ := json.Marshal(text)
		escaped := url.PathEscape(text)
		value := strings.NewReplacer("\r", "", "\n", "", "\x00", "", "\x7f", "").Replace(text)
		// What no header holds at all is refused by the server, unseen by us.
		holds := !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' })
		for name, q := range map[string]drill.Query{
			"a model":         {Path: "/v1/chat/completions", Body: fmt.Appendf(nil, `{"model":%s}`, quoted)},
			"a model, stream": {Path: "/v1/messages", Body: fmt.Appendf(nil, `{"stream":true,"model":%s}`, quoted)},
			"a path's model":  {Path: "/v1beta/models/" + escaped + ":generateContent", Body: []byte(`{}`)},
			"a path":          {Path: "/v1/" + escaped, Body: []byte(`{"model":"vm"}`)},
			"a query":         {Path: "/v1/chat/completions?x=" + url.QueryEscape(text), Body: []byte(`{"model":"vm"}`)},
			"a coding":        {Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"Content-Encoding", value}},
			"an origin":       {Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"Origin", "https://" + value}},
			"a session":       {Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"Session_id", value}},
			"an agent":        {Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"User-Agent", value}},
			"a delivery":      {Path: "/v1/chat/completions", Body: []byte(`{"model":"vm"}`), Header: []string{"X-Understudy-Delivery", value}},
		} {
			if len(q.Header) > 0 && !holds {
				continue
			}
			for _, rig := range []*rig{r, p} {
				got := rig.send(q)
				if got.Status == 0 || got.Get("X-Evil") != "" {
					t.Errorf("%s %q: client got %s %v", name, text, got.Head, got.Err)
				}
				if got.Status != 200 && !json.Valid(got.Body) {
					t.Errorf("%s %q: %d %q is no JSON", name, text, got.Status, got.Body)
				}
				if wrong := harmless(string(got.Head) + string(got.Body)); wrong != "" {
					t.Errorf("%s %q: client got %s%s: %s", name, text, got.Head, got.Body, wrong)
				}
			}
		}
	}
	for _, q := range u.Requests() {
		if q.Get("X-Evil") != "" || len(q.Values("Host")) != 1 {
			t.Errorf("upstream got\n%s", q.Head)
		}
	}
	for _, rig := range []*rig{r, p} {
		shown := rig.log.String()
		for _, rec := range rig.settle() {
			shown += rec.Path + rec.Model + rec.Client + rec.Method + "\n"
		}
		if wrong := harmless(shown); wrong != "" {
			t.Error(wrong)
		}
	}
}

// Whatever an upstream says in a failure is a text in the log, on the board, in records
// and in our answers.
func TestNothingIsInjectedByUpstreams(t *testing.T) {
	for _, text := range hostile {
		quoted, _ := json.Marshal(text)
		value := strings.NewReplacer("\r", "", "\n", "", "\x00", "", "\x7f", "").Replace(text)
		for name, script := range map[string]drill.Script{
			"a message": func(w *drill.Wire, _ drill.Request, _ int) {
				w.JSON(500, fmt.Appendf(nil, `{"error":{"message":%s,"code":%s,"type":%s,"param":%s}}`, quoted, quoted, quoted, quoted))
			},
			"text": func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(503, []byte(text)) },
			"a header": func(w *drill.Wire, _ drill.Request, _ int) {
				w.JSON(429, []byte(`{}`), "Retry-After", value, "X-Request-Id", value)
			},
			"a reason": func(w *drill.Wire, _ drill.Request, _ int) {
				w.Raw([]byte("HTTP/1.1 500 " + value + "\r\nContent-Length: 0\r\n\r\n"))
			},
			"no HTTP": func(w *drill.Wire, _ drill.Request, _ int) { w.Raw([]byte(text + "\r\n\r\n")); w.FIN() },
			"an event": func(w *drill.Wire, _ drill.Request, _ int) {
				w.SSE([][]byte{fmt.Appendf(nil, "data: {\"error\":{\"message\":%s}}\n\n", quoted)}, 0)
			},
			"a redirect": func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(302, drill.Length(0), "Location", "https://evil.example/"+value)
			},
		} {
			u := play(t, script)
			r := newRig(t, over("rules: [{match: {status: [500, 503, 429, 302, network, bad_stream]}, action: freeze}]", u.URL()))
			got := r.post("/v1/chat/completions", `{"model":"vm","stream":true}`)
			again := r.post("/v1/chat/completions", `{"model":"vm"}`)
			if got.Status != 502 || again.Status != 502 || !json.Valid(got.Body) || !json.Valid(again.Body) {
				t.Errorf("%s %q: client got %d %s, %d %s", name, text, got.Status, got.Body, again.Status, again.Body)
			}
			shown := fmt.Sprintf("%s%s%s%s\n%s\n%+v\n", got.Head, got.Body, again.Head, again.Body, r.log, r.handler.Board().Export(time.Now()))
			for _, rec := range r.settle() {
				for _, try := range rec.Tries {
					shown += fmt.Sprintf("%s %s\n", try.Class, try.Text)
				}
			}
			if wrong := harmless(shown); wrong != "" {
				t.Errorf("%s %q: %s in\n%s", name, text, wrong, shown)
			}
		}
	}
}
