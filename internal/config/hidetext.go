package config

import (
	"bytes"
	"slices"
	"strings"
)

// The functions of this file look for secrets in text that is no tree: comments,
// and files that cannot be read.

// assignment is a secret's key with a word behind it, as it stands in a comment or
// in a file that is broken.
var assignment = lazily(`(?i)(?:^|[^A-Za-z0-9_-])["']?(?:api[_-]?key|admin_token|key|(?:proxy-)?authorization|x-api-key|x-goog-api-key|cookie|password|secret|token)["']?[ \t]*[:=][ \t]*["']?(?:(?:bearer|basic)[ \t]+)?([^\s"',{}\[\]#]{6,})`)

func (h *hider) assignments(start, end int) {
	for _, at := range assignment().FindAllSubmatchIndex(h.src[start:end], -1) {
		s := span{start + at[2], start + at[3]}
		text := string(h.src[s.start:s.end])
		h.cover(s, maskOf(text))
		h.remember(text)
	}
}

// comments covers the secrets in the comments of a file that could be read.
func (h *hider) comments() {
	slices.SortFunc(h.scalars, func(a, b span) int { return a.start - b.start })
	next := 0
	for at := 0; at < len(h.src); at++ {
		for next < len(h.scalars) && h.scalars[next].end <= at {
			next++
		}
		if next < len(h.scalars) && h.scalars[next].start <= at {
			at = h.scalars[next].end - 1
			continue
		}
		if h.src[at] == '#' {
			end := h.lineEnd(at)
			h.assignments(at, end)
			at = end - 1
		}
	}
}

