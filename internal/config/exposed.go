package config

import (
	"sort"
	"strings"
)

// An exposer finds the secrets of a file that stand, as a key or by whatever alias as
// a value, where the program shows what it reads.
type exposer struct {
	hider
	pieces pieces // of the file: those that are secret are looked for
	visits int
	found  []exposure
}

// An exposure is a secret that stands where none may.
type exposure struct {
	piece int
	alias int    // where the alias stands that takes it there, -1 = none does
	under string // the key of what is shown
}

// exposed looks for the secrets of a file, whose pieces are given, where they are
// shown. A file that cannot be read shows nothing.
func exposed(doc *document, list pieces) []exposure {
	e := &exposer{hider: hider{document: doc}, pieces: list}
	if doc.root != nil {
		e.walk(doc.root, roleOpen, "", -1)
	}
	return e.found
}

// walk looks at what stands below a value, as hider.walk does, but it goes by what is
// shown: what it does not know nobody reads, and a key is always in view. What "<<"
// brings stands among the pairs.
func (e *exposer) walk(n *node, r role, under string, alias int) {
	if e.visits++; e.visits > maxVisits {
		return // the decoder reads no further either
	}
	if n.aliased() {
		alias = n.alias.start
	}
	switch n.kind {
	case kindMap:
		for i := range n.pairs {
			p := &n.pairs[i]
			if p.key == "<<" && p.value.kind != kindText {
				continue
			}
			e.open(p.span, p.key, "the keys of "+under, alias)
			child := roleOf(p.key)
			_, due := openKeys()[p.key]
			switch {
			case r == roleSecret:
				child = roleSecret
			case under == "header_env":
				child = rolePlace
			case under == "virtual_models", child == roleUnknown && due:
				child = roleOpen // no scalar is due there
			}
			e.walk(p.value, child, p.key, alias)
		}
	case kindList:
		for _, item := range n.items {
			e.walk(item, r, under, alias)
		}
	default:
		switch r {
		case roleOpen, rolePlace:
			e.open(n.span, n.text, under, alias)
		case roleURL:
			e.url(n, under, alias)
		}
	}
}

// open notes the secrets in a text that is shown whole.
func (e *exposer) open(s span, text, under string, alias int) {
	e.secrets(s, text, func(i int) { e.found = append(e.found, exposure{i, alias, under}) })
}

// url notes those in a URL that stand where it is shown.
func (e *exposer) url(n *node, under string, alias int) {
	var parts []span
	inner := e.inner(n.span)
	if inner.known() && string(e.src[inner.start:inner.end]) == n.text {
		parts = urlHoles(n.text, true)
	}
	e.secrets(n.span, n.text, func(i int) {
		for _, p := range parts {
			if real := e.pieces[i].real; inner.start+p.start <= real.start && real.end <= inner.start+p.end {
				return
			}
		}
		e.found = append(e.found, exposure{i, alias, under})
	})
}

// secrets gives the pieces that are secrets and stand in a text, by its place, or by
// what it says where its place is not known.
func (e *exposer) secrets(s span, text string, each func(int)) {
	if !s.known() {
		for i, p := range e.pieces {
			if p.secret && strings.Contains(text, string(e.src[p.real.start:p.real.end])) {
				each(i)
			}
		}
		return
	}
	for i := sort.Search(len(e.pieces), func(i int) bool { return e.pieces[i].real.end > s.start }); i < len(e.pieces) && e.pieces[i].real.start < s.end; i++ {
		if e.pieces[i].secret {
			each(i)
		}
	}
}
