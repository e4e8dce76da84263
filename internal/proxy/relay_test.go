package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/probe"
	"understudy/internal/wire"
)

// An eventBody gives one event each time it is read.
type eventBody struct {
	event string
	left  int
	end   string
}

func (b *eventBody) Read(p []byte) (int, error) {
	if b.left > 0 {
		b.left--
		return copy(p, b.event), nil
	}
	n := copy(p, b.end)
	b.end = ""
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *eventBody) Close() error { return nil }

// A countingWriter is a client that takes everything at once.
type countingWriter struct {
	header  http.Header
	bytes   int
	flushed int
}

func (w *countingWriter) Header() http.Header { return w.header }
func (w *countingWriter) WriteHeader(int)     {}
func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}
func (w *countingWriter) FlushError() error                { w.flushed++; return nil }
func (w *countingWriter) SetWriteDeadline(time.Time) error { return nil }

// What a stream costs once it is released does not grow with its events: each is read,
// looked at, sent and flushed, with every clock running, without an allocation.
func TestRelayingAllocatesNothingForAnEvent(t *testing.T) {
	const few, more = 50, 2000
	for name, c := range map[string]struct {
		kind       wire.Kind
		event, end string
	}{
		"chat":     {wire.Chat, string(benchDelta), stop + done},
		"messages": {wire.Messages, textDelta("a word of it"), messageEnd("end_turn")},
		"ollama":   {wire.OllamaChat, ollamaLine("a word of it", ""), ollamaLine("", "stop")},
	} {
		t.Run(name, func(t *testing.T) {
			contentType := sseType
			if name == "ollama" {
				contentType = "application/x-ndjson"
			}
			allocations := func(events int) float64 {
				return testing.AllocsPerRun(5, func() {
					budget := probe.Budget{Stall: time.Hour, Total: time.Hour, Hold: 1 << 20}
					clock := probe.NewClock(t.Context(), &budget)
					resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, ContentLength: -1,
						Body: &eventBody{event: c.event, left: events, end: c.end}}
					ask := probe.Ask{Method: "POST", Want: wire.Want{Kind: c.kind, Stream: true, MinChars: 10, Judged: true, ErrorIsFailure: true}}
					x, failure := probe.Judge(clock, resp, &ask, &budget)
					if failure != nil {
						t.Fatalf("%+v", failure)
					}
					defer x.Close()
					w := &countingWriter{header: http.Header{}}
					n, err := relay(t.Context(), w, x, delivery{stall: time.Hour, writeIdle: time.Hour})
					if want := len(strings.Repeat(c.event, events)) + len(c.end); err != nil || x.Ending() != probe.Whole || int(n) != want || w.bytes != want || w.flushed < events-10 {
						t.Errorf("%d of %d bytes in %d pieces, ending %v, %v", w.bytes, want, w.flushed, x.Ending(), err)
					}
				})
			}
			if each := (allocations(few+more) - allocations(few)) / more; each > 0.1 { // what other goroutines of the tests allocate counts too
				t.Errorf("%.2f allocations for an event", each)
			}
		})
	}
}
