package control

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
)

// The kinds of mapping that commands write, by their path in config.Schema.
const (
	candidateSection = "virtual_models.*[]"
	upstreamSection  = "upstream[]"
	ruleSection      = "rules[]"
	matchSection     = "rules[].match"
	serverSection    = "server"
)

// schema lists the keys of one kind of mapping.
func schema(path string) []config.Key {
	sections := config.Schema()
	i := slices.IndexFunc(sections, func(s config.Section) bool { return s.Path == path })
	return sections[i].Keys
}

func keyNames(keys []config.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// value reads what follows a name in a command: one word of JSON, or pairs of
// key=value, as a mapping of one kind. Where list is true, a JSON list or a
// mapping of another kind is taken as it is.
func (c *call) value(args []string, section string, other bool) (any, error) {
	if len(args) == 0 {
		return nil, c.misuse(c.command.Name + ": what to add is missing")
	}
	if !strings.HasPrefix(args[0], "{") && !strings.HasPrefix(args[0], "[") {
		return c.pairs(args, section)
	}
	if len(args) > 1 {
		return nil, c.misuse("more words after the JSON value")
	}
	v, err := parseJSON(args[0])
	if err != nil {
		return nil, c.misuse("the JSON value cannot be read: " + err.Error())
	}
	m, isMap := v.(config.Map)
	if other && (!isMap || slices.ContainsFunc(m, func(e config.Entry) bool { return e.Key == "candidates" })) {
		return v, nil
	}
	if !isMap {
		return nil, c.misuse("a JSON list where one JSON object is due")
	}
	known := keyNames(schema(section))
	for _, e := range m {
		if !slices.Contains(known, e.Key) && config.Retired(e.Key) == "" {
			return nil, c.unknownKey(e.Key, known)
		}
	}
	return m, nil
}

// pairs reads key=value pairs. A dot leads into a mapping: headers.x-client=a.
func (c *call) pairs(args []string, section string) (config.Map, error) {
	var m config.Map
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, c.misuse(c.shown(arg) + " is neither JSON nor key=value")
		}
		if section == ruleSection && slices.Contains(keyNames(schema(matchSection)), name) {
			name = "match." + name
		}
		key, err := c.key(name, section)
		if err != nil {
			return nil, err
		}
		v, err := c.typed(key, text)
		if err != nil {
			return nil, err
		}
		outer, inner, nested := strings.Cut(name, ".")
		i := slices.IndexFunc(m, func(e config.Entry) bool { return e.Key == outer })
		if i < 0 {
			i, m = len(m), append(m, config.Entry{Key: outer})
		} else if !nested {
			return nil, c.misuse(outer + " stands there twice")
		}
		if !nested {
			m[i].Value = v
			continue
		}
		within, ok := m[i].Value.(config.Map)
		if !ok && m[i].Value != nil || slices.ContainsFunc(within, func(e config.Entry) bool { return e.Key == inner }) {
			return nil, c.misuse(outer + "." + inner + " stands there twice")
		}
		m[i].Value = append(within, config.Entry{Key: inner, Value: v})
	}
	return m, nil
}

// key finds the description of a key, of one inside a mapping too
// ("match.status", "headers.x-client").
func (c *call) key(name, section string) (config.Key, error) {
	outer, inner, nested := strings.Cut(name, ".")
	keys := schema(section)
	i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == outer })
	if i < 0 {
		return config.Key{}, c.unknownKey(outer, keyNames(keys))
	}
	switch {
	case !nested:
		return keys[i], nil
	case section == ruleSection && outer == "match":
		return c.key(inner, matchSection)
	case strings.HasPrefix(keys[i].Type, "mapping of header"):
		return config.Key{Name: name, Type: "text", Secret: true}, nil
	}
	return config.Key{}, c.misuse(outer + " has nothing inside it that can be named")
}

func (c *call) unknownKey(name string, known []string) error {
	if by := config.Retired(name); by != "" {
		return fmt.Errorf("%s is retired and has no effect: use %s", name, by)
	}
	guess := c.didYouMean(name, known)
	if guess == "" {
		guess = "; known here are " + strings.Join(known, ", ")
	}
	return fmt.Errorf("no key %s%s", c.shown(name), guess)
}

// typed turns a word into a value of the key's type. Ranges are checked with the
// whole file.
func (c *call) typed(key config.Key, text string) (any, error) {
	wrong := func(want string) error {
		given := c.shown(text)
		if key.Secret {
			given = "this"
		}
		return fmt.Errorf("%s takes %s, not %s", key.Name, want, given)
	}
	switch t := key.Type; {
	case numeric(key):
		if n, ok := number(text); ok {
			return n, nil
		}
		if t == "bytes" && text != "" {
			return text, nil // with a unit: the file's reader knows them
		}
		return nil, wrong("a number")
	case t == "true or false":
		switch strings.ToLower(text) {
		case "true", "on", "yes":
			return true, nil
		case "false", "off", "no":
			return false, nil
		}
		return nil, wrong("true or false")
	case strings.HasSuffix(t, "or a list of them"):
		return oneOrMore(text), nil
	case strings.HasPrefix(t, "list"), strings.HasPrefix(t, "mapping"):
		v, err := parseJSON(text)
		_, isMap := v.(config.Map)
		if err != nil || isMap != strings.HasPrefix(t, "mapping") {
			return nil, wrong("a " + t + ", written as JSON")
		}
		return v, nil
	case text == "":
		return nil, wrong("a value")
	}
	return text, nil
}

func numeric(key config.Key) bool {
	switch key.Type {
	case "seconds", "minutes", "whole number", "number", "bytes":
		return true
	}
	return false
}

// number reads a finite number as people write it, whole ones as such.
func number(text string) (any, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(text, "xXpP_") {
		return nil, false
	}
	return f, true
}

// oneOrMore is a word, or a list of those with commas between them; numbers are
// numbers.
func oneOrMore(text string) any {
	var list []any
	for part := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
		part = strings.Trim(strings.TrimSpace(part), `"`)
		if n, ok := number(part); ok {
			list = append(list, n)
		} else {
			list = append(list, part)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// parseJSON reads one JSON value, mappings in the order in which they stand.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeJSON(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows it, at byte %d", d.InputOffset())
	}
	return v, nil
}

func decodeJSON(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		n, ok := number(t.String())
		if !ok {
			return nil, fmt.Errorf("a number out of range, at byte %d", d.InputOffset())
		}
		return n, nil
	case json.Delim:
		if t == '[' {
			return decodeList(d)
		}
		return decodeMap(d)
	}
	return t, nil // text, true, false, null
}

func decodeList(d *json.Decoder) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeJSON(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func decodeMap(d *json.Decoder) (any, error) {
	m := config.Map{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string) // the decoder takes nothing else here
		if slices.ContainsFunc(m, func(e config.Entry) bool { return e.Key == key }) {
			return nil, fmt.Errorf("a key that stands there twice, at byte %d", d.InputOffset())
		}
		v, err := decodeJSON(d)
		if err != nil {
			return nil, err
		}
		m = append(m, config.Entry{Key: key, Value: v})
	}
	_, err := d.Token()
	return m, err
}
