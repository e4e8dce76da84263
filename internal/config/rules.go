package config

import (
	"errors"
	"maps"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The words of rules.
var (
	// Classes are the failures that are no HTTP status.
	Classes = []string{"network", "bad_stream", "stalled_stream", "timeout"}
	// Faults say whose fault a failure is.
	Faults = []string{"client", "affinity", "credential", "quota", "rate", "capacity", "model", "server"}
	// Actions are what may follow a failure.
	Actions = []string{"retry", "next", "freeze", "passthrough"}
	// Scopes say how far a freeze reaches, the default first.
	Scopes = []string{"identity", "key", "host", "auto"}
)

// freezeUnits are the words of freeze_unit; minutes is the default.
var freezeUnits = map[string]time.Duration{
	"s": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
}

// draft is a rule while it is read.
type draft struct {
	Rule
	match *node
}

var ruleTable = &table[draft]{
	path: "rules[]",
	together: func() form {
		return form{{"required", []string{"match"}}, {"dependentSchemas", form{{"freeze_from_group", form{{"properties", form{{"match", form{{"required", []string{"body_regex"}}}}}}}}}}}
	},
	doc: "What follows a failure. The first rule that matches decides; where none does, the next candidate is tried.",
	keys: []key[draft]{
		text("name", "", "What logs and explanations call it; rule n by default.", func(r *draft) *string { return &r.Name }),
		custom(Key{Name: "match", Type: "mapping", Doc: "Which failures; all that is given must hold.", form: func() form { return refForm("match") }}, func(_ *decoder, n *node, r *draft) { r.match = n }),
		custom(Key{Name: "action", Type: "one of " + words(Actions), Required: true, Doc: "retry the same candidate; go on to the next; freeze the candidate and go on; or passthrough, which gives the client the upstream's answer.", form: func() form { return choiceForm(Actions) }}, func(d *decoder, n *node, r *draft) {
			if n.kind == kindText && !slices.Contains(Actions, n.text) {
				cure := "write " + words(Actions)
				if near, far := nearest(n.text, Actions); !far {
					cure = "did you mean " + near + "? (" + words(Actions) + ")"
				}
				d.errorOn(n, "unknown action "+quoteKey(n.text), cure)
				return
			}
			r.Action, _ = d.choice(n, Actions)
		}),
		whole("max_attempts", 3, 1, maxCount, "Retry: attempts at this candidate, the first one included.", func(r *draft) *int { return &r.MaxAttempts }),
		custom(Key{Name: "backoff_base", Type: "number", Default: "1.5", Range: "0 to 3600", Doc: "Retry: the wait before attempt n+1 is this to the power of n, in seconds.", form: func() form { return numberForm(0, 3600) }}, func(d *decoder, n *node, r *draft) {
			if !d.wantNumber(n, "a number") {
				return
			}
			if n.num < 0 || n.num > 3600 {
				d.errorOn(n, number(n.num)+" is out of range", "write 0 to 3600")
				return
			}
			r.BackoffBase = n.num
		}).withDefault(func(r *draft) { r.BackoffBase = 1.5 }),
		seconds("max_wait", 30, zeroUp, "Retry: the longest wait; an upstream that asks for more is left for the next.", func(r *draft) *dur { return &r.MaxWait }),
		custom(Key{Name: "freeze_from_group", Type: "whole number", Range: "a group of body_regex", Doc: "Freeze: the group of body_regex that holds the length.", form: func() form { return wholeForm(1, 1000) }}, func(d *decoder, n *node, r *draft) {
			if v, ok := d.whole(n, 1, 1000); ok {
				r.FreezeGroup = int(v)
			}
		}),
		custom(Key{Name: "freeze_unit", Type: "one of seconds, minutes or hours", Default: "minutes", Doc: "Freeze: the unit of that group's number; also s, m, h and the singulars.", form: func() form { return choiceForm(slices.Sorted(maps.Keys(freezeUnits))) }}, func(d *decoder, n *node, r *draft) {
			if v, ok := d.choice(n, slices.Sorted(maps.Keys(freezeUnits))); ok {
				r.FreezeUnit = freezeUnits[v]
			}
		}).withDefault(func(r *draft) { r.FreezeUnit = time.Minute }),
		seconds("freeze_seconds", 300, positive, "Freeze: the length where neither the group nor the upstream says one.", func(r *draft) *dur { return &r.Freeze }),
		choice("scope", Scopes, "Freeze: how far it reaches: the candidate's identity; its key, with whatever model; its host, with whatever key; auto goes by the evidence.", func(r *draft) *string { return &r.Scope }),
	},
}

var matchTable = &table[draft]{
	path:     "rules[].match",
	together: func() form { return oneOfKeys("anyOf", "status", "body_regex", "fault") },
	doc:      "The conditions of a rule, at least one.",
	keys: []key[draft]{
		custom(Key{Name: "status", Type: "status, class, or a list of them", Doc: "HTTP statuses, or the classes " + words(Classes) + ".", form: func() form { return oneOrMoreForm(failureForm()) }}, (*decoder).matchStatus),
		custom(Key{Name: "body_regex", Type: "regular expression (RE2)", Doc: "Searched without regard to case in the raw body, in the error message inside it, and in our own text of the failure.", form: func() form { return form{{"type", "string"}, {"minLength", 1}, {"format", "regex"}} }}, (*decoder).matchBody),
		custom(Key{Name: "fault", Type: "fault, or a list of them", Doc: "Whose fault the failure is: " + words(Faults) + ".", form: func() form { return oneOrMoreForm(choiceForm(Faults)) }}, (*decoder).matchFault),
	},
}

// rules reads a list of rules; name makes the names of those that have none,
// from 1.
func (d *decoder) rules(n *node, name func(i int) string) []Rule {
	list := []Rule{}
	d.each(n, func(item *node) {
		r := &draft{Rule: Rule{}}
		given := ruleTable.decode(d, item, r)
		if item.kind != kindMap {
			return
		}
		r.Line, _ = d.doc.position(outerStart(item))
		if r.Name == "" {
			r.Name = name(len(list) + 1)
		}
		d.match(item, r)
		d.checkRule(r, given)
		list = append(list, r.Rule)
	})
	return list
}

func (d *decoder) match(item *node, r *draft) {
	if r.match == nil {
		d.errorAt(outerStart(item), "a rule with nothing to match", "add match with status, body_regex or fault")
		return
	}
	leave := d.enter(".match")
	defer leave()
	given := matchTable.decode(d, r.match, r)
	if r.match.kind == kindNull || r.match.kind == kindMap && len(given) == 0 {
		d.errorOn(r.match, "a rule with nothing to match", "give status, body_regex or fault")
	}
}

// checkRule looks at what the keys of one rule say together.
func (d *decoder) checkRule(r *draft, given map[string]*node) {
	if at := given["freeze_from_group"]; at != nil && r.FreezeGroup > 0 {
		switch {
		case r.match.find("body_regex") == nil:
			d.errorOn(at, "freeze_from_group without body_regex", "give match.body_regex a group that holds the length")
		case r.Body != nil && r.FreezeGroup > r.Body.Groups():
			d.errorOn(at, "body_regex has no group "+itoa(r.FreezeGroup), "it has "+itoa(r.Body.Groups()))
		}
	}
	for _, name := range []string{"max_attempts", "backoff_base", "max_wait", "freeze_from_group", "freeze_unit", "freeze_seconds", "scope"} {
		of := "retry"
		if strings.HasPrefix(name, "freeze") || name == "scope" {
			of = "freeze"
		}
		if at := given[name]; at != nil && r.Action != "" && r.Action != of {
			d.warnAt(at.outer, name+" has no effect with action "+r.Action, "it belongs to "+of)
		}
	}
}

// oneOrMore calls f for a value, or for every item where it is a list.
func (d *decoder) oneOrMore(n *node, f func(*node)) {
	if n.kind != kindList {
		f(n)
		return
	}
	if len(n.items) == 0 {
		d.errorOn(n, "an empty list, which nothing matches", "give at least one, or remove the key")
	}
	d.each(n, f)
}

func (d *decoder) matchStatus(n *node, r *draft) {
	d.oneOrMore(n, func(item *node) {
		if item.kind != kindText {
			if v, ok := d.status(item); ok {
				r.Statuses = append(r.Statuses, v)
			}
			return
		}
		if v := plainScalar(item.text); v.kind == kindInt {
			d.errorOn(item, "a status in quotes", "write the number without quotes")
			return
		}
		if v, ok := d.choice(item, Classes); ok {
			r.Classes = append(r.Classes, v)
		}
	})
}

// status is one that can be a failure.
func (d *decoder) status(n *node) (int, bool) {
	if n.kind != kindInt {
		if n.kind == kindText {
			d.errorOn(n, "text where a status is due", "write a number such as 429")
			return 0, false
		}
		if n.pointed(300, 999) {
			d.errorOn(n, "a whole number with a point", "write a status such as 429")
			return 0, false
		}
		d.wrongType(n, "a status such as 429")
		return 0, false
	}
	switch {
	case 200 <= n.int && n.int <= 299:
		d.errorOn(n, "status "+strconv.FormatInt(n.int, 10)+" is no failure", "for errors inside a 200 write bad_stream, or the status they carry")
	case n.int < 300 || n.int > 999:
		d.errorOn(n, strconv.FormatInt(n.int, 10)+" is no status of a failure", "write 300 to 999")
	default:
		return int(n.int), true
	}
	return 0, false
}

func (d *decoder) matchFault(n *node, r *draft) {
	d.oneOrMore(n, func(item *node) {
		if v, ok := d.choice(item, Faults); ok {
			r.Faults = append(r.Faults, v)
		}
	})
}

// maxRegex bounds a pattern; what is longer is no pattern a person wrote.
const maxRegex = 16 << 10

var backReference = lazily(`\\(\\.|[1-9]|k[<{'])`)

// matchBody compiles a pattern. Patterns of other languages that RE2 has not
// are told by their name.
func (d *decoder) matchBody(n *node, r *draft) {
	if n.kind != kindText {
		d.wrongType(n, "a pattern in quotes")
		return
	}
	switch {
	case n.text == "":
		d.errorOn(n, "an empty pattern, which matches everything", "write one, or remove the key")
		return
	case len(n.text) > maxRegex:
		d.errorOn(n, "a pattern of more than 16 KiB", "write a shorter one")
		return
	}
	re, err := compileExpression("(?i)" + n.text)
	if err == nil {
		r.Body, r.BodySource = re, n.text
		return
	}
	what := "bad regular expression"
	cure := "see https://golang.org/s/re2syntax"
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		what += ": " + e.Code.String()
	}
	escaped := backReference().FindAllString(n.text, -1)
	switch {
	case strings.Contains(n.text, "(?=") || strings.Contains(n.text, "(?!") || strings.Contains(n.text, "(?<=") || strings.Contains(n.text, "(?<!"):
		what, cure = "look-around in a regular expression", "RE2 has none: match the text itself"
	case slices.ContainsFunc(escaped, func(s string) bool { return s[1] != '\\' }):
		what, cure = "a back-reference in a regular expression", "RE2 has none: write the text again"
	}
	d.errorOn(n, what, cure)
}
