package wire

import "testing"

// A count that no answer can have is unknown, and not 0.
func TestACountThatCannotBeTrueIsUnknown(t *testing.T) {
	for raw, output := range map[string]int64{
		`{"prompt_tokens":3,"completion_tokens":9007199254740993}`:        -1,
		`{"prompt_tokens":3,"completion_tokens":-1}`:                      -1,
		`{"prompt_tokens":3,"completion_tokens":"many","total_tokens":5}`: -1,
		`{"prompt_tokens":3,"completion_tokens":2}`:                       2,
		`{"prompt_tokens":3,"total_tokens":3}`:                            0,
		`{"prompt_tokens":3,"completion_tokens":null,"total_tokens":3}`:   0,
	} {
		var ev event
		chatUsage([]byte(raw), &ev)
		if ev.usage.Input != 3 || ev.usage.Output != output {
			t.Errorf("%s: %+v", raw, ev.usage)
		}
	}
}
