package drill

import (
	"encoding/json"
	"time"
)

// benchmark is FailoverBench's catalogue of sixteen, with its clocks, its checks
// and its verdicts (github.com/failoverbench/failoverbench, METHODOLOGY.md and
// scenarios/catalogue.yaml, methodology v0.1). The wording and the code are ours.
func benchmark() []Scenario {
	return []Scenario{
		{
			ID: "S01", Name: "429-retry-after", Title: "429 that asks for two seconds",
			Fault: "answers 429 with Retry-After: 2 once, and is well after that",
			Right: "wait those two seconds and ask again, or ask somebody else; no tight loop",
			Real:  true, patience: 20 * time.Second,
			script: once(rateLimited.refuse("Retry-After", "2")),
			checks: []check{
				{name: "ask the same upstream again", advisory: true, holds: func(s *sight) bool { return s.lead() >= 2 }},
				{name: "wait as long as it was asked to", advisory: true, holds: func(s *sight) bool { return s.gap() >= 1800*time.Millisecond }},
				{name: "not hammer it", holds: func(s *sight) bool { return s.within(1500*time.Millisecond) <= 2 }},
			},
		},
		{
			ID: "S02", Name: "429-for-ever", Title: "429 for ever, without a hint",
			Fault:    "answers 429 to everything and does not say when to come back",
			Right:    "back off, then ask somebody else; never hammer",
			patience: 40 * time.Second,
			script:   always(rateLimited.refuse()),
			checks: []check{
				{name: "not hammer it", holds: func(s *sight) bool { return s.within(3*time.Second) <= 4 }},
				bounded,
			},
		},
		{
			ID: "S03", Name: "500-once", Title: "500 once, then well",
			Fault:    "answers 500 once, and is well after that",
			Right:    "ask the same upstream once more",
			patience: 20 * time.Second,
			script:   once(serverError.refuse()),
			checks:   []check{{name: "ask the same upstream again", advisory: true, holds: func(s *sight) bool { return s.lead() >= 2 }}},
		},
		{
			ID: "S04", Name: "503-for-ever", Title: "503 for ever",
			Fault:    "answers 503 to everything: overloaded",
			Right:    "ask somebody else after a few attempts",
			patience: 40 * time.Second,
			script:   always(unavailable.refuse()),
			checks:   []check{bounded},
		},
		{
			ID: "S05", Name: "reset-once", Title: "reset before the head",
			Fault:    "resets the connection once before it answers, and is well after that",
			Right:    "ask again, or ask somebody else",
			patience: 20 * time.Second,
			script:   once(named("reset-before-headers").Script),
		},
		{
			ID: "S06", Name: "no-answer", Title: "no answer at all",
			Fault:    "takes the request and says nothing for two minutes",
			Right:    "give up after the configured time and ask somebody else, not the same one again",
			patience: 130 * time.Second,
			script: func(t *take, rank int, a Answer) Script {
				return lead(rank, func(w *Wire, r Request, n int) { w.Gone(t.scale(120 * time.Second)) })
			},
			checks: []check{
				{name: "be over within 100 s", holds: func(s *sight) bool { return s.in(100*time.Second, slack) }},
				{name: "leave the silent one alone after that", advisory: true, holds: func(s *sight) bool { return s.lead() <= 1 }},
			},
		},
		{
			ID: "S07", Name: "slow-first-word", Title: "first word after 20 s",
			Fault:    "opens the answer at once and says its first word after 20 s",
			Right:    "an answer; a limit on the wait for the first word is the better way",
			patience: 60 * time.Second,
			script: func(t *take, rank int, a Answer) Script {
				a.Wait = t.scale(20 * time.Second)
				return lead(rank, named("slow-first-token").Script(a))
			},
			checks: []check{{name: "answer within 15 s", advisory: true, rescue: true, holds: func(s *sight) bool { return s.in(17*time.Second, 0) }}},
		},
		{
			ID: "S08", Name: "cut-in-the-middle", Title: "cut after 40 of 60 words",
			Fault:    "closes the connection after 40 of 60 words",
			Right:    "somebody else's whole answer, or an error; never a part that looks whole",
			patience: 40 * time.Second,
			script:   always(staged(-1, 40, stop(FIN))),
		},
		{
			ID: "S09", Name: "stall-in-the-middle", Title: "stall after 20 words",
			Fault:    "says 20 words, nothing for 30 s, and closes the connection",
			Right:    "notice it in time; somebody else's whole answer, or an error; then go on serving",
			patience: 70 * time.Second,
			script: func(t *take, rank int, a Answer) Script {
				return lead(rank, staged(-1, 20, func(s *stage) {
					s.Gone(t.scale(30 * time.Second))
					s.FIN()
				})(a))
			},
			checks: []check{
				{name: "be over within 45 s", holds: func(s *sight) bool { return s.in(45*time.Second, slack) }},
				alive,
			},
		},
		{
			ID: "S10", Name: "malformed-event", Title: "an event that is no JSON",
			Fault:    "sends a tenth event that is no JSON, and goes on as if nothing were",
			Right:    "pass over it, or an error; then go on serving",
			patience: 30 * time.Second,
			script: always(staged(-1, 10, func(s *stage) {
				s.say(event{data: `{"choices": [{"del`})
				s.rest(10)
			})),
			checks: []check{alive, {name: "deliver the answer all the same", advisory: true, holds: func(s *sight) bool { return s.whole }}},
		},
		{
			ID: "S11", Name: "no-done", Title: "no [DONE] at the end",
			Fault:    "ends a whole answer in good order and without [DONE]",
			Right:    "the answer, at once, with its usage",
			patience: 30 * time.Second,
			script:   always(named("no-done").Script),
			checks: []check{
				{name: "be over within 8 s", holds: func(s *sight) bool { return s.in(8*time.Second, grace) }},
				{name: "pass on the usage", advisory: true, holds: func(s *sight) bool { return s.heard.Usage }},
			},
		},
		{
			ID: "S12", Name: "context-length", Title: "400: the prompt is too long",
			Fault:    "answers 400: the prompt does not fit this model",
			Right:    "not ask the same model again; ask another one, or an error",
			patience: 20 * time.Second,
			script:   always(tooLong.refuse()),
			checks:   []check{onlyOnce},
		},
		{
			ID: "S13", Name: "content-filter", Title: "400: the prompt offends",
			Fault:    "answers 400: the prompt offends its content policy",
			Right:    "not ask the same model again; pass the reason on",
			refusal:  true,
			patience: 20 * time.Second,
			script:   always(filtered.refuse()),
			checks:   []check{onlyOnce},
		},
		{
			ID: "S14", Name: "cut-no-prefill", Title: "cut, and the next takes no prefill",
			Fault:    "closes the connection after 40 of 60 words; the next upstream refuses to continue what another began",
			Right:    "start anew, or an error about the cut; never that refusal",
			patience: 40 * time.Second,
			script: func(t *take, rank int, a Answer) Script {
				if rank == 0 {
					return staged(-1, 40, stop(FIN))(a)
				}
				return func(w *Wire, r Request, n int) {
					if r.continues() {
						t.refusedPrefill()
						noPrefill.refuse()(a)(w, r, n)
						return
					}
					Healthy(a)(w, r, n)
				}
			},
			checks: []check{{name: "not show the refusal to continue", holds: func(s *sight) bool { return s.heard.Error == "" || !s.prefilled }}},
		},
		{
			ID: "S15", Name: "flap", Title: "down for a minute, then well",
			Fault: "answers 503 for 60 s and is well after that; a request comes every 4 s, twenty in all",
			Right: "serve from the others meanwhile; come back to the first soon after it is well",
			// Twenty requests, each of which takes its time on any machine.
			finest: 10,
			script: func(t *take, rank int, a Answer) Script {
				if rank != 0 {
					return nil
				}
				return func(w *Wire, r Request, n int) {
					if t.since() < t.scale(outage) {
						unavailable.refuse()(a)(w, r, n)
						return
					}
					t.wellAgain()
					Healthy(a)(w, r, n)
				}
			},
			play: sequence,
			checks: []check{
				{name: "answer every request of the outage", rescue: true, holds: func(s *sight) bool { return s.during > 0 && s.served == s.during }},
				{name: "come back within 30 s", rescue: true, holds: func(s *sight) bool { return s.back >= 0 && s.back <= s.scale(30*time.Second)+slack },
					because: func(s *sight) string {
						if len(s.booked.Skipped) == 0 {
							return ""
						}
						return " (passed over: " + clip(s.booked.Skipped[0]) + ")"
					}},
			},
		},
		{
			ID: "S16", Name: "accounting", Title: "503 for ever, and who is billed",
			Fault:    "answers 503 to everything; the next upstream is well",
			Right:    "the client and the books see the model, the usage and the name of who answered",
			patience: 40 * time.Second,
			script:   always(unavailable.refuse()),
			checks: []check{
				{name: "report the model that answered", rescue: true, holds: func(s *sight) bool { return !s.whole || s.heard.Model == s.model }},
				{name: "report usage", rescue: true, advisory: true, holds: func(s *sight) bool { return s.heard.Usage }},
				{name: "book the answer for who gave it", rescue: true, holds: func(s *sight) bool {
					return !s.whole || s.booked.Winner == s.named && s.booked.Output == int64(says(s.speaker, streamed, 0).Usage.Output)
				}},
				bounded,
			},
		},
	}
}

