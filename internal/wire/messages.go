package wire

// messages reads Anthropic's Messages, whole or as events. Shapes: Anthropic's
// streaming documentation and SDK types.
type messages struct {
	started bool
	usage   messagesUsage
}

func (d *messages) read(raw []byte, ev *event) {
	var kind, message, block, delta, usage, content, stop []byte
	kind = ev.name
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			kind = jsonInner(c.value)
			ev.common(&c)
		case `"message"`:
			message = c.value
			ev.common(&c)
		case `"content_block"`:
			block = c.value
		case `"delta"`:
			delta = c.value
		case `"usage"`:
			usage = c.value
		case `"content"`:
			content = c.value
		case `"stop_reason"`:
			stop = c.value
		default:
			ev.common(&c)
		}
	}
	if len(kind) == 0 && ev.whole && content != nil {
		kind = []byte("message")
	}
	ev.known = true
	switch string(kind) {
	case "message_start":
		if d.started && ev.released {
			// A relay that spliced two attempts: Anthropic's SDKs throw on it.
			ev.damage = "a second message began inside the stream"
		}
		d.started, d.usage = true, messagesUsage{}
		start, _ := jsonField(message, "usage")
		d.usage.read(start, ev)
	case "content_block_start":
		messagesBlock(block, ev)
	case "content_block_delta":
		messagesDelta(delta, ev)
	case "message_delta":
		d.usage.read(usage, ev)
		stop, _ = jsonField(delta, "stop_reason")
		messagesStop(stop, ev)
	case "message_stop":
		ev.end(endPlain)
		ev.final = true
	case "message":
		for c := jsonIn(content); c.next(); {
			messagesBlock(c.value, ev)
		}
		d.usage.read(usage, ev)
		messagesStop(stop, ev)
	case "content_block_stop", "ping", "error", "vertex_event":
	default:
		ev.known = false
	}
	ev.settle(raw)
}

// messagesBlock reads a content block, as it begins or whole. A block of any type
// but text and thinking proves health: tools, their results, compaction.
func messagesBlock(raw []byte, ev *event) {
	var kind, text, thinking, data []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			kind = jsonInner(c.value)
		case `"text"`:
			text = c.value
		case `"thinking"`:
			thinking = c.value
		case `"data"`:
			data = c.value
		}
	}
	switch string(kind) {
	case "":
	case "text":
		ev.chars += jsonRunes(text)
	case "thinking":
		ev.chars += jsonRunes(thinking)
	case "redacted_thinking":
		ev.nontext = ev.nontext || jsonTruthy(data)
	default:
		ev.nontext = true
	}
}

func messagesDelta(raw []byte, ev *event) {
	var kind, text, thinking, partial []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			kind = jsonInner(c.value)
		case `"text"`:
			text = c.value
		case `"thinking"`:
			thinking = c.value
		case `"partial_json"`:
			partial = c.value
		}
	}
	switch string(kind) {
	case "text_delta":
		ev.say(text)
	case "thinking_delta":
		ev.say(thinking)
	case "input_json_delta":
		ev.nontext = ev.nontext || jsonTruthy(partial)
	}
}

func messagesStop(raw []byte, ev *event) {
	switch string(jsonInner(raw)) {
	case "":
		return
	case "max_tokens", "stop_sequence", "pause_turn", "refusal", "model_context_window_exceeded":
		ev.end(endExplained)
	default:
		ev.end(endPlain)
	}
	ev.reason = true
}
