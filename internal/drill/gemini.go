package drill

import "strings"

// generate answers Gemini's :generateContent and :streamGenerateContent, the
// latter as SSE or as one array.
func (a Answer) generate(f form) play {
	object := func(parts, finish string, output int) string {
		if finish != "" {
			finish = `,"finishReason":"` + finish + `"`
		}
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + finish + `,"index":0}]` + a.usageMetadata(output) +
			`,"modelVersion":` + quote(a.Model) + `,"responseId":` + quote(a.ID) + `}`
	}
	text := func(s string) string { return `{"text":` + quote(s) + `}` }
	thought := func(s string) string { return `{"text":` + quote(s) + `,"thought":true}` }
	call := ""
	if a.Tool != nil {
		call = `{"functionCall":{"name":` + quote(a.Tool.Name) + `,"args":` + a.Tool.arguments() + `}}`
	}
	if !f.stream {
		var parts []string
		if a.Reasoning != "" {
			parts = append(parts, thought(a.Reasoning))
		}
		if a.Text != "" {
			parts = append(parts, text(a.Text))
		}
		if a.Tool != nil {
			parts = append(parts, call)
		}
		return play{contentType: "application/json; charset=UTF-8", body: []byte(object(strings.Join(parts, ","), "STOP", a.Usage.Output))}
	}
	p := play{format: sseWin, contentType: "text/event-stream"}
	if f.array {
		p.format, p.contentType = array, "application/json; charset=UTF-8"
	}
	for _, s := range split(a.Reasoning, 0) {
		p.content = append(p.content, event{data: object(thought(s), "", 0)})
	}
	for i, s := range split(a.Text, a.Pieces) {
		p.content = append(p.content, event{data: object(text(s), "", min(i+1, max(a.Usage.Output, 0)))})
	}
	if a.Tool != nil {
		p.content = append(p.content, event{data: object(call, "", max(a.Usage.Output, 0))})
	}
	p.blank = event{data: object(text(""), "", 0)}
	p.close = []event{{data: object(text(""), "STOP", max(a.Usage.Output, 0))}}
	return p
}

// usageMetadata returns that member with the comma before it. The vendor leaves out
// zeros, counts thoughts apart, and sends it with every event.
func (a Answer) usageMetadata(output int) string {
	u := a.Usage
	if u.Input < 0 {
		return ""
	}
	s := `,"usageMetadata":{"promptTokenCount":` + num(u.Input)
	if n := output - u.Reasoning; n > 0 {
		s += `,"candidatesTokenCount":` + num(n)
	}
	s += `,"totalTokenCount":` + num(u.Input+max(output, u.Reasoning))
	if u.Cached > 0 {
		s += `,"cachedContentTokenCount":` + num(u.Cached)
	}
	s += `,"promptTokensDetails":[{"modality":"TEXT","tokenCount":` + num(u.Input) + `}]`
	if u.Reasoning > 0 {
		s += `,"thoughtsTokenCount":` + num(u.Reasoning)
	}
	return s + `}`
}
