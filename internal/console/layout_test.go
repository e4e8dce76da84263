package console

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const wideTable = `3 requests: 2 good, 0 passed through, 0 empty, 1 exhausted, 0 broken, 0 whose client left

vm           #  tier  name        model              state       left  in flight  base url
auto-strong  1     1  Direct API  gpt-4o             ready                     0  https://api.openai.com/v1
             2     2  Claude      claude-sonnet-4-5  frozen     1m31s          0  https://***@api.anthropic.com/v1
便宜的模型   1     1  本地 模型   qwen2.5            probation                 2  http://127.0.0.1:9003

command                                             what it does
vm                                                  lists the virtual models and their candidates
cand add <vm> [at <index>] <json | key=value ...>   adds a candidate, as the last one or before the one that has the index

nothing was changed, because the file would not be valid:
virtual_models.auto-strong#4: no credential: add api_key, api_key_env or api_key_file, or auth_style: none`

func TestLayout(t *testing.T) {
	var got strings.Builder
	for _, columns := range []int{0, 120, 80, 40, 24, 12, 5, 1} {
		got.WriteString(drawn(fmt.Sprintf("%d columns", columns), layout(wideTable, columns, false)))
	}
	got.WriteString(drawn("in colour", []string{fmt.Sprintf("%q", layout(wideTable, 0, true)[2:6])}))
	expect(t, "testdata/layout.txt", got.String())
}

// letters are the characters of a text that are no blanks, in order.
func letters(s string) string { return strings.Join(strings.Fields(s), "") }

func TestFoldLosesNothingAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := clean(strings.ReplaceAll(names.Draw(t, "line")+" "+names.Draw(t, "more"), "\n", " "))
		columns, indent := rapid.IntRange(2, 50).Draw(t, "columns"), rapid.IntRange(0, 10).Draw(t, "indent")
		pieces := fold(line, columns, indent)
		for _, p := range pieces {
			if width(p) > columns {
				t.Fatalf("%q is %d wide, at most %d", p, width(p), columns)
			}
		}
		if got := letters(strings.Join(pieces, "")); got != letters(line) {
			t.Fatalf("%q became %q", line, pieces)
		}
	})
}

// However wide a table and however narrow the terminal: every line fits, and every
// word of it is still there.
func TestLayoutFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(2, 100).Draw(t, "columns")
		for _, line := range layout(wideTable, columns, false) {
			if width(line) > columns {
				t.Fatalf("%q is %d wide, at most %d", line, width(line), columns)
			}
		}
	})
	got := letters(strings.Join(layout(wideTable, 30, false), ""))
	for _, word := range []string{"probation", "https://***@api.anthropic.com/v1", "claude-sonnet-4-5", "qwen2.5", "hastheindex"} {
		if !strings.Contains(got, word) {
			t.Errorf("%s is lost in %s", word, got)
		}
	}
}

func TestCleanLeavesNothingForATerminalToObey(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a\tb": "a b", "a\x1b[31mb": "a?[31mb", "a\r\nb": "a\nb", "a\rb": "a?b", "\u202eabc": "?abc", "a\xffb": "a?b", "a\u2028b": "a?b", "便宜\n的": "便宜\n的", "\u009b31m": "?31m",
	} {
		if got := clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestHistories(t *testing.T) {
	v := someView()
	var got strings.Builder
	for _, columns := range []int{0, 160, 80, 40, 20, 10, 3} {
		got.WriteString(drawn(fmt.Sprintf("all, %d columns", columns), histories(v, "", columns, false)))
		got.WriteString(drawn(fmt.Sprintf("one, %d columns", columns), histories(v, "auto-strong", columns, false)))
	}
	got.WriteString(drawn("nobody", histories(v, "nobody", 80, false)))
	expect(t, "testdata/histories.txt", got.String())
}

// A day is 144 cells at every width.
func TestEveryCellIsDrawn(t *testing.T) {
	v := someView()
	for columns := 1; columns <= 170; columns++ {
		signs := 0
		for _, line := range cellLines(&v.Models[0].History, columns, false) {
			if width(line) > columns {
				t.Fatalf("%q is wider than %d", line, columns)
			}
			if i := strings.IndexByte(line, 'h'); i >= 0 {
				line = line[i+1:]
			}
			signs += len(strings.TrimSpace(line))
		}
		if signs != 144 {
			t.Fatalf("%d cells at %d columns", signs, columns)
		}
	}
}

func TestCellsInColourHoldTheSameSigns(t *testing.T) {
	states := []string{"ok", "ok", "mixed", "failing", "frozen", "idle", "something new"}
	if got := uncoloured(paint(true).cells(states)); got != "##+x*.?" || got != paint(false).cells(states) {
		t.Error(got)
	}
}