// outage is how long the first upstream of the flapping scenario is down.
const outage = 60 * time.Second

var (
	bounded  = check{name: "stop after six attempts at the same", holds: func(s *sight) bool { return s.lead() <= 6 }}
	onlyOnce = check{name: "not ask it twice", holds: func(s *sight) bool { return s.lead() == 1 }}
	alive    = check{name: "serve the next request", holds: func(s *sight) bool { return s.alive }}
)

// always has the candidate called first fail in one way.
func always(fault func(Answer) Script) func(*take, int, Answer) Script {
	return func(t *take, rank int, a Answer) Script { return lead(rank, fault(a)) }
}

// once has it fail once, and be well after that.
func once(fault func(Answer) Script) func(*take, int, Answer) Script {
	return func(t *take, rank int, a Answer) Script { return lead(rank, Sequence(fault(a), Healthy(a))) }
}

// lead is a script for the candidate called first.
func lead(rank int, s Script) Script {
	if rank == 0 {
		return s
	}
	return nil
}

// continues reports whether a chat request ends with the beginning of an answer.
func (r Request) continues() bool {
	var turns []any
	var body any
	_ = json.Unmarshal(r.Body, &body) // what is no JSON has no turns
	for _, name := range []string{"messages", "contents", "input"} {
		turns = append(turns, list(in(body, name))...)
	}
	if len(turns) == 0 {
		return false
	}
	role := asText(in(turns[len(turns)-1], "role"))
	return role == "assistant" || role == "model"
}

var noPrefill = trouble{
	status: 400, kind: `"invalid_request_error"`, code: `"invalid_prefill"`,
	message:       "This model does not support assistant message prefill. The conversation must end with a user message.",
	anthropicKind: "invalid_request_error", geminiStatus: "INVALID_ARGUMENT",
}
