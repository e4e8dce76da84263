package main

import (
	"bytes"
	"encoding/json"
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
