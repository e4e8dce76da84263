package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// What the manual page and docs/cli.md say beside the commands.
var (
	exitCodes = [][2]string{
		{"0", "It did what it was asked to."},
		{"1", "It could not: nobody would serve, an address is taken, a process is not there, a drill has a fail."},
		{"2", "The command line or the configuration has a mistake; each is told on a line of its own, with its place and the cure."},
	}
	usedFiles = [][2]string{
		{"understudy.yaml, understudy.toml, config.yaml, config.toml", "The configuration, where -c names none: the first that is found in the working directory, beside the program, or in the directory understudy of the user's configuration directory ($XDG_CONFIG_HOME or ~/.config; on macOS ~/Library/Application Support; on Windows %AppData%)."},
		{"understudy.schema.json", "Its JSON Schema, for editors."},
		{"~/.local/state/understudy", "The state directory, unless state_dir names another one (on macOS ~/Library/Application Support/understudy, on Windows %LocalAppData%\\understudy): freezes and counters (state-*.json), request log and history (archive-*.db), the console's history (console-history)."},
	}
	variables = [][2]string{
		{"UNDERSTUDY_ADMIN_TOKEN", "The admin token, for the commands that ask a running process."},
		{"XDG_CONFIG_HOME, XDG_STATE_HOME", "Where configuration and state are, instead of ~/.config and ~/.local/state."},
		{"those that api_key_env, header_env, key_env and url_env name", "Keys, read when a request needs them."},
		{"HTTP_PROXY, HTTPS_PROXY, NO_PROXY", "The way to upstreams whose entry has no proxy."},
		{"NO_COLOR, TERM=dumb", "No colours."},
		{"GOGC, GOMEMLIMIT, GOMAXPROCS", "Go's own: how memory and processors are used. Without GOGC the heap grows by 64 MiB between two collections, but by no less than what lives and no more than four times of it."},
	}
	signalWords = [][2]string{
		{"SIGTERM, SIGINT", "Ends serving: running requests may finish within drain_timeout. A second one ends it at once."},
		{"SIGHUP", "Reads the configuration anew."},
	}
	manExamples = [][2]string{
		{"understudy demo", "See what it does, with no key and no network:"},
		{"understudy init --for codex\nunderstudy check\nunderstudy", "Write a configuration, check it, and serve:"},
		{"understudy explain req_0123456789abcdef01234567", "Ask why a request went the way it did:"},
	}
)

// synopsis is a command as it is typed, with its arguments.
func synopsis(n *kong.Node) string {
	text := "understudy " + commandName(n)
	if len(n.Flags) > 0 {
		text += " [option ...]"
	}
	for _, p := range n.Positional {
		text += " " + p.Summary()
	}
	return text
}

// commandName is a command as it is typed, without the program's name.
func commandName(n *kong.Node) string {
	name := n.Name
	for at := n.Parent; at != nil && at.Parent != nil; at = at.Parent {
		name = at.Name + " " + name
	}
	return name
}

// flagWords is a flag as a page shows it: "-c, --config FILE".
func flagWords(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Tag.Negatable != "" {
		text = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	if !f.IsBool() {
		text += " " + flagValue(f)
	}
	return text
}

// flagValue is the name of a flag's value.
func flagValue(f *kong.Flag) string {
	if f.PlaceHolder != "" {
		return f.PlaceHolder
	}
	_, last, ok := strings.Cut(f.Name, "-")
	if !ok {
		last = f.Name
	}
	return strings.ToUpper(last)
}

// flagDefault is what holds without the flag, "" where its help says it or it is plain.
func flagDefault(f *kong.Flag) string {
	if f.IsBool() {
		return ""
	}
	return f.Default
}
