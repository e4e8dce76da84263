package wire

import (
	"strings"
	"testing"
	"time"
)

func TestFaultNames(t *testing.T) {
	for f := FaultClient; f <= FaultServer; f++ {
		if got, ok := ParseFault(f.String()); !ok || got != f {
			t.Errorf("%v is read as %v", f, got)
		}
	}
	for _, word := range []string{"", "none", "Quota", "money"} {
		if _, ok := ParseFault(word); ok {
			t.Errorf("%q is a fault", word)
		}
	}
	if Fault(99).String() != "Fault(99)" {
		t.Error(Fault(99))
	}
}

// Section 3.2: whose fault, in all the shapes of section 3.1.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		fault  Fault
		is     int // the status it carries; 0 = the answer's own
	}{
		// Cases 34 and 35: client mistakes, in the vendors' words.
		{"context, OpenAI", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens…","code":"context_length_exceeded"}}`, FaultClient, 0},
		{"context, in words", 400, `{"error":{"message":"The input (9000 tokens) is longer than the model's context length (8192 tokens)."}}`, FaultClient, 0},
		{"context, Google", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, FaultClient, 0},
		{"context, Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000"}}`, FaultClient, 0},
		{"context, embedded", 200, `{"error":{"code":400,"message":"prompt is too long"}}`, FaultClient, 400}, // case 6(e)
		{"invalid parameter", 422, `{"detail":[{"loc":["body","x"],"msg":"field required","type":"missing"}]}`, FaultClient, 0},
		{"invalid parameter of this model", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`, FaultClient, 0},
		{"wrong path", 404, `{"error":{"message":"Invalid URL (POST /v1/chatt)","type":"invalid_request_error"}}`, FaultClient, 0},
		{"wrong path, FastAPI", 404, `{"detail":"Not Found"}`, FaultClient, 0},
		{"wrong path, Go", 404, "404 page not found\n", FaultClient, 0},
		{"wrong path, nothing", 404, "", FaultClient, 0},
		{"method", 405, `{"detail":"Method Not Allowed"}`, FaultClient, 0},
		{"too large", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, FaultClient, 0},
		{"too large, Groq", 413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 8000","type":"tokens","code":"rate_limit_exceeded"}}`, FaultRate, 0},
		{"media type", 415, ``, FaultClient, 0},
		{"policy, Azure", 400, `{"error":{"code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"},"message":"m"}}`, FaultClient, 0},
		{"policy, Azure, inner only", 400, `{"error":{"code":"BadRequest","innererror":{"code":"ResponsibleAIPolicyViolation"},"message":"m"}}`, FaultClient, 0},
		{"policy, images", 400, `{"error":{"code":"image_content_policy_violation","message":"m"}}`, FaultClient, 0},
		{"flagged", 403, `{"error":{"code":403,"message":"flagged","metadata":{"flagged_input":"x"}}}`, FaultClient, 0},
		{"MiniMax, policy", 200, `{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}`, FaultClient, 0},
		// Case 48: state of another account.
		{"encrypted, code null", 400, `{"error":{"message":"The encrypted content gAAA could not be verified.","code":null}}`, FaultAffinity, 0},
		{"encrypted, words only", 400, `{"error":{"message":"could not be verified","code":null}}`, FaultAffinity, 0},
		{"an account that could not be verified", 400, `{"error":{"message":"Your organization could not be verified"}}`, FaultClient, 0},
		{"thinking", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`, FaultAffinity, 0},
		{"thinking, wrapped by a relay", 500, `{"error":{"message":"upstream: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Invalid ` + "`signature` in `thinking`" + ` block\"}}"}}`, FaultAffinity, 0},
		{"previous response", 404, `{"error":{"message":"m","code":"previous_response_not_found"}}`, FaultAffinity, 0},
		{"item", 404, `{"error":{"message":"Item with id 'rs_1' not found. Items are not persisted when store is set to false."}}`, FaultAffinity, 0},
		{"conversation", 404, `{"error":{"message":"Conversation with id 'conv_1' not found."}}`, FaultAffinity, 0},
		{"file", 404, `{"error":{"message":"No such File object: file-1"}}`, FaultAffinity, 0},
		{"cached content", 403, `{"error":{"code":403,"message":"CachedContent not found (or permission denied)","status":"PERMISSION_DENIED"}}`, FaultAffinity, 0},
		{"Google's file", 403, `{"error":{"code":403,"message":"You do not have permission to access the File abc or it may not exist.","status":"PERMISSION_DENIED"}}`, FaultAffinity, 0},
		// Case 36: a dead account against a temporary limit.
		{"402", 402, ``, FaultQuota, 0},
		{"insufficient quota", 429, `{"error":{"code":"insufficient_quota"}}`, FaultQuota, 0},
		{"credit", 400, `{"error":{"message":"Your credit balance is too low"}}`, FaultQuota, 0},
		{"spend limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}`, FaultQuota, 0},
		{"Gemini's limit of nothing", 429, `{"error":{"code":429,"message":"Quota exceeded for metric: x, limit: 0, model: y","status":"RESOURCE_EXHAUSTED"}}`, FaultQuota, 0},
		{"Code Assist", 429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[{"reason":"QUOTA_EXHAUSTED","metadata":{"quotaResetDelay":"3h12m5s"}}]}}`, FaultQuota, 0},
		{"new-api", 403, `{"error":{"message":"m","type":"new_api_error","code":"insufficient_user_quota"}}`, FaultQuota, 0},
		{"Gemini's sentence is no quota", 429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}]}}`, FaultRate, 0},
		{"Google in an array", 429, `[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"RequestsPerDayPerProject"}]}]}}]`, FaultQuota, 0},
		{"behind OpenRouter", 429, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"m\"}}"}}}`, FaultQuota, 0},
		{"MiniMax, five hours", 200, `{"base_resp":{"status_code":2056,"status_msg":"usage limit exceeded"}}`, FaultQuota, 0},
		{"rate", 429, `{"error":{"code":"rate_limit_exceeded"}}`, FaultRate, 0},
		{"rate, nothing said", 429, ``, FaultRate, 0},
		{"rate, embedded", 200, `{"error":{"code":"429","message":"slow down"}}`, FaultRate, 429},
		{"rate, Mistral", 429, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","code":"1300"}`, FaultRate, 0},
		{"rate, MiniMax", 200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, FaultRate, 0},
		{"rate, APIM", 200, `{"statusCode":429,"message":"Rate limit is exceeded. Try again in 26 seconds."}`, FaultRate, 429},
		{"rate, in a choice", 200, `{"choices":[{"error":{"code":429,"message":"m"}}]}`, FaultRate, 429},
		{"rate, failed response", 200, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"m"}}}`, FaultRate, 0},
		{"rate, as an event", 429, "event: error\ndata: {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"m\"}}\n\n", FaultRate, 0},
		// Credentials, and what only looks like them.
		{"401", 401, ``, FaultCredential, 0},
		{"Ollama's cloud", 401, `{"error":"unauthorized","signin_url":"https://x"}`, FaultCredential, 0},
		{"bad key, embedded", 200, `{"error":{"code":"invalid_api_key","message":"m"}}`, FaultCredential, 0},
		{"Google", 400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, FaultCredential, 0},
		{"403", 403, `{"error":{"message":"m"}}`, FaultCredential, 0},
		{"permission", 403, `{"error":{"status":"PERMISSION_DENIED","message":"m"}}`, FaultCredential, 0},
		{"challenge", 403, `<!DOCTYPE html>Enable JavaScript /cdn-cgi/challenge`, FaultServer, 0},
		// Models.
		{"no such model", 404, `{"error":{"code":"model_not_found","message":"m"}}`, FaultModel, 0},
		{"no such model for this key", 403, `{"error":{"code":"model_not_found","message":"Project does not have access to model"}}`, FaultModel, 0},
		{"Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, FaultModel, 0},
		{"Ollama", 404, `{"error":"model 'x' not found"}`, FaultModel, 0},
		{"Ollama, embedded", 200, `{"error":"model 'x' not found, try pulling it first"}`, FaultModel, 0},
		{"Gemini", 404, `{"error":{"code":404,"message":"models/x is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`, FaultModel, 0},
		{"vLLM", 404, `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","code":404}`, FaultModel, 0},
		{"Azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, FaultModel, 0},
		{"new-api", 503, `{"error":{"message":"No available channel for model x under group default"}}`, FaultModel, 0},
		{"a key without it", 400, `{"error":{"message":"model x not available for this API key"}}`, FaultModel, 0},
		{"unknown", 400, `{"error":{"message":"Unknown model: x"}}`, FaultModel, 0},
		{"Codex", 400, `{"detail":"The 'x' model is not supported when using Codex with a ChatGPT account."}`, FaultModel, 0},
		{"a container of the host's", 500, `{"error":"container not found"}`, FaultServer, 0},
		{"Nest", 200, `{"statusCode":401,"message":"Invalid token","error":"Unauthorized"}`, FaultCredential, 401},
		{"code beside an error that is a string", 400, `{"error":"quota","code":"insufficient_quota"}`, FaultQuota, 0},
		{"error that is a code", 400, `{"error":"insufficient_quota","message":"m"}`, FaultQuota, 0},
		{"a limit of half", 429, `{"error":{"message":"limit: 0.5"}}`, FaultRate, 0},
		{"OpenRouter", 404, `{"error":{"message":"No endpoints found for x.","code":404}}`, FaultModel, 0},
		// Capacity.
		{"503", 503, ``, FaultCapacity, 0},
		{"529", 529, ``, FaultCapacity, 0},
		{"slow_down", 429, `{"error":{"code":"slow_down","message":"m"}}`, FaultCapacity, 0},
		{"overloaded, embedded", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, FaultCapacity, 0},
		{"no key left", 500, `{"error":{"code":"channel:no_available_key","message":"m"}}`, FaultCapacity, 0},
		{"at capacity", 400, `{"error":{"message":"Selected model is at capacity. Please try a different model."}}`, FaultCapacity, 0},
		{"Code Assist's capacity", 429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}`, FaultCapacity, 0},
		// All the rest.
		{"500", 500, `{"type":"error","error":{"type":"api_error","message":"m"}}`, FaultServer, 0},
		{"502", 502, `<html>`, FaultServer, 0},
		{"504", 504, ``, FaultServer, 0},
		{"520", 520, ``, FaultServer, 0},
		{"408", 408, ``, FaultServer, 0},
		{"409", 409, ``, FaultServer, 0},
		{"redirect", 301, ``, FaultServer, 0},
		{"200", 200, `{"error":"boom"}`, FaultServer, 0},
		{"embedded 502", 200, `{"error":{"message":"ResourceExhausted: worker limit","code":502}}`, FaultServer, 502},
		{"embedded 500 in a string", 200, `{"error":{"message":"m","code":"500"}}`, FaultServer, 500},
		{"the answer's own status counts before an inner one", 500, `{"error":{"message":"m","code":429}}`, FaultServer, 0},
		{"400", 400, `{"error":"boom"}`, FaultClient, 0},
		{"broken JSON", 500, `{"error":{"mess`, FaultServer, 0},
		{"binary", 400, "\x00\xff\xfe", FaultClient, 0},
	} {
		got := Explain(tc.status, nil, []byte(tc.body), fixtureNow)
		if got.Fault != tc.fault {
			t.Errorf("%s: fault %v, want %v: %+v", tc.name, got.Fault, tc.fault, got)
		}
		if tc.is == 0 {
			tc.is = tc.status
		}
		if got.Status != tc.is {
			t.Errorf("%s: status %d, want %d", tc.name, got.Status, tc.is)
		}
	}
	if got := Explain(400, map[string][]string{"X-Amzn-Errortype": {"ThrottlingException:http://x"}}, []byte(`{"message":"Too many requests"}`), fixtureNow); got.Fault != FaultRate {
		t.Errorf("Bedrock: %+v", got)
	}
	if got := Explain(429, map[string][]string{"anthropic-ratelimit-unified-status": {"rejected"}}, nil, fixtureNow); got.Fault != FaultQuota {
		t.Errorf("Claude's windows: %+v", got)
	}
}

// What a person, and a rule's pattern, gets to see.
func TestMessagesOfErrors(t *testing.T) {
	for body, want := range map[string]Failed{
		`{"error":{"message":"a \"b\" \u00e9","type":"t","code":"c"}}`:        {Message: `a "b" é`, Type: "t", Code: "c"},
		`{"error":{"message":"m","type":null,"code":429}}`:                    {Message: "m", Code: "429"},
		`{"statusCode":401,"message":"Invalid token","error":"Unauthorized"}`: {Message: "Invalid token"},
		`{"error":"Unauthorized","code":"c"}`:                                 {Message: "Unauthorized", Code: "c"},
		`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`:         {Message: "m", Code: "503", Type: "UNAVAILABLE"},
		`{"error":"plain"}`:      {Message: "plain"},
		`{"detail":"Not Found"}`: {Message: "Not Found"},
		`{"detail":[{"loc":["a"],"msg":"field required"},{"msg":"too long"}]}`: {Message: "field required; too long"},
		`{"message":"m","id":"x"}`:                                                                       {Message: "m"},
		`{"statusCode":500,"message":"m"}`:                                                               {Message: "m"},
		`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`:                         {Message: "insufficient balance", Code: "1008"},
		`{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`:                   {Message: "m", Type: "api_error"},
		`{"type":"error","code":"server_error","message":"m"}`:                                           {Message: "m", Type: "error", Code: "server_error"},
		`{"success":false,"errors":[{"code":7003,"message":"m"}]}`:                                       {Message: "m", Code: "7003"},
		`{"error":{"error":{"message":"inner","code":"c"}}}`:                                             {Message: "inner", Code: "c"},
		`{"error":{"message":"Provider returned error","code":500,"metadata":{"raw":"over the limit"}}}`: {Message: "Provider returned error: over the limit", Code: "500"},
		`{"error":{"metadata":{"raw":{"error":{"message":"inner"}}}}}`:                                   {Message: "inner"},
		`{"error":{"message":{"message":"inner"}}}`:                                                      {Message: "inner"},
		`"just text"`:             {Message: "just text"},
		"  upstream gone \n":      {Message: "upstream gone"},
		`<html>`:                  {},
		``:                        {},
		"\ufeff{\"error\":\"x\"}": {Message: "x"},
	} {
		got := Explain(500, nil, []byte(body), fixtureNow)
		if got.Message != want.Message || got.Code != want.Code || got.Type != want.Type {
			t.Errorf("%s\n%+v\n%+v", body, got, want)
		}
	}
	if got := Explain(500, nil, []byte(strings.Repeat("x", 1<<20)), fixtureNow); len(got.Message) != maxPlain {
		t.Errorf("%d bytes of plain text", len(got.Message))
	}
}

// Section 3.3 and case 40: when to come back.
func TestHints(t *testing.T) {
	type h = map[string]string
	const none = -1
	day := 24 * time.Hour
	for _, tc := range []struct {
		name   string
		header h
		body   string
		want   time.Duration
	}{
		{"none", nil, `{"error":{"message":"m"}}`, none},
		{"seconds", h{"Retry-After": "2"}, "", 2 * time.Second},
		{"fraction", h{"retry-after": "2.5"}, "", 2500 * time.Millisecond},
		{"date", h{"Retry-After": "Thu, 01 Jan 2026 12:00:03 GMT"}, "", 3 * time.Second},
		{"old date format", h{"Retry-After": "Thursday, 01-Jan-26 12:00:03 GMT"}, "", 3 * time.Second},
		{"against its own clock", h{"Retry-After": "Thu, 01 Jan 2026 13:00:03 GMT", "Date": "Thu, 01 Jan 2026 13:00:00 GMT"}, "", 3 * time.Second},
		{"past date", h{"Retry-After": "Thu, 01 Jan 2026 11:00:00 GMT"}, "", 0},
		{"zero", h{"Retry-After": "0"}, "", 0},
		{"negative", h{"Retry-After": "-5"}, "", none},
		{"not a number", h{"Retry-After": "NaN"}, "", none},
		{"infinite", h{"Retry-After": "+Inf"}, "", none},
		{"garbage", h{"Retry-After": "soon"}, "", none},
		{"36 days", h{"Retry-After": "3110400"}, "", none},
		{"35 days", h{"Retry-After": "3024000"}, "", 35 * day},
		{"far date", h{"Retry-After": "Thu, 01 Jan 2032 12:00:00 GMT"}, "", none},
		{"Azure's day", h{"Retry-After": "86400"}, "", day},
		{"unit", h{"Retry-After": "30s"}, "", 30 * time.Second},
		{"milliseconds", h{"retry-after-ms": "1500"}, "", 1500 * time.Millisecond},
		{"milliseconds before seconds", h{"retry-after-ms": "1500", "retry-after": "2"}, "", 1500 * time.Millisecond},
		{"bad milliseconds fall through", h{"retry-after-ms": "-1", "retry-after": "2"}, "", 2 * time.Second},
		{"garbage falls through to the text", h{"retry-after": "x"}, `{"error":{"message":"Please try again in 20ms."}}`, 20 * time.Millisecond},
		{"header before text", h{"retry-after": "3"}, `{"error":{"message":"Please try again in 9s."}}`, 3 * time.Second},
		{"bucket that is used up", h{"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "1h2m3s", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "20h"}, "", time.Hour + 2*time.Minute + 3*time.Second}, // OmniRoute: 26 s became 19 h
		{"both used up", h{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s"}, "", 2*time.Minute + 59560*time.Millisecond},
		{"plain seconds", h{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "37"}, "", 37 * time.Second},
		{"bucket without its count", h{"x-ratelimit-reset-tokens": "37"}, "", none},
		{"epoch", h{"x-ratelimit-reset": "1767268860"}, "", time.Minute},
		{"epoch in milliseconds", h{"x-ratelimit-reset": "1767268860000", "x-ratelimit-remaining": "0"}, "", time.Minute},
		{"seconds from now", h{"ratelimitbysize-reset": "34"}, "", 34 * time.Second},
		{"reset of what is not used up", h{"x-ratelimit-reset": "1767268860", "x-ratelimit-remaining": "3"}, "", none},
		{"Anthropic", h{"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-01-01T12:00:42Z", "anthropic-ratelimit-requests-remaining": "1", "anthropic-ratelimit-requests-reset": "2026-01-02T12:00:42Z"}, "", 42 * time.Second},
		{"Claude's reset alone", h{"anthropic-ratelimit-unified-reset": "1767268860"}, "", time.Minute},
		{"Claude's reset, rejected", h{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1767268860", "retry-after": "2"}, "", time.Minute},
		{"Claude's reset, allowed", h{"anthropic-ratelimit-unified-status": "allowed", "anthropic-ratelimit-unified-reset": "1767268860"}, "", none},
		{"Claude's windows", h{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1767276000", "anthropic-ratelimit-unified-7d-status": "rejected", "anthropic-ratelimit-unified-7d-reset": "1767272400", "anthropic-ratelimit-unified-5h-status": "allowed", "anthropic-ratelimit-unified-5h-reset": "1767279999"}, "", time.Hour},
		{"Claude's overage is no window", h{"anthropic-ratelimit-unified-overage-status": "rejected", "anthropic-ratelimit-unified-overage-reset": "1767272400"}, "", none},
		{"Codex, body", nil, `{"error":{"type":"usage_limit_reached","resets_in_seconds":60,"resets_at":1767279999}}`, time.Minute},
		{"Codex, only a time", nil, `{"error":{"type":"usage_limit_reached","resets_at":1767268860}}`, time.Minute},
		{"Codex, headers", h{"x-codex-primary-used-percent": "100", "x-codex-primary-reset-after-seconds": "60", "x-codex-secondary-used-percent": "80", "x-codex-secondary-reset-at": "1767279999"}, "", time.Minute},
		{"Codex, another limit", h{"x-codex-spark-secondary-used-percent": "100.0", "x-codex-spark-secondary-reset-at": "1767268860"}, "", time.Minute},
		{"Codex, headers in the event", nil, `{"type":"error","status":429,"error":{"type":"usage_limit_reached"},"headers":{"X-Codex-Primary-Used-Percent":"100","X-Codex-Primary-Reset-After-Seconds":60}}`, time.Minute},
		{"Retry-After in the event", nil, `{"type":"error","error":{"type":"x"},"headers":{"Retry-After":"7"}}`, 7 * time.Second},
		{"RetryInfo", nil, `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.463586755s"}]}}`, 2463587 * time.Microsecond},
		{"RetryInfo before Retry-After", h{"retry-after": "60"}, `{"error":{"code":429,"details":[{"retryDelay":"34s"}]}}`, 34 * time.Second},
		{"Code Assist", nil, `{"error":{"details":[{"reason":"QUOTA_EXHAUSTED","metadata":{"quotaResetDelay":"3h12m5s"}}]}}`, 3*time.Hour + 12*time.Minute + 5*time.Second},
		{"Code Assist in milliseconds", nil, `{"error":{"details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quotaResetDelay":"539.477544ms"}}]}}`, 539478 * time.Microsecond},
		{"a daily quota's delay is useless", nil, `{"error":{"code":429,"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]},{"retryDelay":"34s"}]}}`, 20 * time.Hour},
		{"negative delay", nil, `{"error":{"code":429,"details":[{"retryDelay":"-34s"}]}}`, none},
		{"OpenRouter", nil, `{"error":{"code":429,"message":"m","metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1767268860000"}}}}`, time.Minute},
		{"OpenRouter, not used up", nil, `{"error":{"code":429,"message":"m","metadata":{"headers":{"X-RateLimit-Remaining":"4","X-RateLimit-Reset":"1767268860000"}}}}`, none},
		{"behind OpenRouter", nil, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"Please try again in 7s\"}}"}}}`, 7 * time.Second},
		{"APIM", nil, `{"statusCode":429,"message":"Rate limit is exceeded. Try again in 26 seconds."}`, 26 * time.Second},
		{"plain text", nil, "Too many requests, retry after 5 seconds", 5 * time.Second},
		{"array", nil, `[{"error":{"code":429,"details":[{"retryDelay":"34s"}]}}]`, 34 * time.Second},
		{"failed response", nil, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Please try again in 11.054s."}}}`, 11054 * time.Millisecond},
	} {
		header := map[string][]string{}
		for k, v := range tc.header {
			header[k] = []string{v}
		}
		got := Explain(429, header, []byte(tc.body), fixtureNow)
		switch {
		case tc.want == none:
			if got.HasRetryAfter || got.RetryAfter != 0 {
				t.Errorf("%s: %v, want none", tc.name, got.RetryAfter)
			}
		case !got.HasRetryAfter || got.RetryAfter != tc.want:
			t.Errorf("%s: %v %v, want %v", tc.name, got.RetryAfter, got.HasRetryAfter, tc.want)
		}
	}
}

func TestParseWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Please try again in 7m12.5s. Need more?":      7*time.Minute + 12500*time.Millisecond,
		"try again in 11.054s":                         11054 * time.Millisecond,
		"TRY AGAIN IN 20ms":                            20 * time.Millisecond,
		"retry after 37 seconds. Please contact":       37 * time.Second,
		"Please retry in 34.074824224s.":               34074824 * time.Microsecond,
		"Try again in 26 seconds.":                     26 * time.Second,
		"try again in 1h2m3s":                          time.Hour + 2*time.Minute + 3*time.Second,
		"try again in 3 minutes and 20 seconds":        200 * time.Second,
		"try again in 2 hours, 5 minutes":              125 * time.Minute,
		"try again in about 5 minutes":                 5 * time.Minute,
		"try again in 1 day":                           24 * time.Hour,
		"retry after 37":                               37 * time.Second,
		"Retry after 37.":                              37 * time.Second,
		"retry after 0 seconds":                        0,
		"Your quota will reset after 3h12m5s.":         3*time.Hour + 12*time.Minute + 5*time.Second,
		"Please wait 30 seconds and try again":         30 * time.Second,
		"try again in 5 s 3":                           5 * time.Second,
		"try again later, or try again in 4s":          4 * time.Second,
		"retry after soon; retry after 4s":             4 * time.Second,
		"try again in 99999999 days, try again in 2 s": 2 * time.Second,
	} {
		if got, ok := ParseWait(text); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "try again", "try again in", "try again later", "try again at 3:05 PM", "try again in a minute", "retry after -5 seconds",
		"try again in 5 attempts", "try again in 36 days", "wait 5", "wait for 20 users", "retry in 1.2.3", "Limit 30000, Used 22999, Requested 12528", "retrying 3 times in 5s"} {
		if got, ok := ParseWait(text); ok {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
}

// Google's day ends in California, in summer and in winter.
func TestPacificMidnight(t *testing.T) {
	for now, want := range map[string]string{
		"2026-01-01T12:00:00Z": "2026-01-02T08:00:00Z",
		"2026-01-01T07:59:59Z": "2026-01-01T08:00:00Z",
		"2026-07-01T12:00:00Z": "2026-07-02T07:00:00Z",
		"2026-07-02T06:00:00Z": "2026-07-02T07:00:00Z",
		"2026-03-08T09:59:00Z": "2026-03-09T07:00:00Z",
		"2026-03-08T10:00:00Z": "2026-03-09T07:00:00Z",
		"2026-11-01T08:59:00Z": "2026-11-02T08:00:00Z",
		"2026-11-01T09:00:00Z": "2026-11-02T08:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := pacificMidnight(at).Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", now, got, want)
		}
	}
}
