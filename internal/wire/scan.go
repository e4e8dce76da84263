package wire

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Span is a stretch of bytes: from Start up to, not including, End.
type Span struct{ Start, End int }

// maxModels is how many top-level model keys a body may have. Nobody sends two;
// without a bound, replacing millions of them would need many times the body's
// memory.
const maxModels = 1024

// Doc is one request body that was read once: where its model stands, and the
// few members that routing asks for. It aliases the body, which must not change
// while the Doc is in use. A Doc is immutable; any number of goroutines may read
// it.
type Doc struct {
	body     []byte
	object   bool                // a JSON object or a form
	boundary string              // a form's; "" for JSON
	fields   [len(docNames)]Span // last value of each indexed name; {0, 0} where absent
	models   []Span              // every value that some reader takes for the model, in order
}

// docNames are the top-level members that Scan keeps. All others are found by
// reading the body again, when asked for.
var docNames = [...]string{
	"model", "stream", "stream_format", "prompt_cache_key", "session_id", "conversation_id", "metadata", "conversation",
	"previous_response_id", "background", "store", "n", "generationConfig", "generation_config",
}

// docIndex returns the index of a name in docNames, or -1.
func docIndex(name string) int { return slices.Index(docNames[:], name) }

// Scan reads a JSON body in one pass. The whole of it is validated as exactly one
// value after RFC 8259, as strictly as encoding/json does it; what is wrong is a
// *SyntaxError. Nesting beyond 10,000 and more than 1,024 model keys are refused
// too. A body that is valid but no object is no error: it has no members.
//
// body is not copied.
func Scan(body []byte) (*Doc, error) {
	d := &Doc{body: body}
	if i, bad := d.scan(); bad != "" {
		return nil, &SyntaxError{Offset: i, What: bad}
	}
	return d, nil
}

func (d *Doc) scan() (i int, bad string) {
	var stack jsonStack
	b := d.body
	i = jsonSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		if i, bad = jsonEnd(b, i, 0, &stack); bad != "" {
			return i, bad
		}
		return d.scanEnd(i)
	}
	d.object = true
	stack.set(0, true)
	if i = jsonSpace(b, i+1); i < len(b) && b[i] == '}' {
		return d.scanEnd(i + 1)
	}
	for {
		if i >= len(b) {
			return i, jsonCut
		}
		if b[i] != '"' {
			return i, jsonNoKey
		}
		key := i
		if i, bad = jsonStringEnd(b, i); bad != "" {
			return i, bad
		}
		raw := b[key:i]
		if i, bad = jsonColonEnd(b, i); bad != "" {
			return i, bad
		}
		value := i
		if i, bad = jsonEnd(b, i, 1, &stack); bad != "" {
			return i, bad
		}
		if bad = d.keep(raw, Span{value, i}); bad != "" {
			return key, bad
		}
		if i = jsonSpace(b, i); i >= len(b) {
			return i, jsonCut
		}
		switch b[i] {
		case ',':
			i = jsonSpace(b, i+1)
		case '}':
			return d.scanEnd(i + 1)
		default:
			return i, jsonNoComma
		}
	}
}

func (d *Doc) scanEnd(i int) (end int, bad string) {
	if i = jsonSpace(d.body, i); i < len(d.body) {
		return i, jsonTrailing
	}
	return i, ""
}

// keep remembers a member if its raw key, once decoded, is one of docNames.
func (d *Doc) keep(key []byte, value Span) (bad string) {
	name := key[1 : len(key)-1]
	if bytes.IndexByte(name, '\\') < 0 {
		return d.keepNamed(name, value)
	}
	const longest = len("previous_response_id")
	if len(name) > 6*longest { // \u0061 is the longest way to write a letter
		return ""
	}
	var buf [6 * longest]byte
	return d.keepNamed(jsonAppend(buf[:0], key), value)
}

func (d *Doc) keepNamed(name []byte, value Span) (bad string) {
	for i := range docNames {
		if string(name) == docNames[i] {
			d.fields[i] = value
			break
		}
	}
	// encoding/json and .NET's web defaults take "Model" for model, and the last
	// one wins whatever its case: an upstream built on them would see it.
	if len(name) == len("model") && strings.EqualFold(string(name), "model") {
		if len(d.models) == maxModels {
			return jsonTooManyModel
		}
		d.models = append(d.models, value)
	}
	return ""
}

// IsObject reports whether the body has members: a JSON object or a form.
func (d *Doc) IsObject() bool { return d.object }

// Model returns the model that is asked for: the last top-level member called
// model, its name compared unescaped. ok is false where there is none or it is
// no string.
func (d *Doc) Model() (name string, ok bool) { return d.String("model") }

