package proxy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// delivered is a chain of n with a delivery of its own.
func delivered(n int, delivery, more string) string {
	cfg := "rules: []\n" + more + "\nvirtual_models:\n  vm:\n    " + delivery + "\n    candidates:\n"
	for i := range n {
		cfg += fmt.Sprintf("      - {name: u%d, base_url: \"http://u%d\", api_key: sk-upstream-secret-%d, model: m%d}\n", i+1, i+1, i+1, i+1)
	}
	return cfg
}

const complete = "delivery: complete"

// What is held is told to the client by this comment.
const holding = ": understudy holds the answer until it is whole\n\n"

// With delivery complete whatever an upstream does before its terminal event fails
// over unseen: the client gets the next one's answer, and nothing else.
func TestCompleteFailsOverUnseen(t *testing.T) {
	long := append(append([]string{role}, times(20, said("a word of it "))...), stop, done)
	text := strings.Join(long[:len(long)-2], "") // up to where the terminal event begins
	for _, how := range []drill.Ending{drill.FIN, drill.RST, drill.Hang, drill.Clean} {
		random := rand.New(rand.NewPCG(7, uint64(how)))
		cuts := []int{0, 1, len(text) - 1, len(text)}
		for range 12 {
			cuts = append(cuts, random.IntN(len(text)))
		}
		for _, cut := range cuts {
			inBubble(t, fmt.Sprintf("%v at %d", how, cut), func(t *testing.T) {
				s := newScene(t, delivered(2, complete, "server: {stall_timeout: 5}"))
				s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
					w.Head(200, drill.Chunked, "Content-Type", sseType)
					w.Chunk([]byte(text[:cut]))
					w.Stop(how)
				})
				s.play("u2", sayPong)
				got := s.hi()
				s.from(got, "u2")
				if got.body != okSSE {
					t.Errorf("body %q", brief(got.body))
				}
				equal(t, "took", got.took, map[bool]time.Duration{true: 5 * second}[how == drill.Hang])
				synctest.Wait()
				s.idle()
			})
		}
	}
	inBubble(t, "an error event behind all the text", func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		s.play("u1", frames(text, data(`{"error":{"message":"boom","code":500}}`)))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "body", got.body, okSSE)
	})
	inBubble(t, "a whole answer", func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		s.play("u1", frames(long...))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "body", got.body, strings.Join(long, ""))
		equal(t, "accelerator header", got.header.Get("X-Accel-Buffering"), "no")
	})
}

// The same in every dialect, for everything that the catalogue does late.
func TestCompleteInEveryDialect(t *testing.T) {
	for _, path := range []string{chatPath, responsesPath, messagesPath, geminiPath, geminiArray, ollamaPath} {
		for _, f := range drill.Faults() {
			if !f.AfterRelease {
				continue
			}
			inBubble(t, f.Name+" "+path, func(t *testing.T) {
				s := newScene(t, delivered(2, complete, "server: {stall_timeout: 5}"))
				s.play("u1", f.Script(drill.Answer{}))
				s.play("u2", drill.Healthy(drill.Answer{Text: "The understudy speaks."}))
				got := s.ask("POST", path, requestFor(path, true))
				s.from(got, "u2")
				if !strings.Contains(got.body, "understudy") {
					t.Errorf("body %q", brief(got.body))
				}
			})
		}
	}
}

// A stream that has proved good and then shows nothing but signs of life is held no
// longer than a streaming attempt may take: the next one answers.
func TestCompleteDoesNotHoldWhatOnlyLives(t *testing.T) {
	for name, sign := range map[string]string{"comments": ": x\n\n", "pings": data(`{"type":"ping"}`)} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, delivered(2, complete, "server: {stream_timeout: 20, stall_timeout: 5}"))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(role + said("ten letters")))
				for w.Err() == nil && w.Pause(time.Second) {
					w.Chunk([]byte(sign))
				}
			})
			s.play("u2", sayPong)
			got := s.hi()
			equal(t, "took", got.took, 21*second) // the first sign behind the budget
			if !strings.HasSuffix(got.body, okSSE) || strings.Contains(got.body, "ten letters") {
				t.Errorf("body %q", brief(got.body))
			}
		})
	}
}

