package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func itoa(i int) string { return strconv.Itoa(i) }

var (
	plainKey  = regexp.MustCompile(`^[A-Za-z0-9_.<-]{1,24}$`)
	secretKey = regexp.MustCompile(`(?i)^(sk|pk|rk|xai|gsk|ghp|gho|hf|nvapi|pplx|key|aiza|eyj|bearer)[-_.]|^AIza|[0-9].*[0-9].*[0-9].*[A-Za-z].*[0-9]`)
)

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
	if !plainKey.MatchString(key) || secretKey.MatchString(key) {
		return "(not shown: it may hold a secret)"
	}
	return strconv.Quote(key)
}

var secretWord = regexp.MustCompile(`^[A-Za-z0-9_-]{20,}$`)

// looksSecret reports a word that is more likely a key than a name: one of the
// vendors' beginnings, or long, with digits and both cases mixed.
func looksSecret(s string) bool {
	if secretKey.MatchString(s) && (strings.HasPrefix(s, "AIza") || strings.ContainsAny(s, "-") || len(s) >= 20) {
		return !strings.Contains(s, "/")
	}
	return secretWord.MatchString(s) && strings.ContainsAny(s, "0123456789") && strings.ToUpper(s) != s && strings.ToLower(s) != s
}

// nearest returns the word closest to s by edits, if it is close enough to be
// meant.
func nearest(s string, words []string) string {
	best, limit := "", max(1, min(utf8.RuneCountInString(s)/2, 4))
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }
	for _, w := range words {
		if d := distance(fold(s), fold(w)); d <= limit && (best == "" || d < limit) {
			best, limit = w, d
		}
	}
	return best
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
