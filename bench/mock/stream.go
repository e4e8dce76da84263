package main

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// words is what answers say.
var words = strings.Repeat("The quick brown fox jumps over the lazy dog and keeps on running. ", 10)

// usage is what answers report.
const usage = `{"prompt_tokens":321,"completion_tokens":123,"total_tokens":444,"prompt_tokens_details":{"cached_tokens":128}}`

// failure is the body of a failed answer.
const failure = `{"error":{"message":"the mock fails on purpose","type":"server_error"}}`

var (
	// whole is an answer of 1 KB.
	whole = `{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":"m-real","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		words[:640] + `"},"logprobs":null,"finish_reason":"stop"}],"usage":` + usage + `,"system_fingerprint":"fp_mock"}`
	delta  = event(`{"index":0,"delta":{"content":"` + stamp + ` fox "},"finish_reason":null}`)
	ending = event(`{"index":0,"delta":{},"finish_reason":"stop"}`) +
		`data: {"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1700000000,"model":"m-real","choices":[],"usage":` + usage + "}\n\ndata: [DONE]\n\n"
)

// stamp is where a delta carries the time of its writing.
const stamp = "@T0000000000000000000@"

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

func event(choice string) string {
	return `data: {"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1700000000,"model":"m-real","choices":[` + choice + "]}\n\n"
}

// chunk frames text as one HTTP/1.1 chunk.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// stream writes an answer delta by delta, each in one write.
func stream(c net.Conn, q *request) error {
	first := []byte(streamHead + chunk(delta))
	rest := first[len(streamHead):]
	at := bytes.Index(rest, []byte(stamp)) + len("@T")
	return pace(q.chunks, q.gap, func(i int) error {
		strconv.AppendInt(rest[at:at], time.Now().UnixNano(), 10)
		out := rest
		if i == 0 {
			out = first
		}
		_, err := c.Write(out)
		return err
	}, func() error {
		out := chunk(ending) + "0\r\n\r\n"
		if q.chunks == 0 {
			out = streamHead + out
		}
		_, err := c.Write([]byte(out))
		return err
	})
}

// pace calls write n times, gap apart counted from the first, and end at the end.
func pace(n int, gap time.Duration, write func(int) error, end func() error) error {
	began := time.Now()
	for i := range n {
		if wait := time.Until(began.Add(time.Duration(i) * gap)); wait > 0 {
			time.Sleep(wait)
		}
		if err := write(i); err != nil {
			return err
		}
	}
	return end()
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
