package proxy

import "fmt"

// The requests of the dialects, spelled so that re-encoding would show.
const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
	geminiPath    = "/v1beta/models/vm:streamGenerateContent?alt=sse"
	geminiArray   = "/v1beta/models/vm:streamGenerateContent"
	geminiWhole   = "/v1beta/models/vm:generateContent"
	ollamaPath    = "/api/chat"
)

// requestFor is a body for a path, asking for a stream or not.
func requestFor(path string, stream bool) string {
	switch path {
	case responsesPath:
		return fmt.Sprintf("{ \"input\":\"ping\",\"model\" : \"vm\",\n\t\"stream\":%v,\"seed\":9007199254740993 }", stream)
	case messagesPath:
		return fmt.Sprintf("{ \"max_tokens\":64,\"model\" : \"vm\",\n\t\"stream\":%v,\"messages\":[{\"role\":\"user\",\"content\":\"a <b> & c\"}] }", stream)
	case geminiPath, geminiArray, geminiWhole:
		return `{"contents":[{"role":"user","parts":[{"text":"ping \ud83d"}]}]}`
	case ollamaPath:
		return fmt.Sprintf("{ \"messages\":[{\"role\":\"user\",\"content\":\"ping\"}],\"model\" : \"vm\",\n\t\"stream\":%v,\"options\":{\"temperature\":1.0}}", stream)
	}
	return fmt.Sprintf("{ \"messages\":[{\"role\":\"user\",\"content\":\"ping\"}],\"model\" : \"vm\",\n\t\"stream\":%v,\"seed\":9007199254740993,\"temperature\":1e-7}", stream)
}

func data(json string) string { return "data: " + json + "\n\n" }

func event(name, json string) string { return "event: " + name + "\ndata: " + json + "\n\n" }

// delta is a chat chunk with that delta.
func delta(json string) string {
	return data(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + json + `,"finish_reason":null}]}`)
}

// finish is a chat chunk that ends the choice.
func finish(reason string) string {
	return data(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`)
}

// said is a chat chunk with text.
func said(text string) string { return delta(`{"content":"` + text + `"}`) }

// okSSE is the healthy answer of the other upstream, byte for byte that of the
// field cases.
const okSSE = `data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"PONG"},"finish_reason":null}]}` + "\n\n" +
	`data: {"id":"c2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n"

// okChat is a healthy whole chat completion.
const okChat = `{"id":"c2","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"PONG"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`

// The pieces of Responses streams.
const (
	created   = "event: response.created\ndata: " + `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[],"usage":null}}` + "\n\n"
	completed = "event: response.completed\ndata: " + `{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[],"usage":null}}` + "\n\n"
	okRS      = created + "event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"PONG"}` + "\n\n" +
		"event: response.completed\ndata: " + `{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"PONG"}]}],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}` + "\n\n"
	okResponse    = `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"PONG"}]}],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}`
	emptyResponse = `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[],"usage":null}`
)

// rsDelta is a Responses event that adds to the answer.
func rsDelta(kind, text string) string {
	return event(kind, `{"type":"`+kind+`","sequence_number":3,"item_id":"x_1","output_index":0,"delta":"`+text+`"}`)
}

// The pieces of Messages streams.
const (
	messageStart = "event: message_start\ndata: " + `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}}` + "\n\n"
	ping         = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	blockStop    = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	messageStop  = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	okMessage    = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"PONG"}],"stop_reason":"end_turn","usage":{"input_tokens":25,"output_tokens":2}}`
)

func blockStart(block string) string {
	return event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
}

func blockDelta(delta string) string {
	return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
}

func textDelta(text string) string { return blockDelta(`{"type":"text_delta","text":"` + text + `"}`) }

func messageEnd(reason string) string {
	return event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":9}}`) + messageStop
}

// okAM is a healthy Messages stream.
var okAM = messageStart + blockStart(`{"type":"text","text":""}`) + textDelta("PONG") + blockStop + messageEnd("end_turn")

// geminiJSON is a piece of a Gemini answer; end is a finishReason or "".
func geminiJSON(part, end string) string {
	if end != "" {
		end = `,"finishReason":"` + end + `"`
	}
	return `{"candidates":[{"content":{"parts":[` + part + `],"role":"model"}` + end + `,"index":0}],"modelVersion":"gemini"}`
}

func part(text string) string { return `{"text":"` + text + `"}` }

// gemini is an event as Google frames it.
func gemini(part, end string) string { return "data: " + geminiJSON(part, end) + "\r\n\r\n" }

// okGemini is a healthy Gemini stream.
var okGemini = gemini(part("PONG"), "") + gemini(part(""), "STOP")

// ollamaLine is a line of an Ollama chat; end is a done_reason or "".
func ollamaLine(text, end string) string {
	if end != "" {
		return `{"model":"m","message":{"role":"assistant","content":"` + text + `"},"done":true,"done_reason":"` + end + `"}` + "\n"
	}
	return `{"model":"m","message":{"role":"assistant","content":"` + text + `"},"done":false}` + "\n"
}

// okOllama is a healthy Ollama stream.
var okOllama = ollamaLine("PONG", "") + ollamaLine("", "stop")
