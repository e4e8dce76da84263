package config

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func itoa(i int) string { return strconv.Itoa(i) }

var (
	plainKey = lazily(`^[A-Za-z0-9_.<-]{1,24}$`)
	// vendorKey are the beginnings that vendors give their keys.
	vendorKey  = lazily(`^(sk|pk|rk|xai|gsk|ghp|gho|hf|nvapi|pplx|Bearer)[-_ ]|^AIza|^eyJ`)
	insideKey  = lazily(`\b((sk|pk|rk|xai|gsk|ghp|gho|hf|nvapi|pplx)[-_]|AIza|eyJ)[A-Za-z0-9_-]{8,}`)
	secretWord = lazily(`^[A-Za-z0-9_+=-]{20,}$`)
)

// looksSecret reports a word that is more likely a key than a name: it begins
// as vendors' keys do, or it is long and mixes digits with both cases.
func looksSecret(s string) bool {
	if !strings.ContainsAny(s, "0123456789") || strings.Contains(s, "/") {
		return false
	}
	return vendorKey().MatchString(s) && len(s) >= 12 ||
		secretWord().MatchString(s) && strings.ToUpper(s) != s && strings.ToLower(s) != s
}

// hasControl reports a character that no name, URL, header or key may hold:
// controls, and those that turn the direction of text or end a line.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
	})
}

// quoteKey puts a key of the file into a problem. A key may be a secret that
// lost its place ("api_key:sk-..." without the blank), so what does not look
// like a word of a configuration is not repeated.
func quoteKey(key string) string {
	if !plainKey().MatchString(key) || vendorKey().MatchString(key) || looksSecret(key) {
		return "(not shown: it may hold a secret)"
	}
	return strconv.Quote(key)
}

// quoteName puts a name that the user chose into a problem, if it is none that
// holds a key.
func quoteName(name string) string {
	if !shownName(name) {
		return "(not shown: it may hold a secret)"
	}
	return strconv.Quote(name)
}

func shownName(name string) bool {
	return !looksSecret(name) && !slices.ContainsFunc(insideKey().FindAllString(name, -1), looksSecret) && len(name) <= 200
}

// nearest returns the word closest to s by edits, and whether it is too far off
// to be what was meant.
func nearest(s string, words []string) (word string, far bool) {
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }
	best := 1 << 30
	for _, w := range words {
		if d := distance(fold(s), fold(w)); d < best {
			word, best = w, d
		}
	}
	return word, best > 1+min(utf8.RuneCountInString(s)/4, 3)
}

// distance is the Levenshtein distance, with a swap of two neighbours as one
// edit.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	x, y := []rune(a), []rune(b)
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}

// words joins alternatives: "a, b or c".
func words(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
