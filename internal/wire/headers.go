package wire

import (
	"strconv"
	"strings"
	"time"
)

// headers are an answer's headers by their name in lower case, the first value of
// each: nothing read here is a list.
type headers map[string]string

func newHeaders(header map[string][]string) headers {
	h := make(headers, len(header))
	for name, values := range header {
		if len(values) > 0 {
			h[strings.ToLower(name)] = strings.TrimSpace(values[0])
		}
	}
	return h
}

// quote takes headers that a body quotes. They override those of the answer where
// it is only the carrier of another one.
func (h headers) quote(raw []byte, override bool) {
	for c := jsonIn(raw); c.next(); {
		name, ok := jsonText(c.key)
		value := scalar(c.value)
		if name = strings.ToLower(name); !ok || value == "" {
			continue
		}
		if _, has := h[name]; override || !has {
			h[name] = strings.TrimSpace(value)
		}
	}
}

func (h headers) get(name string) string { return h[name] }

// date reads an HTTP date (RFC 9110 5.6.7).
func (h headers) date(name string) (time.Time, bool) {
	for _, layout := range [...]string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC, time.RFC1123Z, time.RFC1123} {
		if t, err := time.Parse(layout, h[name]); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

func (h headers) milliseconds(name string) wait {
	f, err := strconv.ParseFloat(h[name], 64)
	return wait{seconds: f / 1000, ok: err == nil}
}

// retryAfter reads Retry-After: seconds, with a fraction or a unit as some send
// them, or a date.
func (h headers) retryAfter() wait {
	if w := waitDuration(h["retry-after"]); w.ok {
		return w
	}
	if t, ok := h.date("retry-after"); ok {
		return wait{seconds: float64(t.Unix()), at: true, ok: true}
	}
	t, err := time.Parse(time.RFC3339, h["retry-after"])
	return wait{seconds: float64(t.Unix()), at: true, ok: err == nil}
}

// spent says that a bucket's remaining count is given, and is used up.
func (h headers) spent(remaining string) bool {
	f, err := strconv.ParseFloat(h[remaining], 64)
	return err == nil && f <= 0
}

// buckets are the resets of the limits that are used up. They are sent with every
// answer, so that those of other limits say nothing.
func (h headers) buckets() (waits []wait) {
	for name, value := range h {
		if bucket, ok := strings.CutPrefix(name, "x-ratelimit-reset-"); ok { // OpenAI, Azure, Groq, Cerebras
			if h.spent("x-ratelimit-remaining-" + bucket) {
				waits = append(waits, bucketReset(value))
			}
			continue
		}
		bucket, ok := strings.CutSuffix(name, "-reset")
		switch {
		case !ok:
		case bucket == "anthropic-ratelimit-unified":
			if h["anthropic-ratelimit-unified-status"] == "" {
				waits = append(waits, waitTime(value))
			}
		case strings.HasPrefix(bucket, "anthropic-ratelimit-unified"):
		case strings.HasPrefix(bucket, "anthropic-ratelimit-"):
			if h.spent(bucket + "-remaining") {
				waits = append(waits, waitTime(value))
			}
		case bucket == "x-ratelimit", bucket == "ratelimit", bucket == "ratelimitbysize", bucket == "x-ratelimitbysize": // GitHub Models, Mistral
			if _, told := h[bucket+"-remaining"]; !told || h.spent(bucket+"-remaining") {
				waits = append(waits, waitTime(value))
			}
		}
	}
	return waits
}

// bucketReset reads the reset of one of OpenAI's buckets: a duration, or a number as
// others send it.
func bucketReset(value string) wait {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return waitTime(value)
	}
	return waitDuration(value)
}

// codexWindows are the resets of ChatGPT's subscription windows that are full.
func (h headers) codexWindows() (waits []wait) {
	for name, value := range h {
		window, ok := strings.CutSuffix(name, "-used-percent")
		if used, err := strconv.ParseFloat(value, 64); !ok || !strings.HasPrefix(name, "x-codex-") || err != nil || used < 100 {
			continue
		}
		if after, ok := h[window+"-reset-after-seconds"]; ok {
			waits = append(waits, waitDuration(after))
		} else if at, ok := h[window+"-reset-at"]; ok {
			waits = append(waits, waitTime(at))
		}
	}
	return waits
}

// unifiedWindows are the resets of Claude's subscription windows that reject.
func (h headers) unifiedWindows() (waits []wait) {
	const unified = "anthropic-ratelimit-unified-"
	for name, value := range h {
		rest, ok := strings.CutPrefix(name, unified)
		window, is := strings.CutSuffix(rest, "-status")
		if !ok || !is || value != "rejected" || window == "overage" || window == "fallback" {
			continue
		}
		waits = append(waits, waitTime(h[unified+window+"-reset"]))
	}
	if len(waits) == 0 && h[unified+"status"] == "rejected" {
		waits = append(waits, waitTime(h[unified+"reset"]))
	}
	return waits
}

// quotedReset is the reset that OpenRouter quotes, of a limit that is used up.
func quotedReset(raw []byte) []wait {
	h := headers{}
	h.quote(raw, true)
	if remaining, ok := h["x-ratelimit-remaining"]; ok && remaining != "0" {
		return nil
	}
	if reset, ok := h["x-ratelimit-reset"]; ok {
		return []wait{waitTime(reset)}
	}
	return nil
}
