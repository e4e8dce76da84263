package config

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// decoder walks the tree and collects every problem.
type decoder struct {
	doc      *document
	src      Source
	dir      string // relative paths of the file count from here
	path     []string
	visits   int
	problems []Problem
	count    [2]int // of problems, by severity
	// entries are the upstreams by id, for the virtual models that name them.
	entries map[string]*entry
	// syntax are the places of the problems that the parser found.
	syntax map[[2]int]bool
	// literal is set by the first secret that stands in the file itself.
	literal bool
}

// maxProblems bounds the list of each severity; after so many the rest helps
// nobody.
const maxProblems = 200

// errorAt and warnAt add a problem at a byte of the file.
func (d *decoder) errorAt(offset int, what, cure string) { d.add(Error, offset, what, cure) }
func (d *decoder) warnAt(offset int, what, cure string)  { d.add(Warning, offset, what, cure) }

// errorOn is errorAt for a value.
func (d *decoder) errorOn(n *node, what, cure string) { d.add(Error, n.outer, what, cure) }

func (d *decoder) add(s Severity, offset int, what, cure string) {
	if d.full(s) {
		return
	}
	p := Problem{Severity: s, File: d.src.Path, Path: strings.TrimPrefix(strings.Join(d.path, ""), "."), What: what, Cure: cure}
	if offset >= 0 {
		p.Line, p.Column = d.doc.position(offset)
	}
	// An anchor's mistake would show once per alias, and what the parser has
	// refused once more for what is missing without it.
	same := func(q Problem) bool {
		return q.Line == p.Line && q.Column == p.Column && (q.What == p.What || d.syntax[[2]int{p.Line, p.Column}])
	}
	if !slices.ContainsFunc(d.problems, same) {
		d.problems = append(d.problems, p)
		d.count[s]++
	}
}

// full reports that there are enough problems of a severity.
func (d *decoder) full(s Severity) bool { return d.count[s] >= maxProblems }

