package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// every sends a piece again and again, until the peer leaves.
func every(d time.Duration, first, piece string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		w.Chunk([]byte(first))
		for w.Pause(d) {
			w.Chunk([]byte(piece))
		}
	}
}

// hang sends some pieces and then nothing, until the peer leaves.
func hang(pieces ...string) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for _, p := range pieces {
			w.Chunk([]byte(p))
		}
		w.Silence()
	}
}

// mute reads the request and never answers.
func mute(w *drill.Wire, _ drill.Request, _ int) { w.Silence() }

const processing = ": OPENROUTER PROCESSING\n\n"

// Case 9: headers, and then nothing but signs of life: the limit on the first
// content ends the attempt, the upstream sees us leave, and the next one answers.
func TestSignsOfLifeAreNoContent(t *testing.T) {
	for _, c := range []struct {
		name, path string
		first      drill.Script
		ok         string
	}{
		{"(a) silence", chatPath, hang(), okSSE},
		{"(b) comments", chatPath, every(time.Second, processing, processing), okSSE},
		{"(c) pings", messagesPath, every(time.Second, messageStart, ping), okAM},
		{"an empty delta each second", chatPath, every(time.Second, role, role), okSSE},
		{"the responses' progress", responsesPath, every(time.Second, created, event("response.in_progress", `{"type":"response.in_progress","response":{"id":"resp_1","status":"in_progress"}}`)), okRS},
		{"Codex's keep-alives", responsesPath, every(time.Second, created, data(`{"type":"keepalive"}`)), okRS},
		{"no headers", chatPath, mute, okSSE},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "server: {content_timeout: 3}", c.first, frames(c.ok))
			sent := requestFor(c.path, true)
			got := s.ask("POST", c.path, sent)
			s.expect(sent, got, outcome{body: c.ok, winner: 2, calls: []int{1, 1}, took: 3 * time.Second, ending: stats.Success})
			if got := s.verdicts(); got != "failed timeout, ok" {
				t.Errorf("verdicts %q", got)
			}
			if s.up[0].Gone() != 1 || s.up[0].Open() != 0 {
				t.Errorf("u1 saw %d peers leave and holds %d connections", s.up[0].Gone(), s.up[0].Open())
			}
			s.unfrozen()
		})
	}
}

// Case 9: the time over all candidates is bounded, by the sum of their limits or
// by the chain's own.
func TestTheTimeOverAllCandidatesIsBounded(t *testing.T) {
	alive := every(time.Second, processing, processing)
	for _, c := range []struct {
		server string
		took   time.Duration
		calls  []int
	}{
		{"content_timeout: 3", 9 * time.Second, []int{1, 1, 1}},
		{"content_timeout: 3, chain_timeout: 5", 5 * time.Second, []int{1, 1, 0}},
		{"stream_timeout: 4", 12 * time.Second, []int{1, 1, 1}},
		{"stream_timeout: 4, content_timeout: 3", 9 * time.Second, []int{1, 1, 1}},
	} {
		inBubble(t, c.server, func(t *testing.T) {
			s := newStage(t, "server: {"+c.server+"}", alive, alive, alive)
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 502, own: "upstream_all_failed", calls: c.calls, took: c.took, ending: stats.Exhausted})
			for i, u := range s.up {
				if u.Open() != 0 || u.Gone() != u.Count() {
					t.Errorf("u%d: %d of %d saw us leave, %d connections open", i+1, u.Gone(), u.Count(), u.Open())
				}
			}
		})
	}
}

