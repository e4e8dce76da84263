package drill

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// try runs a fault against one request, in a bubble, for at most two minutes.
func (f Fault) try(t *testing.T, a Answer, q Query) (r Reply, th *theatre) {
	th = stageOn(t, f.Script(a))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return th.ask(t, ctx, q), th
}

// terminal finds what ends a stream well, in any dialect.
var terminal = regexp.MustCompile(`"finish_reason":"|\[DONE\]|"response\.completed"|"message_stop"|"finishReason"|"done":true|"transcript\.text\.done"`)

// Each fault does what its fields promise, in every dialect and format.
func TestEveryFaultKeepsItsPromiseInEveryDialect(t *testing.T) {
	for _, fault := range Faults() {
		for i, ask := range asks {
			if big := fault.Name == "long-line" || fault.Name == "endless-headers"; big && i%4 != 0 {
				continue // megabytes each; a few forms show as much as all
			}
			t.Run(fault.Name+"/"+ask.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, th := fault.try(t, Answer{}, ask.query)
					hung := errors.Is(r.Err, context.DeadlineExceeded)
					body := r.Body
					if r.Get("Content-Encoding") == "gzip" && fault.Healthy {
						body = unzip(t, body)
					}
					said := Spoken(body)
					applies := fault.Applies(ask.request())
					switch {
					case fault.Healthy || !applies:
						want := DefaultText
						switch fault.Name {
						case "length-empty", "filter-empty":
							want = ""
						case "long-line":
							want = strings.Repeat("The line is long. ", 2<<20/18)
						}
						if r.Status != 200 || said != want {
							t.Errorf("status %d, says %.80q of %d bytes", r.Status, said, len(said))
						}
						if !r.Clean && fault.Name != "reset-after-terminal" {
							t.Errorf("ended with %v", r.Err)
						}
						if ask.streams() && fault.Name != "json-for-sse" && !terminal.Match(body) && want != "" {
							t.Error("the stream has no terminal event")
						}
					case fault.AfterRelease && ask.streams():
						if r.Status != 200 || utf8.RuneCountInString(said) < 10 {
							t.Errorf("status %d, says only %q", r.Status, said)
						}
						if terminal.Match(body) {
							t.Errorf("the stream has a terminal event:\n%s", body)
						}
					case fault.Name == "sse-for-json", fault.Name == "gzip-unlabelled":
						if r.Status != 200 || !r.Clean {
							t.Errorf("%+v", r)
						}
					case ask.streams():
						if utf8.RuneCountInString(said) >= 10 {
							t.Errorf("says %q although it fails before the release", said)
						}
					default:
						if r.Status == 200 && r.Clean && said != "" && fault.Name != "error-in-choice" {
							t.Errorf("a good answer: %s", body)
						}
					}
					if hung && !th.Await(t.Context(), func() bool { return th.Gone() == 1 }) {
						t.Error("the upstream did not notice that its peer had left")
					}
					if !hung && r.Elapsed > time.Minute {
						t.Errorf("took %v", r.Elapsed)
					}
					if r.Status >= 400 && r.Get("Content-Type") == "application/json" && !json.Valid(r.Body) {
						t.Errorf("no JSON: %s", r.Body)
					}
				})
			})
		}
	}
}

