package control

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/config"
	"understudy/internal/route"
)

func listRules(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	v := c.view()
	common := "common"
	if v.BuiltInRules {
		common = "built-in"
	}
	t := newTable("rules", ">#", "name", "match", "action")
	list := func(of string, rules []Rule) {
		for i := range rules {
			r := &rules[i]
			t.row(first(i, of), strconv.Itoa(r.Index), r.Name, matchText(r), actionText(r))
		}
	}
	note := ""
	if len(c.args) > 0 {
		chain, err := c.chain(c.args[0])
		if err != nil {
			return "", err
		}
		list(c.name(chain.Model), c.rules(c.ownRules(chain)))
		if chain.Pool {
			pool := c.s.Config.Pool
			note = fmt.Sprintf("\n\nafter them the pool's table: %s and failures without an answer freeze for the reset hint or %s s, then next; anything else is passed through",
				joined(pool.RetryStatuses), decimal(pool.Cooldown.Seconds()))
		} else {
			list(common, v.Rules)
		}
	} else {
		list(common, v.Rules)
		for i := range v.Models {
			list(v.Models[i].Name, v.Models[i].Rules)
		}
	}
	switch {
	case len(t.rows) > 1:
		return t.String() + note, nil
	case note != "":
		return "no rules of its own" + note, nil
	}
	return "no rules: every failure goes on to the next candidate", nil
}

