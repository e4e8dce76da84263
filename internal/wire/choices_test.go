package wire

import (
	"fmt"
	"strings"
	"testing"
)

// Where several answers were asked for at once, the end of one of them is not the end.
func TestAllChoicesEndBeforeTheStreamDoes(t *testing.T) {
	said := func(index string) string {
		return `{"choices":[{"index":` + index + `,"delta":{"content":"hello"},"finish_reason":null}]}`
	}
	over := func(index string) string {
		return `{"choices":[{"index":` + index + `,"delta":{},"finish_reason":"stop"}]}`
	}
	candidate := func(index, more string) string {
		return `{"candidates":[{"index":` + index + `,"content":{"parts":[{"text":"hello"}]}` + more + `}]}`
	}
	const stop = `,"finishReason":"STOP"`
	usage := `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	for name, c := range map[string]struct {
		kind    Kind
		choices int
		events  []string
		want    bool
	}{
		"one asked for":                 {Chat, 1, []string{said("0"), over("0")}, true},
		"nobody said how many":          {Chat, 0, []string{said("0"), over("0")}, true},
		"one of two":                    {Chat, 2, []string{said("0"), over("0")}, false},
		"one of two, and the usage":     {Chat, 2, []string{said("0"), over("0"), usage}, false},
		"one of two, and the other one": {Chat, 2, []string{said("0"), over("0"), said("1")}, false},
		"two of two":                    {Chat, 2, []string{said("0"), over("0"), said("1"), over("1")}, true},
		"two of two, and the usage":     {Chat, 2, []string{said("0"), said("1"), over("1"), over("0"), usage}, true},
		"an upstream that gives one":    {Chat, 2, []string{said("0"), over("0"), "[DONE]"}, true},
		"one of two candidates":         {Generate, 2, []string{candidate("0", stop)}, false},
		"two of two candidates":         {Generate, 2, []string{candidate("0", stop), candidate("1", stop)}, true},
		"a prompt that is blocked":      {Generate, 2, []string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`}, true},
		"one of two images":             {Images, 2, []string{`{"type":"image_generation.completed","b64_json":"AA"}`}, false},
		"two of two images":             {Images, 2, []string{`{"type":"image_generation.completed","b64_json":"AA"}`, `{"type":"image_generation.completed","b64_json":"AB"}`}, true},
		"one image":                     {Images, 1, []string{`{"type":"image_edit.completed","b64_json":"AA"}`}, true},
		"one of two completions":        {Completions, 2, []string{`{"object":"text_completion","choices":[{"index":0,"text":"hello","finish_reason":"stop"}]}`}, false},
	} {
		r := NewReader(Want{Kind: c.kind, Stream: true, Judged: c.kind != Images, ErrorIsFailure: true, Choices: c.choices})
		for _, e := range c.events {
			r.Feed([]byte("data: " + e + "\n\n"))
		}
		if got := r.Terminal(); got != c.want {
			t.Errorf("%s: terminal %v", name, got)
		}
		// An upstream may give fewer than were asked for, and end well.
		if r.End(); (r.Verdict() == Healthy) != (name != "one of two, and the other one") {
			t.Errorf("%s: at its end %v: %s", name, r.Verdict(), r.Why())
		}
	}
}

