//go:build e2e

package agents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// agent is a coding agent: how it is run, how it speaks, and what its answers look like.
type agent struct {
	name string
	// path is the endpoint it asks for answers, auth how its vendor takes a key.
	path, auth string
	// command finds the program in node_modules.
	command func() []string
	// tool is what it calls its shell. tools and results stand in requests that offer tools and that bring the result of
	// one.
	tool, tools, results string
	stubborn             bool // tries an exhausted chain again for minutes, and has no setting for it
	slow                 bool // takes seconds to start, so that it meets a choice of the faults unless AGENTS=all
	// prepare writes its settings, and returns its arguments and its environment. They are what docs/clients.md tells
	// people.
	prepare func(t *testing.T, r *run) (args, env []string)
}

// prompt is all that the user of an agent says here.
const prompt = "Sound the horn."

// agents are those that npm has the programs of.
var agents = []agent{
	{
		name: "codex", path: "/v1/responses", auth: "bearer", tool: "exec_command", tools: `"exec_command"`, results: `"function_call_output"`,
		command: func() []string { return program("@openai/codex-*/vendor/*/bin/codex") },
		prepare: func(t *testing.T, r *run) (args, env []string) {
			r.write(t, "home/.codex/config.toml", fmt.Sprintf("model = %q\nopenai_base_url = \"%s/v1\"\nchatgpt_base_url = \"%s/backend-api\"\ncheck_for_update_on_startup = false\n\n[analytics]\nenabled = false\n", r.model, r.url, r.elsewhere.url()))
			r.write(t, "home/.codex/auth.json", login())
			return []string{"exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt}, nil
		},
	},
	{
		name: "claude", path: "/v1/messages", auth: "x-api-key", tool: "Bash", tools: `"name":"Bash"`, results: `"tool_result"`,
		command: func() []string { return program("@anthropic-ai/claude-code-*/claude") },
		prepare: func(t *testing.T, r *run) (args, env []string) {
			return []string{"-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"},
				[]string{"ANTHROPIC_BASE_URL=" + r.url, "ANTHROPIC_AUTH_TOKEN=" + clientKey, "ANTHROPIC_MODEL=" + r.model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + r.model,
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=2"}
		},
	},
	{
		name: "opencode", path: "/v1/chat/completions", auth: "bearer", tool: "bash", tools: `"tools":[`, results: `"role":"tool"`, stubborn: true, slow: true,
		command: func() []string { return program("opencode-*/bin/opencode") },
		prepare: func(t *testing.T, r *run) (args, env []string) {
			config := map[string]any{
				"model": "understudy/" + r.model, "small_model": "understudy/" + r.model, "autoupdate": false, "share": "disabled",
				"provider": map[string]any{"understudy": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": r.url + "/v1", "apiKey": clientKey},
					"models": map[string]any{r.model: map[string]any{"tool_call": true, "limit": map[string]any{"context": 128000, "output": 8192}}},
				}},
			}
			r.write(t, "work/opencode.json", asJSON(t, config))
			return []string{"run", "--format", "json", prompt}, []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1"}
		},
	},
	{
		name: "gemini", path: "/v1beta/models/m:streamGenerateContent?alt=sse", auth: "x-goog-api-key", tool: "run_shell_command", tools: `"run_shell_command"`, results: `"functionResponse":`,
		command: func() []string {
			if found := program("@google/gemini-cli/bundle/gemini.js"); found != nil {
				return append([]string{"node"}, found...)
			}
			return nil
		},
		prepare: func(t *testing.T, r *run) (args, env []string) {
			r.write(t, "home/.gemini/settings.json", `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true,"maxAttempts":2}}`)
			return []string{"-m", r.model, "--yolo", "--skip-trust", "--output-format", "stream-json", "-p", prompt},
				[]string{"GEMINI_API_KEY=" + clientKey, "GOOGLE_GEMINI_BASE_URL=" + r.url}
		},
	},
}

// clientKey is what agents send as their key. It must reach no upstream.
const clientKey = "sk-client-of-the-agents"

// program finds an agent's program in node_modules; nil where it is not installed.
func program(pattern string) []string {
	found, err := filepath.Glob(filepath.Join("node_modules", filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	path, err := filepath.Abs(found[0])
	if err != nil {
		return nil
	}
	return []string{path}
}

// login is what Codex keeps of a login with an account, all of it made up. With one it compresses its requests and asks
// for a list of models.
func login() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	token := part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"email":"user@example.com","exp":%d,"https://api.openai.com/auth":{"chatgpt_plan_type":"pro","chatgpt_account_id":"acct","chatgpt_user_id":"user","user_id":"user"}}`, time.Now().Add(24*time.Hour).Unix())) + "." + part("sk-client-of-the-agents")
	return fmt.Sprintf(`{"auth_mode":"chatgpt","tokens":{"id_token":%q,"access_token":%q,"refresh_token":"none","account_id":"acct"},"last_refresh":%q}`, token, token, time.Now().UTC().Format(time.RFC3339Nano))
}

// turn is what an upstream of an agent does when it is well: it has the horn sounded, and then says that it was. who is
// part of all it says, and of what it has written down.
func (a agent) turn(who string) func(drill.Request) drill.Answer {
	return func(r drill.Request) drill.Answer {
		answer := drill.Answer{ID: who, Usage: drill.Usage{Input: 40, Output: 11}}
		switch {
		case bytes.Contains(r.Body, []byte(a.results)):
			answer.Text = said(who)
		case bytes.Contains(r.Body, []byte(a.tools)):
			arguments := map[string]any{"command": sound(who), "cmd": sound(who), "description": "Sound the horn"}
			if a.tool == "exec_command" {
				delete(arguments, "command")
				delete(arguments, "description")
			} else {
				delete(arguments, "cmd")
			}
			encoded, err := json.Marshal(arguments)
			if err != nil {
				panic(err) // strings always encode
			}
			answer.Text, answer.Tool = "I am taking the horn, says the "+who+".", &drill.Tool{Name: a.tool, Arguments: string(encoded)}
		default:
			answer.Text = "The horn" // a title
		}
		return answer
	}
}

// sound is the command that the tool runs, said the answer that ends the turn.
func sound(who string) string { return "echo " + who + " >> horn.txt" }
func said(who string) string {
	return "The horn was sounded by the " + who + " upstream, once, and all is well."
}

// well is the script of an upstream that is well.
func (a agent) well(who string) drill.Script {
	turn := a.turn(who)
	return func(w *drill.Wire, r drill.Request, n int) { drill.Healthy(turn(r))(w, r, n) }
}

// ill is the script of one that shows a fault in place of every answer.
func (a agent) ill(f drill.Fault, who string) drill.Script {
	turn := a.turn(who)
	return func(w *drill.Wire, r drill.Request, n int) { f.Script(turn(r))(w, r, n) }
}

// choice is what a slow agent meets: a fault of each kind.
var choice = []string{"429-text", "401", "503", "200-error", "error-after-two-characters", "empty-completed", "html-as-events", "keep-alives-for-ever",
	"stall-two-characters", "reset-before-headers", "gzip-broken", "clean-late", "failed-late"}

// meets reports whether the agent is to meet a fault: whether it shows in the answers that the agent asks for.
func (a agent) meets(f drill.Fault) bool {
	if a.slow && os.Getenv("AGENTS") != "all" && !slices.Contains(choice, f.Name) {
		return false
	}
	return !f.Healthy && f.Applies(drill.NewRequest("POST", a.path, []byte(`{"stream":true}`)))
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// write puts a file into the run's folder.
func (r *run) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// spoken is all text that an agent printed, the pieces of a streamed answer put together.
func spoken(stdout string) string {
	var b strings.Builder
	for line := range strings.Lines(stdout) {
		var event struct {
			Type, Role, Content string
			Delta               bool
		}
		if json.Unmarshal([]byte(line), &event) == nil && event.Delta && event.Role == "assistant" {
			b.WriteString(event.Content)
		} else {
			b.WriteString(line)
		}
	}
	return b.String()
}
