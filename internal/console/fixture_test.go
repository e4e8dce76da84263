package console

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/control"
)

var update = flag.Bool("update", false, "write the files of expected output anew")

// expect compares with a file of expected output, or writes it with -update.
func expect(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}

// moment is when the Views of the tests are made.
var moment = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// someView is a process with two virtual models, one of them with wide characters in
// its name, and the pool.
func someView() *control.View {
	day := func(states ...string) control.History {
		h := control.History{Start: moment.Add(-24 * time.Hour), CellSeconds: 600}
		for i := range 144 {
			h.States = append(h.States, states[i*len(states)/144])
			h.Successes, h.Failures = append(h.Successes, 0), append(h.Failures, 0)
		}
		return h
	}
	v := &control.View{
		Time: moment, WindowSeconds: 1800,
		Models: []control.Model{
			{
				Name: "auto-strong", RPM: 12, TPM: new(int64(34567)), TPMIncomplete: true, AvgLatency: new(1234.0), CacheHit: new(0.456), InFlight: 2,
				History: day("idle", "ok", "mixed", "failing"),
				Candidates: []control.Candidate{
					{Index: 1, Tier: 1, Name: "Direct API", Model: "gpt-4o", State: control.StateReady, History: day("idle", "ok")},
					{Index: 2, Tier: 2, Name: "Claude", Model: "claude-sonnet-4-5", State: control.StateFrozen, SecondsLeft: 251, History: day("ok", "frozen")},
					{Index: 3, Tier: 3, Name: "Spare", Model: "gpt-4o", State: control.StateDisabled, History: day("idle")},
				},
				Rules: []control.Rule{{Index: 1, Name: "rule 1"}},
			},
			{
				Name: "便宜的模型", RPM: 0, AvgLatency: nil, History: day("idle"),
				Candidates: []control.Candidate{{Index: 1, Tier: 1, Name: "本地 模型", Model: "qwen2.5", State: control.StateProbation, History: day("idle")}},
			},
			{
				Name: "*", Pool: true, RPM: 1, TPM: new(int64(0)), AvgLatency: new(87.0), CacheHit: new(0.0), History: day("idle"),
				Candidates: []control.Candidate{{Index: 1, Tier: 1, Name: "primary", State: control.StateReady, History: day("idle")}},
			},
		},
		Freezes: []control.Freeze{{Model: "auto-strong", Index: 2, Candidate: "Claude", RealModel: "claude-sonnet-4-5", Reason: "429", By: "rule", Since: moment.Add(-time.Minute), Until: moment.Add(250*time.Second + 400*time.Millisecond), SecondsLeft: 251}},
		Rules:   []control.Rule{{Index: 1, Name: "quota"}, {Index: 2, Name: "network"}},
	}
	v.Totals.InFlight = 2
	return v
}

// A double is a source that remembers what it was asked and says what it is told to.
type double struct {
	mu    sync.Mutex
	asked []string
	say   func(line string) (control.Output, error)
	view  *control.View
}

func (d *double) source() Source {
	return Source{
		Run: func(_ context.Context, line string) (control.Output, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.asked = append(d.asked, line)
			if d.say != nil {
				return d.say(line)
			}
			return control.Output{Text: "did " + line}, nil
		},
		View: func(context.Context) (control.View, error) {
			if d.view == nil {
				return control.View{}, fmt.Errorf("no view")
			}
			return *d.view, nil
		},
	}
}

func (d *double) lines() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.asked, "\n")
}
