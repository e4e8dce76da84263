// Package wire reads the bytes of LLM APIs: which model a request asks for and
// where that name stands in its body or path, what an endpoint's answers look
// like, whether an answer is healthy, what it used, and whose fault a failure is.
//
// It knows JSON, multipart forms, content codings, event streams, and the
// dialects of OpenAI, Anthropic, Gemini and Ollama. It never knows the
// configuration, who may serve a request, net/http, or a clock: times are
// passed in. It judges parsed fields only, never text that happens to look like
// an error, and it changes nothing but the value of model.
//
// Facts about vendors' bytes come from their public documentation and SDKs, as
// of August 2026; the fixtures in testdata pin them.
package wire
