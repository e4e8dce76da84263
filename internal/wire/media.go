package wire

import "bytes"

// media reads what endpoints that generate no text answer with, as far as it has a
// common shape: transcriptions, speech, images, embeddings, and anything that
// reports usage as one of these does. Shapes: OpenAI's SDKs (types/audio,
// types/image) and API reference.
type media struct {
	images int // that are there
}

func (d *media) read(raw []byte, ev *event) {
	var kind, delta, text, audio, image []byte
	kind = ev.name
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"type"`:
			kind = jsonInner(c.value)
			ev.common(&c)
		case `"delta"`:
			delta = c.value
		case `"text"`:
			text = c.value
		case `"audio"`:
			audio = c.value
		case `"b64_json"`:
			image = c.value
		case `"data"`, `"results"`:
			ev.known = true
			ev.nontext = ev.nontext || ev.whole && jsonElements(c.value)
		case `"usage"`:
			ev.known = true
			if chatUsage(c.value, ev); !ev.hasUsage {
				responsesUsage(c.value, ev)
			}
		case `"error"`:
			if jsonTruthy(c.value) {
				ev.fail(c.value)
			}
		}
	}
	switch {
	case string(kind) == "transcript.text.delta":
		ev.chars += jsonRunes(delta)
	case string(kind) == "transcript.text.segment":
		ev.chars += jsonRunes(text)
	case string(kind) == "speech.audio.delta":
		ev.nontext = ev.nontext || jsonTruthy(audio)
	case string(kind) == "transcript.text.done", string(kind) == "speech.audio.done":
		ev.end(endExplained) // silence is an answer
		ev.reason, ev.final = true, true
	case bytes.HasSuffix(kind, []byte(".partial_image")):
		ev.nontext = ev.nontext || jsonTruthy(image)
	case bytes.HasPrefix(kind, []byte("image_")) && bytes.HasSuffix(kind, []byte(".completed")):
		ev.nontext = ev.nontext || jsonTruthy(image)
		ev.end(endExplained)
		d.images++
		ev.reason, ev.finished = true, d.images
	case string(kind) == "error":
		ev.fail(raw)
	case ev.whole:
		ev.chars += jsonRunes(text)
		ev.known = ev.known || text != nil
		return
	default:
		return
	}
	ev.known = true
}
