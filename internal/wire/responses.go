package wire

import "bytes"

// responses reads OpenAI's Responses, whole or as events, and what relays, Codex's
// backend and vLLM add to them. Shapes: OpenAI's SDKs (types/responses) and Codex's
// sources (codex-api).
type responses struct{}

// responseParts are the members of an event, or of a response object, that matter.
type responseParts struct {
	kind, delta, item, response       []byte
	object, status, err, output, used []byte
}

func (d *responses) read(raw []byte, ev *event) {
	p := responseParts{kind: ev.name}
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			p.kind = jsonInner(c.value)
			ev.common(&c)
		case `"delta"`:
			p.delta = c.value
		case `"item"`:
			p.item = c.value
		case `"response"`:
			p.response = c.value
		case `"object"`:
			p.object = jsonInner(c.value)
			ev.common(&c)
		case `"status"`:
			p.status = jsonInner(c.value)
		case `"error"`:
			p.err = c.value
		case `"output"`:
			p.output = c.value
		case `"usage"`:
			p.used = c.value
		default:
			ev.common(&c)
		}
	}
	inside := bytes.HasPrefix(p.kind, []byte("response."))
	if jsonTruthy(p.err) && !inside {
		ev.fail(p.err)
	}
	switch {
	case string(p.object) == "response" || ev.whole && !inside && (p.status != nil || p.output != nil):
		ev.known = true
		d.whole(&p, endNone, ev)
	case inside:
		ev.known = true
		d.event(&p, ev)
	default:
		d.other(&p, ev)
	}
	ev.settle(raw)
}

// event reads an event by its type. Events that repeat what deltas said (*.done)
// say nothing new; neither do the states of a tool whose item was told already.
func (d *responses) event(p *responseParts, ev *event) {
	switch kind := p.kind[len("response."):]; string(kind) {
	case "output_text.delta", "refusal.delta", "reasoning_text.delta", "reasoning_summary_text.delta",
		"audio.transcript.delta", "output_audio_transcript.delta":
		if jsonKind(p.delta) == '{' { // vLLM
			p.delta, _ = jsonField(p.delta, "text")
		}
		ev.chars += jsonRunes(p.delta)
	case "function_call_arguments.delta", "custom_tool_call_input.delta", "mcp_call_arguments.delta",
		"code_interpreter_call_code.delta", "image_generation_call.partial_image", "audio.delta", "output_audio.delta":
		ev.nontext = true
	case "output_item.added":
		responseItem(p.item, false, ev)
	case "output_item.done":
		responseItem(p.item, true, ev)
	case "completed", "done":
		d.inner(p.response, endPlain, ev)
	case "incomplete":
		d.inner(p.response, endExplained, ev)
	case "failed", "cancelled":
		e, _ := jsonField(p.response, "error")
		if !jsonTruthy(e) {
			e = p.err
		}
		if !jsonTruthy(e) {
			e = nil
		}
		d.inner(p.response, endNone, ev)
		ev.fail(e)
	case "created", "queued", "in_progress":
		if d.inner(p.response, endNone, ev); !ev.failed {
			ev.ending, ev.reason, ev.final = endNone, false, false
		}
	default:
		if bytes.HasPrefix(kind, []byte("shell_call_command.")) || bytes.HasPrefix(kind, []byte("shell_call_output_content.")) {
			ev.nontext = true
			break
		}
		// Of events that did not exist in August 2026, deltas are content.
		ev.nontext = ev.nontext || bytes.HasSuffix(kind, []byte(".delta")) && jsonTruthy(p.delta)
	}
}

// other reads an event that is none of response.*: errors, and what only tells that
// somebody is there.
func (d *responses) other(p *responseParts, ev *event) {
	switch kind := p.kind; {
	case string(kind) == "error":
		ev.known, ev.flat = true, true
	case bytes.HasPrefix(kind, []byte("codex.")), string(kind) == "keepalive", string(kind) == "ping":
		ev.known = true
	case bytes.HasSuffix(kind, []byte(".delta")):
		ev.nontext = ev.nontext || jsonTruthy(p.delta)
	}
}

// inner reads the response object of an event.
func (d *responses) inner(raw []byte, e ending, ev *event) {
	p := responseParts{}
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"status"`:
			p.status = jsonInner(c.value)
		case `"error"`:
			p.err = c.value
		case `"output"`:
			p.output = c.value
		case `"usage"`:
			p.used = c.value
		}
	}
	d.whole(&p, e, ev)
}

// whole reads a response object. e is how its event ends the answer if its own
// status does not say.
func (d *responses) whole(p *responseParts, e ending, ev *event) {
	responsesUsage(p.used, ev)
	if jsonTruthy(p.err) {
		ev.fail(p.err)
	}
	switch string(p.status) {
	case "failed", "cancelled":
		ev.fail(nil)
	case "completed":
		e, ev.reason = max(e, endPlain), true
	case "incomplete":
		e, ev.reason = endExplained, true
	case "queued", "in_progress":
		// A background response answers so at once: that is all there is to say.
		if ev.whole {
			e, ev.reason = endExplained, true
		}
	default:
		ev.reason = ev.reason || e != endNone
	}
	if !ev.said && (e != endNone || ev.whole) {
		for c := jsonIn(p.output); c.next(); {
			responseItem(c.value, true, ev)
		}
	}
	if e != endNone {
		ev.end(e)
		ev.final = true
	}
}

// responseItem reads an output item, as it is added or whole. A message or
// reasoning says something when it is whole, and its text counts only if no delta
// told it before. Every other item proves health: tools, images, compaction.
func responseItem(raw []byte, whole bool, ev *event) {
	var kind, content, summary, encrypted []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			kind = jsonInner(c.value)
		case `"content"`:
			content = c.value
		case `"summary"`:
			summary = c.value
		case `"encrypted_content"`:
			encrypted = c.value
		}
	}
	switch string(kind) {
	case "":
	case "message":
		if whole && !ev.said {
			responseText(content, ev)
		}
	case "reasoning":
		if !whole {
			return
		}
		ev.nontext = ev.nontext || jsonTruthy(encrypted)
		if !ev.said {
			responseText(summary, ev)
			responseText(content, ev)
		}
	default:
		ev.nontext = true
	}
}

func responseText(parts []byte, ev *event) {
	if jsonKind(parts) == '"' {
		ev.chars += jsonRunes(parts)
		return
	}
	for p := jsonIn(parts); p.next(); {
		for c := jsonIn(p.value); c.next(); {
			switch string(c.key) {
			case `"text"`, `"refusal"`:
				ev.chars += jsonRunes(c.value)
			}
		}
	}
}
