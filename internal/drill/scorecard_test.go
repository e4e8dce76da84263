package drill

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// specimen is a scorecard with one of everything, and hostile names.
func specimen() *Scorecard {
	results := []Result{
		{ID: "S08", Title: "cut after 40 of 60 words", Fault: "closes", Right: "an error", Verdict: Safe, Why: "words had reached the client before it failed", First: 1, Seconds: .26, Client: "40 words, then: broken off", Released: true},
		{ID: "S15", Title: "down for a minute, then well", Verdict: Fail, Why: "should have: come back within 30 s", First: 5, Others: 20, Seconds: 11.4, Client: "20 whole answers, the first never used again",
			Checks: []Note{{Check: "come back within 30 s"}}, Booked: Booking{Skipped: []string{"<b>first</b>: frozen"}}},
		{ID: "U01", Title: "nobody listens", Verdict: Pass, Before: Fail, Others: 1, Seconds: .04, Client: "a whole answer, from second",
			Booked: Booking{Steps: []Step{{Candidate: "<script>alert(1)</script>", Class: "network", Text: "network: refused", Action: "next", Seconds: .001}, {Candidate: "second", Status: 200, Seconds: .03}}}},
		{ID: "U02", Title: "401: the key is dead", Verdict: Partial, Why: "could have: not ask it twice", First: 2, Others: 1, Seconds: 1, Client: strings.Repeat("so long ", 20)},
	}
	s := &Scorecard{Config: "a\"><script>alert(1)</script>.yaml", Version: "devel", Fast: true, Seconds: 12, Cards: []Card{
		{Model: "<i>vm</i>", Delivery: "stream", Dialect: Messages, Candidates: []string{"<script>alert(1)</script>", "second"}, Factor: 6.666, Results: results},
		{Model: "*", Skipped: "every candidate is disabled"},
	}}
	c := &s.Cards[0]
	c.Benchmark, c.Own = count(results, Result.Benchmark), count(results, func(r Result) bool { return !r.Benchmark() })
	s.Total = count(results, func(Result) bool { return true })
	return s
}

func TestScorecardForATerminal(t *testing.T) {
	var b strings.Builder
	if err := specimen().Text(&b, func(_, s string) string { return s }); err != nil {
		t.Fatal(err)
	}
	want := `understudy drill a"><script>alert(1)</script>.yaml
Clocks are divided as each table says, the file's and the faults' alike; --no-fast leaves them as they are.

<i>vm</i>  delivery stream, asked as Anthropic messages, 2 candidates: <script>alert(1)</script>, second; clocks ÷ 6.67

  FailoverBench's sixteen, methodology v0.1
       verdict  the first upstream            attempts     time  the client got
  S08  safe     cut after 40 of 60 words         1 + 0    0.3 s  40 words, then: broken off
                words had reached the client before it failed
  S15  fail     down for a minute, then well    5 + 20   11.4 s  20 whole answers, the first never used again
                should have: come back within 30 s
  0 of 2: 0 pass, 0 partial, 1 safe, 1 fail

  ours
       verdict  the first upstream            attempts     time  the client got
  U01  pass     nobody listens                   0 + 1    0.0 s  a whole answer, from second
                fail at first, beside all others; this is the second try
  U02  partial  401: the key is dead             2 + 1    1.0 s  so long so long so long so long so long so long so long so long so lo…
                could have: not ask it twice
  1 of 2: 1 pass, 1 partial, 0 safe, 0 fail

the pool (*)  not drilled: every candidate is disabled

1 failed: 1 pass, 1 partial, 1 safe, 1 fail, in 12 s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEveryVerdictHasAColourOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Verdicts {
		if colours[v] == "" || seen[colours[v]] {
			t.Errorf("%s: %q", v, colours[v])
		}
		seen[colours[v]] = true
	}
	var b strings.Builder
	if err := specimen().Text(&b, func(code, s string) string { return "<" + code + ">" + s }); err != nil {
		t.Fatal(err)
	}
	for _, v := range Verdicts {
		if !strings.Contains(b.String(), "<"+colours[v]+">"+string(v)) {
			t.Errorf("%s is not painted", v)
		}
	}
}

// The page loads nothing, runs nothing, and shows names as text.
func TestScorecardPageIsStrict(t *testing.T) {
	var b strings.Builder
	if err := specimen().HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="(.*?)"`).FindStringSubmatch(page)
	if style == nil || policy == nil {
		t.Fatal("no style or no policy")
	}
	sum := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	if got := html.UnescapeString(policy[1]); got != want {
		t.Errorf("policy %q, want %q", got, want)
	}
	for _, never := range []string{"<script", "<b>first", "<i>vm", " src=", "href=", "url(", "@import", " style="} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, always := range []string{"&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;b&gt;first", "prefers-color-scheme: dark", `<html lang="en">`, "Not drilled: every candidate is disabled", "1 of 2 pass"} {
		if !strings.Contains(page, always) {
			t.Errorf("the page lacks %q", always)
		}
	}
}
