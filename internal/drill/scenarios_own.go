package drill

import (
	"context"
	"time"
)

// own is what we add to FailoverBench's sixteen: faults that its catalogue leaves
// out and that people have met (docs/drill.md).
func own() []Scenario {
	return []Scenario{
		{
			ID: "U01", Name: "refused", Title: "nobody listens",
			Fault: "is gone: its port refuses connections, those kept open are closed",
			Right: "ask somebody else at once",
			play:  afterClosing,
		},
		{
			ID: "U02", Name: "dead-key", Title: "401: the key is dead",
			Fault:  "answers 401 to everything",
			Right:  "ask somebody else, and not the same key again",
			script: faulty("401"),
			checks: []check{bounded, better(onlyOnce)},
		},
		{
			ID: "U03", Name: "no-money", Title: "429: the money is spent",
			Fault:  "answers 429 because the month's budget is spent, which no waiting cures",
			Right:  "ask somebody else; not again and again",
			script: faulty("429-quota"),
			checks: []check{bounded},
		},
		{
			ID: "U04", Name: "429-in-words", Title: "429, and when to return in words",
			Fault: "answers 429 once; that it wants two seconds stands only in its sentence",
			Right: "read it: wait, or ask somebody else",
			Real:  true, patience: 20 * time.Second,
			script: once(named("429-text").Script),
			checks: []check{
				{name: "not come back before it was asked to", holds: func(s *sight) bool { return s.lead() < 2 || s.gap() >= 1800*time.Millisecond }},
			},
		},
		{
			ID: "U05", Name: "no-model", Title: "404: no such model",
			Fault:  "answers 404: it does not have the model",
			Right:  "ask somebody else",
			script: faulty("404-model"),
			checks: []check{bounded, better(onlyOnce)},
		},
		{
			ID: "U06", Name: "challenge", Title: "403 with a page for browsers",
			Fault:  "answers 403 with the challenge page of an edge",
			Right:  "ask somebody else",
			script: faulty("403-challenge"),
			checks: []check{bounded},
		},
		{
			ID: "U07", Name: "200-error", Title: "200 with an error inside",
			Fault:  "answers a stream's request with 200 and a JSON error",
			Right:  "see that it is none; ask somebody else",
			script: faulty("200-error"),
			checks: []check{bounded},
		},
		{
			ID: "U08", Name: "error-event", Title: "an error after two characters",
			Fault:  "opens the answer, says two characters and sends an error event",
			Right:  "ask somebody else; nothing of the first reaches the client",
			script: faulty("error-after-two-characters"),
			checks: []check{bounded},
		},
		{
			ID: "U09", Name: "empty", Title: "a whole answer without a word",
			Fault:  "opens an answer and completes it in good order without a word",
			Right:  "ask somebody else",
			script: faulty("empty-completed"),
			checks: []check{bounded},
		},
		{
			ID: "U10", Name: "login-page", Title: "a login page as an event stream",
			Fault:  "answers 200, an event stream by its label and a login page by its content",
			Right:  "ask somebody else",
			script: faulty("html-as-events"),
			checks: []check{bounded},
		},
		{
			ID: "U11", Name: "keep-alives", Title: "keep-alives and nothing else",
			Fault: "opens the answer and sends only keep-alives, one a second, for ever",
			Right: "see that nothing comes; ask somebody else",
			script: func(t *take, rank int, a Answer) Script {
				a.Gap = t.scale(time.Second)
				return lead(rank, named("keep-alives-for-ever").Script(a))
			},
			checks: []check{{name: "leave the silent one alone after that", advisory: true, holds: func(s *sight) bool { return s.lead() <= 1 }}},
		},
		{
			ID: "U12", Name: "early-stall", Title: "two characters and silence",
			Fault:  "says two characters and then nothing",
			Right:  "ask somebody else: too little was said to be held to it",
			script: faulty("stall-two-characters"),
		},
		{
			ID: "U13", Name: "false-end", Title: "a clean end in mid-sentence",
			Fault: "ends the body in good order after 40 of 60 words, without the event that ends an answer",
			Right: "somebody else's whole answer, or a broken connection; never a clean end",
			script: always(staged(-1, 40, func(s *stage) {
				s.End()
			})),
		},
		{
			ID: "U14", Name: "late-error", Title: "an error in mid-sentence",
			Fault: "sends an error event after 40 of 60 words",
			Right: "somebody else's whole answer, or that error",
			script: always(staged(-1, 40, func(s *stage) {
				s.say(serverError.event(s.form, s.n))
				s.finishBody()
			})),
		},
		{
			ID: "U15", Name: "cut-tool-call", Title: "cut inside a tool call",
			Fault:  "closes the connection before a tool call's arguments are whole",
			Right:  "somebody else's whole call, or an error; never half a call",
			ask:    withTool,
			script: always(toolCut),
		},
		{
			ID: "U16", Name: "broken-framing", Title: "broken chunks in mid-sentence",
			Fault:  "breaks its own chunking before the event that ends the answer",
			Right:  "somebody else's whole answer, or an error",
			script: faulty("broken-chunk-late"),
		},
		{
			ID: "U17", Name: "bad-gzip", Title: "gzip that cannot be read",
			Fault:  "announces gzip, which nobody asked for, and sends damaged data",
			Right:  "ask somebody else",
			script: faulty("gzip-broken"),
			checks: []check{bounded},
		},
		{
			ID: "U18", Name: "dead-connection", Title: "a kept connection that died",
			Fault:  "is well, and resets its kept connection when the second request comes on it",
			Right:  "ask it again on a new one: that is no failure",
			script: faulty("idle-reset"),
			play:   twice,
			checks: []check{{name: "stay with it", advisory: true, holds: func(s *sight) bool { return s.rest() == 0 }}},
		},
		{
			ID: "U19", Name: "slow-and-steady", Title: "slow, but alive",
			Fault: "is well, and sends its answer in crumbs, cut in the middle of characters and lines",
			Right: "wait for it: it is no failure",
			script: func(t *take, rank int, a Answer) Script {
				a.Gap = t.scale(3 * time.Millisecond)
				return lead(rank, named("split-runes").Script(a))
			},
			checks: []check{{name: "stay with it", advisory: true, holds: func(s *sight) bool { return s.rest() == 0 }}},
		},
		{
			ID: "U20", Name: "whole-silence", Title: "not streaming: no answer at all",
			Fault:  "takes a request for an answer in one piece and never answers",
			Right:  "give up after the configured time and ask somebody else",
			ask:    wholly,
			script: faulty("silence-before-headers"),
			checks: []check{{name: "leave the silent one alone after that", advisory: true, holds: func(s *sight) bool { return s.lead() <= 1 }}},
		},
		{
			ID: "U21", Name: "whole-cut", Title: "not streaming: cut short",
			Fault:  "announces the length of its answer and closes the connection before it is reached",
			Right:  "ask again, or ask somebody else",
			ask:    wholly,
			script: faulty("short-length"),
			checks: []check{bounded},
		},
		{
			ID: "U22", Name: "whole-error", Title: "not streaming: 200, an error",
			Fault:  "answers 200 with a JSON error",
			Right:  "see that it is no answer; ask somebody else",
			ask:    wholly,
			script: faulty("200-error"),
			checks: []check{bounded},
		},
		{
			ID: "U23", Name: "all-but-last", Title: "only the last one is well",
			Fault: "answers 503 to everything, and so does everybody but the last",
			Right: "go on to the last",
			script: func(t *take, rank int, a Answer) Script {
				if rank == 0 || rank < len(t.ups)-1 {
					return unavailable.refuse()(a)
				}
				return nil
			},
			checks: []check{allBounded},
		},
		{
			ID: "U24", Name: "all-down", Title: "nobody is well",
			Fault:   "answers 503 to everything, and so does everybody",
			Right:   "an error in the client's own dialect that says what happened, before long",
			refusal: true,
			script:  func(t *take, rank int, a Answer) Script { return unavailable.refuse()(a) },
			checks: []check{
				{name: "say so in an error that SDKs understand", holds: func(s *sight) bool { return s.heard.Refusal }},
				allBounded,
			},
		},
		{
			ID: "U25", Name: "foreign-state", Title: "400: state of another account",
			Fault:   "answers 400: encrypted state in the request was made by another account",
			Right:   "pass the reason on: nobody else could read it either",
			refusal: true,
			script:  faulty("400-state"),
			checks:  []check{bounded, better(onlyOnce)},
		},
		{
			ID: "U26", Name: "client-leaves", Title: "the client leaves",
			Fault:   "thinks for long, and the client hangs up meanwhile",
			Right:   "stop that attempt at once, so that nobody pays for it, and begin no other",
			refusal: true,
			script:  faulty("silence-before-headers"),
			play:    leaving,
			checks: []check{
				{name: "stop the attempt", holds: func(s *sight) bool { return s.gone }},
				{name: "ask nobody else", holds: func(s *sight) bool { return s.rest() == 0 && s.lead() == 1 }},
			},
		},
	}
}

