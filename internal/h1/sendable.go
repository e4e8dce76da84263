package h1

import (
	"errors"
	"net/http"
)

// ErrUnsendable is a request that nobody is asked, since an upstream would read another
// one in what would be written, or several.
var ErrUnsendable = errors.New("the request is not sent: its method, its target, its host or a header is none that HTTP has")

// IsToken says whether a text is a token, as methods and the names of fields are (RFC
// 9110, 5.6.2).
func IsToken(text string) bool { return isToken(text) }

// IsTarget says whether a text may stand as the target on a request line: no space, no
// control character, and no fragment, at which many servers cut it. Bytes beyond ASCII,
// which should be escaped, are sent as they are by some clients, and pass.
func IsTarget(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return text != ""
}

// Check is ErrUnsendable for a request that must not be written, nil for any other.
// net/http refuses most such requests too, but not all, and by errors that are like those
// of an upstream.
func Check(req *http.Request) error {
	if !sendable(req, req.URL.RequestURI()) {
		return ErrUnsendable
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return ErrUnsendable
		}
		for _, value := range values {
			if !isValue(value) {
				return ErrUnsendable
			}
		}
	}
	return nil
}

// sendable says whether what a request's line and its Host are made of is what it seems.
func sendable(req *http.Request, target string) bool {
	return isToken(req.Method) && IsTarget(target) && IsTarget(req.Host)
}

// isValue says whether a text may be a field's value (RFC 9110, 5.5): it holds no control
// character but tabs.
func isValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