// slowly sends a stream that is held for so long: its first content at once, an event
// a second, and its end.
func slowly(d time.Duration) drill.Script {
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		w.Chunk([]byte(pong))
		for range d / time.Second {
			if !w.Pause(time.Second) {
				return
			}
			w.Chunk([]byte(said("a")))
		}
		w.Chunk([]byte(stop + done))
		w.End()
	}
}

func slowBody(d time.Duration) string {
	return pong + strings.Repeat(said("a"), int(d/time.Second)) + stop + done
}

// After 15 s of holding the client gets 200 and a comment, and one more every 15 s;
// then the answer, whole. The head cannot name the candidate any more.
func TestCompleteTellsThatItHolds(t *testing.T) {
	for _, c := range []struct {
		held     time.Duration
		comments int
	}{{14 * second, 0}, {16 * second, 1}, {50 * second, 3}, {61 * second, 4}} {
		inBubble(t, fmt.Sprint(c.held), func(t *testing.T) {
			s := newScene(t, delivered(2, complete, ""))
			s.play("u1", slowly(c.held))
			s.play("u2", sayPong)
			got := s.hi()
			if want := strings.Repeat(holding, c.comments) + slowBody(c.held); got.status != 200 || got.err != nil || got.body != want {
				t.Fatalf("client got %d %q, %v", got.status, brief(got.body), got.err)
			}
			for i := range c.comments {
				equal(t, fmt.Sprint("comment ", i), got.at[i], time.Duration(i+1)*15*second)
			}
			equal(t, "took", got.took, c.held)
			name := "u1"
			if c.comments > 0 {
				name = ""
			}
			equal(t, "candidate", got.header.Get("X-Understudy-Candidate"), name)
			equal(t, "content type", strings.HasPrefix(got.header.Get("Content-Type"), sseType), true)
			equal(t, "accelerator header", got.header.Get("X-Accel-Buffering"), "no")
			equal(t, "cache", got.header.Get("Cache-Control"), "no-cache")
			equal(t, "request id", strings.HasPrefix(got.header.Get("X-Understudy-Request-Id"), "req_"), true)
			synctest.Wait()
			s.idle()
		})
	}
}

// A byte order mark is the upstream's to send, at the beginning of the stream; behind a
// comment of ours it would be a part of the first event.
func TestNoByteOrderMarkBehindOurComments(t *testing.T) {
	const mark = "\ufeff"
	for held, want := range map[time.Duration]string{10 * time.Second: mark, 20 * time.Second: holding} {
		inBubble(t, held.String(), func(t *testing.T) {
			s := newScene(t, delivered(1, complete, ""))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				for _, b := range []byte(mark) {
					w.Chunk([]byte{b})
				}
				w.Chunk([]byte(said("the first words")))
				w.Pause(held)
				w.Chunk([]byte(said(mark) + finish("stop") + done))
				w.End()
			})
			if got := s.hi(); got.body != want+said("the first words")+said(mark)+finish("stop")+done || got.err != nil {
				t.Errorf("client got %q, %v", got.body, got.err)
			}
		})
	}
}

// Nothing goes out early before bytes of an event stream are held: an upstream that
// is silent can still be followed by any answer.
func TestCompleteSaysNothingBeforeItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		s.play("u1", silent) // until its stall clock, 60 s
		s.play("u2", refusal(418, `{"error":{"message":"no"}}`))
		got := s.hi()
		s.refused(got, 502)
		equal(t, "took", got.took, 60*second)
	})
}

