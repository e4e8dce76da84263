package route

import (
	"strings"

	"github.com/tidwall/gjson"

	"understudy/internal/config"
)

// MaxSessionKey is the length of the longest session key, in bytes. A longer
// value is no key: whatever it is, it is no id.
const MaxSessionKey = 4 << 10

// maxUserID bounds the metadata.user_id that is looked into.
const maxUserID = 64 << 10

// SessionKey returns the key of the session a request belongs to, "" where it
// has none: the first usable value in the order of keys. Names of headers compare
// without case, and underscore and hyphen alike. body finds strings in the
// request's JSON body; nil where there is none.
//
// Two places hold more than the key. x-codex-window-id ends in ":generation",
// which changes within a session (github.com/openai/codex). Claude Code's
// metadata.user_id is a JSON text with a session_id, or in older versions
// "user_…_account_…_session_<id>"; any other value of it names a person, not a
// session. And conversation may be an id or an object with one.
func SessionKey(headers map[string][]string, body func(path ...string) (string, bool), keys []config.StickyKey) string {
	inHeader, place := headerKey(headers, keys)
	for _, k := range keys[:place] {
		if len(k.Body) == 0 || body == nil {
			continue
		}
		if v := bodyKey(body, k.Body); v != "" {
			return v
		}
	}
	return inHeader
}

// headerKey returns the value of the first of keys that a header holds, and its
// place in keys; len(keys) where none does. It goes over the headers once: there
// are more ways to write a name than one can look up.
func headerKey(headers map[string][]string, keys []config.StickyKey) (value string, place int) {
	place = len(keys)
	var from string
	for name, values := range headers {
		for i := range keys {
			if i > place {
				break
			}
			k := keys[i].Header
			if len(k) != len(name) || !sameHeader(k, name) {
				continue
			}
			// Two spellings of one name: the map's order must not decide.
			if i == place && from < name {
				continue
			}
			if v := firstUsable(values, k); v != "" {
				value, place, from = v, i, name
			}
		}
	}
	return value, place
}

func firstUsable(values []string, header string) string {
	for _, v := range values {
		if sameHeader(header, "x-codex-window-id") {
			v = withoutGeneration(v)
		}
		if v = usable(v); v != "" {
			return v
		}
	}
	return ""
}

// usable is v without spaces around it, "" if it can be no key.
func usable(v string) string {
	v = strings.TrimSpace(v)
	if len(v) > MaxSessionKey {
		return ""
	}
	return v
}

func withoutGeneration(window string) string {
	if i := strings.LastIndexByte(window, ':'); i > 0 {
		return window[:i]
	}
	return window
}

// sameHeader compares names of headers: no case, "_" is "-".
func sameHeader(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if fold(a[i]) != fold(b[i]) {
			return false
		}
	}
	return true
}

func fold(c byte) byte {
	switch {
	case c == '_':
		return '-'
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// conversationID is made once: a path given in place would be allocated for
// every request.
var conversationID = []string{"conversation", "id"}

func bodyKey(body func(path ...string) (string, bool), path []string) string {
	v, ok := body(path...)
	switch {
	case len(path) == 2 && path[0] == "metadata" && path[1] == "user_id":
		v = sessionOf(v)
	case len(path) == 1 && path[0] == "conversation" && !ok:
		v, ok = body(conversationID...)
	}
	if !ok {
		return ""
	}
	return usable(v)
}

// sessionOf is the session inside Claude Code's metadata.user_id, "" if there is
// none.
func sessionOf(userID string) string {
	if len(userID) > maxUserID {
		return ""
	}
	if strings.HasPrefix(strings.TrimSpace(userID), "{") {
		if id := gjson.Get(userID, "session_id"); id.Type == gjson.String && gjson.Valid(userID) {
			return id.Str
		}
		return ""
	}
	const mark = "_session_"
	if i := strings.LastIndex(userID, mark); i >= 0 {
		return userID[i+len(mark):]
	}
	return ""
}
