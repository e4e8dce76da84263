package proxy

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// The refusals of the cases, byte for byte.
const (
	contextTooLong = `{"error":{"message":"This model's maximum context length is 8192 tokens…","code":"context_length_exceeded"}}`
	badParameter   = `{"error":{"message":"Invalid value for 'temperature': must be between 0 and 2.","type":"invalid_request_error","param":"temperature","code":null}}`
	wrongPath      = `{"error":{"message":"Invalid URL (POST /v1/chat/completion)","type":"invalid_request_error","param":null,"code":null}}`
)

// Case 34: a client's mistake is nobody else's: one call, the answer as it came, and
// nobody is frozen. A prompt that is too long may fit the next model: one call per
// candidate, and when all refuse it, the last refusal.
func TestClientMistakesAreNotReplayed(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		rules  string
		calls  []int
		winner int
	}{
		{name: "prompt too long", status: 400, body: contextTooLong, calls: []int{1, 1, 1}, winner: 3},
		{name: "invalid parameter", status: 422, body: badParameter, calls: []int{1, 0, 0}, winner: 1},
		{name: "wrong path", status: 404, body: wrongPath, calls: []int{1, 0, 0}, winner: 1},
		{name: "prompt too long, by a rule", status: 400, body: contextTooLong, calls: []int{1, 1, 1}, winner: 3,
			rules: `rules: [{match: {status: 400, body_regex: "context_length_exceeded"}, action: next}, {match: {status: 400}, action: passthrough}]`},
		{name: "prompt too long in another vendor's words, by a rule", status: 400, calls: []int{1, 1, 1}, winner: 3,
			body:  `{"object":"error","message":"The prompt (total length 9000) is longer than the model's context length of 8192.","type":"BadRequestError","param":null,"code":400}`,
			rules: `rules: [{match: {status: 400, body_regex: "is longer than the model.s context length"}, action: next}, {match: {status: 400}, action: passthrough}]`},
		{name: "the same words, and no rule for them", status: 400, body: contextTooLong, calls: []int{1, 0, 0}, winner: 1,
			rules: `rules: [{match: {status: 400}, action: passthrough}]`},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			for _, stream := range []bool{true, false} {
				refuses := refusal(c.status, c.body, "X-Request-Id", "up-7")
				s := newStage(t, c.rules, refuses, refuses, refuses)
				sent := requestFor(chatPath, stream)
				got := s.ask("POST", chatPath, sent)
				s.expect(sent, got, outcome{status: c.status, body: c.body, winner: c.winner, calls: c.calls, ending: stats.PassedThrough})
				equal(t, "content type", got.header.Get("Content-Type"), "application/json")
				equal(t, "the upstream's header", got.header.Get("X-Request-Id"), "up-7")
				s.unfrozen()
				for i, n := range c.calls {
					if n > 0 && s.streak(i+1) != 0 {
						t.Errorf("u%d has a streak of %d", i+1, s.streak(i+1))
					}
				}
				if strings.Contains(s.log.String(), "level=ERROR") {
					t.Errorf("the log complains:\n%s", s.log)
				}
			}
		})
	}
}

// Case 34: a prompt that one model refuses is served by a bigger one behind it.
func TestPromptTooLongGoesToABiggerModel(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "", refusal(400, contextTooLong), refusal(400, contextTooLong), frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 3, calls: []int{1, 1, 1}, ending: stats.Success})
		s.unfrozen()
	})
}

// Spec section 7: only where every called candidate failed by the client's fault is
// its answer passed on; one failure of another kind makes it the exhausted answer.
func TestAMixedFailureIsNotTheClients(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "", refusal(400, contextTooLong), refusal(401, `{"error":{"message":"bad key","code":"invalid_api_key"}}`), refusal(400, contextTooLong))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 502, own: `"type":"upstream_all_failed"`, calls: []int{1, 1, 1}, ending: stats.Exhausted})
	})
}

// The rules of case 35, and what each of them is to catch.
const meaningRules = `
rules:
  - {match: {status: 400, body_regex: "not available for this api key|no available channel|unknown model"}, action: next}
  - {match: {status: 400}, action: passthrough}
  - {match: {status: 529}, action: freeze, freeze_seconds: 3}
  - {match: {status: 403, body_regex: "/cdn-cgi\\/challenge|Enable JavaScript"}, action: next}
  - {match: {body_regex: "capacity"}, action: retry, max_attempts: 2, backoff_base: 2}
  - {match: {status: 413}, action: next}
`

