package drill

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Spoken returns the text that an answer's body says, as a client would show it,
// in whatever dialect and format it is, also when it is cut. It is "" where the
// body says nothing.
func Spoken(body []byte) string {
	var b strings.Builder
	for _, v := range jsonValues(body) {
		var u utterance
		// What does not fit is no text.
		if json.Unmarshal(v, &u) == nil {
			b.WriteString(u.text(b.Len() > 0))
		}
	}
	return b.String()
}

// jsonValues returns the JSON values of a body: those of its events, of its lines, of
// its array, or the one it is.
func jsonValues(body []byte) []json.RawMessage {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(body) == 0 {
		return nil
	}
	if body[0] == '[' {
		d := json.NewDecoder(bytes.NewReader(body))
		_, _ = d.Token()
		return drain(d)
	}
	if body[0] == '{' {
		return lines(body)
	}
	var out []json.RawMessage
	var data []string
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(body))
	for line := range strings.SplitSeq(text+"\n\n", "\n") {
		if value, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(value, " "))
		} else if line == "" && data != nil {
			out, data = append(out, json.RawMessage(strings.Join(data, "\n"))), nil
		}
	}
	return out
}

// lines returns the values of a body that is one, or has one on each line. A line
// that is none is passed over.
func lines(body []byte) []json.RawMessage {
	var out []json.RawMessage
	for {
		d := json.NewDecoder(bytes.NewReader(body))
		out = append(out, drain(d)...)
		rest := body[min(d.InputOffset(), int64(len(body))):]
		i := bytes.IndexByte(bytes.TrimLeft(rest, " \t\r\n"), '\n')
		if i < 0 {
			return out
		}
		body = bytes.TrimLeft(rest, " \t\r\n")[i+1:]
	}
}

// drain decodes values until there is no further whole one.
func drain(d *json.Decoder) []json.RawMessage {
	var out []json.RawMessage
	for d.More() {
		var v json.RawMessage
		if d.Decode(&v) != nil {
			break
		}
		out = append(out, v)
	}
	return out
}

// utterance is where the dialects put text. Members whose type differs between
// dialects are looked at later.
type utterance struct {
	Type    string
	Choices []struct {
		Text           string
		Delta, Message struct{ Content json.RawMessage }
	}
	Delta      json.RawMessage
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text    string
				Thought bool
			}
		}
	}
	Message  json.RawMessage
	Response json.RawMessage
	Content  json.RawMessage
	Output   []struct{ Content []struct{ Text string } }
	Text     json.RawMessage
}

// text returns the text of one value; more says that others came before, so that a
// last event which repeats everything is not read twice.
func (u utterance) text(more bool) string {
	var b strings.Builder
	for _, c := range u.Choices {
		b.WriteString(c.Text + asString(c.Delta.Content) + asString(c.Message.Content))
	}
	for _, c := range u.Candidates {
		for _, p := range c.Content.Parts {
			if !p.Thought {
				b.WriteString(p.Text)
			}
		}
	}
	switch u.Type {
	case "response.output_text.delta", "transcript.text.delta":
		b.WriteString(asString(u.Delta))
	case "content_block_delta":
		var d struct{ Text string }
		_ = json.Unmarshal(u.Delta, &d)
		b.WriteString(d.Text)
	case "response.completed":
		var whole utterance
		if !more && json.Unmarshal(u.Response, &whole) == nil {
			b.WriteString(whole.text(false))
		}
	case "message": // Anthropic, whole
		var blocks []struct{ Text string }
		_ = json.Unmarshal(u.Content, &blocks)
		for _, block := range blocks {
			b.WriteString(block.Text)
		}
	case "":
		var m struct{ Content string }
		_ = json.Unmarshal(u.Message, &m) // Ollama chat
		b.WriteString(m.Content + asString(u.Response) + asString(u.Text))
		for _, o := range u.Output {
			for _, c := range o.Content {
				b.WriteString(c.Text)
			}
		}
	}
	return b.String()
}

// asString returns the string v is, "" for anything else.
func asString(v json.RawMessage) string {
	var s string
	_ = json.Unmarshal(v, &s)
	return s
}
