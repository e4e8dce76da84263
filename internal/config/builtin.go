package config

import (
	"time"
)

// promptTooLong is how vendors say that a prompt does not fit the model: their
// codes and their sentences.
const promptTooLong = `context_length_exceeded|string_above_max_length|exceed_context_size_error|` +
	`model_context_window_exceeded|prompt is too long|prompt too long|input is too long|` +
	`maximum context length|maximum prompt length|available context size|exceeds? (?:the )?(?:model'?s )?context|` +
	`longer than the model'?s context length|context window|too many (?:input )?tokens|` +
	`input token count.{0,80}exceeds the maximum|reduce the length of the (?:messages|prompt|input)`

var promptTooLongExpression = NewExpression("(?i)" + promptTooLong)

// BuiltInRules are the rules that apply where a file has no rules key. Together
// they say: a client's mistake goes back to the client, what waiting heals is
// waited for a little, what is used up is skipped by everybody, and
// anything else goes on to the next candidate.
func BuiltInRules() []Rule {
	rule := func(name, action string, faults ...string) Rule {
		return Rule{
			Name: "built-in " + name, Action: action, Faults: faults,
			MaxAttempts: 3, BackoffBase: 1.5, MaxWait: 30 * time.Second,
			FreezeUnit: time.Minute, Freeze: 300 * time.Second, Scope: "identity",
		}
	}
	tooLong := rule("prompt too long", "next", "client")
	tooLong.BodySource = promptTooLong
	tooLong.Body = promptTooLongExpression

	quota := rule("quota", "freeze", "quota")
	quota.Freeze = time.Hour

	credential := rule("credential", "freeze", "credential")
	credential.Freeze = 10 * time.Minute

	rate := rule("rate", "retry", "rate")
	rate.BackoffBase, rate.MaxWait = 2, 5*time.Second

	network := rule("network", "retry")
	network.Classes, network.MaxAttempts = []string{"network"}, 2

	stream := rule("stream", "next")
	stream.Classes = []string{"stalled_stream", "timeout", "bad_stream"}

	server := rule("server", "retry", "capacity", "server")
	server.MaxWait = 5 * time.Second

	return []Rule{
		tooLong,
		rule("client", "passthrough", "client", "affinity"),
		quota,
		credential,
		rule("model", "next", "model"),
		rate,
		network,
		stream,
		server,
	}
}