var allBounded = check{name: "stop after six attempts at the same", holds: func(s *sight) bool { return s.busiest() <= 6 }}

// better makes a check one that is advisable only.
func better(c check) check {
	c.advisory = true
	return c
}

// faulty has the candidate called first show a fault of the catalogue.
func faulty(name string) func(*take, int, Answer) Script { return always(named(name).Script) }

// toolCut sends an answer up to the last piece of its tool call and half of that.
func toolCut(a Answer) Script {
	return func(w *Wire, r Request, n int) {
		f := formOf(r)
		s := &stage{Wire: w, play: a.play(f), form: f, answer: a}
		s.begin(w)
		last := len(s.content) - 1
		s.say(s.content[:last]...)
		final := s.encode(s.n, s.content[last:])[0]
		s.Chunk(final[:len(final)/2])
		s.FIN()
	}
}

// afterClosing learns with one request who is called first, closes that one's port
// and asks again.
func afterClosing(t *take) sight {
	first := t.once()
	if !first.whole {
		return first
	}
	t.lead().Close()
	return t.once()
}

// twice asks twice and is judged by the second answer.
func twice(t *take) sight {
	if first := t.once(); !first.whole {
		return first
	}
	return t.once()
}

// leaving hangs up while the first upstream is thinking.
func leaving(t *take) sight {
	ctx, leave := context.WithCancelCause(t.ctx)
	defer leave(nil)
	asked := make(chan sight, 1)
	go func() { asked <- t.onceIn(ctx) }()
	waiting, enough := context.WithTimeout(t.ctx, t.patience())
	defer enough()
	came := t.await(waiting, func() bool { return t.count() > 0 })
	leave(ErrLeft)
	s := <-asked
	if came {
		s.gone = t.await(waiting, func() bool { return t.lead().Gone() > 0 })
	}
	// Whoever is to be called wrongly would be called at once.
	wait, stop := context.WithTimeout(t.ctx, grace/2)
	defer stop()
	t.await(wait, func() bool { return t.count() > 1 })
	s.attempts, s.hung = t.attempts(), false
	return s
}
