package drill

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// direct is a chain whose "proxy" is its first upstream: what a client gets that has
// none.
func direct(d Dialect) Chain {
	return Chain{Model: "m1", Dialect: d, Factor: 30, Patience: 10 * time.Second, Candidates: []Candidate{{Name: "first"}, {Name: "second"}},
		Open: func(urls []string, _ float64) (*Proxy, error) {
			return &Proxy{Addr: strings.TrimPrefix(urls[0], "http://"), Booked: func(context.Context) Booking { return Booking{} }, Close: func() {}}, nil
		}}
}

// A drill is worth as much as it can find. Without a proxy nothing is rescued,
// what breaks is an error, what looks whole and is not is found out, and who waits
// in vain too.
func TestADrillWithoutAProxy(t *testing.T) {
	t.Parallel()
	want := map[string]Verdict{
		"S06": Fail, // the two minutes are longer than the 100 s that are allowed
		"S07": Partial, "S10": Pass, "S11": Pass, "S13": Pass,
		"S15": Fail, // nobody answers during the outage
		"S16": Safe,
		"U09": Safe, // a client sees that there is not a word
		"U11": Fail, "U12": Fail, "U20": Fail,
		"U13": Fail, // forty words that look like an answer
		"U18": Pass, // every request has a connection of its own
		"U19": Pass, "U24": Pass, "U25": Pass, "U26": Pass,
	}
	for _, d := range Dialects {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for _, sc := range Scenarios() {
				wg.Go(func() {
					r, err := sc.Play(t.Context(), direct(d))
					if err != nil {
						t.Errorf("%s: %v", sc.ID, err)
						return
					}
					expected := cmp.Or(want[sc.ID], Safe)
					if r.Verdict != expected {
						t.Errorf("%s %s: %s, want %s: %s (%s)", sc.ID, sc.Name, r.Verdict, expected, r.Client, r.Why)
					}
					if r.Verdict == Safe && r.Released != strings.HasPrefix(r.Why, "words") {
						t.Errorf("%s: released %v, but %q", sc.ID, r.Released, r.Why)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestTheCatalogueIsSixteenAndTwelveMore(t *testing.T) {
	names := map[string]bool{}
	bench := 0
	for _, s := range Scenarios() {
		if names[s.ID] || names[s.Name] || s.ID == "" || s.Name == "" || s.Title == "" || s.Fault == "" || s.Right == "" {
			t.Errorf("%s %s: an empty field, or one that stands twice", s.ID, s.Name)
		}
		names[s.ID], names[s.Name] = true, true
		if s.Benchmark() {
			bench++
		}
	}
	if bench != 16 || len(Scenarios())-bench < 12 {
		t.Errorf("%d of FailoverBench's, %d of ours", bench, len(Scenarios())-bench)
	}
}

func TestADrillThatIsCutShortSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrLeft)
	var card Scorecard
	err := card.Run(ctx, []Part{{Card: Card{Model: "m1"}, Chain: direct(Chat)}}, Scenarios()[:2], 4, nil)
	if err == nil || card.Total.All() != 0 {
		t.Errorf("%v, %+v", err, card.Total)
	}
}

// What did not pass beside all others is played again with few beside it; what could
// not have ended better is not.
func TestWhatDidNotPassIsPlayedAgain(t *testing.T) {
	var mu sync.Mutex
	plays := map[string]int{}
	flaky := func(name string) Scenario {
		return Scenario{ID: name, checks: []check{{name: "be alone", holds: func(*sight) bool {
			mu.Lock()
			defer mu.Unlock()
			plays[name]++
			return plays[name] > 1
		}}}}
	}
	var card Scorecard
	err := card.Run(t.Context(), []Part{{Card: Card{Model: "m1"}, Chain: direct(Chat)}}, []Scenario{flaky("busy"), {ID: "well"}, {ID: "cut", script: always(staged(-1, 40, stop(FIN)))}}, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := card.Cards[0].Results
	if plays["busy"] != 2 || r[0].Verdict != Pass || r[0].Before != Fail {
		t.Errorf("played %d times: %s, before %s", plays["busy"], r[0].Verdict, r[0].Before)
	}
	if r[1].Verdict != Pass || r[1].Before != "" || r[2].Verdict != Safe || r[2].Before != "" {
		t.Errorf("%+v", r[1:])
	}
	if card.Total != (Counts{Pass: 2, Safe: 1}) {
		t.Errorf("%+v", card.Total)
	}
}

// docs/drill.md has every scenario, under its id.
func TestEveryScenarioIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/drill.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Scenarios() {
		if !strings.Contains(string(text), "\n| "+s.ID+" | ") {
			t.Errorf("docs/drill.md says nothing of %s", s.ID)
		}
	}
}
