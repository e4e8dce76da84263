package proxy

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"understudy/internal/wire"
)

// An answer is what we say ourselves, where no upstream's answer goes to the
// client. It is an error of the proxy's own, and one value for all dialects.
type answer struct {
	status int
	// kind and code are OpenAI's `type` and `code`; the other dialects' words are
	// derived from them and the status.
	kind, code, message string
	// model is the virtual model asked for; attempts say what became of every
	// candidate; available are the models there are.
	model     string
	attempts  []string
	available []string
	// retry is when it makes sense to come back; 0 = nobody knows.
	retry time.Duration
}

// invalid is a refusal of the request as it is.
func invalid(status int, code, message string) *answer {
	return &answer{status: status, kind: "invalid_request_error", code: code, message: message}
}

// sdkPatience is how long vendors' SDKs sleep on a Retry-After: beyond it they
// retry at once or sleep for hours, so they are told not to (wire notes 5 and 5.1).
const sdkPatience = 60 * time.Second

// write sends the answer in a dialect. It is the single place where a response
// that is no upstream's is written.
func (a *answer) write(w http.ResponseWriter, d wire.Dialect, id string, attempted int) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Understudy-Request-Id", id)
	h.Set("X-Understudy-Attempts", strconv.Itoa(attempted))
	if a.status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", "Bearer") // RFC 9110, 15.5.2
		h.Set("X-Should-Retry", "false")
	}
	if a.retry > 0 {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(a.retry), 10))
		if a.retry > sdkPatience {
			h.Set("X-Should-Retry", "false")
		}
	}
	body, err := json.Marshal(a.body(d, id))
	if err != nil {
		// Only strings and numbers are in it; Marshal cannot fail on them.
		body = []byte(`{"error":{"message":"internal error"}}`)
	}
	body = append(body, '\n')
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // a client that has left cannot be told
}

// wholeSeconds rounds a wait up to what Retry-After can carry, at least 1.
func wholeSeconds(d time.Duration) int64 { return max(1, int64(math.Ceil(d.Seconds()))) }

// body is the answer in a dialect's own envelope.
func (a *answer) body(d wire.Dialect, id string) map[string]any {
	more := map[string]any{}
	if a.model != "" {
		more["virtual_model"] = a.model
	}
	if a.attempts != nil {
		more["attempts"] = a.attempts
	}
	if a.available != nil {
		more["available_models"] = a.available
	}
	with := func(fields map[string]any) map[string]any {
		for k, v := range more {
			fields[k] = v
		}
		return fields
	}
	switch d {
	case wire.Anthropic:
		return map[string]any{"type": "error", "request_id": id,
			"error": with(map[string]any{"type": a.anthropicType(), "code": a.code, "message": a.message})}
	case wire.Gemini:
		detail := with(map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "understudy", "reason": a.code, "type": a.kind})
		return map[string]any{"error": map[string]any{"code": a.status, "message": a.message, "status": a.geminiStatus(), "details": []any{detail}}}
	case wire.Ollama:
		return with(map[string]any{"error": a.message, "type": a.kind, "code": a.code})
	}
	return map[string]any{"error": with(map[string]any{"message": a.message, "type": a.kind, "param": nil, "code": a.code})}
}

// anthropicType is the error type of Anthropic's vocabulary
// (platform.claude.com, API errors); our own kinds stand as they are.
func (a *answer) anthropicType() string {
	if a.kind != "invalid_request_error" {
		return a.kind
	}
	switch a.status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	return "invalid_request_error"
}

// geminiStatus is the google.rpc.Code that goes with the HTTP status.
func (a *answer) geminiStatus() string {
	switch a.status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	}
	if a.status < 500 {
		return "INVALID_ARGUMENT"
	}
	return "UNAVAILABLE"
}
