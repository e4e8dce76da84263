package wire

// Usage is what an answer says it used, in tokens, in one normal form for every
// vendor: Input holds everything that was read, cached and newly cached tokens
// included, Output holds reasoning, Total is Input plus Output. -1 means that the
// answer did not say; that is not the same as 0 and is never guessed.
type Usage struct {
	Input      int64 // tokens read, with Cached and CacheWrite
	Output     int64 // tokens written, with Reasoning
	Cached     int64 // part of Input that came from the vendor's cache
	CacheWrite int64 // part of Input that was put into the vendor's cache
	Reasoning  int64 // part of Output that the model kept to itself
	Total      int64 // Input plus Output
}

// NoUsage is the usage of an answer that reported none.
func NoUsage() Usage { return Usage{-1, -1, -1, -1, -1, -1} }

// tokens reads a token count, or returns -1.
func tokens(raw []byte) int64 {
	// More than any context holds is no count, and keeps sums from overflowing.
	if n, ok := jsonInt(raw); ok && n >= 0 && n < 1<<50 {
		return n
	}
	return -1
}

// tokensIn reads the first of some counts that the object raw has, or returns -1.
func tokensIn(raw []byte, names ...string) int64 {
	for _, name := range names {
		if value, ok := jsonField(raw, name); ok {
			if n := tokens(value); n >= 0 {
				return n
			}
		}
	}
	return -1
}

// report takes a usage over whose Input and Output are set.
func (ev *event) report(u Usage) {
	u.Total = -1
	if u.Input >= 0 && u.Output >= 0 {
		u.Total = u.Input + u.Output
	}
	if u.Input >= 0 && u.Cached > u.Input {
		u.Cached = u.Input
	}
	ev.usage, ev.hasUsage = u, true
}

// chatUsage reads the usage of chat and legacy completions, embeddings included.
// xAI leaves reasoning out of completion_tokens, and sometimes the cached out of
// prompt_tokens; where total_tokens is larger than both together, the sum that fits
// it is the true one.
func chatUsage(raw []byte, ev *event) {
	u := NoUsage()
	prompt, completion, total := int64(-1), int64(-1), int64(-1)
	hit, cached := int64(-1), int64(-1)
	unread := false // there is an output, and no count that can be true
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"prompt_tokens"`:
			prompt = tokens(c.value)
		case `"completion_tokens"`:
			completion = tokens(c.value)
			unread = completion < 0 && jsonKind(c.value) != 'n'
		case `"total_tokens"`:
			total = tokens(c.value)
		case `"prompt_tokens_details"`:
			u.Cached = tokensIn(c.value, "cached_tokens")
			u.CacheWrite = tokensIn(c.value, "cache_write_tokens", "cache_creation_tokens")
		case `"completion_tokens_details"`:
			u.Reasoning = tokensIn(c.value, "reasoning_tokens")
		case `"prompt_cache_hit_tokens"`: // DeepSeek
			hit = tokens(c.value)
		case `"cached_tokens"`: // Moonshot
			cached = tokens(c.value)
		}
	}
	if prompt < 0 {
		return
	}
	if u.Cached < 0 {
		if u.Cached = hit; hit < 0 {
			u.Cached = cached
		}
	}
	if unread {
		u.Input = prompt
		ev.report(u) // the output is unknown, which is not 0
		return
	}
	u.Input, u.Output = prompt, max(completion, 0)
	if outside := total - u.Input - u.Output; outside > 0 {
		k, rs := max(u.Cached, 0), max(u.Reasoning, 0)
		switch outside {
		case rs:
			u.Output += rs
		case k:
			u.Input += k
		case k + rs:
			u.Input += k
			u.Output += rs
		default:
			u.Output += outside
		}
	}
	ev.report(u)
}

// timings reads what llama.cpp reports beside or instead of usage.
func timings(raw []byte, ev *event) {
	if ev.hasUsage {
		return
	}
	u := NoUsage()
	prompt := tokensIn(raw, "prompt_n")
	u.Cached, u.Output = tokensIn(raw, "cache_n"), tokensIn(raw, "predicted_n")
	if prompt < 0 || u.Output < 0 {
		return
	}
	u.Input = prompt + max(u.Cached, 0)
	ev.report(u)
}

// responsesUsage reads the usage of Responses, and of transcriptions and images,
// which spell the details differently.
func responsesUsage(raw []byte, ev *event) {
	u := NoUsage()
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"input_tokens"`:
			u.Input = tokens(c.value)
		case `"output_tokens"`:
			u.Output = tokens(c.value)
		case `"input_tokens_details"`, `"input_token_details"`:
			u.Cached = tokensIn(c.value, "cached_tokens")
			u.CacheWrite = tokensIn(c.value, "cache_write_tokens")
		case `"output_tokens_details"`, `"output_token_details"`:
			u.Reasoning = tokensIn(c.value, "reasoning_tokens")
		}
	}
	if u.Input >= 0 {
		u.Output = max(u.Output, 0)
		ev.report(u)
	}
}