// Models returns every string that some reader might take for the model, each
// once, in order: parsers disagree over which of several members of one name
// counts, and some ignore the case of names.
func (d *Doc) Models() []string {
	var names []string
	for _, m := range d.models {
		if name, ok := d.text(d.body[m.Start:m.End]); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// HasModel reports whether there is a top-level member called model, of
// whatever type.
func (d *Doc) HasModel() bool {
	_, ok := d.Raw("model")
	return ok
}

// Bool returns the last top-level member of that name. ok is false where there
// is none or it is neither true nor false. In a form the texts true and 1, false
// and 0 count, in any case, since servers read them so.
func (d *Doc) Bool(key string) (value, ok bool) {
	raw, ok := d.Raw(key)
	switch {
	case !ok:
		return false, false
	case d.boundary == "":
		return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
	case strings.EqualFold(string(raw), "true"), string(raw) == "1":
		return true, true
	case strings.EqualFold(string(raw), "false"), string(raw) == "0":
		return false, true
	}
	return false, false
}

// Choices is how many answers the body asks an endpoint of that kind for at once: n, or
// Gemini's candidateCount, and legacy completions for each of their prompts; 1 where it names
// no number. All numbers beyond 64 are one, which is larger.
func (d *Doc) Choices(k Kind) int {
	n := d.answers()
	if k == Completions {
		n *= d.prompts()
	}
	return int(min(n, manyChoices))
}

// answers is how many answers are asked for to one prompt.
func (d *Doc) answers() int64 {
	raw, ok := d.Raw("n")
	if !ok {
		raw, ok = d.Raw("generationConfig", "candidateCount")
	}
	if !ok {
		raw, ok = d.Raw("generation_config", "candidate_count")
	}
	if n, is := jsonInt(raw); ok && is {
		return min(max(n, 1), manyChoices)
	}
	return 1
}

// prompts is how many prompts a body of legacy completions holds: one is a text or a list
// of tokens.
func (d *Doc) prompts() (n int64) {
	raw, _ := d.Raw("prompt")
	if d.boundary != "" || jsonKind(raw) != '[' {
		return 1
	}
	for c := jsonIn(raw); n < manyChoices && c.next(); n++ {
		if k := jsonKind(c.value); k == '-' || '0' <= k && k <= '9' {
			return 1
		}
	}
	return max(n, 1)
}

// String returns the decoded string at a path of object keys, the last member
// of a name where there are several. ok is false where there is none or it is no
// string. Forms are one level deep.
//
// The names that routing asks for are at hand; any other at the top level costs
// another pass over the body.
func (d *Doc) String(path ...string) (text string, ok bool) {
	raw, ok := d.Raw(path...)
	if !ok {
		return "", false
	}
	return d.text(raw)
}

// Raw returns the bytes of the value at a path of object keys, as String finds
// it, without the space around it. They alias the body. In a form they are the
// part's content.
func (d *Doc) Raw(path ...string) (value []byte, ok bool) {
	if len(path) == 0 || !d.object {
		return nil, false
	}
	if i := docIndex(path[0]); i >= 0 {
		span := d.fields[i]
		value, ok = d.body[span.Start:span.End], span.Start > 0
	} else if d.boundary != "" {
		value, ok = d.part(path[0])
	} else {
		value, ok = jsonField(d.body, path[0])
	}
	switch {
	case !ok || d.boundary != "" && len(path) > 1:
		return nil, false
	case len(path) > 1:
		return jsonPath(value, path[1:]...)
	}
	return value, true
}

func (d *Doc) text(raw []byte) (text string, ok bool) {
	if d.boundary != "" {
		return string(raw), true
	}
	return jsonText(raw)
}

// Segments returns the body with every value that some reader might take for
// the model replaced by model, whatever its type was. The pieces in order are
// the body to send; all but the replacement alias the original, byte for byte.
// A body without a model comes back as one piece.
func (d *Doc) Segments(model string) [][]byte {
	if len(d.models) == 0 {
		return [][]byte{d.body}
	}
	text := d.replacement(model)
	pieces := make([][]byte, 0, 2*len(d.models)+1)
	at := 0
	for _, m := range d.models {
		pieces = append(pieces, d.body[at:m.Start:m.Start], text)
		at = m.End
	}
	return append(pieces, d.body[at:])
}

// Len returns the total length of Segments(model).
func (d *Doc) Len(model string) int64 {
	n := len(d.body)
	if len(d.models) == 0 {
		return int64(n)
	}
	text := len(d.replacement(model))
	for _, m := range d.models {
		n += text - (m.End - m.Start)
	}
	return int64(n)
}

// replacement writes a model as a value of this kind of body.
func (d *Doc) replacement(model string) []byte {
	if d.boundary != "" {
		return partText(model)
	}
	return jsonAppendString(make([]byte, 0, len(model)+2), model)
}

// jsonAppendString appends s as a JSON string in the fewest bytes: nothing is
// escaped but what must be. Bytes that are no UTF-8 become U+FFFD.
func jsonAppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
