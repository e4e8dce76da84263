package drill

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const (
	htmlPage   = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Sign in</title></head><body><div id=\"root\"></div></body></html>\n"
	html502    = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><p>cloudflare</p></body></html>\n"
	challenge  = "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body></html>"
	htmlType   = "text/html; charset=UTF-8"
	eventsType = "text/event-stream"
)

// statusFaults say with their status that they fail.
func statusFaults() []Fault {
	return []Fault{
		{Name: "429-retry-after", Says: "answers 429 with a Retry-After of RetryAfter (2 s)", Script: func(a Answer) Script {
			return rateLimited.refuse("Retry-After", num(a.retryAfter()))(a)
		}},
		{Name: "429-text", Says: "answers 429 and says only in its text when to come back, in RetryAfter (2 s)", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				f := formOf(r)
				w.JSON(429, []byte(rateLimited.object(f, a.again(f))))
			}
		}},
		{Name: "429-quota", Says: "answers 429 because the money or the month's budget is spent", Script: quotaSpent.refuse()},
		{Name: "401", Says: "answers 401: the key is dead", Script: deadKey.refuse()},
		{Name: "402", Says: "answers 402: no balance", Script: noMoney.refuse()},
		{Name: "403-challenge", Says: "answers 403 with the challenge page of an edge, for browsers only", Script: page(403, htmlType, challenge)},
		{Name: "404-model", Says: "answers 404: it does not have this model", Script: noModel.refuse()},
		{Name: "400-context", Says: "answers 400: the prompt is too long for it", Script: tooLong.refuse()},
		{Name: "400-filter", Says: "answers 400: the request offends its content policy", Script: filtered.refuse()},
		{Name: "400-state", Says: "answers 400: encrypted state in the request was made by another account", Script: foreignState.refuse()},
		{Name: "400-credit", Says: "answers 400 because the credit balance is spent, as Anthropic does", Script: noCredit.refuse()},
		{Name: "404-path", Says: "answers 404: it does not have this path", Script: page(404, "application/json", `{"detail":"Not Found"}`)},
		{Name: "422", Says: "answers 422: a parameter is invalid", Script: badRequest.refuse()},
		{Name: "500", Says: "answers 500", Script: serverError.refuse()},
		{Name: "502-html", Says: "answers 502 with the HTML page of an edge", Script: page(502, htmlType, html502)},
		{Name: "503", Says: "answers 503: no capacity", Script: unavailable.refuse()},
		{Name: "504", Says: "answers 504 with the plain text of a gateway", Script: page(504, "text/plain", "upstream request timeout")},
		{Name: "529", Says: "answers 529: overloaded", Script: overloaded.refuse()},
		{Name: "302", Says: "redirects to a login page", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) {
				w.whole(http.StatusFound, htmlType, []byte(htmlPage), "Location", "/login")
			}
		}},
	}
}

// bodyFaults say 200 and mean something else.
func bodyFaults() []Fault {
	return []Fault{
		{Name: "200-error", Says: "answers 200 with a JSON error in the body", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) { w.JSON(200, []byte(unavailable.object(formOf(r), ""))) }
		}},
		{Name: "error-first", Says: "answers 200, and the first event is an error", Script: erring(0, 0, trouble.event)},
		{Name: "error-after-lead", Says: "answers 200 and sends an error after events that say nothing", Script: erring(-1, 0, trouble.event)},
		{Name: "error-after-two-characters", Says: "answers 200 and sends an error after two characters of text", Script: brief(erring(-1, -1, trouble.event))},
		{Name: "failed-after-lead", Says: "answers 200 and fails after events that say nothing (Responses: response.failed)", Script: erring(-1, 0, func(t trouble, f form, n int) event {
			return t.failed(Answer{}.complete(f), f, n)
		})},
		{Name: "error-unframed", Says: "answers 200 as an event stream whose whole body is a bare JSON error", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) {
				w.Head(200, Chunked, "Content-Type", eventsType)
				w.Chunk([]byte(unavailable.object(formOf(r), "")))
				w.End()
			}
		}},
		{Name: "html", Says: "answers 200 with a login page", Script: page(200, htmlType, htmlPage)},
		{Name: "html-as-json", Says: "answers 200 with a login page labelled as JSON", Script: page(200, "application/json", htmlPage)},
		{Name: "html-as-events", Says: "answers 200 with a login page labelled as an event stream", Script: page(200, eventsType, "\r\n  "+htmlPage)},
		{Name: "error-in-choice", Says: "answers 200 and sends an error inside a choice, after two characters", only: of(chat), Script: inChoice},
		{Name: "200-base-resp", Says: "answers 200 with MiniMax's way to say that the balance is spent", only: of(chat), Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				if formOf(r).shape != chat {
					Healthy(a)(w, r, n)
					return
				}
				w.JSON(200, []byte(`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`))
			}
		}},
		{Name: "sse-for-json", Says: "answers a request for JSON with an event stream", only: func(f form) bool {
			return !f.stream && of(chat, completions, responses, messages, generate)(f)
		}, Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				f := formOf(r)
				f.stream = f.stream || of(chat, completions, responses, messages, generate)(f)
				a.play(f).perform(w, a.Gap)
			}
		}},
		{Name: "garbage", Says: "answers 200 with bytes that are nothing at all", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				a.play(formOf(r)).begin(w)
				w.Chunk([]byte("\x00\x01\xfe\xff\x80garbage\x00\x13\x37\n\n\xc3\x28\n\n"))
				w.End()
			}
		}},
	}
}

