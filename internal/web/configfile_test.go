package web

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"understudy/internal/control"
)

// edit is the body of an edited text.
func edit(text string) string {
	body, _ := json.Marshal(map[string]string{"text": text})
	return string(body)
}

func TestConfigFile(t *testing.T) {
	r := newRig(t, models)
	a := r.ask("GET", "/api/config", "")
	tag := a.Header.Get("ETag")
	f := decode[control.ConfigFile](t, a)
	if a.StatusCode != 200 || tag != `"`+f.Hash+`"` || f.Format != "yaml" || !strings.Contains(f.Text, "sk-lit***1234") || strings.Contains(f.Text, "abcdefgh") || !strings.Contains(f.Text, "<script>") {
		t.Fatalf("%d %v %+v", a.StatusCode, a.Header, f)
	}
	type answer struct {
		OK           bool
		Error        string
		Hash         string
		Problems     []control.FileProblem
		NeedsRestart []string `json:"needs_restart"`
	}
	ask := func(method, path, body string, head ...string) (int, answer, http.Header) {
		t.Helper()
		a := r.ask(method, path, body, head...)
		return a.StatusCode, decode[answer](t, a), a.Header
	}
	bad := strings.Replace(f.Text, "name: a,", "nmae: a,", 1)
	good := strings.Replace(f.Text, "name: a,", "name: alpha, # still here\n       ", 1)

	if status, got, _ := ask("POST", "/api/config/check", edit(bad), jsonType, "If-Match: "+tag); status != 200 || got.OK || len(got.Problems) != 1 || got.Problems[0].Line != 4 || !strings.Contains(got.Problems[0].Cure, "name") {
		t.Errorf("%d %+v", status, got)
	}
	if status, got, _ := ask("POST", "/api/config/check", edit(good), jsonType, "If-Match: "+tag); status != 200 || !got.OK || got.Problems == nil {
		t.Errorf("%d %+v", status, got)
	}
	if status, got, _ := ask("PUT", "/api/config", edit(bad), jsonType, "If-Match: "+tag); status != 422 || got.OK || len(got.Problems) != 1 || !strings.Contains(got.Error, "line 4") {
		t.Errorf("%d %+v", status, got)
	}
	for _, test := range []struct {
		status int
		body   string
		head   []string
	}{
		{428, edit(good), []string{jsonType}},
		{428, edit(good), []string{jsonType, "If-Match: *"}},
		{412, edit(good), []string{jsonType, `If-Match: "0000"`}},
		{415, edit(good), []string{"If-Match: " + tag}},
		{415, edit(good), []string{"If-Match: " + tag, "Content-Type: text/plain"}},
		{400, `{"txt":"x"}`, []string{jsonType, "If-Match: " + tag}},
		{400, `{`, []string{jsonType, "If-Match: " + tag}},
		{413, edit(strings.Repeat("x", maxFile)), []string{jsonType, "If-Match: " + tag}},
		{403, edit(good), []string{jsonType, "If-Match: " + tag, "Origin: https://evil.example.com"}},
		{403, edit(good), []string{jsonType, "If-Match: " + tag, "Sec-Fetch-Site: cross-site"}},
	} {
		for _, target := range []string{"PUT /api/config", "POST /api/config/check"} {
			method, path, _ := strings.Cut(target, " ")
			if status, got, _ := ask(method, path, test.body, test.head...); status != test.status || got.Error == "" {
				t.Errorf("%s with %v: %d %+v, want %d", target, test.head, status, got, test.status)
			}
		}
	}
	status, got, head := ask("PUT", "/api/config", edit(good), jsonType, "If-Match: "+tag)
	if status != 200 || !got.OK || head.Get("ETag") != `"`+got.Hash+`"` || got.Hash == f.Hash || got.NeedsRestart == nil {
		t.Errorf("%d %+v %v", status, got, head)
	}
	file, err := os.ReadFile(f.Path)
	if err != nil || !strings.Contains(string(file), "name: alpha, # still here") || !strings.Contains(string(file), "sk-literal-abcdefghijklmnop1234") {
		t.Errorf("%v\n%s", err, file)
	}
	if status, _, _ := ask("PUT", "/api/config", edit(good), jsonType, "If-Match: "+tag); status != 412 {
		t.Errorf("an edit of the former file: %d", status)
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if a := r.ask("GET", "/api/config", ""); a.StatusCode != 500 || !strings.Contains(text(t, a), "error") {
		t.Errorf("without a file: %d", a.StatusCode)
	}
}

func TestCurves(t *testing.T) {
	r := newRig(t, models)
	r.book(success("one"))
	for query, want := range map[string]int{"": 60, "?span=10m": 60, "?span=6h&model=auto": 36, "?span=24h": 144, "?model=other": 60} {
		a := r.ask("GET", "/api/curves"+query, "")
		c := decode[control.Curves](t, a)
		if a.StatusCode != 200 || len(c.Successes) != want || len(c.Latency.P95) != want {
			t.Errorf("%s: %d, %d stretches", query, a.StatusCode, len(c.Successes))
		}
	}
	for query, want := range map[string]int{"?span=5m": 400, "?model=nobody": 404} {
		if a := r.ask("GET", "/api/curves"+query, ""); a.StatusCode != want {
			t.Errorf("%s: %d", query, a.StatusCode)
		}
	}
}
