package wire

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// quoteLimit is how much of an error that is no JSON is quoted in a message.
const quoteLimit = 2 << 10

// Envelope makes the body of an HTTP error in a dialect of an error that was found
// inside an answer: raw is a body, an event's data or a bare error object. Where it
// is an envelope already it is returned as it came.
func Envelope(d Dialect, raw []byte) []byte {
	if !gjson.ValidBytes(raw) {
		return envelope(d, encoded(map[string]any{"message": quoted(raw)}), quoted(raw))
	}
	o := gjson.ParseBytes(raw)
	if o.IsArray() && len(o.Array()) > 0 {
		// Gemini's stream without SSE carries the error as an element.
		for _, element := range o.Array() {
			if element.Get("error").Type == gjson.JSON {
				return []byte(element.Raw)
			}
		}
		o = o.Array()[0]
	}
	if nested := o.Get("response.error"); nested.Type == gjson.JSON {
		return envelope(d, []byte(nested.Raw), messageOf(nested))
	}
	if inner := o.Get("error"); inner.Exists() && inner.Type != gjson.Null && o.IsObject() {
		return []byte(o.Raw)
	}
	if choice := o.Get("choices.0.error"); choice.Type == gjson.JSON {
		return envelope(d, []byte(choice.Raw), messageOf(choice))
	}
	if !o.IsObject() {
		return envelope(d, encoded(map[string]any{"message": quoted([]byte(o.String()))}), o.String())
	}
	return envelope(d, []byte(o.Raw), messageOf(o))
}

func envelope(d Dialect, object []byte, message string) []byte {
	switch d {
	case Anthropic:
		return append(append([]byte(`{"type":"error","error":`), object...), '}')
	case Ollama:
		return encoded(map[string]any{"error": message})
	}
	return append(append([]byte(`{"error":`), object...), '}')
}

// messageOf is the text of an error object, wherever its vendor puts it.
func messageOf(o gjson.Result) string {
	for _, path := range []string{"message", "error.message", "base_resp.status_msg", "status_msg", "detail", "code"} {
		if s := o.Get(path); s.Exists() && s.String() != "" {
			return s.String()
		}
	}
	return "the upstream reported an error"
}

// quoted is what may be said of bytes that are no JSON.
func quoted(raw []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(raw[:min(len(raw), quoteLimit)]), "\uFFFD"))
	if text == "" {
		return "the upstream reported an error"
	}
	return text
}

// encoded is the JSON of a value made of strings and numbers, which cannot fail.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

// BrokenEvent is what is appended to a released stream that broke: what closes the
// event that is open, and the dialect's own error event. It is nil where the format
// has none, or where nothing can be appended. It never contains a terminal event.
func BrokenEvent(d Dialect, k Kind, r *Reader, message string) []byte {
	if r == nil {
		return nil
	}
	open := r.Open()
	if !open.Appendable {
		return nil
	}
	switch open.Format {
	case NDJSON:
		return append([]byte(open.Close), append(encoded(map[string]any{"error": message}), '\n')...)
	case Array:
		return append([]byte(open.Close), encoded(geminiBroken(message))...)
	case SSE:
		return append([]byte(open.Close), ErrorEvent(d, k, message)...)
	}
	return nil
}

func geminiBroken(message string) map[string]any {
	return map[string]any{"error": map[string]any{"code": 502, "message": message, "status": "UNAVAILABLE"}}
}

// ErrorEvent is a dialect's own error as an event of an event stream, whole.
func ErrorEvent(d Dialect, k Kind, message string) []byte {
	switch {
	case d == Anthropic:
		return errorFrame("error", encoded(map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": message}}))
	case d == Gemini:
		return errorFrame("", encoded(geminiBroken(message)))
	case k == Responses:
		return errorFrame("error", encoded(map[string]any{"type": "error", "code": "server_error", "message": message, "param": nil}))
	}
	return errorFrame("", encoded(map[string]any{"error": map[string]any{"message": message, "type": "upstream_broke_off", "param": nil, "code": "upstream_broke_off"}}))
}

func errorFrame(name string, data []byte) []byte {
	var out []byte
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	return append(append(append(out, "data: "...), data...), "\n\n"...)
}
