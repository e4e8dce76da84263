package proxy

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"understudy/internal/config"
)

// shortest is the length below which a text is no secret worth hiding: replacing
// it everywhere would garble words and hide nothing.
const shortest = 5

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
			add(h.Value)
			if s, err := h.Resolve(); err == nil {
				add(s)
			}
		}
		for _, s := range urlSecrets(c.BaseURL) {
			r.secrets = spellings(r.secrets, s)
		}
		if proxy, err := url.Parse(c.Proxy); err == nil {
			for _, s := range urlSecrets(proxy) {
				r.secrets = spellings(r.secrets, s)
			}
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

// urlSecrets are the parts of a URL that may be secret: its password, and every
// query value of some length.
func urlSecrets(u *url.URL) (out []string) {
	if u == nil {
		return nil
	}
	if password, ok := u.User.Password(); ok {
		out = append(out, password)
	}
	for name, values := range u.Query() {
		if secretName(name) {
			out = append(out, values...)
		}
	}
	return out
}

// secretName says whether a query parameter's name promises a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret") || strings.Contains(name, "password") || name == "sig"
}

// spellings adds a secret in the forms in which it may be quoted back: as it is,
// percent-encoded, and as a header's value without its scheme.
func spellings(list []string, secret string) []string {
	for _, scheme := range []string{"Bearer ", "bearer ", "Basic "} {
		if bare, ok := strings.CutPrefix(secret, scheme); ok {
			secret = bare
		}
	}
	if len(secret) < shortest {
		return list
	}
	list = append(list, secret)
	if escaped := url.QueryEscape(secret); escaped != secret {
		list = append(list, escaped)
	}
	if escaped := fmt.Sprintf("%q", secret); escaped != `"`+secret+`"` {
		list = append(list, escaped[1:len(escaped)-1])
	}
	return list
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
func (q *quoter) Quote(text string, max int) string {
	if q.full == nil {
		q.full = q.base.with(q.secrets)
	}
	return q.full.Quote(text, max)
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

// Quote gives a text from outside in a form fit for logs, terminals and pages: no
// secret, no control, ANSI or bidi character, at most max characters of it.
func (r *Redactor) Quote(text string, max int) string {
	for _, s := range r.secrets {
		if strings.Contains(text, s) {
			text = strings.ReplaceAll(text, s, config.Mask(s))
		}
	}
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
