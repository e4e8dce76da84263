package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestModelSpan(t *testing.T) {
	for _, c := range []struct{ body, model string }{
		{`{"model":"a"}`, "a"},
		{`{"stream":true, "model" : "a-b" }`, "a-b"},
		{`{"metadata":{"model":"no"},"tags":["model"],"model":"yes"}`, "yes"},
		{`{"text":"\"model\":\"no\\","model":"yes"}`, "yes"},
		{`{"role":"model"}`, ""},
		{`{"model":7}`, ""},
		{`{"model":"never ends`, ""},
		{``, ""},
	} {
		from, to, ok := modelSpan([]byte(c.body))
		if ok != (c.model != "") || ok && c.body[from:to] != c.model {
			t.Errorf("%s: [%d:%d] %v, want %q", c.body, from, to, ok, c.model)
		}
	}
}

// TestModesPassOn sends one request through each mode.
func TestModesPassOn(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append(body, `,"usage":{}`...))
	}))
	defer upstream.Close()
	u, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"bare": "m-alias", "lean": "m-alias", "splice": realModel} {
		h, err := handlerOf(mode, u)
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(h)
		resp, err := http.Post(front.URL, "application/json", strings.NewReader(`{"model":"m-alias"}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		front.Close()
		if string(got) != `{"model":"`+want+`"},"usage":{}` || err != nil {
			t.Errorf("%s: %s %v", mode, got, err)
		}
		if s, ok := h.(*splicer); ok && s.usage.Load() != 1 {
			t.Errorf("%s: usage found %d times", mode, s.usage.Load())
		}
	}
	if _, err := handlerOf("fast", u); err == nil {
		t.Error("a mode that is none is taken")
	}
}