func TestHowManyAnswersAreAskedFor(t *testing.T) {
	for body, want := range map[string]int{
		`{}`: 1, `{"n":1}`: 1, `{"n":2}`: 2, `{"n":2.0}`: 2, `{"n":0}`: 1, `{"n":-7}`: 1, `{"n":64}`: 64, `{"n":1000000}`: 65, `{"n":"3"}`: 1, `{"n":null}`: 1, `{"n":[4]}`: 1,
		`{"generationConfig":{"candidateCount":3}}`: 3, `{"generation_config":{"candidate_count":5}}`: 5, `{"generationConfig":7}`: 1, `{"metadata":{"n":2}}`: 1, `{"n":2,"n":4}`: 4,
	} {
		d, err := Scan([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Choices(Chat); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// Legacy completions give n answers to each of their prompts. A prompt is a text or a list of
// tokens, and a list of numbers so one prompt.
func TestHowManyPromptsAreAnswered(t *testing.T) {
	for body, want := range map[string]int{
		`{"prompt":"a"}`: 1, `{"prompt":["a"]}`: 1, `{"prompt":["a","b"]}`: 2, `{"prompt":["a","b","c"],"n":2}`: 6, `{"n":3,"prompt":"a"}`: 3,
		`{"prompt":[1,2,3]}`: 1, `{"prompt":[-1,2]}`: 1, `{"prompt":[[1,2],[3]]}`: 2, `{"prompt":[[1,2]]}`: 1, `{"prompt":[[],["a"]],"best_of":9}`: 2,
		`{"prompt":[]}`: 1, `{"prompt":null}`: 1, `{}`: 1, `{"prompt":{"a":1}}`: 1, `{"\u0070rompt":["a","b"]}`: 2, `{"prompt":"a","prompt":["a","b"]}`: 2,
		`{"prompt":["a","b"],"n":1000000}`: 65, `{"prompt":[` + strings.Repeat(`"a",`, 99) + `"a"]}`: 65, `{"prompt":[` + strings.Repeat(`"a",`, 31) + `"a"],"n":2}`: 64,
	} {
		d, err := Scan([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Choices(Completions); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
		if got := d.Choices(Chat); got != int(d.answers()) {
			t.Errorf("%s: a chat has %d", body, got)
		}
	}
}

// So many answers that they cannot be told apart are ended by the dialect's own end alone.
func TestManyChoicesEndWithTheStream(t *testing.T) {
	r := NewReader(Want{Kind: Completions, Stream: true, Judged: true, Choices: manyChoices})
	for i := range 100 {
		r.Feed(fmt.Appendf(nil, `data: {"choices":[{"index":%d,"text":"hello","finish_reason":"stop"}]}`+"\n\n", i))
		if r.Terminal() {
			t.Fatalf("terminal behind %d of them", i+1)
		}
	}
	if r.Feed([]byte("data: [DONE]\n\n")); !r.Terminal() {
		t.Error("not terminal behind all of them")
	}
}

// Content of a choice that had ended shows that this upstream's finish reasons are no end: a
// break is one from then on, whatever reasons follow, up to the dialect's own end.
func TestWhatGoesOnBehindAFinishReasonHasNotEnded(t *testing.T) {
	chat := func(index int, member string) string {
		return fmt.Sprintf(`data: {"object":"chat.completion.chunk","choices":[{"index":%d,%s}]}`+"\n\n", index, member)
	}
	gemini := func(index int, part, end string) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[%s]}%s,"index":%d}]}`+"\n\n", part, end, index)
	}
	const words, stop = `"delta":{"content":"two words"},"finish_reason":null`, `"delta":{},"finish_reason":"stop"`
	const call, arguments = `"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}`, `"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`
	const text, function, end = `{"text":"two words"}`, `{"functionCall":{"name":"f"}}`, `,"finishReason":"STOP"`
	long := chat(0, `"delta":{"content":"`+strings.Repeat("word ", 1000)+`"}`)
	image := `data: {"type":"image_generation.completed","b64_json":"AA"}` + "\n\n"
	partial := `data: {"type":"image_generation.partial_image","b64_json":"AA"}` + "\n\n"
	for name, c := range map[string]struct {
		kind               Kind
		choices            int
		body               string
		terminal, finished bool
	}{
		"words, then a reason":             {Chat, 1, chat(0, words) + chat(0, stop) + chat(0, words) + chat(0, stop), false, false},
		"words, then a hard end":           {Chat, 1, chat(0, words) + chat(0, stop) + chat(0, words) + "data: [DONE]\n\n", true, true},
		"words behind the hard end":        {Chat, 1, chat(0, words) + chat(0, stop) + "data: [DONE]\n\n" + chat(0, words), false, false},
		"one of two goes on":               {Chat, 2, chat(0, words) + chat(1, words) + chat(0, stop) + chat(0, words) + chat(1, stop) + chat(0, stop), false, false},
		"one of two goes on with a call":   {Chat, 2, chat(0, words) + chat(1, call) + chat(0, stop) + chat(0, arguments) + chat(1, stop), false, false},
		"one goes on beside another":       {Chat, 2, chat(0, call) + chat(0, stop) + `data: {"choices":[{"index":1,` + call + `},{"index":0,` + call + `}]}` + "\n\n" + chat(1, stop) + chat(0, stop), false, false},
		"the other begins behind the one":  {Chat, 2, chat(0, words) + chat(0, stop) + chat(1, words) + chat(1, call) + chat(1, arguments) + chat(1, stop), true, true},
		"both in one event":                {Chat, 2, chat(0, call) + `data: {"choices":[{"index":0,` + stop + `},{"index":1,` + call + `}]}` + "\n\n" + chat(1, stop), true, true},
		"nobody asked for the other":       {Chat, 1, chat(0, words) + chat(0, stop) + chat(1, words) + chat(1, stop), false, false},
		"words and their reason at once":   {Chat, 1, chat(0, `"delta":{"content":"two words"},"finish_reason":"stop"`), true, true},
		"half of an event":                 {Chat, 1, chat(0, words) + chat(0, stop) + chat(0, words)[:20], false, true},
		"a comment":                        {Chat, 1, chat(0, words) + chat(0, stop) + ": hm", true, true},
		"too long to be read":              {Chat, 1, chat(0, words) + chat(0, stop) + long, false, false},
		"candidates that both go on":       {Generate, 2, gemini(0, text, end) + gemini(1, function, end) + gemini(0, text, end) + gemini(1, function, end), false, false},
		"a candidate behind the other":     {Generate, 2, gemini(0, function, end) + gemini(1, function, ""), false, false},
		"candidates, both called":          {Generate, 2, `data: {"candidates":[{"content":{"parts":[` + function + `]}},{"content":{"parts":[` + function + `]},"index":1}]}` + "\n\n" + gemini(0, "", end), false, false},
		"a candidate, ended early":         {Generate, 1, gemini(0, "", end) + gemini(0, text, "") + gemini(0, text, end), true, true},
		"two images":                       {Images, 2, partial + image + partial + image, true, true},
		"an image more than was asked for": {Images, 1, image + partial + image, false, false},
	} {
		var answers []string
		for _, cuts := range [][]int{nil, {len(c.body) / 2}} {
			r, at := NewReader(Want{Kind: c.kind, Stream: true, Judged: c.kind != Images, ErrorIsFailure: true, Choices: c.choices}), 0
			r.limit(1000)
			for _, cut := range append(cuts, len(c.body)) {
				r.Feed([]byte(c.body[at:cut]))
				at = cut
			}
			if r.Terminal() != c.terminal || r.Finished() != c.finished {
				t.Errorf("%s: terminal %v, finished %v", name, r.Terminal(), r.Finished())
			}
			// That it ended before is enough for a body that ends well.
			open := name == "a candidate behind the other" || name == "candidates, both called"
			if r.End(); (r.Verdict() == Healthy) == open {
				t.Errorf("%s: at its end %v: %s", name, r.Verdict(), r.Why())
			}
			answers = append(answers, fmt.Sprint(r.Verdict(), r.Why()))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: it depends on the split: %q", name, answers)
		}
	}
}