// A failure once comments have begun fails over all the same: the client sees the
// comments and then the next one's answer.
func TestCompleteFailsOverBehindComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Pause(20 * second)
			w.Reset()
		})
		s.play("u2", slowly(20*second))
		got := s.hi()
		if want := holding + holding + slowBody(20*second); got.body != want || got.err != nil {
			t.Errorf("client got %q, %v", brief(got.body), got.err)
		}
		equal(t, "comments at", got.at[:2], []time.Duration{15 * second, 30 * second})
		synctest.Wait()
		if r := s.records()[0]; r.Ending != stats.Success || r.Tries[r.Winner].Name != "u2" {
			t.Errorf("booked %v", r.Ending)
		}
	})
}

// Once comments have begun a final failure is the dialect's own error event, and then
// a break; it counts as exhausted.
func TestCompleteFailsBehindComments(t *testing.T) {
	for path, want := range map[string]string{
		chatPath:      `data: {"error":{"code":"upstream_broke_off","message":"no upstream of virtual model 'vm' gave an answer","param":null,"type":"upstream_broke_off"}}` + "\n\n",
		messagesPath:  "event: error\n" + `data: {"error":{"message":"no upstream of virtual model 'vm' gave an answer","type":"api_error"},"type":"error"}` + "\n\n",
		responsesPath: "event: error\n" + `data: {"code":"server_error","message":"no upstream of virtual model 'vm' gave an answer","param":null,"type":"error"}` + "\n\n",
		geminiPath:    `data: {"error":{"code":502,"message":"no upstream of virtual model 'vm' gave an answer","status":"UNAVAILABLE"}}` + "\n\n",
	} {
		for name, last := range map[string]drill.Script{
			"a status":      refusal(500, `{}`),
			"a passthrough": refusal(418, `{"error":"teapot"}`),
			"its mistake":   refusal(400, contextTooLong),
			"JSON":          page("application/json", `{"choices":[{"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"content":[{"type":"text","text":"whole"}],"type":"message","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"whole"}]}],"candidates":[{"content":{"parts":[{"text":"whole"}]},"finishReason":"STOP"}]}`),
		} {
			inBubble(t, path+" "+name, func(t *testing.T) {
				s := newScene(t, strings.Replace(delivered(2, complete, ""), "rules: []", "rules: [{match: {status: 418}, action: passthrough}]", 1))
				s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
					w.Head(200, drill.Chunked, "Content-Type", sseType)
					w.Chunk([]byte(map[string]string{chatPath: role, messagesPath: messageStart, responsesPath: created, geminiPath: ": hm\r\n\r\n"}[path]))
					w.Pause(20 * second)
					w.Reset()
				})
				s.play("u2", last)
				got := s.ask("POST", path, requestFor(path, true))
				if got.status != 200 || got.err == nil {
					t.Errorf("client got %d, %v, want 200 and a break", got.status, got.err)
				}
				rest, ok := strings.CutPrefix(got.body, holding)
				// What it says beyond the sentence is for people.
				if !ok || len(rest) < 40 || !sameShape(rest, want) {
					t.Errorf("client got %q, want %q behind one comment", got.body, want)
				}
				equal(t, "took", got.took, 20*second)
				synctest.Wait()
				if r := s.records()[0]; r.Ending != stats.Exhausted || r.Status != 200 {
					t.Errorf("booked %v with %d", r.Ending, r.Status)
				}
				s.idle()
			})
		}
	}
}

// sameShape compares two error events but for how the message goes on.
func sameShape(got, want string) bool {
	const sentence = "gave an answer"
	before, after, ok := strings.Cut(want, sentence)
	return ok && strings.HasPrefix(got, before+sentence) && strings.HasSuffix(got, after)
}

