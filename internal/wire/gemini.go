package wire

// gemini reads Gemini's generateContent, whole or in pieces, and Code Assist's
// envelope around it. Shapes: Google's go-genai and js-genai.
type gemini struct{}

func (d gemini) read(raw []byte, ev *event) {
	finished, blocked := geminiNone, false
	var inner []byte
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"candidates"`:
			ev.known = true
			for e := jsonIn(c.value); e.next(); {
				finished = max(finished, geminiCandidate(e.value, ev))
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
}

type geminiFinish uint8

const (
	geminiNone geminiFinish = iota
	geminiPlain
	geminiExplained
)

func geminiCandidate(raw []byte, ev *event) geminiFinish {
	f := geminiNone
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
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
