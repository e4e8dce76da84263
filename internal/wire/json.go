package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file reads JSON where it lies: nothing is decoded, copied or allocated
// until somebody asks for one value. It has two halves.
//
//   - Strict, for bytes nobody has looked at yet: jsonValid and jsonEnd accept
//     what RFC 8259 and encoding/json accept, and nothing else.
//   - Trusting, for bytes the strict half has accepted: jsonCursor, jsonField,
//     jsonPath, jsonSkip. On other bytes they give nonsense, but neither panic
//     nor loop.
//
// A "raw" value is the slice of the input that holds exactly one value, without
// the space around it; a raw string includes its quotes.

// SyntaxError says where a body stops being what it claims to be.
type SyntaxError struct {
	Offset int    // in bytes from the start of the body, 0 to its length
	What   string // what is wrong there, for people; never quotes the body
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.What) }

// jsonMaxDepth is how deeply containers may nest. It is encoding/json's limit:
// a body that a Go upstream refuses need not be sent to it.
const jsonMaxDepth = 10_000

// jsonStack remembers for each open container whether it is an object, one bit
// each, so that depth costs no recursion and no allocation. It needs no zeroing.
type jsonStack [(jsonMaxDepth + 63) / 64]uint64

func (s *jsonStack) set(depth int, object bool) {
	word, bit := &s[uint(depth)/64], uint64(1)<<(uint(depth)%64)
	if object {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (s *jsonStack) object(depth int) bool { return s[uint(depth)/64]>>(uint(depth)%64)&1 == 1 }

// jsonValid reports whether b is exactly one JSON value, space around it allowed.
func jsonValid(b []byte) bool {
	var stack jsonStack
	i, bad := jsonEnd(b, jsonSpace(b, 0), 0, &stack)
	return bad == "" && jsonSpace(b, i) == len(b)
}

// jsonSpace returns the offset of the first byte at or after i that is no JSON space.
func jsonSpace(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i // inlined: between most tokens there is no space at all
	}
	return jsonSpaceSlow(b, i)
}

func jsonSpaceSlow(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\n', '\r', '\t':
			i++
		default:
			return i
		}
	}
	return i
}

// What can be wrong, in the words of SyntaxError.
const (
	jsonCut          = "ends in the middle of a value"
	jsonNoValue      = "a value is due"
	jsonNoKey        = "an object key is due"
	jsonNoColon      = "a colon is due"
	jsonNoComma      = "a comma or a closing bracket is due"
	jsonTooDeep      = "nested more than 10000 deep"
	jsonBadEscape    = "invalid escape in a string"
	jsonControl      = "raw control character in a string"
	jsonBadNumber    = "invalid number"
	jsonTrailing     = "something follows the value"
	jsonOpenString   = "string without end"
	jsonTooManyModel = "more than 1024 model keys"
)

// jsonEnd reads the value that begins at b[i], strictly, and returns the offset
// after it. If it is broken, bad says how and end is where. depth is the number
// of containers already open around it; stack is scratch space.
func jsonEnd(b []byte, i, depth int, stack *jsonStack) (end int, bad string) {
	base := depth
	for {
		// A value is due at b[i].
		if i >= len(b) {
			return i, jsonCut
		}
		switch c := b[i]; c {
		case '"':
			if i, bad = jsonStringEnd(b, i); bad != "" {
				return i, bad
			}
		case '{', '[':
			if depth == jsonMaxDepth {
				return i, jsonTooDeep
			}
			stack.set(depth, c == '{')
			depth++
			if i = jsonSpace(b, i+1); i >= len(b) {
				return i, jsonCut
			}
			if b[i] != c+2 { // '{'+2 is '}', '['+2 is ']'
				if c == '{' {
					if i, bad = jsonKeyEnd(b, i); bad != "" {
						return i, bad
					}
				}
				continue
			}
			i++
			depth--
		case 't':
			if i, bad = jsonWordEnd(b, i, "true"); bad != "" {
				return i, bad
			}
		case 'f':
			if i, bad = jsonWordEnd(b, i, "false"); bad != "" {
				return i, bad
			}
		case 'n':
			if i, bad = jsonWordEnd(b, i, "null"); bad != "" {
				return i, bad
			}
		default:
			if i, bad = jsonNumberEnd(b, i); bad != "" {
				return i, bad
			}
		}
		// A value has ended: close containers until one goes on.
		for {
			if depth == base {
				return i, ""
			}
			if i = jsonSpace(b, i); i >= len(b) {
				return i, jsonCut
			}
			object := stack.object(depth - 1)
			if b[i] == ',' {
				i = jsonSpace(b, i+1)
				if object {
					if i, bad = jsonKeyEnd(b, i); bad != "" {
						return i, bad
					}
				}
				break
			}
			if object && b[i] != '}' || !object && b[i] != ']' {
				return i, jsonNoComma
			}
			i++
			depth--
		}
	}
}

