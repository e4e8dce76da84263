package wire

import "bytes"

// chat reads OpenAI's chat and legacy completions, whole or in chunks, and what the
// many servers that speak it add to it. Shapes: OpenAI's SDKs (types/chat) and the
// vendors' own documentation.
type chat struct{ choices }

func (d *chat) read(raw []byte, ev *event) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"choices"`:
			ev.known = true
			for e := jsonIn(c.value); e.next(); {
				d.choice(e.value, ev)
			}
		case `"usage"`:
			ev.known = true
			chatUsage(c.value, ev)
		case `"x_groq"`:
			groq(c.value, ev)
		case `"timings"`:
			timings(c.value, ev)
		case `"prompt_filter_results"`, `"moderation"`:
			ev.known = true
		case `"object"`:
			name := jsonInner(c.value)
			ev.known = ev.known || bytes.HasPrefix(name, []byte("chat.completion")) || bytes.HasPrefix(name, []byte("text_completion"))
			ev.common(&c)
		case `"content"`: // llama.cpp /completion
			ev.chars += jsonRunes(c.value)
			ev.known = ev.known || jsonKind(c.value) == '"'
		case `"stop"`:
			if string(c.value) == "true" {
				ev.end(endPlain)
				ev.reason, ev.final = true, true
			}
		case `"obfuscation"`: // OpenAI, unless stream_options.include_obfuscation is false
			ev.padding = c.value
		case `"stop_type"`:
			if string(c.value) == `"limit"` {
				ev.end(endExplained)
			}
		default:
			ev.common(&c)
		}
	}
	ev.settle(raw)
	d.tell(ev)
}

func (d *chat) choice(raw []byte, ev *event) {
	var message, delta []byte
	index, finish := uint64(1), finishNone
	chars, nontext, piece := ev.chars, ev.nontext, ev.piece
	ev.nontext, ev.piece = false, false // so that they tell of this choice
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"index"`:
			index = choiceBit(c.value)
		case `"delta"`:
			delta = c.value
		case `"message"`:
			message = c.value
		case `"text"`: // legacy completions
			ev.chars += jsonRunes(c.value)
		case `"finish_reason"`:
			finish = chatFinish(c.value)
		case `"usage"`: // Moonshot
			chatUsage(c.value, ev)
		case `"error"`: // OpenRouter
			if jsonTruthy(c.value) {
				ev.fail(c.value)
			}
		}
	}
	if jsonElements(delta) {
		chatMessage(delta, ev)
	} else {
		chatMessage(message, ev)
	}
	if ev.chars > chars || ev.nontext {
		d.said(index, ev)
	} else if ev.piece {
		ev.resumed = ev.resumed || d.done&index != 0
	}
	ev.nontext, ev.piece = ev.nontext || nontext, ev.piece || piece
	switch finish {
	case finishNone:
		return
	case finishError:
		ev.fail(nil)
	case finishExplained:
		ev.end(endExplained)
	default:
		ev.end(endPlain)
	}
	ev.reason = true
	d.done |= index
}

// chatMessage reads a choice's delta, or its message where it came whole.
func chatMessage(raw []byte, ev *event) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"content"`:
			chatContent(c.value, ev)
		case `"refusal"`, `"reasoning_content"`, `"reasoning"`:
			ev.say(c.value)
		case `"tool_calls"`:
			for t := jsonIn(c.value); t.next(); {
				named, piece := toolCall(t.value)
				ev.nontext, ev.piece = ev.nontext || named, ev.piece || piece
			}
		case `"function_call"`:
			named, piece := calledFunction(c.value)
			ev.nontext, ev.piece = ev.nontext || named, ev.piece || piece
		case `"audio"`:
			data, _ := jsonField(c.value, "data")
			ev.nontext = ev.nontext || jsonTruthy(data)
		case `"images"`: // OpenRouter
			ev.nontext = ev.nontext || jsonElements(c.value)
		case `"reasoning_details"`: // OpenRouter
			for t := jsonIn(c.value); t.next(); {
				kind, _ := jsonField(t.value, "type")
				data, _ := jsonField(t.value, "data")
				ev.nontext = ev.nontext || string(kind) == `"reasoning.encrypted"` && jsonTruthy(data)
			}
		}
	}
}

// chatContent reads content: a string, or Mistral's array of text and thinking parts.
func chatContent(raw []byte, ev *event) {
	if jsonKind(raw) != '[' {
		ev.say(raw)
		return
	}
	for p := jsonIn(raw); p.next(); {
		for c := jsonIn(p.value); c.next(); {
			switch string(c.key) {
			case `"text"`:
				ev.chars += jsonRunes(c.value)
			case `"thinking"`:
				if jsonKind(c.value) != '[' {
					ev.chars += jsonRunes(c.value)
					continue
				}
				for t := jsonIn(c.value); t.next(); {
					text, _ := jsonField(t.value, "text")
					ev.chars += jsonRunes(text)
				}
			case `"type"`:
				switch string(c.value) {
				case `"image_url"`, `"image"`, `"audio"`, `"tool_reference"`:
					ev.nontext = true
				}
			}
		}
	}
}

// toolCall reads a tool call. It is named if it has an id or a name, which proves health,
// as arguments may never come; a piece of it is a part of its arguments.
func toolCall(raw []byte) (named, piece bool) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"id"`:
			named = named || jsonTruthy(c.value)
		case `"function"`, `"custom"`:
			n, p := calledFunction(c.value)
			named, piece = named || n, piece || p
		}
	}
	return named, piece
}

// calledFunction reads what a tool call says of its function.
func calledFunction(raw []byte) (named, piece bool) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"name"`:
			named = jsonTruthy(c.value)
		case `"arguments"`, `"input"`:
			piece = jsonTruthy(c.value)
		}
	}
	return named, piece
}

type finish uint8

const (
	finishNone finish = iota
	finishPlain
	finishExplained
	finishError
)

// chatFinish classes a finish_reason. Beyond OpenAI's own: error (OpenRouter),
// abort (vLLM), insufficient_system_resource (DeepSeek), network_error and sensitive
// (Zhipu), model_length (Mistral), and other vendors' reasons that relays hand
// through. An unknown one is a success; "" is null.
func chatFinish(raw []byte) finish {
	switch name := jsonInner(raw); string(name) {
	case "":
		return finishNone
	case "error", "ERROR", "insufficient_system_resource", "network_error", "abort":
		return finishError
	case "length", "content_filter", "max_tokens", "model_length", "refusal", "safety", "sensitive",
		"MAX_TOKENS", "LENGTH", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII",
		"model_context_window_exceeded":
		return finishExplained
	}
	return finishPlain
}

func groq(raw []byte, ev *event) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"usage"`:
			ev.known = true
			chatUsage(c.value, ev)
		case `"error"`:
			if jsonTruthy(c.value) {
				ev.fail(c.value)
			}
		}
	}
}
