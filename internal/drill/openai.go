package drill

import "strings"

// chat answers POST /v1/chat/completions.
func (a Answer) chat(f form) play {
	finish := `"stop"`
	if a.Tool != nil {
		finish = `"tool_calls"`
	}
	call := func(arguments string) string {
		return `{"index":0,"id":"call_` + a.ID + `","type":"function","function":{"name":` + quote(a.Tool.Name) + `,"arguments":` + quote(arguments) + `}}`
	}
	head := `"created":` + created + `,"model":` + quote(a.Model) + `,"service_tier":"default","system_fingerprint":"fp_drill",`

	if !f.stream {
		message := `"role":"assistant","content":` + quote(a.Text) + `,"refusal":null,"annotations":[]`
		if a.Text == "" && a.Tool != nil {
			message = `"role":"assistant","content":null,"refusal":null,"annotations":[]`
		}
		if a.Reasoning != "" {
			message += `,"reasoning_content":` + quote(a.Reasoning)
		}
		if a.Tool != nil {
			message += `,"tool_calls":[` + strings.Replace(call(a.Tool.arguments()), `"index":0,`, "", 1) + `]`
		}
		return play{contentType: "application/json", body: []byte(`{"id":"chatcmpl-` + a.ID + `","object":"chat.completion",` + head +
			`"choices":[{"index":0,"message":{` + message + `},"logprobs":null,"finish_reason":` + finish + `}]` + a.chatUsage() + `}`)}
	}

	// Only who asks for usage gets it, and then sees it announced as null before.
	pending, usage := "", a.chatUsage()
	if f.usage && usage != "" {
		pending = `,"usage":null`
	}
	chunk := func(choices, usage string) event {
		return event{data: `{"id":"chatcmpl-` + a.ID + `","object":"chat.completion.chunk",` + head + `"choices":` + choices + usage + `}`}
	}
	delta := func(delta, finish string) event {
		return chunk(`[{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}]`, pending)
	}
	p := play{format: sse, contentType: "text/event-stream; charset=utf-8"}
	first := `""`
	if a.Text == "" && a.Tool != nil {
		first = "null"
	}
	p.lead = []event{delta(`{"role":"assistant","content":`+first+`,"refusal":null}`, "null")}
	p.blank = delta(`{"content":""}`, "null")
	for _, s := range split(a.Reasoning, 0) {
		p.content = append(p.content, delta(`{"reasoning_content":`+quote(s)+`}`, "null"))
	}
	for _, s := range split(a.Text, a.Pieces) {
		p.content = append(p.content, delta(`{"content":`+quote(s)+`}`, "null"))
	}
	if a.Tool != nil {
		p.content = append(p.content,
			delta(`{"tool_calls":[`+call("")+`]}`, "null"),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":`+quote(a.Tool.arguments())+`}}]}`, "null"))
	}
	p.close = append(p.close, delta("{}", finish))
	if pending != "" {
		p.close = append(p.close, chunk("[]", usage))
	}
	p.close = append(p.close, event{data: "[DONE]"})
	return p
}

// chatUsage returns the usage member of chat and completions answers, with the
// comma before it.
func (a Answer) chatUsage() string {
	u := a.Usage
	if u.Input < 0 {
		return ""
	}
	return `,"usage":{"prompt_tokens":` + num(u.Input) + `,"completion_tokens":` + num(u.Output) + `,"total_tokens":` + num(u.Input+u.Output) +
		`,"prompt_tokens_details":{"cached_tokens":` + num(u.Cached) + `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":` + num(u.Reasoning) +
		`,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`
}

// completions answers POST /v1/completions.
func (a Answer) completions(f form) play {
	object := func(choices, usage string) string {
		return `{"id":"cmpl-` + a.ID + `","object":"text_completion","created":` + created + `,"model":` + quote(a.Model) + `,"choices":` + choices + usage + `}`
	}
	choice := func(text, finish string) string {
		return `[{"text":` + quote(text) + `,"index":0,"logprobs":null,"finish_reason":` + finish + `}]`
	}
	if !f.stream {
		return play{contentType: "application/json", body: []byte(object(choice(a.Text, `"stop"`), a.chatUsage()))}
	}
	p := play{format: sse, contentType: "text/event-stream; charset=utf-8"}
	for _, s := range split(a.Text, a.Pieces) {
		p.content = append(p.content, event{data: object(choice(s, "null"), "")})
	}
	p.blank = event{data: object(choice("", "null"), "")}
	p.close = []event{{data: object(choice("", `"stop"`), "")}}
	if usage := a.chatUsage(); f.usage && usage != "" {
		p.close = append(p.close, event{data: object("[]", usage)})
	}
	p.close = append(p.close, event{data: "[DONE]"})
	return p
}
