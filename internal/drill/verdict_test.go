package drill

import (
	"testing"
	"time"
)

// The verdicts are FailoverBench's: what was seen decides, not what was done.
func TestVerdicts(t *testing.T) {
	whole := sight{whole: true, others: 1, heard: Heard{Text: "all"}}
	refused := sight{others: 1, heard: Heard{Error: "503", Refusal: true}}
	holds, fails := func(*sight) bool { return true }, func(*sight) bool { return false }
	required := func(f func(*sight) bool) Scenario { return Scenario{checks: []check{{name: "do it", holds: f}}} }
	advised := func(f func(*sight) bool) Scenario {
		return Scenario{checks: []check{{name: "do it", advisory: true, holds: f}}}
	}
	for _, test := range []struct {
		name string
		sc   Scenario
		s    sight
		want Verdict
		why  string
	}{
		{"a whole answer", Scenario{}, whole, Pass, ""},
		{"a whole answer and every check", required(holds), whole, Pass, ""},
		{"a whole answer without what is advisable", advised(fails), whole, Partial, "could have: do it"},
		{"a whole answer and a required check that does not hold", required(fails), whole, Fail, "should have: do it"},
		{"a part that looks whole", Scenario{}, sight{heard: Heard{Text: "al"}}, Fail, "what reached the client looks whole and is not"},
		{"a part that looks whole, with all checks", required(holds), sight{heard: Heard{Text: "al"}}, Fail, "what reached the client looks whole and is not"},
		{"waiting in vain", Scenario{}, sight{hung: true, heard: Heard{Error: "no answer"}}, Fail, "the client waited in vain"},
		{"waiting in vain for a refusal", Scenario{refusal: true}, sight{hung: true, heard: Heard{Error: "no answer"}}, Fail, "the client waited in vain"},
		{"an error with nobody else", Scenario{}, sight{heard: Heard{Error: "503"}}, Safe, "there is nobody else to ask"},
		{"an error with others there", Scenario{}, refused, Safe, "nobody else was asked, or could answer"},
		{"an error after words", Scenario{}, sight{others: 1, released: true, heard: Heard{Text: "al", Error: "broken off"}}, Safe, "words had reached the client before it failed"},
		{"an error and hammering", required(fails), refused, Fail, "should have: do it"},
		{"an error without what is advisable", advised(fails), refused, Safe, "nobody else was asked, or could answer"},
		{"a refusal passed on", Scenario{refusal: true}, refused, Pass, ""},
		{"a refusal worked around", Scenario{refusal: true}, whole, Partial, "somebody else answered what was refused"},
		{"a check for those with a fallback", Scenario{checks: []check{{name: "do it", rescue: true, holds: fails}}}, sight{whole: true}, Pass, ""},
		{"why it does not hold", Scenario{checks: []check{{name: "do it", holds: fails, because: func(*sight) string { return " (too late)" }}}}, whole, Fail, "should have: do it (too late)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, why, _ := test.sc.judge(&test.s); got != test.want || why != test.why {
				t.Errorf("%s (%s), want %s (%s)", got, why, test.want, test.why)
			}
		})
	}
}

func TestAttemptsAreCountedAsUpstreamsSeeThem(t *testing.T) {
	at := func(rank int, ms time.Duration) Attempt { return Attempt{rank, ms * time.Millisecond} }
	s := sight{factor: 10, attempts: []Attempt{at(0, 5), at(0, 205), at(1, 300), at(0, 320), at(1, 400), at(1, 401), at(1, 402)}}
	if s.lead() != 3 || s.rest() != 4 || s.busiest() != 4 {
		t.Errorf("%d at the first, %d at others, %d at most", s.lead(), s.rest(), s.busiest())
	}
	if s.gap() != 200*time.Millisecond {
		t.Errorf("gap %s", s.gap())
	}
	// Ten times faster clocks: three seconds are 300 ms.
	if n := s.within(3 * time.Second); n != 2 {
		t.Errorf("%d within", n)
	}
	if s.gap() == 0 || (&sight{attempts: []Attempt{at(0, 5), at(1, 9)}}).gap() != 0 {
		t.Error("a gap where there is one attempt")
	}
}
