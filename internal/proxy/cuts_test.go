package proxy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/wire"
)

// recording is one of the vendors' answers that the wire package keeps.
type recording struct {
	file, path, kind string
	body             []byte
	want             wire.Want
}

func recordings(t *testing.T) (all []recording) {
	t.Helper()
	dir := filepath.Join("..", "wire", "testdata")
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]wire.Kind{"openai-chat": wire.Chat, "completions": wire.Completions, "openai-responses": wire.Responses, "anthropic": wire.Messages,
		"gemini-sse": wire.Generate, "gemini-array": wire.Generate, "ollama": wire.OllamaChat}
	paths := map[string]string{"openai-chat": chatPath, "completions": "/v1/completions", "openai-responses": responsesPath, "anthropic": messagesPath,
		"gemini-sse": geminiPath, "gemini-array": geminiArray, "ollama": ollamaPath}
	types := map[string]string{".sse": sseType, ".json": jsonType, ".ndjson": "application/x-ndjson"}
	for row := range strings.Lines(string(index)) {
		cells := strings.Split(row, "\t")
		file, api, stream := cells[0], cells[1], cells[2] == "1"
		kind, ok := types[filepath.Ext(file)]
		if !ok {
			continue // whole responses, or the table's head
		}
		r := recording{file: file, path: paths[api], kind: kind,
			want: wire.Want{Kind: kinds[api], Stream: stream, Array: api == "gemini-array", MinChars: 10, Judged: true, ErrorIsFailure: true, ContentType: kind}}
		if strings.Contains(file, "ollama-generate") {
			r.path, r.want.Kind = "/api/generate", wire.OllamaGenerate
		}
		if r.path == geminiPath && !stream {
			r.path = geminiWhole
		}
		if r.body, err = os.ReadFile(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// pieces cuts a body at random places, sometimes into single bytes.
func pieces(rnd *rand.Rand, body []byte) (out [][]byte) {
	for len(body) > 0 {
		n := 1
		if most := len(body); rnd.IntN(4) > 0 {
			n = 1 + rnd.IntN(min(most, 400))
		}
		out, body = append(out, body[:n]), body[n:]
	}
	return out
}

// Whatever the vendors send, however packets cut it and wherever it breaks off: the
// client gets what came, once and in order, or the other candidate's answer, never
// both; and it looks whole only if it is.
func TestEveryRecordingCutAnywhere(t *testing.T) {
	for i, rec := range recordings(t) {
		for seed := range uint64(6) {
			rnd := rand.New(rand.NewPCG(uint64(i), seed))
			end := []drill.Ending{drill.Clean, drill.FIN, drill.RST}[seed%3]
			upto := len(rec.body)
			if seed >= 3 && upto > 0 {
				upto = rnd.IntN(upto)
			}
			parts := pieces(rnd, rec.body[:upto])
			inBubble(t, fmt.Sprintf("%s, %d bytes, %v", rec.file, upto, end), func(t *testing.T) {
				sent := requestFor(rec.path, rec.want.Stream)
				s := newStage(t, "rules: []", func(w *drill.Wire, _ drill.Request, _ int) {
					w.Head(200, drill.Chunked, "Content-Type", rec.kind)
					for _, p := range parts {
						w.Chunk(p)
						if !w.Pause(time.Millisecond) {
							return
						}
					}
					w.Stop(end)
				}, page(sseType, okSSE+okGemini))
				got := s.ask("POST", rec.path, sent)
				synctest.Wait()
				released, cut := predict(rec, upto, end)
				switch {
				case released:
					if got.body != string(rec.body[:upto]) || (got.err != nil) != cut || s.up[1].Count() != 0 {
						t.Errorf("client got %q, %v, want %q, cut %v; u2 was called %d times\n%s", brief(got.body), got.err, brief(string(rec.body[:upto])), cut, s.up[1].Count(), s.log)
					}
				case s.up[1].Count() != 1:
					t.Errorf("client got %d %q, %v; u2 was called %d times, want once\n%s", got.status, brief(got.body), got.err, s.up[1].Count(), s.log)
				}
				s.saw(1, 1, sent)
				s.saw(2, s.up[1].Count(), sent)
				if n := s.handler.Ledger().Totals(); n.InFlight != 0 {
					t.Errorf("totals %+v", n)
				}
			})
		}
	}
}

// predict says from the body alone whether it goes out, and whether as a cut one.
func predict(rec recording, upto int, end drill.Ending) (released, cut bool) {
	r := wire.NewReader(rec.want)
	r.Feed(rec.body[:upto])
	_, released = r.Release()
	if end != drill.Clean {
		return released, released && !r.Terminal()
	}
	r.End()
	if !released {
		return r.Verdict() == wire.Healthy, false
	}
	return true, r.Verdict() == wire.Erred && (r.Erred() == nil || r.Erred().Unframed)
}

// The same, whole and in a coding that nobody asked for.
func TestEveryRecordingCoded(t *testing.T) {
	for i, rec := range recordings(t) {
		for n, coding := range []string{"gzip", "br", "zstd", "deflate"} {
			rnd := rand.New(rand.NewPCG(uint64(i), uint64(n)))
			packed := pack(t, coding, string(rec.body))
			for _, accept := range []string{"identity", coding} {
				inBubble(t, rec.file+", "+coding+" for "+accept, func(t *testing.T) {
					sent := requestFor(rec.path, rec.want.Stream)
					parts := pieces(rnd, packed)
					s := newStage(t, "rules: []", func(w *drill.Wire, _ drill.Request, _ int) {
						w.Head(200, drill.Chunked, "Content-Type", rec.kind, "Content-Encoding", coding)
						for _, p := range parts {
							w.Chunk(p)
						}
						w.End()
					}, page(sseType, okSSE))
					got := s.ask("POST", rec.path, sent, "Accept-Encoding", accept)
					want, mark := string(rec.body), ""
					if accept == coding {
						want, mark = string(packed), coding
					}
					if released, cut := predict(rec, len(rec.body), drill.Clean); !released {
						if s.up[1].Count() != 1 {
							t.Errorf("client got %d %q; u2 was called %d times", got.status, brief(got.body), s.up[1].Count())
						}
					} else if got.body != want || (got.err != nil) != cut || got.header.Get("Content-Encoding") != mark || s.up[1].Count() != 0 {
						t.Errorf("client got %q, %v, coded %q; u2 was called %d times\n%s", brief(got.body), got.err, got.header.Get("Content-Encoding"), s.up[1].Count(), s.log)
					}
				})
			}
		}
	}
}
