package wire

// gemini reads Gemini's generateContent, whole or in pieces, and Code Assist's
// envelope around it. Shapes: Google's go-genai and js-genai.
type gemini struct{ choices }

func (d *gemini) read(raw []byte, ev *event) {
	finished, blocked := geminiNone, false
	var inner []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"candidates"`:
			ev.known = true
			for e := jsonIn(c.value); e.next(); {
				finished = max(finished, d.candidate(e.value, ev))
			}
		case `"promptFeedback"`:
			ev.known = true
			reason, _ := jsonField(c.value, "blockReason")
			blocked = blocked || jsonTruthy(reason)
		case `"usageMetadata"`:
			ev.known = true
			geminiUsage(c.value, ev)
		case `"response"`:
			inner = c.value
		case `"modelVersion"`, `"responseId"`:
			ev.known = true
		default:
			ev.common(&c)
		}
	}
	ev.settle(raw)
	if jsonKind(inner) == '{' && !ev.known && !ev.failed { // Code Assist
		d.read(inner, ev)
		return
	}
	ev.reason = finished != geminiNone || blocked
	switch {
	case blocked, finished == geminiExplained:
		ev.end(endExplained)
	case finished == geminiPlain && (ev.said || ev.content()):
		// Relays that translate put STOP on empty leading chunks: without content
		// before it, it ends nothing.
		ev.end(endPlain)
	}
	d.tell(ev)
	if blocked { // the prompt, and with it all that would have answered it
		ev.finished = manyChoices
	}
}

type geminiFinish uint8

const (
	geminiNone geminiFinish = iota
	geminiPlain
	geminiExplained
)

// candidate reads one of the answers that were asked for (candidateCount), of which
// each ends by itself.
func (d *gemini) candidate(raw []byte, ev *event) geminiFinish {
	f, index := geminiNone, uint64(1)
	chars, nontext := ev.chars, ev.nontext
	ev.nontext = false // so that it tells of this candidate
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"index"`: // left out where it is 0
			index = choiceBit(c.value)
		case `"content"`:
			parts, _ := jsonField(c.value, "parts")
			for p := jsonIn(parts); p.next(); {
				geminiPart(p.value, ev)
			}
		case `"finishReason"`:
			switch string(jsonInner(c.value)) {
			case "":
			case "STOP", "FINISH_REASON_UNSPECIFIED", "OTHER",
				// Nothing usable, and another try can work:
				"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "NO_IMAGE":
				f = geminiPlain
			default:
				f = geminiExplained
			}
		}
	}
	if ev.chars > chars || ev.nontext {
		d.said(index, ev)
	}
	ev.nontext = ev.nontext || nontext
	if f != geminiNone && d.begun&index != 0 || f == geminiExplained {
		d.done |= index
	}
	return f
}

func geminiPart(raw []byte, ev *event) {
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"text"`:
			ev.chars += jsonRunes(c.value)
		case `"functionCall"`, `"functionResponse"`, `"inlineData"`, `"fileData"`, `"executableCode"`, `"codeExecutionResult"`:
			ev.nontext = ev.nontext || jsonKind(c.value) != 'n'
		}
	}
}
