package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// pack codes text, piece by piece: what a flush makes readable ends with each.
func pack(t *testing.T, coding string, pieces ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "raw deflate":
		w, _ = flate.NewWriter(&out, flate.BestSpeed)
	case "br":
		w = brotli.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	for _, p := range pieces {
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sendCoded sends a whole body in a coding.
func sendCoded(kind, coding string, body []byte) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Length(len(body)), "Content-Type", kind, "Content-Encoding", coding)
		w.Chunk(body)
		w.End()
	}
}

// codings are the names of content codings and how a body is packed in each.
var codings = map[string]string{"gzip": "gzip", "x-gzip": "gzip", "GZip": "gzip", "deflate": "deflate", "deflate ": "raw deflate", "br": "br", "zstd": "zstd"}

// An answer that comes coded all the same is judged by what it says. The client gets
// the bytes as they came, with their header, if it allows the coding, and plain ones
// without it if not.
func TestCodedAnswers(t *testing.T) {
	for name, packing := range codings {
		coding := strings.TrimSpace(name)
		for _, c := range []struct {
			kind, body, empty, failed string
			stream                    bool
		}{
			{sseType, okSSE, role + done, role + data(`{"error":{"message":"gone","code":503}}`), true},
			{jsonType, okChat, `{"choices":[]}`, `{"error":{"message":"gone","code":503}}`, false},
		} {
			sent := requestFor(chatPath, c.stream)
			packed := pack(t, packing, c.body)
			inBubble(t, name+", "+c.kind+", allowed", func(t *testing.T) {
				s := newStage(t, "", sendCoded(c.kind, coding, packed))
				got := s.ask("POST", chatPath, sent, "Accept-Encoding", "identity;q=0.1, "+strings.TrimPrefix(coding, "x-"))
				s.expect(sent, got, outcome{body: string(packed), winner: 1, calls: []int{1}, ending: stats.Success})
				if got.header.Get("Content-Encoding") != coding {
					t.Errorf("headers %v", got.header)
				}
				if accept := s.up[0].Requests()[0].Values("Accept-Encoding"); len(accept) != 1 || accept[0] != "identity" {
					t.Errorf("the upstream was asked for %q", accept)
				}
			})
			inBubble(t, name+", "+c.kind+", not allowed", func(t *testing.T) {
				s := newStage(t, "", sendCoded(c.kind, coding, packed))
				got := s.ask("POST", chatPath, sent)
				s.expect(sent, got, outcome{body: c.body, winner: 1, calls: []int{1}, ending: stats.Success})
				if got.header.Get("Content-Encoding") != "" {
					t.Errorf("headers %v", got.header)
				}
			})
			for what, body := range map[string]string{"empty": c.empty, "failed": c.failed} {
				for _, accept := range []string{coding, "identity"} {
					inBubble(t, name+", "+c.kind+", "+what+", for "+accept, func(t *testing.T) {
						s := newStage(t, "", sendCoded(c.kind, coding, pack(t, packing, body)), page(c.kind, c.body))
						got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
						s.expect(sent, got, outcome{body: c.body, winner: 2, calls: []int{1, 1}, ending: stats.Success})
					})
				}
			}
		}
	}
}

