package config

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Key describes one key of a configuration file: for the reference, for
// completion, and for the tests that compare the two.
type Key struct {
	Name string
	// Type is what the value is, in words that commands go by too: "seconds",
	// "minutes", "milliseconds", "whole number", "number", "bytes", "true or false", "text",
	// "secret", "one of a, b or c", "list of ...", "mapping of ...", or what
	// ends in "or a list of them".
	Type    string
	Default string // as it would be written; "" where there is none
	// DefaultWords say what holds without the key where that is no value of its
	// own, or too long a one: the reference shows them instead of Default.
	DefaultWords string
	Range        string // "> 0", "at least 1", ...; "" where the type says it all
	Doc          string // one sentence
	Required     bool
	Secret       bool // its value is never shown
	// form makes what its value may be, for the JSON Schema: hardly any process wants one.
	form func() form
}

// ShownDefault is what people read as the default: the words for it where there are
// some, else the value.
func (k *Key) ShownDefault() string { return cmp.Or(k.DefaultWords, k.Default) }

// Section describes one mapping of a configuration file.
type Section struct {
	Path string // "server", "virtual_models.*[]", ...
	Doc  string
	Keys []Key
}

// key binds a Key to the place its value lands in.
type key[T any] struct {
	Key
	preset func(*T)                  // writes the default; nil where the zero value is it
	read   func(*decoder, *node, *T) // checks a value and writes it
}

// table is the keys of one kind of mapping.
type table[T any] struct {
	path, doc string
	keys      []key[T]
	// together is what the JSON Schema says of the keys as a whole, besides their
	// names and which of them are required; nil where there is nothing to say.
	together func() form
	// empty says that the mapping may be null, which is as if it were not there.
	empty bool
}

func (t *table[T]) section() Section {
	s := Section{Path: t.path, Doc: t.doc}
	for _, k := range t.keys {
		s.Keys = append(s.Keys, k.Key)
	}
	return s
}

// Schema lists every mapping and every key that a file may hold, in the order
// of the reference.
func Schema() []Section {
	return []Section{
		fileTable.section(), serverTable.section(), endpointTable.section(),
		poolTable.section(), upstreamTable.section(),
		modelTable.section(), candidateTable.section(), hedgeTable.section(),
		ruleTable.section(), matchTable.section(),
		clientTable.section(), storeTable.section(), requestLogTable.section(),
	}
}

// Retired returns what replaced a key of older files, "" if the key is not one
// of those.
func Retired(key string) string { return retired[key] }

var retired = map[string]string{
	"request_timeout":       "stream_timeout and nonstream_timeout",
	"first_content_timeout": "content_timeout",
}

// decode checks a mapping against the table and writes what it holds. It
// returns the values that were given, by key.
func (t *table[T]) decode(d *decoder, n *node, into *T) map[string]*node {
	for _, k := range t.keys {
		if k.preset != nil {
			k.preset(into)
		}
	}
	given := map[string]*node{}
	if n == nil || n.kind == kindNull {
		return given
	}
	if n.kind != kindMap {
		d.wrongType(n, "a mapping")
		return given
	}
	for i := range n.pairs {
		p := &n.pairs[i]
		if p.key == "<<" && p.value.kind != kindText || freeKey(p.key) {
			continue
		}
		if !d.visit(p.value) {
			return given
		}
		leave := d.enter("." + p.key)
		if k := t.key(p.key); k != nil {
			given[p.key] = p.value
			k.read(d, p.value, into)
		} else {
			d.unknownKey(p, t.names())
		}
		leave()
	}
	for _, k := range t.keys {
		if k.Required && given[k.Name] == nil {
			d.errorAt(outerStart(n), k.Name+" is missing", "add "+k.Name)
		}
	}
	return given
}

func (t *table[T]) key(name string) *key[T] {
	for i := range t.keys {
		if t.keys[i].Name == name {
			return &t.keys[i]
		}
	}
	return nil
}

func (t *table[T]) names() []string {
	names := make([]string, len(t.keys))
	for i, k := range t.keys {
		names[i] = k.Name
	}
	return names
}

// freeKey reports a key that may hold anything, for anchors.
func freeKey(key string) bool {
	return strings.HasPrefix(key, "x-") || strings.HasPrefix(key, ".")
}

// required marks a key as one that must be given.
func (k key[T]) required() key[T] {
	k.Required = true
	return k
}

// notEmpty is for a list that says something only where it has items.
func (k key[T]) notEmpty() key[T] {
	k.Default = ""
	all := k.form
	k.form = func() form { return append(all(), keyword{"minItems", 1}) }
	return k
}

// The constructors below make keys of one type each. at returns the place the
// value lands in.

// positive and zeroUp are the two ranges a length of time may have.
type lowest uint8

const (
	positive lowest = iota // > 0
	zeroUp                 // ≥ 0
)

// maxSeconds keeps every length of time far inside a time.Duration.
const maxSeconds = 1e9

func seconds[T any](name string, def float64, low lowest, doc string, at func(*T) *time.Duration) key[T] {
	return length(name, def, time.Second, low, doc, at)
}

