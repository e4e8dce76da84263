package proxy

import (
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// behindAnEnd are streams that break behind a finish reason; whole where nothing of the
// answer can be missing.
func behindAnEnd() map[string]struct {
	path, kind, body string
	whole            bool
} {
	type stream = struct {
		path, kind, body string
		whole            bool
	}
	legacy := func(text, end string) string {
		return data(`{"object":"text_completion","choices":[{"index":0,"text":"` + text + `","finish_reason":` + end + `}]}`)
	}
	usage := data(`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	half := func(event string) string { return event[:len(event)*2/3] }
	ended, said := said("one two three")+finish("stop"), said("four")
	message := messageStart + textDelta("one two three") + strings.TrimSuffix(messageEnd("end_turn"), messageStop)
	stopped := gemini(part("one two three"), "STOP")
	call := delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"rm","arguments":"{\"pa"}}]}`)
	arguments := delta(`{"tool_calls":[{"index":0,"function":{"arguments":"th\""}}]}`)
	return map[string]stream{
		"gemini, STOP in every event":                    {geminiPath, sseType, stopped + gemini(part("four"), "STOP"), false},
		"gemini, STOP in every event, inside of one":     {geminiPath, sseType, stopped + half(gemini(part("four"), "STOP")), false},
		"gemini, a call behind STOP":                     {geminiPath, sseType, stopped + gemini(`{"functionCall":{"name":"f","args":{}}}`, ""), false},
		"gemini, a count behind STOP":                    {geminiPath, sseType, stopped + data(`{"usageMetadata":{"promptTokenCount":5,"totalTokenCount":7}}`), true},
		"gemini, an empty part behind STOP":              {geminiPath, sseType, stopped + gemini(part(""), "STOP"), true},
		"chat, words behind stop":                        {chatPath, sseType, ended + said, false},
		"chat, half of an event behind stop":             {chatPath, sseType, ended + half(said), false},
		"chat, the beginning of a line behind stop":      {chatPath, sseType, ended + "dat", false},
		"chat, a line behind stop":                       {chatPath, sseType, ended + "event: x\n", false},
		"chat, words and another stop":                   {chatPath, sseType, ended + said + finish("stop"), false},
		"chat, words, another stop and DONE":             {chatPath, sseType, ended + said + finish("stop") + done, true},
		"chat, words and DONE behind stop":               {chatPath, sseType, ended + said + done, true},
		"chat, words behind DONE":                        {chatPath, sseType, ended + done + said, false},
		"chat, a call behind stop":                       {chatPath, sseType, ended + call, false},
		"chat, arguments behind stop":                    {chatPath, sseType, call + finish("tool_calls") + arguments, false},
		"chat, reasoning behind stop":                    {chatPath, sseType, ended + delta(`{"reasoning_content":"hm"}`), false},
		"chat, a refusal behind stop":                    {chatPath, sseType, ended + delta(`{"refusal":"no"}`), false},
		"chat, an old call's arguments":                  {chatPath, sseType, ended + delta(`{"function_call":{"arguments":"{"}}`), false},
		"chat, nothing behind stop":                      {chatPath, sseType, ended, true},
		"chat, an empty delta behind stop":               {chatPath, sseType, ended + delta(`{"role":"assistant","content":"","tool_calls":[]}`), true},
		"chat, a count behind stop":                      {chatPath, sseType, ended + usage, true},
		"chat, half of a count behind stop":              {chatPath, sseType, ended + half(usage), false},
		"chat, half of an event behind DONE":             {chatPath, sseType, ended + done + half(said), true},
		"chat, half of a comment behind stop":            {chatPath, sseType, ended + ": keep", true},
		"chat, a ping behind stop":                       {chatPath, sseType, ended + ": keep\n\n" + data(`{"type":"ping"}`), true},
		"completions, words behind stop":                 {"/v1/completions", sseType, legacy("one two three", `"stop"`) + legacy("four", "null"), false},
		"completions, stop in every event":               {"/v1/completions", sseType, legacy("one two three", `"stop"`) + legacy("four", `"stop"`), false},
		"completions, half of an event":                  {"/v1/completions", sseType, legacy("one two three", `"stop"`) + half(legacy("four", "null")), false},
		"messages, words behind the reason":              {messagesPath, sseType, message + textDelta("four"), false},
		"messages, words behind the reason, then a stop": {messagesPath, sseType, message + textDelta("four") + messageStop, true},
		"messages, half of an event behind the reason":   {messagesPath, sseType, message + half(textDelta("four")), false},
		"messages, half of its stop":                     {messagesPath, sseType, message + half(messageStop), false},
		"messages, words behind the stop":                {messagesPath, sseType, message + messageStop + textDelta("four"), false},
		"messages, nothing behind the reason":            {messagesPath, sseType, message, true},
		"ollama, words behind done":                      {ollamaPath, "application/x-ndjson", ollamaLine("one two three", "stop") + ollamaLine("four", ""), false},
		"ollama, half of a line behind done":             {ollamaPath, "application/x-ndjson", ollamaLine("one two three", "stop") + half(ollamaLine("four", "")), true},
	}
}

// An upstream that goes on behind a finish reason has not ended there: cut then, its answer
// is broken for the client, and where it is held somebody else is asked.
func TestWordsBehindAFinishReasonAreNotLostUnseen(t *testing.T) {
	for name, c := range behindAnEnd() {
		for how, end := range map[string]func(*drill.Wire){"FIN": (*drill.Wire).FIN, "reset": (*drill.Wire).Reset, "silence": (*drill.Wire).Silence} {
			for _, delivery := range []string{"stream", "window", "complete"} {
				inBubble(t, name+", "+how+", "+delivery, func(t *testing.T) {
					s := newScene(t, delivered(2, "delivery: "+delivery+"\n    hold_ms: 4000", "server: {stall_timeout: 3, relay_stall_timeout: 3}"))
					s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
						w.Head(200, drill.Chunked, "Content-Type", c.kind)
						// By event: the first finish reason is known before the rest has come.
						for _, event := range strings.SplitAfter(c.body, "\n") {
							w.Chunk([]byte(event))
							w.Pause(time.Millisecond)
						}
						end(w)
					})
					s.play("u2", drill.Healthy(drill.Answer{Text: "The understudy speaks."}))
					got := s.ask("POST", c.path, requestFor(c.path, true))
					// What nothing belongs behind goes out, and what comes there is lost.
					over := strings.Contains(name, "behind DONE") || strings.Contains(name, "behind the stop") || strings.Contains(name, "behind done")
					switch {
					case c.whole:
						if got.body != c.body || got.err != nil {
							t.Errorf("client got %q, %v", brief(got.body), got.err)
						}
					case delivery == "stream" || over:
						if got.body != c.body || got.err == nil {
							t.Errorf("client got %q, %v, want a break", brief(got.body), got.err)
						}
					case !strings.Contains(got.body, "understudy") || strings.Contains(got.body, "one two") || got.err != nil:
						t.Errorf("client got %q, %v, want the other one's answer", brief(got.body), got.err)
					}
					want := stats.Success
					if got.err != nil {
						want = stats.Broken
					}
					if r := s.records()[0]; r.Ending != want {
						t.Errorf("booked as %v, want %v", r.Ending, want)
					}
				})
			}
		}
	}
}

