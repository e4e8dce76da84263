package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Command is one thing a person can ask for by a line.
type Command struct {
	// Name is its one or two words, such as "freeze add".
	Name string
	// Args is what follows them, as the usage shows it; "" if nothing does.
	Args string
	// Does says in one sentence what it does.
	Does string
	// Changes says that it changes the process or the file.
	Changes bool

	run func(*call) (string, error)
}

// Usage is the line to type.
func (c Command) Usage() string { return strings.TrimSpace(c.Name + " " + c.Args) }

// Output is what a command came to.
type Output struct {
	// Text is for people, of one or more lines without a line break at the end.
	// It holds no secret.
	Text string
	// Quit says that the command was to end the console. Whose it is decides
	// what else ends; see Control.Quit.
	Quit bool
}

// A call is a command that runs.
type call struct {
	*builder
	ctx     context.Context
	who     string
	command *Command
	args    []string
}

// misuse is the error of a command that was not given what it needs.
func (c *call) misuse(what string) error {
	return fmt.Errorf("%s\nusage: %s", what, c.command.Usage())
}

// want checks how many arguments there are; most < 0 is no bound.
func (c *call) want(least, most int) error {
	switch n := len(c.args); {
	case n < least && c.command.Args != "":
		return c.misuse(c.command.Name + ": something is missing")
	case most >= 0 && n > most && most == 0:
		return c.misuse(c.command.Name + " takes nothing after it")
	case most >= 0 && n > most:
		return c.misuse(fmt.Sprintf("%s: %s is one word too many (put quotes around what has blanks)", c.command.Name, c.shown(c.args[most])))
	}
	return nil
}

// changed logs what a command has changed.
func (c *call) changed(what string) { c.c.logChange(c.who, c.command.Name, what) }

// The commands, in the order of the help. It is a function because help itself
// is one of them.
func commands() []Command {
	return []Command{
		{Name: "vm", Does: "lists the virtual models and their candidates", run: listModels},
		{Name: "vm add", Args: "<name> <json | key=value ...>", Does: "adds a virtual model with its first candidate, or with a JSON list of them", Changes: true, run: addModel},
		{Name: "vm rm", Args: "<name>", Does: "removes a virtual model", Changes: true, run: removeModel},
		{Name: "cand ls", Args: "[<vm>]", Does: "lists candidates with their settings", run: listCandidates},
		{Name: "cand add", Args: "<vm> [at <index>] <json | key=value ...>", Does: "adds a candidate, as the last one or before the one that has the index", Changes: true, run: addCandidate},
		{Name: "cand rm", Args: "<vm> <candidate>", Does: "removes a candidate", Changes: true, run: removeCandidate},
		{Name: "cand mv", Args: "<vm> <candidate> <index>", Does: "moves a candidate to another place in its chain", Changes: true, run: moveCandidate},
		{Name: "cand set", Args: "<vm> <candidate> <key> <value | default>", Does: "changes a setting of a candidate; default (for timeouts also none and -) removes it", Changes: true, run: setCandidate},
		{Name: "rule ls", Args: "[<vm>]", Does: "lists the rules, in the order in which they are asked", run: listRules},
		{Name: "rule add", Args: "[<vm>] [at <index>] <json | key=value ...>", Does: "adds a rule, as the last one or before the one that has the index", Changes: true, run: addRule},
		{Name: "rule rm", Args: "[<vm>] <index>", Does: "removes a rule", Changes: true, run: removeRule},
		{Name: "rule mv", Args: "[<vm>] <index> <index>", Does: "moves a rule to another place", Changes: true, run: moveRule},
		{Name: "freeze ls", Does: "lists who is frozen, why and for how long", run: listFreezes},
		{Name: "freeze add", Args: "<vm> <candidate> <seconds> [<reason>]", Does: "freezes a candidate, wherever it stands", Changes: true, run: addFreeze},
		{Name: "freeze rm", Args: "<vm> <candidate>", Does: "lifts a freeze and ends a probation", Changes: true, run: removeFreeze},
		{Name: "freeze clear", Args: "[<vm>]", Does: "lifts all freezes", Changes: true, run: clearFreezes},
		{Name: "explain", Args: "[<request>]", Does: "tells how a request went, and why; without an id the newest one", run: explain},
		{Name: "stats", Args: "[<vm>]", Does: "shows what was counted", run: showStats},
		{Name: "set", Args: "[<key> [<value | default>]]", Does: "shows the numeric settings of the server, or changes one", Changes: true, run: setServer},
		{Name: "target", Args: "[on | off | status]", Does: "switches target mode: exhausted requests are tried again until somebody answers", Changes: true, run: switchTarget},
		{Name: "reload", Does: "reads the configuration file again", Changes: true, run: reload},
		{Name: "save", Does: "checks the file; every change is in it already", run: save},
		{Name: "help", Args: "[<command>]", Does: "lists the commands (also ? and h)", run: help},
		{Name: "quit", Does: "ends the console (also exit and q)"},
	}
}

