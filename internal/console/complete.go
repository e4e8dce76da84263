package console

import (
	"slices"
	"strconv"
	"strings"

	"understudy/internal/control"
)

// An option is one way to go on with a line.
type option struct {
	text string // the whole word, without quotes
	note string // what it is, "" where that is plain
	// open says that more of the same word follows: no blank is put behind it.
	open bool
}

// complete finds the ways to finish the word that a line ends in, and where that word
// begins. v may be nil: then nothing of the running process is known.
func complete(line string, v *control.View) (start int, options []option) {
	before, last := split(line)
	if last.json {
		return last.start, nil
	}
	if v == nil {
		v = &control.View{}
	}
	commands := control.Commands()
	if len(before) == 0 {
		return last.start, matching(last.text, firstWords(commands))
	}
	var all []option
	if len(before) == 1 {
		all = secondWords(commands, before[0].text)
	}
	if command, rest := findCommand(commands, before); command != nil {
		for _, p := range places(usage(command.Args), rest, place{}) {
			all = append(all, p.options(command.Name, last.text, v)...)
		}
	}
	return last.start, matching(last.text, all)
}

// findCommand takes the command off the front of a line: the longest name wins.
func findCommand(commands []control.Command, words []word) (*control.Command, []word) {
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.ToLower(words[0].text)
		if n == 2 {
			name += " " + strings.ToLower(words[1].text)
		}
		if i := slices.IndexFunc(commands, func(c control.Command) bool { return c.Name == name }); i >= 0 {
			return &commands[i], words[n:]
		}
	}
	return nil, nil
}

func firstWords(commands []control.Command) (list []option) {
	for _, c := range commands {
		first, _, two := strings.Cut(c.Name, " ")
		if i := slices.IndexFunc(list, func(o option) bool { return o.text == first }); i >= 0 {
			list[i].note = "" // several commands: none of them says it all
			continue
		}
		note := c.Does
		if two {
			note = ""
		}
		list = append(list, option{text: first, note: note})
	}
	return list
}

func secondWords(commands []control.Command, first string) (list []option) {
	for _, c := range commands {
		if word, second, ok := strings.Cut(c.Name, " "); ok && strings.EqualFold(word, first) {
			list = append(list, option{text: second, note: c.Does})
		}
	}
	return list
}

// matching are the options that begin with what is typed; capitals do not matter.
func matching(typed string, all []option) (list []option) {
	for _, o := range all {
		if len(o.text) >= len(typed) && strings.EqualFold(o.text[:len(typed)], typed) &&
			!slices.ContainsFunc(list, func(other option) bool { return other.text == o.text }) {
			list = append(list, o)
		}
	}
	return list
}

// options are what can stand in a place.
func (p place) options(command, typed string, v *control.View) (list []option) {
	switch slot := p.slot; {
	case p.words != nil:
		for _, w := range p.words {
			list = append(list, option{text: w})
		}
	case slot == "vm", slot == "name" && command == "vm rm":
		for i := range v.Models {
			if m := &v.Models[i]; !m.Pool || command != "vm rm" {
				list = append(list, option{text: m.Name})
			}
		}
	case slot == "candidate":
		return candidateOptions(command, chain(v, p.vm))
	case slot == "index":
		return indexOptions(command, p.vm, v)
	case slot == "key":
		for _, f := range control.Fields(command, p.vm) {
			list = append(list, fieldOption(f, ""))
		}
	case strings.HasPrefix(slot, "value"):
		for _, f := range control.Fields(command, p.vm) {
			if f.Name == p.key {
				list = append(fieldValues(f, "", v), option{text: "default", note: "takes it out"})
			}
		}
	case strings.HasPrefix(slot, "json"):
		return pairOptions(command, p, typed, v)
	case slot == "command":
		for _, c := range control.Commands() {
			first, _, _ := strings.Cut(c.Name, " ")
			list = append(list, option{text: first})
		}
	}
	return list
}

func chain(v *control.View, name string) *control.Model {
	for i := range v.Models {
		if v.Models[i].Name == name {
			return &v.Models[i]
		}
	}
	return nil
}

// candidateOptions are what a chain's candidates can be called by: their index, the
// real model, the name. Who takes a freeze off is shown the frozen ones.
func candidateOptions(command string, m *control.Model) (list []option) {
	if m == nil {
		return nil
	}
	var members []*control.Candidate
	for i := range m.Candidates {
		if k := &m.Candidates[i]; command != "freeze rm" || k.State == control.StateFrozen || k.State == control.StateProbation {
			members = append(members, k)
		}
	}
	for _, k := range members {
		note := k.Name
		if k.Model != "" {
			note += " (" + k.Model + ")"
		}
		if k.State != control.StateReady {
			note += ", " + k.State
		}
		list = append(list, option{text: strconv.Itoa(k.Index), note: note})
	}
	for _, k := range members {
		if k.Model != "" {
			list = append(list, option{text: k.Model, note: "all of this model"})
		}
	}
	for _, k := range members {
		list = append(list, option{text: k.Name})
	}
	return list
}

func indexOptions(command, vm string, v *control.View) (list []option) {
	if m := chain(v, vm); strings.HasPrefix(command, "cand") && m != nil {
		for i := range m.Candidates {
			list = append(list, option{text: strconv.Itoa(i + 1), note: m.Candidates[i].Name})
		}
	}
	if strings.HasPrefix(command, "rule") {
		rules := v.Rules
		if m := chain(v, vm); m != nil {
			rules = m.Rules
		}
		for i := range rules {
			list = append(list, option{text: strconv.Itoa(rules[i].Index), note: rules[i].Name})
		}
	}
	return list
}

func fieldOption(f control.Field, behind string) option {
	return option{text: f.Name + behind, note: f.Takes, open: behind != ""}
}

// fieldValues are the words that a key takes, with something before each.
func fieldValues(f control.Field, front string, v *control.View) (list []option) {
	for _, value := range f.Values {
		list = append(list, option{text: front + value})
	}
	if pool := chain(v, "*"); f.Name == "upstream" && pool != nil {
		for i := range pool.Candidates {
			list = append(list, option{text: front + pool.Candidates[i].Name})
		}
	}
	return list
}

// pairOptions are the keys not given yet, or the values of the one that is typed.
func pairOptions(command string, p place, typed string, v *control.View) (list []option) {
	name, _, valued := strings.Cut(typed, "=")
	for _, f := range control.Fields(command, p.vm) {
		switch {
		case valued && f.Name == name:
			list = append(list, fieldValues(f, name+"=", v)...)
		case !valued && !slices.Contains(p.given, f.Name):
			behind := "="
			if strings.HasPrefix(f.Takes, "mapping of header") {
				behind = "."
			}
			list = append(list, fieldOption(f, behind))
		}
	}
	return list
}

// common is the longest beginning that all options share, capitals aside.
func common(options []option) string {
	prefix := options[0].text
	for _, o := range options[1:] {
		n := 0
		for n < len(prefix) && n < len(o.text) && strings.EqualFold(prefix[:n+1], o.text[:n+1]) {
			n++
		}
		prefix = prefix[:n]
	}
	return strings.ToValidUTF8(prefix, "")
}
