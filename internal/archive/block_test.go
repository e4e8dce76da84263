package archive

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"understudy/internal/stats"
)

var (
	words     = rapid.OneOf(rapid.SampledFrom([]string{"", "auto", "rate", "openai"}), rapid.String())
	numbers   = rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64())
	durations = rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(numbers.Draw(t, "ns")) })
	moments   = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "never") {
			return time.Time{}
		}
		return time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(t, "unix"))
	})
	usages = rapid.Custom(func(t *rapid.T) stats.Usage {
		if rapid.Bool().Draw(t, "none") {
			return stats.NoUsage()
		}
		n := func(what string) int64 { return max(-1, numbers.Draw(t, what)) }
		return stats.Usage{Input: n("in"), Output: n("out"), Cached: n("cached"), CacheWrite: n("write"), Reasoning: n("reasoning"), Total: n("total")}
	})
	failures = rapid.Custom(func(t *rapid.T) *stats.Failure {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		w, b := func() string { return words.Draw(t, "word") }, func() bool { return rapid.Bool().Draw(t, "flag") }
		return &stats.Failure{Kind: w(), Phase: w(), Code: w(), Message: w(), Account: w(), Body: w(), Next: w(), Scope: w(), Unreached: b(), Cut: b(), Errored: b(), Empty: b(), WellFormed: b(),
			HasRetryAfter: b(), Embedded: rapid.Int().Draw(t, "embedded"), Number: rapid.Int().Draw(t, "number"),
			RetryAfter: durations.Draw(t, "after"), Wait: durations.Draw(t, "wait"), Freeze: durations.Draw(t, "freeze")}
	})
	tries = rapid.Custom(func(t *rapid.T) stats.Try {
		w, d := func() string { return words.Draw(t, "word") }, func() time.Duration { return durations.Draw(t, "duration") }
		try := stats.Try{Candidate: w(), Name: w(), Model: w(), Start: moments.Draw(t, "start"), Connected: d(), Header: d(), FirstByte: d(), FirstContent: d(), Released: d(), End: d(),
			Verdict: rapid.SampledFrom([]stats.Verdict{stats.Abandoned, stats.OK, stats.Empty, stats.Failed}).Draw(t, "verdict"),
			Status:  rapid.Int().Draw(t, "status"), Hedged: rapid.Bool().Draw(t, "hedged"), Usage: usages.Draw(t, "usage"), Bytes: numbers.Draw(t, "bytes"), Failure: failures.Draw(t, "failure")}
		if rapid.Bool().Draw(t, "account") {
			try.Class, try.Fault, try.Rule, try.Action, try.Text, try.Wait, try.Froze = w(), w(), w(), w(), w(), d(), d()
		}
		return try
	})
	records = rapid.Custom(func(t *rapid.T) stats.Sequenced {
		w, d := func() string { return words.Draw(t, "word") }, func() time.Duration { return durations.Draw(t, "duration") }
		r := stats.Record{ID: w(), Model: w(), Client: w(), Method: w(), Path: w(), Dialect: w(), Strategy: w(), Stream: rapid.Bool().Draw(t, "stream"), Ignored: rapid.Bool().Draw(t, "ignored"),
			Start: moments.Draw(t, "start"), Released: d(), FirstContent: d(), End: d(), Status: rapid.Int().Draw(t, "status"),
			Ending:  stats.Ending(rapid.IntRange(int(stats.Refused), int(stats.Cancelled)).Draw(t, "ending")),
			Omitted: rapid.IntRange(0, 9999).Draw(t, "omitted"), Usage: usages.Draw(t, "usage"), Bytes: numbers.Draw(t, "bytes"),
			Tries: rapid.SliceOfN(tries, 0, 4).Draw(t, "tries"), Winner: -1}
		if rapid.Bool().Draw(t, "our id") {
			r.ID = id(rapid.IntRange(0, 1<<40).Draw(t, "id"))
		}
		if len(r.Tries) > 0 {
			r.Winner = rapid.IntRange(-1, len(r.Tries)-1).Draw(t, "winner")
		}
		for range rapid.IntRange(0, 3).Draw(t, "skips") {
			r.Skips = append(r.Skips, stats.Skip{Candidate: w(), Name: w(), Reason: w(), Left: d()})
		}
		for range rapid.IntRange(0, 3).Draw(t, "planned") {
			r.Plan = append(r.Plan, stats.Planned{Candidate: w(), Name: w(), Model: w(), Tier: rapid.Int().Draw(t, "tier")})
		}
		if rapid.Bool().Draw(t, "shared plan") {
			r.Plan = plan
		}
		return stats.Sequenced{Seq: rapid.Uint64Range(0, 1<<62).Draw(t, "seq"), Record: r}
	})
)

// encoded is a block of these records.
func encoded(e *encoder, list []stats.Sequenced) []byte {
	e.reset()
	for i := range list {
		e.add(&list[i])
	}
	return e.bytes()
}

func TestBlocksGiveBackWhatWasPutIn(t *testing.T) {
	e := newEncoder()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(records, 0, 6).Draw(t, "records")
		got, err := decodeAll(encoded(e, want))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func TestDamagedBlocksAreErrors(t *testing.T) {
	var list []stats.Sequenced
	for i := range 9 {
		list = append(list, stats.Sequenced{Seq: uint64(i), Record: sample(i)})
	}
	whole := encoded(newEncoder(), list)
	for n := range whole {
		if got, err := decodeAll(whole[:n]); !errors.Is(err, errBlock) || len(got) >= len(list) {
			t.Errorf("%d of %d bytes give %d records, %v", n, len(whole), len(got), err)
		}
	}
	if _, err := decodeAll(append(whole, 0)); !errors.Is(err, errBlock) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := decode([]byte{blockVersion + 1, 0, 0, 0}); !errors.Is(err, errBlock) {
		t.Errorf("another version: %v", err)
	}
}

func TestBlocksAreSmall(t *testing.T) {
	var list []stats.Sequenced
	for i := range maxBlock {
		list = append(list, stats.Sequenced{Seq: uint64(i), Record: sample(3 * i)})
	}
	if n := len(encoded(newEncoder(), list)) / maxBlock; n > 110 {
		t.Errorf("%d bytes for a request that went well", n)
	}
}

// A secret that the proxy has not taken out must at least not be hidden in a form
// that a search through the file misses: strings stand as they are.
func TestStringsStandAsTheyAre(t *testing.T) {
	r := sample(2)
	r.Tries[0].Text = "a text to be found"
	if block := encoded(newEncoder(), []stats.Sequenced{{Record: r}}); !strings.Contains(string(block), r.Tries[0].Text) {
		t.Error("the text is not in the block")
	}
}

func FuzzDecode(f *testing.F) {
	e := newEncoder()
	f.Add(encoded(e, nil))
	f.Add(encoded(e, []stats.Sequenced{{Seq: 1, Record: sample(1)}, {Seq: 2, Record: sample(2)}, {Seq: 9, Record: sample(5)}}))
	f.Fuzz(func(t *testing.T, block []byte) {
		list, err := decodeAll(block)
		if err != nil {
			return
		}
		// What is read can be written and read again.
		again, err := decodeAll(encoded(newEncoder(), list))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(list, again, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := newEncoder()
	list := make([]stats.Sequenced, maxBlock)
	for i := range list {
		list[i] = stats.Sequenced{Seq: uint64(i), Record: sample(3 * i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		encoded(e, list)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/maxBlock, "ns/entry")
}