// Signs of life keep the stall clock from running out; without them it does, after
// exactly its time, wherever the upstream fell silent. A stall is no timeout.
func TestTheStallClockHearsEveryByte(t *testing.T) {
	slow := func(pieces int) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			for range pieces {
				w.Pause(4 * time.Second)
				w.Chunk([]byte(processing))
			}
			w.Pause(4 * time.Second)
			w.Chunk([]byte(okSSE))
			w.End()
		}
	}
	inBubble(t, "comments keep it alive", func(t *testing.T) {
		s := newStage(t, "server: {stall_timeout: 5}", slow(20), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: strings.Repeat(processing, 20) + okSSE, winner: 1, calls: []int{1, 0}, took: 84 * time.Second, ending: stats.Success})
	})
	for name, c := range map[string]struct {
		first drill.Script
		took  time.Duration
	}{
		"before the headers":      {mute, 5 * time.Second},
		"behind the headers":      {hang(), 5 * time.Second},
		"behind a role":           {hang(role), 5 * time.Second},
		"within an event":         {hang(role, hel[:20]), 5 * time.Second},
		"behind three characters": {hang(role, hel), 5 * time.Second},
		"behind two comments": {func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			for range 2 {
				w.Pause(4 * time.Second)
				w.Chunk([]byte(processing))
			}
			w.Silence()
		}, 13 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "server: {stall_timeout: 5}", c.first, frames(okSSE))
			sent := requestFor(chatPath, true)
			s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, took: c.took, ending: stats.Success})
			if got := s.verdicts(); got != "failed stalled_stream, ok" {
				t.Errorf("verdicts %q", got)
			}
			if s.up[0].Gone() != 1 {
				t.Error("u1 does not see us leave")
			}
		})
	}
}

// An answer that is not streamed is silent until it is whole: no stall clock runs,
// only its own budget.
func TestAWholeAnswerMayBeSilent(t *testing.T) {
	late := func(d time.Duration) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			if w.Pause(d) {
				w.JSON(200, []byte(okChat))
			}
		}
	}
	inBubble(t, "for nine minutes", func(t *testing.T) {
		s := newStage(t, "server: {stall_timeout: 5, content_timeout: 5}", late(9*time.Minute), page(jsonType, okChat))
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 1, calls: []int{1, 0}, took: 9 * time.Minute, ending: stats.Success})
	})
	inBubble(t, "but not for longer than its budget", func(t *testing.T) {
		s := newStage(t, "server: {nonstream_timeout: 30}", late(time.Minute), page(jsonType, okChat))
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{1, 1}, took: 30 * time.Second, ending: stats.Success})
		if got := s.verdicts(); got != "failed timeout, ok" {
			t.Errorf("verdicts %q", got)
		}
	})
	inBubble(t, "nor trickle beyond it", func(t *testing.T) {
		s := newStage(t, "server: {nonstream_timeout: 30}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", jsonType)
			for w.Pause(time.Second) {
				w.Chunk([]byte("\n"))
			}
		}, page(jsonType, okChat))
		sent := requestFor(chatPath, false)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okChat, winner: 2, calls: []int{1, 1}, took: 30 * time.Second, ending: stats.Success})
	})
}

// Case 19 (b), (c): after release pings and comments are liveness: a stream that
// goes on only by them for longer than the limit on silence survives.
func TestSignsOfLifeKeepAReleasedStreamAlive(t *testing.T) {
	for _, c := range []struct{ name, path, first, sign, rest string }{
		{"(b) pings", messagesPath, messageStart + textDelta("one two three"), ping, textDelta("four") + messageEnd("end_turn")},
		{"(c) comments", chatPath, said("one two three"), ":\n\n", said("four") + finish("stop") + done},
		{"blank lines", chatPath, said("one two three"), "\n", said("four") + finish("stop") + done},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "server: {relay_stall_timeout: 5, stall_timeout: 5, content_timeout: 3, stream_timeout: 6}", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(c.first))
				for range 10 {
					w.Pause(2 * time.Second)
					w.Chunk([]byte(c.sign))
				}
				w.Chunk([]byte(c.rest))
				w.End()
			}, frames(okSSE))
			sent := requestFor(c.path, true)
			got := s.ask("POST", c.path, sent)
			s.expect(sent, got, outcome{body: c.first + strings.Repeat(c.sign, 10) + c.rest, winner: 1, calls: []int{1, 0}, took: 20 * time.Second, ending: stats.Success})
			if want := "[0s 2s 4s 6s 8s 10s 12s 14s 16s 18s 20s]"; fmt.Sprint(got.at[:11]) != want {
				t.Errorf("pieces came at %v, want each when it was sent", got.at)
			}
		})
	}
}

// Case 19 (a): comments are passed on as comments, in their place, and none is made
// up.
func TestCommentsStayComments(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		body := processing + processing + processing + said("PONG PONG PONG") + ": in between\n\n" + finish("stop") + done + ": behind\n\n"
		s := newStage(t, "", frames(body))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: body, winner: 1, calls: []int{1}, ending: stats.Success})
	})
	inBubble(t, "a minute of holding is silent", func(t *testing.T) {
		s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(processing))
			w.Pause(50 * time.Second)
			w.Chunk([]byte(okSSE))
			w.End()
		})
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: processing + okSSE, winner: 1, calls: []int{1}, took: 50 * time.Second, ending: stats.Success})
	})
}

