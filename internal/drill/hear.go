package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Heard is what a careful client makes of a reply to a generation request.
type Heard struct {
	Text  string // the answer's text
	Tool  string // the arguments of its tool call, "" for none
	Model string // the model that says to have answered, "" where none does
	Usage bool   // tokens were reported
	// Ended says that the answer said itself that it was over: a finish reason, or the
	// event that ends it. What only stops may be a part.
	Ended bool
	// Error says why it is no answer: a status, an error inside a 200, a break. It
	// is "" for an answer that came to its end, be it a strange one.
	Error string
	// Refusal says that the error is one a server told in so many words, with a
	// status of its own and a JSON object that an SDK understands.
	Refusal bool
}

// Hear reads a reply as a careful client does: a status that is not 200, a body
// that breaks off and an error event are errors; what is no JSON among the events
// is passed over.
func Hear(r Reply) Heard {
	var h Heard
	values := jsonValues(r.Body)
	for _, raw := range values {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			h.hear(v)
		}
	}
	h.Text = Spoken(r.Body)
	told := h.Error
	switch {
	case r.Status == 0 && errors.Is(r.Err, context.DeadlineExceeded):
		h.Error = "no answer"
	case r.Status == 0:
		h.Error = "the connection broke before an answer"
	case r.Status != http.StatusOK:
		h.Refusal = told != "" && r.Clean
		h.Error = fmt.Sprintf("%d", r.Status)
		if told != "" {
			h.Error += " " + told
		}
	case told != "":
	case !r.Clean && errors.Is(r.Err, context.DeadlineExceeded):
		h.Error = "an answer that does not end"
	case !r.Clean:
		h.Error = "broken off"
	case h.Text == "" && h.Tool == "":
		h.Error = "an answer without a word"
	}
	return h
}

// hear takes in one value of a body.
func (h *Heard) hear(v any) {
	switch kind := asText(in(v, "type")); kind {
	case "error":
		h.fail(v)
	case "response.failed":
		h.fail(in(v, "response"))
	case "response.function_call_arguments.delta":
		h.Tool += asText(in(v, "delta"))
	case "content_block_delta":
		h.Tool += asText(in(v, "delta", "partial_json"))
	case "response.completed", "response.incomplete":
		h.fact(in(v, "response"))
		h.Ended = true
	case "message_stop":
		h.Ended = true
	case "message_start":
		h.fact(in(v, "message"))
	default:
		if in(v, "error") != nil {
			h.fail(v)
		}
		h.fact(v)
		h.call(v)
		h.Ended = h.Ended || ends(v)
	}
}

// ends reports whether a value says that the answer is over, in the dialects that
// have no event for it and in those that answer in one piece.
func ends(v any) bool {
	for _, c := range append(list(in(v, "choices")), list(in(v, "candidates"))...) {
		if asText(in(c, "finish_reason"))+asText(in(c, "finishReason")) != "" {
			return true
		}
	}
	done, _ := in(v, "done").(bool)
	status := asText(in(v, "status"))
	return done || status == "completed" || status == "incomplete" || asText(in(v, "stop_reason")) != ""
}

// fact notes who answered, and whether it was counted.
func (h *Heard) fact(v any) {
	for _, name := range []string{"model", "modelVersion"} {
		if m := asText(in(v, name)); m != "" {
			h.Model = m
		}
	}
	for _, name := range []string{"usage", "usageMetadata", "prompt_eval_count"} {
		if in(v, name) != nil {
			h.Usage = true
		}
	}
}

// fail notes an error object, wherever the dialect has it.
func (h *Heard) fail(v any) {
	message := asText(in(v, "error", "message"))
	for _, other := range []any{in(v, "message"), in(v, "error")} {
		if message == "" {
			message = asText(other)
		}
	}
	if message == "" {
		message = "an error"
	}
	h.Error = message
}

// call collects the arguments of a tool call from the dialects that have no event
// for them.
func (h *Heard) call(v any) {
	for _, choice := range list(in(v, "choices")) {
		for _, where := range []string{"delta", "message"} {
			for _, c := range list(in(choice, where, "tool_calls")) {
				h.Tool += asText(in(c, "function", "arguments"))
			}
		}
	}
	for _, c := range list(in(v, "message", "tool_calls")) { // Ollama
		h.Tool += asJSON(in(c, "function", "arguments"))
	}
	for _, candidate := range list(in(v, "candidates")) {
		for _, part := range list(in(candidate, "content", "parts")) {
			h.Tool += asJSON(in(part, "functionCall", "args"))
		}
	}
	for _, item := range list(in(v, "output")) {
		h.Tool += asText(in(item, "arguments"))
	}
	for _, block := range list(in(v, "content")) {
		h.Tool += asJSON(in(block, "input"))
	}
}

// in follows object keys; nil where there is nothing.
func in(v any, path ...string) any {
	for _, name := range path {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func asText(v any) string {
	s, _ := v.(string)
	return s
}

// asJSON returns v as JSON text, "" for nothing.
func asJSON(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