// In target mode too a client whose comments have begun hears more of them.
func TestCompleteCommentsInTargetMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := targeted(t, delivered(1, complete, "server: {auto_hedge_threshold: 0}"))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			if n > 1 {
				w.JSON(500, []byte(`{}`))
				return
			}
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Pause(16 * second)
			w.Reset()
		})
		got := s.hi()
		if strings.Count(got.body, holding) != 2 || got.err == nil {
			t.Errorf("client got %q, %v", got.body, got.err)
		}
		equal(t, "comments at", got.at[:2], []time.Duration{15 * second, 30 * second})
		equal(t, "took", got.took, 36*second)
	})
}

// Arrays, NDJSON and JSON get nothing early: the first byte comes with the last.
func TestCompleteSaysNothingEarlyElsewhere(t *testing.T) {
	for _, c := range []struct{ path, kind, first, last string }{
		{geminiArray, "application/json", "[" + geminiJSON(part("a first long part"), ""), "," + geminiJSON(part("."), "STOP") + "]"},
		{ollamaPath, "application/x-ndjson", ollamaLine("a first long part", ""), ollamaLine("", "stop")},
		{chatPath, "application/json", okChat[:40], okChat[40:]},
	} {
		inBubble(t, c.path+c.kind, func(t *testing.T) {
			s := newScene(t, delivered(1, complete, ""))
			s.play("u1", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", c.kind)
				w.Chunk([]byte(c.first))
				w.Pause(40 * second)
				w.Chunk([]byte(c.last))
				w.End()
			})
			got := s.ask("POST", c.path, requestFor(c.path, true))
			s.from(got, "u1")
			equal(t, "body", got.body, c.first+c.last)
			equal(t, "first byte", got.at[0], 40*second)
		})
	}
}

// A client that leaves while its answer is held ends the attempt, comments or not.
func TestCompleteEndsWithTheClient(t *testing.T) {
	for _, at := range []time.Duration{10 * second, 40 * second} {
		inBubble(t, fmt.Sprint(at), func(t *testing.T) {
			s := newScene(t, delivered(2, complete, ""))
			s.play("u1", slowly(time.Hour))
			s.play("u2", sayPong)
			gone := s.leftAt("u1")
			leave := s.leaving(chatBody("vm", true))
			s.till(at)
			leave()
			equal(t, "u1 sees it", <-gone, at)
			synctest.Wait()
			s.idle()
			equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
			if r := s.records()[0]; r.Ending != stats.Cancelled {
				t.Errorf("booked %v", r.Ending)
			}
		})
	}
}

// An answer that has proved good is held as long as it goes on: only its silence
// ends it, not the budget of a stream's beginning.
func TestCompleteIsNotCutForItsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, everyClock))
		s.play("u1", slowly(120*second))
		s.play("u2", sayPong)
		got := s.hi()
		if !strings.HasSuffix(got.body, slowBody(120*second)) || got.err != nil {
			t.Errorf("client got %q, %v", brief(got.body), got.err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, strings.Replace(everyClock, "chain_timeout: 2", "chain_timeout: 9", 1)))
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			w.Silence()
		})
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 2*second)
	})
}

// big is a healthy stream of about so many bytes, and its body.
func bigStream(n int, end drill.Ending) (drill.Script, int) {
	piece := []byte(said(strings.Repeat("x", 64<<10)))
	count := n/len(piece) + 1
	return func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", sseType)
		for range count {
			if w.Chunk(piece); w.Err() != nil {
				return
			}
		}
		if end == drill.Clean {
			w.Chunk([]byte(stop + done))
		}
		w.Stop(end)
	}, count*len(piece) + len(stop+done)
}

