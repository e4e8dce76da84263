package config

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// A hole is a range of a file's bytes that nobody is shown, and what stands there
// instead.
type hole struct {
	span
	mask string
}

// A role is what a value of a file may hold, by the key it stands under.
type role uint8

const (
	roleOpen    role = iota // no secret, unless somebody has put one there
	rolePlace               // the name of a variable or a file
	roleURL                 // user, password and key-like query values are secret
	roleSecret              // all of it is
	roleUnknown             // nobody knows the key, which may be a slip of a secret's
)

// Keys by their roles, wherever they stand: a secret in the wrong section is one
// all the same.
var (
	secretKeys = []string{"api_key", "admin_token", "key", "headers"}
	urlKeys    = []string{"base_url", "url", "proxy", "store"}
	placeKeys  = []string{"api_key_env", "api_key_file", "key_env", "url_env", "url_file", "password_env", "password_file", "header_env"}
	openKeys   = sync.OnceValue(func() map[string]bool {
		open := map[string]bool{}
		for _, section := range Schema() {
			for _, k := range section.Keys {
				// What is due there is no scalar; one that stands there all the same
				// may be anything.
				open[k.Name] = !strings.Contains(k.Type, "mapping") && !strings.Contains(k.Type, "candidates")
			}
		}
		for key := range retired {
			open[key] = true
		}
		return open
	})
)

func roleOf(key string) role {
	switch {
	case slices.Contains(secretKeys, key):
		return roleSecret
	case slices.Contains(urlKeys, key):
		return roleURL
	case slices.Contains(placeKeys, key):
		return rolePlace
	case openKeys()[key]:
		return roleOpen
	}
	return roleUnknown
}

// A hider finds what must not be shown of a file. It would rather cover too much
// than too little: a person can still write over what is covered.
type hider struct {
	*document
	holes []hole
	// secrets are the texts of what was covered, to be looked for elsewhere: people
	// keep an old key in a comment.
	secrets []string
	// scalars are the ranges of all keys and values; what begins with # outside of
	// them is a comment.
	scalars []span
	visits  int
	// lost says that a secret was read whose bytes are not known.
	lost bool
}

// hide returns the holes of a file in its order, apart from each other, and the
// secrets that they cover. strict says that the file could not be read as a tree.
//
// placed leaves out the holes that are only there because a secret of another place
// stands in them.
func hide(format Format, src []byte) (holes, placed []hole, secrets []string) {
	h := &hider{document: parseDocument(format, src)}
	if h.root != nil {
		h.walk(h.root, roleOpen, "")
	}
	strict := h.root == nil || h.lost || len(h.problems) > 0
	h.vendors()
	h.urls()
	if strict {
		h.lines()
		h.assignments(0, len(src))
	} else {
		h.comments()
	}
	placed = merged(slices.Clone(h.holes))
	h.elsewhere()
	return merged(h.holes), placed, h.secrets
}

func (h *hider) cover(s span, mask string) { h.holes = append(h.holes, hole{s, mask}) }

// remember keeps a secret that is long and odd enough to be looked for elsewhere.
func (h *hider) remember(text string) {
	text = strings.TrimSpace(text)
	if len(text) >= 8 && strings.ContainsAny(text, "0123456789-_") && strings.Trim(text, "0123456789") != "" || len(text) >= 12 {
		h.secrets = append(h.secrets, text)
	}
}

// walk covers what stands below a value. under is the key of the mapping that it
// is the value of.
func (h *hider) walk(n *node, r role, under string) {
	if h.visits++; h.visits > maxVisits {
		h.lost = true
		return
	}
	switch n.kind {
	case kindMap:
		for i := range n.pairs {
			p := &n.pairs[i]
			h.scalars = append(h.scalars, p.span)
			if p.key == "<<" && p.value.kind != kindText {
				h.walk(p.value, r, under)
				continue
			}
			child := roleOf(p.key)
			switch {
			case r == roleSecret:
				child = roleSecret
			case under == "header_env":
				child = rolePlace
			case under == "virtual_models":
				child = roleUnknown // its keys are names, and its values no scalars
			}
			if under != "virtual_models" && roleOf(p.key) == roleUnknown && !plainKey().MatchString(p.key) && !headerName(p.key) {
				h.lost = true
				if p.span.known() {
					h.cover(h.inner(p.span), "***") // a secret that lost its place
				}
			}
			h.walk(p.value, child, p.key)
		}
	case kindList:
		for _, item := range n.items {
			h.walk(item, r, "")
		}
	default:
		h.scalar(n, r, under)
	}
}

