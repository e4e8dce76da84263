package drill

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hearable are the ways in which a drill asks.
func hearable() (all []struct {
	name  string
	ask   asking
	query Query
}) {
	for _, d := range Dialects {
		for a, name := range map[asking]string{streamed: "stream", wholly: "whole", withTool: "tool"} {
			all = append(all, struct {
				name  string
				ask   asking
				query Query
			}{string(d) + "/" + name, a, d.query("m1", a)})
		}
	}
	return all
}

func TestACarefulClientHearsAWholeAnswerInEveryDialect(t *testing.T) {
	for _, h := range hearable() {
		t.Run(h.name, func(t *testing.T) {
			a := says(1, h.ask, 0)
			th := stageOn(t, Healthy(a))
			heard := Hear(th.ask(t, t.Context(), h.query))
			if heard.Error != "" || heard.Text != a.Text || heard.Tool != argumentsOf(a) || heard.Model != "m1" || !heard.Usage || !heard.Ended {
				t.Errorf("%+v", heard)
			}
			if words := len(strings.Fields(heard.Text)); words != 60 {
				t.Errorf("%d words, want 60", words)
			}
		})
	}
}

// An answer that fails is heard as an error, or as less than a whole one; never as
// a whole one. One that is odd and whole is heard as whole.
func TestNoFaultIsHeardAsAWholeAnswer(t *testing.T) {
	for _, fault := range Faults() {
		switch fault.Name {
		case "long-line", "endless-headers", "trickle", "gzip", "sse-for-json":
			continue // megabytes; bytes for a client that decodes; what only asking tells from an answer
		}
		for _, h := range hearable() {
			if h.ask == withTool {
				continue // most faults have no tools
			}
			t.Run(fault.Name+"/"+h.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := says(0, streamed, 0)
					th := stageOn(t, fault.Script(a))
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					heard := Hear(th.ask(t, ctx, h.query))
					whole := heard.Error == "" && heard.Ended && heard.Text == a.Text
					switch want := fault.Healthy || !fault.Applies(NewRequest("POST", h.query.Path, h.query.Body)); {
					case fault.Name == "length-empty" || fault.Name == "filter-empty" || fault.Name == "reset-after-terminal":
						if whole && fault.Name != "reset-after-terminal" {
							t.Errorf("heard a whole answer: %+v", heard)
						}
					case whole != want:
						t.Errorf("whole %v, want %v: %+v", whole, want, heard)
					}
				})
			})
		}
	}
}

func TestARefusalIsToldFromABrokenAnswer(t *testing.T) {
	for _, h := range hearable() {
		th := stageOn(t, unavailable.refuse()(Answer{}))
		if heard := Hear(th.ask(t, t.Context(), h.query)); !heard.Refusal || !strings.HasPrefix(heard.Error, "503 ") {
			t.Errorf("%s: %+v", h.name, heard)
		}
		th = stageOn(t, page(503, htmlType, html502)(Answer{}))
		if heard := Hear(th.ask(t, t.Context(), h.query)); heard.Refusal || heard.Error != "503" {
			t.Errorf("%s: a page for browsers is no refusal: %+v", h.name, heard)
		}
	}
}
