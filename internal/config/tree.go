package config

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// kind is what a value of a file is, in either spelling.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindDate // TOML only; no key takes one
	kindList
	kindMap
)

// String is the word a problem uses.
func (k kind) String() string {
	switch k {
	case kindNull:
		return "nothing"
	case kindBool:
		return "true or false"
	case kindInt:
		return "a whole number"
	case kindFloat:
		return "a number"
	case kindText:
		return "text"
	case kindDate:
		return "a date"
	case kindList:
		return "a list"
	}
	return "a mapping"
}

// span is a range of bytes of the file. An unknown span has end < 0: its node
// can be read but not edited.
type span struct{ start, end int }

func (s span) known() bool { return s.end >= s.start && s.start >= 0 }

// node is one value of a file. Nodes reached by a YAML alias are shared, so
// nobody changes a node after the parser returned it.
type node struct {
	kind kind
	text string  // kindText, kindDate
	num  float64 // kindInt, kindFloat
	int  int64   // kindInt
	bool bool

	pairs []pair  // kindMap, in the file's order
	items []*node // kindList

	// span covers the value itself: quotes and brackets included, anchor and
	// tag not. A block collection reaches from its first child to its last.
	span span
	// outer starts at the value's anchor or tag where it has one.
	outer int
	// flow marks [..] and {..}, in TOML also inline tables.
	flow bool
	// alias covers "*name" where this node stands elsewhere.
	alias span
	// plain marks a scalar without quotes.
	plain bool
	// dashes are the offsets of the dashes of a YAML block list.
	dashes []int
}

// aliased reports whether the node is reached through a YAML alias.
func (n *node) aliased() bool { return n.alias.end > 0 }

// pair is one entry of a mapping.
type pair struct {
	key  string
	span span // of the key
	// merged marks a pair that came by a YAML merge key ("<<").
	merged bool
	value  *node
}

// find returns the value of a key, nil if the mapping has none.
func (n *node) find(key string) *node {
	if p := n.pair(key); p != nil {
		return p.value
	}
	return nil
}

func (n *node) pair(key string) *pair {
	if n == nil || n.kind != kindMap {
		return nil
	}
	for i := range n.pairs {
		if n.pairs[i].key == key {
			return &n.pairs[i]
		}
	}
	return nil
}

// document is a parsed file: its bytes, its lines and its tree.
type document struct {
	format Format
	src    []byte
	starts []int // byte offset of every line's first byte
	// root is a mapping; nil where the file could not be read.
	root *node
	// exprs are the expressions of a TOML file, in its order.
	exprs []expr
	// problems are those of syntax, duplicate keys and aliases.
	problems []flaw
	// last is where offset was asked last, so that a long line is walked once.
	last struct{ line, column, offset int }
}

// flaw is a problem before the file's name is put to it.
type flaw struct {
	offset     int // of the byte it is about, -1 = the file as a whole
	what, cure string
}

