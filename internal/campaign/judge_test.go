package campaign

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"understudy/internal/drill"
)

var neverEnds = context.Background()

// question is what matters of a request for its answer.
type question struct {
	stream     bool
	errorEvent bool // a stream that breaks may get an error event
}

// view is an answer as an upstream sent it, read as HTTP wants it read.
type view struct {
	token, fault  string
	status        int
	body, decoded []byte
	coded         bool // decoded is body without its gzip
	clean         bool
}

// own are the codes of answers that are the program's own.
var own = []string{"upstream_all_failed", "rate_limit_exceeded", "invalid_api_key", "model_not_allowed", "model_not_found", "overloaded", "upstream_error"}

// terminal finds what ends an answer well, in any dialect.
var terminal = regexp.MustCompile(`"finish_reason":"|\[DONE\]|"response\.completed"|"message_stop"|"finishReason"|"done":true`)

// holding begins the comments of an answer that is held until it is whole.
const holding = ": understudy holds"

// brokeOff is what the program's own error event says.
const brokeOff = "the upstream's answer broke off"

// events says whether an answer is a stream of events, as some upstreams send where JSON
// was asked for.
func events(r drill.Reply) bool {
	return bytes.Contains(r.Head, []byte("\r\nContent-Type: text/event-stream"))
}

// judge says what a client got, or what is wrong with it: an answer is exactly one
// upstream's bytes, or an error that says so; it has no clean end if that upstream's
// did not. left says that the client did not wait for the end.
func judge(q question, views []view, r drill.Reply, left bool) (kind, wrong string) {
	switch {
	case r.Status == 0 && left:
		return "left before an answer", ""
	case r.Status == 0:
		return "", "no answer, and no error"
	case r.Status == 200:
		return judgeAnswer(q, views, r, left)
	}
	return judgeError(views, r, left)
}

func judgeAnswer(q question, views []view, r drill.Reply, left bool) (kind, wrong string) {
	coded := r.Get("Content-Encoding") != ""
	near := ""
	if said := len(r.Body); bytes.HasPrefix(r.Body, []byte(holding)) { // delivery complete, after 15 s
		for bytes.HasPrefix(r.Body, []byte(holding)) {
			_, r.Body, _ = bytes.Cut(r.Body, []byte("\n\n"))
		}
		switch {
		case left && len(r.Body) == 0:
			return "left within an answer", ""
		case !r.Clean && said > 0 && strings.Contains(string(r.Body), "no upstream of "):
			return "an error event where an answer was awaited", ""
		}
	}
	for _, v := range views {
		sent := v.body
		if v.coded && !coded {
			sent = v.decoded
		}
		if v.status != 200 {
			continue
		}
		if !bytes.HasPrefix(sent, r.Body) {
			n := common(sent, r.Body)
			if !r.Clean && q.errorEvent && (q.stream || events(r)) && bytes.Contains(r.Body[n:], []byte(brokeOff)) && len(r.Body)-n < 2000 && !bytes.Contains(r.Body[n:], []byte(v.token)) {
				return "broken, with an error event", ""
			}
			if n > len(near) {
				near = string(r.Body[:n])
			}
			continue
		}
		if left {
			return "left within an answer", ""
		}
		if !r.Clean {
			if v.clean && len(sent) == len(r.Body) {
				return "broken at the end of a whole one", ""
			}
			return "broken", ""
		}
		if v.fault == "healthy" && v.clean && len(sent) == len(r.Body) {
			return "whole", ""
		}
		plain := r.Body
		if coded {
			plain = gunzip(r.Body)
		}
		heard := drill.Hear(drill.Reply{Status: 200, Clean: true, Body: plain})
		told := heard.Error != "" && heard.Error != "an answer without a word" || strings.Contains(v.fault, "unframed")
		if q.stream && bytes.Contains(plain, []byte(`"stop_reason":"`)) {
			heard.Ended = true // of Anthropic, before its message_stop
		}
		if (strings.Contains(v.fault, "garbage") || strings.Contains(v.fault, "bad-chunk")) && terminal.Match(plain) {
			heard.Ended = true // the rest of an array with garbage in it is not read here
		}
		if strings.Contains(v.fault, "garbage") && !q.stream && json.Valid(plain) {
			heard.Ended = true // garbage within a text, which nobody can tell from one
		}
		switch {
		case told && heard.Text != "":
			return "whole, an error of the upstream's own", ""
		case told:
			return "", "an upstream's error (" + v.fault + ") as an answer"
		case !heard.Ended:
			return "", "a clean end of what has none (" + v.fault + ")"
		case q.stream, len(sent) == len(r.Body): // what breaks behind the end takes nothing away
			if heard.Text == "" {
				return "whole, empty", ""
			}
			return "whole", ""
		}
		return "", "a clean end of a part (" + v.fault + ")"
	}
	if near != "" {
		return "", "bytes that no upstream sent, after " + brief([]byte(near[max(0, len(near)-100):])) + ": " + brief(r.Body[len(near):])
	}
	return "", "bytes that no upstream sent: " + brief(r.Body)
}

func judgeError(views []view, r drill.Reply, left bool) (kind, wrong string) {
	for _, v := range views {
		sent := v.body
		if v.coded && r.Get("Content-Encoding") == "" {
			sent = v.decoded
		}
		if v.status == r.Status && bytes.HasPrefix(sent, r.Body) {
			switch {
			case left:
				return "left within an answer", ""
			case r.Clean && len(sent) == len(r.Body) && v.clean:
				return "passed on", ""
			case !r.Clean:
				return "passed on, broken", ""
			}
		}
	}
	if left {
		return "left within an answer", ""
	}
	if !r.Clean {
		return "", "an error that breaks off: " + brief(r.Body)
	}
	code := codeOf(r.Body)
	for _, c := range own {
		if c == code {
			return "own " + code, ""
		}
	}
	for _, v := range views {
		if body := bytes.TrimSpace(v.decoded); v.status == 200 && len(body) > 0 && bytes.Contains(r.Body, body) {
			return "embedded error", "" // one without a sentence, in an envelope
		}
	}
	if heard := drill.Hear(r); heard.Refusal {
		_, message, _ := strings.Cut(heard.Error, " ") // the status is before it
		quoted, err := json.Marshal(message)
		for _, v := range views {
			body := v.body
			if v.coded {
				body = v.decoded
			}
			if err == nil && v.status == 200 && bytes.Contains(body, bytes.Trim(quoted, `"`)) {
				return "embedded error", ""
			}
		}
	}
	return "", "an error that is nobody's: " + brief(r.Body)
}

// codeOf is the code of an error in any dialect.
func codeOf(body []byte) string {
	var flat struct{ Code, Type string }
	if json.Unmarshal(body, &flat) == nil && flat.Code != "" { // Ollama
		return flat.Code
	}
	var e struct {
		Error struct {
			Code    any
			Details []struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	for _, d := range e.Error.Details {
		return d.Reason
	}
	s, _ := e.Error.Code.(string)
	return s
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// gunzip is as much of coded bytes as can be decoded.
func gunzip(p []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	_, _ = io.Copy(&out, z) // what is damaged ends it
	return out.Bytes()
}

func brief(p []byte) string {
	s := string(p)
	if len(s) > 400 {
		s = s[:200] + " … " + s[len(s)-200:]
	}
	return strings.ToValidUTF8(s, "?")
}
