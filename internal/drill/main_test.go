package drill

import (
	"bytes"
	"context"
	"mime/multipart"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"understudy/internal/upstreamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask is one way to ask for an answer that has text.
type ask struct {
	name  string
	query Query
}

// asks are all forms in which a model is asked to say something.
var asks = []ask{
	{"chat stream", post("/v1/chat/completions", `{"model":"m1","stream":true,"stream_options":{"include_usage":true},"messages":[]}`)},
	{"chat", post("/v1/chat/completions", `{"model":"m1","messages":[]}`)},
	{"completions stream", post("/v1/completions", `{"model":"m1","stream":true,"prompt":"x"}`)},
	{"completions", post("/v1/completions", `{"model":"m1","prompt":"x"}`)},
	{"responses stream", post("/v1/responses", `{"model":"m1","stream":true,"input":"x"}`)},
	{"responses", post("/v1/responses", `{"model":"m1","input":"x"}`)},
	{"messages stream", post("/v1/messages", `{"model":"m1","stream":true,"messages":[]}`)},
	{"messages", post("/v1/messages", `{"model":"m1","messages":[]}`)},
	{"gemini sse", post("/v1beta/models/m1:streamGenerateContent?alt=sse", `{"contents":[]}`)},
	{"gemini array", post("/v1beta/models/m1:streamGenerateContent", `{"contents":[]}`)},
	{"gemini", post("/v1beta/models/m1:generateContent", `{"contents":[]}`)},
	{"ollama chat stream", post("/api/chat", `{"model":"m1","messages":[]}`)},
	{"ollama chat", post("/api/chat", `{"model":"m1","stream":false,"messages":[]}`)},
	{"ollama generate stream", post("/api/generate", `{"model":"m1","prompt":"x"}`)},
	{"ollama generate", post("/api/generate", `{"model":"m1","stream":false,"prompt":"x"}`)},
	{"transcription stream", upload("/v1/audio/transcriptions", "model", "m1", "stream", "true")},
	{"transcription", upload("/v1/audio/transcriptions", "model", "m1")},
}

func (a ask) streams() bool {
	return strings.Contains(a.name, "stream") || strings.Contains(a.name, "sse") || strings.Contains(a.name, "array")
}

// request returns the request that the query is.
func (a ask) request() Request {
	r := NewRequest("POST", a.query.Path, a.query.Body)
	r.Header = fields(func() (lines []string) {
		for i := 0; i < len(a.query.Header); i += 2 {
			lines = append(lines, a.query.Header[i]+": "+a.query.Header[i+1])
		}
		return lines
	}())
	return r
}

func post(path, body string) Query { return Query{Path: path, Body: []byte(body)} }

// upload returns a form with the given parts and a file.
func upload(path string, parts ...string) Query {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	w.SetBoundary("drill-boundary")
	for i := 0; i < len(parts); i += 2 {
		w.WriteField(parts[i], parts[i+1])
	}
	f, _ := w.CreateFormFile("file", "speech.wav")
	f.Write([]byte("RIFF\x00\x01"))
	w.Close()
	return Query{Path: path, Body: b.Bytes(), Header: []string{"Content-Type", w.FormDataContentType()}}
}

// theatre is an upstream in memory and clients for it.
type theatre struct {
	*Upstream
	net *upstreamtest.Net
}

// stageOn starts script on a network in memory; the test ends it.
func stageOn(t *testing.T, script Script) *theatre {
	t.Helper()
	n := upstreamtest.NewNet()
	u := StartOn(n.Listen("u1.test:80"), script)
	t.Cleanup(u.Close)
	return &theatre{u, n}
}

// client returns a connection to the upstream.
func (th *theatre) client(t *testing.T) *Client {
	t.Helper()
	c, err := th.net.DialContext(t.Context(), "tcp", th.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return NewClient(c, th.Addr())
}

// ask sends q on a connection of its own.
func (th *theatre) ask(t *testing.T, ctx context.Context, q Query) Reply {
	t.Helper()
	c := th.client(t)
	defer c.Close()
	return c.Ask(ctx, q)
}

var _ net.Conn = (*upstreamtest.Conn)(nil)
