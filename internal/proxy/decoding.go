package proxy

import "iter"

// A coding is where in a text some bytes come from that were read out of it: den bytes
// out of num characters, from a place on.
type coding struct{ from, num, den int }

// origin is the part of the text that the bytes from i to j come from.
func (c coding) origin(i, j int) (from, to int) {
	return c.from + i*c.num/c.den, c.from + (j*c.num+c.den-1)/c.den
}

// sixBits and fourBits are what characters stand for in base64, of either alphabet, and
// in hex; noDigit is none.
var sixBits, fourBits = digits("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_", 62), digits("0123456789abcdef", "ABCDEF", 10)

const noDigit = 0xff

// digits numbers the characters of an alphabet from 0, those of another one from at.
func digits(alphabet, other string, at int) (values [256]byte) {
	for i := range values {
		values[i] = noDigit
	}
	for i := range alphabet {
		values[alphabet[i]] = byte(i)
	}
	for i := range other {
		values[other[i]] = byte(at + i)
	}
	return values
}

// decodings are what the parts of a text say that may be base64 or hex, and long enough
// for so many bytes. Where a part begins nobody knows, as what stands before it may look
// like a piece of it, so each is read from as many places as make a difference: then it
// does not matter how a secret stands to the groups of its coding. The bytes are good
// until the next ones are asked for.
func decodings(text string, least int) iter.Seq2[[]byte, coding] {
	return func(yield func([]byte, coding) bool) {
		var short [64]byte // most need no more
		scratch := short[:0]
		shortest := (least*8 + 5) / 6
		for begin := 0; len(text)-begin >= shortest; begin++ {
			end := begin
			for end < len(text) && sixBits[text[end]] != noDigit {
				end++
			}
			if end-begin >= shortest {
				for from := begin; from < begin+4 && end-from >= shortest; from++ {
					if scratch = fromBase64(scratch[:0], text[from:end]); !yield(scratch, coding{from, 4, 3}) {
						return
					}
				}
				for i, j := begin, begin; i < end; i = j + 1 { // hex is within it
					for j = i; j < end && fourBits[text[j]] != noDigit; j++ {
					}
					for from := i; from < i+2 && j-from >= 2*least; from++ {
						if scratch = fromHex(scratch[:0], text[from:j]); !yield(scratch, coding{from, 2, 1}) {
							return
						}
					}
				}
			}
			begin = end
		}
	}
}

// fromBase64 appends the whole bytes that digits stand for.
func fromBase64(dst []byte, digits string) []byte {
	for ; len(digits) >= 4; digits = digits[4:] {
		n := uint32(sixBits[digits[0]])<<18 | uint32(sixBits[digits[1]])<<12 | uint32(sixBits[digits[2]])<<6 | uint32(sixBits[digits[3]])
		dst = append(dst, byte(n>>16), byte(n>>8), byte(n))
	}
	if len(digits) >= 2 {
		dst = append(dst, sixBits[digits[0]]<<2|sixBits[digits[1]]>>4)
	}
	if len(digits) == 3 {
		dst = append(dst, sixBits[digits[1]]<<4|sixBits[digits[2]]>>2)
	}
	return dst
}

// fromHex appends the whole bytes that digits stand for.
func fromHex(dst []byte, digits string) []byte {
	for ; len(digits) >= 2; digits = digits[2:] {
		dst = append(dst, fourBits[digits[0]]<<4|fourBits[digits[1]])
	}
	return dst
}
