package wire

import (
	"net/url"
	"slices"
	"strings"
)

// bedrockActions are what is asked of a model of AWS's Bedrock, /model/{m}/invoke.
var bedrockActions = map[string]bool{
	"invoke": true, "invoke-with-response-stream": true, "converse": true, "converse-stream": true, "count-tokens": true,
}

// maxUnescaping is how often a path is read as an escaped one.
const maxUnescaping = 3

// NamesInPath returns the names of models that some upstream may find in a path, whether
// ParseEndpoint finds them or not: behind escaped slashes, by methods that delete or
// change a model, and in places that are not looked in for a model to serve. It is for
// whoever may use certain models only; a name too many does no harm there.
func NamesInPath(method, escapedPath string) (names []string) {
	if Usual(escapedPath) {
		return nil
	}
	if method != "POST" {
		method = "GET" // of which a model's own page is told apart
	}
	for range maxUnescaping {
		names = append(names, namesIn(method, escapedPath)...)
		plain, err := url.PathUnescape(escapedPath)
		if err != nil || plain == escapedPath {
			break
		}
		escapedPath = plain
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesIn reads a path once.
func namesIn(method, escapedPath string) (names []string) {
	if e := ParseEndpoint(method, escapedPath, ""); e.Model != "" {
		return []string{e.Model}
	}
	p := splitPath(escapedPath)
	last := len(p.texts) - 1
	for i := range max(last, 0) {
		// Azure's paths do not heed case, and others may not.
		switch next := p.texts[i+1]; strings.ToLower(p.texts[i]) {
		case "deployments", "engines":
			names = append(names, next)
		case "model":
			if i+2 <= last && bedrockActions[strings.ToLower(p.texts[i+2])] {
				names = append(names, next)
			}
		case "models": // Replicate's /v1/models/{owner}/{name}/predictions, Hugging Face's /models/{owner}/{name}
			if kind, _ := pathKind(p.texts[i+1:]); kind == Other && method == "POST" {
				names = append(names, strings.Join(p.texts[i+1:max(i+2, last)], "/"))
			}
		case "run": // Cloudflare's /ai/run/{model}
			if i > 0 && strings.EqualFold(p.texts[i-1], "ai") {
				names = append(names, strings.Join(p.texts[i+1:], "/"))
			}
		}
	}
	if geminiVerbs[p.verb()] && !p.codeAssist() {
		names = append(names, strings.TrimPrefix(pathText(escapedPath[p.spans[last].Start:p.colon]), "/"))
	}
	return names
}
