package wire

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
	if e, ok := usual[escapedPath]; ok && method == "POST" && rawQuery == "" {
		return e
	}
	return parseEndpoint(method, escapedPath, rawQuery)
}

// usual are the endpoints that nearly every request asks for, as they are read.
var usual = func() map[string]Endpoint {
	read := map[string]Endpoint{}
	for _, path := range []string{"/v1/chat/completions", "/chat/completions", "/v1/completions", "/v1/responses", "/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings", "/api/chat", "/api/generate"} {
		read[path] = parseEndpoint("POST", path, "")
	}
	return read
}()

// Usual says that a path is one of those that vendors' pages name, letter by letter:
// it tells nothing of who sent it.
func Usual(escapedPath string) bool {
	_, ok := usual[escapedPath]
	return ok
}

func parseEndpoint(method, escapedPath, rawQuery string) Endpoint {
	p := splitPath(escapedPath)
	e := Endpoint{Stream: queryAsksSSE(rawQuery)}
	var kind Kind
	name, named := p.modelName()
	deployment, deployed := p.deployment()
	switch verb := p.verb(); {
	case geminiVerbs[verb], verb != "" && method == "POST" && (named || p.codeAssist()):
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
	case deployed:
		e.Model = pathText(escapedPath[deployment.Start:deployment.End])
		kind, e.Dialect = pathKind(p.texts[p.deploy+1:])
	case named && p.retrievable() && (method == "GET" || method == "HEAD"):
		e.Model = pathText(escapedPath[name.Start:name.End])
		kind, e.Dialect = pathKind(p.texts[:p.first])
	default:
		kind, e.Dialect = pathKind(p.texts)
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

// pathKind tells endpoints apart by their last segments.
func pathKind(segments []string) (Kind, Dialect) {
	last := func(n int) string { // the n-th from the end, "" beyond the start
		if n < len(segments) {
			return segments[len(segments)-1-n]
		}
		return ""
	}
	switch end, before := last(0), last(1); {
	case end == "completions" && (before == "chat" || before == "fim" || before == "agents"):
		return Chat, OpenAI // Mistral answers /fim and /agents in the form of chat
	case end == "completions", end == "completion": // the latter is llama.cpp's own
		return Completions, OpenAI
	case end == "responses":
		return Responses, OpenAI
	case end == "messages" && last(2) != "threads" && last(2) != "completions":
		return Messages, Anthropic // the others are OpenAI's lists of messages
	case before == "audio" && (end == "transcriptions" || end == "translations"):
		return Transcription, OpenAI
	case before == "audio" && end == "speech":
		return Speech, OpenAI
	case before == "images" && (end == "generations" || end == "edits" || end == "variations"):
		return Images, OpenAI
	case before == "api":
		if kind, ok := ollamaActions[end]; ok {
			return kind, Ollama
		}
	}
	for i := range len(segments) - 1 {
		switch here, next := segments[i], segments[i+1]; {
		case here == "messages" && (next == "count_tokens" || next == "batches"):
			return Other, Anthropic
		case isPreview(here) && geminiResources[next]:
			return Other, Gemini
		case here == "api" && next == "blobs":
			return Other, Ollama
		}
	}
	return Other, OpenAI
}
