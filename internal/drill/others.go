package drill

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
)

// vector is what every embedding is.
var vector = []float32{0.125, -0.25, 0.5}

// other answers the endpoints that generate no chat.
func (a Answer) other(f form) play {
	p := play{contentType: "application/json"}
	count := a.Usage.Input // an answer by itself, also where usage is not reported
	if count < 0 {
		count = DefaultUsage.Input
	}
	switch f.shape {
	case countTokens:
		p.body = []byte(`{"input_tokens":` + num(count) + `}`)
	case geminiCount:
		p.body = []byte(`{"totalTokens":` + num(count) + `,"promptTokensDetails":[{"modality":"TEXT","tokenCount":` + num(count) + `}]}`)
	case embeddings:
		p.body = []byte(a.embeddings(f))
	case geminiEmbed:
		p.body = []byte(`{"embedding":{"values":[0.125,-0.25,0.5]}}`)
	case geminiBatchEmbed:
		p.body = []byte(`{"embeddings":[` + repeat(`{"values":[0.125,-0.25,0.5]}`, f.inputs) + `]}`)
	case ollamaEmbed:
		usage := ""
		if a.Usage.Input >= 0 {
			usage = `,"prompt_eval_count":` + num(a.Usage.Input)
		}
		p.body = []byte(`{"model":` + quote(a.Model) + `,"embeddings":[` + repeat(`[0.125,-0.25,0.5]`, f.inputs) + `],"total_duration":14143917,"load_duration":1019500` + usage + `}`)
	case moderations:
		p.body = []byte(`{"id":"modr-` + a.ID + `","model":` + quote(a.Model) + `,"results":[{"flagged":false,"categories":{"violence":false},"category_scores":{"violence":0.0001}}]}`)
	case modelList:
		p.body = []byte(a.modelList(f))
	case modelEntry:
		p.body = []byte(a.modelEntry(f))
	case files:
		p.body = []byte(`{"id":"file-` + a.ID + `","object":"file","bytes":` + num(f.file.size) + `,"created_at":` + created + `,"expires_at":null,"filename":` + quote(f.file.name) + `,"purpose":` + quote(f.file.purpose) + `,"status":"processed"}`)
	case transcription:
		return a.transcription(f)
	case speech:
		if f.stream {
			p.format, p.contentType = sse, "text/event-stream"
			p.blank = event{"", `{"type":"speech.audio.delta","audio":""}`}
			p.content = []event{{"", `{"type":"speech.audio.delta","audio":"` + base64.StdEncoding.EncodeToString([]byte(a.Text)) + `"}`}}
			p.close = []event{{"", `{"type":"speech.audio.done","usage":` + a.tokenUsage() + `}`}}
			return p
		}
		// An MPEG frame header, and the text where the sound would be.
		p.contentType, p.body = "audio/mpeg", append([]byte{0xff, 0xfb, 0x90, 0x64}, a.Text...)
	case images:
		p.body = []byte(`{"created":` + created + `,"data":[{"b64_json":"` + base64.StdEncoding.EncodeToString([]byte(a.Text)) + `"}],"usage":` + a.tokenUsage() + `}`)
	default:
		p.body = []byte(`{"id":"drill_` + a.ID + `","object":"drill","text":` + quote(a.Text) + `}`)
	}
	return p
}

func (a Answer) embeddings(f form) string {
	value := "[0.125,-0.25,0.5]"
	if f.base64 {
		var b []byte
		for _, v := range vector {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		value = quote(base64.StdEncoding.EncodeToString(b))
	}
	var data []string
	for i := range f.inputs {
		data = append(data, `{"object":"embedding","index":`+num(i)+`,"embedding":`+value+`}`)
	}
	usage := ""
	if n := a.Usage.Input; n >= 0 {
		usage = `,"usage":{"prompt_tokens":` + num(n) + `,"total_tokens":` + num(n) + `}`
	}
	return `{"object":"list","data":[` + strings.Join(data, ",") + `],"model":` + quote(a.Model) + usage + `}`
}

// modelList lists one model, Model or "drill-model".
func (a Answer) modelList(f form) string {
	one := a.modelEntry(f)
	switch f.dialect {
	case anthropic:
		return `{"data":[` + one + `],"has_more":false,"first_id":` + quote(a.Model) + `,"last_id":` + quote(a.Model) + `}`
	case gemini, ollama:
		return `{"models":[` + one + `]}`
	default:
		return `{"object":"list","data":[` + one + `]}`
	}
}

func (a Answer) modelEntry(f form) string {
	m := quote(a.Model)
	switch f.dialect {
	case anthropic:
		return `{"type":"model","id":` + m + `,"display_name":` + m + `,"created_at":"2026-01-01T00:00:00Z"}`
	case gemini:
		return `{"name":` + quote("models/"+a.Model) + `,"version":"001","displayName":` + m + `,"inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]}`
	case ollama:
		return `{"name":` + m + `,"model":` + m + `,"modified_at":"2026-01-01T00:00:00Z","size":4661224676,"digest":"` + strings.Repeat("0d", 32) + `","details":{"parent_model":"","format":"gguf","family":"drill","families":["drill"],"parameter_size":"8B","quantization_level":"Q4_0"}}`
	default:
		return `{"id":` + m + `,"object":"model","created":` + created + `,"owned_by":"drill"}`
	}
}

func (a Answer) transcription(f form) play {
	if f.stream {
		p := play{format: sse, contentType: "text/event-stream"}
		p.blank = event{data: `{"type":"transcript.text.delta","delta":""}`}
		for _, s := range split(a.Text, a.Pieces) {
			p.content = append(p.content, event{data: `{"type":"transcript.text.delta","delta":` + quote(s) + `}`})
		}
		p.close = []event{{data: `{"type":"transcript.text.done","text":` + quote(a.Text) + `,"usage":` + a.tokenUsage() + `}`}}
		return p
	}
	if f.text {
		return play{contentType: "text/plain; charset=utf-8", body: []byte(a.Text + "\n")}
	}
	return play{contentType: "application/json", body: []byte(`{"text":` + quote(a.Text) + `,"usage":` + a.tokenUsage() + `}`)}
}

// tokenUsage returns the usage object of audio and images.
func (a Answer) tokenUsage() string {
	u := a.Usage
	if u.Input < 0 {
		return "null"
	}
	return `{"type":"tokens","input_tokens":` + num(u.Input) + `,"output_tokens":` + num(u.Output) + `,"total_tokens":` + num(u.Input+u.Output) + `}`
}

// repeat returns n copies of s with commas between.
func repeat(s string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+",", n), ",")
}
