package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// racing is hedged with more settings of the virtual model's own.
func racing(n int, hedge, settings string) string {
	return strings.Replace(hedged(n, hedge, ""), "    candidates:\n", settings+"    candidates:\n", 1)
}

// trickle says one character every interval, n of them, after a wait; then the rest.
func trickle(wait, interval time.Duration, n int) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for i := range n {
			pause := interval
			if i == 0 {
				pause = wait
			}
			if !w.Pause(pause) {
				return
			}
			w.Chunk([]byte(strings.Replace(hel, "Hel", "x", 1)))
		}
		w.Chunk([]byte(stop + done))
		w.End()
	}
}

// telling sends pieces of a stream, each after a wait, and ends as the last one says:
// with an end, or by breaking off.
func telling(whole bool, steps ...any) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for _, step := range steps {
			switch step := step.(type) {
			case time.Duration:
				if !w.Pause(step) {
					return
				}
			case string:
				w.Chunk([]byte(step))
			}
		}
		if whole {
			w.End()
		} else {
			w.Reset()
		}
	}
}

// An attempt that shows any content in time has no other started beside it, though
// it shows too little to be released.
func TestAnyContentCountsAgainstTheHedge(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		want  []int
	}{"content": {hel, []int{1, 0}}, "a role only": {role, []int{1, 1}}, "a comment": {": wait\n\n", []int{1, 1}}} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, hedged(2, "after: 8s", ""))
			s.play("u1", telling(true, 7*second, c.first, 5*second, whole))
			s.play("u2", sayPong)
			got := s.hi()
			equal(t, "calls", s.counts("u1", "u2"), c.want)
			took := 8 * second
			if c.want[1] == 0 {
				took = 12 * second
			}
			equal(t, "took", got.took, took)
			synctest.Wait()
			s.idle()
		})
	}
}

// min_chars_per_second: content that comes more slowly counts as none.
func TestATrickleIsHedged(t *testing.T) {
	inBubble(t, "before it is good", func(t *testing.T) {
		s := newScene(t, racing(2, "after: 2s", "    min_chars_per_second: 5\n"))
		s.play("u1", trickle(second, second, 30))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 3*second) // two seconds after the first character
	})
	inBubble(t, "fast enough", func(t *testing.T) {
		s := newScene(t, racing(2, "after: 2s", "    min_chars_per_second: 5\n"))
		s.play("u1", trickle(second, 200*time.Millisecond, 30))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
	})
	inBubble(t, "it is not measured", func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 2s", ""))
		s.play("u1", trickle(second, second, 30))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "first byte", got.at[0], 10*second)
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
	})
	inBubble(t, "the server's", func(t *testing.T) {
		s := newScene(t, hedged(2, "after: 2s", "server: {min_chars_per_second: 5}"))
		s.play("u1", trickle(second, second, 30))
		s.play("u2", sayPong)
		s.from(s.hi(), "u2")
	})
	inBubble(t, "while it is held", func(t *testing.T) {
		s := newScene(t, racing(2, "after: 2s", "    delivery: complete\n    min_chars_per_second: 5\n"))
		s.play("u1", telling(true, second, pong, 40*second, stop+done)) // 14 characters, and silence
		s.play("u2", telling(true, second, whole))
		got := s.hi()
		s.from(got, "u2")
		equal(t, "u2 called at", s.when("u2"), []time.Duration{4 * second}) // 14 characters in 3 s
		equal(t, "took", got.took, 5*second)
		synctest.Wait()
		s.idle()
	})
	inBubble(t, "a tool call has no rate", func(t *testing.T) {
		const call = `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}` + "\n\n"
		s := newScene(t, racing(2, "after: 2s", "    delivery: complete\n    min_chars_per_second: 5\n"))
		s.play("u1", telling(true, second, call, 12*second, stop+done))
		s.play("u2", sayPong)
		s.from(s.hi(), "u1")
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
	})
}

