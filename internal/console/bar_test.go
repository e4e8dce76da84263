package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/internal/control"
)

func drawn(title string, lines []string) string {
	return "== " + title + " ==\n" + strings.Join(lines, "\n") + "\n"
}

// The bar at every width that matters, with everything it can say.
func TestBar(t *testing.T) {
	var got strings.Builder
	v := someView()
	for _, columns := range []int{120, 80, 60, 40, 30, 20, 10, 3, 1} {
		got.WriteString(drawn(fmt.Sprintf("%d columns", columns), bar{view: v}.lines(columns, 8, false)))
	}
	for _, most := range []int{5, 4, 3, 2, 1} {
		got.WriteString(drawn(fmt.Sprintf("%d lines", most), bar{view: v}.lines(80, most, false)))
	}
	got.WriteString(drawn("a minute later, without a new view", bar{view: v, age: time.Minute}.lines(80, 8, false)))
	got.WriteString(drawn("when the freeze is over", bar{view: v, age: 251 * time.Second}.lines(80, 8, false)))
	troubled := someView()
	troubled.Config.Error, troubled.Config.NeedsRestart, troubled.TargetMode = "understudy.yaml:3:1: what\nunderstudy.yaml:4:1: else", []string{"host", "port"}, true
	all := bar{view: troubled, trouble: "nobody answers at http://127.0.0.1:8788", stopping: true, running: "reload"}
	got.WriteString(drawn("all at once", all.lines(80, 12, false)))
	got.WriteString(drawn("all at once, in little room", all.lines(80, 5, false)))
	got.WriteString(drawn("before the first view", bar{}.lines(80, 8, false)))
	got.WriteString(drawn("nobody there", bar{trouble: "no route to host"}.lines(80, 8, false)))
	well := someView()
	well.Freezes = nil
	well.Models[0].Candidates = well.Models[0].Candidates[:1]
	well.Models = well.Models[:1]
	got.WriteString(drawn("all is well", bar{view: well}.lines(80, 8, false)))
	well.Models[0].Candidates = append(well.Models[0].Candidates, control.Candidate{State: control.StateDisabled})
	got.WriteString(drawn("one is disabled", bar{view: well}.lines(80, 8, false)))
	many := someView()
	for i := range 30 {
		m := many.Models[0]
		m.Name, m.RPM = fmt.Sprintf("model-%02d", i), int64(i)
		many.Models = append(many.Models, m)
		f := many.Freezes[0]
		f.Model = m.Name
		many.Freezes = append(many.Freezes, f)
	}
	got.WriteString(drawn("many", bar{view: many}.lines(80, 8, false)))
	got.WriteString(drawn("in colour", []string{fmt.Sprintf("%q", bar{view: v, stopping: true}.lines(80, 8, true))}))
	expect(t, "testdata/bar.txt", got.String())
}

// No colour says anything that is not said without it.
func TestTheBarSaysTheSameWithoutColours(t *testing.T) {
	v := someView()
	plain, coloured := bar{view: v, stopping: true}.lines(80, 8, false), bar{view: v, stopping: true}.lines(80, 8, true)
	for i := range coloured {
		coloured[i] = uncoloured(coloured[i])
	}
	if !slices.Equal(plain, coloured) {
		t.Errorf("%q\n%q", plain, coloured)
	}
}

// names are those of models and candidates: of all widths, some with what a terminal
// would obey.
var names = rapid.OneOf(rapid.StringN(0, 40, -1), rapid.SampledFrom([]string{"auto", "便宜的模型", "é́", "\x1b[31m", "a\tb", "👩‍👩‍👧", "line\nbreak", strings.Repeat("长", 60)}))