// A slow client is not the upstream's silence: while the client takes nothing, the
// clock on the upstream stands still.
func TestASlowClientIsNotTheUpstreamsSilence(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		first, big := said("one two three"), said(strings.Repeat("x", 1<<20))
		s := newStage(t, "server: {relay_stall_timeout: 5, write_idle_timeout: 60}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(first))
			w.Chunk([]byte(big))
			w.Chunk([]byte(finish("stop") + done))
			w.End()
		})
		c, err := s.net.DialContext(t.Context(), "tcp", "127.0.0.1:8787")
		if err != nil {
			t.Fatal(err)
		}
		client := drill.NewClient(c, "127.0.0.1:8787")
		defer client.Close()
		paused := false
		r := client.Ask(t.Context(), drill.Query{Path: chatPath, Body: []byte(requestFor(chatPath, true)), Watch: func(r drill.Reply) bool {
			if len(r.Body) > 0 && !paused {
				paused = true
				<-time.After(20 * time.Second)
			}
			return true
		}})
		if !r.Clean || string(r.Body) != first+big+finish("stop")+done {
			t.Errorf("client got %d bytes, clean %v, %v\n%s", len(r.Body), r.Clean, r.Err, s.log)
		}
	})
}

// Pings behind the event that ends an answer do not keep the client for ever: the answer
// ends, whole, once they have gone on for as long as a silence may last.
func TestPingsBehindTheEndEnd(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "server: {relay_stall_timeout: 20}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(okSSE))
			for w.Pause(3 * time.Second) {
				w.Chunk([]byte(": ping\n\n"))
			}
		})
		began := time.Now()
		got := s.ask("POST", chatPath, requestFor(chatPath, true))
		took := time.Since(began)
		if !strings.HasPrefix(got.body, okSSE) || got.err != nil || took < 20*time.Second || took > 24*time.Second {
			t.Errorf("after %v: %q, %v", took, got.body, got.err)
		}
		if r := s.record(); r.Ending != stats.Success {
			t.Errorf("booked as %v", r.Ending)
		}
	})
}

// Some say in every event that the answer ends, and go on.
func TestAnAnswerThatGoesOnBehindItsEndIsWhole(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		var whole strings.Builder
		s := newStage(t, "server: {relay_stall_timeout: 20}", func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			for i := range 30 {
				event := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"word %d "},"finish_reason":"stop"}]}`+"\n\n", i)
				whole.WriteString(event)
				w.Chunk([]byte(event))
				if !w.Pause(2 * time.Second) {
					return
				}
			}
			w.End()
		})
		if got := s.ask("POST", chatPath, requestFor(chatPath, true)); got.body != whole.String() || got.err != nil {
			t.Errorf("%d bytes of %d, %v", len(got.body), whole.Len(), got.err)
		}
	})
}

// A connection that a client keeps for later is not closed by the time limit on
// what was written over it before.
func TestAKeptConnectionOutlivesTheWriteLimit(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "server: {write_idle_timeout: 10}", frames(okSSE))
		for range 2 {
			if got := s.ask("POST", chatPath, requestFor(chatPath, true)); got.body != okSSE {
				t.Fatalf("client got %d, %v", got.status, got.err)
			}
			<-time.After(time.Minute)
			// Twice, as the client would try a dead connection only once.
			for range 2 {
				if got := s.ask("GET", "/healthz", ""); got.status != 200 {
					t.Fatalf("healthz: %d, %v", got.status, got.err)
				}
			}
		}
		if n := s.net.Dials("127.0.0.1:8787"); n != 1 {
			t.Errorf("the client connected %d times", n)
		}
	})
}

// Interim answers are signs of life too: 102 says that somebody is working.
func TestInterimAnswersAreSignsOfLife(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "server: {stall_timeout: 5}", func(w *drill.Wire, _ drill.Request, _ int) {
			for range 5 {
				w.Pause(4 * time.Second)
				w.Interim(102)
			}
			frames(okSSE)(w, drill.Request{}, 1)
		}, frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 1, calls: []int{1, 0}, took: 20 * time.Second, ending: stats.Success})
	})
}
