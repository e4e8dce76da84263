package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"understudy/internal/stats"
)

// The line of a finished request says what an answer reported, and leaves out what
// it did not: no number stands for "unknown".
func TestTheSummaryLeavesOutWhatIsUnknown(t *testing.T) {
	won := []stats.Try{{Name: "first"}, {Name: "second", Text: "broke off"}}
	for _, c := range []struct {
		record stats.Record
		want   string
	}{
		{stats.Record{ID: "req_1", Model: "m", Ending: stats.Success, Status: 200, Tries: won[:1], End: 1204300 * time.Microsecond, FirstContent: 812 * time.Millisecond, Stream: true,
			Usage: stats.Usage{Input: 2095, Output: 503, Cached: 2048, CacheWrite: -1, Reasoning: -1, Total: 2598}},
			"id=req_1 model=m ending=success status=200 attempts=1 took=1.204s first_content=812ms candidate=first input_tokens=2095 output_tokens=503 cached_tokens=2048 cache_rate=0.978"},
		{stats.Record{ID: "req_2", Model: "m", Client: "ci", Ending: stats.Success, Status: 200, Tries: won, Winner: 1, Usage: stats.Usage{Input: 12, Output: 0, Cached: -1}},
			"id=req_2 model=m ending=success status=200 attempts=2 took=0s client=ci candidate=second input_tokens=12 output_tokens=0"},
		{stats.Record{ID: "req_3", Model: "m", Ending: stats.Broken, Status: 200, Tries: won, Winner: 1, Usage: stats.NoUsage()},
			`id=req_3 model=m ending=broken status=200 attempts=2 took=0s candidate=second why="broke off"`},
		{stats.Record{ID: "req_4", Model: "sk-upstream-secret-1", Ending: stats.Exhausted, Status: 502, Winner: -1, Usage: stats.NoUsage()},
			"id=req_4 model=sk-ups***et-1 ending=exhausted status=502 attempts=0 took=0s"},
	} {
		var out bytes.Buffer
		r := &run{record: c.record, req: &request{}, redact: quoter{base: &Redactor{least: 99}, secrets: []string{"Bearer sk-upstream-secret-1"}}}
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}}))
		log.LogAttrs(t.Context(), slog.LevelInfo, "request", r.summary(nil)...)
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("%s\nand not\n%s", got, c.want)
		}
	}
}

// Short names are quoted without a search, and no secret comes through for it.
func TestAShortTextIsQuotedWhereItIsTheSecret(t *testing.T) {
	for _, c := range []struct{ own, text, want string }{
		{"Bearer sk-abcdef0123456789", "gpt-4o", "gpt-4o"},
		{"Bearer sk-abcd-e0", "sk-abcd-e0", "***"},
		{"sk-abcd-e0", "x sk-abcd-e0", "x ***"},
		{"Basic dXNlcjpwYXNzdzByZA==", "passw0rd", "***"},
		{"Bearer sk-abcdef0123456789xyz", "sk-abcdef0123456", "sk-abc***9xyz"},
		{"Bearer sk-abcd-e0", "a\x1b[31m", "a\\u001b[31m"},
	} {
		q := quoter{base: &Redactor{least: 99}, secrets: []string{c.own}}
		if got := q.Quote(c.text, 100); got != c.want {
			t.Errorf("%q with %q: %q, and not %q", c.text, c.own, got, c.want)
		}
		if got := q.Quote(c.text, 2); len(c.text) > 2 && !strings.HasSuffix(got, "…") {
			t.Errorf("%q cut: %q", c.text, got)
		}
	}
}