var (
	// brokenLine is "key: value" or "key = value", behind the dashes of lists.
	brokenLine = lazily(`^([ \t]*(?:- +)*)(["']?[^\s"':=#\[\]{},](?:[^"':=#\[\]{},]*[^\s"':=#\[\]{},])?["']?)[ \t]*[:=][ \t]*`)
	// brokenToken is a piece of what stands between brackets; yamlSign and tomlSign are what
	// make a key of the one before it.
	brokenToken = lazily(`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\n]|'')*'?|[{}\[\],]|[^\s,{}\[\]"']+`)
	yamlSign    = lazily(`^[ \t]*:`)
	tomlSign    = lazily(`^[ \t]*=`)
	brokenAlias = lazily(`^\*[A-Za-z0-9_-]{1,30}$`)
	brokenWord  = lazily(`^[A-Za-z0-9_.-]+$`)
	// brokenHeader is a table's of TOML, or nothing but punctuation.
	brokenHeader = lazily(`^[ \t]*(\[{1,2}[A-Za-z0-9_."' -]+\]{1,2}|[\[\]{},"' -]*|---|\.\.\.)[ \t]*(#.*)?$`)
	plainItem    = lazily(`^["']?[A-Za-z0-9_.*:/-]{1,60}["']?,?$`)
	brokenQuotes = lazily(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')`)
	plainURL     = lazily(`^(- +)*["']?[a-z]+://[^\s"',{}]+["']?,?$`)
	blockSign    = lazily(`^[|>][-+0-9]*[ \t]*(#.*)?$`)
)

// lines covers, in a file that cannot be read as a tree, every value whose key is
// not known to be harmless, and every line that is not understood.
func (h *hider) lines() {
	for i := 0; i < len(h.starts); {
		i = h.brokenLine(i)
	}
}

// brokenLine covers what one line holds, and says which is the next to look at.
func (h *hider) brokenLine(n int) (next int) {
	start := h.starts[n]
	if n == 0 {
		start += len(h.src) - len(bytes.TrimPrefix(h.src, bom))
	}
	line := string(bytes.TrimRight(h.src[start:max(start, h.lineEnd(start))], " \t\r\n"))
	word := strings.TrimLeft(line, " \t")
	if word == "" || word[0] == '#' || brokenHeader().MatchString(line) {
		return n + 1
	}
	all := span{start + len(line) - len(word), start + len(line)}
	if i := strings.IndexByte(line, '"'); strings.Count(line, `"`)%2 == 1 && !strings.Contains(line, `"""`) {
		if m := brokenLine().FindStringSubmatch(line); m != nil && roleOf(m[2]) == roleOpen && len(m[0]) == i && plainItem().MatchString(line[i:]) {
			return n + 1 // a harmless value, and that quote is its mistake
		}
		// Nobody knows what is inside of quotes here, and what is not.
		h.cover(span{start + i, all.end}, "***")
		line = strings.TrimRight(line[:i], " \t")
		if word = strings.TrimLeft(line, " \t"); word == "" {
			return n + 1
		}
		all.end = start + len(line)
	}
	m := brokenLine().FindStringSubmatchIndex(line)
	if m == nil {
		item := strings.TrimLeft(word, "- ")
		if item == "" {
			return n + 1 // only the dash of an item, whose quotes are covered
		}
		if !plainItem().MatchString(item) || looksSecret(strings.Trim(item, `"',`)) {
			if i := strings.IndexByte(line, '#'); i >= 0 && !strings.ContainsAny(word[:1], "{[-") {
				h.cover(span{start + i, all.end}, "***") // perhaps no comment
			}
			h.brokenFlow(span{all.end - len(item), all.end}, roleUnknown)
		}
		return n + 1
	}
	key := strings.Trim(strings.TrimSpace(line[m[4]:m[5]]), `"'`)
	if dot := strings.LastIndexByte(key, '.'); dot >= 0 {
		key = strings.Trim(key[dot+1:], `"' `)
	}
	value, r := line[m[1]:], roleOf(key)
	at := span{start + m[1], all.end}
	switch {
	case value == "" || value[0] == '#' || brokenAlias().MatchString(value) || plainURL().MatchString(word):
		return n + 1
	case r == roleUnknown && !plainKey().MatchString(key):
		h.cover(all, "***")
	case value[0] == '{' || value[0] == '[':
		h.brokenFlow(at, r)
		return n + 1
	case h.format == YAML && blockSign().MatchString(value), h.format == TOML && (strings.HasPrefix(value, `"""`) || strings.HasPrefix(value, `'''`)):
		return h.brokenBlock(n, at, len(line)-len(word), r)
	case value[0] == '&' && r != roleOpen, !strings.ContainsAny(value[:1], `"'`) && (strings.Contains(value, `"`) || strings.Contains(value, ": ")):
		h.cover(at, "***")
	default:
		rest := h.brokenValue(at, r)
		behind := h.src[rest.start:rest.end]
		if len(behind) > 0 && (behind[0] != '#' || (r == roleSecret || r == roleUnknown) && bytes.Contains(behind, []byte(`"`))) {
			h.cover(at, "***") // the quotes are perhaps not where they should be
		}
	}
	return n + 1
}

// brokenBlock covers a text over several lines, and says on which line it is over:
// one of YAML with the indentation, one of TOML with its quotes.
func (h *hider) brokenBlock(n int, at span, indent int, r role) (next int) {
	if h.format == TOML {
		quotes := h.src[at.start : at.start+3]
		end := bytes.Index(h.src[at.start+3:], quotes)
		at = span{at.start + 3, len(h.src)}
		if end >= 0 {
			at.end = at.start + end
		}
		next = h.line(at.end) + 1
	}
	for next = max(next, n+1); h.format == YAML && next < len(h.starts); next++ {
		line := bytes.TrimRight(h.src[h.starts[next]:h.lineEnd(h.starts[next])], " \t\r\n")
		word := bytes.TrimLeft(line, " ")
		if len(word) > 0 && len(line)-len(word) <= indent {
			break
		}
		if len(word) > 0 {
			at.end = h.starts[next] + len(line)
		}
	}
	if r == roleSecret || r == roleUnknown {
		h.cover(at, "***")
	}
	return next
}

// brokenFlow covers what stands between brackets, or on a line that is not
// understood: every value but those whose key is right before them and harmless.
func (h *hider) brokenFlow(at span, r role) {
	text := string(h.src[at.start:at.end])
	if text[0] != '[' && !strings.ContainsAny(text, ":=") {
		if strings.Trim(text, "{}], ") != "" {
			h.cover(at, "***")
		}
		return
	}
	sign, brokenSign := ":", yamlSign()
	if h.format == TOML {
		sign, brokenSign = "=", tomlSign()
	}
	lists := 0
	for _, m := range brokenToken().FindAllStringIndex(text, -1) {
		token := text[m[0]:m[1]]
		switch token[0] {
		case '#':
			return
		case '[':
			lists++
			continue
		case ']':
			lists--
			continue
		case '{', '}', ',':
			if token != "," || lists <= 0 {
				r = roleUnknown
			}
			continue
		}
		// "key": or key= or key:, perhaps with its value right behind it.
		key, value, ok := token, "", false
		if token[0] == '"' || token[0] == '\'' {
			if m[1] < len(text) && !strings.ContainsAny(text[m[1]:m[1]+1], " \t,]}:=") {
				h.cover(span{at.start + m[0], at.end}, "***") // quotes that are not where they should be
				return
			}
			ok = brokenSign.MatchString(text[m[1]:])
		} else if i := strings.Index(token, sign); i > 0 && brokenWord().MatchString(token[:i]) && !strings.HasPrefix(token[i:], "://") {
			key, value, ok = token[:i], token[i+1:], true
		} else {
			ok = brokenSign.MatchString(text[m[1]:])
		}
		if ok {
			r = roleOf(strings.Trim(key, `"'`))
			token = value
		}
		if strings.Trim(token, ":=") != "" {
			if r == roleSecret && !strings.ContainsAny(token[:1], `"'`) {
				h.cover(span{at.start + m[1] - len(token), at.start + m[1]}, "***") // perhaps a part of it
			}
			h.brokenValue(span{at.start + m[1] - len(token), at.start + m[1]}, r)
			if lists <= 0 {
				r = roleUnknown // one value a key
			}
		}
	}
}

// brokenValue covers a value, and gives the range of what stands behind it.
func (h *hider) brokenValue(at span, r role) (rest span) {
	text := string(h.src[at.start:at.end])
	if m := brokenQuotes().FindString(text); m != "" {
		text = m
	} else if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'") {
		r = max(r, roleSecret) // nobody knows where it ends
	} else if i := strings.Index(text, " #"); i >= 0 {
		text = strings.TrimRight(text[:i], " \t")
	}
	behind := bytes.TrimLeft(h.src[at.start+len(text):at.end], " \t")
	rest = span{at.end - len(behind), at.end}
	at = h.inner(span{at.start, at.start + len(text)})
	text = string(h.src[at.start:at.end])
	switch {
	case text == "":
	case r == roleURL:
		for _, p := range urlHoles(text, true) {
			h.cover(span{at.start + p.start, at.start + p.end}, "***")
			h.remember(text[p.start:p.end])
		}
	case r == roleSecret:
		h.cover(at, maskOf(text))
		h.remember(text)
	case r == roleUnknown && text != "true" && text != "false":
		h.cover(at, "***")
	case r == rolePlace && !shownName(text), holdsVendorKey(text):
		h.cover(at, maskOf(text))
		h.remember(text)
	}
	return rest
}
