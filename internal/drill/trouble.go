package drill

import (
	"fmt"
	"strings"
	"time"
)

// trouble is an error as each vendor words it. The sentences are the vendors' own
// where they decide what a reader makes of the error.
type trouble struct {
	status int
	// OpenAI's and, by default, everybody's sentence; "%s" is the model.
	message string
	kind    string // error.type, with quotes or null
	code    string // error.code, likewise
	// Anthropic
	anthropicKind    string
	anthropicMessage string // "": message
	anthropicDetails string // "": none
	// Gemini
	geminiStatus  string
	geminiMessage string // "": message
	geminiDetails string // "": none
	// Ollama
	ollamaMessage string // "": message
	ollamaMore    string // further members with the comma before them
}

var (
	rateLimited = trouble{
		status: 429, kind: `"tokens"`, code: `"rate_limit_exceeded"`,
		message:       "Rate limit reached for %s in organization org-drill on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528.",
		anthropicKind: "rate_limit_error", anthropicMessage: "This request would exceed your organization's rate limit of 50,000 input tokens per minute.",
		geminiStatus: "RESOURCE_EXHAUSTED", geminiMessage: "You exceeded your current quota, please check your plan and billing details.",
		geminiDetails: `[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaValue":"10"}]}]`,
		ollamaMessage: "too many requests.",
	}
	quotaSpent = trouble{
		status: 429, kind: `"insufficient_quota"`, code: `"insufficient_quota"`,
		message:       "You exceeded your current quota, please check your plan and billing details.",
		anthropicKind: "rate_limit_error", anthropicMessage: "Your organization has reached its monthly spend limit.",
		anthropicDetails: `{"error_code":"enforced_spend_limit_reached"}`,
		geminiStatus:     "RESOURCE_EXHAUSTED",
		geminiDetails:    `[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier","quotaValue":"20"}]}]`,
		ollamaMessage:    "insufficient balance",
	}
	deadKey = trouble{
		status: 401, kind: `"invalid_request_error"`, code: `"invalid_api_key"`,
		message:       "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
		anthropicKind: "authentication_error", anthropicMessage: "invalid x-api-key",
		geminiStatus: "UNAUTHENTICATED", geminiMessage: "Request had invalid authentication credentials.",
		ollamaMessage: "unauthorized", ollamaMore: `,"signin_url":"https://ollama.com/connect"`,
	}
	noMoney = trouble{
		status: 402, kind: `"unknown_error"`, code: `"invalid_request_error"`,
		message:       "Insufficient Balance",
		anthropicKind: "billing_error", geminiStatus: "FAILED_PRECONDITION", ollamaMessage: "insufficient balance",
	}
	noCredit = trouble{
		status: 400, kind: `"invalid_request_error"`, code: `"billing_not_active"`,
		message:       "Your account is not active, please check your billing details.",
		anthropicKind: "invalid_request_error", anthropicMessage: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
		geminiStatus: "FAILED_PRECONDITION", geminiMessage: "Your credit balance is too low.", ollamaMessage: "insufficient balance",
	}
	serverError = trouble{
		status: 500, kind: `"server_error"`, code: `null`,
		message:       "The server had an error while processing your request. Sorry about that!",
		anthropicKind: "api_error", anthropicMessage: "Internal server error",
		geminiStatus: "INTERNAL", geminiMessage: "An internal error has occurred.", ollamaMessage: "llama runner process has terminated",
	}
	unavailable = trouble{
		status: 503, kind: `"service_unavailable_error"`, code: `"server_is_overloaded"`,
		message:       "Our servers are currently overloaded. Please try again later.",
		anthropicKind: "overloaded_error", anthropicMessage: "Overloaded",
		geminiStatus: "UNAVAILABLE", geminiMessage: "The model is overloaded. Please try again later.", ollamaMessage: "server busy, please try again",
	}
	overloaded = trouble{
		status: 529, kind: `"overloaded_error"`, code: `"server_is_overloaded"`,
		message:       "Overloaded",
		anthropicKind: "overloaded_error", geminiStatus: "UNAVAILABLE", ollamaMessage: "server busy, please try again",
	}
	tooLong = trouble{
		status: 400, kind: `"invalid_request_error"`, code: `"context_length_exceeded"`,
		message:       "This model's maximum context length is 8192 tokens. However, your messages resulted in 9631 tokens. Please reduce the length of the messages.",
		anthropicKind: "invalid_request_error", anthropicMessage: "prompt is too long: 205351 tokens > 200000 maximum",
		geminiStatus: "INVALID_ARGUMENT", geminiMessage: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		ollamaMessage: "prompt is too long: the model's maximum context length is 8192 tokens",
	}
	filtered = trouble{
		status: 400, kind: `"invalid_request_error"`, code: `"content_policy_violation"`,
		message:       "Your request was rejected as a result of our safety system.",
		anthropicKind: "invalid_request_error", anthropicMessage: "Output blocked by content filtering policy",
		geminiStatus: "INVALID_ARGUMENT", ollamaMessage: "content_policy_violation: the request was rejected",
	}
	badRequest = trouble{
		status: 422, kind: `"invalid_request_error"`, code: `null`,
		message:       "Invalid value for 'temperature': must be between 0 and 2.",
		anthropicKind: "invalid_request_error", geminiStatus: "INVALID_ARGUMENT",
	}
	noModel = trouble{
		status: 404, kind: `"invalid_request_error"`, code: `"model_not_found"`,
		message:       "The model `%s` does not exist or you do not have access to it.",
		anthropicKind: "not_found_error", anthropicMessage: "model: %s",
		geminiStatus: "NOT_FOUND", geminiMessage: "models/%s is not found for API version v1beta, or is not supported for generateContent.",
		ollamaMessage: "model '%s' not found",
	}
	foreignState = trouble{
		status: 400, kind: `"invalid_request_error"`, code: `"invalid_encrypted_content"`,
		message:       "The encrypted content gAAA...xx== could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
		anthropicKind: "invalid_request_error", anthropicMessage: "messages.1.content.0: Invalid `signature` in `thinking` block",
		geminiStatus: "INVALID_ARGUMENT",
	}
)

