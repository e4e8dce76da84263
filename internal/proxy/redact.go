package proxy

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
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
	secrets    []string  // longest first
	beginnings []string  // of the long ones
	first      [256]bool // the bytes that secrets begin with
	least      int       // bytes below which a text is too short to hold any of them
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
			if !secretive(http.CanonicalHeaderKey(h.Name)) && h.Env == "" {
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
	if cfg.Store != nil {
		for _, c := range []config.Credential{cfg.Store.URL, cfg.Store.Password} {
			if s, err := c.Resolve(); err == nil && !s.IsZero() {
				if u, err := url.Parse(s.Reveal()); err != nil || u.Host == "" {
					add(s)
				} else if password, has := u.User.Password(); has {
					add(config.NewSecret(password))
				}
			}
		}
	}
	r.order()
	return r
}

// spellings adds a secret in the forms in which it may be quoted back: as it is, and
// as a header's value without its scheme. How it may be escaped is for readings.
func spellings(list []string, secret string) []string {
	if scheme, bare, ok := strings.Cut(secret, " "); ok {
		list = spellings(list, strings.TrimSpace(bare))
		if strings.EqualFold(scheme, "basic") {
			list = basicSpellings(list, bare)
		}
	}
	if worthHiding(secret) {
		list = append(list, secret)
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

// beginning is how much of a secret's beginning counts as the secret: a text that
// somebody cut holds no more of it, and what all keys of a vendor begin with is shorter.
const beginning = 16

func (r *Redactor) order() {
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.secrets = slices.Compact(r.secrets)
	r.least = math.MaxInt // holds none
	for _, s := range r.secrets {
		r.first[s[0]] = true
		r.least = min(r.least, len(s), beginning)
		if len(s) > beginning {
			r.beginnings = append(r.beginnings, s[:beginning])
		}
	}
	slices.Sort(r.beginnings)
	r.beginnings = slices.Compact(r.beginnings)
}

// A quoter quotes for one request: it knows the request's own secrets too. It
// costs nothing until something is quoted.
type quoter struct {
	base    *Redactor
	secrets []string
	full    *Redactor // base and secrets; nil until it is needed
	least   int       // bytes below which a text can hold none of secrets; 0 = not reckoned yet
}

// know adds secrets of the running request.
func (q *quoter) know(secrets []string) {
	if len(secrets) > 0 {
		q.secrets, q.full, q.least = append(q.secrets, secrets...), nil, 0
	}
}

// Quote is Redactor.Quote with the request's own secrets.
func (q *quoter) Quote(text string, max int) string {
	text = text[:min(len(text), quotedOf(max))]
	if len(text) < q.base.least && len(text) <= max && plain(text) && q.tooShort(text) {
		return strings.TrimSpace(text)
	}
	return q.knowing(text).Quote(text, max)
}

// tooShort says that a text is shorter than each of the request's own secrets, and
// so can hold none: no escape makes a text shorter than what it stands for. Names
// of models and candidates mostly are, and they stand in every line of the log.
func (q *quoter) tooShort(text string) bool {
	if q.least == 0 {
		q.least = beginning
		for _, secret := range q.secrets {
			scheme, bare, found := strings.Cut(secret, " ")
			if !found {
				bare = secret
			}
			if strings.EqualFold(scheme, "basic") {
				bare = "" // what is in it may be of any length
			}
			q.least = min(q.least, max(1, len(strings.TrimSpace(bare))))
		}
	}
	return len(text) < q.least
}

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
	if strings.ContainsAny(text, `%\+&`) {
		return true // perhaps an escaped one
	}
	for _, secret := range q.secrets {
		scheme, bare, found := strings.Cut(secret, " ")
		if !found {
			bare = secret
		}
		bare = strings.TrimSpace(bare)
		begun := bare[:min(len(bare), beginning)]
		if strings.EqualFold(scheme, "basic") || strings.Contains(text, begun) {
			return true
		}
		if !worthHiding(bare) {
			continue
		}
		for plain := range decodings(text, len(begun)) {
			if bytes.Contains(plain, []byte(begun)) {
				return true
			}
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

// Hide takes the secrets out of a text, however they are escaped or coded in it, and
// leaves the rest as it is: whoever shows it quotes it.
func (r *Redactor) Hide(text string) string {
	var found []hidden
	for _, reading := range readings(text) {
		found = r.find(found, reading)
		if len(reading.text) < r.least {
			continue
		}
		for plain, c := range decodings(reading.text, r.least) {
			for i := 0; i < len(plain); i++ {
				if !r.first[plain[i]] {
					continue
				}
				if secret, size := r.begun(plain[i:]); size > 0 {
					from, to := reading.origin(c.origin(i, i+size))
					found = append(found, hidden{from, to, secret})
					i += size - 1
				}
			}
		}
	}
	if len(found) == 0 {
		return text
	}
	// The first, and of two that begin together the longer one, covers what it overlaps.
	slices.SortStableFunc(found, func(a, b hidden) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	end := 0
	for _, h := range found {
		if h.to <= end {
			continue
		}
		if h.from >= end {
			b.WriteString(text[end:h.from])
			b.WriteString(config.Mask(h.secret))
		}
		end = h.to
	}
	b.WriteString(text[end:])
	return b.String()
}

// hidden is where a secret stands in a text.
type hidden struct {
	from, to int
	secret   string
}

// find adds where secrets stand in one reading of a text.
func (r *Redactor) find(found []hidden, in reading) []hidden {
	for _, s := range r.secrets {
		for i, j := 0, 0; ; i = j {
			n := strings.Index(in.text[i:], s)
			if n < 0 {
				break
			}
			j = i + n + len(s)
			from, to := in.origin(i+n, j)
			found = append(found, hidden{from, to, s})
		}
	}
	for _, begun := range r.beginnings {
		for i := 0; ; {
			n := strings.Index(in.text[i:], begun)
			if n < 0 {
				break
			}
			i += n
			secret, size := r.longest(in.text[i:])
			from, to := in.origin(i, i+size)
			found = append(found, hidden{from, to, secret})
			i += size
		}
	}
	return found
}

// longest is the secret of which a text holds the longest beginning.
func (r *Redactor) longest(text string) (secret string, size int) {
	for _, s := range r.secrets {
		n := 0
		for n < len(s) && n < len(text) && s[n] == text[n] {
			n++
		}
		if n > size {
			secret, size = s, n
		}
	}
	return secret, size
}

// begun is the secret with which bytes begin, and how much of it stands there: all, or
// enough of it; "" where none does.
func (r *Redactor) begun(text []byte) (secret string, size int) {
	for _, s := range r.secrets {
		n := 0
		for n < len(s) && n < len(text) && s[n] == text[n] {
			n++
		}
		if n > size && (n == len(s) || n >= beginning) {
			secret, size = s, n
		}
	}
	return secret, size
}

// Quote gives a text from outside in a form fit for logs, terminals and pages: no
// secret, no control, ANSI or bidi character, at most max characters of it.
func (r *Redactor) Quote(text string, max int) string {
	// What nobody will see is not looked at: some upstreams say a megabyte.
	text = r.Hide(text[:min(len(text), quotedOf(max))])
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

// quotedOf is how much of a text is looked at to show max characters of it.
func quotedOf(max int) int { return 16*max + hideAhead }

// plain says whether a text is visible ASCII and spaces, which most are.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}
