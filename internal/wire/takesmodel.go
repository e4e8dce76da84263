package wire

import (
	"net/url"
	"strings"
)

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

// modelVerbs are the custom methods that ask a model, Google's and those of servers that
// have taken their form (TensorFlow Serving, KServe). All others change a model or are
// about who may use it: delete, export, transferOwnership, undeployModel.
var modelVerbs = func() map[string]bool {
	verbs := map[string]bool{"directPredict": true, "directRawPredict": true, "explain": true, "classify": true, "regress": true}
	for verb := range geminiVerbs {
		verbs[verb] = verb != "loadCodeAssist" && verb != "onboardUser"
	}
	return verbs
}()

// modelActions are the last segments behind a model's name in a path that ask it, beside
// modelEndings and Bedrock's: Replicate's, Triton's and KServe's. Triton's load and unload,
// say, are none.
var modelActions = map[string]bool{"predictions": true, "infer": true, "generate_stream": true}

// manages says whether a path that names a model is about something else than asking it,
// however often it was escaped: a custom method that is none of modelVerbs, or another
// action behind its name.
func manages(escapedPath string) bool {
	for range maxUnescaping {
		p := splitPath(escapedPath)
		verb, last := p.verb(), len(p.texts)-1
		switch {
		case verb != "":
			if !modelVerbs[verb] {
				return true
			}
		case p.first > 0 && last > p.first && !endsInAction(p.texts):
			return true
		}
		plain, err := url.PathUnescape(escapedPath)
		if err != nil || plain == escapedPath {
			return false
		}
		escapedPath = plain
	}
	return false
}

// endsInAction says whether a path ends in what is asked of a model.
func endsInAction(segments []string) bool {
	n := len(segments)
	last := segments[n-1]
	return modelEndings[last] || n > 1 && modelEndings[segments[n-2]+"/"+last] || modelActions[last] || bedrockActions[strings.ToLower(last)]
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
	e := ParseEndpoint(method, escapedPath, "")
	if e.Kind == Other && manages(escapedPath) {
		return false
	}
	if e.Kind != Other || e.Model != "" || len(NamesInPath(method, escapedPath)) > 0 {
		return true
	}
	segments := splitPath(escapedPath).texts
	n := len(segments)
	return n > 0 && modelEndings[segments[n-1]] || n > 1 && modelEndings[strings.Join(segments[n-2:], "/")]
}
