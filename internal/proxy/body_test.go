package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"understudy/internal/drill"
)

// oddBody is spelled so that any re-encoding shows: spacing, key order, numbers,
// escapes, a raw U+2028, a lone surrogate. %s stands where the model does.
const oddBody = "\t{ \"z\" :1,\"messages\":[ {\"content\":\"a <b> & c \u2028 \\u003c \\ud83d \\/ 渐🌍\" , \"role\":\"user\"}],\r\n" +
	" \"seed\":9007199254740993,\"temperature\":1.0,\"a\":1e-7, \"b\":-0,\"c\":1E+2,\"c\":null,\"model\"  :  %s ,\"nested\":{\"model\":\"vm\"}, \"stream\":false,\"aa\":[ ] }\n"

// Case 22: the body reaches the upstream as it came, byte for byte, but for the
// model's value; Content-Length is exact.
func TestBodyReachesTheUpstreamByteForByte(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, over("", u.URL()))
	big := strings.Repeat(`{"role":"user","content":"0123456789 \u00e9 <&>"}, `, 45_000)
	for name, c := range map[string][2]string{
		"odd spelling":             {fmt.Sprintf(oddBody, `"vm"`), fmt.Sprintf(oddBody, `"m1"`)},
		"an escaped value":         {fmt.Sprintf(oddBody, `"\u0076\u006D"`), fmt.Sprintf(oddBody, `"m1"`)},
		"spaces around the name":   {fmt.Sprintf(oddBody, `"  vm "`), fmt.Sprintf(oddBody, `"m1"`)},
		"an escaped key":           {`{"mod\u0065l":"vm","x":1}`, `{"mod\u0065l":"m1","x":1}`},
		"the key twice":            {`{"model":"other","x":1,"model":"vm"}`, `{"model":"m1","x":1,"model":"m1"}`},
		"plain and escaped":        {`{"\u006dodel":{"a":[1]},"model":"vm"}`, `{"\u006dodel":"m1","model":"m1"}`},
		"a key of another type":    {`{"model":17,"model":"vm"}`, `{"model":"m1","model":"m1"}`},
		"a key in other case":      {`{"model":"vm","Model":"gpt-9"}`, `{"model":"m1","Model":"m1"}`},
		"two megabytes":            {`{"messages":[` + big + `1],"model":"vm"}`, `{"messages":[` + big + `1],"model":"m1"}`},
		"text that names a model":  {`{"model":"vm","input":"{\"model\":\"vm\"}"}`, `{"model":"m1","input":"{\"model\":\"vm\"}"}`},
		"invalid UTF-8":            {"{\"model\":\"vm\",\"input\":\"a\xff\xfeb\"}", "{\"model\":\"m1\",\"input\":\"a\xff\xfeb\"}"},
		"nothing but the model":    {`{"model":"vm"}`, `{"model":"m1"}`},
		"no white space at all":    {`{"a":[],"model":"vm","b":{}}`, `{"a":[],"model":"m1","b":{}}`},
		"a number like no integer": {`{"model":"vm","n":123456789012345678901234567890.10e+05}`, `{"model":"m1","n":123456789012345678901234567890.10e+05}`},
	} {
		t.Run(name, func(t *testing.T) {
			before := u.Count()
			got := r.post("/v1/embeddings", c[0])
			if got.Status != 200 {
				t.Fatalf("client got %d %s", got.Status, got.Body)
			}
			if u.Count() != before+1 {
				t.Fatalf("%d calls", u.Count()-before)
			}
			q := u.Requests()[before]
			if string(q.Body) != c[1] {
				t.Errorf("upstream got\n%q, want\n%q", brief(string(q.Body)), brief(c[1]))
			}
			if n := q.Values("Content-Length"); len(n) != 1 || n[0] != fmt.Sprint(len(c[1])) || q.Get("Transfer-Encoding") != "" {
				t.Errorf("framing: Content-Length %q, Transfer-Encoding %q, want a length of %d", n, q.Get("Transfer-Encoding"), len(c[1]))
			}
		})
	}
}

