package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// A form is a piece of the JSON Schema: what a value may be. Its keywords keep their
// order.
type form []keyword

// keyword is one member of a form.
type keyword struct {
	name  string
	value any // what encoding/json takes, or a form
}

// MarshalJSON writes an object whose keywords keep their order, in ASCII, so that the
// characters a pattern refuses are seen.
func (f form) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, f)
	return b.Bytes(), err
}

func writeJSON(b *bytes.Buffer, v any) error {
	list := func(open, end byte, n int, item func(i int) error) error {
		b.WriteByte(open)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item(i); err != nil {
				return err
			}
		}
		b.WriteByte(end)
		return nil
	}
	switch v := v.(type) {
	case form:
		return list('{', '}', len(v), func(i int) error {
			if err := writeJSON(b, v[i].name); err != nil {
				return err
			}
			b.WriteByte(':')
			return writeJSON(b, v[i].value)
		})
	case []form:
		return list('[', ']', len(v), func(i int) error { return writeJSON(b, v[i]) })
	case []any:
		return list('[', ']', len(v), func(i int) error { return writeJSON(b, v[i]) })
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	for _, r := range strings.TrimSuffix(text.String(), "\n") {
		if r < unicode.MaxASCII {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(b, "\\u%04x", r)
		}
	}
	return nil
}

// Patterns are written so that Go, JavaScript and the engines of editors read them
// alike: no look-around, no escapes that only some know.
const (
	// control are the characters that hasControl refuses, as part of a class.
	control = "\\x00-\\x1f\\x7f-\\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
	// blank are the characters that strings.TrimSpace cuts off and control has not.
	blank = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
	// tokenChars are the characters of a header's name.
	tokenChars = "A-Za-z0-9!#$%&'*+.^_`|~-"
	// notInURL are those that must be escaped in a URL, besides control.
	notInURL = " \"<>\\\\^`{|}"
	// portNumber is 0 to 65535.
	portNumber = "0*([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
)

// What the validator asks of text by a pattern, the JSON Schema asks by the same one.
const (
	timePattern     = "^[ \\t]*(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+[ \\t]*$"
	sharePattern    = `^[ \t]*0*(100([.]0*)?|[0-9]{1,2}([.][0-9]*)?|[.][0-9]+)[ \t]*%[ \t]*$`
	sizePattern     = `^[ \t]*[0-9]+[ \t]*(KiB|MiB|GiB)$`
	originPattern   = `^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@* ` + control + `]+$`
	hostPattern     = `^([^:/@ \[\]` + control + `]+|\[?[0-9A-Fa-f:.]+(%[^` + control + `]*)?\]?|\[[^:/@ \[\]` + control + `]+\])$`
	hostNamePattern = `^[^/?#@* ` + control + `]+$`
)

var (
	timeText     = lazily(timePattern)
	shareText    = lazily(sharePattern)
	sizeWords    = lazily(sizePattern)
	originText   = lazily(originPattern)
	hostText     = lazily(hostPattern)
	hostNameText = lazily(hostNamePattern)
)

// lazily compiles an expression when it is first used: a process that serves uses few of
// them, and all together take 0.4 MiB and some milliseconds.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// noShare is a share of nothing.
const noShare = `^[ \t0.]*%[ \t]*$`

func refForm(name string) form { return form{{"$ref", "#/$defs/" + name}} }

func patternForm(pattern string) form { return form{{"type", "string"}, {"pattern", pattern}} }

// lineForm is text without control characters, never empty.
func lineForm() form { return refForm("line") }

func variableForm() form { return refForm("variable") }

func listForm(item form) form { return form{{"type", "array"}, {"items", item}} }

func oneOrMoreForm(item form) form {
	return form{{"anyOf", []form{item, {{"type", "array"}, {"minItems", 1}, {"items", item}}}}}
}

// lengthRange is the shortest and the longest time but 0 that a file may say, in
// units.
func lengthRange(unit time.Duration) (least, most float64) {
	return time.Millisecond.Seconds() / unit.Seconds(), maxSeconds / unit.Seconds()
}

func lengthForm(unit time.Duration, low lowest) form {
	least, most := lengthRange(unit)
	if low == positive {
		return numberForm(least, most)
	}
	return append(numberForm(0, most), keyword{"not", form{{"exclusiveMinimum", 0}, {"exclusiveMaximum", least}}})
}

func numberForm(low, high float64) form {
	return form{{"type", "number"}, {"minimum", low}, {"maximum", high}}
}