// Case 35: the same status means different things, and the body tells which. The
// first rule that matches decides.
func TestTheBodyTellsWhatAStatusMeans(t *testing.T) {
	const challenge = `<!DOCTYPE html><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script>`
	for _, c := range []struct {
		name   string
		status int
		body   string
		calls  []int
		took   time.Duration
		frozen time.Duration
		passes bool
	}{
		{name: "model not for this key", status: 400, body: `{"error":{"message":"The model gpt-5 is Not Available For This API Key"}}`, calls: []int{1, 1}},
		{name: "no channel", status: 400, body: `{"error":{"message":"no available channel for model m1 (group default)","type":"new_api_error"}}`, calls: []int{1, 1}},
		{name: "unknown model", status: 400, body: `{"error":{"message":"Unknown model: m1"}}`, calls: []int{1, 1}},
		{name: "another 400", status: 400, body: badParameter, calls: []int{1, 0}, passes: true},
		{name: "another 400 that speaks of capacity", status: 400, body: `{"error":{"message":"capacity must be a number"}}`, calls: []int{1, 0}, passes: true},
		{name: "overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, calls: []int{1, 1}, frozen: 3 * time.Second},
		{name: "challenge page", status: 403, body: challenge, calls: []int{1, 1}},
		{name: "challenge page, in words", status: 403, body: `<html>Enable JavaScript and cookies to continue</html>`, calls: []int{1, 1}},
		{name: "capacity under any status", status: 500, body: `{"error":{"message":"We are at CAPACITY"}}`, calls: []int{2, 1}, took: 2 * time.Second},
		{name: "too large for this one", status: 413, body: `{"error":{"message":"request too large"}}`, calls: []int{1, 1}},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, meaningRules, refusal(c.status, c.body), frames(okSSE))
			sent := requestFor(chatPath, true)
			want := outcome{body: okSSE, winner: 2, calls: c.calls, took: c.took, ending: stats.Success}
			if c.passes {
				want.status, want.body, want.winner, want.ending = c.status, c.body, 1, stats.PassedThrough
			}
			s.expect(sent, s.ask("POST", chatPath, sent), want)
			freezes := s.handler.Board().Freezes(time.Now())
			if c.frozen == 0 && len(freezes) > 0 || c.frozen > 0 && (len(freezes) != 1 || freezes[0].Length != c.frozen) {
				t.Errorf("freezes %+v, want %v", freezes, c.frozen)
			}
		})
	}
}

// Case 35: a rule sees the body decoded and without its chunks, and the body reaches
// the client in full all the same.
func TestRulesSeeTheDecodedBody(t *testing.T) {
	plain := `{"error":{"message":"no available channel` + strings.Repeat(" ", 300) + `"}}`
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	zip.Write([]byte(plain))
	zip.Close()
	inPieces := func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(400, drill.Chunked, "Content-Type", "application/json", "Content-Encoding", "gzip")
		for b := packed.Bytes(); len(b) > 0; b = b[min(7, len(b)):] {
			w.Chunk(b[:min(7, len(b))])
		}
		w.End()
	}
	inBubble(t, "it matches", func(t *testing.T) {
		s := newStage(t, meaningRules, inPieces, frames(okSSE))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{body: okSSE, winner: 2, calls: []int{1, 1}, ending: stats.Success})
	})
	passed := `rules: [{match: {body_regex: "no available channel"}, action: passthrough}]`
	inBubble(t, "passed on to a client without codings", func(t *testing.T) {
		s := newStage(t, passed, inPieces)
		sent := requestFor(chatPath, true)
		got := s.ask("POST", chatPath, sent)
		s.expect(sent, got, outcome{status: 400, body: plain, winner: 1, calls: []int{1}, ending: stats.PassedThrough})
		equal(t, "coding", got.header.Get("Content-Encoding"), "")
	})
	inBubble(t, "passed on as it came", func(t *testing.T) {
		s := newStage(t, passed, inPieces)
		sent := requestFor(chatPath, true)
		got := s.ask("POST", chatPath, sent, "Accept-Encoding", "gzip, br")
		s.expect(sent, got, outcome{status: 400, body: packed.String(), winner: 1, calls: []int{1}, ending: stats.PassedThrough})
		equal(t, "coding", got.header.Get("Content-Encoding"), "gzip")
	})
}

