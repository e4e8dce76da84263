package drill

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Scenario is one fault put to a whole chain: whoever is called first fails in a
// certain way, whoever is called after that is well, unless the scenario says
// otherwise, and what the client gets is judged.
type Scenario struct {
	ID    string // "S01" to "S16" are FailoverBench's, "U01" and on are ours
	Name  string // for command lines: lower case, digits and hyphens
	Title string // a few words
	Fault string // what the upstream that is called first does
	Right string // what a good proxy makes of it

	// Real keeps clocks as they are where the drill divides them: for scenarios
	// about waits that upstreams ask for in whole seconds.
	Real bool

	// finest is the most that clocks may be divided by, for scenarios about many
	// requests one after another; 0 = anything.
	finest float64

	ask      asking
	refusal  bool          // the right ending is an error that says what is wrong
	patience time.Duration // how long a client waits at most; 0 = the chain's own
	checks   []check
	// script returns what a candidate answers with in place of a, given that it is
	// the rank-th to be called, the first being 0. nil, the function or the script,
	// stands for a.
	script func(t *take, rank int, a Answer) Script
	// play asks what the scenario asks; nil is one request.
	play func(t *take) sight
}

// Benchmark reports whether the scenario is one of FailoverBench's.
func (s Scenario) Benchmark() bool { return strings.HasPrefix(s.ID, "S") }

// Scenarios is the catalogue: the sixteen of FailoverBench, and ours. It belongs to this
// package, and is made when it is first asked for.
func Scenarios() []Scenario { return scenarios() }

var scenarios = sync.OnceValue(func() []Scenario { return slices.Concat(benchmark(), own()) })

// asking is what kind of answer a client asks for.
type asking uint8

const (
	streamed asking = iota
	wholly          // in one piece
	withTool        // streamed, and the answer calls a tool
)

// Dialect is the API in which a drill asks.
type Dialect string

// The dialects.
const (
	Chat      Dialect = "chat"
	Responses Dialect = "responses"
	Messages  Dialect = "messages"
	Gemini    Dialect = "gemini"
	Ollama    Dialect = "ollama"
)

// Dialects lists them, the default first.
var Dialects = []Dialect{Chat, Responses, Messages, Gemini, Ollama}

// String names the dialect for people.
func (d Dialect) String() string {
	switch d {
	case Responses:
		return "OpenAI responses"
	case Messages:
		return "Anthropic messages"
	case Gemini:
		return "Gemini"
	case Ollama:
		return "Ollama"
	}
	return "OpenAI chat"
}

// prompt is what every request of a drill says.
const prompt = "Why does a gateway earn trust only when the provider behind it misbehaves?"

// query is a request for an answer of the model, in the dialect.
func (d Dialect) query(model string, a asking) Query {
	stream := "true"
	if a == wholly {
		stream = "false"
	}
	head := `{"model":` + quote(model) + `,"stream":` + stream + `,`
	turn := `[{"role":"user","content":` + quote(prompt) + `}]`
	switch d {
	case Responses:
		return Query{Path: "/v1/responses", Body: []byte(head + `"store":false,"input":` + turn + `}`)}
	case Messages:
		return Query{Path: "/v1/messages", Header: []string{"anthropic-version", "2023-06-01"}, Body: []byte(head + `"max_tokens":400,"messages":` + turn + `}`)}
	case Gemini:
		method := ":streamGenerateContent?alt=sse"
		if a == wholly {
			method = ":generateContent"
		}
		return Query{Path: "/v1beta/models/" + strings.ReplaceAll(url.PathEscape(model), ":", "%3A") + method,
			Body: []byte(`{"contents":[{"role":"user","parts":[{"text":` + quote(prompt) + `}]}]}`)}
	case Ollama:
		return Query{Path: "/api/chat", Body: []byte(head + `"messages":` + turn + `}`)}
	}
	usage := `"stream_options":{"include_usage":true},`
	if a == wholly {
		usage = ""
	}
	return Query{Path: "/v1/chat/completions", Body: []byte(head + usage + `"messages":` + turn + `}`)}
}

// says is what a candidate of a drill answers when it is well. Each says something
// else, from its second word on, so that nothing made of two answers, and no part
// of one, can pass for a whole one.
func says(candidate int, a asking, gap time.Duration) Answer {
	answer := Answer{
		Text:  fmt.Sprintf("Upstream %d says this: %s", candidate+1, sermon),
		ID:    fmt.Sprintf("drill%04d", candidate+1),
		Usage: Usage{Input: 21, Cached: 8, Output: 60 + candidate},
		Gap:   gap,
	}
	if a == withTool {
		answer.Tool = &Tool{Name: "sound_the_horn", Arguments: fmt.Sprintf(`{"times":"%d"}`, candidate+1)}
	}
	return answer
}

// sermon makes answers sixty words long.
const sermon = "a gateway earns its trust in bad weather, for in good weather everything is trusted and nothing is learnt. " +
	"Let the provider fall silent, break off or answer with an error in fine clothes: whoever asked should get one whole answer, " +
	"from one upstream, or be told plainly that there is none to be had today."
