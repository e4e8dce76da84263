package drill

import "time"

// Act is one scene of the demo: a first upstream that fails in its own way, a
// second that stands in, and a request that both would get.
type Act struct {
	Title string
	Does  string // what the first upstream does, one sentence
	Naive string // what a client that talks to the first upstream alone gets
	Fault Fault  // the first upstream's script is Fault.Script(Answer)

	// Answer is what both upstreams would say if they were well; the second one
	// runs Healthy(Answer). Its Gap makes it look typed.
	Answer Answer

	// Complete says that the request survives only where the virtual model has
	// `delivery: complete`, since the fault comes after the release.
	Complete bool

	path, body string // body up to the model, and after it
}

// Query returns the act's request, for the given model. It asks for a stream.
func (a Act) Query(model string) Query {
	return Query{Path: a.path, Body: []byte(`{"model":` + quote(model) + a.body)}
}

// Story returns the acts of the demo in their order. Each is over as soon as the
// second upstream has spoken, which takes about a second; the stall takes the
// proxy's stall clock on top, which the demo sets short.
func Story() []Act {
	const (
		chatBody      = `,"stream":true,"messages":[{"role":"user","content":"Will the show go on?"}]}`
		messagesBody  = `,"stream":true,"max_tokens":200,"messages":[{"role":"user","content":"Will the show go on?"}]}`
		responsesBody = `,"stream":true,"input":"Will the show go on?"}`
	)
	acts := []Act{
		{
			Title: "A limit that says only in words how long it lasts",
			Does:  "answers 429; when to come back stands in its sentence, and in no header",
			Naive: "HTTP 429. SDKs try twice more within seconds, get the same, and raise an error.",
			Fault: named("429-text"),
			Answer: Answer{
				Text:       "The lead has lost his voice for seven minutes. I know the lines.",
				RetryAfter: 7*time.Minute + 12*time.Second,
			},
			path: "/v1/chat/completions", body: chatBody,
		},
		{
			Title:  "A 200 with an error inside",
			Does:   "answers 200 OK to a stream, and the body is a JSON error",
			Naive:  "HTTP 200 and an empty message: the status said that all was well.",
			Fault:  named("200-error"),
			Answer: Answer{Text: "A bow is no performance. The curtain was up, and nobody was there."},
			path:   "/v1/chat/completions", body: chatBody,
		},
		{
			Title:  "A stream that ends without a word",
			Does:   "opens an answer, completes it in perfect form, and says nothing in between",
			Naive:  "HTTP 200, a finished stream, and a blank turn. No error, so nothing retries.",
			Fault:  named("empty-completed"),
			Answer: Answer{Text: "Entrance, exit, and not one line between. I speak them instead."},
			path:   "/v1/messages", body: messagesBody,
		},
		{
			Title:  "A stall after two characters",
			Does:   "says two characters, keeps the connection, and falls silent",
			Naive:  "Two characters and a blinking cursor, until a timeout ten minutes away.",
			Fault:  named("stall-two-characters"),
			Answer: Answer{Text: "If the lead freezes in mid-word, the line is started afresh, by me."},
			path:   "/v1/chat/completions", body: chatBody,
		},
		{
			Title:  "A connection reset before the first header",
			Does:   "takes the request and resets the connection",
			Naive:  "A connection error, and no telling whether the request was served.",
			Fault:  named("reset-before-headers"),
			Answer: Answer{Text: "The lead walked out at the stage door. I was in the wings."},
			path:   "/v1/messages", body: messagesBody,
		},
		{
			Title:    "A response.failed when nearly all was said",
			Does:     "streams the whole answer but its end, and then reports that it failed",
			Naive:    "Most of an answer and then an error: the turn is lost, the tokens are paid.",
			Fault:    named("failed-late"),
			Answer:   Answer{Text: "Held back until the last line was safe, so nobody saw the first try fall."},
			Complete: true,
			path:     "/v1/responses", body: responsesBody,
		},
		{
			Title:  "A dead key",
			Does:   "answers 401 to everything",
			Naive:  "HTTP 401, now and on every request until a person changes the key.",
			Fault:  named("401"),
			Answer: Answer{Text: "The lead is not on the list any more. The show goes on without him."},
			path:   "/v1/chat/completions", body: chatBody,
		},
	}
	for i := range acts {
		acts[i].Answer.Gap = 40 * time.Millisecond
	}
	return acts
}

// named returns a fault of the catalogue.
func named(name string) Fault {
	f, ok := Find(name)
	if !ok {
		panic("drill: no fault " + name)
	}
	return f
}
