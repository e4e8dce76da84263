package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// JSON is read where it lies: nothing is decoded, copied or allocated until
// somebody asks for one value. This is the strict half, for bytes nobody has
// looked at yet: jsonValid and jsonEnd accept what RFC 8259 and encoding/json
// accept, and nothing else. jsoncursor.go has the trusting half.

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
// each, so that depth costs no recursion, and no allocation where it is usual. It needs
// no zeroing.
type jsonStack struct {
	near [jsonNear / 64]uint64
	far  []uint64 // what is deeper, which next to nothing is; nil until there is something
}

// jsonNear is the depth up to which a stack needs no memory beside its own: every
// answer that is being read has one.
const jsonNear = 128

func (s *jsonStack) set(depth int, object bool) {
	word, bit := s.word(depth), uint64(1)<<(uint(depth)%64)
	if object {
		*word |= bit
	} else {
		*word &^= bit
	}
}

func (s *jsonStack) object(depth int) bool { return *s.word(depth)>>(uint(depth)%64)&1 == 1 }

// word is the word that has the bit of a depth.
func (s *jsonStack) word(depth int) *uint64 {
	if depth < jsonNear {
		return &s.near[uint(depth)/64]
	}
	if s.far == nil {
		s.far = make([]uint64, (jsonMaxDepth-jsonNear+63)/64)
	}
	return &s.far[uint(depth-jsonNear)/64]
}

// WholeJSON reports whether b is exactly one JSON document, read to its end.
func WholeJSON(b []byte) bool { return jsonValid(b) }

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
	for i++; ; {
		i = jsonPlainEnd(b, i)
		if i >= len(b) {
			return i, jsonOpenString
		}
		switch c := b[i]; c {
		case '"':
			return i + 1, ""
		case '\\':
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
		default:
			return i, jsonControl
		}
	}
}

// Eight bytes at a time: a byte in each place, and the top bit of each.
const ones, tops = 0x0101010101010101, 0x8080808080808080

// jsonPlainEnd returns the offset of the first byte at or after i that is a quote, a
// backslash or below space, or len(b). Most of a body is the inside of strings.
func jsonPlainEnd(b []byte, i int) int {
	// Eight bytes at a time are looked at: a byte that is looked for sets its top bit
	// in one of the three masks. Borrows make the masks lie only above the lowest
	// true hit, and the lowest is all that is used.
	for long := i + 64; i+8 <= len(b); i += 8 {
		if i >= long {
			return jsonPlainEndFar(b, i)
		}
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		if hits := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; hits != 0 {
			return i + bits.TrailingZeros64(hits)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// jsonPlainEndFar is jsonPlainEnd where the end is not near: quote and backslash are
// looked for with vector instructions, and what is before them only for control
// characters. It looks no further than a piece, so that many escapes after each
// other do not make it read anything often.
func jsonPlainEndFar(b []byte, i int) int {
	const piece = 4 << 10
	for i < len(b) {
		ahead := b[i:min(len(b), i+piece)]
		end := bytes.IndexByte(ahead, '"')
		if end < 0 {
			end = len(ahead)
		}
		if slash := bytes.IndexByte(ahead[:end], '\\'); slash >= 0 {
			end = slash
		}
		if control := jsonControlIn(ahead[:end]); control >= 0 {
			return i + control
		}
		if i += end; end < len(ahead) {
			return i
		}
	}
	return i
}

// jsonControlIn returns the offset of the first byte below space, or -1.
func jsonControlIn(b []byte) int {
	i := 0
	for ; i+32 <= len(b); i += 32 {
		p := b[i : i+32 : i+32]
		x, y, z, w := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		if ((x-' '*ones)&^x|(y-' '*ones)&^y|(z-' '*ones)&^z|(w-' '*ones)&^w)&tops != 0 {
			break // somewhere in these
		}
	}
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if hits := (x - ' '*ones) &^ x & tops; hits != 0 {
			return i + bits.TrailingZeros64(hits)>>3
		}
	}
	for ; i < len(b); i++ {
		if b[i] < ' ' {
			return i
		}
	}
	return -1
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
