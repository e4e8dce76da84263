package movein

import (
	"fmt"
	"strings"

	"understudy/internal/config"
)

// width is how long a line of a comment may be.
const width = 110

// emitter writes a draft as YAML.
type emitter struct {
	b   strings.Builder
	err error // the first value that cannot be written
}

// comment writes a text as comment lines at an indentation.
func (e *emitter) comment(indent int, text string) {
	const mark = "# "
	pad := strings.Repeat(" ", indent)
	line := ""
	flush := func() {
		e.b.WriteString(pad + strings.TrimRight(mark+line, " ") + "\n")
	}
	for _, word := range strings.Fields(text) {
		if line != "" && indent+len(mark)+len(line)+1+len(word) > width {
			flush()
			line = "  "
		} else if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}

func (e *emitter) notes(indent int, notes []note) {
	for _, n := range notes {
		text := n.why
		if n.key != "" {
			text = fmt.Sprintf("no counterpart: %s (line %d): %s", n.key, n.line, n.why)
			if n.line == 0 {
				text = fmt.Sprintf("no counterpart: %s: %s", n.key, n.why)
			}
		}
		e.comment(indent, text)
	}
}

// pairs writes a block's keys. first is what stands before the first one in place
// of its indentation: the dash of a list.
func (e *emitter) pairs(b *block, indent int, dash bool) {
	for i, p := range b.pairs {
		pad := strings.Repeat(" ", indent)
		if i == 0 && dash {
			pad = strings.Repeat(" ", indent-2) + "- "
		}
		e.b.WriteString(pad + config.YAMLKey(p.key) + ":")
		switch v := p.value.(type) {
		case *block:
			e.b.WriteString("\n")
			e.notes(indent+2, v.notes)
			e.pairs(v, indent+2, false)
		case []*block:
			e.b.WriteString("\n")
			e.blocks(v, indent+2)
		default:
			text, err := config.YAMLText(v)
			if err != nil && e.err == nil {
				e.err = fmt.Errorf("%s: %w", p.key, err)
			}
			e.b.WriteString(" " + text + "\n")
		}
	}
}

// blocks writes a list of mappings, each with its comments above it.
func (e *emitter) blocks(list []*block, indent int) {
	for _, b := range list {
		e.notes(indent, b.notes)
		if len(b.pairs) > 0 {
			e.pairs(b, indent+2, true)
		}
	}
}

// section writes a top-level mapping; one without keys is only its comments.
func (e *emitter) section(name string, b *block) {
	if len(b.pairs) == 0 && len(b.notes) == 0 {
		return
	}
	e.b.WriteString("\n")
	if len(b.pairs) == 0 {
		e.notes(0, b.notes)
		return
	}
	e.b.WriteString(name + ":\n")
	e.notes(2, b.notes)
	e.pairs(b, 2, false)
}

// list writes a top-level list.
func (e *emitter) list(name string, above []note, list []*block) {
	any := false
	for _, b := range list {
		any = any || len(b.pairs) > 0
	}
	if !any && len(above) == 0 && len(list) == 0 {
		return
	}
	e.b.WriteString("\n")
	e.notes(0, above)
	if !any {
		e.blocks(list, 0)
		return
	}
	e.b.WriteString(name + ":\n")
	e.blocks(list, 2)
}

func (e *emitter) models(models []*chain) {
	if len(models) == 0 {
		return
	}
	any := false
	for _, m := range models {
		any = any || m.count() > 0
	}
	e.b.WriteString("\n")
	if any {
		e.b.WriteString("virtual_models:\n")
	}
	for i, m := range models {
		if i > 0 {
			e.b.WriteString("\n")
		}
		if m.count() == 0 {
			e.comment(2, "Without a candidate, and so left out: "+m.name)
			e.notes(2, m.notes)
			continue
		}
		e.b.WriteString("  " + config.YAMLKey(m.name) + ":\n")
		e.notes(4, m.notes)
		indent := 4
		if m.settings != nil {
			e.pairs(m.settings, 4, false)
			e.b.WriteString("    candidates:\n")
			indent = 6
		}
		for _, t := range m.tiers {
			if len(t) == 1 {
				e.blocks(t, indent)
				continue
			}
			e.b.WriteString(strings.Repeat(" ", indent) + "- any_of:\n")
			e.blocks(t, indent+4)
		}
	}
}

// write is the whole file.
func (d *draft) write(title []string) ([]byte, error) {
	e := &emitter{}
	for _, line := range title {
		e.comment(0, line)
	}
	if len(d.notes) > 0 {
		e.b.WriteString("#\n")
		e.notes(0, d.notes)
	}
	e.section("server", &d.server)
	e.list("clients", nil, d.clients)
	e.models(d.models)
	if d.pool != nil {
		e.b.WriteString("\n")
		if len(d.pool.pairs) == 0 {
			e.notes(0, d.pool.notes)
			e.b.WriteString("pool: {}\n")
		} else {
			e.b.WriteString("pool:\n")
			e.notes(2, d.pool.notes)
			e.pairs(d.pool, 2, false)
		}
	}
	e.list("upstream", nil, d.upstream)
	e.list("rules", d.ruleNotes, d.rules)
	e.section("request_log", &d.requestLog)
	return []byte(e.b.String()), e.err
}