// jsonKeyEnd reads an object key at b[i] and its colon, and returns where the
// value begins.
func jsonKeyEnd(b []byte, i int) (end int, bad string) {
	if i >= len(b) {
		return i, jsonCut
	}
	if b[i] != '"' {
		return i, jsonNoKey
	}
	if i, bad = jsonStringEnd(b, i); bad != "" {
		return i, bad
	}
	return jsonColonEnd(b, i)
}

func jsonColonEnd(b []byte, i int) (end int, bad string) {
	if i = jsonSpace(b, i); i >= len(b) {
		return i, jsonCut
	}
	if b[i] != ':' {
		return i, jsonNoColon
	}
	return jsonSpace(b, i+1), ""
}

func jsonWordEnd(b []byte, i int, word string) (end int, bad string) {
	if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
		return i + len(word), ""
	}
	return i, jsonNoValue
}

func jsonNumberEnd(b []byte, i int) (end int, bad string) {
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	switch c := at(i); {
	case c == '-':
		if i++; !digit(at(i)) {
			return i, jsonBadNumber
		}
	case !digit(c):
		return i, jsonNoValue
	}
	if at(i) == '0' {
		i++
	} else {
		for digit(at(i)) {
			i++
		}
	}
	if at(i) == '.' {
		if i++; !digit(at(i)) {
			return i, jsonBadNumber
		}
		for digit(at(i)) {
			i++
		}
	}
	if c := at(i); c == 'e' || c == 'E' {
		i++
		if c := at(i); c == '+' || c == '-' {
			i++
		}
		if !digit(at(i)) {
			return i, jsonBadNumber
		}
		for digit(at(i)) {
			i++
		}
	}
	return i, ""
}

// jsonStringEnd reads the string whose opening quote is b[i] and returns the
// offset after its closing quote. Bytes that are no UTF-8 are let through, as
// encoding/json does; so are escapes of lone surrogates.
func jsonStringEnd(b []byte, i int) (end int, bad string) {
	// Most of a body is the inside of strings. Eight bytes at a time are looked
	// at: a byte that is a quote, a backslash or below space sets its top bit in
	// one of the three masks. Borrows make the masks lie only above the lowest
	// true hit, and the lowest is all that is used.
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i++
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^('"'*ones), x^('\\'*ones)
			hits := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops
			if hits != 0 {
				i += bits.TrailingZeros64(hits) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, jsonOpenString
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, ""
		case c == '\\':
			if i+1 >= len(b) {
				return i + 1, jsonOpenString
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if jsonHex(b, i+2) < 0 {
					return i, jsonBadEscape
				}
				i += 6
			default:
				return i, jsonBadEscape
			}
		case c < ' ':
			return i, jsonControl
		default:
			i++
		}
	}
}