// sorted returns the problems in the file's order.
func (d *decoder) sorted() []Problem {
	sort.SliceStable(d.problems, func(i, j int) bool {
		a, b := d.problems[i], d.problems[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
	return d.problems
}

func (d *decoder) failed() bool { return d.count[Error] > 0 }

// enter goes one step down the path, ".key" or "[0]"; the function it returns
// goes back.
func (d *decoder) enter(step string) (leave func()) {
	if key, ok := strings.CutPrefix(step, "."); ok && !strings.HasPrefix(quoteKey(key), `"`) {
		step = ".?"
	}
	d.path = append(d.path, step)
	return func() { d.path = d.path[:len(d.path)-1] }
}

// enterName is enter for a name that the user chose.
func (d *decoder) enterName(name string) (leave func()) {
	if hasControl(name) || !shownName(name) {
		name = "?"
	}
	d.path = append(d.path, "."+name)
	return func() { d.path = d.path[:len(d.path)-1] }
}

// visit counts the values looked at and says when it is too many.
func (d *decoder) visit(n *node) bool {
	d.visits++
	if d.visits == maxVisits {
		d.errorOn(n, "aliases multiply this file beyond all use", "use fewer of them")
	}
	return d.visits < maxVisits
}

// unknownKey reports a key nobody knows, and the one that was meant.
func (d *decoder) unknownKey(p *pair, known []string) {
	if by := retired[p.key]; by != "" {
		d.warnAt(p.span.start, p.key+" is retired and has no effect", "use "+by)
		return
	}
	if d.full(Error) {
		return
	}
	near, far := nearest(p.key, known)
	what := "unknown key " + quoteKey(p.key)
	switch {
	case !far:
		if distance(p.key, near) <= 2 && utf8.RuneCountInString(p.key) <= 40 {
			what = "unknown key " + strconv.Quote(p.key) // plainly a slip, whatever it looks like
		}
		d.errorAt(p.span.start, what, "did you mean "+near+"?")
	case len(known) <= 12:
		d.errorAt(p.span.start, what, "write "+words(known))
	default:
		d.errorAt(p.span.start, what, "the nearest known key is "+near)
	}
}

// wrongType reports a value of another type than wanted, never the value.
func (d *decoder) wrongType(n *node, want string) {
	if n.kind == kindNull {
		d.errorOn(n, "no value", "write "+want+", or remove the key")
		return
	}
	d.errorOn(n, n.kind.String()+" where "+want+" is due", "write "+want)
}

// each calls f for every item of a list.
func (d *decoder) each(n *node, f func(*node)) {
	if n.kind != kindList {
		d.wrongType(n, "a list")
		return
	}
	for i, item := range n.items {
		if !d.visit(item) {
			return
		}
		leave := d.enter("[" + itoa(i) + "]")
		if item.kind == kindNull {
			d.errorOn(item, "an item of the list is empty", "write it, or remove it")
		} else {
			f(item)
		}
		leave()
	}
}

// line is text for a name, an address or the like.
func (d *decoder) line(n *node) (string, bool) {
	if n.kind != kindText {
		want := "text"
		if n.kind == kindInt || n.kind == kindFloat || n.kind == kindBool || n.kind == kindDate {
			want = "text in quotes"
		}
		d.wrongType(n, want)
		return "", false
	}
	switch {
	case n.text == "":
		d.errorOn(n, "empty", "write a value, or remove the key")
	case hasControl(n.text):
		d.errorOn(n, "a control character in it", "remove the line break or control character")
	default:
		return n.text, true
	}
	return "", false
}

// secret is line for a value that is never shown.
func (d *decoder) secret(n *node) (Secret, bool) {
	s, ok := d.line(n)
	if ok {
		d.literal = true
	}
	return NewSecret(s), ok
}

func (d *decoder) flag(n *node) (bool, bool) {
	if n.kind == kindBool {
		return n.bool, true
	}
	d.wrongType(n, "true or false")
	return false, false
}

// onOff takes on and off, and true and false, which older YAML reads them as.
func (d *decoder) onOff(n *node) (bool, bool) {
	switch {
	case n.kind == kindBool:
		return n.bool, true
	case n.kind == kindText && (n.text == "on" || n.text == "off"):
		return n.text == "on", true
	}
	d.wrongChoice(n, []string{"on", "off"})
	return false, false
}

func (d *decoder) choice(n *node, options []string) (string, bool) {
	switch {
	case n.kind == kindText && slices.Contains(options, n.text):
		return n.text, true
	case n.kind == kindBool && slices.Contains(options, "on") && n.bool:
		return "on", true
	case n.kind == kindBool && slices.Contains(options, "off") && !n.bool:
		return "off", true
	}
	d.wrongChoice(n, options)
	return "", false
}

func (d *decoder) wrongChoice(n *node, options []string) {
	if n.kind != kindText {
		d.wrongType(n, words(options))
		return
	}
	cure := "write " + words(options)
	if near, far := nearest(n.text, options); !far {
		cure = "did you mean " + near + "? (" + words(options) + ")"
	}
	d.errorOn(n, quoteValue(n.text)+" is not known here", cure)
}

// quoteValue shows a word that stands where one of a list is due.
func quoteValue(s string) string {
	if q := quoteKey(s); strings.HasPrefix(q, `"`) {
		return q
	}
	return "this text"
}

// wantNumber reports anything but a finite number.
func (d *decoder) wantNumber(n *node, want string) bool {
	if n.kind == kindText && !n.plain {
		if v := plainScalar(n.text); v.kind == kindInt || v.kind == kindFloat {
			d.errorOn(n, "text where "+want+" is due", "write the number without quotes")
			return false
		}
	}
	if n.kind != kindInt && n.kind != kindFloat {
		d.wrongType(n, want)
		return false
	}
	if math.IsNaN(n.num) || math.IsInf(n.num, 0) {
		d.errorOn(n, "no finite number", "write "+want)
		return false
	}
	return true
}

func (d *decoder) length(n *node, unit time.Duration, low lowest) (time.Duration, bool) {
	want := "a number of " + unitWord(unit)
	if n.kind == kindText {
		if _, err := time.ParseDuration(n.text); err == nil {
			d.errorOn(n, "a length with its unit where "+want+" is due", "write the number alone")
			return 0, false
		}
	}
	if !d.wantNumber(n, want) {
		return 0, false
	}
	least, most := lengthRange(unit)
	rng := "more than 0"
	if low == zeroUp {
		rng = "0 or more"
	}
	switch {
	case n.num < 0, low == positive && n.num == 0:
		d.errorOn(n, number(n.num)+" is out of range", "write "+rng)
	case n.num > most:
		d.errorOn(n, "longer than 30 years", "write at most 1,000,000,000 seconds")
	case n.num > 0 && n.num < least:
		d.errorOn(n, "shorter than a millisecond", "write "+rng+", at least "+number(least))
	default:
		return time.Duration(n.num * float64(unit)), true
	}
	return 0, false
}

// span is a positive time: a number of seconds, or text with its unit such as 8s.
func (d *decoder) span(n *node) (time.Duration, bool) {
	const cure = "write a number of seconds, a time such as 8s or 1500ms, or p95"
	if n.kind != kindText {
		return d.length(n, time.Second, positive)
	}
	if !timeText().MatchString(n.text) {
		d.errorOn(n, quoteValue(n.text)+" is no time", cure)
		return 0, false
	}
	v, err := time.ParseDuration(strings.TrimSpace(n.text))
	switch {
	case err != nil || v < time.Millisecond || v.Seconds() > maxSeconds:
		d.errorOn(n, quoteValue(n.text)+" is out of range", cure)
	default:
		return v, true
	}
	return 0, false
}

// share is a number above 0 and at most 1, or text such as 5%.
func (d *decoder) share(n *node) (float64, bool) {
	if n.kind != kindText {
		return d.ratio(n, 1)
	}
	digits := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(n.text), "%"))
	v, err := strconv.ParseFloat(digits, 64)
	if !shareText().MatchString(n.text) || err != nil || v == 0 {
		d.errorOn(n, quoteValue(n.text)+" is no share", "write more than 0%, at most 100%, or a number of at most 1")
		return 0, false
	}
	return v / 100, true
}

// rate is a number of 0 or more.
func (d *decoder) rate(n *node) (float64, bool) {
	if !d.wantNumber(n, "a number") {
		return 0, false
	}
	if n.num < 0 || n.num > maxSeconds {
		d.errorOn(n, number(n.num)+" is out of range", "write 0 or more")
		return 0, false
	}
	return n.num, true
}

func (d *decoder) whole(n *node, low, high int64) (int64, bool) {
	if !d.wantNumber(n, "a whole number") {
		return 0, false
	}
	if n.kind != kindInt {
		what := "no whole number"
		if n.pointed(low, high) {
			what = "a whole number with a point"
		}
		d.errorOn(n, what, "write one without a point, "+wholeRange(low, high))
		return 0, false
	}
	cure := "write " + wholeRange(low, high)
	if n.int > high {
		cure = "write at most " + strconv.FormatInt(high, 10)
	}
	if n.int < low || n.int > high {
		d.errorOn(n, strconv.FormatInt(n.int, 10)+" is out of range", cure)
		return 0, false
	}
	return n.int, true
}

// ratio is a finite number above 0, at most high.
func (d *decoder) ratio(n *node, high float64) (float64, bool) {
	if !d.wantNumber(n, "a number") {
		return 0, false
	}
	if n.num <= 0 || n.num > high {
		d.errorOn(n, number(n.num)+" is out of range", "write more than 0, at most "+number(high))
		return 0, false
	}
	return n.num, true
}

var sizeUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// maxSize bounds sizes: 1 TiB.
const maxSize = 1 << 40

func sizeText(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// size is a number of bytes, or text such as "64 MiB".
func (d *decoder) size(n *node, low int64) (int64, bool) {
	if n.kind == kindText {
		v, ok := d.sizeText(n)
		if ok && v < low {
			d.errorOn(n, "a size that is out of range", "write at least "+sizeText(low))
			return 0, false
		}
		return v, ok
	}
	least := low
	if n.kind == kindInt {
		least = 0 // so that what is too small is told in KiB and MiB below
	}
	if _, ok := d.whole(n, least, maxSize); !ok {
		return 0, false
	}
	if n.int < low {
		d.errorOn(n, sizeText(n.int)+" is out of range", "write at least "+sizeText(low))
		return 0, false
	}
	return n.int, true
}

// sizeText reads a size such as "64 MiB".
func (d *decoder) sizeText(n *node) (int64, bool) {
	if !sizeWords().MatchString(n.text) {
		d.errorOn(n, "no size", "write a number of bytes, or one with KiB, MiB or GiB")
		return 0, false
	}
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(n.text, u.name)
		if !found {
			continue
		}
		if i, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64); err == nil && i <= maxSize/u.size {
			return i * u.size, true
		}
	}
	d.errorOn(n, "a size that is out of range", "write at most "+sizeText(maxSize))
	return 0, false
}

// pointed reports a whole number of a range that is written with a point, which JSON
// cannot tell from one without.
func (n *node) pointed(low, high int64) bool {
	return n.kind == kindFloat && n.num == math.Trunc(n.num) && float64(low) <= n.num && n.num <= float64(high)
}
