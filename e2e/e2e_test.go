//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// Each call of each SDK gets its whole answer from the second upstream while the first one fails, and sees nothing of
// it. The SDKs retry nothing by themselves.
func TestFirstUpstreamFails(t *testing.T) {
	s := &setup{}
	var chains []*chain
	var faults []drill.Fault
	for _, c := range calls {
		if n := len(c.before()); n < 12 {
			t.Errorf("%s meets only %d of the catalogue's faults", c.name, n)
		}
		for _, f := range c.before() {
			chains = append(chains, s.failing(t, c, f))
			faults = append(faults, f)
		}
	}
	p := serve(t, s)
	for i, ch := range chains {
		t.Run(ch.call.name+"/"+faults[i].Name, func(t *testing.T) {
			t.Parallel()
			ch.checkFailover(t, p)
		})
	}
}

// A file upload names no model. It goes to server.default_model, and fails over like everything else.
func TestFileUpload(t *testing.T) {
	for _, f := range upload.before() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := &setup{}
			ch := s.failing(t, upload, f)
			s.defaultModel = ch.model
			ch.checkFailover(t, serve(t, s))
		})
	}
}

// checkFailover makes the call and checks that the second upstream answered it, unseen.
func (ch *chain) checkFailover(t *testing.T, p *proxy) {
	t.Helper()
	r := sdks.call(t, ch.call.name, p.url, ch.model)
	ch.call.checkWhole(t, r, secondText)
	got := checkOneRequest(t, r)
	if want := (exchange{Status: 200, Candidate: "second", Attempts: "2"}); got != want {
		t.Errorf("answered with %+v, want %+v", got, want)
	}
	if n := ch.second.Count(); n != 1 {
		t.Fatalf("the second upstream got %d requests, want 1", n)
	}
	second := ch.second.Requests()[0]
	ch.call.checkRequest(t, second, ch.candidates[1])
	if ch.first == nil {
		return
	}
	if n := ch.first.Count(); n != 1 {
		t.Fatalf("the first upstream got %d requests, want 1", n)
	}
	first := ch.first.Requests()[0]
	ch.call.checkRequest(t, first, ch.candidates[0])
	if want := bytes.ReplaceAll(first.Body, []byte("real-first"), []byte("real-second")); !bytes.Equal(second.Body, want) {
		t.Errorf("the two upstreams got bodies that differ in more than the model:\n%.2000s\n%.2000s", first.Body, second.Body)
	}
}

// A stream that breaks after its first words went to the client ends in an error in every SDK, however the upstream
// broke it and whichever way the proxy tells, and is not mixed with another answer.
func TestCutAfterRelease(t *testing.T) {
	for _, broken := range []string{"abort", "error_event"} {
		t.Run(broken, func(t *testing.T) {
			s := &setup{settings: map[string]string{"relay_stall_timeout": "1", "broken_stream": broken}}
			chains, faults := s.late(t)
			p := serve(t, s)
			for i, ch := range chains {
				t.Run(ch.call.name+"/"+faults[i].Name, func(t *testing.T) {
					t.Parallel()
					ch.checkBroken(t, p)
				})
			}
		})
	}
}

// checkBroken makes the call and checks that it ended in an error after words of the first upstream alone.
func (ch *chain) checkBroken(t *testing.T, p *proxy) {
	t.Helper()
	r := sdks.call(t, ch.call.name, p.url, ch.model)
	ch.call.checkRaised(t, r)
	if !strings.HasPrefix(firstText, r.Text) {
		t.Errorf("text = %q, want the beginning of %q", r.Text, firstText)
	}
	got := checkOneRequest(t, r)
	if want := (exchange{Status: 200, Candidate: "first", Attempts: "1"}); got != want {
		t.Errorf("answered with %+v, want %+v", got, want)
	}
	if n := ch.second.Count(); n != 0 {
		t.Errorf("the second upstream got %d requests, want none after the release", n)
	}
}

// With delivery: complete nothing is released before all of it is there, so that the same faults stay unseen.
func TestCompleteDelivery(t *testing.T) {
	s := &setup{delivery: "complete"}
	chains, faults := s.late(t)
	p := serve(t, s)
	for i, ch := range chains {
		t.Run(ch.call.name+"/"+faults[i].Name, func(t *testing.T) {
			t.Parallel()
			ch.checkFailover(t, p)
		})
	}
}

// cuts is how many places of an answer TestCutAnywhere cuts at.
const cuts = 16

