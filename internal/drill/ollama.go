package drill

// ollama answers /api/chat and /api/generate.
func (a Answer) ollama(f form) play {
	head := `{"model":` + quote(a.Model) + `,"created_at":"2026-01-01T00:00:10.000001Z",`
	tools := ""
	if a.Tool != nil {
		tools = `,"tool_calls":[{"function":{"name":` + quote(a.Tool.Name) + `,"arguments":` + a.Tool.arguments() + `}}]`
	}
	say := func(text, thinking, tools string) string {
		if f.shape == ollamaGenerate {
			s := `"response":` + quote(text)
			if thinking != "" {
				s += `,"thinking":` + quote(thinking)
			}
			return s
		}
		s := `"message":{"role":"assistant","content":` + quote(text)
		if thinking != "" {
			s += `,"thinking":` + quote(thinking)
		}
		return s + tools + `}`
	}
	end := `,"done":true,"done_reason":"stop","total_duration":5000000000,"load_duration":1000000`
	if f.shape == ollamaGenerate {
		end += `,"context":[1,2,3]`
	}
	if u := a.Usage; u.Input >= 0 {
		end += `,"prompt_eval_count":` + num(u.Input) + `,"prompt_eval_duration":300000000,"eval_count":` + num(u.Output) + `,"eval_duration":900000000`
	}
	end += `}`
	if !f.stream {
		return play{contentType: "application/json; charset=utf-8", body: []byte(head + say(a.Text, a.Reasoning, tools) + end)}
	}
	p := play{format: ndjson, contentType: "application/x-ndjson"}
	const more = `,"done":false}`
	for _, s := range split(a.Reasoning, 0) {
		p.content = append(p.content, event{data: head + say("", s, "") + more})
	}
	for _, s := range split(a.Text, a.Pieces) {
		p.content = append(p.content, event{data: head + say(s, "", "") + more})
	}
	if a.Tool != nil && f.shape == ollamaChat {
		p.content = append(p.content, event{data: head + say("", "", tools) + more})
	}
	p.blank = event{data: head + say("", "", "") + more}
	p.close = []event{{data: head + say("", "", "") + end}}
	return p
}
