package wire

import "strings"

// modelEndings are the last segments of the endpoints, beside those that generate, whose
// body names the model that serves it: embeddings, rerankers, moderation and classifying
// (OpenAI, Mistral, Cohere, Jina, Voyage), reading of documents, counting of tokens,
// pictures and video (OpenAI and relays, Alibaba, Volcengine), OpenAI's realtime API,
// Anthropic's older completions and its batches (whose requests name it too), Google's
// interactions, and what vLLM, SageMaker, llama.cpp and Ollama have for the same.
var modelEndings = map[string]bool{
	"embeddings": true, "contextualizedembeddings": true, "multimodalembeddings": true, "embed": true, "rerank": true, "reranking": true,
	"moderations": true, "classify": true, "classifications": true, "score": true, "pooling": true, "ocr": true,
	"tokenize": true, "detokenize": true, "count_tokens": true, "input_tokens": true, "compact": true, "complete": true, "infill": true,
	"invocations": true, "interactions": true, "chat": true, "generate": true, "generation": true, "generations": true, "videos": true,
	"video-synthesis": true, "image-synthesis": true, "generations/tasks": true,
	"realtime/calls": true, "realtime/sessions": true, "realtime/client_secrets": true, "realtime/transcription_sessions": true,
	"messages/batches": true, "api/show": true,
}

// TakesModel says whether a request line is one of a model's: it asks a model that its
// path or its body names, or about one that its path names. Everything else, such as
// files, stored answers and the account's own settings, belongs to no model, whatever its
// body says. It is for whoever may use certain models only.
func TakesModel(method, escapedPath string) bool {
	switch method {
	case "GET", "HEAD":
		return ParseEndpoint(method, escapedPath, "").Model != ""
	case "POST":
	default:
		return false
	}
	if e := ParseEndpoint(method, escapedPath, ""); e.Kind != Other || e.Model != "" || len(NamesInPath(method, escapedPath)) > 0 {
		return true
	}
	segments := splitPath(escapedPath).texts
	n := len(segments)
	return n > 0 && modelEndings[segments[n-1]] || n > 1 && modelEndings[strings.Join(segments[n-2:], "/")]
}