func unzip(t *testing.T, p []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(p))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What each fault looks like to a client that streams a chat. says is what the text
// of the answer is; has is found in head or body.
func TestFaultsOfAChatStream(t *testing.T) {
	const all = DefaultText
	hang := context.DeadlineExceeded
	cut := io.ErrUnexpectedEOF
	tests := map[string]struct {
		status int
		err    error // nil: a clean end
		says   string
		has    string
	}{
		"429-retry-after":            {429, nil, "", "\r\nRetry-After: 7\r\n"},
		"429-text":                   {429, nil, "", "Please try again in 7s."},
		"429-quota":                  {429, nil, "", `"code":"insufficient_quota"`},
		"401":                        {401, nil, "", `"code":"invalid_api_key"`},
		"402":                        {402, nil, "", "Insufficient Balance"},
		"403-challenge":              {403, nil, "", "Just a moment..."},
		"404-model":                  {404, nil, "", "The model `m1` does not exist"},
		"400-context":                {400, nil, "", `"code":"context_length_exceeded"`},
		"400-filter":                 {400, nil, "", `"code":"content_policy_violation"`},
		"400-state":                  {400, nil, "", `"code":"invalid_encrypted_content"`},
		"400-credit":                 {400, nil, "", `"code":"billing_not_active"`},
		"404-path":                   {404, nil, "", `{"detail":"Not Found"}`},
		"504":                        {504, nil, "", "upstream request timeout"},
		"error-in-choice":            {200, nil, "Ca", `"finish_reason":"error","error":{"code":502`},
		"200-base-resp":              {200, nil, "", `"status_code":1008`},
		"filter-empty":               {200, nil, "", `"finish_reason":"content_filter"`},
		"422":                        {422, nil, "", "Invalid value"},
		"500":                        {500, nil, "", `"type":"server_error"`},
		"502-html":                   {502, nil, "", "<h1>502 Bad Gateway</h1>"},
		"503":                        {503, nil, "", `"code":"server_is_overloaded"`},
		"529":                        {529, nil, "", "529 Overloaded\r\n"},
		"302":                        {302, nil, "", "\r\nLocation: /login\r\n"},
		"200-error":                  {200, nil, "", "Content-Type: application/json\r\n"},
		"error-first":                {200, nil, "", "\r\n\r\ndata: {\"error\":"},
		"error-after-lead":           {200, nil, "", `"delta":{"role":"assistant"`},
		"error-after-two-characters": {200, nil, "Ca", `data: {"error":`},
		"failed-after-lead":          {200, nil, "", `data: {"error":`},
		"error-unframed":             {200, nil, "", "Content-Type: text/event-stream\r\n"},
		"html":                       {200, nil, "", "Content-Type: text/html"},
		"html-as-json":               {200, nil, "", "Content-Type: application/json"},
		"html-as-events":             {200, nil, "", "Content-Type: text/event-stream"},
		"sse-for-json":               {200, nil, all, "data: "},
		"garbage":                    {200, nil, "", "\xfe\xff\x80garbage"},
		"empty-body":                 {200, nil, "", "text/event-stream"},
		"empty-comments":             {200, nil, "", "\r\n\r\n: keep-alive\n\n"},
		"empty-done":                 {200, nil, "", "\r\n\r\ndata: [DONE]\n\n"},
		"empty-lead":                 {200, nil, "", `"delta":{"role":"assistant","content":""`},
		"empty-completed":            {200, nil, "", `"finish_reason":"stop"`},
		"silence-before-headers":     {0, hang, "", ""},
		"silence-after-headers":      {200, hang, "", "text/event-stream"},
		"keep-alives-for-ever":       {200, hang, "", ": keep-alive\n\n: keep-alive\n\n"},
		"blank-events-for-ever":      {200, hang, "", `"delta":{"content":""}`},
		"stall-two-characters":       {200, hang, "Ca", ""},
		"trickle":                    {200, nil, all, ""},
		"slow-headers":               {200, nil, all, ""},
		"slow-first-token":           {200, nil, all, ""},
		"slow-middle":                {200, nil, all, ": keep-alive\n\n"},
		"reset-before-headers":       {0, syscall.ECONNRESET, "", ""},
		"fin-before-headers":         {0, cut, "", ""},
		"reset-after-headers":        {200, syscall.ECONNRESET, "", ""},
		"fin-after-headers":          {200, cut, "", ""},
		"reset-two-characters":       {200, syscall.ECONNRESET, "Ca", ""},
		"fin-two-characters":         {200, cut, "Ca", ""},
		"clean-two-characters":       {200, nil, "Ca", ""},
		"short-length":               {200, cut, "Ca", "Content-Length: "},
		"broken-chunk":               {200, errMalformed, "", "assistant"},
		"garbage-head":               {0, errMalformed, "", ""},
		"endless-headers":            {0, cut, "", ""},
		"reset-late":                 {200, syscall.ECONNRESET, all, ""},
		"fin-late":                   {200, cut, all, ""},
		"clean-late":                 {200, nil, all, ""},
		"stall-late":                 {200, hang, all, ""},
		"error-late":                 {200, nil, all, `data: {"error":`},
		"failed-late":                {200, nil, all, `data: {"error":`},
		"error-unframed-late":        {200, nil, all, "\n\n{\"error\":"},
		"broken-chunk-late":          {200, errMalformed, all, ""},
		"gzip":                       {200, nil, "", "Content-Encoding: gzip\r\n"},
		"gzip-broken":                {200, nil, "", "Content-Encoding: gzip\r\n"},
		"gzip-unlabelled":            {200, nil, "", "\r\n\r\n\x1f\x8b"},
		"large-headers":              {200, nil, all, "x-filler: fff"},
		"interim-storm":              {200, nil, all, ""},
		"idle-close":                 {200, nil, all, ""},
		"idle-fin":                   {200, nil, all, ""},
		"idle-reset":                 {200, nil, all, ""},
		"reset-after-terminal":       {200, syscall.ECONNRESET, all, "data: [DONE]\n\n"},
		"no-done":                    {200, nil, all, `"finish_reason":"stop"`},
		"length-empty":               {200, nil, "", `"finish_reason":"length"`},
		"json-for-sse":               {200, nil, all, "Content-Type: application/json\r\n"},
		"label-swapped":              {200, nil, all, "Content-Type: application/json\r\n"},
		"label-plain":                {200, nil, all, "Content-Type: text/plain"},
		"label-missing":              {200, nil, all, ""},
		"sse-crlf":                   {200, nil, all, "}\r\n\r\ndata: "},
		"sse-lf":                     {200, nil, all, "}\n\ndata: "},
		"sse-cr":                     {200, nil, all, "}\r\rdata: "},
		"sse-no-space":               {200, nil, all, "}\n\ndata:{"},
		"sse-fields":                 {200, nil, all, "\n\nid: 7\nretry: 3000\n"},
		"sse-multiline":              {200, nil, all, "data: {\ndata: \"id\""},
		"sse-bom":                    {200, nil, all, "\r\n\r\n\ufeffdata: "},
		"split-runes":                {200, nil, all, ""},
		"one-write":                  {200, nil, all, ""},
		"long-line":                  {200, nil, strings.Repeat("The line is long. ", 2<<20/18), ""},
	}
	seen := map[string]bool{}
	for _, fault := range Faults() {
		if seen[fault.Name] {
			t.Errorf("%s is in the catalogue twice", fault.Name)
		}
		seen[fault.Name] = true
		if fault.Name != strings.ToLower(fault.Name) || strings.Contains(fault.Name, " ") || fault.Says == "" {
			t.Errorf("%q says %q", fault.Name, fault.Says)
		}
		t.Run(fault.Name, func(t *testing.T) {
			want, ok := tests[fault.Name]
			if !ok {
				t.Fatal("not in the table")
			}
			synctest.Test(t, func(t *testing.T) {
				r, _ := fault.try(t, Answer{RetryAfter: 6500 * time.Millisecond}, asks[0].query)
				if r.Status != want.status || !errors.Is(r.Err, want.err) || Spoken(r.Body) != want.says {
					t.Errorf("status %d, error %v, says %.80q", r.Status, r.Err, Spoken(r.Body))
				}
				if !strings.Contains(string(r.Head)+string(r.Body), want.has) {
					t.Errorf("no %q in\n%s%.2000s", want.has, r.Head, r.Body)
				}
			})
		})
	}
	if len(tests) != len(seen) {
		t.Errorf("%d faults in the table, %d in the catalogue", len(tests), len(seen))
	}
}

