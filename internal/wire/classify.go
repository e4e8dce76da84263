package wire

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The names that vendors give their errors, by fault. Sources: the vendors' error
// pages and SDKs, Codex's and gemini-cli's own lists, new-api's sources.
var (
	affinityWords = words("previous_response_not_found", "invalid_encrypted_content", "conversation_not_found", "container_not_found")
	clientWords   = words("context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "context_window_exceeded",
		"content_filter", "content_policy_violation", "image_content_policy_violation", "invalid_prompt", "cyber_policy", "bio_policy",
		"ResponsibleAIPolicyViolation", "request_too_large", "data_inspection_failed", "DataInspectionFailed")
	quotaWords = words("insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "project_spend_limit_exceeded",
		"organization_usage_limit_exceeded", "billing_error", "billing_not_active", "billing_hard_limit_reached", "usage_limit_reached",
		"usage_not_included", "enforced_spend_limit_reached", "QUOTA_EXHAUSTED", "INSUFFICIENT_G1_CREDITS_BALANCE",
		"insufficient_balance", "insufficient_user_quota", "pre_consume_token_quota_failed", "exceeded_current_quota_error", "Arrearage")
	credentialWords = words("invalid_api_key", "authentication_error", "API_KEY_INVALID", "permission_error", "UNAUTHENTICATED",
		"PERMISSION_DENIED", "VALIDATION_REQUIRED", "token_expired", "account_deactivated", "invalid_authentication_error",
		"UnrecognizedClientException", "AccessDeniedException")
	modelWords    = words("model_not_found", "model_not_available", "model_not_supported", "DeploymentNotFound", "deployment_not_found")
	capacityWords = words("server_is_overloaded", "slow_down", "overloaded_error", "overloaded", "service_unavailable_error", "UNAVAILABLE",
		"MODEL_CAPACITY_EXHAUSTED", "channel:no_available_key", "engine_overloaded_error", "engine_overloaded")
	rateWords = words("rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED", "too_many_requests", "rate_limited", "rate_limit",
		"ThrottlingException", "Throttling", "rate_limit_reached_error")
)

// What the texts say where no name does; relays often hand on nothing else.
// Compiled they are large, and a program that nothing fails for never needs them.
var (
	affinityText = lazily("(?is)signature.{0,12}thinking|encrypted[ _]content .* could not be|" +
		"\\b(?:previous response|conversation|container|vector store|file|item) with id\\b.{0,120}\\bnot found|" +
		"\\bcached ?content\\b.{0,120}\\bnot found|no such (?:file|container|vector store|batch)\\b|\\bfile \\S{1,100} not found|" +
		"permission to access the (?:file|cachedcontent)\\b")
	unverifiedText = lazily(`(?i)could not be (?:verified|decrypted)`)
	identityText   = lazily(`(?i)\b(?:account|organi[sz]ation|user|identity|key|token|phone|payment|card|email)\b`)
	clientText     = lazily("(?is)prompt is too long|input is too long|context length|available context size|context window|" +
		"exceeds? the maximum number of tokens|token count .* exceeds|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum )?context|" +
		"exceed context limit|reduce the length of")
	quotaText = lazily(`(?i)credit balance is too low|insufficient (?:account )?balance|free-models-per-day|per-day|\blimit: 0(?:[^.\d]|$)|余额不足|额度不足`)
	modelText = lazily("(?i)\\bmodels?\\b\\W{0,3}\\S{1,120} (?:is |was |are |could |does |do )?not (?:be )?(?:found|exist|available)\\b|" +
		"\\bmodel (?:is |was |does )?not (?:found|exist|available)\\b|\\bmodel(?: [\"'`]\\S{1,120})? is not supported\\b|no available channel|unknown model|" +
		"not available for this api key|no endpoints found")
	capacityText = lazily(`(?i)\boverloaded\b|\bat capacity\b`)
)

// lazily compiles an expression when it is first used.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// minimaxFaults are the faults of MiniMax's base_resp.status_code (its error page);
// 1008, an empty balance, says so in words.
var minimaxFaults = map[int64]Fault{
	1002: FaultRate, 1039: FaultRate, 1041: FaultRate, 1004: FaultCredential, 2049: FaultCredential,
	1008: FaultQuota, 2056: FaultQuota, 1026: FaultClient, 1027: FaultClient, 2013: FaultClient,
}

func words(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (c *complaint) named(set map[string]bool) bool {
	return slices.ContainsFunc(c.words, func(w string) bool { return set[w] })
}

func (c *complaint) says(re *regexp.Regexp) bool { return slices.ContainsFunc(c.texts, re.MatchString) }

// fault decides whose fault an error with that status is: the first that fits.
func (c *complaint) fault(status int) Fault {
	if c.html {
		return FaultServer // an edge or a login page, whatever its status: it says nothing about the key
	}
	if kind := c.header.get("x-amzn-errortype"); kind != "" { // Bedrock
		kind, _, _ = strings.Cut(kind, ":")
		c.words = append(c.words, kind)
	}
	switch {
	case c.named(affinityWords), c.says(affinityText()), status == 400 && c.unverified():
		return FaultAffinity
	case c.named(clientWords), c.flagged, c.says(clientText()):
		return FaultClient
	case status == 402, c.named(quotaWords), c.perDay, c.says(quotaText()),
		c.header.get("anthropic-ratelimit-unified-status") == "rejected":
		return FaultQuota
	case minimaxFaults[c.minimax] != FaultNone:
		return minimaxFaults[c.minimax]
	case c.named(credentialWords):
		return FaultCredential
	case c.named(modelWords), c.says(modelText()), c.lacksModel(status):
		return FaultModel
	case status == 401, status == 403:
		return FaultCredential
	case status == 503, status == 529, c.named(capacityWords), c.says(capacityText()):
		return FaultCapacity
	case status == 429, c.named(rateWords):
		return FaultRate
	case status < 400, status >= 500, status == 408, status == 409, status == 425, status == 499:
		return FaultServer
	}
	return FaultClient
}

// unverified says that some state could not be verified: not the caller himself.
func (c *complaint) unverified() bool {
	return slices.ContainsFunc(c.texts, func(s string) bool {
		return unverifiedText().MatchString(s) && !identityText().MatchString(s)
	})
}

// lacksModel says of a 404 that it is the model that was not found, not the path.
func (c *complaint) lacksModel(status int) bool {
	return status == 404 && slices.ContainsFunc(c.texts, func(s string) bool {
		s = strings.ToLower(s)
		return strings.Contains(s, "model") || strings.Contains(s, "deployment") || strings.Contains(s, "engine")
	})
}
