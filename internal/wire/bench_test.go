package wire

import (
	"strings"
	"testing"
)

// steady are events as they come by the thousand, one for each dialect.
var steady = []struct {
	name  string
	want  Want
	chunk string
}{
	{"chat", Want{Kind: Chat, Stream: true, Judged: true}, `data: {"id":"chatcmpl-AbCdEfGhIjKlMnOp","object":"chat.completion.chunk","created":1767225610,"model":"gpt-5-mini-2025-08-07","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" the tide"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aQ3bX"}` + "\n\n"},
	{"completions", Want{Kind: Completions, Stream: true, Judged: true}, `data: {"id":"cmpl-1","object":"text_completion","created":1767225610,"model":"m","choices":[{"text":" word","index":0,"logprobs":null,"finish_reason":null}]}` + "\n\n"},
	{"responses", Want{Kind: Responses, Stream: true, Judged: true}, "event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":9,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" the tide","logprobs":[],"obfuscation":"x8Kd"}` + "\n\n"},
	{"messages", Want{Kind: Messages, Stream: true, Judged: true}, "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" the tide"}}` + "\n\n"},
	{"gemini", Want{Kind: Generate, Stream: true, Judged: true}, `data: {"candidates":[{"content":{"parts":[{"text":" the tide turns"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":5,"totalTokenCount":55,"promptTokensDetails":[{"modality":"TEXT","tokenCount":50}]},"modelVersion":"gemini-2.5-pro","responseId":"abc"}` + "\r\n\r\n"},
	{"geminiArray", Want{Kind: Generate, Stream: true, Array: true, Judged: true}, `{"candidates":[{"content":{"parts":[{"text":" the tide turns"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":5,"totalTokenCount":55},"modelVersion":"gemini-2.5-pro"}` + "\r\n,\r\n"},
	{"ollama", Want{Kind: OllamaChat, Stream: true, Judged: true}, `{"model":"llama3.2","created_at":"2026-01-01T12:00:00.123456789Z","message":{"role":"assistant","content":" tide"},"done":false}` + "\n"},
	{"transcription", Want{Kind: Transcription, Stream: true, ErrorIsFailure: true}, `data: {"type":"transcript.text.delta","delta":" the tide"}` + "\n\n"},
}

// BenchmarkReader reads one event of a running stream, whole and cut in two.
func BenchmarkReader(b *testing.B) {
	for _, s := range steady {
		for _, cut := range []bool{false, true} {
			name := s.name + "/whole"
			if cut {
				name = s.name + "/cut"
			}
			b.Run(name, func(b *testing.B) {
				r := NewReader(s.want)
				if s.want.Array {
					r.Feed([]byte("["))
				}
				chunk := []byte(s.chunk)
				r.Feed(chunk)
				if r.Verdict() == Erred {
					b.Fatal(r.Why())
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(chunk)))
				for b.Loop() {
					if cut {
						r.Feed(chunk[:len(chunk)/2])
						r.Feed(chunk[len(chunk)/2:])
					} else {
						r.Feed(chunk)
					}
				}
			})
		}
	}
}

// BenchmarkReaderLong reads one event of 6 MiB in pieces of 32 KiB.
func BenchmarkReaderLong(b *testing.B) {
	event := []byte("data: {\"type\":\"response.image_generation_call.partial_image\",\"partial_image_b64\":\"" + strings.Repeat("abcdefgh", 6<<17) + "\"}\n\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		r := NewReader(Want{Kind: Responses, Stream: true, Judged: true})
		for p := event; len(p) > 0; p = p[min(len(p), 32<<10):] {
			r.Feed(p[:min(len(p), 32<<10)])
		}
		if r.Verdict() != Healthy {
			b.Fatal(r.Why())
		}
	}
}

// BenchmarkReaderDocument reads a whole JSON answer of some size.
func BenchmarkReaderDocument(b *testing.B) {
	body := readFixture(b, "openai-chat-nonstream-text.json").body
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r := NewReader(Want{Kind: Chat, Judged: true})
		r.Feed(body)
		if r.End(); r.Verdict() != Healthy {
			b.Fatal(r.Why())
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	f := readFixture(b, "gemini-sse-429-retryinfo.http")
	b.ReportAllocs()
	for b.Loop() {
		Explain(f.status, f.header, f.body, fixtureNow)
	}
}

// TestSteadyStreamsDoNotAllocate holds the readers to what relaying costs: nothing
// for the collector, whatever the dialect.
func TestSteadyStreamsDoNotAllocate(t *testing.T) {
	for _, s := range steady {
		r := NewReader(s.want)
		if s.want.Array {
			r.Feed([]byte("["))
		}
		chunk := []byte(s.chunk)
		r.Feed(chunk)
		if n := testing.AllocsPerRun(200, func() {
			r.Feed(chunk[:len(chunk)/2])
			r.Feed(chunk[len(chunk)/2:])
		}); n > 0 {
			t.Errorf("%s: %v allocations for each event", s.name, n)
		}
		if _, ok := r.Release(); !ok || r.Verdict() != Healthy {
			t.Errorf("%s: %v %s", s.name, r.Verdict(), r.Why())
		}
	}
}