// Up to 1 MiB is held in memory, the rest in a file without a name, which is gone
// when the request is.
func TestCompleteHoldsInAFileWithoutAName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		script, size := bigStream(5<<20, drill.Clean)
		held := make(chan struct{})
		s.play("u1", func(w *drill.Wire, r drill.Request, n int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(pong))
			for range 40 {
				w.Chunk([]byte(said(strings.Repeat("x", 64<<10))))
			}
			synctestIdle(w)
			close(held)
			w.Reset()
		})
		s.play("u2", script)
		waiting := s.later()
		<-held
		equal(t, "files with a name", entries(t, dir), []string{})
		got := <-waiting
		s.from(got, "u2")
		equal(t, "size", len(got.body), size)
		synctest.Wait()
		equal(t, "files that stay open", heldFiles(), 0)
		equal(t, "files with a name, after", entries(t, dir), []string{})
	})
}

// synctestIdle gives the proxy the time to take what was sent.
func synctestIdle(w *drill.Wire) { w.Pause(time.Second) }

func entries(t *testing.T, dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// heldFiles is how many files of held answers this process has open, where the
// system shows that.
func heldFiles() (n int) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.Contains(to, "understudy-held") {
			n++
		}
	}
	return n
}

// More than 64 MiB are not held: the answer is released and goes on as a stream, and
// breaks as one.
func TestCompleteHasALimit(t *testing.T) {
	for _, c := range []struct {
		size int
		end  drill.Ending
		by   string
		cut  bool
	}{
		{60 << 20, drill.Clean, "u1", false},
		{60 << 20, drill.RST, "u2", false},
		{70 << 20, drill.Clean, "u1", false},
		{70 << 20, drill.RST, "u1", true},
	} {
		inBubble(t, fmt.Sprintf("%d MiB, %v", c.size>>20, c.end), func(t *testing.T) {
			s := newScene(t, delivered(2, complete, ""))
			script, size := bigStream(c.size, c.end)
			s.play("u1", script)
			s.play("u2", sayPong)
			got := s.hi()
			if by := got.header.Get("X-Understudy-Candidate"); got.status != 200 || by != c.by || (got.err != nil) != c.cut {
				t.Errorf("client got %d by %q with %d bytes, %v", got.status, by, len(got.body), got.err)
			}
			if want := map[string]int{"u1": size, "u2": len(okSSE)}[c.by]; !c.cut && len(got.body) != want {
				t.Errorf("client got %d bytes, want %d", len(got.body), want)
			}
			synctest.Wait()
			s.idle()
			equal(t, "files that stay open", heldFiles(), 0)
		})
	}
}

// A disk that takes nothing makes the answer go on as a stream: not one byte is lost,
// and the upstream is not to blame.
func TestCompleteWithoutADisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(2, complete, ""))
		script, size := bigStream(5<<20, drill.Clean)
		s.play("u1", script)
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "size", len(got.body), size)
	})
	synctest.Test(t, func(t *testing.T) { // before it has proved good
		s := newScene(t, delivered(2, complete, ""))
		noise := strings.Repeat(": keep-alive "+strings.Repeat("x", 1<<10)+"\n\n", 2<<10)
		s.play("u1", frames(noise, okSSE))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "size", len(got.body), len(noise)+len(okSSE))
	})
}

// A slow client gets a large held answer: what it takes in time counts piece by
// piece, not for the whole.
func TestCompleteToASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, delivered(1, complete, "server: {write_idle_timeout: 9}"))
		script, size := bigStream(900<<10, drill.Clean)
		s.play("u1", script)
		c := s.dialClient()
		defer c.Close()
		took := 0
		got := c.Ask(t.Context(), drill.Query{Path: chatPath, Body: []byte(chatBody("vm", true)), Watch: func(r drill.Reply) bool {
			if len(r.Body) > took+48<<10 {
				took = len(r.Body)
				<-time.After(4 * time.Second)
			}
			return true
		}})
		if !got.Clean || len(got.Body) != size {
			t.Errorf("client got %d of %d bytes, %v", len(got.Body), size, got.Err)
		}
		if s.now() < 30*second {
			t.Errorf("took only %v", s.now())
		}
	})
}