func newDocument(format Format, src []byte) *document {
	d := &document{format: format, src: src, starts: []int{0}}
	for i, c := range src {
		if c == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	return d
}

func (d *document) flaw(offset int, what, cure string) {
	d.problems = append(d.problems, flaw{offset: offset, what: what, cure: cure})
}

// line returns the number of the line that holds an offset, from 0.
func (d *document) line(offset int) int {
	return sort.SearchInts(d.starts, offset+1) - 1
}

// position turns an offset into line and column, both from 1, the column in
// characters.
func (d *document) position(offset int) (line, column int) {
	if offset > len(d.src) {
		offset = len(d.src)
	}
	i := d.line(offset)
	text := d.src[d.starts[i]:offset]
	if i == 0 {
		text = bytes.TrimPrefix(text, bom)
	}
	return i + 1, utf8.RuneCount(text) + 1
}

// offset is the inverse of position; it stops at the line's end.
func (d *document) offset(line, column int) int {
	if line < 1 {
		return 0
	}
	if line > len(d.starts) {
		return len(d.src)
	}
	at, off := 1, d.starts[line-1]
	if line == 1 && bytes.HasPrefix(d.src, bom) {
		off += len(bom)
	}
	if d.last.line == line && d.last.column <= column {
		at, off = d.last.column, d.last.offset
	}
	for ; at < column && off < len(d.src) && d.src[off] != '\n'; at++ {
		_, n := utf8.DecodeRune(d.src[off:])
		off += n
	}
	d.last.line, d.last.column, d.last.offset = line, at, off
	return off
}

// lineStart is the offset of the first byte of the line that holds offset.
func (d *document) lineStart(offset int) int { return d.starts[d.line(offset)] }

// lineEnd is the offset behind the line break of the line that holds offset, or
// the end of the file.
func (d *document) lineEnd(offset int) int {
	if i := d.line(offset) + 1; i < len(d.starts) {
		return d.starts[i]
	}
	return len(d.src)
}

// newline is the file's own line break.
func (d *document) newline() string {
	if len(d.starts) > 1 && d.starts[1] >= 2 && d.src[d.starts[1]-2] == '\r' {
		return "\r\n"
	}
	return "\n"
}

var bom = []byte("\xef\xbb\xbf")

// Limits of a file. A configuration of a thousand candidates has some hundred
// kilobytes and some ten thousand lines; what is larger is not one, and the YAML
// parser's time grows with the square of the number of keys in one mapping.
const (
	maxFileBytes = 1 << 20
	maxFileLines = 20_000
	maxNesting   = 200
	// maxVisits bounds how often the decoder looks at a value, so that aliases
	// of aliases cannot multiply a small file into hours of work.
	maxVisits = 200_000
)

// parseDocument reads the bytes of a file into a tree. It never fails: what is
// wrong stands in problems, and root is nil if nothing could be read.
func parseDocument(format Format, src []byte) *document {
	d := newDocument(format, src)
	if !d.readable() {
		return d
	}
	if format == TOML {
		d.parseTOML()
	} else {
		d.parseYAML()
	}
	return d
}

// readable refuses what neither parser should see.
func (d *document) readable() bool {
	switch {
	case len(d.src) > maxFileBytes:
		d.flaw(-1, "the file is larger than 1 MiB", "split off what is no configuration")
		return false
	case len(d.starts) > maxFileLines:
		d.flaw(-1, "the file has more than 20,000 lines", "split off what is no configuration")
		return false
	case bytes.HasPrefix(d.src, []byte("\xff\xfe")), bytes.HasPrefix(d.src, []byte("\xfe\xff")):
		d.flaw(-1, "the file is UTF-16", "save it as UTF-8")
		return false
	}
	for i := 0; i < len(d.src); {
		c := d.src[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(d.src[i:])
			if r == utf8.RuneError && n == 1 {
				d.flaw(i, "not UTF-8", "save the file as UTF-8")
				return false
			}
			i += n
			continue
		}
		if c < ' ' && c != '\t' && c != '\n' && !(c == '\r' && i+1 < len(d.src) && d.src[i+1] == '\n') || c == 0x7f {
			d.flaw(i, "a control character", "remove it")
			return false
		}
		i++
	}
	if off, ok := tooDeep(d.src); ok {
		d.flaw(off, "nested too deeply", "at most 200 levels")
		return false
	}
	return true
}

// tooDeep looks for what would send a recursive parser down without end: open
// brackets, and the dashes and question marks of a block that nests on one line
// ("- - &a - x"). It counts them in comments too: nobody writes 200 of them
// unclosed, or in a row on one line.
func tooDeep(src []byte) (int, bool) {
	depth, dashes := 0, 0
	for i, c := range src {
		switch c {
		case '[', '{':
			depth++
			dashes = 0
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?':
			if (i == 0 || src[i-1] <= ' ') && (i+1 == len(src) || src[i+1] <= ' ') {
				dashes++
			}
		case '\n', '"', '\'', ',':
			dashes = 0
		}
		if depth > maxNesting || dashes > maxNesting {
			return i, true
		}
	}
	return 0, false
}