// messagesUsage is what Anthropic reported so far: message_delta is cumulative and
// overrides message_start field by field. Counts are -1 where they are missing, once
// known is set.
type messagesUsage struct {
	known                                   bool
	input, creation, cacheRead, output, rsn int64
}

// read takes over the fields that raw has. Where it lists iterations (compaction),
// their sum is what was used, and the fields beside are those of the last only.
func (m *messagesUsage) read(raw []byte, ev *event) {
	if jsonKind(raw) != '{' {
		return
	}
	if !m.known {
		*m = messagesUsage{true, -1, -1, -1, -1, -1}
	}
	m.fields(raw)
	if list, ok := jsonField(raw, "iterations"); ok && jsonElements(list) {
		sum := messagesUsage{true, -1, -1, -1, -1, -1}
		for c := jsonIn(list); c.next(); {
			one := messagesUsage{true, -1, -1, -1, -1, -1}
			one.fields(c.value)
			sum.input, sum.creation = plus(sum.input, one.input), plus(sum.creation, one.creation)
			sum.cacheRead, sum.output = plus(sum.cacheRead, one.cacheRead), plus(sum.output, one.output)
		}
		if sum.input >= 0 && sum.output >= 0 {
			sum.rsn = m.rsn
			*m = sum
		}
	}
	if m.input < 0 && m.output < 0 {
		return
	}
	u := NoUsage()
	u.Cached, u.CacheWrite, u.Output, u.Reasoning = m.cacheRead, m.creation, m.output, m.rsn
	if m.input >= 0 {
		u.Input = m.input + max(m.creation, 0) + max(m.cacheRead, 0)
		u.Output = max(u.Output, 0)
	}
	ev.report(u)
}

func (m *messagesUsage) fields(raw []byte) {
	for c := jsonIn(raw); c.next(); {
		n := tokens(c.value)
		switch string(c.key) {
		case `"input_tokens"`:
			m.input = override(m.input, n)
		case `"cache_creation_input_tokens"`:
			m.creation = override(m.creation, n)
		case `"cache_read_input_tokens"`:
			m.cacheRead = override(m.cacheRead, n)
		case `"output_tokens"`:
			m.output = override(m.output, n)
		case `"output_tokens_details"`:
			m.rsn = override(m.rsn, tokensIn(c.value, "thinking_tokens", "reasoning_tokens"))
		}
	}
}

// override is the newer of two counts, unless that is none.
func override(old, n int64) int64 {
	if n >= 0 {
		return n
	}
	return old
}

// plus adds two counts of which either may be missing.
func plus(a, b int64) int64 {
	if a < 0 {
		return b
	}
	return a + max(b, 0)
}

// geminiUsage reads usageMetadata. Gemini leaves out zeros, so that what is missing
// is 0; candidates exclude thoughts, the prompt excludes tool use.
func geminiUsage(raw []byte, ev *event) {
	if jsonKind(raw) != '{' {
		return
	}
	var prompt, tool, candidates, thoughts, cached int64
	for c := jsonIn(raw); c.next(); {
		n := max(tokens(c.value), 0)
		switch string(c.key) {
		case `"promptTokenCount"`:
			prompt = n
		case `"toolUsePromptTokenCount"`:
			tool = n
		case `"candidatesTokenCount"`:
			candidates = n
		case `"thoughtsTokenCount"`:
			thoughts = n
		case `"cachedContentTokenCount"`:
			cached = n
		}
	}
	ev.report(Usage{Input: prompt + tool, Output: candidates + thoughts, Cached: cached, CacheWrite: -1, Reasoning: thoughts})
}

// ollamaUsage reads the counts of the last line; Ollama leaves out zeros, but both
// counts only where it counted nothing.
func ollamaUsage(prompt, eval []byte, ev *event) {
	u := NoUsage()
	p, e := tokens(prompt), tokens(eval)
	if p < 0 && e < 0 {
		return
	}
	u.Input, u.Output = max(p, 0), max(e, 0)
	ev.report(u)
}