func anyView(t *rapid.T) *control.View {
	v := &control.View{Time: moment}
	for i := range rapid.IntRange(0, 12).Draw(t, "models") {
		m := control.Model{Name: names.Draw(t, "name"), RPM: rapid.Int64Range(0, 1e9).Draw(t, "rpm")}
		if rapid.Bool().Draw(t, "known") {
			m.TPM, m.AvgLatency, m.CacheHit = new(rapid.Int64Range(0, 1e12).Draw(t, "tpm")), new(rapid.Float64Range(0, 1e9).Draw(t, "ms")), new(rapid.Float64Range(0, 1).Draw(t, "hit"))
		}
		m.Candidates = []control.Candidate{{Name: names.Draw(t, "candidate"), State: rapid.SampledFrom([]string{"ready", "frozen", "probation", "disabled"}).Draw(t, "state")}}
		v.Models = append(v.Models, m)
		if i%2 == 0 {
			v.Freezes = append(v.Freezes, control.Freeze{Model: m.Name, Candidate: m.Candidates[0].Name, Until: moment.Add(time.Duration(rapid.Int64Range(-10, 1e6).Draw(t, "left")) * time.Second)})
		}
	}
	if rapid.Bool().Draw(t, "error") {
		v.Config.Error = names.Draw(t, "what")
	}
	return v
}

// However narrow the terminal and however odd the names: no line is too wide, there are
// no more than there may be, and nothing in them moves the cursor.
func TestTheBarKeepsToItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, most := rapid.IntRange(0, 130).Draw(t, "columns"), rapid.IntRange(0, 12).Draw(t, "lines")
		b := bar{view: anyView(t), trouble: names.Draw(t, "trouble"), stopping: rapid.Bool().Draw(t, "stopping"), age: time.Duration(rapid.IntRange(0, 100).Draw(t, "age")) * time.Second}
		lines := b.lines(columns, most, false)
		if len(lines) > most {
			t.Fatalf("%d lines, at most %d: %q", len(lines), most, lines)
		}
		for _, line := range lines {
			if width(line) > columns {
				t.Fatalf("%d columns in %d: %q", width(line), columns, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("a control character in %q", line)
			}
		}
	})
}

func TestCountdown(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{time.Millisecond, "1s"}, {time.Second, "1s"}, {1001 * time.Millisecond, "2s"}, {59 * time.Second, "59s"}, {time.Minute, "1m00s"},
		{time.Hour - time.Second, "59m59s"}, {time.Hour, "1h00m"}, {25 * time.Hour, "1d01h"}, {10 * 365 * 24 * time.Hour, "3650d00h"},
	} {
		if got := seconds(c.d); got != c.want {
			t.Errorf("%v is shown as %s, want %s", c.d, got, c.want)
		}
	}
}

func TestFiguresAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 9999: "9999", 10000: "10.0k", 99949: "99.9k", 99950: "100k", 999949: "1000k", 999950: "1.0M", 9999499: "10.0M", 9999500: "10M", 123456789: "123M"} {
		if got := tokens(&n, false); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if tokens(nil, false) != "?" || tokens(new(int64(5)), true) != "5+" {
		t.Error("unknown is ?, incomplete +")
	}
	for ms, want := range map[float64]string{0: "0ms", 999.4: "999ms", 999.6: "1.0s", 12345: "12.3s", 99950: "100s"} {
		if got := latency(&ms); got != want {
			t.Errorf("%v: %s, want %s", ms, got, want)
		}
	}
}

func TestTheBarSaysThatTheStoreIsAway(t *testing.T) {
	v := someView()
	v.Store = control.StoreStatus{State: control.StoreAway, Problem: "connection refused\nand more"}
	const want = "the store is away, this instance goes by what it knows: connection refused"
	count := func() int {
		return strings.Count(strings.Join(bar{view: v}.lines(100, 10, false), "\n"), want)
	}
	if count() != 1 {
		t.Errorf("the bar says %q", bar{view: v}.lines(100, 10, false))
	}
	v.Store.State = control.StoreShared
	if count() != 0 {
		t.Error("it says so though it is not")
	}
}
