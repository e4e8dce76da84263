package proxy

import (
	"fmt"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// A JSON document whose connection ends inside of it is cut, on whatever endpoint: the
// next candidate answers, and where there is none nobody takes it for whole. What is
// framed otherwise, or is no JSON, is as the upstream means it.
func TestADocumentThatIsCutIsNoAnswer(t *testing.T) {
	const part, whole = `{"object":"list","data":[{"embedding":[0.1,0.2`, `{"object":"list","data":[]}`
	plain := func(status int) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(status, []byte(whole)) }
	}
	for name, c := range map[string]struct {
		head string
		body string
		next bool
	}{
		"until the connection ends": {"Content-Type: application/json\r\nConnection: close\r\n", part, true},
		"with a parameter":          {"Content-Type: application/vnd.api+json; charset=utf-8\r\nConnection: close\r\n", part, true},
		"whole":                     {"Content-Type: application/json\r\nConnection: close\r\n", whole + "\n", false},
		"lines":                     {"Content-Type: application/json\r\nConnection: close\r\n", whole + "\n" + whole, false},
		"text":                      {"Content-Type: text/plain\r\nConnection: close\r\n", "[INFO] a line", false},
		"a length":                  {"Content-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(part)) + "\r\n", part, false},
	} {
		u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
			w.Raw([]byte("HTTP/1.1 200 OK\r\n" + c.head + "\r\n" + c.body))
			w.FIN()
		})
		v := play(t, plain(200))
		r := newRig(t, "rules: []\n"+over("", u.URL(), v.URL()))
		for _, path := range []string{"/v1/embeddings", "/v1/messages/count_tokens", "/v1/images/generations"} {
			got := r.post(path, `{"model":"vm","input":"x"}`)
			want := c.body
			if c.next {
				want = whole
			}
			if got.Status != 200 || string(got.Body) != want || !got.Clean {
				t.Errorf("%s %s: %d %q, clean %v", name, path, got.Status, got.Body, got.Clean)
			}
		}
		if c.next {
			got := newRig(t, "rules: []\n"+over("", u.URL())).post("/v1/embeddings", `{"model":"vm","input":"x"}`)
			if got.Status != 502 || strings.Contains(string(got.Body), "embedding") {
				t.Errorf("%s, alone: %d %s", name, got.Status, got.Body)
			}
		}
	}
}