func (h *hider) scalar(n *node, r role, key string) {
	if n.span.known() {
		h.scalars = append(h.scalars, n.span)
	}
	if n.kind == kindNull || n.kind == kindBool || n.span.known() && n.span.start == n.span.end {
		return
	}
	inner := h.inner(n.span)
	text := n.text
	if n.kind != kindText && inner.known() {
		text = string(h.src[inner.start:inner.end])
	}
	if _, due := openKeys()[key]; !n.span.known() || r == roleUnknown && due || slipped(n) {
		// A slip of indentation or quotes, and whatever the parser has made of it.
		h.lost = true
		if r == roleOpen {
			r = roleUnknown
		}
	}
	switch whole := r == roleSecret || r == roleUnknown || r == rolePlace && !shownName(text) || holdsVendorKey(text); {
	case text == "":
	case whole && !n.span.known():
		h.remember(text)
	case whole && r == roleUnknown:
		h.cover(inner, "***")
	case whole:
		h.cover(inner, maskOf(text))
		// "x-client: codex" is a word, and no secret.
		if under := strings.ToLower(key); slices.Contains(secretKeys, under) || CredentialHeader(under) || r != roleSecret {
			h.remember(text)
		}
	case r == roleURL || strings.Contains(text, "://"):
		parts := urlHoles(text, r == roleURL)
		plain := inner.known() && string(h.src[inner.start:inner.end]) == text
		if len(parts) > 0 && !plain && inner.known() {
			h.cover(inner, "***") // escapes: where in the bytes it is, is not known
		}
		for _, p := range parts {
			if plain {
				h.cover(span{inner.start + p.start, inner.start + p.end}, "***")
			}
			h.remember(text[p.start:p.end])
		}
	}
}

// slipped reports a text without quotes in which there is something that nobody
// writes there: half a pair of quotes, or a key.
func slipped(n *node) bool {
	return n.plain && (strings.Contains(n.text, `"`) || strings.Contains(n.text, ": "))
}

// inner is a value's range without its quotes. A block of text (| or >) is taken
// with its sign, so that one line stands in its place.
func (h *hider) inner(s span) span {
	if !s.known() {
		return unknown
	}
	text := h.src[s.start:s.end]
	for _, q := range []string{`"""`, `'''`, `"`, `'`} {
		if len(q) == 3 && h.format != TOML {
			continue
		}
		if len(text) >= 2*len(q) && bytes.HasPrefix(text, []byte(q)) && bytes.HasSuffix(text, []byte(q)) {
			return span{s.start + len(q), s.end - len(q)}
		}
	}
	return s
}

// maskOf is Mask for a place in a file: without characters that would mean
// something there.
func maskOf(secret string) string {
	mask := Mask(secret)
	if strings.ContainsFunc(mask, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.' || r == '*')
	}) {
		return "***"
	}
	return mask
}

// urlHoles are the ranges of a URL that are secret: user and password, query values
// whose keys speak of one, and, where it is certain to be a URL, the fragment.
func urlHoles(text string, certain bool) (list []span) {
	start := 0
	if i := strings.Index(text, "://"); i >= 0 {
		start = i + 3
	}
	end := len(text)
	if i := strings.IndexAny(text[start:], "/?#"); i >= 0 {
		end = start + i
	}
	at := strings.LastIndexByte(text[start:end], '@')
	if _, err := url.Parse(text); at < 0 && (err != nil || certain && start == 0) {
		// A password with a slash in it makes no URL, but is a secret.
		at = strings.LastIndexByte(text[start:], '@')
	}
	if at > 0 {
		list = append(list, span{start, start + at})
		start += at
	}
	mark := strings.IndexByte(text[start:], '?')
	if mark < 0 {
		return list
	}
	query := start + mark + 1
	stop := len(text)
	if i := strings.IndexByte(text[query:], '#'); i >= 0 {
		stop = query + i
		if certain && stop+1 < len(text) {
			defer func() { list = append(list, span{stop + 1, len(text)}) }()
		}
	}
	for from := query; from < stop; {
		to := stop
		if i := strings.IndexAny(text[from:stop], "&;"); i >= 0 {
			to = from + i
		}
		name, value, ok := strings.Cut(text[from:to], "=")
		switch {
		case ok && value != "" && (SecretQuery(name) || looksSecret(value)):
			list = append(list, span{from + len(name) + 1, to})
		case !ok && looksSecret(name):
			list = append(list, span{from, to})
		}
		from = to + 1
	}
	return list
}

// holdsVendorKey reports a text in which a key stands that begins as vendors' do.
func holdsVendorKey(text string) bool {
	return vendorKey().MatchString(text) && looksSecret(text) || slices.ContainsFunc(insideKey().FindAllString(text, -1), looksSecret)
}

// merged puts the holes in order and makes one of those that overlap.
func merged(holes []hole) (out []hole) {
	slices.SortStableFunc(holes, func(a, b hole) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	for _, next := range holes {
		if next.start == next.end {
			continue
		}
		if len(out) == 0 || next.start >= out[len(out)-1].end {
			out = append(out, next)
			continue
		}
		if last := &out[len(out)-1]; next.end > last.end {
			last.end, last.mask = next.end, "***"
		}
	}
	return out
}

// elsewhere covers the secrets that were found wherever else they stand.
func (h *hider) elsewhere() {
	for _, secret := range h.secrets {
		for from := 0; ; {
			i := bytes.Index(h.src[from:], []byte(secret))
			if i < 0 {
				break
			}
			from += i
			h.cover(span{from, from + len(secret)}, maskOf(secret))
			from += len(secret)
		}
	}
}

var anyURL = lazily(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// vendors and urls cover what is a secret wherever it stands.
func (h *hider) vendors() {
	for _, at := range insideKey().FindAllIndex(h.src, -1) {
		if text := string(h.src[at[0]:at[1]]); looksSecret(text) {
			h.cover(span{at[0], at[1]}, maskOf(text))
			h.remember(text)
		}
	}
}

func (h *hider) urls() {
	for _, at := range anyURL().FindAllIndex(h.src, -1) {
		for _, p := range urlHoles(string(h.src[at[0]:at[1]]), false) {
			h.cover(span{at[0] + p.start, at[0] + p.end}, "***")
		}
	}
}