// sentence picks and completes a vendor's wording.
func (t trouble) sentence(own string, f form, more string) string {
	if own == "" {
		own = t.message
	}
	return strings.ReplaceAll(own, "%s", f.model) + more
}

// object returns the error as an answer's body, in the dialect of f. more is added
// to its sentence.
func (t trouble) object(f form, more string) string {
	switch f.dialect {
	case anthropic:
		return `{"type":"error","error":` + t.anthropicError(f, more) + `,"request_id":"req_drill0001"}`
	case gemini:
		details := ""
		if t.geminiDetails != "" {
			details = `,"details":` + t.geminiDetails
		}
		return `{"error":{"code":` + num(t.status) + `,"message":` + quote(t.sentence(t.geminiMessage, f, more)) + `,"status":"` + t.geminiStatus + `"` + details + `}}`
	case ollama:
		return `{"error":` + quote(t.sentence(t.ollamaMessage, f, more)) + t.ollamaMore + `}`
	default:
		return `{"error":{"message":` + quote(t.sentence("", f, more)) + `,"type":` + t.kind + `,"param":null,"code":` + t.code + `}}`
	}
}

func (t trouble) anthropicError(f form, more string) string {
	details := ""
	if t.anthropicDetails != "" {
		details = `,"details":` + t.anthropicDetails
	}
	return `{"type":"` + t.anthropicKind + `","message":` + quote(t.sentence(t.anthropicMessage, f, more)) + details + `}`
}

// event returns the error as an event of a stream that has shown before events so
// far.
func (t trouble) event(f form, before int) event {
	switch {
	case f.shape == responses:
		return event{"error", `{"type":"error","sequence_number":` + num(before) + `,"code":` + t.code + `,"message":` + quote(t.sentence("", f, "")) + `,"param":null}`}
	case f.dialect == anthropic:
		return event{"error", `{"type":"error","error":` + t.anthropicError(f, "") + `,"request_id":"req_drill0001"}`}
	}
	return event{data: t.object(f, "")}
}

// failed returns the event by which a Responses stream fails, and the error event
// of every other dialect.
func (t trouble) failed(a Answer, f form, before int) event {
	if f.shape != responses {
		return t.event(f, before)
	}
	code := t.code
	if code == "null" {
		code = `"server_error"`
	}
	failure := `{"code":` + code + `,"message":` + quote(t.sentence("", f, "")) + `}`
	return event{"response.failed", `{"type":"response.failed","sequence_number":` + num(before) + `,"response":` + a.response("failed", "", false, failure) + `}`}
}

// refuse returns a fault that answers with the trouble and its status.
func (t trouble) refuse(header ...string) func(Answer) Script {
	return func(Answer) Script {
		return func(w *Wire, r Request, n int) {
			w.JSON(t.status, []byte(t.object(formOf(r), "")), header...)
		}
	}
}

// retryAfter returns what limit faults ask for, in whole seconds.
func (a Answer) retryAfter() int {
	if a.RetryAfter <= 0 {
		return 2
	}
	return int((a.RetryAfter + time.Second - 1) / time.Second)
}

// again words the time to wait as the vendor of f does.
func (a Answer) again(f form) string {
	wait := time.Duration(a.retryAfter()) * time.Second
	if f.dialect == gemini {
		return fmt.Sprintf(" Please retry in %v.", wait)
	}
	return fmt.Sprintf(" Please try again in %v.", wait)
}
