package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"
)

// A line for machines says spans in milliseconds, under names that say so, and no
// key twice: most readers would keep the last and lose the time of the line.
func TestJSONLinesHaveMillisecondsAndNoKeyTwice(t *testing.T) {
	var out bytes.Buffer
	log, flush := newLog(&out, false, "json", "info")
	log.Info("request", slog.String("id", "req_1"), slog.Duration("took", 1204*time.Millisecond))
	flush()
	d := json.NewDecoder(bytes.NewReader(out.Bytes()))
	seen := map[string]bool{}
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		if delim, ok := token.(json.Delim); ok {
			depth += map[json.Delim]int{'{': 1, '}': -1}[delim]
			continue
		}
		key := token.(string)
		if seen[key] {
			t.Errorf("%q stands twice: %s", key, out.Bytes())
		}
		seen[key] = true
		value, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if key == "took_ms" && value != 1204. {
			t.Errorf("took_ms is %v", value)
		}
	}
	if !seen["took_ms"] || !seen["time"] {
		t.Errorf("%s", out.Bytes())
	}
}

// Lines for people hold each attribute once, in order, and nothing that could move a
// cursor, colour a terminal or end a line.
func TestLinesForPeople(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 5, 7, 0, time.UTC)
	line := func(colour bool, with func(slog.Handler) slog.Handler, level slog.Level, message string, attrs ...slog.Attr) string {
		var out bytes.Buffer
		h := with(newLineHandler(&out, slog.LevelDebug, colour))
		r := slog.NewRecord(at, level, message, 0)
		r.AddAttrs(attrs...)
		if err := h.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	plain := func(h slog.Handler) slog.Handler { return h }
	for _, c := range []struct{ got, want string }{
		{line(false, plain, slog.LevelInfo, "request", slog.String("id", "req_1"), slog.Int("status", 200), slog.Duration("took", 1204*time.Millisecond), slog.Float64("cache_rate", 0.978), slog.Bool("x", true)),
			"09:05:07 INF request id=req_1 status=200 took=1.204s cache_rate=0.978 x=true\n"},
		{line(false, plain, slog.LevelWarn, "attempt failed", slog.String("why", `503 (capacity) "busy"`), slog.String("empty", ""), slog.String("model", "a=b"), slog.String("name", "Größe-模型")),
			`09:05:07 WRN attempt failed why="503 (capacity) \"busy\"" empty="" model="a=b" name=Größe-模型` + "\n"},
		{line(false, plain, slog.LevelError, "a\x1b[31m\nb", slog.String("k\n", "v\x1b]0;title\x07\r\n\u202e\xff")),
			`09:05:07 ERR a\x1b[31m\nb k\n="v\x1b]0;title\a\r\n\u202e\xff"` + "\n"},
		{line(false, func(h slog.Handler) slog.Handler {
			return h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g").WithAttrs([]slog.Attr{slog.Int("b", 2)})
		}, slog.LevelDebug, "m", slog.Int("c", 3), slog.Group("h", slog.Int("d", 4)), slog.Attr{}, slog.Any("err", errors.New("no way"))),
			`09:05:07 DBG m a=1 g.b=2 g.c=3 g.h.d=4 g.err="no way"` + "\n"},
		{line(true, plain, slog.LevelInfo, "request", slog.String("id", "r\x1b[0m")),
			"\x1b[2m09:05:07\x1b[0m \x1b[92mINF\x1b[0m request \x1b[2mid=\x1b[0m\"r\\x1b[0m\"\n"},
	} {
		if c.got != c.want {
			t.Errorf("%q\nand not\n%q", c.got, c.want)
		}
	}
}

func BenchmarkLogLine(b *testing.B) {
	log := slog.New(newLineHandler(io.Discard, slog.LevelInfo, false))
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(context.Background(), slog.LevelInfo, "request", slog.String("id", "req_6c8f15ab7a7725a61a81f4f1"), slog.String("model", "auto-strong"), slog.String("ending", "success"),
			slog.Int("status", 200), slog.Int("attempts", 1), slog.Duration("took", 1204*time.Millisecond), slog.String("candidate", "Claude"), slog.Int64("input_tokens", 2095), slog.Int64("output_tokens", 503))
	}
}