// What does not decode, or not to its end, is bad; what the connection cut is cut.
func TestDamagedCodings(t *testing.T) {
	for name, packing := range codings {
		coding := strings.TrimSpace(name)
		packed := pack(t, packing, okChat)
		damaged := bytes.Clone(packed)
		for i := len(damaged) / 3; i < len(damaged)/3+12; i++ {
			damaged[i] ^= 0xff
		}
		for what, c := range map[string]struct {
			script   drill.Script
			verdicts string
			calls    int
			took     time.Duration
		}{
			"damaged": {sendCoded(jsonType, coding, damaged), "failed bad_stream, ok", 1, 0},
			"no such": {sendCoded(jsonType, coding, []byte(okChat)), "failed bad_stream, ok", 1, 0},
			"cut":     {sendCoded(jsonType, coding, packed[:len(packed)/2]), "failed bad_stream, ok", 1, 0},
			"cut by the connection": {func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Length(len(packed)), "Content-Type", jsonType, "Content-Encoding", coding)
				w.Chunk(packed[:len(packed)/2])
				w.FIN()
			}, "failed network, failed network, ok", 2, 1500 * time.Millisecond},
		} {
			for _, accept := range []string{coding, "identity"} {
				inBubble(t, name+", "+what+", for "+accept, func(t *testing.T) {
					s := newStage(t, "", c.script, page(jsonType, okChat))
					sent := requestFor(chatPath, false)
					got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
					s.expect(sent, got, outcome{body: okChat, winner: 2, calls: []int{c.calls, 1}, took: c.took, ending: stats.Success})
					if got := s.verdicts(); got != c.verdicts {
						t.Errorf("verdicts %q, want %q", got, c.verdicts)
					}
				})
			}
		}
	}
}

// A coded stream is judged and passed on event by event, and what breaks it behind
// its release breaks it for the client.
func TestCodedStreams(t *testing.T) {
	events := []string{role, said("one two three"), said("four"), finish("stop") + done}
	for _, packing := range []string{"gzip", "deflate", "raw deflate", "br", "zstd"} {
		coding := strings.TrimPrefix(packing, "raw ")
		packed := pack(t, packing, events...)
		// Where each event's flush ends.
		var ends []int
		for i := range events {
			p := pack(t, packing, events[:i+1]...)
			n := 0
			for n < len(p) && n < len(packed) && p[n] == packed[n] {
				n++
			}
			ends = append(ends, n)
		}
		ends[len(ends)-1] = len(packed)
		slow := func(end func(*drill.Wire), upto int) drill.Script {
			return func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", coding)
				from := 0
				for _, to := range ends[:upto] {
					w.Chunk(packed[from:to])
					w.Pause(time.Second)
					from = to
				}
				end(w)
			}
		}
		for _, accept := range []string{coding, "identity"} {
			want := func(upto int) string {
				if accept == coding {
					return string(packed[:ends[upto-1]])
				}
				return strings.Join(events[:upto], "")
			}
			sent := requestFor(chatPath, true)
			inBubble(t, packing+" for "+accept+", whole", func(t *testing.T) {
				s := newStage(t, "", slow(func(w *drill.Wire) { w.End() }, 4))
				got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
				s.expect(sent, got, outcome{body: want(4), winner: 1, calls: []int{1}, took: 4 * time.Second, ending: stats.Success})
				if len(got.at) < 3 || got.at[0] != time.Second || got.at[1] != 2*time.Second || got.at[2] != 3*time.Second {
					t.Errorf("events came at %v", got.at)
				}
			})
			for what, end := range map[string]func(*drill.Wire){"cut": func(w *drill.Wire) { w.FIN() }, "a clean end": func(w *drill.Wire) { w.End() }, "garbage": func(w *drill.Wire) {
				w.Chunk(bytes.Repeat([]byte{0xff, 0x07}, 40))
				w.End()
			}} {
				inBubble(t, packing+" for "+accept+", "+what+" after release", func(t *testing.T) {
					s := newStage(t, "", slow(end, 2), page(sseType, okSSE))
					got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
					if !strings.HasPrefix(got.body, want(2)) || got.err == nil || s.up[1].Count() != 0 {
						t.Errorf("client got %q, %v; u2 was called %d times", got.body, got.err, s.up[1].Count())
					}
					if r := s.record(); r.Ending != stats.Broken {
						t.Errorf("booked as %v", r.Ending)
					}
				})
			}
		}
	}
}

