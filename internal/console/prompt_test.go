package console

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHideKeepsTheLength(t *testing.T) {
	for line, want := range map[string]string{
		"cand add a api_key=sk-proj-abcdefghijklmnop1234 model=m": "cand add a api_key=sk-pro******************1234 model=m",
		"cand set a 1 api_key short":                              "cand set a 1 api_key *****",
		"cand set a 1 api_key 便宜":                                 "cand set a 1 api_key **",
		"cand set a 1 api_key sk-pro***1234":                      "cand set a 1 api_key sk-pro***1234",
		"freeze add a 1 60":                                       "freeze add a 1 60",
	} {
		if got := string(hide(line)); got != want {
			t.Errorf("%s is seen as %s, want %s", line, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		line := clean(names.Draw(t, "a") + " api_key=" + names.Draw(t, "b"))
		if got := hide(line); len(got) != len([]rune(line)) {
			t.Fatalf("%q is seen as %q", line, string(got))
		}
	})
}

// The cursor is always in sight, and nothing is drawn beyond the room there is.
func TestTheWindowFollowsTheCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := []rune(clean(strings.ReplaceAll(names.Draw(t, "line")+names.Draw(t, "more"), "\n", " ")))
		cursor, columns := rapid.IntRange(0, len(line)).Draw(t, "cursor"), rapid.IntRange(1, 60).Draw(t, "columns")
		text, x := window(line, cursor, columns)
		if width(text) > columns || x < 0 || x >= columns {
			t.Fatalf("%q with the cursor at %d in %d columns", text, x, columns)
		}
	})
}

func TestTheWindowStandsStillWhileTheCursorMoves(t *testing.T) {
	line := []rune(strings.Repeat("0123456789", 10))
	moved := 0
	last, _ := window(line, 0, 20)
	for cursor := range len(line) {
		text, _ := window(line, cursor, 20)
		if text != last {
			moved++
		}
		last = text
	}
	if moved > 10 {
		t.Errorf("it moved %d times along 100 characters", moved)
	}
}

func TestThePromptGrowsShort(t *testing.T) {
	for columns, want := range map[int]string{80: "understudy> ", 40: "understudy> ", 39: "> ", 6: "> ", 5: "", 1: ""} {
		if got := promptText(columns); got != want {
			t.Errorf("%d columns: %q", columns, got)
		}
	}
}