// jsonHex returns the value of the four hexadecimal digits at b[i], or -1.
func jsonHex(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// jsonSkip returns the offset after the value that begins at b[i], in bytes that
// are known to be valid.
func jsonSkip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i, _ = jsonStringEnd(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return min(i+1+depth, len(b)) // depth -1: the bracket is not ours
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// jsonCursor walks the members of an object or the elements of an array, in
// valid bytes:
//
//	for c := jsonIn(raw); c.next(); {
//		switch {
//		case jsonIs(c.key, "choices"): … c.value …
//		}
//	}
//
// key and value are raw, alias the input, and are good until the input changes.
type jsonCursor struct {
	key   []byte // raw string with its quotes; nil in an array
	value []byte // raw

	b      []byte
	i      int
	object bool
}

// jsonIn returns a cursor over the container raw. Over anything else it has
// nothing to give.
func jsonIn(raw []byte) jsonCursor {
	i := jsonSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' && raw[i] != '[' {
		return jsonCursor{}
	}
	return jsonCursor{b: raw, i: i + 1, object: raw[i] == '{'}
}

// next goes to the following member and reports whether there is one.
func (c *jsonCursor) next() bool {
	i := jsonSpace(c.b, c.i)
	if i < len(c.b) && c.b[i] == ',' {
		i = jsonSpace(c.b, i+1)
	}
	if i >= len(c.b) || c.b[i] == '}' || c.b[i] == ']' {
		c.i = len(c.b)
		return false
	}
	if c.object {
		if c.b[i] != '"' {
			c.i = len(c.b)
			return false
		}
		end, _ := jsonStringEnd(c.b, i)
		c.key = c.b[i:end]
		i, _ = jsonColonEnd(c.b, end)
	}
	end := jsonSkip(c.b, i)
	if end <= i {
		c.i = len(c.b) // not valid after all
		return false
	}
	c.value, c.i = c.b[i:end], end
	return true
}

// jsonField returns the value of the last member called name of the object raw,
// the one that most parsers keep. ok is false where there is none.
func jsonField(raw []byte, name string) (value []byte, ok bool) {
	for c := jsonIn(raw); c.next(); {
		if c.object && jsonIs(c.key, name) {
			value, ok = c.value, true
		}
	}
	return value, ok
}

// jsonPath follows object keys from raw inwards.
func jsonPath(raw []byte, path ...string) (value []byte, ok bool) {
	value = raw
	for _, name := range path {
		if value, ok = jsonField(value, name); !ok {
			return nil, false
		}
	}
	return value, true
}

// jsonKind is the first byte of a raw value, which tells its type: '{', '[',
// '"', 't', 'f', 'n', or '0' for every number. 0 for no bytes at all.
func jsonKind(raw []byte) byte {
	switch {
	case len(raw) == 0:
		return 0
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		return '0'
	}
	return raw[0]
}

// jsonIs reports whether raw is a string whose decoded text is s.
func jsonIs(raw []byte, s string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		if string(inside) == s {
			return true
		}
		// What is no UTF-8 decodes to something longer, U+FFFD; else the texts are the bytes.
		if len(inside) >= len(s) || !strings.ContainsRune(s, utf8.RuneError) {
			return false
		}
	} else if len(inside) > 6*len(s) { // six bytes, \u0061, is the longest way to write one
		return false
	}
	var buf [64]byte
	return string(jsonAppend(buf[:0], raw)) == s
}

// jsonAppend appends the decoded text of the raw string to dst. Bytes that are
// no UTF-8 and lone surrogates become U+FFFD, as in encoding/json. Anything but
// a string appends nothing.
func jsonAppend(dst, raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return dst
	}
	raw = raw[1 : len(raw)-1]
	for len(raw) > 0 {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			plain = len(raw)
		}
		if utf8.Valid(raw[:plain]) {
			dst = append(dst, raw[:plain]...)
		} else {
			for _, r := range string(raw[:plain]) {
				dst = utf8.AppendRune(dst, r)
			}
		}
		if raw = raw[plain:]; len(raw) < 2 {
			break
		}
		r, size := jsonEscape(raw)
		dst, raw = utf8.AppendRune(dst, r), raw[size:]
	}
	return dst
}

// jsonEscape decodes the escape at the start of b, a surrogate pair as one, and
// returns its length.
func jsonEscape(b []byte) (r rune, size int) {
	switch c := b[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := jsonHex(b, 2)
		if r < 0 {
			return utf8.RuneError, len(b)
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if pair := utf16.DecodeRune(r, jsonHex(b, 8)); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	default:
		return rune(c), 2
	}
}

// jsonText decodes a raw string. ok is false where raw is none.
func jsonText(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if inside := raw[1 : len(raw)-1]; bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside), true
	}
	return string(jsonAppend(make([]byte, 0, len(raw)), raw)), true
}

// jsonRunes counts the code points of a raw string without decoding it. A
// surrogate pair is one, a lone surrogate one, a byte that is no UTF-8 one.
// 0 where raw is no string.
func jsonRunes(raw []byte) int {
	if len(raw) < 2 || raw[0] != '"' {
		return 0
	}
	raw = raw[1 : len(raw)-1]
	n := 0
	for {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return n + utf8.RuneCount(raw)
		}
		n += utf8.RuneCount(raw[:plain])
		if raw = raw[plain:]; len(raw) < 2 {
			return n
		}
		_, size := jsonEscape(raw)
		n++
		raw = raw[size:]
	}
}

// jsonInt returns a raw number as an integer. Numbers with a fraction or an
// exponent are rounded towards zero; what is no number or does not fit gives
// ok false.
func jsonInt(raw []byte) (n int64, ok bool) {
	if jsonKind(raw) != '0' {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}
