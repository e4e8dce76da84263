package wire

import (
	"net/url"
	"strings"
)

// urlPath is a path in segments; empty ones do not count.
type urlPath struct {
	escaped string
	spans   []Span   // each segment within escaped
	texts   []string // each segment decoded
	first   int      // index of the segment after "models" or "tunedModels"; 0 where there is none
	tuned   bool     // it was "tunedModels"
	deploy  int      // index of the segment after Azure's "deployments"; 0 where there is none
	colon   int      // offset in escaped of the colon that may end a model's name, 0 where there is none
}

// splitPath cuts a path at its slashes.
func splitPath(escaped string) urlPath {
	p := urlPath{escaped: escaped, spans: make([]Span, 0, 8), texts: make([]string, 0, 8)}
	end := len(strings.TrimRight(escaped, "/"))
	for i := 0; i < end; {
		if escaped[i] == '/' {
			i++
			continue
		}
		n := strings.IndexByte(escaped[i:end], '/')
		if n < 0 {
			n = end - i
		}
		p.spans = append(p.spans, Span{i, i + n})
		p.texts = append(p.texts, pathText(escaped[i:i+n]))
		i += n
	}
	p.first = p.findModels()
	p.deploy = p.findDeployments()
	p.colon = p.findColon()
	return p
}

// findModels finds the collection of models: the first one behind a version,
// else the first at all, for Google's longer resource names
// (/v1/projects/…/publishers/google/models/{m}:predict).
func (p *urlPath) findModels() (first int) {
	for i, text := range p.texts[:max(0, len(p.texts)-1)] {
		if text != "models" && text != "tunedModels" {
			continue
		}
		direct := i > 0 && isVersion(p.texts[i-1])
		if first == 0 || direct {
			first, p.tuned = i+1, text == "tunedModels"
		}
		if direct {
			break
		}
	}
	return first
}

// findDeployments finds Azure's collection of deployments.
func (p *urlPath) findDeployments() (first int) {
	for i := 2; i < len(p.texts); i++ {
		if p.texts[i-2] == "openai" && p.texts[i-1] == "deployments" {
			return i
		}
	}
	return 0
}

// findColon finds the last colon of the last segment. Some clients escape it;
// such a one counts only before a word that is a method for certain, since a
// name may hold a colon.
func (p *urlPath) findColon() int {
	if len(p.spans) == 0 {
		return 0
	}
	s := p.spans[len(p.spans)-1]
	last := p.escaped[s.Start:s.End]
	if i := strings.LastIndexByte(last, ':'); i >= 0 {
		return s.Start + i
	}
	if i := strings.LastIndex(strings.ToUpper(last), "%3A"); i >= 0 && geminiVerbs[last[i+3:]] {
		return s.Start + i
	}
	return 0
}

// verb returns the word behind the colon, which in Google's APIs is a custom
// method of a resource: a model, an endpoint, or Code Assist (/v1internal:countTokens).
func (p *urlPath) verb() string {
	if p.colon == 0 {
		return ""
	}
	word := p.escaped[p.colon:p.spans[len(p.spans)-1].End]
	if word[0] == '%' {
		return word[3:]
	}
	return word[1:]
}

// modelName returns where the name of a model stands behind "models/": all that
// follows, since a name may hold slashes and clients do not always escape them.
func (p *urlPath) modelName() (Span, bool) {
	if p.first == 0 {
		return Span{}, false
	}
	return Span{p.spans[p.first].Start, p.spans[len(p.spans)-1].End}, true
}

// retrievable reports whether the collection of models stands where OpenAI's and
// Google's APIs have it, so that a GET of a member is a question about a model.
func (p *urlPath) retrievable() bool {
	before := p.first - 2
	return !p.tuned && (before < 0 || isVersion(p.texts[before]) || p.texts[before] == "openai")
}

// deployment returns where Azure's name of a deployment stands.
func (p *urlPath) deployment() (Span, bool) {
	if p.deploy == 0 {
		return Span{}, false
	}
	return p.spans[p.deploy], true
}

// codeAssist reports whether the path calls a method of Google's Code Assist,
// which belongs to no model: the body names it.
func (p *urlPath) codeAssist() bool {
	n := len(p.texts)
	return n > 0 && strings.HasPrefix(p.texts[n-1], "v1internal:")
}

// isVersion reports whether a segment is v1, v4, v1beta, v1alpha2 and the like.
func isVersion(segment string) bool {
	const digits = "0123456789"
	number, ok := strings.CutPrefix(segment, "v")
	stage := strings.TrimLeft(number, digits)
	if !ok || stage == number {
		return false
	}
	rest, ok := strings.CutPrefix(stage, "alpha")
	if !ok {
		rest = strings.TrimPrefix(stage, "beta")
	}
	return strings.Trim(rest, digits) == ""
}

// isPreview reports whether a segment is a version named alpha or beta.
func isPreview(segment string) bool {
	return isVersion(segment) && strings.ContainsAny(segment, "ab")
}

// queryAsksSSE reports whether a query asks Google's servers for an event stream.
func queryAsksSSE(query string) bool {
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key = queryText(key); (key == "alt" || key == "$alt") && queryText(value) == "sse" {
			return true
		}
	}
	return false
}

func queryText(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if text, err := url.QueryUnescape(s); err == nil {
		return text
	}
	return s
}

// pathText decodes a part of a path. What is wrongly escaped stays as it is.
func pathText(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// escapeSegment encodes all but RFC 3986's unreserved characters: url.PathEscape
// leaves the colon, which would end a name in Google's paths.
func escapeSegment(s string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+8)
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}
