package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"understudy/internal/control"
)

// What an upstream says may move no cursor and turn no line around where JSON is
// printed either; whoever reads the JSON reads the same.
func TestPrintedJSONHoldsNothingThatATerminalObeys(t *testing.T) {
	said := "\u009b31mred \u202eLTR\u2066 zero\u200bwidth \x7f\u2028\ufeff\U000e0041 \x1b[2J <b> größer 日本 👍"
	for name, v := range map[string]any{
		"a text":    map[string]string{"said": said},
		"a key":     map[string]string{said: "said"},
		"a request": control.Request{ID: said},
	} {
		var out bytes.Buffer
		if err := printJSON(&out, v); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && unseen(r) }); i >= 0 {
			t.Errorf("%s: %q", name, out.String()[i:])
		}
		if !strings.Contains(out.String(), " <b> größer 日本 👍") || !strings.Contains(out.String(), `\u009b31mred`) || !strings.Contains(out.String(), `\udb40\udc41`) {
			t.Errorf("%s: %s", name, out.String())
		}
		var back, want any
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(out.Bytes(), &back) != nil || json.Unmarshal(text, &want) != nil {
			t.Fatalf("%s: %s is no JSON", name, out.String())
		}
		a, _ := json.Marshal(back)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: reads %s, not %s", name, a, b)
		}
	}
}
