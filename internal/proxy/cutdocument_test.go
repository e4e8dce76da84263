package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

// secured answers every request over TLS with these bytes, and ends the connection with
// a close_notify, or without one.
func secured(t *testing.T, bytes string, notify bool) (url string, trusted *tls.Config) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	certified.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					t.Error(err)
				}
				if _, err := c.Write([]byte(bytes)); err != nil {
					t.Error(err)
				}
				if !notify {
					c.(*tls.Conn).NetConn().Close()
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return "https://" + l.Addr().String(), certified.Client().Transport.(*http.Transport).TLSClientConfig
}

// Over TLS the end of a connection says whether its peer has made it. An answer that
// nothing else ends is whole with a close_notify and cut without one; what has an end of
// its own needs none.
func TestAnEndWithoutCloseNotifyIsACut(t *testing.T) {
	const (
		ok      = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
		text    = ok + "Content-Type: text/plain\r\n\r\nfirst half of it, "
		events  = ok + "Content-Type: text/event-stream\r\n\r\n"
		said    = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four words are said\"}}]}\n\n"
		ended   = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
		refusal = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
	)
	for name, c := range map[string]struct {
		path, body, bytes string
		own               bool // it has an end of its own
	}{
		"text":                   {"/v1/audio/speech", `{"model":"vm","input":"x"}`, text, false},
		"an unknown endpoint":    {"/v1/foo", `{"model":"vm"}`, text, false},
		"a coding nobody knows":  {"/v1/foo", `{"model":"vm"}`, ok + "Content-Encoding: x-own\r\n\r\nabc", false},
		"events without an end":  {"/v1/foo", `{"model":"vm"}`, events + "data: {\"a\":1}\n\n", false},
		"a stream with its end":  {"/v1/chat/completions", `{"model":"vm","stream":true}`, events + said + ended, true},
		"a document":             {"/v1/chat/completions", `{"model":"vm"}`, ok + "Content-Type: application/json\r\n\r\n" + okChat, true},
		"a document, unjudged":   {"/v1/embeddings", `{"model":"vm"}`, ok + "Content-Type: application/json\r\n\r\n{\"data\":[]}", true},
		"a length":               {"/v1/foo", `{"model":"vm"}`, ok + "Content-Length: 3\r\n\r\nabc", true},
		"chunks":                 {"/v1/foo", `{"model":"vm"}`, ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true},
		"a refusal that is JSON": {"/v1/foo", `{"model":"vm"}`, refusal + "\r\n{\"error\":{\"message\":\"no\"}}", true},
	} {
		for _, notify := range []bool{true, false} {
			url, trusted := secured(t, c.bytes, notify)
			r := newRig(t, "rules: [{match: {status: 400}, action: passthrough}]\n"+over("", url))
			wires := r.handler.transports.get("")
			wires.pooled.TLSClientConfig, wires.fresh.TLSClientConfig = trusted.Clone(), trusted.Clone()
			got := r.post(c.path, c.body)
			whole := got.Clean && got.Status < 500
			if whole != (c.own || notify) {
				t.Errorf("%s, close_notify %v: %d %q, clean %v", name, notify, got.Status, got.Body, got.Clean)
			}
		}
	}
}
