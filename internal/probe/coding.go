package probe

import (
	"slices"
	"strconv"
	"strings"
)

// codingsOf reads Content-Encoding: the codings in the order in which they were put
// on, in lower case, without those that change nothing.
func codingsOf(header []string) (names []string) {
	for _, line := range header {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				names = append(names, name)
			}
		}
	}
	return names
}

// decodable says whether wire.NewDecoder can undo these codings. More than four have
// nothing honest to say.
func decodable(codings []string) bool {
	return len(codings) <= 4 && !slices.ContainsFunc(codings, func(name string) bool {
		switch name {
		case "gzip", "x-gzip", "zstd", "br", "deflate":
			return false
		}
		return true
	})
}

// allows says whether an Accept-Encoding lets all of these codings through (RFC 9110
// 12.5.3). No header at all allows none here: such a client may not know codings.
func allows(accept, codings []string) bool {
	return !slices.ContainsFunc(codings, func(name string) bool { return !allowsOne(accept, name) })
}

func allowsOne(accept []string, coding string) bool {
	rest := false // what the asterisk says, for codings that are not named
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case strings.TrimPrefix(name, "x-") == strings.TrimPrefix(coding, "x-"): // x-gzip is gzip
				return weighs(params)
			case name == "*":
				rest = weighs(params)
			}
		}
	}
	return rest
}

// weighs says whether an item's parameters leave it allowed: everything but q=0 does.
func weighs(params string) bool {
	_, q, found := strings.Cut(strings.ToLower(strings.ReplaceAll(params, " ", "")), "q=")
	weight, err := strconv.ParseFloat(q, 64)
	return !found || err == nil && weight > 0
}
