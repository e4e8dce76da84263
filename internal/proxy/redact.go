package proxy

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"understudy/internal/config"
)

// shortest is the length below which a text is no secret worth hiding: replacing
// it everywhere would garble words and hide nothing. Local servers take any key, so
// people write words such as "ollama" there.
const (
	shortest     = 5
	shortestWord = 10
)

// worthHiding says whether a text is long enough for a secret.
func worthHiding(secret string) bool {
	if len(secret) >= shortestWord {
		return true
	}
	return len(secret) >= shortest && strings.IndexFunc(secret, func(r rune) bool { return !unicode.IsLetter(r) }) >= 0
}

// A Redactor quotes text from outside: it takes out every secret it knows and
// escapes what could move a cursor, colour a terminal or turn a line around. It is
// immutable.
type Redactor struct {
	secrets []string // longest first, each in the spellings it may come back in
}

// newRedactor collects every secret a configuration holds or names now.
func newRedactor(cfg *config.Config) *Redactor {
	r := new(Redactor)
	add := func(s config.Secret) { r.secrets = spellings(r.secrets, s.Reveal()) }
	candidate := func(c config.Candidate) {
		if s, err := c.Credential.Resolve(); err == nil {
			add(s)
		}
		for _, h := range c.Headers {
			if !isCredential(h.Name) && h.Env == "" {
				continue // "x-client: codex" is a word, and no secret
			}
			if s, err := h.Resolve(); err == nil {
				add(s)
			}
		}
		fromURL := func(u *url.URL) {
			for _, s := range config.Secrets(u) {
				add(s)
			}
			if u != nil && u.User != nil {
				r.secrets = spellings(r.secrets, basicOf(u.User))
			}
		}
		fromURL(c.BaseURL)
		if proxy, err := url.Parse(c.Proxy); err == nil {
			fromURL(proxy)
		}
	}
	for _, c := range cfg.Upstreams {
		candidate(c)
	}
	for _, m := range cfg.Models {
		for _, tier := range m.Tiers {
			for _, c := range tier {
				candidate(c)
			}
		}
	}
	for _, c := range cfg.Clients {
		if s, err := c.Key.Resolve(); err == nil {
			add(s)
		}
	}
	add(cfg.Server.AdminToken)
	r.order()
	return r
}

// spellings adds a secret in the forms in which it may be quoted back: as it is, as
// a header's value without its scheme, percent-encoded and as JSON writes it.
func spellings(list []string, secret string) []string {
	if scheme, bare, ok := strings.Cut(secret, " "); ok {
		list = spellings(list, strings.TrimSpace(bare))
		if strings.EqualFold(scheme, "basic") {
			list = basicSpellings(list, bare)
		}
	}
	if !worthHiding(secret) {
		return list
	}
	list = append(list, secret)
	json := quotedJSON(secret)
	for _, other := range []string{url.QueryEscape(secret), url.PathEscape(secret), json, strings.ReplaceAll(json, "/", `\/`), plainJSON.Replace(json)} {
		if other != secret {
			list = append(list, other)
		}
	}
	return list
}

// basicSpellings adds what is in the text of a Basic authorization.
func basicSpellings(list []string, text string) []string {
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return list
	}
	_, password, _ := strings.Cut(string(plain), ":")
	return spellings(spellings(list, string(plain)), password)
}

// plainJSON undoes what encoding/json escapes for the sake of HTML.
var plainJSON = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// quotedJSON is a text as it stands between quotes in JSON.
func quotedJSON(s string) string {
	escaped, err := json.Marshal(s)
	if err != nil || len(escaped) < 2 {
		return s
	}
	return string(escaped[1 : len(escaped)-1])
}

func (r *Redactor) order() {
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.secrets = slices.Compact(r.secrets)
}

// A quoter quotes for one request: it knows the request's own secrets too. It
// costs nothing until something is quoted.
type quoter struct {
	base    *Redactor
	secrets []string
	full    *Redactor // base and secrets; nil until it is needed
}

// know adds secrets of the running request.
func (q *quoter) know(secrets []string) {
	if len(secrets) > 0 {
		q.secrets, q.full = append(q.secrets, secrets...), nil
	}
}

// Quote is Redactor.Quote with the request's own secrets.
func (q *quoter) Quote(text string, max int) string { return q.knowing(text).Quote(text, max) }

// Hide is Redactor.Hide with the request's own secrets.
func (q *quoter) Hide(text string) string { return q.knowing(text).Hide(text) }

// knowing is the redactor that does for a text.
func (q *quoter) knowing(text string) *Redactor {
	if q.full == nil {
		if !q.mentioned(text) {
			return q.base
		}
		q.full = q.base.with(q.secrets)
	}
	return q.full
}

// mentioned says whether a text may hold one of the request's own secrets. It is
// sure where it says no, and cheap, as most texts hold none.
func (q *quoter) mentioned(text string) bool {
	if strings.ContainsAny(text, "%\\+") {
		return true // perhaps an escaped one
	}
	for _, secret := range q.secrets {
		scheme, bare, found := strings.Cut(secret, " ")
		if !found {
			bare = secret
		}
		if strings.EqualFold(scheme, "basic") || strings.Contains(text, strings.TrimSpace(bare)) {
			return true
		}
	}
	return false
}

// with is the redactor that knows further secrets too.
func (r *Redactor) with(secrets []string) *Redactor {
	if len(secrets) == 0 {
		return r
	}
	more := &Redactor{secrets: slices.Clone(r.secrets)}
	for _, s := range secrets {
		more.secrets = spellings(more.secrets, s)
	}
	more.order()
	return more
}

// Hide takes the secrets out of a text and leaves the rest as it is: whoever shows
// it quotes it.
func (r *Redactor) Hide(text string) string {
	for _, s := range r.secrets {
		if strings.Contains(text, s) {
			text = strings.ReplaceAll(text, s, config.Mask(s))
		}
	}
	return text
}

// Quote gives a text from outside in a form fit for logs, terminals and pages: no
// secret, no control, ANSI or bidi character, at most max characters of it.
func (r *Redactor) Quote(text string, max int) string {
	text = r.Hide(text)
	if len(text) <= max && plain(text) {
		return strings.TrimSpace(text)
	}
	var b strings.Builder
	n := 0
	for _, c := range text {
		if n++; n > max {
			b.WriteString("…")
			break
		}
		switch {
		case c == '\n', c == '\r', c == '\t':
			b.WriteByte(' ')
		case c == unicode.ReplacementChar, unicode.IsControl(c), unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// plain says whether a text is visible ASCII and spaces, which most are.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}