func minutes[T any](name string, def float64, low lowest, doc string, at func(*T) *time.Duration) key[T] {
	return length(name, def, time.Minute, low, doc, at)
}

// millis is a time in milliseconds, of which def is the default.
func millis[T any](name string, def time.Duration, low lowest, doc string, at func(*T) *time.Duration) key[T] {
	return length(name, float64(def/time.Millisecond), time.Millisecond, low, doc, at)
}

// length is a number of units. A default below zero means there is none.
func length[T any](name string, def float64, unit time.Duration, low lowest, doc string, at func(*T) *time.Duration) key[T] {
	typ := unitWord(unit)
	k := key[T]{Key: Key{Name: name, Type: typ, Range: "> 0", Doc: doc, form: func() form { return lengthForm(unit, low) }}}
	if low == zeroUp {
		k.Range = "at least 0"
	}
	if def >= 0 {
		k.Default = number(def)
		k.preset = func(t *T) { *at(t) = time.Duration(def * float64(unit)) }
	}
	k.read = func(d *decoder, n *node, t *T) {
		if v, ok := d.length(n, unit, low); ok {
			*at(t) = v
		}
	}
	return k
}

// unitWord is the plural of a unit of time.
func unitWord(unit time.Duration) string {
	switch unit {
	case time.Millisecond:
		return "milliseconds"
	case time.Minute:
		return "minutes"
	}
	return "seconds"
}

// number writes a number as people do, without hundreds of zeros.
func number(f float64) string {
	if size := math.Abs(f); size >= 1e15 || 0 < size && size < 1e-6 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func whole[T any](name string, def, low, high int, doc string, at func(*T) *int) key[T] {
	k := key[T]{Key: Key{Name: name, Type: "whole number", Default: itoa(def), Range: wholeRange(int64(low), int64(high)), Doc: doc, form: func() form { return wholeForm(low, high) }}}
	k.preset = func(t *T) { *at(t) = def }
	k.read = func(d *decoder, n *node, t *T) {
		if v, ok := d.whole(n, int64(low), int64(high)); ok {
			*at(t) = int(v)
		}
	}
	return k
}

// maxCount bounds counts where nothing else does, so that they fit an int
// everywhere.
const maxCount = math.MaxInt32

func wholeRange(low, high int64) string {
	if high >= maxCount {
		return "at least " + strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func size[T any](name string, def, low int64, doc string, at func(*T) *int64) key[T] {
	k := key[T]{Key: Key{Name: name, Type: "bytes", Default: sizeText(def), Range: "at least " + sizeText(low), Doc: doc, form: func() form { return sizeForm(low) }}}
	k.preset = func(t *T) { *at(t) = def }
	k.read = func(d *decoder, n *node, t *T) {
		if v, ok := d.size(n, low); ok {
			*at(t) = v
		}
	}
	return k
}

func boolean[T any](name string, def bool, doc string, at func(*T) *bool) key[T] {
	return key[T]{
		Key:    Key{Name: name, Type: "true or false", Default: strconv.FormatBool(def), Doc: doc, form: func() form { return form{{"type", "boolean"}} }},
		preset: func(t *T) { *at(t) = def },
		read: func(d *decoder, n *node, t *T) {
			if v, ok := d.flag(n); ok {
				*at(t) = v
			}
		},
	}
}

// choice is one word of a list; the first is the default. Words "on" and "off"
// may also be written as true and false.
func choice[T any](name string, options []string, doc string, at func(*T) *string) key[T] {
	return key[T]{
		Key:    Key{Name: name, Type: "one of " + words(options), Default: options[0], Doc: doc, form: func() form { return choiceForm(options) }},
		preset: func(t *T) { *at(t) = options[0] },
		read: func(d *decoder, n *node, t *T) {
			if v, ok := d.choice(n, options); ok {
				*at(t) = v
			}
		},
	}
}

// text is a line of text without control characters, never empty.
func text[T any](name, def, doc string, at func(*T) *string) key[T] {
	return key[T]{
		Key:    Key{Name: name, Type: "text", Default: def, Doc: doc, form: lineForm},
		preset: func(t *T) { *at(t) = def },
		read: func(d *decoder, n *node, t *T) {
			if v, ok := d.line(n); ok {
				*at(t) = v
			}
		},
	}
}

// texts is a list of lines of text, each of the form item and checked by check.
func texts[T any](name, doc string, item func() form, at func(*T) *[]string, check func(d *decoder, n *node, s string) (string, bool)) key[T] {
	return key[T]{
		Key: Key{Name: name, Type: "list of text", Default: "[]", Doc: doc, form: func() form { return listForm(item()) }},
		read: func(d *decoder, n *node, t *T) {
			list := []string{}
			d.each(n, func(item *node) {
				if s, ok := d.line(item); ok {
					if s, ok = check(d, item, s); ok {
						list = append(list, s)
					}
				}
			})
			*at(t) = list
		},
	}
}

// custom is a key with a reader of its own.
func custom[T any](k Key, read func(*decoder, *node, *T)) key[T] {
	return key[T]{Key: k, read: read}
}