func TestErrorsSpeakTheDialect(t *testing.T) {
	tests := []struct{ fault, ask, has string }{
		{"429-text", "messages stream", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50,000 input tokens per minute. Please try again in 2s."},"request_id":"req_drill0001"}`},
		{"429-text", "gemini", `Please retry in 2s.","status":"RESOURCE_EXHAUSTED"`},
		{"429-text", "ollama chat", `{"error":"too many requests. Please try again in 2s."}`},
		{"429-quota", "messages", `"details":{"error_code":"enforced_spend_limit_reached"}`},
		{"429-quota", "gemini sse", `"quotaId":"GenerateRequestsPerDay`},
		{"401", "messages", `"type":"authentication_error"`},
		{"401", "ollama generate", `"signin_url"`},
		{"404-model", "ollama chat", `{"error":"model 'm1' not found"}`},
		{"404-model", "gemini", `"message":"models/m1 is not found`},
		{"400-state", "messages", "Invalid `signature` in `thinking` block"},
		{"400-context", "gemini", `"code":400`},
		{"error-first", "responses stream", "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"code\":null,"},
		{"error-after-lead", "responses stream", `{"type":"error","sequence_number":4,`},
		{"failed-after-lead", "responses stream", `{"type":"response.failed","sequence_number":4,"response":{`},
		{"failed-late", "responses stream", `"status":"failed"`},
		{"error-late", "messages stream", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""},
		{"error-late", "gemini sse", "data: {\"error\":{\"code\":500,\"message\":\"An internal error has occurred.\",\"status\":\"INTERNAL\"}}\r\n\r\n"},
		{"error-late", "gemini array", ",\r\n{\"error\":{\"code\":500"},
		{"error-first", "gemini array", "\r\n\r\n[{\"error\":{\"code\":500"},
		{"error-late", "ollama chat stream", "\n{\"error\":\"llama runner process has terminated\"}\n"},
		{"empty-completed", "responses stream", `"status":"completed","background":false,"completed_at":1767225610,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":"m1","output":[]`},
		{"empty-completed", "messages stream", `"stop_reason":"end_turn"`},
		{"empty-completed", "messages", `"content":[],"stop_reason":"end_turn"`},
		{"empty-completed", "gemini", `"parts":[{"text":""}]`},
		{"empty-lead", "gemini sse", `"parts":[{"text":""}]`},
		{"empty-done", "messages stream", "\r\n\r\nevent: message_stop\n"},
		{"keep-alives-for-ever", "messages stream", "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: ping\n"},
		{"keep-alives-for-ever", "chat", "\r\n\r\n\n\n\n"},
		{"length-empty", "responses stream", `event: response.incomplete`},
		{"length-empty", "messages", `"stop_reason":"max_tokens"`},
		{"filter-empty", "gemini sse", `"finishReason":"SAFETY"`},
		{"filter-empty", "responses", `"incomplete_details":{"reason":"content_filter"}`},
		{"error-in-choice", "chat", `"finish_reason":"error","error":{"code":502`},
		{"400-credit", "messages", "Your credit balance is too low"},
		{"sse-for-json", "responses", "event: response.created\n"},
		{"json-for-sse", "gemini array", "\r\n\r\n{\"candidates\""},
	}
	for _, test := range tests {
		t.Run(test.fault+"/"+test.ask, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault, ok := Find(test.fault)
				if !ok {
					t.Fatal("no such fault")
				}
				for _, ask := range asks {
					if ask.name != test.ask {
						continue
					}
					r, _ := fault.try(t, Answer{}, ask.query)
					if !strings.Contains(string(r.Head)+string(r.Body), test.has) {
						t.Errorf("no %q in\n%s%s", test.has, r.Head, r.Body)
					}
				}
			})
		})
	}
	if _, ok := Find("no-such-fault"); ok {
		t.Error("found what is not there")
	}
}