// Which codings a client allows (RFC 9110 12.5.3): a name goes before the asterisk,
// and q=0 forbids. Without the header it gets plain bytes.
func TestWhichCodingAClientAllows(t *testing.T) {
	packed := string(pack(t, "gzip", okChat))
	for accept, want := range map[string]string{
		"gzip": packed, "GZIP": packed, "deflate, gzip;q=0.5": packed, "*": packed, "*;q=0.1": packed, "x-gzip": packed, "br , gzip ; q=1.0": packed,
		"": okChat, "identity": okChat, "br": okChat, "gzip;q=0": okChat, "gzip;q=0.0, *": okChat, "*, gzip;q=0": okChat, "*;q=0": okChat, "gzipped": okChat,
	} {
		inBubble(t, accept, func(t *testing.T) {
			s := newStage(t, "", sendCoded(jsonType, "gzip", []byte(packed)))
			sent := requestFor(chatPath, false)
			got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
			s.expect(sent, got, outcome{body: want, winner: 1, calls: []int{1}, ending: stats.Success})
		})
	}
}

// An answer in several codings is undone as a whole, or passed on as a whole.
func TestSeveralCodings(t *testing.T) {
	twice := pack(t, "zstd", string(pack(t, "gzip", okChat)))
	for accept, want := range map[string]string{"gzip, zstd": string(twice), "gzip": okChat, "zstd": okChat, "br": okChat} {
		inBubble(t, accept, func(t *testing.T) {
			s := newStage(t, "", sendCoded(jsonType, "gzip, zstd", twice))
			sent := requestFor(chatPath, false)
			got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
			s.expect(sent, got, outcome{body: want, winner: 1, calls: []int{1}, ending: stats.Success})
		})
	}
}

// A coding that nobody here knows is passed on unread to a client that allows it:
// what is not understood is never failed. To any other client it is no answer.
func TestACodingNobodyKnows(t *testing.T) {
	inBubble(t, "allowed", func(t *testing.T) {
		s := newStage(t, "", sendCoded(sseType, "dcb", []byte("\xff\xfe whatever")), frames(okSSE))
		sent := requestFor(chatPath, true)
		got := s.ask("POST", chatPath, sent, "Accept-Encoding", "gzip, dcb")
		s.expect(sent, got, outcome{body: "\xff\xfe whatever", winner: 1, calls: []int{1, 0}, ending: stats.Success})
	})
	inBubble(t, "not allowed", func(t *testing.T) {
		s := newStage(t, "", sendCoded(sseType, "dcb", []byte("\xff\xfe whatever")), frames(okSSE))
		sent := requestFor(chatPath, true)
		got := s.ask("POST", chatPath, sent, "Accept-Encoding", "gzip")
		s.expect(sent, got, outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
		if got := s.verdicts(); got != "failed bad_stream, ok" {
			t.Errorf("verdicts %q", got)
		}
	})
}

// Coded bytes that do not say so are no text.
func TestCodedBytesWithoutTheirHeader(t *testing.T) {
	for _, packing := range []string{"gzip", "zstd"} {
		for _, stream := range []bool{false, true} {
			inBubble(t, packing, func(t *testing.T) {
				s := newStage(t, "", page(jsonType, string(pack(t, packing, okChat))), page(jsonType, okChat))
				sent := requestFor(chatPath, stream)
				s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{1, 1}, ending: stats.Success})
				if got := s.verdicts(); got != "failed bad_stream, ok" {
					t.Errorf("verdicts %q", got)
				}
			})
		}
	}
}

