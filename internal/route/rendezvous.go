package route

import (
	"encoding/binary"
	"hash"
	"math"
	"math/bits"

	"golang.org/x/crypto/blake2b"
)

// Score is the weighted rendezvous score of id for key: weight / -ln(h), where
// h = (u+1)/(2^64+1) and u is the big-endian number of an 8-byte BLAKE2b digest
// of key, NUL, id. The best score goes first. It is +Inf where h rounds to 1.
//
// The formula is that of the Python pool many sessions come from, h included to
// the last bit, so that they keep their upstream; only the logarithm may differ
// by a unit in the last place.
func Score(key, id string, weight float64) float64 {
	var r ranker
	return r.score(key, id, weight)
}

// ranker computes scores; used for several, it allocates its state once.
type ranker struct {
	hash hash.Hash
	text []byte
}

func (r *ranker) score(key, id string, weight float64) float64 {
	if r.hash == nil {
		r.hash, _ = blake2b.New(8, nil) // fails for other sizes only
	}
	r.text = append(append(append(r.text[:0], key...), 0), id...)
	r.hash.Reset()
	r.hash.Write(r.text)
	sum := r.hash.Sum(r.text[:0])
	return weighted(binary.BigEndian.Uint64(sum), weight)
}

// weighted is the score of a digest.
func weighted(u uint64, weight float64) float64 {
	h := unit(u)
	if h >= 1 {
		return math.Inf(1)
	}
	return weight / -math.Log(h)
}

// unit is (u+1)/(2^64+1), exact and then rounded once to the nearest float64, as
// Python divides integers. float64(u)+1 would round twice.
//
// Times 2^64 the quotient is u + f with f = 1 - (u+1)/(2^64+1), strictly between
// 0 and 1, and the first 64 binary digits of f are those of ^u, with more to
// follow. So the 64 leading digits of u and ^u, with the lowest one set to stand
// for the rest, round as the whole does.
func unit(u uint64) float64 {
	if u == 0 {
		return 0x1p-64
	}
	shift := bits.LeadingZeros64(u)
	digits := u<<shift | ^u>>(64-shift) | 1
	return math.Ldexp(float64(digits), -64-shift)
}