// A body that ends well is whole behind a finish reason, whatever came behind that.
func TestACleanEndBehindAFinishReasonIsWhole(t *testing.T) {
	for name, c := range behindAnEnd() {
		for _, delivery := range []string{"stream", "complete"} {
			inBubble(t, name+", "+delivery, func(t *testing.T) {
				s := newScene(t, delivered(2, "delivery: "+delivery, ""))
				s.play("u1", page(c.kind, c.body))
				s.play("u2", sayPong)
				if got := s.ask("POST", c.path, requestFor(c.path, true)); got.body != c.body || got.err != nil {
					t.Errorf("client got %q, %v", brief(got.body), got.err)
				}
			})
		}
	}
}

// Where nothing but the connection's end ends the body, half of an event tells that it came
// too early.
func TestAConnectionThatEndsInsideOfAnEvent(t *testing.T) {
	ended := said("one two three") + finish("stop")
	for body, whole := range map[string]bool{
		ended: true, ended + ": keep": true, ended + "data: [DONE]": true, ended + strings.TrimRight(said("four"), "\n"): true, ended + done + "data: {": true,
		ended + said("four")[:60]: false, ended + "data: {": false,
	} {
		for _, delivery := range []string{"stream", "complete"} {
			inBubble(t, body+delivery, func(t *testing.T) {
				s := newScene(t, delivered(2, "delivery: "+delivery, ""))
				s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
					w.Head(200, drill.UntilClose, "Content-Type", sseType)
					w.Chunk([]byte(body))
					w.FIN()
				})
				s.play("u2", sayPong)
				got := s.hi()
				switch {
				case whole || delivery == "stream":
					if got.body != body || (got.err == nil) != whole {
						t.Errorf("client got %q, %v", brief(got.body), got.err)
					}
				case got.body != okSSE || got.err != nil:
					t.Errorf("client got %q, %v", brief(got.body), got.err)
				}
			})
		}
	}
}

