package drill

import "strings"

// responsesStream numbers the events of a Responses stream.
type responsesStream struct {
	play
	seq int
}

// event returns the next event, of the given type and members.
func (s *responsesStream) event(kind, members string) event {
	e := event{name: kind, data: `{"type":"` + kind + `","sequence_number":` + num(s.seq) + `,` + members + `}`}
	s.seq++
	return e
}

// responses answers POST /v1/responses.
func (a Answer) responses(f form) play {
	items := a.responseItems("completed")
	if !f.stream {
		return play{contentType: "application/json", body: []byte(a.response("completed", strings.Join(items, ","), true, "null"))}
	}
	s := &responsesStream{play: play{format: sse, contentType: "text/event-stream; charset=utf-8"}}
	begun := `"response":` + a.response("in_progress", "", false, "null")
	s.lead = []event{s.event("response.created", begun), s.event("response.in_progress", begun)}

	s.blank = event{"response.in_progress", s.lead[1].data}

	// What comes before the first delta is lead, what comes after the last is
	// close, whatever the items are.
	var all []event
	first, last := -1, 0
	add := func(kind, members string) { all = append(all, s.event(kind, members)) }
	delta := func(kind, members, text string) {
		if first < 0 {
			first = len(all)
		}
		add(kind, members+`,"delta":`+quote(text))
		last = len(all)
	}
	index := 0
	if a.Reasoning != "" {
		id := `"item_id":"rs_` + a.ID + `","output_index":` + num(index)
		part := id + `,"summary_index":0`
		add("response.output_item.added", `"output_index":`+num(index)+`,"item":{"id":"rs_`+a.ID+`","type":"reasoning","summary":[]}`)
		add("response.reasoning_summary_part.added", part+`,"part":{"type":"summary_text","text":""}`)
		for _, piece := range split(a.Reasoning, 0) {
			delta("response.reasoning_summary_text.delta", part, piece)
		}
		add("response.reasoning_summary_text.done", part+`,"text":`+quote(a.Reasoning))
		add("response.reasoning_summary_part.done", part+`,"part":{"type":"summary_text","text":`+quote(a.Reasoning)+`}`)
		add("response.output_item.done", `"output_index":`+num(index)+`,"item":`+items[index])
		index++
	}
	if a.Text != "" {
		part := `"item_id":"msg_` + a.ID + `","output_index":` + num(index) + `,"content_index":0`
		add("response.output_item.added", `"output_index":`+num(index)+`,"item":{"id":"msg_`+a.ID+`","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
		add("response.content_part.added", part+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
		for _, piece := range split(a.Text, a.Pieces) {
			delta("response.output_text.delta", part+`,"logprobs":[]`, piece)
		}
		add("response.output_text.done", part+`,"text":`+quote(a.Text)+`,"logprobs":[]`)
		add("response.content_part.done", part+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":`+quote(a.Text)+`}`)
		add("response.output_item.done", `"output_index":`+num(index)+`,"item":`+items[index])
		index++
	}
	if a.Tool != nil {
		id := `"item_id":"fc_` + a.ID + `","output_index":` + num(index)
		add("response.output_item.added", `"output_index":`+num(index)+`,"item":`+a.functionCall("in_progress", ""))
		if first < 0 {
			first = len(all) - 1 // a tool's name is content already
		}
		delta("response.function_call_arguments.delta", id, a.Tool.arguments())
		add("response.function_call_arguments.done", id+`,"name":`+quote(a.Tool.Name)+`,"arguments":`+quote(a.Tool.arguments()))
		add("response.output_item.done", `"output_index":`+num(index)+`,"item":`+items[index])
	}
	s.lead = append(s.lead, all[:first]...)
	s.content, s.close = all[first:last], all[last:]
	s.close = append(s.close, s.event("response.completed", `"response":`+a.response("completed", strings.Join(items, ","), true, "null")))
	return s.play
}

// responseItems returns the output items of the answer.
func (a Answer) responseItems(status string) []string {
	var items []string
	if a.Reasoning != "" {
		items = append(items, `{"id":"rs_`+a.ID+`","type":"reasoning","summary":[{"type":"summary_text","text":`+quote(a.Reasoning)+`}]}`)
	}
	if a.Text != "" {
		items = append(items, `{"id":"msg_`+a.ID+`","type":"message","status":"`+status+`","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":`+quote(a.Text)+`}],"role":"assistant"}`)
	}
	if a.Tool != nil {
		items = append(items, a.functionCall(status, a.Tool.arguments()))
	}
	return items
}

func (a Answer) functionCall(status, arguments string) string {
	return `{"id":"fc_` + a.ID + `","type":"function_call","status":"` + status + `","arguments":` + quote(arguments) + `,"call_id":"call_` + a.ID + `","name":` + quote(a.Tool.Name) + `}`
}

// response returns a response object with the given items, and with usage where
// it is over; failure is its error, "null" for none.
func (a Answer) response(status, output string, over bool, failure string) string {
	usage := "null"
	if u := a.Usage; over && u.Input >= 0 {
		usage = `{"input_tokens":` + num(u.Input) + `,"input_tokens_details":{"cached_tokens":` + num(u.Cached) + `},"output_tokens":` + num(u.Output) +
			`,"output_tokens_details":{"reasoning_tokens":` + num(u.Reasoning) + `},"total_tokens":` + num(u.Input+u.Output) + `}`
	}
	completed := "null"
	if status == "completed" {
		completed = created
	}
	return `{"id":"resp_` + a.ID + `","object":"response","created_at":` + created + `,"status":"` + status + `","background":false,"completed_at":` + completed +
		`,"error":` + failure + `,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":` + quote(a.Model) +
		`,"output":[` + output + `],"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null}` +
		`,"safety_identifier":null,"service_tier":"default","store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"}` +
		`,"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"truncation":"disabled","usage":` + usage + `,"user":null,"metadata":{}}`
}
