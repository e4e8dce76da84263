package config

import (
	"strings"
	"testing"
	"time"
)

// What would compile to something huge is refused with its place, and soon; what is
// taken matches in time that grows with the text, whatever it repeats.
func TestRegexesAreBounded(t *testing.T) {
	file := func(regex string) Source {
		return Source{Path: "c.yaml", Format: YAML, Bytes: []byte("virtual_models: {a: [{base_url: http://h, auth_style: none, model: m}]}\nrules:\n  - {match: {body_regex: '" + regex + "'}, action: next}\n")}
	}
	start := time.Now()
	for _, regex := range []string{`a{1000}{1000}`, `(a{1000}){1000}`, `((a{100}){100}){100}`, `x{1001}`, strings.Repeat("(", 2000) + "a" + strings.Repeat(")", 2000)} {
		cfg, problems := Parse(file(regex))
		if cfg != nil || len(problems) == 0 || problems[0].Line != 3 {
			t.Errorf("%.40s is taken: %v", regex, problems)
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("refusing them took %v", d)
	}
	cfg, problems := Parse(file(`(a*)*(a|aa)+(.*.*)*b$`))
	if cfg == nil {
		t.Fatal(problems)
	}
	start = time.Now()
	if cfg.Rules[0].Body.MatchString(strings.Repeat("a", 1<<20)) {
		t.Error("it matches")
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("one MiB took %v", d)
	}
}
