package control

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
)

func listCandidates(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	only := ""
	if len(c.args) > 0 {
		chain, err := c.chain(c.args[0])
		if err != nil {
			return "", err
		}
		only = c.name(chain.Model)
	}
	v := c.view()
	t := newTable("vm", ">#", ">tier", "name", "model", "base url", "key", "auth", ">weight", "enabled", "own timeouts")
	for i := range v.Models {
		m := &v.Models[i]
		if only != "" && m.Name != only {
			continue
		}
		for j := range m.Candidates {
			k := &m.Candidates[j]
			t.row(first(j, m.Name), strconv.Itoa(k.Index), strconv.Itoa(k.Tier), k.Name, orDash(k.Model), k.BaseURL, keyText(k), k.AuthStyle,
				decimal(k.Weight), strconv.FormatBool(k.Enabled), orDash(ownTimeouts(k)))
		}
	}
	return t.String(), nil
}

func keyText(k *Candidate) string {
	if len(k.MissingEnv) > 0 {
		return k.Key + " (missing: " + strings.Join(k.MissingEnv, ", ") + ")"
	}
	return k.Key
}

func ownTimeouts(k *Candidate) string {
	all := map[string]float64{
		"stall_timeout": k.Timeouts.Stall, "stream_timeout": k.Timeouts.Stream,
		"nonstream_timeout": k.Timeouts.Nonstream, "content_timeout": k.Timeouts.Content,
	}
	var own []string
	for _, key := range k.Overrides {
		own = append(own, key+"="+decimal(all[key]))
	}
	return strings.Join(own, " ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// position takes "at <index>" off the front of arguments; 0 where it is not there.
func (c *call) position(args []string) (int, []string, error) {
	if len(args) == 0 || args[0] != "at" {
		return 0, args, nil
	}
	if len(args) == 1 {
		return 0, nil, c.misuse("an index comes after at")
	}
	n, ok := index(args[1])
	if !ok || n < 1 {
		return 0, nil, c.misuse(c.shown(args[1]) + " is no index; they count from 1")
	}
	return n, args[2:], nil
}

func addCandidate(c *call) (string, error) {
	if err := c.want(2, -1); err != nil {
		return "", err
	}
	at, rest, err := c.position(c.args[1:])
	if err != nil {
		return "", err
	}
	var name string
	notes, err := c.edit(func(f *file) (config.Source, error) {
		fc, err := f.chain(c, c.args[0])
		if err != nil {
			return f.Source, err
		}
		name = c.name(fc.name)
		v, err := c.value(rest, fc.section(), false)
		if err != nil {
			return f.Source, err
		}
		place := len(fc.entries)
		switch {
		case at > len(fc.members)+1:
			return f.Source, fmt.Errorf("%s has %d candidates: at takes 1 to %d", name, len(fc.members), len(fc.members)+1)
		case at > 0 && at <= len(fc.members):
			if err := f.fresh(strconv.Itoa(at)); err != nil {
				return f.Source, err
			}
			place = fc.places[at-1].entry
		}
		return f.Insert(fc.path, place, v)
	}, func() string { return "a candidate of " + name })
	if err != nil {
		return "", err
	}
	return "added a candidate to " + name + notes, nil
}

func removeCandidate(c *call) (string, error) {
	if err := c.want(2, 2); err != nil {
		return "", err
	}
	var name string
	var gone []string
	notes, err := c.edit(func(f *file) (config.Source, error) {
		fc, err := f.chain(c, c.args[0])
		if err != nil {
			return f.Source, err
		}
		name = c.name(fc.name)
		found, err := fc.pick(c, f, c.args[1])
		if err != nil {
			return f.Source, err
		}
		switch {
		case len(found) == len(fc.members) && fc.pool:
			return f.Source, errors.New("the last upstream of the pool cannot be removed")
		case len(found) == len(fc.members):
			return f.Source, fmt.Errorf("the last candidate of %s cannot be removed; vm rm removes the virtual model", name)
		}
		gone = nil
		for _, i := range found {
			gone = append(gone, c.label(i+1, fc.pool, &fc.members[i]))
		}
		return fc.without(f.Source, found)
	}, func() string { return name + " " + strings.Join(gone, ", ") })
	if err != nil {
		return "", err
	}
	return "removed from " + name + ": " + strings.Join(gone, ", ") + notes, nil
}

// without removes candidates; a group that loses all its members goes with them.
func (fc *fileChain) without(src config.Source, gone []int) (config.Source, error) {
	var paths [][]any
	for i, e := range fc.entries {
		var of []int
		for _, n := range gone {
			if fc.places[n].entry == i {
				of = append(of, n)
			}
		}
		if len(of) == e.size {
			paths = append(paths, fc.at(i))
			continue
		}
		for _, n := range of {
			paths = append(paths, fc.places[n].path)
		}
	}
	// From the end, so that the places before it stay what they are.
	for _, path := range slices.Backward(paths) {
		var err error
		if src, err = src.Remove(path); err != nil {
			return src, err
		}
	}
	return src, nil
}

func moveCandidate(c *call) (string, error) {
	if err := c.want(3, 3); err != nil {
		return "", err
	}
	to, ok := index(c.args[2])
	if !ok {
		return "", c.misuse(c.shown(c.args[2]) + " is no index")
	}
	var name, moved string
	notes, err := c.edit(func(f *file) (config.Source, error) {
		fc, err := f.chain(c, c.args[0])
		if err != nil {
			return f.Source, err
		}
		name = c.name(fc.name)
		found, err := fc.pick(c, f, c.args[1])
		switch {
		case err != nil:
			return f.Source, err
		case len(found) > 1:
			return f.Source, fmt.Errorf("%s are %d candidates of %s: say which by its index", c.shown(c.args[1]), len(found), name)
		case to < 1 || to > len(fc.members):
			return f.Source, fmt.Errorf("%s has candidates 1 to %d, no %d", name, len(fc.members), to)
		}
		moved = c.label(found[0]+1, fc.pool, &fc.members[found[0]])
		return fc.move(f.Source, fc.places[found[0]], fc.places[to-1])
	}, func() string { return fmt.Sprintf("%s %s to %d", name, moved, to) })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("moved in %s: %s, now at %d", name, moved, to) + notes, nil
}

// move puts a candidate where another one is now: within their group, or an entry
// of its own among the entries. What the file holds in one group stays in it.
func (fc *fileChain) move(src config.Source, from, to filePlace) (config.Source, error) {
	switch group := fc.entries[from.entry].group; {
	case group && from.entry == to.entry:
		return src.Move(fc.at(from.entry, "any_of"), from.member, to.member)
	case group && fc.entries[from.entry].size > 1:
		return src, errors.New("it is one of a group of equals (any_of), which has no order towards the others: move it in the file, or remove it here and add it where it is to be")
	case fc.entries[to.entry].size > 1 && to.member != edge(fc, from, to):
		return src, errors.New("that place is inside a group of equals (any_of): give the index before or behind it")
	}
	return src.Move(fc.path, from.entry, to.entry)
}

// edge is the member of a group at which a candidate that comes from before or
// behind it stays outside.
func edge(fc *fileChain, from, to filePlace) int {
	if from.entry < to.entry {
		return fc.entries[to.entry].size - 1
	}
	return 0
}

func setCandidate(c *call) (string, error) {
	if err := c.want(4, 4); err != nil {
		return "", err
	}
	name, text := c.args[2], c.args[3]
	var where []string
	var did string
	notes, err := c.edit(func(f *file) (config.Source, error) {
		fc, err := f.chain(c, c.args[0])
		if err != nil {
			return f.Source, err
		}
		key, err := c.key(name, fc.section())
		if err != nil {
			return f.Source, err
		}
		found, err := fc.pick(c, f, c.args[1])
		if err != nil {
			return f.Source, err
		}
		src := f.Source
		where, did = nil, ""
		for _, i := range found {
			path := slices.Concat(fc.places[i].path, steps(name))
			if src, did, err = c.setAt(src, path, key, text); err != nil {
				return f.Source, err
			}
			where = append(where, c.name(fc.name)+" "+c.label(i+1, fc.pool, &fc.members[i]))
		}
		return src, nil
	}, func() string { return strings.Join(where, ", ") + ": " + did })
	if err != nil {
		return "", err
	}
	return strings.Join(where, ", ") + ": " + did + notes, nil
}

// steps are the path of a key that may stand inside a mapping.
func steps(name string) []any {
	outer, inner, nested := strings.Cut(name, ".")
	if nested {
		return []any{outer, inner}
	}
	return []any{outer}
}

// credentials are the keys of which a candidate has one.
var credentials = []string{"api_key", "api_key_env", "api_key_file"}

// setAt gives a key a value, or takes it out for "default", and tells what it did.
func (c *call) setAt(src config.Source, path []any, key config.Key, text string) (config.Source, string, error) {
	if isDefault(key, text) {
		out, err := src.Remove(path)
		if errors.Is(err, config.ErrNotFound) {
			return src, key.Name + " is not set there, " + c.byDefault(key) + " holds already", nil
		}
		return out, key.Name + " removed, now " + c.byDefault(key), err
	}
	v, err := c.typed(key, text)
	if err != nil {
		return src, "", err
	}
	if slices.Contains(credentials, key.Name) {
		// One credential takes the place of another.
		for _, other := range credentials {
			out, err := src.Remove(append(path[:len(path)-1:len(path)-1], other))
			switch {
			case other == key.Name || errors.Is(err, config.ErrNotFound):
			case err != nil:
				return src, "", err
			default:
				src = out
			}
		}
	}
	out, err := src.Set(path, v)
	return out, key.Name + " = " + c.valueText(key, text), err
}

// isDefault says whether a value takes the key out. none is a value of some keys,
// so that it does so for timeouts only.
func isDefault(key config.Key, text string) bool {
	switch text {
	case "default", "-":
		return true
	case "none":
		return strings.HasSuffix(key.Name, "_timeout")
	}
	return false
}

func (c *call) byDefault(key config.Key) string {
	if key.ShownDefault() == "" {
		return "nothing"
	}
	return key.ShownDefault()
}

// valueText is a value for people and logs; a secret is masked.
func (c *call) valueText(key config.Key, text string) string {
	switch {
	case key.Name == "proxy" && text == "none":
		return text
	case key.Secret:
		return config.Mask(text)
	case key.Name == "base_url":
		return c.safeURL(text)
	}
	return c.name(text)
}
