package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// deaf is a reader that reads every event anew.
func deaf(w Want) *Reader {
	r := NewReader(w)
	r.echo.misses = echoMisses
	return r
}

// told is all that a reader tells of what it has read.
func told(r *Reader) string {
	at, released := r.Release()
	chars, other := r.Said()
	failure := ""
	if e := r.Erred(); e != nil {
		failure = string(e.Raw)
	}
	return fmt.Sprint(at, released, r.Verdict(), r.WellFormed(), r.Terminal(), chars, other, r.Events(), r.Unknown(), r.Usage(), r.Open(), r.Why(), failure)
}

// same feeds both readers, and compares what they tell after each event.
func same(t *testing.T, w Want, events []string) (heard int) {
	t.Helper()
	quick, slow := NewReader(w), deaf(w)
	for i, event := range events {
		quick.Feed([]byte(event))
		slow.Feed([]byte(event))
		if a, b := told(quick), told(slow); a != b {
			t.Fatalf("after event %d of\n%s\nread anew: %s\nas an echo: %s", i, strings.Join(events[:i+1], ""), b, a)
		}
		if quick.echo.misses == 0 && len(quick.echo.last) > 0 {
			heard++
		}
	}
	quick.End()
	slow.End()
	if a, b := told(quick), told(slow); a != b {
		t.Fatalf("at the end of\n%s\nread anew: %s\nas an echo: %s", strings.Join(events, ""), b, a)
	}
	return heard
}

// What is not read anew tells what it would have told.
func TestAnEchoTellsWhatReadingItTells(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	text := func() string {
		return pick(`a`, ` the tide`, `é∂ 日本`, `\"`, `\\`, `\u00e9\n`, `a\ud83d\ude00`, ``, `content`, `\"finish_reason\":\"stop\"`, `}]}`, "a\tb", `\x`, `\u12`, "\xff", `a"`, `null`, strings.Repeat("x", echoLongest))
	}
	chat := func() string {
		key := pick("content", "content", "content", "content", "reasoning", "reasoning_content", "refusal", "role")
		more := pick("", "", "", "", "", `,"content":"again"`, `,"reasoning":"too"`, `,"tool_calls":[{"id":"c"}]`, `,"tool_calls":[]`)
		finish := pick("null", "null", "null", "null", "null", "null", `"stop"`, `""`, `"error"`, `"length"`)
		tail := pick("", "", `,"obfuscation":"`+text()+`"`, `,"obfuscation":"`+text()+`"`, `,"obfuscation":1`, `,"obfuscation":"a","obfuscation":"`+text()+`"`, `,"usage":null`, `,"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`, `,"error":null`, `,"error":{"message":"x"}`, `,"obfuscation":"`+text()+`"`)
		return fmt.Sprintf("data: {"+pick("", "", "", `"obfuscation":"`+text()+`",`)+"\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":%s,\"delta\":{\"%s\":\"%s\"%s},\"finish_reason\":%s}]%s}\n\n",
			pick("c1", "c1", "c1", "c2", " the tide"), pick("0", "0", "0", "0", "1"), key, text(), more, finish, tail)
	}
	messages := func() string {
		kind := pick("text", "text", "text", "thinking", "signature")
		name := pick("event: content_block_delta\n", "event: content_block_delta\n", "event: content_block_delta\n", "", "event: error\n")
		return pick("", "", "", "", "", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n", "data: {\"type\":\"ping\"}\n\n", "data: {\"type\":\"message_stop\"}\n\n") + name +
			fmt.Sprintf("data: {\"type\":\"content_block_delta\",\"index\":%s,\"delta\":{\"type\":\"%s_delta\",\"%s\":\"%s\"}}\n\n", pick("0", "0", "0", "1"), kind, kind, text())
	}
	for name, c := range map[string]struct {
		kind  Kind
		event func() string
	}{"chat": {Chat, chat}, "messages": {Messages, messages}} {
		t.Run(name, func(t *testing.T) {
			heard := 0
			for range 4000 {
				var events []string
				for range 1 + random.IntN(12) {
					event := c.event()
					for range 1 + random.IntN(3) {
						events = append(events, event)
					}
				}
				if random.IntN(3) == 0 {
					events = append(events, "data: [DONE]\n\n")
				}
				heard += same(t, Want{Kind: c.kind, Stream: true, MinChars: random.IntN(20), Judged: random.IntN(4) > 0}, events)
			}
			if heard < 4000 {
				t.Errorf("only %d events were echoes", heard)
			}
		})
	}
}

// An event with a text of another length, in whatever spelling, is an echo still; one
// with anything else changed is none.
func TestWhatIsAnEcho(t *testing.T) {
	padded := func(text, more, padding string) string {
		return "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + text + "\"},\"finish_reason\":null" + more + "}],\"obfuscation\":\"" + padding + "\"}\n\n"
	}
	event := func(text, more string) string { return padded(text, more, "Ab3") }
	for name, c := range map[string]struct {
		next string
		echo bool
	}{
		"another text":       {event("other words", ""), true},
		"another padding":    {padded("tide", "", "x"), true},
		"no padding":         {padded("tide", "", ""), true},
		"escapes":            {event(`\u00e9 \"quoted\"`, ""), true},
		"no text":            {event("", ""), false},
		"a field more":       {event("tide", `,"logprobs":null`), false},
		"spelled with space": {strings.Replace(event("tide", ""), ":0", ": 0", 1), false},
		"a finish":           {strings.Replace(event("tide", ""), "null", `"stop"`, 1), false},
		"another choice":     {strings.Replace(event("tide", ""), ":0", ":1", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := Want{Kind: Chat, Stream: true, MinChars: 1, Judged: true}
			r := NewReader(w)
			for range 3 { // the first content, the first after release, and one that is remembered
				r.Feed([]byte(event("the", "")))
			}
			r.echo.misses = 1
			r.Feed([]byte(c.next))
			if echo := r.echo.misses == 0; echo != c.echo {
				t.Errorf("taken for an echo: %v", echo)
			}
		})
	}
}