// Delivery window holds an answer for its time after it has proved good: a break
// within it fails over unseen, one behind it breaks the answer off, and one that is
// whole before goes out at once: with [DONE], as words may follow a finish reason.
func TestWindow(t *testing.T) {
	broken := func(after time.Duration, how drill.Ending) drill.Script {
		return func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Pause(2 * second)
			w.Chunk([]byte(pong))
			w.Pause(after)
			w.Stop(how)
		}
	}
	const window = "delivery: window\n    hold_ms: 4000"
	for _, how := range []drill.Ending{drill.FIN, drill.RST, drill.Clean} {
		inBubble(t, fmt.Sprint(how, " within"), func(t *testing.T) {
			s := newScene(t, delivered(2, window, ""))
			s.play("u1", broken(3999*time.Millisecond, how))
			s.play("u2", sayPong)
			got := s.hi()
			s.from(got, "u2")
			equal(t, "took", got.took, 5999*time.Millisecond)
			equal(t, "body", got.body, okSSE)
			s.idle()
		})
		inBubble(t, fmt.Sprint(how, " behind"), func(t *testing.T) {
			s := newScene(t, delivered(2, window, ""))
			s.play("u1", broken(5*second, how))
			s.play("u2", sayPong)
			got := s.hi()
			if got.body != pong || got.err == nil || len(got.at) == 0 || got.at[0] != 6*second || got.took != 7*second {
				t.Errorf("client got %q at %v, %v after %v", got.body, got.at, got.err, got.took)
			}
			equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
			synctest.Wait()
			s.idle()
		})
	}
	inBubble(t, "an error event within", func(t *testing.T) {
		s := newScene(t, delivered(2, window, ""))
		s.play("u1", drip(time.Second, pong, data(`{"error":{"message":"boom"}}`)))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, second)
	})
	inBubble(t, "a stall within", func(t *testing.T) {
		s := newScene(t, delivered(2, window, "server: {stall_timeout: 3}"))
		s.play("u1", broken(time.Hour, drill.FIN))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u2")
		equal(t, "took", got.took, 5*second)
	})
	inBubble(t, "whole before", func(t *testing.T) {
		s := newScene(t, delivered(2, window, ""))
		s.play("u1", drip(time.Second, pong, stop, done))
		s.play("u2", sayPong)
		got := s.hi()
		s.from(got, "u1")
		equal(t, "first byte", got.at[0], 2*second)
		equal(t, "took", got.took, 2*second)
	})
	inBubble(t, "a long one", func(t *testing.T) {
		s := newScene(t, delivered(2, window, ""))
		s.play("u1", slowly(30*second))
		got := s.hi()
		s.from(got, "u1")
		equal(t, "body", got.body, slowBody(30*second))
		equal(t, "first byte", got.at[0], 4*second)
		equal(t, "took", got.took, 30*second)
		synctest.Wait()
		s.idle()
	})
	inBubble(t, "a client that leaves within", func(t *testing.T) {
		s := newScene(t, delivered(2, window, ""))
		s.play("u1", slowly(30*second))
		s.play("u2", sayPong)
		gone := s.leftAt("u1")
		leave := s.leaving(chatBody("vm", true))
		s.till(2 * second)
		leave()
		equal(t, "u1 sees it", <-gone, 2*second)
		synctest.Wait()
		s.idle()
		equal(t, "calls", s.counts("u1", "u2"), []int{1, 0})
	})
}

// What is no stream is delivered as ever.
func TestDeliveryIsForStreams(t *testing.T) {
	for _, delivery := range []string{complete, "delivery: window\n    hold_ms: 4000"} {
		inBubble(t, delivery, func(t *testing.T) {
			s := newScene(t, delivered(1, delivery, ""))
			s.play("u1", page("application/json", okChat))
			got := s.ask("POST", chatPath, chatBody("vm", false))
			s.from(got, "u1")
			equal(t, "took", got.took, 0)
			equal(t, "body", got.body, okChat)
		})
	}
}
