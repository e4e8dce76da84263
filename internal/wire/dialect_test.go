package wire

import "testing"

// Section 1.2 of the vendors' shapes.
func TestResponses(t *testing.T) {
	created := `{"type":"response.created","response":{"status":"in_progress","error":null,"output":[],"usage":null}}`
	completed := `{"type":"response.completed","response":{"status":"completed","error":null,"incomplete_details":null,"output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":16}}}`
	released := func(event string) answer {
		return answer{event, responseStream, sseOf(created, event, completed), Healthy, sseOf(created, event), used(10, 6, 4, 2, 5)}
	}
	neutral := func(event string) answer {
		return answer{event, responseStream, sseOf(created, event, completed), Empty, "-", nil}
	}
	added := func(kind string) string {
		return `{"type":"response.output_item.added","item":{"type":"` + kind + `"}}`
	}
	answers := []answer{
		neutral(`{"type":"response.queued","response":{"status":"queued"}}`),
		neutral(`{"type":"response.in_progress","response":{"status":"in_progress"}}`),
		neutral(added("message")), neutral(added("reasoning")),
		neutral(`{"type":"response.content_part.added","part":{"type":"output_text","text":""}}`),
		neutral(`{"type":"response.output_text.done","text":"twelve chars"}`),
		neutral(`{"type":"response.output_text.annotation.added","annotation":{}}`),
		neutral(`{"type":"response.refusal.done","refusal":"twelve chars"}`),
		neutral(`{"type":"response.reasoning_summary_part.added","part":{}}`),
		neutral(`{"type":"response.web_search_call.searching"}`),
		neutral(`{"type":"response.mcp_call.failed"}`),
		neutral(`{"type":"codex.rate_limits","rate_limits":{}}`),
		neutral(`{"type":"keepalive","sequence_number":3}`),
		neutral(`{"type":"response.something.new"}`),
		neutral(`{"type":"response.something.delta","delta":""}`),
		neutral(`{"type":"somebody.knows"}`),
		released(`{"type":"response.something.delta","delta":"x"}`),
		released(`{"type":"response.output_text.delta","delta":"twelve chars"}`),
		released(`{"type":"response.output_text.delta","delta":{"text":"twelve chars"}}`),
		released(`{"type":"response.refusal.delta","delta":"twelve chars"}`),
		released(`{"type":"response.reasoning_text.delta","delta":"twelve chars"}`),
		released(`{"type":"response.reasoning_summary_text.delta","delta":"twelve chars"}`), // case 5(c)
		released(`{"type":"response.audio.transcript.delta","delta":"twelve chars"}`),
		released(`{"type":"response.function_call_arguments.delta","delta":"{"}`),
		released(`{"type":"response.custom_tool_call_input.delta","delta":"x"}`),
		released(`{"type":"response.mcp_call_arguments.delta","delta":"{"}`),
		released(`{"type":"response.code_interpreter_call_code.delta","delta":"1"}`),
		released(`{"type":"response.shell_call_command.added","command":"ls"}`),
		released(`{"type":"response.shell_call_output_content.delta","delta":{}}`),
		released(`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}`),
		released(`{"type":"response.audio.delta","delta":"AA"}`),
		released(`{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"gAAA"}}`),
		released(`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[{"type":"summary_text","text":"twelve chars"}]}}`),
		released(`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"twelve chars"}]}}`),
		{"text twice", responseStream, sseOf(`{"type":"response.output_text.delta","delta":"12345"}`, `{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"12345"}]}}`, completed), Healthy, "all", nil},
		{"type from the event line", responseStream, "event: response.output_text.delta\ndata: {\"delta\":\"twelve chars\"}\n\nevent: response.completed\ndata: {\"response\":{}}\n\n", Healthy, "event: response.output_text.delta\ndata: {\"delta\":\"twelve chars\"}\n\n", nil},
		{"members in another order", responseStream, sseOf(`{"delta":"twelve chars","type":"response.output_text.delta"}`, completed), Healthy, "", nil},
		{"completed only", responseStream, sseOf(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}}`), Healthy, "all", nil},
		{"completed without a status", responseStream, sseOf(`{"type":"response.output_text.delta","delta":"hi"}`, `{"type":"response.completed","response":{}}`), Healthy, "all", nil},
		{"incomplete", responseStream, sseOf(created, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`), Healthy, "all", nil},
		{"failed", responseStream, sseOf(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}`), Erred, "-", nil},
		{"failed without an error", responseStream, sseOf(created, `{"type":"response.failed","response":{"status":"failed","error":null}}`), Erred, "-", nil},
		{"completed, but failed", responseStream, sseOf(created, `{"type":"response.completed","response":{"status":"failed"}}`), Erred, "-", nil},
		{"cancelled", responseStream, sseOf(created, `{"type":"response.done","response":{"status":"cancelled"}}`), Erred, "-", nil},
		{"cancelled event", responseStream, sseOf(created, `{"type":"response.cancelled","response":{"status":"cancelled"}}`), Erred, "-", nil},
		{"done", responseStream, sseOf(`{"type":"response.output_text.delta","delta":"hi"}`, `{"type":"response.done","response":{"status":"completed"}}`), Healthy, "all", nil},
		{"flat error", responseStream, sseOf(`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":0}`), Erred, "-", nil},
		{"nested error", responseStream, sseOf(created, `{"type":"error","error":{"code":"insufficient_quota","message":"m"}}`), Erred, "-", nil},
		{"Codex error", responseStream, sseOf(`{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"m"},"headers":{}}`), Erred, "-", erred(429, `{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"m"},"headers":{}}`)},
		{"nested nulls are no error", responseStream, sseOf(`{"type":"response.created","error":null,"response":{"error":null,"moderation":{"type":"error"}}}`, `{"type":"response.output_text.delta","delta":"twelve chars"}`, completed), Healthy, "", nil},
		{"cut", responseStream, sseOf(created, `{"type":"response.output_text.delta","delta":"twelve chars"}`), Erred, "", nil}, // case 11
		{"cut by a relay that says [DONE]", responseStream, sseOf(`{"type":"response.output_text.delta","delta":"hi"}`, "[DONE]"), Healthy, "all", nil},
		{"whole", responseWhole, `{"object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`, Healthy, "all", nil}, // case 8(g)
		{"whole without status", responseWhole, `{"object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`, Healthy, "all", nil},
		{"whole, incomplete", responseWhole, `{"object":"response","status":"incomplete","output":[]}`, Healthy, "all", nil},
		{"whole, failed", responseWhole, `{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"m"},"output":[]}`, Erred, "-", nil},
		{"whole, cancelled", responseWhole, `{"object":"response","status":"cancelled","output":[]}`, Erred, "-", nil},
		{"background", responseWhole, `{"object":"response","background":true,"status":"queued","output":[]}`, Healthy, "all", nil},
		{"whole where a stream was asked for", responseStream, `{"object":"response","status":"completed","output":[{"type":"function_call","name":"f"}]}`, Healthy, "all", nil},
		{"SSE that failed where JSON was asked for", responseWhole, sseOf(created, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}`), Erred, "-", why("an error event in the stream")}, // case 38(b)
		{"message of plain content", responseWhole, `{"object":"response","status":"completed","output":[{"type":"message","content":"hi"}]}`, Healthy, "all", nil},
		{"a delta nobody knows", responseStream, sseOf(`{"type":"a.delta","delta":"x"}`), Healthy, "all", nil},
		{"preamble of a relay", responseStream, sseOf(`{"type":"relay.hello"}`, created), Empty, "-", nil},
		{"a dialect nobody knows", responseStream, sseOf(`{"type":"a.b"}`, `{"type":"a.c"}`, `{"type":"a.d"}`), Healthy, sseOf(`{"type":"a.b"}`, `{"type":"a.c"}`), nil},
		{"one event of a dialect nobody knows", responseStream, sseOf(`{"type":"a.b"}`), Healthy, "all", nil},
	}
	for _, kind := range []string{"function_call", "custom_tool_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
		"computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "compaction", "new_item"} {
		answers = append(answers, released(added(kind))) // case 4
	}
	runAnswers(t, answers)
}

// Section 1.3.
func TestMessages(t *testing.T) {
	start := `{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}`
	end := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`
	stop := `{"type":"message_stop"}`
	block := func(block string) string {
		return `{"type":"content_block_start","index":0,"content_block":` + block + `}`
	}
	delta := func(delta string) string {
		return `{"type":"content_block_delta","index":0,"delta":` + delta + `}`
	}
	released := func(event string) answer {
		return answer{event, messageStream, sseOf(start, event, end, stop), Healthy, sseOf(start, event), used(1125, 9, 1000, 100, -1)}
	}
	neutral := func(event string) answer {
		return answer{event, messageStream, sseOf(start, event, end, stop), Empty, "-", used(1125, 9, 1000, 100, -1)}
	}
	stopped := func(reason string) answer {
		return answer{reason, messageStream, sseOf(start, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"}}`, stop), Healthy, sseOf(start, `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"}}`), nil}
	}
	answers := []answer{
		neutral(`{"type":"ping"}`), neutral(`{"type":"content_block_stop","index":0}`), neutral(`{"type":"vertex_event"}`), neutral(`{"type":"brand_new"}`),
		neutral(block(`{"type":"text","text":""}`)), neutral(block(`{"type":"thinking","thinking":""}`)),
		neutral(delta(`{"type":"signature_delta","signature":"EqQB"}`)), neutral(delta(`{"type":"citations_delta","citation":{}}`)), neutral(delta(`{"type":"compaction_delta","content":"x"}`)),
		neutral(delta(`{"type":"input_json_delta","partial_json":""}`)),
		released(delta(`{"type":"text_delta","text":"twelve chars"}`)), released(delta(`{"type":"thinking_delta","thinking":"twelve chars"}`)), // case 5(b)
		released(delta(`{"type":"input_json_delta","partial_json":"{"}`)),
		released(block(`{"type":"text","text":"twelve chars"}`)), released(block(`{"type":"redacted_thinking","data":"EmwK"}`)),
		stopped("max_tokens"), stopped("stop_sequence"), stopped("pause_turn"), stopped("refusal"), stopped("model_context_window_exceeded"),
		{"tool without arguments", messageStream, sseOf(start, block(`{"type":"tool_use","id":"t","name":"f","input":{}}`), delta(`{"type":"input_json_delta","partial_json":""}`), `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, stop), Healthy, sseOf(start, block(`{"type":"tool_use","id":"t","name":"f","input":{}}`)), nil}, // case 4
		{"short", messageStream, sseOf(start, delta(`{"type":"text_delta","text":"hi"}`), end, stop), Healthy, sseOf(start, delta(`{"type":"text_delta","text":"hi"}`), end), nil},
		{"pings for ever", messageStream, sseOf(start, `{"type":"ping"}`, `{"type":"ping"}`), Empty, "-", nil},
		{"error first", messageStream, "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", Erred, "-", nil},
		{"error after release", messageStream, sseOf(start, delta(`{"type":"text_delta","text":"twelve chars"}`), `{"type":"error","error":{"type":"api_error","message":"m"}}`), Erred, sseOf(start, delta(`{"type":"text_delta","text":"twelve chars"}`)), why("an error event after release")},
		{"cut", messageStream, sseOf(start, delta(`{"type":"text_delta","text":"twelve chars"}`)), Erred, "", nil},
		{"a second message while held", messageStream, sseOf(start, start, delta(`{"type":"text_delta","text":"twelve chars"}`), end, stop), Healthy, "", nil},
		{"a second message after release", messageStream, sseOf(start, delta(`{"type":"text_delta","text":"twelve chars"}`), start, end, stop), Erred, "", why("a second message began inside the stream")},
		{"whole", messageWhole, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`, Healthy, "all", used(3, 2, -1, -1, -1)},
		{"whole, tool", messageWhole, `{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use"}`, Healthy, "all", nil},
		{"whole, refusal", messageWhole, `{"type":"message","content":[],"stop_reason":"refusal"}`, Healthy, "all", nil},
		{"whole, error", messageWhole, `{"type":"error","error":{"type":"api_error","message":"m"}}`, Erred, "-", nil},
		{"whole without type", messageWhole, `{"role":"assistant","content":[{"type":"text","text":"hi"}]}`, Healthy, "all", nil},
		{"compaction counts every iteration", messageWhole, `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"iterations":[{"type":"compaction","input_tokens":100,"output_tokens":10,"cache_read_input_tokens":7},{"type":"message","input_tokens":3,"output_tokens":2}]}}`, Healthy, "all", used(110, 12, 7, -1, -1)},
		{"nulls in usage", messageStream, sseOf(start, delta(`{"type":"text_delta","text":"hi"}`), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":4}}`, stop), Healthy, "", used(1125, 4, 1000, 100, -1)},
		{"output alone", messageStream, sseOf(delta(`{"type":"text_delta","text":"hi"}`), end, stop), Healthy, "", used(-1, 9, -1, -1, -1)},
	}
	for _, kind := range []string{"tool_use", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload", "mcp_tool_use", "mcp_tool_result", "compaction", "advisor_x"} {
		answers = append(answers, released(block(`{"type":"`+kind+`"}`)))
	}
	runAnswers(t, answers)
}

// Section 1.4.
func TestGemini(t *testing.T) {
	candidate := func(parts, more string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + more + `}]}`
	}
	stop := candidate("", `,"finishReason":"STOP"`)
	released := func(part string) answer {
		return answer{part, geminiStream, sseOf(candidate(part, ""), stop), Healthy, sseOf(candidate(part, "")), nil}
	}
	neutral := func(part string) answer {
		return answer{part, geminiStream, sseOf(candidate(part, ""), stop), Empty, "-", wellFormed(true)}
	}
	answers := []answer{
		neutral(`{"text":""}`), neutral(`{"text":"","thoughtSignature":"AA"}`), neutral(`{"thoughtSignature":"AA"}`),
		released(`{"text":"twelve chars"}`), released(`{"text":"twelve chars","thought":true}`),
		released(`{"functionCall":{"name":"f"}}`), released(`{"inlineData":{"data":"AA"}}`), released(`{"fileData":{}}`), released(`{"executableCode":{}}`),
		released(`{"codeExecutionResult":{}}`), released(`{"functionResponse":{}}`),
		{"short", geminiStream, sseOf(candidate(`{"text":"hi"}`, ""), stop), Healthy, "all", nil},
		{"usage only", geminiStream, sseOf(`{"usageMetadata":{"promptTokenCount":3}}`), Empty, "-", wellFormed(false)},
		{"STOP before any content ends nothing", geminiStream, sseOf(stop, candidate(`{"text":"twelve chars"}`, "")), Erred, sseOf(stop, candidate(`{"text":"twelve chars"}`, "")), nil},
		{"STOP on every chunk", geminiStream, sseOf(candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`)), Healthy, "all", nil},
		{"cut", geminiStream, sseOf(candidate(`{"text":"twelve chars"}`, "")), Erred, "", nil},
		{"Code Assist", geminiStream, sseOf(`{"response":` + candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`) + `,"traceId":"t"}`), Healthy, "all", nil},
		{"Code Assist, blocked", geminiStream, sseOf(`{"response":{"promptFeedback":{"blockReason":"OTHER"}},"traceId":"t"}`), Healthy, "all", nil},
		{"bare error", geminiStream, sseOf(candidate(`{"text":"hi"}`, "")) + "{\r\n  \"error\": {\r\n    \"code\": 503,\r\n    \"message\": \"m\",\r\n    \"status\": \"UNAVAILABLE\"\r\n  }\r\n}\r\n", Erred, "-", nil},
		{"error in data", geminiStream, sseOf(`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`), Erred, "-", erred(503, `{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`)},
		{"array in data", geminiStream, sseOf(`[` + candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`) + `]`), Healthy, "all", nil},
		{"array", geminiArray, "[" + candidate(`{"text":"twelve [chars]}"}`, "") + "\r\n,\r\n" + stop + "\r\n]\r\n", Healthy, "[" + candidate(`{"text":"twelve [chars]}"}`, ""), nil},
		{"array, never closed", geminiArray, "[" + candidate(`{"text":"twelve chars"}`, "") + "\r\n,\r\n" + stop, Erred, "", why("the array ended without its closing bracket")},
		{"array of strings and lists", geminiArray, `["a[{", [` + candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`) + `]]`, Healthy, "", nil},
		{"array, cut", geminiArray, "[" + candidate(`{"text":"hi"}`, "") + ",{", Erred, "-", nil},
		{"array, blocked, never closed", geminiArray, `[{"promptFeedback":{"blockReason":"SAFETY"}}`, Erred, `[{"promptFeedback":{"blockReason":"SAFETY"}}`, nil},
		{"array of an error", geminiArray, "[{\n  \"error\": {\"code\": 429,\n \"message\": \"m\"}}\n]", Erred, "-", nil},
		{"array where an object was asked for", geminiWhole, "[" + candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`) + "]", Healthy, "all", nil},
		{"object where an array was asked for", geminiArray, candidate(`{"text":"hi"}`, `,"finishReason":"STOP"`), Healthy, "all", nil},
		{"SSE where an array was asked for", geminiArray, sseOf(candidate(`{"text":"hi"}`, ""), stop), Healthy, "all", nil},
		{"whole", geminiWhole, `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":4,"cachedContentTokenCount":6,"totalTokenCount":22}}`, Healthy, "all", used(15, 7, 6, -1, 4)},
	}
	for _, reason := range []string{"MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "TOO_MANY_TOOL_CALLS"} {
		answers = append(answers, answer{reason, geminiStream, sseOf(candidate("", `,"finishReason":"`+reason+`"`)), Healthy, "all", nil})
	}
	for _, reason := range []string{"STOP", "OTHER", "FINISH_REASON_UNSPECIFIED", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "NO_IMAGE"} {
		answers = append(answers, answer{reason, geminiStream, sseOf(candidate("", `,"finishReason":"`+reason+`"`)), Empty, "-", wellFormed(true)})
	}
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"} {
		answers = append(answers, answer{"blocked: " + reason, geminiStream, sseOf(`{"promptFeedback":{"blockReason":"` + reason + `"}}`), Healthy, "all", nil})
	}
	runAnswers(t, answers)
}

// Section 1.5.
func TestOllama(t *testing.T) {
	message := func(message, more string) string { return `{"message":` + message + more + "}\n" }
	done := message(`{"role":"assistant","content":""}`, `,"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":9`)
	generate := ollamaStream
	generate.Kind = OllamaGenerate
	runAnswers(t, []answer{
		{"content", ollamaStream, message(`{"content":"twelve chars"}`, `,"done":false`) + done, Healthy, message(`{"content":"twelve chars"}`, `,"done":false`), used(26, 9, -1, -1, -1)},
		{"CRLF", ollamaStream, message(`{"content":"hi"}`, "") + `{"done":true}` + "\r\n", Healthy, "all", nil},
		{"thinking", ollamaStream, message(`{"content":"","thinking":"twelve chars"}`, "") + done, Healthy, message(`{"content":"","thinking":"twelve chars"}`, ""), nil},
		{"tool", ollamaStream, message(`{"content":"","tool_calls":[{"function":{"name":"f"}}]}`, "") + done, Healthy, message(`{"content":"","tool_calls":[{"function":{"name":"f"}}]}`, ""), nil},
		{"image", ollamaStream, message(`{"images":["AA"]}`, "") + done, Healthy, "", nil},
		{"response", generate, `{"response":"twelve chars","done":false}` + "\n" + `{"response":"","done":true,"context":[1,2]}` + "\n", Healthy, `{"response":"twelve chars","done":false}` + "\n", nil},
		{"short, without a last line end", ollamaStream, message(`{"content":"hi"}`, "") + `{"done":true}`, Healthy, "all", nil},
		{"thinking of generate", generate, `{"response":"","thinking":"twelve chars","done":false}` + "\n" + `{"done":true}` + "\n", Healthy, `{"response":"","thinking":"twelve chars","done":false}` + "\n", nil},
		{"message that is text", ollamaWhole, `{"message":"no such route"}`, Erred, "-", nil},
		{"length", ollamaStream, message(`{"content":""}`, `,"done":true,"done_reason":"length"`), Healthy, "all", nil},
		{"load", ollamaStream, message(`{"content":""}`, `,"done":true,"done_reason":"load"`), Healthy, "all", nil},
		{"unload", ollamaStream, message(`{"content":""}`, `,"done":true,"done_reason":"unload"`), Healthy, "all", nil},
		{"error", ollamaStream, `{"error":"out of memory"}` + "\n", Erred, "-", erred(0, `{"error":"out of memory"}`)},
		{"error without a line end", ollamaStream, `{"error":"out of memory"}`, Erred, "-", nil},
		{"error after release", ollamaStream, message(`{"content":"twelve chars"}`, "") + `{"error":"x"}`, Erred, message(`{"content":"twelve chars"}`, ""), nil},
		{"error on several lines", ollamaStream, "{\n  \"error\": \"model 'x' not found\"\n}\n", Erred, "-", erred(0, "{\n  \"error\": \"model 'x' not found\"\n}")},
		{"cut", ollamaStream, message(`{"content":"twelve chars"}`, "") + `{"message":{"con`, Erred, "", nil},
		{"garbage before release", ollamaStream, message(`{"content":"hi"}`, "") + "oops\n" + done, Erred, "-", nil},
		{"garbage after release", ollamaStream, message(`{"content":"twelve chars"}`, "") + "oops\n" + done, Healthy, "", nil},
		{"blank lines", ollamaStream, "\n\n" + message(`{"content":"hi"}`, "") + "\r\n\n" + done, Healthy, "", nil},
		{"HTML", ollamaStream, "<html>", Erred, "-", nil},
		{"SSE", ollamaStream, sseOf(`{"message":{"content":"hi"},"done":true}`), Healthy, "all", nil},
		{"whole", ollamaWhole, `{"message":{"content":"hi"},"done":true,"eval_count":4}`, Healthy, "all", used(0, 4, -1, -1, -1)},
		{"whole, on several lines", ollamaWhole, "{\n\"message\":{\"content\":\"hi\"},\n\"done\":true}\n", Healthy, "all", nil},
		{"lines where one object was asked for", ollamaWhole, message(`{"content":"hi"}`, "") + done, Erred, "-", nil},
		{"error, whole", ollamaWhole, `{"error":"x"}`, Erred, "-", nil},
		{"a long line", ollamaStream, message(`{"content":"`+longText(100<<10)+`"}`, "") + done, Healthy, "", nil},
	})
}

func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}
