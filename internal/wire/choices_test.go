package wire

import "testing"

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
		`{}`: 1, `{"n":1}`: 1, `{"n":2}`: 2, `{"n":2.0}`: 2, `{"n":0}`: 1, `{"n":-7}`: 1, `{"n":1000000}`: 64, `{"n":"3"}`: 1, `{"n":null}`: 1, `{"n":[4]}`: 1,
		`{"generationConfig":{"candidateCount":3}}`: 3, `{"generation_config":{"candidate_count":5}}`: 5, `{"generationConfig":7}`: 1, `{"metadata":{"n":2}}`: 1, `{"n":2,"n":4}`: 4,
	} {
		d, err := Scan([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Choices(); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}
