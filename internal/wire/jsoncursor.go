package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This is the trusting half of reading JSON, for bytes that the strict one has
// accepted: jsonCursor, jsonField, jsonPath, jsonSkip and the values. On other
// bytes they give nonsense, but neither panic nor loop.
//
// A "raw" value is the slice of the input that holds exactly one value, without
// the space around it; a raw string includes its quotes.

// jsonSkip returns the offset after the value that begins at b[i], in bytes that
// are known to be valid.
func jsonSkip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		if depth > 0 && !bracketOrQuote[b[i]] {
			i++
			continue
		}
		switch b[i] {
		case '"':
			i = jsonStringSkip(b, i)
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

// jsonStringSkip returns the offset after the string whose opening quote is b[i], in
// bytes that are known to be valid: its end is the first quote behind an even number
// of backslashes.
func jsonStringSkip(b []byte, i int) int {
	for i++; ; {
		end := bytes.IndexByte(b[i:], '"')
		if end < 0 {
			return len(b)
		}
		n := 0
		for n < end && b[i+end-1-n] == '\\' {
			n++
		}
		if i += end + 1; n%2 == 0 {
			return i
		}
	}
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
// key and value are raw, alias the input, and are good until the input changes; but a
// key that is written with escapes where none are needed is given without them, so
// that it can be compared as it stands.
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
		end := jsonStringSkip(c.b, i)
		c.key = jsonPlain(c.b[i:end])
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

// jsonPlain is the raw string itself, or the same text without its escapes where it
// needs none.
func jsonPlain(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	plain := append(jsonAppend([]byte{'"'}, raw), '"')
	if end, bad := jsonStringEnd(plain, 0); bad != "" || end != len(plain) || bytes.IndexByte(plain, '\\') >= 0 {
		return raw
	}
	return plain
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
			return n + runes(raw)
		}
		n += runes(raw[:plain])
		if raw = raw[plain:]; len(raw) < 2 {
			return n
		}
		_, size := jsonEscape(raw)
		n++
		raw = raw[size:]
	}
}

// runes is utf8.RuneCount, faster where most of a text is ASCII.
func runes(b []byte) int {
	n := 0
	for n+8 <= len(b) && binary.LittleEndian.Uint64(b[n:])&tops == 0 {
		n += 8
	}
	return n + utf8.RuneCount(b[n:])
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
