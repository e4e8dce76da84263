package proxy

import (
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// joinURL makes an upstream's URL of its base and a client's escaped path and raw
// query: base path, client path, both queries, order and escapes kept. "//" is
// folded at the joint and at the client path's start. Where the base ends in a
// version and the client's path begins with one, the base's stands for both,
// unless plain is set.
func joinURL(base *url.URL, path, query string, plain bool) *url.URL {
	u := *base
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	head := strings.TrimRight(base.EscapedPath(), "/")
	tail := rooted(path)
	if !plain && isVersion(head[strings.LastIndexByte(head, '/')+1:]) {
		first, _, more := strings.Cut(tail[1:], "/")
		if isVersion(first) {
			if tail = tail[1+len(first):]; more {
				tail = rooted(tail)
			}
		}
	}
	if tail == "/" && path == "" {
		tail = ""
	}
	setPath(&u, head+tail)
	switch {
	case base.RawQuery == "":
		u.RawQuery = query
	case query != "":
		u.RawQuery = base.RawQuery + "&" + query
	}
	u.ForceQuery = false
	return &u
}

// rooted is a path with one slash at its beginning, which is the path itself for nearly
// everybody.
func rooted(path string) string {
	if len(path) > 0 && path[0] == '/' && (len(path) == 1 || path[1] != '/') {
		return path
	}
	return "/" + strings.TrimLeft(path, "/")
}

// setPath gives u exactly this escaped path. net/url would escape some bytes anew
// that clients may send as they are; Opaque carries those through.
func setPath(u *url.URL, escaped string) {
	if escaped == "" {
		escaped = "/"
	}
	u.Opaque = ""
	if plainPath(escaped) {
		u.Path, u.RawPath = escaped, ""
		return
	}
	if path, err := url.PathUnescape(escaped); err == nil {
		u.Path, u.RawPath = path, escaped
		if u.EscapedPath() == escaped {
			return
		}
	}
	u.Opaque = escaped
}

// isVersion says whether a path segment is an API version: v1, v4, v1beta, v1alpha2.
func isVersion(s string) bool {
	const digits = "0123456789"
	number, ok := strings.CutPrefix(s, "v")
	stage := strings.TrimLeft(number, digits)
	if !ok || stage == number {
		return false
	}
	rest, ok := strings.CutPrefix(stage, "alpha")
	if !ok {
		rest = strings.TrimPrefix(stage, "beta")
	}
	return strings.Trim(rest, digits) == ""
}

// climbs says whether a path has a ".." segment in any encoding: however often it
// was escaped, whichever slash stands around it, behind a ";" or in UTF-8 that is
// longer than it may be.
func climbs(path string) bool {
	if plainPath(path) {
		return strings.Contains(path, "/..") && dotted(path)
	}
	for range 8 {
		for segment := range strings.FieldsFuncSeq(overlong.Replace(path), func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment, _, _ = strings.Cut(segment, ";"); segment == ".." {
				return true
			}
		}
		next := unescaped(path)
		if next == path {
			return false
		}
		path = next
	}
	// What is still escaped after eight rounds was made to hide something.
	return true
}

// dotted says whether a path has a ".." segment as it stands.
func dotted(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

// plainPath says whether a path holds nothing but characters that stand for
// themselves in every URL (RFC 3986, 2.3), and slashes: most do.
func plainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}

// overlong undoes encodings of "." and slashes that no decoder should take, and
// some do.
var overlong = strings.NewReplacer("\xc0\xae", ".", "\xe0\x80\xae", ".", "\xc0\xaf", "/", "\xe0\x80\xaf", "/", "\xc1\x9c", "/")

// unescaped decodes what is rightly escaped and leaves the rest as it is.
func unescaped(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// withoutKey drops the parameters of a raw query that are credentials (Gemini's `key`
// and what others call theirs) and keeps everything else as it stands.
func withoutKey(query string) string {
	var b strings.Builder
	dropped, kept := false, false
	for part := range queryParts(query) {
		if _, ok := secretValue(part); ok {
			dropped = true
			continue
		}
		if dropped && !kept {
			part = part[1:] // nothing stands before it any more
		}
		kept = true
		b.WriteString(part)
	}
	return b.String()
}

// queryParts cuts a query at "&", and at ";", which some servers take for the same.
// A part begins with what it was cut at.
func queryParts(query string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for query != "" {
			end := len(query)
			if i := strings.IndexAny(query[1:], "&;"); i >= 0 {
				end = i + 1
			}
			if !yield(query[:end]) {
				return
			}
			query = query[end:]
		}
	}
}

// keyValue is the value of a query's part, as it stands, if the part is a `key`
// parameter.
func keyValue(part string) (value string, ok bool) { return parameter(part, "key") }

// secretParameters are what vendors and gateways call a credential in a query: Gemini's
// key, Google's access_token and oauth_token, Azure's subscription-key, and what relays
// take beside them.
var secretParameters = []string{"key", "api_key", "api-key", "apikey", "x-api-key", "x-goog-api-key", "access_token", "oauth_token", "token", "auth_token", "subscription-key", "authorization"}

// secretValue is the value of a query's part, as it stands, if the part is a credential.
func secretValue(part string) (value string, ok bool) {
	found, value, ok := strings.Cut(strings.TrimLeft(part, "&;"), "=")
	if !ok {
		return "", false
	}
	name := strings.ToLower(unescaped(found))
	return value, slices.Contains(secretParameters, name)
}

// anyParameter is the value of a query's part as a server reads it, if the part is one of
// that name in any case.
func anyParameter(part, name string) (value string, ok bool) {
	found, value, _ := strings.Cut(strings.TrimLeft(part, "&;"), "=")
	if !strings.EqualFold(unescaped(found), name) {
		return "", false
	}
	return unescaped(strings.ReplaceAll(value, "+", " ")), true
}

// parameter is the value of a query's part, as it stands, if the part is one of that
// name.
func parameter(part, name string) (value string, ok bool) {
	found, value, ok := strings.Cut(strings.TrimLeft(part, "&;"), "=")
	if !ok || unescaped(found) != name {
		return "", false
	}
	return value, true
}
