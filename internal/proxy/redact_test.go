package proxy

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/config"
)

// knowing is a redactor of these secrets.
func knowing(secrets ...string) *Redactor { return new(Redactor).with(secrets) }

// spelled are the ways in which programs write a text into another one.
var spelled = map[string]func(string) string{
	"as it is":  func(s string) string { return s },
	"JSON":      func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"a literal": strconv.Quote,
	"JSON with escaped slashes": func(s string) string {
		b, _ := json.Marshal(s)
		return strings.ReplaceAll(string(b), "/", `\/`)
	},
	"JSON of escapes alone": func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\u%04X`, c)
		}
		return b.String()
	},
	"octal escapes":          func(s string) string { return eachByte(`\%03o`, s) },
	"braced escapes":         func(s string) string { return eachByte(`\u{%x}`, s) },
	"long braced escapes":    func(s string) string { return eachByte(`\u{%06X}`, s) },
	"Perl's escapes":         func(s string) string { return eachByte(`\x{%x}`, s) },
	"long escapes":           func(s string) string { return eachByte(`\U%08x`, s) },
	"a query":                url.QueryEscape,
	"a path":                 url.PathEscape,
	"encodeURIComponent":     func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") },
	"a query, in lower case": func(s string) string { return lowerHex(url.QueryEscape(s)) },
	"percent escapes alone":  func(s string) string { return fmt.Sprintf("%%%s", strings.Join(hexOf(s), "%")) },
	"a page":                 html.EscapeString,
	"a page, in hex, by name": func(s string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&#x3c;", "/", "&#x2F;", "+", "&#43;").Replace(s)
	},
}

func eachByte(format, s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func hexOf(s string) (out []string) {
	for _, c := range []byte(s) {
		out = append(out, fmt.Sprintf("%02x", c))
	}
	return out
}

func lowerHex(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteString("%" + strings.ToLower(s[i+1:i+3]))
			i += 2
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// A secret is taken out however it is escaped, and escaped again, and what stands
// around it stays as it was.
func TestHideKnowsEscapes(t *testing.T) {
	const secret = `sk-9/Ab+cd%25&<ef>"g\h ij=`
	r := knowing(secret)
	for one, first := range spelled {
		for two, second := range spelled {
			text := `before \n %2F & ` + second(first(secret)) + ` + after &amp; \u0041`
			got := r.Hide(text)
			if !strings.HasPrefix(got, `before \n %2F & `) || !strings.HasSuffix(got, ` + after &amp; \u0041`) || !strings.Contains(got, config.Mask(secret)) {
				t.Errorf("%s in %s: %q is shown as %q", one, two, text, got)
			}
		}
	}
	// Of octal digits as few as there are, or three: \7 is a character too.
	for _, text := range []string{`\7sk-\71/Ab+cd%25&<ef>"g\\h ij=`, `\377\163\153-9/Ab+cd%25&<ef>"g\\h ij=\`, `\0\u{}\u{110000}\x{\u{\163k-9/Ab+cd%25&<ef>"g\\h ij=\u`} {
		if got := r.Hide(text); !strings.Contains(got, config.Mask(secret)) {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	plain := `nothing here: 100% of \u0041 &amp; a+b \`
	if got := r.Hide(plain); got != plain {
		t.Errorf("%q became %q", plain, got)
	}
}

// What an upstream cut before it quoted it back is no less a secret.
func TestHideKnowsBeginnings(t *testing.T) {
	r := knowing("sk-proj-0123456789abcdefghijklmnop", "sk-proj-0123456789abcdefZZZZZZZZZZ", "Bearer sk-proj-0123456789abcdefghijklmnop")
	for text, want := range map[string]string{
		"bad key sk-proj-0123456789abcdefgh… is":                                      "bad key sk-pro***mnop… is",
		"bad key sk-proj-0123456789abcdefZZ":                                          "bad key sk-pro***ZZZZ",
		"bad key sk-proj-01234567":                                                    "bad key sk-pro***ZZZZ",
		`{\"k\":\"sk\u002dproj-0123456789ab`:                                          `{\"k\":\"sk-pro***ZZZZ`,
		"keys begin with sk-proj-":                                                    "keys begin with sk-proj-",
		"sk-proj-0123456789abcdefghijklmnop twice sk-proj-0123456789abcdefghijklmnop": "sk-pro***mnop twice sk-pro***mnop",
	} {
		if got := r.Hide(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// Whatever a text holds, hiding neither panics nor takes long, and a text without a
// secret stays as it is.
func TestHideLeavesTheRest(t *testing.T) {
	r := knowing("sk-0123456789abcdefghij")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z%&;#+\\u0-9"x/]|\\u00[0-9a-f]{2}|\\[0-7]{1,3}|\\[uUx]\{?[0-9a-f]{1,8}\}?|%[0-9a-f]{2}|&#?[a-z0-9]{1,5};){0,60}`).Draw(t, "text")
		if got := r.Hide(text); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
	for _, mark := range []string{`\`, "%", "&", "+", `\u005c`, "%25", "&amp;"} {
		text := strings.Repeat(mark, 1<<20/len(mark))
		if got := r.Hide(text); got != text {
			t.Errorf("a megabyte of %s was changed", mark)
		}
	}
}
