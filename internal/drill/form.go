package drill

import (
	"bytes"
	"encoding/json"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
)

// dialect is whose error objects a client of an endpoint expects.
type dialect uint8

const (
	openAI dialect = iota
	anthropic
	gemini
	ollama
)

// shape is what an answer of an endpoint looks like.
type shape uint8

const (
	unknownShape shape = iota
	chat
	completions
	responses
	messages
	countTokens
	generate // Gemini
	geminiCount
	geminiEmbed
	geminiBatchEmbed
	ollamaChat
	ollamaGenerate
	ollamaEmbed
	embeddings
	moderations
	modelList
	modelEntry
	files
	transcription
	speech
	images
)

// form is what a request asks for, as far as an answer depends on it.
type form struct {
	shape   shape
	dialect dialect
	model   string
	stream  bool
	array   bool // Gemini: a stream as one JSON array
	usage   bool // chat and completions: stream_options.include_usage
	base64  bool // embeddings: encoding_format
	inputs  int  // embeddings: how many
	text    bool // transcription: response_format is no JSON
	file    part // files: what was uploaded
}

// part is the file of an upload.
type part struct {
	name    string
	purpose string
	size    int
}

// suffixes maps the ends of paths to shapes; the first that fits wins.
var suffixes = []struct {
	end     string
	shape   shape
	dialect dialect
}{
	{"/chat/completions", chat, openAI},
	{"/completions", completions, openAI},
	{"/responses", responses, openAI},
	{"/messages/count_tokens", countTokens, anthropic},
	{"/messages", messages, anthropic},
	{":streamGenerateContent", generate, gemini},
	{":generateContent", generate, gemini},
	{":countTokens", geminiCount, gemini},
	{":batchEmbedContents", geminiBatchEmbed, gemini},
	{":embedContent", geminiEmbed, gemini},
	{"/api/chat", ollamaChat, ollama},
	{"/api/generate", ollamaGenerate, ollama},
	{"/api/embed", ollamaEmbed, ollama},
	{"/api/tags", modelList, ollama},
	{"/v1beta/models", modelList, gemini},
	{"/models", modelList, openAI},
	{"/embeddings", embeddings, openAI},
	{"/moderations", moderations, openAI},
	{"/audio/transcriptions", transcription, openAI},
	{"/audio/translations", transcription, openAI},
	{"/audio/speech", speech, openAI},
	{"/images/generations", images, openAI},
	{"/images/edits", images, openAI},
	{"/files", files, openAI},
}

// formOf reads what r asks for.
func formOf(r Request) form {
	path := strings.TrimRight(r.Path(), "/")
	var f form
	for _, s := range suffixes {
		if strings.HasSuffix(path, s.end) {
			f.shape, f.dialect = s.shape, s.dialect
			break
		}
	}
	_, method, hasMethod := strings.Cut(path, "/models/")
	switch {
	case f.shape == unknownShape && strings.Contains(path, "/api/"):
		f.dialect = ollama
	case hasMethod && f.dialect == gemini:
		f.model, _, _ = strings.Cut(method, ":")
	case hasMethod && f.shape == unknownShape && r.Method == "GET":
		f.shape, f.model = modelEntry, method
		if strings.Contains(path, "/v1beta/") {
			f.dialect = gemini
		}
	}
	if (f.shape == modelList || f.shape == modelEntry) && r.Get("anthropic-version") != "" {
		f.dialect = anthropic
	}
	if _, rest, ok := strings.Cut(path, "/deployments/"); ok {
		f.model, _, _ = strings.Cut(rest, "/")
	}
	if m, err := url.PathUnescape(f.model); err == nil {
		f.model = m
	}
	if f.shape == generate {
		f.stream = strings.HasSuffix(path, ":streamGenerateContent")
		f.array = f.stream && !strings.Contains("&"+r.Query()+"&", "&alt=sse&")
	}
	f.readBody(r)
	return f
}

// readBody adds what the body says.
func (f *form) readBody(r Request) {
	if kind, params, err := mime.ParseMediaType(r.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		f.readMultipart(r.Body, params["boundary"])
		return
	}
	var b struct {
		Model         string
		Stream        *bool
		StreamFormat  string `json:"stream_format"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		EncodingFormat string `json:"encoding_format"`
		Input          json.RawMessage
		Requests       []json.RawMessage
	}
	// A body that does not fit leaves the defaults: fakes answer everything.
	_ = json.Unmarshal(r.Body, &b)
	if b.Model != "" {
		f.model = b.Model
	}
	switch {
	case f.shape == generate:
	case b.Stream != nil:
		f.stream = *b.Stream
	default:
		f.stream = f.shape == ollamaChat || f.shape == ollamaGenerate || b.StreamFormat == "sse"
	}
	f.usage = b.StreamOptions.IncludeUsage
	f.base64 = b.EncodingFormat == "base64"
	f.inputs = max(1, len(b.Requests))
	var several []json.RawMessage
	if json.Unmarshal(b.Input, &several) == nil && len(several) > 0 {
		f.inputs = len(several)
		if several[0][0] != '"' && several[0][0] != '[' { // one input as token numbers
			f.inputs = 1
		}
	}
}

// readMultipart adds what the parts of a form say.
func (f *form) readMultipart(body []byte, boundary string) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return
		}
		var value bytes.Buffer
		value.ReadFrom(p)
		switch p.FormName() {
		case "model":
			f.model = value.String()
		case "stream":
			f.stream = value.String() == "true" || value.String() == "1"
		case "response_format":
			f.text = value.String() == "text" || value.String() == "srt" || value.String() == "vtt"
		case "purpose":
			f.file.purpose = value.String()
		case "file":
			f.file.name, f.file.size = p.FileName(), value.Len()
		}
	}
}

// Model returns the model the request asks for, in its body or its path, "" where
// it names none.
func (r Request) Model() string { return formOf(r).model }

// Stream reports whether the request asks for a stream.
func (r Request) Stream() bool { return formOf(r).stream }