func TestCutAtCutsAtTheByte(t *testing.T) {
	for _, ask := range asks {
		body := Answer{}.Body(ask.request())
		for _, how := range []Ending{Clean, FIN, RST, Hang} {
			for _, n := range []int{0, 1, len(body) / 2, len(body) - 1, len(body), -1, -len(body) - 5} {
				synctest.Test(t, func(t *testing.T) {
					r, _ := Fault{Script: CutAt(n, how)}.try(t, Answer{}, ask.query)
					want := body[:max(0, min(n, len(body)))]
					if n < 0 {
						want = body[:max(0, len(body)+n)]
					}
					if !bytes.Equal(r.Body, want) {
						t.Errorf("%s, %v at %d: %d bytes of body, want %d", ask.name, how, n, len(r.Body), len(want))
					}
					whole := !ask.streams() && len(want) == len(body)
					if r.Clean != (how == Clean || whole) {
						t.Errorf("%s, %v at %d: clean %v, %v", ask.name, how, n, r.Clean, r.Err)
					}
				})
			}
		}
	}
}

func TestByModelPlaysTheFaultOfThatName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := stageOn(t, ByModel(Answer{}))
		for model, status := range map[string]int{"503": 503, "401": 401, "gpt-5": 200} {
			if r := th.ask(t, t.Context(), post("/v1/chat/completions", `{"model":"`+model+`"}`)); r.Status != status {
				t.Errorf("model %s: status %d", model, r.Status)
			}
		}
	})
}

func TestTimedFaultsKeepTheirTime(t *testing.T) {
	a := Answer{Wait: 10 * time.Second, Gap: 3 * time.Second}
	tests := map[string]func(r Reply) bool{
		"slow-headers":          func(r Reply) bool { return r.HeadAt == 10*time.Second },
		"slow-first-token":      func(r Reply) bool { return r.HeadAt == 0 && r.Arrivals[1].At == 13*time.Second }, // the wait, then a gap
		"keep-alives-for-ever":  func(r Reply) bool { return r.Arrivals[0].At == 0 && r.Arrivals[5].At == 15*time.Second },
		"blank-events-for-ever": func(r Reply) bool { return r.Arrivals[0].At == 0 && r.Arrivals[5].At == 15*time.Second },
		"trickle":               func(r Reply) bool { return r.Arrivals[5] == Arrival{15 * time.Second, 1} },
	}
	for name, ok := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault, _ := Find(name)
				if r, _ := fault.try(t, a, asks[0].query); !ok(r) {
					t.Errorf("head at %v, arrivals %v", r.HeadAt, r.Arrivals[:min(8, len(r.Arrivals))])
				}
			})
		})
	}
}

func TestLateFaultsLengthenWhatIsTooShort(t *testing.T) {
	for _, text := range []string{"x", "渐🌍", "thirty-nine characters long, not forty..", ""} {
		if n := utf8.RuneCountInString(Answer{Text: text}.lengthen().Text); n < 40 {
			t.Errorf("%q became %d characters", text, n)
		}
	}
}