// A model's name that needs escapes in JSON, or in a path, never breaks out of its
// place.
func TestModelIsEscapedWhereItGoes(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, "virtual_models: {vm: [{base_url: \""+u.URL()+"\", api_key: sk-upstream-secret-1, model: 'a/b\"c\\d:e <x>&y?z#é%2F'}]}")
	if got := r.post("/v1/embeddings", `{"model":"vm","input":"x"}`); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if got := r.post("/v1beta/models/vm:generateContent?a=%2F", `{"contents":[]}`); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	all := u.Requests()
	if want := `{"model":"a/b\"c\\d:e <x>&y?z#é%2F","input":"x"}`; string(all[0].Body) != want {
		t.Errorf("body %s, want %s", all[0].Body, want)
	}
	if want := "/v1beta/models/a%2Fb%22c%5Cd%3Ae%20%3Cx%3E%26y%3Fz%23%C3%A9%252F:generateContent?a=%2F"; all[1].Target != want {
		t.Errorf("target %s, want %s", all[1].Target, want)
	}
}

// coded gives a body in a content coding.
func coded(t *testing.T, coding, body string) string {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Case 24: a coded body is decoded for routing and for the session key, and goes on
// decoded, with its new length and without the header.
func TestCodedBodyIsForwardedDecoded(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, over("", u.URL()))
	plain := "{ \"model\":\"vm\",\"stream\":true,\"prompt_cache_key\":\"k1\",\"input\":\"" + strings.Repeat("hello ", 4000) + "\"}"
	want := strings.Replace(plain, `"vm"`, `"m1"`, 1)
	twice := coded(t, "gzip", coded(t, "zstd", plain))
	for name, c := range map[string]struct {
		body   string
		header []string
	}{
		"zstd":              {coded(t, "zstd", plain), []string{"Content-Encoding", "zstd"}},
		"gzip":              {coded(t, "gzip", plain), []string{"Content-Encoding", "gzip"}},
		"gzip in capitals":  {coded(t, "gzip", plain), []string{"content-encoding", "GZIP"}},
		"x-gzip":            {coded(t, "gzip", plain), []string{"Content-Encoding", "x-gzip"}},
		"br":                {coded(t, "br", plain), []string{"Content-Encoding", "br"}},
		"deflate":           {coded(t, "deflate", plain), []string{"Content-Encoding", "deflate"}},
		"identity":          {plain, []string{"Content-Encoding", "identity"}},
		"two in a line":     {twice, []string{"Content-Encoding", "zstd, gzip"}},
		"two in two lines":  {twice, []string{"Content-Encoding", "zstd", "Content-Encoding", "gzip"}},
		"chunked with zstd": {coded(t, "zstd", plain), []string{"Content-Encoding", "zstd"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := u.Count()
			got := r.send(drill.Query{Path: "/v1/responses", Body: []byte(c.body), Header: c.header, Chunked: strings.HasPrefix(name, "chunked"), Piece: 700})
			if got.Status != 200 || !got.Clean {
				t.Fatalf("client got %d %s", got.Status, got.Body)
			}
			q := u.Requests()[before]
			if string(q.Body) != want {
				t.Errorf("upstream got %q", brief(string(q.Body)))
			}
			if v := q.Values("Content-Encoding"); len(v) != 0 || q.Get("Content-Length") != fmt.Sprint(len(want)) {
				t.Errorf("Content-Encoding %q, Content-Length %q", v, q.Get("Content-Length"))
			}
		})
	}
}