// An answer that is held goes out behind its finish reason although the upstream keeps the
// connection: at once with the dialect's end, and else when it has said nothing for long.
func TestWhatIsHeldGoesOutBehindItsEnd(t *testing.T) {
	answer := said("one two three") + finish("stop")
	for name, c := range map[string]struct {
		body, sign string
		took       time.Duration
	}{
		"DONE":                       {answer + done, "", 3 * time.Second}, // its connection is waited for
		"a finish reason":            {answer, "", 5 * time.Second},
		"a finish reason, and pings": {answer, ": ping\n\n", 24 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, delivered(2, complete, "server: {stream_timeout: 20, stall_timeout: 5, relay_stall_timeout: 3}"))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(c.body))
				for w.Err() == nil && w.Pause(time.Second) {
					if c.sign != "" {
						w.Chunk([]byte(c.sign))
					}
				}
			})
			s.play("u2", sayPong)
			got := s.hi()
			if got.err != nil || strings.Count(got.body, "one two three") != 1 || strings.Contains(got.body, "PONG") {
				t.Errorf("client got %q, %v", brief(got.body), got.err)
			}
			if got.took > c.took+time.Second || got.took < c.took-time.Second {
				t.Errorf("took %v, want about %v", got.took, c.took)
			}
		})
	}
}

// The time of pings behind an answer's end may be up in the middle of one: the answer is
// whole all the same, and ends with the ping.
func TestHalfAPingBehindTheEndBreaksNothing(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "server: {relay_stall_timeout: 20}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(said("one two three") + finish("stop")))
			for w.Pause(3*time.Second) && w.Err() == nil {
				w.Chunk([]byte("event: ping\nda"))
				w.Pause(2500 * time.Millisecond)
				w.Chunk([]byte("ta: {\"type\":\"ping\"}\n\n"))
			}
		})
		began := time.Now()
		got := s.ask("POST", chatPath, requestFor(chatPath, true))
		took := time.Since(began)
		if got.err != nil || !strings.HasSuffix(got.body, "\n\n") || took < 20*time.Second || took > 28*time.Second {
			t.Errorf("after %v: %q, %v", took, brief(got.body), got.err)
		}
		if r := s.record(); r.Ending != stats.Success {
			t.Errorf("booked as %v", r.Ending)
		}
	})
}

// Legacy completions give an answer to each prompt: one that is missing where the stream
// breaks was lost.
func TestAStreamThatLosesAPromptIsBroken(t *testing.T) {
	one := func(index string) string {
		return data(`{"object":"text_completion","choices":[{"index":` + index + `,"text":"hello there","finish_reason":"stop"}]}`)
	}
	for body, whole := range map[string]bool{`"prompt":["a","b"]`: false, `"prompt":[[1,2],[3]]`: false, `"prompt":[1,2]`: true, `"prompt":"a"`: true, `"prompt":"a","n":2`: false} {
		for _, delivery := range []string{"stream", "complete"} {
			inBubble(t, body+delivery, func(t *testing.T) {
				s := newScene(t, delivered(2, "delivery: "+delivery, ""))
				s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
					w.Head(200, drill.Chunked, "Content-Type", sseType)
					w.Chunk([]byte(one("0")))
					w.Pause(time.Second)
					w.Reset()
				})
				s.play("u2", page(sseType, one("0")+one("1")+done))
				got := s.ask("POST", "/v1/completions", `{"model":"vm","stream":true,`+body+`}`)
				want := one("0")
				if !whole && delivery == "complete" {
					want += one("1") + done
				}
				if got.body != want || (got.err == nil) != (whole || delivery == "complete") {
					t.Errorf("client got %q, %v", brief(got.body), got.err)
				}
			})
		}
	}
}
