package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// shorten puts text through a shortener in pieces of random sizes.
func shorten(text string, r *rand.Rand) (string, bool) {
	var s shortener
	var out []byte
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(40_000))
		var over bool
		if out, over = s.keep(out, []byte(text[:n]), maxEvent); over {
			return "", true
		}
		text = text[n:]
	}
	return string(out), false
}

// longEvent is what of an event the test of its shortening looks at.
type longEvent struct {
	Type  string
	List  []any
	Usage struct {
		Input int `json:"input_tokens"`
	}
}

// What is kept of a long event is valid JSON with the same members; strings are cut
// between characters, and short ones not at all, wherever the pieces end.
func TestLongStringsAreCut(t *testing.T) {
	filler := `"filler":"` + strings.Repeat("f", wholeBelow) + `",`
	for name, content := range map[string]string{
		"plain":            strings.Repeat("7", 300_000),
		"runes":            strings.Repeat("渐🌍", 50_000),
		"quotes":           strings.Repeat(`\"`, 100_000),
		"backslashes":      strings.Repeat(`\\`, 100_000),
		"escaped runes":    strings.Repeat(`\u6e10`, 50_000),
		"escapes, shifted": "x" + strings.Repeat(`\n\u00e9y`, 40_000),
		"short":            `a \"short\" one \\`,
		"just not cut":     strings.Repeat("s", maxString),
	} {
		t.Run(name, func(t *testing.T) {
			text := `{` + filler + `"type":"response.completed","list":[1,{"image":"` + content + `"},null],"usage":{"input_tokens":7}}`
			var was, is longEvent
			if err := json.Unmarshal([]byte(text), &was); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(6) {
				got, over := shorten(text, rand.New(rand.NewPCG(seed, 1)))
				if over {
					t.Fatal("too long")
				}
				if !jsonValid([]byte(got)) || !utf8.ValidString(got) {
					t.Fatalf("seed %d: not valid: … %.200q", seed, got[len(got)-200:])
				}
				is = longEvent{}
				if err := json.Unmarshal([]byte(got), &is); err != nil {
					t.Fatal(err)
				}
				whole := was.List[1].(map[string]any)["image"].(string)
				kept := is.List[1].(map[string]any)["image"].(string)
				if is.Type != was.Type || is.Usage != was.Usage || len(is.List) != 3 || !strings.HasPrefix(whole, kept) {
					t.Fatalf("seed %d: %q, %+v, %d of %d bytes", seed, is.Type, is.Usage, len(kept), len(whole))
				}
				if len(content) <= maxString && kept != whole || len(content) > 2*maxString && len(got) > wholeBelow+2*maxString+1000 {
					t.Fatalf("seed %d: %d of %d bytes are kept", seed, len(kept), len(whole))
				}
			}
		})
	}
}

// What is below the bound is kept as it is, whatever it is.
func TestShortEventsAreKeptAsTheyAre(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		b := make([]byte, r.IntN(wholeBelow))
		for i := range b {
			b[i] = `"\u{}[],a7`[r.IntN(10)]
		}
		if got, over := shorten(string(b), r); over || got != string(b) {
			t.Fatal("something else is kept")
		}
	}
}

// A long event is judged as a short one is, in memory that does not grow with it:
// content, terminal and usage count.
func TestALongEventTakesLittleMemory(t *testing.T) {
	const size = 60 << 20
	piece := []byte(strings.Repeat("7", 32<<10))
	for name, c := range map[string]struct {
		want       Want
		head, tail string
	}{
		"an event":    {Want{Kind: Responses, Stream: true, Judged: true}, "event: response.completed\ndata: " + `{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`, `"}]}],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}}` + "\n\n"},
		"a document":  {Want{Kind: Chat, Judged: true}, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"`, `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}`},
		"a line":      {Want{Kind: OllamaChat, Stream: true, Judged: true}, `{"model":"m","message":{"role":"assistant","content":"`, `"},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":9}` + "\n"},
		"an element":  {Want{Kind: Generate, Stream: true, Array: true, Judged: true}, `[{"candidates":[{"content":{"role":"model","parts":[{"text":"`, `"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":9,"totalTokenCount":16}}]`},
		"not as JSON": {Want{Kind: Chat, Stream: true, Judged: true, MinChars: 10}, pongEvent + `data: `, "\n\n" + `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}` + "\n\ndata: [DONE]\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(c.want)
			r.Feed([]byte(c.head))
			for range size / len(piece) {
				r.Feed(piece)
			}
			if kept := cap(r.sse.data) + cap(r.doc.body) + cap(r.lines.line) + cap(r.array.element); kept > 4<<20 && name != "not as JSON" || kept > 2*maxEvent {
				t.Errorf("%d KiB are kept of it", kept>>10)
			}
			r.Feed([]byte(c.tail))
			r.End()
			if r.Verdict() != Healthy || !r.Terminal() {
				t.Errorf("%v (%s), terminal %v", r.Verdict(), r.Why(), r.Terminal())
			}
			if u := r.Usage(); u.Input != 7 || u.Output != 9 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

const pongEvent = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"PONG PONG PONG"},"finish_reason":null}]}` + "\n\n"

// A stream may ask for no larger window than HTTP allows (RFC 9659): a few bytes could
// claim any memory otherwise.
func TestWindowsOfStreams(t *testing.T) {
	for size, ok := range map[int]bool{MaxWindow: true, 2 * MaxWindow: false} {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b, zstd.WithWindowSize(size))
		if err != nil {
			t.Fatal(err)
		}
		// Flushed before its end, so that the frame does not say how long it is.
		for range 2 {
			if _, err := z.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if err := z.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		z.Close()
		d, err := NewDecoder("zstd", &b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(d)
		d.Close()
		if ok && (err != nil || string(got) != "hellohello") || !ok && !errors.Is(err, ErrTooLarge) {
			t.Errorf("a window of %d MiB: %q, %v", size>>20, got, err)
		}
	}
}
