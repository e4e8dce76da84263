package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"understudy/internal/stats"
)

// leaver is a client that closes its connection as soon as it has seen a certain
// text, within the very write that brought it.
type leaver struct {
	*httptest.ResponseRecorder
	at    string
	leave context.CancelFunc
}

func (l *leaver) Flush() {
	if strings.Contains(l.Body.String(), l.at) {
		l.leave()
	}
}

// Codex and others close the connection on the event that ends an answer, and do not
// wait for the body's end: they have taken a whole answer. Who leaves before that
// event has left.
func TestWhoTakesTheTerminalEventHasTakenAll(t *testing.T) {
	const terminal = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n"
	for at, want := range map[string]stats.Ending{"[DONE]": stats.Success, "PONG": stats.Cancelled} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, "virtual_models: {vm: [{base_url: \"http://u1\", api_key: sk-1, model: m}]}")
				b.upstream("u1", func(w http.ResponseWriter, r *http.Request, _ int) {
					w.Header().Set("Content-Type", "text/event-stream")
					for _, piece := range []string{said("PONG and so on"), terminal} {
						_, _ = w.Write([]byte(piece))
						w.(http.Flusher).Flush()
						synctest.Wait() // a write of its own for each
					}
					<-r.Context().Done() // the body's end does not come
				})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1:8787/v1/chat/completions", strings.NewReader(`{"model":"vm","stream":true}`))
				r.RequestURI = "/v1/chat/completions"
				func() {
					defer func() { _ = recover() }() // http.ErrAbortHandler
					b.handler.ServeHTTP(&leaver{httptest.NewRecorder(), at, leave}, r)
				}()
				latest := b.handler.Ledger().Latest(1, nil)
				if len(latest) != 1 || latest[0].Ending != want {
					t.Errorf("%+v, want %s", latest, want)
				}
			})
		})
	}
}
