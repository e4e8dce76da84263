package wire

// ollama reads the answers of Ollama's /api/chat and /api/generate, whole or by
// line. Shapes: Ollama's api/types.go.
type ollama struct{}

func (ollama) read(raw []byte, ev *event) {
	var done, reason, prompt, eval []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"message"`:
			if jsonKind(c.value) != '{' {
				ev.common(&c)
				continue
			}
			ev.known = true
			ollamaMessage(c.value, ev)
		case `"response"`:
			ev.known = true
			ev.chars += jsonRunes(c.value)
		case `"thinking"`:
			ev.chars += jsonRunes(c.value)
		case `"tool_calls"`:
			ev.nontext = ev.nontext || jsonElements(c.value)
		case `"done"`:
			ev.known, done = true, c.value
		case `"done_reason"`:
			reason = jsonInner(c.value)
		case `"prompt_eval_count"`:
			prompt = c.value
		case `"eval_count"`:
			eval = c.value
		default:
			ev.common(&c)
		}
	}
	ev.settle(raw)
	if string(done) != "true" {
		return
	}
	ev.reason, ev.final = true, true
	switch string(reason) {
	case "load", "unload", "length":
		ev.end(endExplained)
	default:
		ev.end(endPlain)
	}
	ollamaUsage(prompt, eval, ev)
}

func ollamaMessage(raw []byte, ev *event) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"content"`, `"thinking"`:
			ev.chars += jsonRunes(c.value)
		case `"tool_calls"`, `"images"`:
			ev.nontext = ev.nontext || jsonElements(c.value)
		}
	}
}
