package main

import (
	"fmt"
	"strings"
)

// modelNames are the names of n virtual models.
func modelNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("vm-%d", i))
	}
	return names
}

// wideConfig has so many virtual models, each with a chain of all the upstreams. The
// chain is written once and repeated by a YAML alias: the file may have 1 MiB.
func wideConfig(upstream string, models, upstreams int) string {
	var b strings.Builder
	b.WriteString("upstream:\n")
	for i := range upstreams {
		fmt.Fprintf(&b, "  - {id: up-%d, base_url: %q, api_key: sk-%d-0123456789}\n", i, upstream, i)
	}
	b.WriteString("virtual_models:\n")
	for i, name := range modelNames(models) {
		if i > 0 {
			fmt.Fprintf(&b, "  %s: *chain\n", name)
			continue
		}
		fmt.Fprintf(&b, "  %s: &chain\n", name)
		for u := range upstreams {
			fmt.Fprintf(&b, "    - {upstream: up-%d, model: m-real}\n", u)
		}
	}
	return b.String()
}

// twoCandidates is a virtual model whose first candidate stands behind a prefix of the
// upstream that makes requests fail. Failures must not bench it by themselves.
func twoCandidates(prefix, rules string) func(string) string {
	return func(upstream string) string {
		return fmt.Sprintf(`server: {auto_hedge_threshold: 0}
virtual_models:
  %s:
    - {name: first, base_url: %q, api_key: sk-first-0123456789, model: m-real}
    - {name: second, base_url: %q, api_key: sk-second-0123456789, model: m-real}
rules:
%s`, alias, upstream+prefix, upstream, rules)
	}
}

const (
	// failOver goes on to the next candidate at once.
	failOver = "  - {match: {status: 503}, action: next}\n"
	// freezeLong freezes a candidate for longer than any measurement.
	freezeLong = "  - {match: {status: 429}, action: freeze, freeze_seconds: 7200}\n"
)

// manyRules are n rules, the last of which decides: the others have expressions that
// nearly match what the upstream says.
func manyRules(n int) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "  - {match: {status: 503, body_regex: 'fails (for|by) reason %d|quota of \\d+ (tokens|requests) per %d (seconds|minutes)'}, action: passthrough}\n", i, i)
	}
	b.WriteString(failOver)
	return b.String()
}