// Case 35: a rule looks one MiB far, and what is passed on is passed on whole, also
// where it is more than is ever held.
func TestLargeRefusalsPassWhole(t *testing.T) {
	for name, c := range map[string]struct {
		before, after int
		calls         []int
	}{
		"the words within the first MiB": {100, 9 << 20, []int{1, 1}},
		"the words after it":             {1 << 20, 9 << 20, []int{1, 0}},
	} {
		inBubble(t, name, func(t *testing.T) {
			body := `{"error":{"message":"` + strings.Repeat("a", c.before) + "no available channel" + strings.Repeat("b", c.after) + `"}}`
			s := newStage(t, meaningRules, func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(400, drill.Chunked, "Content-Type", "application/json")
				for b := body; len(b) > 0; b = b[min(64<<10, len(b)):] {
					w.Chunk([]byte(b[:min(64<<10, len(b))]))
				}
				w.End()
			}, frames(okSSE))
			sent := requestFor(chatPath, true)
			want := outcome{body: okSSE, winner: 2, calls: c.calls, ending: stats.Success}
			if c.calls[1] == 0 {
				want = outcome{status: 400, body: body, winner: 1, calls: c.calls, ending: stats.PassedThrough}
			}
			s.expect(sent, s.ask("POST", chatPath, sent), want)
		})
	}
}

// Case 36 (a): a rate limit is over when it says so: everybody else passes the
// candidate over for two seconds, and this request waits them out.
func TestRateLimitIsOverWhenItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, chain(2, ""))
		limited := refusal(429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, "Retry-After", "2")
		s.play("u1", drill.Sequence(limited, sayPong))
		s.play("u2", sayPong)
		waited := make(chan reply)
		go func() { waited <- s.hi() }()
		s.till(500 * time.Millisecond)
		s.isFrozen("u1", 1500*time.Millisecond)
		s.from(s.hi(), "u2")
		got := <-waited
		s.from(got, "u1")
		equal(t, "waited", got.took, 2*time.Second)
		s.from(s.hi(), "u1")
		equal(t, "u1 called at", s.when("u1"), []time.Duration{0, 2 * time.Second, 2 * time.Second})
		s.isFrozen("u1", 0)
	})
}

// Case 36 (b) to (d): an account without money is left alone for an hour, not tried
// every minute; when it still has none after that, for twice as long, up to the cap.
func TestDeadAccountIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"(b) quota under 429":   {429, `{"error":{"code":"insufficient_quota"}}`},
		"(c) 402":               {402, `{"error":{"message":"Insufficient Balance"}}`},
		"(d) low credit as 400": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScene(t, chain(2, "server: {freeze_max_seconds: 9000}"))
			s.play("u1", refusal(c.status, c.body))
			s.play("u2", sayPong)
			for minute := range 7 * 60 {
				s.till(time.Duration(minute) * time.Minute)
				s.from(s.hi(), "u2")
			}
			hour := time.Hour
			equal(t, "u1 called at", s.when("u1"), []time.Duration{0, hour, 3 * hour, 3*hour + 150*time.Minute})
		})
	}
}

// Case 38 (a): an error in JSON that answers a stream request arrives with its status,
// its type and every byte, however it was framed.
func TestAnErrorToAStreamRequestArrivesWhole(t *testing.T) {
	body := `{"error":{"message":"` + strings.Repeat("no ", 49) + `","type":"invalid"}}`
	if len(body) != 188 {
		t.Fatalf("the body has %d bytes", len(body))
	}
	for name, script := range map[string]drill.Script{
		"with a length": refusal(400, body),
		"chunked": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(400, drill.Chunked, "Content-Type", "application/json; charset=utf-8")
			for _, c := range []byte(body) {
				w.Chunk([]byte{c})
			}
			w.End()
		},
		"until the end": func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(400, drill.UntilClose, "Content-Type", "application/json")
			w.Chunk([]byte(body))
			w.End()
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", script, frames(okSSE))
			sent := requestFor(chatPath, true)
			got := s.ask("POST", chatPath, sent)
			s.expect(sent, got, outcome{status: 400, body: body, winner: 1, calls: []int{1, 0}, ending: stats.PassedThrough})
			if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
				t.Errorf("content type %q", kind)
			}
		})
	}
}

// Case 38 (b): events that answer a request for JSON are read as events: what fails in
// them goes to the next candidate.
func TestFailedEventsWhereJSONWasAskedFor(t *testing.T) {
	failed := created + event("response.failed", `{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"boom"}}}`)
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "", frames(failed), page("application/json", okResponse))
		sent := requestFor(responsesPath, false)
		s.expect(sent, s.ask("POST", responsesPath, sent), outcome{body: okResponse, winner: 2, calls: []int{1, 1}, ending: stats.Success})
	})
}

// Case 38: when all have failed the client is told so, by us, and what each said
// stands in the lines; a refusal that is the client's own is never hidden behind it.
func TestARefusalIsNotHidden(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		s := newStage(t, "rules: []", refusal(400, badParameter), refusal(400, contextTooLong))
		sent := requestFor(chatPath, true)
		s.expect(sent, s.ask("POST", chatPath, sent), outcome{status: 400, body: contextTooLong, winner: 2, calls: []int{1, 1}, ending: stats.PassedThrough})
	})
}