// aboveForm is a number above 0.
func aboveForm(high float64) form {
	return form{{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", high}}
}

func wholeForm(low, high int) form {
	return form{{"type", "integer"}, {"minimum", low}, {"maximum", high}}
}

func sizeForm(low int64) form {
	return form{{"anyOf", []form{{{"type", "integer"}, {"minimum", low}, {"maximum", int64(maxSize)}}, patternForm(sizePattern)}}}
}

// choiceForm is one of some words. YAML of old reads on and off as true and false.
func choiceForm(options []string) form {
	var list []any
	for _, o := range options {
		list = append(list, o)
	}
	if slices.Contains(options, "on") {
		list = append(list, true)
	}
	if slices.Contains(options, "off") {
		list = append(list, false)
	}
	return form{{"enum", list}}
}

func onOffForm() form { return choiceForm([]string{"on", "off"}) }

// statusForm is a status that can be a failure.
func statusForm() form { return wholeForm(300, 999) }

func failureForm() form { return form{{"anyOf", []form{statusForm(), choiceForm(Classes)}}} }

// urlForm is an absolute URL of one of the schemes. That it can be parsed is more than
// a pattern can say.
func urlForm(noFragment bool, schemes ...string) form {
	var words []string
	for _, s := range schemes {
		words = append(words, anyCase(s))
	}
	rest := "[^" + notInURL + control + "]*"
	if noFragment {
		rest = "[^#" + notInURL + control + "]*"
	}
	return patternForm("^(" + strings.Join(words, "|") + ")://" + rest + "$")
}

// anyCase is a pattern for a word in lower case that may be written in either.
func anyCase(word string) string {
	var b strings.Builder
	for _, c := range word {
		if up := unicode.ToUpper(c); up != c {
			b.WriteString("[" + string(up) + string(c) + "]")
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// hostForm is a name or an address, which may stand in brackets. Which of those with a
// colon are addresses is more than a pattern can say.
func hostForm() form { return patternForm(hostPattern) }

func adminForm() form {
	host := `[^:/@ \[\]` + control + `]*|\[[^/@ \[\]` + control + `]*\]`
	return form{{"anyOf", []form{{{"enum", []any{"off", false}}}, patternForm("^(" + host + "):" + portNumber + "$")}}}
}

// stickyForm is a place of a session key, header:NAME or body:key.key.
func stickyForm() form {
	key := "[^." + control + "]*[^." + control + blank + "][^." + control + "]*"
	return patternForm("^(header:[" + blank + "]*[" + tokenChars + "]+[" + blank + "]*|body:" + key + "(([.][^." + control + "]+)*[.]" + key + ")?)$")
}

// stickyText writes places of session keys as a file does.
func stickyText(keys []StickyKey) string {
	var list []string
	for _, k := range keys {
		if k.Header != "" {
			list = append(list, "header:"+k.Header)
		} else {
			list = append(list, "body:"+strings.Join(k.Body, "."))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// headersForm is a mapping of headers to values. That no name stands twice in different
// case is more than a schema can say.
func headersForm(value form) form {
	var forbidden []string
	for _, name := range slices.Sorted(maps.Keys(forbiddenHeaders)) {
		forbidden = append(forbidden, anyCase(name))
	}
	return form{{"type", []string{"object", "null"}}, {"maxProperties", maxHeaders},
		{"propertyNames", form{{"pattern", "^[" + tokenChars + "]+$"}, {"not", form{{"pattern", "^(" + strings.Join(forbidden, "|") + ")$"}}}}},
		{"additionalProperties", value}}
}

// oneOfKeys asks for one of some keys: "oneOf" exactly, "anyOf" at least.
func oneOfKeys(how string, names ...string) form {
	var list []form
	for _, name := range names {
		list = append(list, form{{"required", []string{name}}})
	}
	return form{{how, list}}
}

// forbidKeys refuses keys.
func forbidKeys(names ...string) form {
	var list form
	for _, name := range names {
		list = append(list, keyword{name, false})
	}
	return form{{"properties", list}}
}

var keyNames = []string{"api_key", "api_key_env", "api_key_file"}

// mostOneKey allows one credential, or none.
func mostOneKey() form {
	var pairs []form
	for i, a := range keyNames {
		for _, b := range keyNames[i+1:] {
			pairs = append(pairs, form{{"required", []string{a, b}}})
		}
	}
	return form{{"not", form{{"anyOf", pairs}}}}
}

// noKeyFor refuses a credential beside an auth_style that sends none.
func noKeyFor(style string) form {
	return form{{"if", form{{"required", []string{"auth_style"}}, {"properties", form{{"auth_style", form{{"const", style}}}}}}}, {"then", forbidKeys(keyNames...)}}
}

// entryForm says which keys of an entry of a chain go together: those of a tier of
// equals, of a reference to an upstream, or of a candidate of its own.
func entryForm() form {
	var others []string
	for _, k := range candidateKeys {
		others = append(others, k.Name)
	}
	return form{{"if", form{{"required", []string{"any_of"}}}}, {"then", forbidKeys(append(others, "upstream")...)}, {"else", equalForm()}}
}

func equalForm() form {
	own := append(noKeyFor("none"), keyword{"else", oneOfKeys("oneOf", keyNames...)})
	return form{{"if", form{{"required", []string{"upstream"}}}}, {"then", forbidKeys(append([]string{"base_url", "auth_style"}, keyNames...)...)},
		{"else", append(form{{"required", []string{"base_url", "model"}}}, own...)}}
}

// The names of virtual_models: those for anchors, and those of models.
const (
	freeKeys   = `^(x-|[.])`
	freeModels = `^(x-|[.])[^/]*$`
	modelNames = "^[^" + control + blank + "]([^" + control + "]*[^" + control + blank + "])?$"
)

func modelsForm() form {
	name := form{{"pattern", modelNames}, {"not", form{{"const", "*"}}}}
	return form{{"type", []string{"object", "null"}}, {"propertyNames", form{{"anyOf", []form{{{"pattern", freeModels}}, name}}}},
		{"patternProperties", form{{freeModels, true}}}, {"additionalProperties", form{{"anyOf", []form{refForm("chain"), refForm("virtual_model")}}}}}
}

// poolForm asks for upstreams where there is a pool: where the key stands, or where
// there are no virtual models.
func poolForm() form {
	none := form{{"additionalProperties", false}, {"patternProperties", form{{freeModels, true}}}}
	named := form{{"required", []string{"virtual_models"}}, {"properties", form{{"virtual_models", form{{"type", "object"}, {"not", none}}}}}}
	return form{{"if", form{{"anyOf", []form{{{"required", []string{"pool"}}}, {{"not", named}}}}}},
		{"then", form{{"required", []string{"upstream"}}, {"properties", form{{"upstream", form{{"type", "array"}, {"minItems", 1}}}}}}}}
}