// Case 24: the session key inside a coded body still chooses the upstream.
func TestCodedBodyKeepsItsSession(t *testing.T) {
	a, b := play(t, drill.Healthy(drill.Answer{})), play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("", a.URL(), b.URL()))
	for i := range 8 {
		body := fmt.Sprintf(`{"model":"x","input":"hi","prompt_cache_key":"session %d"}`, i)
		first := a.Count()
		r.post("/v1/responses", body)
		viaA := a.Count() > first
		second := a.Count()
		r.post("/v1/responses", coded(t, "zstd", body), "Content-Encoding", "zstd")
		if (a.Count() > second) != viaA {
			t.Errorf("session %d went elsewhere when its body was coded", i)
		}
	}
	if a.Count() == 0 || b.Count() == 0 {
		t.Errorf("%d and %d calls: the keys do not spread", a.Count(), b.Count())
	}
}

// zstdBomb is a frame of 32 KiB that inflates to 1 GiB: 8192 blocks that each repeat
// one byte 128 Ki times (RFC 8878, 3.1.1.2).
var zstdBomb = "\x28\xb5\x2f\xfd\x00\x68" + strings.Repeat("\x02\x00\x10 ", 8191) + "\x03\x00\x10 "

// Case 24: what does not decode is the client's mistake: nobody is called, and it is
// never a 502.
func TestUndecodableBodyIsRefused(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, over("server: {max_body_bytes: 1048576}", u.URL()))
	good := coded(t, "zstd", `{"model":"vm","input":"`+strings.Repeat("hello ", 1000)+`"}`)
	for name, c := range map[string]struct {
		coding, body string
		status       int
		words        string
	}{
		"unknown":           {"foo", `{"model":"vm"}`, 415, "foo"},
		"unknown among two": {"gzip, foo", coded(t, "gzip", `{"model":"vm"}`), 415, "foo"},
		"corrupt frame":     {"zstd", good[:len(good)/2] + "\x00\x01\x02" + good[len(good)/2+3:], 400, "zstd"},
		"cut frame":         {"zstd", good[:len(good)-5], 400, "zstd"},
		"another coding":    {"gzip", good, 400, "gzip"},
		"plain text":        {"gzip", `{"model":"vm"}`, 400, "gzip"},
		"a zstd bomb":       {"zstd", zstdBomb, 413, "max_body_bytes"},
		"a gzip bomb":       {"gzip", coded(t, "gzip", strings.Repeat("\x00", 4<<20)), 413, "max_body_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			for path, envelope := range map[string]string{"/v1/responses": `"error":{`, "/v1/messages": `"type":"error"`, "/v1beta/models/vm:generateContent": `"status":"`, "/api/chat": `{"code":`} {
				r.fails(r.post(path, c.body, "Content-Encoding", c.coding), c.status, c.words, envelope)
			}
		})
	}
	uncalled(t, u)
}

// Where only a pool can serve and no model is replaced, a coding that nobody here
// knows goes on as it came; a broken one is refused all the same.
func TestPoolForwardsAnUnknownCoding(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("", u.URL()))
	body := "\x00\x01opaque"
	if got := r.post("/v1/responses", body, "Content-Encoding", "foo"); got.Status != 200 {
		t.Fatalf("client got %d %s", got.Status, got.Body)
	}
	if q := only(t, u); string(q.Body) != body || q.Get("Content-Encoding") != "foo" {
		t.Errorf("upstream got %q coded %q", q.Body, q.Get("Content-Encoding"))
	}
	r.fails(r.post("/v1/responses", "no gzip", "Content-Encoding", "gzip"), 400)
	if u.Count() != 1 {
		t.Errorf("%d calls", u.Count())
	}

	named := play(t, drill.Healthy(drill.Answer{}))
	r = newRig(t, "pool: {}\nupstream: [{id: a, base_url: \""+named.URL()+"\", model: m1}]")
	r.fails(r.post("/v1/responses", body, "Content-Encoding", "foo"), 415)
	uncalled(t, named)
}

// A stream that the path asks for is a stream whatever the body is coded in.
func TestUnknownCodingKeepsWhatThePathAsks(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, pool("", u.URL()))
	r.post("/v1beta/models/g:streamGenerateContent?alt=sse", "opaque", "Content-Encoding", "foo")
	if records := r.settle(); len(records) != 1 || !records[0].Stream {
		t.Errorf("records %+v", records)
	}
}