// Wherever a stream is cut, and however, no SDK takes what it got for an answer unless it is one: the first upstream's
// up to its last word, or the second's.
func TestCutAnywhere(t *testing.T) {
	type cut struct {
		*chain
		name string
	}
	s := &setup{}
	var all []cut
	for _, c := range calls {
		if c.kind != stream {
			continue
		}
		for place := range cuts {
			for _, how := range []drill.Ending{drill.Clean, drill.FIN, drill.RST} {
				answer := c.says(firstText)
				script := func(w *drill.Wire, r drill.Request, n int) {
					at := len(answer.Body(r)) * place / cuts
					drill.CutAt(at, how)(answer)(w, r, n)
				}
				all = append(all, cut{
					s.chain(t, c, script, drill.Healthy(c.says(secondText))),
					fmt.Sprintf("%s/%s-at-%d-of-%d", c.name, strings.ReplaceAll(how.String(), " ", "-"), place, cuts),
				})
			}
		}
	}
	p := serve(t, s)
	for _, ch := range all {
		t.Run(ch.name, func(t *testing.T) {
			t.Parallel()
			r := sdks.call(t, ch.call.name, p.url, ch.model)
			switch checkOneRequest(t, r).Candidate {
			case "second":
				ch.call.checkWhole(t, r, secondText)
			case "first":
				if !r.OK {
					ch.call.checkRaised(t, r)
					return
				}
				if r.Text != firstText || r.Finish != ch.call.finish {
					t.Errorf("%s took a cut stream for an answer: %q, finish reason %q", ch.call.name, r.Text, r.Finish)
				}
			default:
				t.Errorf("answered by nobody known: %+v", r.HTTP)
			}
		})
	}
}

// A tool call that breaks off inside its arguments is an error too: it is released as soon as the tool has a name.
func TestCutInsideToolCall(t *testing.T) {
	type cut struct {
		*chain
		how drill.Ending
	}
	s := &setup{}
	var all []cut
	for _, c := range calls {
		if !c.tool {
			continue
		}
		for _, how := range []drill.Ending{drill.Clean, drill.FIN, drill.RST} {
			answer := c.says(firstText)
			script := func(w *drill.Wire, r drill.Request, n int) {
				drill.CutAt(bytes.LastIndex(answer.Body(r), []byte("Troms")), how)(answer)(w, r, n)
			}
			all = append(all, cut{s.chain(t, c, script, drill.Healthy(c.says(secondText))), how})
		}
	}
	p := serve(t, s)
	for _, ch := range all {
		t.Run(ch.call.name+"/"+strings.ReplaceAll(ch.how.String(), " ", "-"), func(t *testing.T) {
			t.Parallel()
			r := sdks.call(t, ch.call.name, p.url, ch.model)
			ch.call.checkRaised(t, r)
			if got := checkOneRequest(t, r).Candidate; got != "first" {
				t.Errorf("answered by %q, want the first candidate", got)
			}
		})
	}
}

// A whole answer larger than what the proxy holds (hold_bytes) goes out in pieces. It arrives whole; cut within what is
// held it fails over; cut after that it is an error.
func TestLargeAnswers(t *testing.T) {
	long := func(text string) string { return strings.Repeat(text+" ", 3000) }
	type large struct {
		*chain
		name  string
		check func(t *testing.T, ch *chain, r result)
	}
	s := &setup{}
	var all []large
	add := func(c call, name string, script drill.Script, check func(*testing.T, *chain, result)) {
		all = append(all, large{s.chain(t, c, script, drill.Healthy(c.says(long(secondText)))), c.name + "/" + name, check})
	}
	for _, c := range calls {
		if c.kind != whole {
			continue
		}
		answer := c.says(long(firstText))
		add(c, "whole", drill.Healthy(answer), func(t *testing.T, ch *chain, r result) {
			ch.call.checkWhole(t, r, long(firstText))
		})
		for _, how := range []drill.Ending{drill.FIN, drill.RST} {
			add(c, "held-"+how.String(), drill.CutAt(20_000, how)(answer), func(t *testing.T, ch *chain, r result) {
				ch.call.checkWhole(t, r, long(secondText))
			})
			add(c, "released-"+how.String(), drill.CutAt(200_000, how)(answer), func(t *testing.T, ch *chain, r result) {
				ch.call.checkRaised(t, r)
				if n := ch.second.Count(); n != 0 {
					t.Errorf("the second upstream got %d requests, want none after the release", n)
				}
			})
		}
	}
	p := serve(t, s)
	for _, ch := range all {
		t.Run(ch.name, func(t *testing.T) {
			t.Parallel()
			ch.check(t, ch.chain, sdks.call(t, ch.call.name, p.url, ch.model))
		})
	}
}

