package wire

import (
	"fmt"
	"strings"
	"testing"
)

// A count that no answer can have is unknown, in every dialect, and so is the sum that
// it would be part of; one that is missing is what it always was.
func TestACountThatCannotBeTrueIsUnknown(t *testing.T) {
	messages := func(raw []byte, ev *event) { new(messagesUsage).read(raw, ev) }
	ollama := func(raw []byte, ev *event) {
		field := func(name string) []byte { v, _ := jsonField(raw, name); return v }
		ollamaUsage(field("prompt_eval_count"), field("eval_count"), ev)
	}
	type counts struct{ in, out, cached, written, reasoning int64 }
	for _, c := range []struct {
		name string
		read func([]byte, *event)
		raw  string // # is the count in question
		bad  counts
		good counts // where # is 2
		none counts // where # is null
	}{
		{"chat's output", chatUsage, `{"prompt_tokens":3,"completion_tokens":#,"total_tokens":5}`, counts{3, -1, -1, -1, -1}, counts{3, 2, -1, -1, -1}, counts{3, 2, -1, -1, -1}},
		{"chat's input", chatUsage, `{"prompt_tokens":#,"completion_tokens":4}`, counts{-1, 4, -1, -1, -1}, counts{2, 4, -1, -1, -1}, counts{-1, -1, -1, -1, -1}},
		{"chat's cache", chatUsage, `{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":#}}`, counts{3, 4, -1, -1, -1}, counts{3, 4, 2, -1, -1}, counts{3, 4, -1, -1, -1}},
		{"chat's reasoning", chatUsage, `{"prompt_tokens":3,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":#}}`, counts{3, 4, -1, -1, -1}, counts{3, 4, -1, -1, 2}, counts{3, 4, -1, -1, -1}},
		{"chat's total", chatUsage, `{"prompt_tokens":3,"completion_tokens":4,"total_tokens":#}`, counts{3, 4, -1, -1, -1}, counts{3, 4, -1, -1, -1}, counts{3, 4, -1, -1, -1}},
		{"llama.cpp's output", timings, `{"prompt_n":3,"cache_n":1,"predicted_n":#}`, counts{4, -1, 1, -1, -1}, counts{4, 2, 1, -1, -1}, counts{-1, -1, -1, -1, -1}},
		{"llama.cpp's cache", timings, `{"prompt_n":3,"cache_n":#,"predicted_n":4}`, counts{-1, 4, -1, -1, -1}, counts{5, 4, 2, -1, -1}, counts{3, 4, -1, -1, -1}},
		{"responses' output", responsesUsage, `{"input_tokens":3,"output_tokens":#}`, counts{3, -1, -1, -1, -1}, counts{3, 2, -1, -1, -1}, counts{3, 0, -1, -1, -1}},
		{"responses' input", responsesUsage, `{"input_tokens":#,"output_tokens":4}`, counts{-1, 4, -1, -1, -1}, counts{2, 4, -1, -1, -1}, counts{-1, -1, -1, -1, -1}},
		{"responses' cache", responsesUsage, `{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":#,"cache_write_tokens":#}}`, counts{3, 4, -1, -1, -1}, counts{3, 4, 2, 2, -1}, counts{3, 4, -1, -1, -1}},
		{"messages' output", messages, `{"input_tokens":3,"output_tokens":#}`, counts{3, -1, -1, -1, -1}, counts{3, 2, -1, -1, -1}, counts{3, 0, -1, -1, -1}},
		{"messages' input", messages, `{"input_tokens":#,"output_tokens":4,"cache_read_input_tokens":5}`, counts{-1, 4, 5, -1, -1}, counts{7, 4, 5, -1, -1}, counts{-1, 4, 5, -1, -1}},
		{"messages' cache", messages, `{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":#,"cache_creation_input_tokens":1}`, counts{-1, 4, -1, 1, -1}, counts{6, 4, 2, 1, -1}, counts{4, 4, -1, 1, -1}},
		{"messages' iterations", messages, `{"input_tokens":1,"output_tokens":1,"iterations":[{"input_tokens":3,"output_tokens":4},{"input_tokens":5,"output_tokens":#}]}`, counts{8, -1, -1, -1, -1}, counts{8, 6, -1, -1, -1}, counts{8, 4, -1, -1, -1}},
		{"gemini's output", geminiUsage, `{"promptTokenCount":3,"candidatesTokenCount":#,"thoughtsTokenCount":1}`, counts{3, -1, 0, -1, 1}, counts{3, 3, 0, -1, 1}, counts{3, 1, 0, -1, 1}},
		{"gemini's thoughts", geminiUsage, `{"promptTokenCount":3,"candidatesTokenCount":4,"thoughtsTokenCount":#}`, counts{3, -1, 0, -1, -1}, counts{3, 6, 0, -1, 2}, counts{3, 4, 0, -1, 0}},
		{"gemini's input", geminiUsage, `{"promptTokenCount":#,"toolUsePromptTokenCount":1,"candidatesTokenCount":4}`, counts{-1, 4, 0, -1, 0}, counts{3, 4, 0, -1, 0}, counts{1, 4, 0, -1, 0}},
		{"gemini's cache", geminiUsage, `{"promptTokenCount":3,"candidatesTokenCount":4,"cachedContentTokenCount":#}`, counts{3, 4, -1, -1, 0}, counts{3, 4, 2, -1, 0}, counts{3, 4, 0, -1, 0}},
		{"ollama's output", ollama, `{"prompt_eval_count":3,"eval_count":#}`, counts{3, -1, -1, -1, -1}, counts{3, 2, -1, -1, -1}, counts{3, 0, -1, -1, -1}},
		{"ollama's input", ollama, `{"prompt_eval_count":#,"eval_count":4}`, counts{-1, 4, -1, -1, -1}, counts{2, 4, -1, -1, -1}, counts{0, 4, -1, -1, -1}},
	} {
		for _, value := range []string{"9007199254740993", "1e30", "-1", "-2", `"many"`, "[]", "true", "2", "null"} {
			want := c.bad
			switch value {
			case "2":
				want = c.good
			case "null":
				want = c.none
			}
			raw := []byte(strings.ReplaceAll(c.raw, "#", value))
			ev := event{usage: NoUsage()}
			c.read(raw, &ev)
			u := ev.usage
			if got := (counts{u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning}); got != want {
				t.Errorf("%s: %s is %+v, want %+v", c.name, raw, got, want)
			}
			if known := u.Input >= 0 && u.Output >= 0; known != (u.Total >= 0) || known && u.Total != u.Input+u.Output {
				t.Errorf("%s: %s has a total of %d", c.name, raw, u.Total)
			}
		}
	}
}

// What Anthropic says last holds: a count that cannot be true makes the one before
// worthless, and one that can makes it good again.
func TestTheLastCountOfAStreamHolds(t *testing.T) {
	for _, c := range []struct {
		deltas []string
		output int64
	}{
		{nil, 1}, {[]string{`9`}, 9}, {[]string{`null`}, 1}, {[]string{`"x"`}, -1}, {[]string{`"x"`, `7`}, 7}, {[]string{`7`, `1e99`}, -1},
	} {
		ev, m := event{usage: NoUsage()}, new(messagesUsage)
		m.read([]byte(`{"input_tokens":3,"output_tokens":1}`), &ev)
		for _, d := range c.deltas {
			m.read(fmt.Appendf(nil, `{"output_tokens":%s}`, d), &ev)
		}
		if ev.usage.Input != 3 || ev.usage.Output != c.output {
			t.Errorf("%v: %+v", c.deltas, ev.usage)
		}
	}
}