// emptyFaults answer 200 and say nothing.
func emptyFaults() []Fault {
	return []Fault{
		{Name: "empty-body", Says: "answers 200 with not one byte of body", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := Answer{}.play(formOf(r))
				if p.format == whole {
					w.whole(200, p.contentType, nil)
					return
				}
				p.begin(w)
				w.End()
			}
		}},
		{Name: "empty-comments", Says: "answers 200, sends keep-alives, and ends", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.begin(w)
				for range 3 {
					w.Chunk(p.keepalive)
				}
				w.End()
			}
		}},
		{Name: "empty-done", Says: "answers 200 and sends only what ends a stream ([DONE], or the dialect's own)", Script: nothing(func(p play) []event {
			return p.close[len(p.close)-1:]
		})},
		{Name: "empty-lead", Says: "answers 200, opens the answer (a role, created, message_start) and ends", Script: nothing(func(p play) []event {
			if len(p.lead) == 0 {
				return []event{p.blank}
			}
			return p.lead
		})},
		{Name: "empty-completed", Says: "answers 200, opens the answer and completes it without a word", Script: nothing(func(p play) []event {
			return append(append([]event(nil), p.lead...), p.close...)
		})},
	}
}

// nothing returns a fault that sends only the events that pick takes from an answer
// without a word. Answers that are no stream are whole ones without content.
func nothing(pick func(play) []event) func(Answer) Script {
	return func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			f := formOf(r)
			p := a.wordless(f)
			if p.format == whole {
				p.perform(w, 0)
				return
			}
			s := &stage{Wire: w, play: p, form: f, answer: a}
			s.begin(w)
			s.say(pick(p)...)
			s.finishBody()
		}
	}
}

// wordless returns an answer to f that is well-formed and has no content.
func (a Answer) wordless(f form) play {
	a.Text, a.Reasoning, a.Tool, a.Pieces = marker, "", nil, 1
	p := a.play(f)
	strip := func(s string) string { return strings.ReplaceAll(s, marker, "") }
	p.content = nil
	for i := range p.close {
		p.close[i].data = strip(p.close[i].data)
	}
	p.body = []byte(strip(string(p.body)))
	// Where answers are made of items, no item is opened and none closed.
	switch empty := a.complete(f).response("completed", "", true, "null"); {
	case f.shape == responses && p.format == whole:
		p.body = []byte(empty)
	case f.shape == responses:
		p.lead = p.lead[:2]
		p.close = []event{{"response.completed", `{"type":"response.completed","sequence_number":2,"response":` + empty + `}`}}
	case f.shape == messages && p.format == whole:
		p.body = bytes.Replace(p.body, []byte(`{"type":"text","text":""}`), nil, 1)
	case f.shape == messages:
		p.lead, p.close = p.lead[:1], p.close[1:]
	}
	return p
}

// marker stands for the text while an answer without one is made.
const marker = "no-words-at-all"

// erring returns a fault that sends so many events of the answer, see staged, and
// then an error. Where no stream is asked for the whole answer is a JSON error.
func erring(before, content int, build func(t trouble, f form, n int) event) func(Answer) Script {
	return func(a Answer) Script {
		events := staged(before, content, func(s *stage) {
			s.say(build(serverError, s.form, s.n))
			s.finishBody()
		})(a)
		return func(w *Wire, r Request, n int) {
			f := formOf(r)
			if a.play(f).format == whole {
				w.JSON(200, []byte(serverError.object(f, "")))
				return
			}
			events(w, r, n)
		}
	}
}

// inChoice sends a chat answer whose last event says in its choice that it failed,
// as aggregators do.
func inChoice(a Answer) Script {
	const failed = `"finish_reason":"error","error":{"code":502,"message":"Provider disconnected"}`
	cut := brief(func(a Answer) Script {
		return func(w *Wire, r Request, n int) {
			p := a.play(formOf(r))
			if p.format == whole {
				p.body = bytes.Replace(p.body, []byte(`"finish_reason":"stop"`), []byte(failed), 1)
			} else {
				p.close = p.close[:1]
				p.close[0].data = strings.Replace(p.close[0].data, `"finish_reason":"stop"`, failed, 1)
			}
			p.perform(w, a.Gap)
		}
	})(a)
	return func(w *Wire, r Request, n int) {
		if formOf(r).shape != chat {
			Healthy(a)(w, r, n)
			return
		}
		cut(w, r, n)
	}
}

// of returns whether a form has one of the shapes.
func of(shapes ...shape) func(form) bool {
	return func(f form) bool { return slices.Contains(shapes, f.shape) }
}

// page returns a fault that answers with a body that is no API's.
func page(status int, contentType, body string) func(Answer) Script {
	return func(Answer) Script {
		return func(w *Wire, r Request, n int) {
			w.whole(status, contentType, fmt.Append(nil, body))
		}
	}
}
