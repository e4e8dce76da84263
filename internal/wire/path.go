package wire

import (
	"net/url"
	"strings"
)

// Dialect is a family of APIs: whose envelope errors use and whose reader
// understands the answers.
type Dialect uint8

// The dialects. OpenAI is also what an unknown path gets: most servers of other
// make copy its error envelope.
const (
	OpenAI Dialect = iota
	Anthropic
	Gemini
	Ollama
)

// String returns the dialect's name in lower case.
func (d Dialect) String() string {
	switch d {
	case OpenAI:
		return "openai"
	case Anthropic:
		return "anthropic"
	case Gemini:
		return "gemini"
	case Ollama:
		return "ollama"
	}
	return "unknown"
}

// Kind is what an endpoint answers with.
type Kind uint8

// The kinds. Other is every endpoint whose answers are not read for content:
// embeddings, models, files, batches, token counts, unknown ones.
const (
	Other Kind = iota
	Chat
	Completions
	Responses
	Messages
	Generate // Gemini generateContent and streamGenerateContent
	OllamaChat
	OllamaGenerate
	Transcription
	Speech
	Images
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"other", "chat", "completions", "responses", "messages", "generate",
		"ollama chat", "ollama generate", "transcription", "speech", "images"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Endpoint is what a request line alone says about a request.
type Endpoint struct {
	Kind    Kind
	Dialect Dialect
	// Generation is true where an answer must have content to be healthy: Chat,
	// Completions, Responses, Messages, Generate, OllamaChat and OllamaGenerate.
	Generation bool
	// Model is the model that the path names, decoded; "" where it names none.
	Model string
	// Stream is true where the path or the query asks to stream:
	// :streamGenerateContent, alt=sse.
	Stream bool
	// StreamDefault is true where a body without a stream member asks to stream.
	StreamDefault bool
	// Array is true where the stream is one JSON array: Gemini's
	// :streamGenerateContent without alt=sse.
	Array bool
}

// ParseEndpoint reads a request line. escapedPath is the path as the client
// wrote it, without the query. Any base path may stand before the endpoint's own
// segments, the version may be missing, and slashes at both ends do not matter.
//
// Kind is Other for every method but POST, since the same paths list, fetch and
// delete by other methods; the dialect is the path's whatever the method.
func ParseEndpoint(method, escapedPath, rawQuery string) Endpoint {
	p := splitPath(escapedPath)
	e := Endpoint{Stream: queryAsksSSE(rawQuery)}
	var kind Kind
	name, named := p.modelName()
	switch verb := p.verb(); {
	case verb != "" && (method == "POST" || geminiVerbs[verb]):
		e.Dialect = Gemini
		if named {
			e.Model = pathText(escapedPath[name.Start:p.colon])
		}
		switch verb {
		case "generateContent":
			kind = Generate
		case "streamGenerateContent":
			kind = Generate
			e.Array = !e.Stream
			e.Stream = true
		}
	default:
		kind, e.Dialect = p.kind()
		if deployment, ok := p.deployment(); ok {
			e.Model = pathText(escapedPath[deployment.Start:deployment.End])
		} else if named && !p.tuned && (method == "GET" || method == "HEAD") {
			e.Model = pathText(escapedPath[name.Start:name.End])
		}
	}
	if method != "POST" {
		e.Array = false
		return e
	}
	e.Kind = kind
	switch kind {
	case Chat, Completions, Responses, Messages, Generate:
		e.Generation = true
	case OllamaChat, OllamaGenerate:
		e.Generation, e.StreamDefault = true, true
	}
	return e
}

// WithModel returns escapedPath with the model it names replaced by one
// percent-encoded segment, every other byte as it was. Where Model is "", or
// the path does not name that model, it comes back unchanged. escapedPath is the
// path that was parsed, or that path behind another base path.
func (e Endpoint) WithModel(escapedPath, model string) string {
	if e.Model == "" {
		return escapedPath
	}
	p := splitPath(escapedPath)
	var spans [3]Span
	if deployment, ok := p.deployment(); ok {
		spans[0] = deployment
	}
	if name, ok := p.modelName(); ok {
		// A colon may be part of a name (GET /v1/models/llama3:8b) or end it.
		// Which of the two it was shows in the name that was read.
		spans[1] = name
		if p.colon > 0 {
			spans[2] = Span{name.Start, p.colon}
		}
	}
	for _, s := range spans {
		if s.End > s.Start && pathText(escapedPath[s.Start:s.End]) == e.Model {
			return escapedPath[:s.Start] + escapeSegment(model) + escapedPath[s.End:]
		}
	}
	return escapedPath
}

// geminiVerbs are the custom methods of Google's model resources that are known
// by name; behind a POST any other word counts too.
// Source: the discovery documents of generativelanguage and aiplatform, v1 and v1beta.
var geminiVerbs = map[string]bool{
	"generateContent": true, "streamGenerateContent": true, "countTokens": true, "computeTokens": true,
	"embedContent": true, "batchEmbedContents": true, "batchGenerateContent": true, "asyncBatchEmbedContent": true,
	"generateAnswer": true, "bidiGenerateContent": true, "generateText": true, "generateMessage": true,
	"countTextTokens": true, "countMessageTokens": true, "embedText": true, "batchEmbedText": true,
	"predict": true, "predictLongRunning": true, "fetchPredictOperation": true,
	"rawPredict": true, "streamRawPredict": true, "serverStreamingPredict": true, "loadCodeAssist": true, "onboardUser": true,
}

// geminiResources are Google's collections that no other API keeps under a
// version named alpha or beta.
var geminiResources = map[string]bool{
	"models": true, "tunedModels": true, "cachedContents": true, "files": true, "batches": true,
	"fileSearchStores": true, "corpora": true, "operations": true, "interactions": true,
}

// ollamaActions are the last segments of Ollama's own API, each behind "api".
// Source: ollama server/routes.go.
var ollamaActions = map[string]Kind{
	"chat": OllamaChat, "generate": OllamaGenerate,
	"tags": Other, "show": Other, "embed": Other, "embeddings": Other, "pull": Other, "push": Other, "create": Other,
	"copy": Other, "delete": Other, "ps": Other, "version": Other,
}

// splitPath cuts a path at its slashes.
func splitPath(escaped string) urlPath {
	p := urlPath{escaped: escaped}
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
	p.colon = p.findColon()
	return p
}

// urlPath is a path in segments; empty ones do not count.
type urlPath struct {
	escaped string
	spans   []Span   // each segment within escaped
	texts   []string // each segment decoded
	first   int      // index of the segment after "models" or "tunedModels"; 0 where there is none
	tuned   bool     // it was "tunedModels"
	colon   int      // offset in escaped of the colon that may end a model's name, 0 where there is none
}

// last returns the n-th segment from the end, decoded, "" beyond the start.
func (p *urlPath) last(n int) string {
	if n < len(p.texts) {
		return p.texts[len(p.texts)-1-n]
	}
	return ""
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

// verb returns the word behind the colon: the custom method of a Google
// resource, either of a model or of Code Assist (/v1internal:generateContent).
func (p *urlPath) verb() string {
	if p.colon == 0 || p.first == 0 && !strings.HasPrefix(p.last(0), "v1internal") {
		return ""
	}
	end := p.spans[len(p.spans)-1].End
	word := p.escaped[p.colon:end]
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

// deployment returns where Azure's name of a deployment stands.
func (p *urlPath) deployment() (Span, bool) {
	for i := 0; i+2 < len(p.texts); i++ {
		if p.texts[i] == "openai" && p.texts[i+1] == "deployments" {
			return p.spans[i+2], true
		}
	}
	return Span{}, false
}

// kind tells endpoints apart by their last segments.
func (p *urlPath) kind() (Kind, Dialect) {
	switch last, before := p.last(0), p.last(1); {
	case last == "completions" && (before == "chat" || before == "fim" || before == "agents"):
		return Chat, OpenAI // Mistral answers /fim and /agents in the form of chat
	case last == "completions", last == "completion": // the latter is llama.cpp's own
		return Completions, OpenAI
	case last == "responses":
		return Responses, OpenAI
	case last == "messages" && p.last(2) != "threads" && p.last(2) != "completions":
		return Messages, Anthropic // the others are OpenAI's lists of messages
	case before == "audio" && (last == "transcriptions" || last == "translations"):
		return Transcription, OpenAI
	case before == "audio" && last == "speech":
		return Speech, OpenAI
	case before == "images" && (last == "generations" || last == "edits" || last == "variations"):
		return Images, OpenAI
	}
	for i := range len(p.texts) - 1 {
		switch here, next := p.texts[i], p.texts[i+1]; {
		case here == "messages" && (next == "count_tokens" || next == "batches"):
			return Other, Anthropic
		case isPreview(here) && geminiResources[next]:
			return Other, Gemini
		case here == "api" && next == "blobs":
			return Other, Ollama
		}
	}
	if kind, ok := ollamaActions[p.last(0)]; ok && p.last(1) == "api" {
		return kind, Ollama
	}
	return Other, OpenAI
}

// isVersion reports whether a segment is v1, v4, v1beta, v1alpha2 and the like.
func isVersion(segment string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(segment, "v"), "0123456789")
	if len(digits)+1 >= len(segment) || segment[0] != 'v' {
		return false
	}
	for _, stage := range []string{"alpha", "beta"} {
		if rest, ok := strings.CutPrefix(digits, stage); ok {
			digits = strings.TrimLeft(rest, "0123456789")
			break
		}
	}
	return digits == ""
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
