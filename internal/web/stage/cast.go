package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"understudy/internal/drill"
)

// configuration is a file as people have them: several virtual models, equals, a
// pool, comments, keys of every kind.
func configuration(dir string) string {
	return fmt.Sprintf(`# Who answers for whom. Keys live here on my own machine only;
# the shared box takes them from its environment.
server:
  port: 0
  state_dir: %s
  stall_timeout: 3          # our prompts are short: three seconds of silence is a stall
  auto_hedge_threshold: 5
  auto_hedge_minutes: 10

virtual_models:
  # What the agents ask for. The first that is well answers.
  auto-strong:
    - name: Anthropic direct
      base_url: http://api.anthropic.example
      api_key: sk-ant-api03-QmVja2V0dCBTYW11ZWwgMTkwNg-wAAA
      model: claude-opus-4-5
      auth_style: x-api-key
    - name: Bedrock relay
      base_url: http://bedrock-relay.example/v1
      api_key: rk-live-4f9c2a7788d1e0b35566
      model: claude-sonnet-4-5
    - name: OpenRouter
      base_url: http://openrouter.example/api/v1
      api_key: sk-or-v1-9b1f0c44de5a77c1a0b2c3d4e5f60718
      model: openai/gpt-5.1

  # Short questions. Two equals share the sessions; the third stands by.
  auto-fast:
    - any_of:
        - {name: Groq, base_url: "http://api.groq.example/openai/v1", api_key: gsk_T3BoZWxpYSBIYW1sZXQgMTYwMQ77, model: kimi-k2-instruct}
        - {name: Cerebras, base_url: "http://api.cerebras.example/v1", api_key: csk-4r5t6y7u8i9o0p1a2s3d4f5g, model: qwen-3-coder-480b, weight: 2}
    - name: Haiku
      base_url: http://api.anthropic.example
      api_key: sk-ant-api03-QmVja2V0dCBTYW11ZWwgMTkwNg-wAAA
      model: claude-haiku-4-5
      auth_style: x-api-key

  # The machine under the desk, while it is switched on.
  local-draft:
    - {name: Workstation, base_url: "http://workstation.example:11434", auth_style: none, model: qwen3-coder}
    - {name: Laptop, base_url: "http://laptop.example:11434", auth_style: none, model: gemma3}

# Everything else goes here as it is.
pool:
  cooldown_seconds: 45

upstream:
  - id: primary
    base_url: http://gateway-a.example
    weight: 2
    headers: {x-team: stagehands, authorization: Bearer tm-primary-7c6b5a4938271605}
  - id: secondary
    base_url: http://gateway-b.example
    headers: {authorization: Bearer tm-secondary-0f1e2d3c4b5a6978}
`, filepath.Join(dir, "state"))
}

// luck is one source of chance for every script; it is the same in every run.
var luck = struct {
	sync.Mutex
	*rand.Rand
}{Rand: rand.New(rand.NewPCG(7, 11))}

func chance() float64 {
	luck.Lock()
	defer luck.Unlock()
	return luck.Float64()
}

// answer is a healthy one of random length and cost.
func answer(cached float64) drill.Answer {
	in := 600 + int(9000*chance())
	return drill.Answer{
		Text:  "The show goes on, and nobody in the house has noticed anything at all.",
		Usage: drill.Usage{Input: in, Cached: int(float64(in) * cached * chance()), Output: 60 + int(700*chance())},
		Gap:   time.Duration(4+20*chance()) * time.Millisecond,
		Wait:  time.Duration(120+500*chance()) * time.Millisecond,
	}
}

// often plays a fault with the given probability, and thinks for a while before a
// healthy answer else.
func often(share, cached float64, faults ...string) drill.Script {
	return func(w *drill.Wire, r drill.Request, n int) {
		name := "slow-first-token"
		a := answer(cached)
		if chance() < share {
			name = faults[int(chance()*float64(len(faults)))%len(faults)]
			a.RetryAfter = time.Duration(40+200*chance()) * time.Second
		}
		f, ok := drill.Find(name)
		if !ok {
			panic("stage: no fault " + name)
		}
		f.Script(a)(w, r, n)
	}
}

// parts are the upstreams' scripts by host. The workstation is switched off.
func parts() map[string]drill.Script {
	return map[string]drill.Script{
		"api.anthropic.example": often(0.3, 0.9, "529", "429-text", "error-after-lead", "stall-two-characters"),
		"bedrock-relay.example": often(0.04, 0.8, "503", "empty-completed"),
		"openrouter.example":    often(0.02, 0, "502-html"),
		"api.groq.example":      often(0.15, 0, "429-retry-after", "reset-before-headers"),
		"api.cerebras.example":  often(0.05, 0.3, "500", "html-as-json"),
		"laptop.example":        often(0, 0),
		"gateway-a.example":     often(0.08, 0.6, "503", "fin-before-headers"),
		"gateway-b.example":     often(0.02, 0.6, "504"),
	}
}

// A line is what one kind of client asks for.
type line struct {
	model, path, body string
}

var lines = []line{
	{"auto-strong", "/v1/messages", `,"stream":true,"max_tokens":400,"messages":[{"role":"user","content":"Will it go on?"}]}`},
	{"auto-strong", "/v1/chat/completions", `,"stream":true,"messages":[{"role":"user","content":"Will it go on?"}]}`},
	{"auto-fast", "/v1/chat/completions", `,"messages":[{"role":"user","content":"And now?"}]}`},
	{"auto-fast", "/v1/responses", `,"stream":true,"input":"And now?"}`},
	{"local-draft", "/api/chat", `,"messages":[{"role":"user","content":"Draft."}]}`},
	{"gpt-5.1-codex", "/v1/responses", `,"stream":true,"input":"Refactor."}`},
}

// callers calls the proxy until ctx is done.
func callers(ctx context.Context, addr string, pace float64) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / pace))
	defer tick.Stop()
	slots := make(chan struct{}, 24)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case slots <- struct{}{}:
		default:
			continue // all are waiting for answers
		}
		go func() {
			defer func() { <-slots }()
			l := lines[int(chance()*float64(len(lines)))%len(lines)]
			q := drill.Query{Path: l.path, Body: []byte(`{"model":"` + l.model + `"` + l.body),
				Header: []string{"Content-Type", "application/json", "session_id", fmt.Sprintf("session-%02d", int(chance()*40))}}
			drill.Ask(ctx, addr, q)
		}()
	}
}
