package config

import (
	"strings"
	"testing"
	"time"
)

// What would compile to something huge is refused with its place; what is
// taken matches in time that grows with the text, whatever it repeats.
func TestRegexesAreBounded(t *testing.T) {
	file := func(regex string) Source {
		return Source{Path: "c.yaml", Format: YAML, Bytes: []byte("virtual_models: {a: [{base_url: http://h, auth_style: none, model: m}]}\nrules:\n  - {match: {body_regex: '" + regex + "'}, action: next}\n")}
	}
	for _, regex := range []string{`a{1000}{1000}`, `(a{1000}){1000}`, `((a{100}){100}){100}`, `x{1001}`, strings.Repeat("(", 2000) + "a" + strings.Repeat(")", 2000)} {
		cfg, problems := Parse(file(regex))
		if cfg != nil || len(problems) == 0 || problems[0].Line != 3 {
			t.Errorf("%.40s is taken: %v", regex, problems)
		}
	}
	cfg, problems := Parse(file(`(a*)*(a|aa)+(.*.*)*b$`))
	if cfg == nil {
		t.Fatal(problems)
	}
	match := func(n int) (quickest time.Duration) {
		text := strings.Repeat("a", n)
		for range 3 {
			start := time.Now()
			if cfg.Rules[0].Body.MatchString(text) {
				t.Error("it matches")
			}
			if d := time.Since(start); quickest == 0 || d < quickest {
				quickest = d
			}
		}
		return quickest
	}
	// Sixteen times the text: 16 times as long, or 256 times where each repetition is
	// tried against each other.
	if few, many := match(16<<10), match(256<<10); many > 80*few {
		t.Errorf("16 KiB took %v, and 256 KiB %v", few, many)
	}
}
