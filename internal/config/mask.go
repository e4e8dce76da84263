package config

import (
	"bytes"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ErrUnshowable is returned for a file in which a secret stands that cannot be
// covered, because where its bytes are is not known.
var ErrUnshowable = errors.New("the file cannot be shown without a secret in it")

// Masked is a configuration file as people may see and edit it: a mask stands where
// a secret does. The same bytes have the same mask, different ones never; so a mask
// says which secret it stands for wherever an edit has taken it.
type Masked struct {
	// Text is the file with masks, without a byte order mark and with LF line ends,
	// as editors in browsers have it.
	Text string

	source Source
	masks  map[string]string // mask to the bytes of the file it stands for
	order  []string          // of the masks, as they stand in the file
	pieces pieces
}

// Masked covers every secret of the file. A file that is no valid configuration is
// shown all the same, with more covered than must be. It returns ErrUnshowable where
// a secret cannot be covered.
func (s Source) Masked() (Masked, error) {
	m := Masked{source: s, masks: map[string]string{}}
	if len(s.Bytes) > maxFileBytes {
		return m, ErrUnshowable
	}
	holes, _, secrets := hide(s.Format, s.Bytes)
	at := len(s.Bytes) - len(bytes.TrimPrefix(s.Bytes, bom))
	var b strings.Builder
	put := func(text string, real span, secret bool) {
		if real.start < real.end {
			m.pieces = append(m.pieces, piece{span{b.Len(), b.Len() + len(text)}, real, secret})
			b.WriteString(text)
		}
	}
	given := map[string]string{} // bytes of the file to mask
	for _, h := range holes {
		if h.start < at {
			return m, ErrUnshowable // in the byte order mark
		}
		put(unixLines(string(s.Bytes[at:h.start])), span{at, h.start}, false)
		secret := string(s.Bytes[h.start:h.end])
		if given[secret] == "" {
			given[secret] = m.mask(h.mask)
			m.masks[given[secret]] = secret
			m.order = append(m.order, given[secret])
		}
		put(given[secret], h.span, true)
		at = h.end
	}
	put(unixLines(string(s.Bytes[at:])), span{at, len(s.Bytes)}, false)
	m.Text = b.String()
	if slices.ContainsFunc(secrets, func(secret string) bool { return strings.Contains(m.Text, secret) }) {
		return m, ErrUnshowable
	}
	// What was not edited must come back, whatever stands in the file.
	if back, _ := m.put(m.Text); unixLines(string(back)) != unixLines(string(s.Bytes)) {
		return m, ErrUnshowable
	}
	return m, nil
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// Masks lists the masks in the order of the file, each once.
func (m Masked) Masks() []string { return slices.Clone(m.order) }

// mask makes a mask that stands neither in the file nor for another secret yet: the
// number behind it tells those apart that would look the same.
func (m *Masked) mask(look string) string {
	mask := look
	for n := 2; m.masks[mask] != "" || bytes.Contains(m.source.Bytes, []byte(mask)); n++ {
		mask = look + "(" + strconv.Itoa(n) + ")"
	}
	return mask
}

// Shown moves a problem of the file to its place in Text.
func (m Masked) Shown(p Problem) Problem { return m.pieces.move(m.source, m.Text, p) }

// put puts the secrets back where masks stand in a text.
func (m Masked) put(text string) ([]byte, pieces) {
	var out []byte
	if bytes.HasPrefix(m.source.Bytes, bom) {
		out = append(out, bom...)
	}
	windows := newDocument(m.source.Format, m.source.Bytes).newline() == "\r\n"
	var list pieces
	add := func(real string, from, to int, secret bool) {
		if from < to {
			list = append(list, piece{span{from, to}, span{len(out), len(out) + len(real)}, secret})
			out = append(out, real...)
		}
	}
	literal := func(from, to int) {
		real := text[from:to]
		if windows {
			real = strings.ReplaceAll(real, "\n", "\r\n")
		}
		add(real, from, to, false)
	}
	lengths := m.lengths()
	from := 0
	for i := 0; i < len(text); {
		mask := m.maskAt(text[i:], lengths)
		if mask == "" {
			i++
			continue
		}
		literal(from, i)
		add(m.masks[mask], i, i+len(mask), true)
		i += len(mask)
		from = i
	}
	literal(from, len(text))
	return out, list
}

// lengths are those of the masks, each once, the longest first: a mask must not hide
// behind one that it begins with.
func (m Masked) lengths() (list []int) {
	for _, mask := range m.order {
		list = append(list, len(mask))
	}
	slices.Sort(list)
	slices.Reverse(list)
	return slices.Compact(list)
}

// maskAt returns the mask that a text begins with, "" where it begins with none.
func (m Masked) maskAt(text string, lengths []int) string {
	// Every mask has its stars at its beginning or behind six characters.
	if !strings.HasPrefix(text, "***") && (len(text) < 9 || text[6:9] != "***") {
		return ""
	}
	for _, n := range lengths {
		if n <= len(text) && m.masks[text[:n]] != "" {
			return text[:n]
		}
	}
	return ""
}

// Restored is an edited file with its secrets put back.
type Restored struct {
	Source
	// Problems are the masks that could not be put back, by their place in the
	// edited text. Where there are any, the Source is not to be used.
	Problems []Problem

	shown  string
	pieces pieces
}

// Restore puts the secrets back into an edited text. A mask comes back as the whole
// of what it stands for and only where a secret may stand, whatever aliases lead there,
// so that no edit shows a secret or makes another of it.
func (m Masked) Restore(text string) Restored {
	if text != m.Text { // a file may have line ends that look like others once they are shown
		text = strings.TrimPrefix(unixLines(text), string(bom))
	}
	r := Restored{Source: m.source, shown: text, pieces: m.pieces}
	if text != m.Text { // else all is as it was, line ends of two kinds too
		r.Bytes, r.pieces = m.put(text)
		r.check(m)
	}
	return r
}

// Shown moves a problem of the file to its place in the edited text.
func (r Restored) Shown(p Problem) Problem { return r.pieces.move(r.Source, r.shown, p) }

// check finds masks that stand where no secret may, and those that are none of the
// file's, because they were typed or cut. A line that was not edited is as it was.
func (r *Restored) check(m Masked) {
	holes, placed, _ := hide(r.Format, r.Bytes)
	doc := newDocument(r.Format, []byte(r.shown))
	var old map[string]bool
	next := 0
	for _, p := range r.pieces {
		if !p.secret {
			continue
		}
		for next < len(placed) && placed[next].end <= p.real.start {
			next++
		}
		fits := false
		for _, h := range placed[next:] {
			if h.start >= p.real.end {
				break
			}
			if fits = p.holds(h.span); !fits {
				break
			}
		}
		if fits {
			continue
		}
		if old == nil {
			old = map[string]bool{}
			for line := range strings.Lines(m.Text) {
				old[strings.TrimRight(line, "\n")] = true
			}
		}
		if line := r.shown[doc.lineStart(p.shown.start):doc.lineEnd(p.shown.start)]; !old[strings.TrimRight(line, "\n")] {
			r.misplaced(doc, p.shown.start)
		}
	}
	for _, h := range holes {
		if bytes.Contains(r.Bytes[h.start:h.end], []byte("***")) && !slices.ContainsFunc(r.pieces, func(p piece) bool { return p.secret && p.holds(h.span) }) {
			r.problem(doc, r.pieces.shown(r.Bytes, h.start), "a mask that stands for no secret of this file", "write the secret itself")
		}
	}
	r.exposed(m)
	sort.SliceStable(r.Problems, func(i, j int) bool {
		a, b := r.Problems[i], r.Problems[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
}

// exposed finds the masks that an edit has taken to where their secrets would be
// shown: as a name, as a key, or by an alias. A secret that stood under such a key
// already may stay.
func (r *Restored) exposed(m Masked) {
	found := exposed(parseDocument(r.Format, r.Bytes), r.pieces)
	if len(found) == 0 {
		return
	}
	type shown struct{ secret, under string }
	before := map[shown]bool{}
	source := parseDocument(r.Format, m.source.Bytes)
	for _, e := range exposed(source, m.pieces) {
		real := m.pieces[e.piece].real
		before[shown{string(m.source.Bytes[real.start:real.end]), e.under}] = true
	}
	doc := newDocument(r.Format, []byte(r.shown))
	for _, e := range found {
		p := r.pieces[e.piece]
		at := p.shown.start
		if e.alias >= 0 {
			at = r.pieces.shown(r.Bytes, e.alias)
		}
		if source.root == nil && strings.HasPrefix(unixLines(m.Text), r.shown[:doc.lineEnd(at)]) {
			continue // of a file that nobody can read too much is masked; what stands before the mended place is as it was
		}
		if !before[shown{string(r.Bytes[p.real.start:p.real.end]), e.under}] {
			r.misplaced(doc, at)
		}
	}
}

func (r *Restored) misplaced(doc *document, at int) {
	r.problem(doc, at, "a mask where no secret may stand", "put it back where it was, or write the text itself")
}

func (r *Restored) problem(doc *document, at int, what, cure string) {
	line, column := doc.position(at)
	if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Line == line && p.Column == column }) {
		r.Problems = append(r.Problems, Problem{File: r.Path, Line: line, Column: column, What: what, Cure: cure})
	}
}

// pieces say which stretch of a text with masks stands for which of the file, in
// order and without gaps.
type pieces []piece

type piece struct {
	shown, real span
	secret      bool
}

func (p piece) holds(s span) bool { return p.real.start <= s.start && s.end <= p.real.end }

// shown is where a byte of the file is in the text with masks.
func (list pieces) shown(file []byte, real int) int {
	i := sort.Search(len(list), func(i int) bool { return list[i].real.end > real })
	switch {
	case i < len(list) && list[i].secret:
		return list[i].shown.start
	case i < len(list):
		p := list[i]
		from := min(p.real.start, real)
		return p.shown.start + real - from - bytes.Count(file[from:real], []byte("\r\n"))
	case len(list) > 0:
		return list[len(list)-1].shown.end
	}
	return 0
}

// move moves a problem of a file to its place in the text with masks.
func (list pieces) move(file Source, text string, p Problem) Problem {
	if p.Line > 0 {
		at := newDocument(file.Format, file.Bytes).offset(p.Line, p.Column)
		p.Line, p.Column = newDocument(file.Format, []byte(text)).position(list.shown(file.Bytes, at))
	}
	return p
}
