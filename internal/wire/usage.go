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

// What a count is that is none. One that is missing may mean 0, where a vendor leaves
// zeros out; one that stands there and cannot be true never does.
const (
	missing = -1
	unread  = -2
)

// tokens reads a token count, or returns missing or unread.
func tokens(raw []byte) int64 {
	// More than any context holds is no count, and keeps sums from overflowing.
	if n, ok := jsonInt(raw); ok && n >= 0 && n < 1<<50 {
		return n
	}
	if kind := jsonKind(raw); kind == 0 || kind == 'n' {
		return missing
	}
	return unread
}

// tokensIn reads the first of some counts that the object raw has, or returns missing
// or unread.
func tokensIn(raw []byte, names ...string) int64 {
	none := int64(missing)
	for _, name := range names {
		if value, ok := jsonField(raw, name); ok {
			n := tokens(value)
			if n >= 0 {
				return n
			}
			none = min(none, n)
		}
	}
	return none
}

// orZero takes a count that is missing for 0.
func orZero(n int64) int64 {
	if n == missing {
		return 0
	}
	return n
}

// sum adds counts of which those that are missing are 0; it is unread if one is.
func sum(counts ...int64) (all int64) {
	for _, n := range counts {
		if n == unread {
			return unread
		}
		all += max(n, 0)
	}
	return all
}

// report takes a usage over whose Input and Output are set.
func (ev *event) report(u Usage) {
	for _, n := range []*int64{&u.Input, &u.Output, &u.Cached, &u.CacheWrite, &u.Reasoning} {
		*n = max(*n, -1)
	}
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
	for c := jsonIn(raw); c.next(); {
		switch string(c.key) {
		case `"prompt_tokens"`:
			prompt = tokens(c.value)
		case `"completion_tokens"`:
			completion = tokens(c.value)
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
	if prompt == missing {
		return
	}
	if u.Cached < 0 {
		if u.Cached = hit; hit < 0 {
			u.Cached = cached
		}
	}
	if u.Input, u.Output = prompt, completion; prompt < 0 || completion == unread {
		ev.report(u) // one of them is unknown, which is not 0
		return
	}
	u.Output = orZero(completion)
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
	if prompt == missing || u.Output == missing {
		return
	}
	u.Input = sum(prompt, u.Cached)
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
		u.Output = orZero(u.Output)
	}
	if u.Input != missing {
		ev.report(u)
	}
}

// messagesUsage is what Anthropic reported so far: message_delta is cumulative and
// overrides message_start field by field. Counts may be missing or unread, once known
// is set.
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
		*m = messagesUsage{true, missing, missing, missing, missing, missing}
	}
	m.fields(raw)
	if list, ok := jsonField(raw, "iterations"); ok && jsonElements(list) {
		all := messagesUsage{true, missing, missing, missing, missing, missing}
		for c := jsonIn(list); c.next(); {
			one := messagesUsage{true, missing, missing, missing, missing, missing}
			one.fields(c.value)
			all.input, all.creation = plus(all.input, one.input), plus(all.creation, one.creation)
			all.cacheRead, all.output = plus(all.cacheRead, one.cacheRead), plus(all.output, one.output)
		}
		if all.input != missing && all.output != missing {
			all.rsn = m.rsn
			*m = all
		}
	}
	if m.input == missing && m.output == missing {
		return
	}
	u := NoUsage()
	u.Cached, u.CacheWrite, u.Output, u.Reasoning = m.cacheRead, m.creation, m.output, m.rsn
	if m.input != missing {
		u.Input = sum(m.input, m.creation, m.cacheRead)
		u.Output = orZero(u.Output)
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

// override is the newer of two counts, unless that is missing.
func override(old, n int64) int64 {
	if n == missing {
		return old
	}
	return n
}

// plus adds two counts of which either may be missing, or both.
func plus(a, b int64) int64 {
	if a == missing {
		return b
	}
	return sum(a, b)
}

// geminiUsage reads usageMetadata. Gemini leaves out zeros, so that what is missing
// is 0; candidates exclude thoughts, the prompt excludes tool use.
func geminiUsage(raw []byte, ev *event) {
	if jsonKind(raw) != '{' {
		return
	}
	var prompt, tool, candidates, thoughts, cached int64
	for c := jsonIn(raw); c.next(); {
		n := orZero(tokens(c.value))
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
	ev.report(Usage{Input: sum(prompt, tool), Output: sum(candidates, thoughts), Cached: cached, CacheWrite: -1, Reasoning: thoughts})
}

// ollamaUsage reads the counts of the last line; Ollama leaves out zeros, but both
// counts only where it counted nothing.
func ollamaUsage(prompt, eval []byte, ev *event) {
	u := NoUsage()
	p, e := tokens(prompt), tokens(eval)
	if p == missing && e == missing {
		return
	}
	u.Input, u.Output = orZero(p), orZero(e)
	ev.report(u)
}
