package main

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
)

// responded counts the responses that this upstream has given.
var responded atomic.Int64

const (
	responseHead = `{"id":"`
	// responseTail is a response but for its id.
	responseTail = `","object":"response","created_at":1700000000,"status":"completed","model":"m-real","output":[{"type":"message","id":"msg_mock","status":"completed","role":"assistant","content":[{"type":"output_text","text":"The quick brown fox jumps over the lazy dog.","annotations":[]}]}],"usage":{"input_tokens":321,"input_tokens_details":{"cached_tokens":128},"output_tokens":123,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":444}}`
	// unknown is said of a previous response that another upstream gave.
	unknown = `{"error":{"message":"Previous response with that id not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`
)

// respond answers with a response whose id has the port of this upstream in it, or
// with an error where it goes on from a response that another one gave.
func respond(c net.Conn, q *request) error {
	_, port, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return err
	}
	own := "resp_" + port + "_"
	if q.previous != "" && !strings.HasPrefix(q.previous, own) {
		return plain(c, "400 Bad Request", unknown)
	}
	return plain(c, "200 OK", responseHead+own+strconv.FormatInt(responded.Add(1), 10)+responseTail)
}

// previousResponse is the previous_response_id as the generator writes it.
func previousResponse(body []byte) string {
	_, rest, ok := bytes.Cut(body, []byte(`"previous_response_id":"`))
	if !ok {
		return ""
	}
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}