func joined(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

func matchText(r *Rule) string {
	var parts []string
	if len(r.Status) > 0 {
		parts = append(parts, "status "+strings.Join(r.Status, ","))
	}
	if len(r.Fault) > 0 {
		parts = append(parts, "fault "+strings.Join(r.Fault, ","))
	}
	if r.Body != "" {
		pattern := []rune(r.Body)
		if len(pattern) > 60 {
			pattern = append(pattern[:60], '…')
		}
		parts = append(parts, "body /"+string(pattern)+"/")
	}
	return strings.Join(parts, " and ")
}

func actionText(r *Rule) string {
	switch r.Action {
	case "retry":
		return fmt.Sprintf("retry x%d, base %s, at most %s s", r.MaxAttempts, decimal(r.BackoffBase), decimal(r.MaxWaitSeconds))
	case "freeze":
		text := "freeze, hint or " + decimal(r.FreezeSeconds) + " s"
		if r.FreezeGroup > 0 {
			text += fmt.Sprintf("; group %d x %s s first", r.FreezeGroup, decimal(r.FreezeUnitSeconds))
		}
		if r.Scope != config.Scopes[0] {
			text += "; scope " + r.Scope
		}
		return text
	}
	return r.Action
}

// A ruleList is a list of rules in the file.
type ruleList struct {
	name  string // for people
	path  []any
	rules []config.Rule
	// write is the whole list as it is to be written first, because it does not
	// stand in the file; nil where it does.
	write []config.Map
}

// ruleList finds the list that a command is about: the common one, or that of the
// chain named in front.
func (c *call) ruleList(f *file, owner string) (*ruleList, error) {
	switch {
	case owner == "":
		l := &ruleList{name: "the common rules", path: []any{"rules"}, rules: f.cfg.Rules}
		if f.cfg.BuiltInRules {
			l.write = []config.Map{}
			for i := range l.rules {
				l.write = append(l.write, ruleValue(&l.rules[i]))
			}
		}
		return l, nil
	case owner == route.PoolName:
		if f.cfg.Pool == nil {
			return nil, errors.New("there is no pool")
		}
		return &ruleList{name: "the pool's rules", path: []any{"pool", "rules"}, rules: f.cfg.Pool.Rules}, nil
	}
	m := f.model(owner)
	if m == nil {
		return nil, c.unknownModel(owner)
	}
	if f.isList([]any{"virtual_models", m.Name}) {
		return nil, fmt.Errorf("%s is a plain list of candidates in the file and has no place for rules: write it there as {candidates: [...], rules: [...]} first", c.name(m.Name))
	}
	return &ruleList{name: "the rules of " + c.name(m.Name), path: []any{"virtual_models", m.Name, "rules"}, rules: m.Rules}, nil
}

// owner takes the name of a chain off the front of arguments, "" where what
// stands there is something else.
func owner(args []string, n int) (string, []string) {
	if len(args) > n {
		if _, isIndex := index(args[0]); !isIndex && args[0] != "at" && !strings.Contains(args[0], "=") && !strings.HasPrefix(args[0], "{") {
			return strings.TrimSpace(args[0]), args[1:]
		}
	}
	return "", args
}

// editRules changes one list of rules, which first gets into the file if it is the
// built-in one.
func (c *call) editRules(name string, change func(f *file, l *ruleList) (config.Source, string, error)) (string, error) {
	var did, list string
	written := ""
	notes, err := c.edit(func(f *file) (config.Source, error) {
		l, err := c.ruleList(f, name)
		if err != nil {
			return f.Source, err
		}
		list, written = l.name, ""
		if l.write != nil {
			if f.Source, err = f.Set(l.path, l.write); err != nil {
				return f.Source, err
			}
			written = "\nthe built-in rules stand in the file now, as they were"
		}
		out, what, err := change(f, l)
		did = what
		return out, err
	}, func() string { return list + ": " + did })
	if err != nil {
		return "", err
	}
	return list + ": " + did + written + notes, nil
}

func addRule(c *call) (string, error) {
	if err := c.want(1, -1); err != nil {
		return "", err
	}
	name, rest := owner(c.args, 1)
	at, rest, err := c.position(rest)
	if err != nil {
		return "", err
	}
	v, err := c.value(rest, ruleSection, false)
	if err != nil {
		return "", err
	}
	return c.editRules(name, func(f *file, l *ruleList) (config.Source, string, error) {
		place := len(l.rules)
		if at > 0 {
			if err := l.check(f, at, len(l.rules)+1); err != nil {
				return f.Source, "", err
			}
			place = at - 1
		}
		out, err := f.Insert(l.path, place, v)
		return out, fmt.Sprintf("added rule %d", place+1), err
	})
}

func removeRule(c *call) (string, error) {
	if err := c.want(1, 2); err != nil {
		return "", err
	}
	name, rest := owner(c.args, 1)
	n, err := c.indexes(rest, 1)
	if err != nil {
		return "", err
	}
	return c.editRules(name, func(f *file, l *ruleList) (config.Source, string, error) {
		if err := l.check(f, n[0], len(l.rules)); err != nil {
			return f.Source, "", err
		}
		out, err := f.Remove(slices.Concat(l.path, []any{n[0] - 1}))
		return out, fmt.Sprintf("removed rule %d%s", n[0], c.given(&l.rules[n[0]-1])), err
	})
}

func moveRule(c *call) (string, error) {
	if err := c.want(2, 3); err != nil {
		return "", err
	}
	name, rest := owner(c.args, 2)
	n, err := c.indexes(rest, 2)
	if err != nil {
		return "", err
	}
	return c.editRules(name, func(f *file, l *ruleList) (config.Source, string, error) {
		for _, i := range n {
			if err := l.check(f, i, len(l.rules)); err != nil {
				return f.Source, "", err
			}
		}
		out, err := f.Move(l.path, n[0]-1, n[1]-1)
		return out, fmt.Sprintf("moved rule %d%s to %d", n[0], c.given(&l.rules[n[0]-1]), n[1]), err
	})
}

// given is a rule's name in brackets, "" for one that is only its number.
func (c *call) given(r *config.Rule) string {
	if strings.HasPrefix(r.Name, "rule ") || strings.HasPrefix(r.Name, "pool rule ") {
		return ""
	}
	return " (" + c.name(r.Name) + ")"
}

// indexes reads exactly so many of them.
func (c *call) indexes(args []string, want int) ([]int, error) {
	var list []int
	for _, a := range args {
		n, ok := index(a)
		if !ok {
			return nil, c.misuse(c.shown(a) + " is no index")
		}
		list = append(list, n)
	}
	if len(list) != want {
		return nil, c.misuse(fmt.Sprintf("%s takes %d index(es)", c.command.Name, want))
	}
	return list, nil
}

// check says whether an index that a person read off a list fits this one.
func (l *ruleList) check(f *file, n, most int) error {
	switch {
	case most == 0:
		return errors.New(l.name + ": there are none")
	case n < 1 || n > most:
		return fmt.Errorf("%s: the index is 1 to %d, not %d", l.name, most, n)
	}
	return f.fresh(strconv.Itoa(n))
}

// ruleValue is a rule as it is written into a file, without what is the default.
func ruleValue(r *config.Rule) config.Map {
	var match config.Map
	var status []any
	for _, s := range r.Statuses {
		status = append(status, s)
	}
	for _, s := range r.Classes {
		status = append(status, s)
	}
	if len(status) > 0 {
		match = append(match, config.Entry{Key: "status", Value: oneOf(status)})
	}
	if r.BodySource != "" {
		match = append(match, config.Entry{Key: "body_regex", Value: r.BodySource})
	}
	var faults []any
	for _, s := range r.Faults {
		faults = append(faults, s)
	}
	if len(faults) > 0 {
		match = append(match, config.Entry{Key: "fault", Value: oneOf(faults)})
	}
	m := config.Map{{Key: "name", Value: r.Name}, {Key: "match", Value: match}, {Key: "action", Value: r.Action}}
	add := func(key string, v any) { m = append(m, config.Entry{Key: key, Value: v}) }
	switch r.Action {
	case "retry":
		add("max_attempts", r.MaxAttempts)
		add("backoff_base", r.BackoffBase)
		add("max_wait", r.MaxWait.Seconds())
	case "freeze":
		add("freeze_seconds", r.Freeze.Seconds())
		if r.FreezeGroup > 0 {
			add("freeze_from_group", r.FreezeGroup)
			add("freeze_unit", map[time.Duration]string{time.Second: "seconds", time.Minute: "minutes", time.Hour: "hours"}[r.FreezeUnit])
		}
		if r.Scope != config.Scopes[0] {
			add("scope", r.Scope)
		}
	}
	return m
}

// oneOf is the only item of a list, else the list.
func oneOf(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}