// An answer that is whole and right for all its oddity looks to an SDK as if the upstream itself had sent it. Better
// than that where the upstream resets the connection when all was said: the SDK need not know.
func TestOddAnswersPass(t *testing.T) {
	const oddText = "Slack water at nine: 潮." // short, since some of these answers come a byte at a time
	type odd struct {
		*chain
		name string
	}
	s := &setup{settings: map[string]string{"content_timeout": "0"}}
	var all []odd
	for _, c := range calls {
		for _, f := range drill.Faults() {
			if !f.Healthy || !c.meets(f) {
				continue
			}
			answer := c.says(oddText)
			answer.Wait, answer.Gap = 300*time.Millisecond, time.Millisecond
			all = append(all, odd{s.chain(t, c, f.Script(answer), drill.Healthy(c.says(secondText))), c.name + "/" + f.Name})
		}
	}
	p := serve(t, s)
	for _, ch := range all {
		t.Run(ch.name, func(t *testing.T) {
			t.Parallel()
			direct := sdks.call(t, ch.call.name, ch.first.URL(), "real-first")
			through := sdks.call(t, ch.call.name, p.url, ch.model)
			if got := checkOneRequest(t, through).Candidate; got != "first" {
				t.Fatalf("answered by %q, want the first candidate: %v", got, through.Error)
			}
			if strings.HasSuffix(ch.name, "/reset-after-terminal") {
				ch.call.checkWhole(t, through, oddText)
				return
			}
			if through.OK != direct.OK || through.Text != direct.Text || through.Finish != direct.Finish {
				t.Errorf("through the proxy: ok %v, text %.200q, finish reason %q, %v\nwithout it: ok %v, text %.200q, finish reason %q, %v",
					through.OK, through.Text, through.Finish, through.Error, direct.OK, direct.Text, direct.Finish, direct.Error)
			}
		})
	}
}

// A chain that is used up is an error of the SDK's own kind, with the proxy's status, for streams too.
func TestEverybodyFails(t *testing.T) {
	s := &setup{}
	var chains []*chain
	unavailable, _ := drill.Find("503")
	for _, c := range calls {
		chains = append(chains, s.chain(t, c, unavailable.Script(c.says(firstText)), unavailable.Script(c.says(secondText))))
	}
	p := serve(t, s)
	for _, ch := range chains {
		t.Run(ch.call.name, func(t *testing.T) {
			t.Parallel()
			r := sdks.call(t, ch.call.name, p.url, ch.model)
			ch.call.checkRaised(t, r)
			if got := checkOneRequest(t, r).Status; got != 502 || r.Error.Status != 502 {
				t.Errorf("status %d, in the error %d, want 502", got, r.Error.Status)
			}
			if r.Text != "" {
				t.Errorf("text = %q, want none", r.Text)
			}
			t.Logf("raised %v", r.Error)
		})
	}
}

// Where every candidate says that the request is wrong, the client gets to read that.
func TestRequestIsWrong(t *testing.T) {
	s := &setup{}
	var chains []*chain
	tooLong, _ := drill.Find("400-context")
	for _, c := range calls {
		chains = append(chains, s.chain(t, c, tooLong.Script(c.says(firstText)), tooLong.Script(c.says(secondText))))
	}
	p := serve(t, s)
	for _, ch := range chains {
		t.Run(ch.call.name, func(t *testing.T) {
			t.Parallel()
			r := sdks.call(t, ch.call.name, p.url, ch.model)
			ch.call.checkRaised(t, r)
			if r.Error.Status != 400 || !strings.Contains(r.Error.Message, "maximum") {
				t.Errorf("raised %v, want the upstream's own 400", r.Error)
			}
		})
	}
}

// The virtual models are what a client finds when it asks which models there are.
func TestModelList(t *testing.T) {
	s := &setup{}
	for range 3 {
		s.chain(t, calls[0], nil, drill.Healthy(drill.Answer{}))
	}
	r := sdks.call(t, "openai/models", serve(t, s).url, "")
	if want := "virtual-1\nvirtual-2\nvirtual-3\n"; !r.OK || r.Text != want {
		t.Errorf("models = %q, %v; want %q", r.Text, r.Error, want)
	}
}