// A refusal that comes coded is read by the rules decoded, and goes to the client as
// every answer does.
func TestCodedRefusals(t *testing.T) {
	body := `{"error":{"message":"the frobnicator is full"}}`
	packed := pack(t, "gzip", body)
	script := func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(418, drill.Length(len(packed)), "Content-Type", jsonType, "Content-Encoding", "gzip")
		w.Chunk(packed)
		w.End()
	}
	for accept, want := range map[string]string{"gzip": string(packed), "identity": body} {
		inBubble(t, "passed through, for "+accept, func(t *testing.T) {
			s := newStage(t, `rules: [{match: {body_regex: "frobnicator"}, action: passthrough}]`, script, frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
			s.expect(sent, got, outcome{status: 418, body: want, winner: 1, calls: []int{1, 0}, ending: stats.PassedThrough})
		})
	}
	for _, accept := range []string{"gzip", "identity"} {
		inBubble(t, "a page, for "+accept, func(t *testing.T) {
			s := newStage(t, `rules: [{match: {status: bad_stream, body_regex: "Enable JavaScript"}, action: freeze, freeze_seconds: 20}]`,
				sendCoded("text/html", "gzip", pack(t, "gzip", challenge)), frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent, "Accept-Encoding", accept)
			s.expect(sent, got, outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
			if f := s.handler.Board().Freezes(time.Now()); len(f) != 1 {
				t.Errorf("freezes %+v", f)
			}
		})
	}
}

// An answer that is held until it is whole may have a plain head sent ahead of it:
// then no coded bytes follow.
func TestCodedAnswersThatAreDeliveredWhole(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", "gzip")
			w.Chunk(pack(t, "gzip", okSSE[:200]))
			w.Pause(40 * time.Second)
			w.Chunk(pack(t, "gzip", okSSE[200:]))
			w.End()
		})
		got := s.ask("POST", chatPath, requestFor(chatPath, true), "Accept-Encoding", "gzip", "X-Understudy-Delivery", "complete")
		if comments, ok := strings.CutSuffix(got.body, okSSE); !ok || strings.Count(comments, ": ") != 2 || got.err != nil || got.header.Get("Content-Encoding") != "" {
			t.Errorf("client got %q with %v, %v", got.body, got.header, got.err)
		}
	})
}

// Coded bytes are signs of life although they decode to nothing for a while: a block
// that begins with its table, sent a byte a second.
func TestCodedBytesAreNoSilence(t *testing.T) {
	long := said("the quick brown fox, "+strings.Repeat("jumps, over: the; lazy? dog! ", 9)) + okSSE
	var once bytes.Buffer
	w := gzip.NewWriter(&once)
	io.WriteString(w, long)
	w.Close()
	twice := append(bytes.Clone(pack(t, "gzip", okSSE[:len(okSSE)-len(stop+done)])), once.Bytes()...)
	for name, c := range map[string]struct {
		body  []byte
		plain string
		quick int // so many bytes come at once
	}{
		"before release": {once.Bytes(), long, 0},
		"after release":  {twice, okSSE[:len(okSSE)-len(stop+done)] + long, len(twice) - once.Len()},
	} {
		for accept, want := range map[string]string{"gzip": string(c.body), "identity": c.plain} {
			inBubble(t, name+", the client takes "+accept, func(t *testing.T) {
				s := newStage(t, "server: {stall_timeout: 5, relay_stall_timeout: 5, min_content_chars: 1}", func(w *drill.Wire, _ drill.Request, _ int) {
					w.Head(200, drill.Chunked, "Content-Type", sseType, "Content-Encoding", "gzip")
					w.Chunk(c.body[:c.quick])
					for i := c.quick; i < len(c.body) && w.Pause(time.Second); i++ {
						w.Chunk(c.body[i : i+1])
					}
					w.End()
				})
				sent := requestFor(chatPath, true)
				s.expect(sent, s.ask("POST", chatPath, sent, "Accept-Encoding", accept),
					outcome{body: want, winner: 1, calls: []int{1}, took: time.Duration(len(c.body)-c.quick) * time.Second, ending: stats.Success})
			})
		}
	}
}

// What a decoder withheld until the attempt's time was up is not released then: it
// would be broken off at once, while another candidate may answer whole.
func TestNothingIsReleasedWhenTheTimeIsUp(t *testing.T) {
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	coded := pack(t, "gzip", string(noise))
	inBubble(t, "audio", func(t *testing.T) {
		s := newStage(t, "server: {nonstream_timeout: 5}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", "audio/mpeg", "Content-Encoding", "gzip")
			w.Chunk(coded[:len(coded)/2])
			w.Silence()
		}, page("audio/mpeg", "whole"))
		sent := `{"model":"vm","input":"x"}`
		s.expect(sent, s.ask("POST", "/v1/audio/speech", sent), outcome{body: "whole", winner: 2, calls: []int{1, 1}, took: 5 * time.Second, ending: stats.Success})
	})
}
