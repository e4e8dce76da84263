package wire

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The end of a string's plain part is where a look at every byte finds it, wherever
// it stands and however much there is before it.
func TestPlainEndIsTheFirstByteThatEndsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 9000}).Draw(t, "size")
		b := bytes.Repeat([]byte{rapid.SampledFrom([]byte{' ', 'x', '!', 0x7f, 0x80, 0xff}).Draw(t, "fill")}, size)
		for range rapid.IntRange(0, 3).Draw(t, "marks") {
			if size > 0 {
				b[rapid.IntRange(0, size-1).Draw(t, "at")] = rapid.SampledFrom([]byte{'"', '\\', 0, '\n', 0x1f}).Draw(t, "mark")
			}
		}
		from := rapid.IntRange(0, size).Draw(t, "from")
		want := from
		for want < size && b[want] != '"' && b[want] != '\\' && b[want] >= ' ' {
			want++
		}
		if got := jsonPlainEnd(b, from); got != want {
			t.Fatalf("%d, and not %d", got, want)
		}
	})
}

// The trusting half finds the same end of a string as the strict one.
func TestBothHalvesEndAStringAtTheSamePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			b = append(b, rapid.SampledFrom([]string{"x", `\"`, `\\`, `\n`, `\u0041`, "é", "0123456789012345678901234567890123456789012345678901234567890123456789"}).Draw(t, "piece")...)
		}
		whole := append(append([]byte{'"'}, b...), `", "next": "\""}`...)
		strict, bad := jsonStringEnd(whole, 0)
		if bad != "" {
			t.Fatal(bad)
		}
		if got := jsonStringSkip(whole, 0); got != strict {
			t.Fatalf("%s: %d, and not %d", whole, got, strict)
		}
		var n nesting
		n.depth = 1
		for cut := range len(whole) + 1 {
			n = nesting{depth: 1}
			first, closed := n.scan(whole[:cut])
			if !closed {
				var second int
				second, closed = n.scan(whole[cut:])
				first += second
			}
			if !closed || first != len(whole) {
				t.Fatalf("%s cut at %d: closed %v at %d", whole, cut, closed, first)
			}
		}
	})
}