// With an answer that is held, the race is over once one of them has shown to be
// good, not when it is whole: the other one costs no longer.
func TestTheRaceEndsWithTheFirstContent(t *testing.T) {
	for _, delivery := range []string{"    delivery: complete\n", "    delivery: window\n    hold_ms: 10000\n"} {
		inBubble(t, delivery, func(t *testing.T) {
			s := newScene(t, racing(2, "after: 5s", delivery))
			s.play("u1", telling(true, 9*second, whole))
			s.play("u2", telling(true, second, pong, 12*second, stop+done))
			loser := s.leftAt("u1")
			got := s.hi()
			s.from(got, "u2")
			equal(t, "the loser sees it", <-loser, 6*second)
			synctest.Wait()
			s.idle()
			r := s.records()[0]
			equal(t, "verdicts", []stats.Verdict{r.Tries[0].Verdict, r.Tries[1].Verdict}, []stats.Verdict{stats.Abandoned, stats.OK})
			equal(t, "streak", s.counters("u1").Streak, 0)
		})
	}
	inBubble(t, "the first one is good first", func(t *testing.T) {
		s := newScene(t, racing(3, "after: 5s, max: 2, budget: 100%", "    delivery: complete\n"))
		s.play("u1", telling(true, 7*second, pong, 12*second, stop+done))
		s.play("u2", silent)
		s.play("u3", sayPong)
		loser := s.leftAt("u2")
		got := s.hi()
		s.from(got, "u1")
		equal(t, "took", got.took, 19*second)
		equal(t, "the loser sees it", <-loser, 7*second)
		equal(t, "calls", s.counts("u1", "u2", "u3"), []int{1, 1, 0})
		synctest.Wait()
		s.idle()
	})
}

// One that was given up for an answer which then broke is asked again, after whoever
// has not been asked: it was only slow.
func TestALoserIsAskedAgain(t *testing.T) {
	inBubble(t, "nobody else", func(t *testing.T) {
		s := newScene(t, racing(2, "after: 5s", "    delivery: complete\n"))
		s.play("u1", drill.Sequence(silent, telling(true, 2*second, whole)))
		s.play("u2", telling(false, second, pong, 4*second))
		got := s.hi()
		s.from(got, "u1")
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 10 * second})
		equal(t, "took", got.took, 12*second)
		synctest.Wait()
		s.idle()
		equal(t, "streaks", []int64{s.counters("u1").Streak, s.counters("u2").Streak}, []int64{0, 1})
	})
	inBubble(t, "somebody else", func(t *testing.T) {
		s := newScene(t, racing(3, "after: 5s", "    delivery: complete\n"))
		s.play("u1", silent)
		s.play("u2", telling(false, second, pong, 4*second))
		s.play("u3", sayPong)
		got := s.hi()
		s.from(got, "u3")
		equal(t, "calls", s.counts("u1", "u2", "u3"), []int{1, 1, 1})
		equal(t, "took", got.took, 10*second)
	})
}

// after: p95 goes by what the virtual model itself has shown within the last hour,
// and not before there are enough answers to say so.
func TestHedgeAfterThePercentile(t *testing.T) {
	for n, hedges := range map[int]bool{p95Least - 1: false, p95Least: true} {
		inBubble(t, fmt.Sprint(n, " answers"), func(t *testing.T) {
			s := newScene(t, hedged(2, "after: p95", "server: {stall_timeout: 20}"))
			s.play("u1", func(w *drill.Wire, r drill.Request, nth int) {
				if nth > n {
					w.Silence()
					return
				}
				after(2*second, second)(w, r, nth)
			})
			s.play("u2", sayPong)
			for range n {
				s.from(s.hi(), "u1")
				s.till(s.now() + 10*second)
			}
			begun := s.now()
			got := s.hi()
			s.from(got, "u2")
			if !hedges {
				equal(t, "took", got.took, 20*second) // its own stall clock
				return
			}
			p95 := *s.handler.Ledger().ModelWindow("vm", time.Hour, time.Now()).FirstContent.P95
			equal(t, "u2 called", s.when("u2"), []time.Duration{begun + p95})
			if p95 < 1900*time.Millisecond || p95 > 2100*time.Millisecond {
				t.Errorf("p95 %v", p95)
			}
			s.till(s.now() + 62*time.Minute) // and an hour later nobody knows any more
			got = s.hi()
			s.from(got, "u2")
			equal(t, "took", got.took, 20*second)
			s.idle()
		})
	}
}