// aliases are other spellings of whole commands.
var aliases = map[string]string{
	"?": "help", "h": "help", "exit": "quit", "q": "quit",
	"vm ls": "vm", "vm list": "vm", "cand": "cand ls", "rule": "rule ls", "freeze": "freeze ls", "target status": "target",
}

// Commands lists what can be asked for: for help and completion.
func Commands() []Command { return commands() }

// Run runs one line for somebody: "console", "web". The error of a command that
// could not run says why and, where the line was at fault, how it is meant. An
// empty line does nothing.
func (c *Control) Run(ctx context.Context, who, line string) (Output, error) {
	args, err := words(line)
	if err != nil || len(args) == 0 {
		return Output{}, err
	}
	b := c.builder()
	command, args, err := b.find(args)
	if err != nil {
		return Output{}, err
	}
	call := &call{builder: b, ctx: ctx, who: who, command: command, args: args}
	if command.run == nil { // quit
		return Output{Quit: true}, call.want(0, 0)
	}
	text, err := command.run(call)
	if err != nil {
		return Output{}, err
	}
	return Output{Text: text}, nil
}

// find takes the command off the front of a line.
func (b *builder) find(args []string) (*Command, []string, error) {
	list := commands()
	// The longest name wins: "vm add" before "vm".
	for n := min(2, len(args)); n > 0; n-- {
		name := strings.ToLower(strings.Join(args[:n], " "))
		name = cmp.Or(aliases[name], name)
		if i := slices.IndexFunc(list, func(c Command) bool { return c.Name == name }); i >= 0 {
			if n == 1 && len(args) > 1 && len(verbs(list, args[0])) > 0 {
				break // "vm lst" is a slip, not vm with something after it
			}
			return &list[i], args[n:], nil
		}
	}
	first := strings.ToLower(args[0])
	if of := verbs(list, first); len(of) > 0 {
		if len(args) == 1 {
			return nil, nil, fmt.Errorf("%s what? %s", first, strings.Join(of, ", "))
		}
		return nil, nil, fmt.Errorf("%s has no %s%s\nusage: %s %s", first, b.shown(args[1]), b.didYouMean(args[1], of), first, strings.Join(of, " | "))
	}
	var known []string
	for _, c := range list {
		word, _, _ := strings.Cut(c.Name, " ")
		known = append(known, word)
	}
	guess := b.didYouMean(first, slices.Compact(known))
	return nil, nil, fmt.Errorf("no command %s%s\nhelp lists them all", b.shown(args[0]), guess)
}

// verbs are the second words that a first one may have.
func verbs(list []Command, first string) (second []string) {
	for _, c := range list {
		if word, verb, ok := strings.Cut(c.Name, " "); ok && word == strings.ToLower(first) {
			second = append(second, verb)
		}
	}
	return second
}

func help(c *call) (string, error) {
	list := commands()
	if len(c.args) > 0 {
		wanted := strings.ToLower(strings.Join(c.args, " "))
		if full, ok := aliases[wanted]; ok && len(verbs(list, wanted)) == 0 {
			wanted = full
		}
		first, _, _ := strings.Cut(wanted, " ")
		list = slices.DeleteFunc(list, func(k Command) bool {
			word, _, _ := strings.Cut(k.Name, " ")
			return k.Name != wanted && (word != first || strings.Contains(wanted, " "))
		})
		if len(list) == 0 {
			_, _, err := c.find(c.args)
			return "", err
		}
	}
	t := newTable("command", "what it does")
	for _, k := range list {
		t.row(k.Usage(), k.Does)
	}
	text := t.String()
	if len(c.args) == 0 {
		text += "\n\n" + notation
	}
	return text, nil
}

const notation = `A candidate is named by its index, its real model name (all that match) or its name; the pool is *.
Candidates and rules are JSON, or key=value pairs as in the file: base_url=https://api.example.com model=m api_key_env=KEY.
Quotes, single or double, keep blanks in a value. Changes are made in the configuration file, comments stay.`
