package drill

import "strings"

// messages answers POST /v1/messages.
func (a Answer) messages(f form) play {
	reason := `"end_turn"`
	if a.Tool != nil {
		reason = `"tool_use"`
	}
	object := func(content, reason string, output int) string {
		return `{"model":` + quote(a.Model) + `,"id":"msg_` + a.ID + `","type":"message","role":"assistant","content":[` + content + `],"stop_reason":` + reason +
			`,"stop_sequence":null,"usage":` + a.messageUsage(output) + `}`
	}
	if !f.stream {
		var blocks []string
		if a.Reasoning != "" {
			blocks = append(blocks, `{"type":"thinking","thinking":`+quote(a.Reasoning)+`,"signature":"ZHJpbGw="}`)
		}
		if a.Text != "" {
			blocks = append(blocks, `{"type":"text","text":`+quote(a.Text)+`}`)
		}
		if a.Tool != nil {
			blocks = append(blocks, a.toolUse(a.Tool.arguments()))
		}
		return play{contentType: "application/json", body: []byte(object(strings.Join(blocks, ","), reason, a.Usage.Output))}
	}

	p := play{format: sse, contentType: "text/event-stream; charset=utf-8"}
	index := 0
	start := func(block string) event {
		return event{"content_block_start", `{"type":"content_block_start","index":` + num(index) + `,"content_block":` + block + `}`}
	}
	delta := func(delta string) event {
		return event{"content_block_delta", `{"type":"content_block_delta","index":` + num(index) + `,"delta":` + delta + `}`}
	}
	stop := func() event {
		index++
		return event{"content_block_stop", `{"type":"content_block_stop","index":` + num(index-1) + `}`}
	}
	p.lead = []event{{"message_start", `{"type":"message_start","message":` + object("", "null", 1) + `}`}}
	ping := event{"ping", `{"type":"ping"}`}
	p.blank, p.keepalive = ping, p.encode(0, []event{ping})[0]
	if a.Reasoning != "" {
		p.lead = append(p.lead, start(`{"type":"thinking","thinking":"","signature":""}`), ping)
		for _, s := range split(a.Reasoning, 0) {
			p.content = append(p.content, delta(`{"type":"thinking_delta","thinking":`+quote(s)+`}`))
		}
		p.content = append(p.content, delta(`{"type":"signature_delta","signature":"ZHJpbGw="}`), stop())
	}
	if a.Text != "" {
		begin := []event{start(`{"type":"text","text":""}`)}
		if len(p.content) == 0 {
			p.lead = append(append(p.lead, begin...), ping)
		} else {
			p.content = append(p.content, begin...)
		}
		for _, s := range split(a.Text, a.Pieces) {
			p.content = append(p.content, delta(`{"type":"text_delta","text":`+quote(s)+`}`))
		}
		p.content = append(p.content, stop())
	}
	if a.Tool != nil {
		p.content = append(p.content, start(a.toolUse("{}")),
			delta(`{"type":"input_json_delta","partial_json":""}`),
			delta(`{"type":"input_json_delta","partial_json":`+quote(a.Tool.arguments())+`}`), stop())
	}
	usage := "{}"
	if a.Usage.Input >= 0 {
		usage = `{"output_tokens":` + num(a.Usage.Output) + `}`
	}
	// The last block's end belongs to the end of the answer.
	n := len(p.content) - 1
	p.content, p.close = p.content[:n], []event{p.content[n],
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":` + reason + `,"stop_sequence":null},"usage":` + usage + `}`},
		{"message_stop", `{"type":"message_stop"}`}}
	return p
}

func (a Answer) toolUse(input string) string {
	return `{"type":"tool_use","id":"toolu_` + a.ID + `","name":` + quote(a.Tool.Name) + `,"input":` + input + `}`
}

// messageUsage returns a usage object. The vendor leaves it out nowhere, so that
// "not reported" is an empty one here; input_tokens excludes what was cached.
func (a Answer) messageUsage(output int) string {
	u := a.Usage
	if u.Input < 0 {
		return "{}"
	}
	return `{"input_tokens":` + num(u.Input-u.Cached) + `,"cache_creation_input_tokens":0,"cache_read_input_tokens":` + num(u.Cached) +
		`,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":` + num(output) + `,"service_tier":"standard"}`
}
