package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// hopByHop says whether a header belongs to one connection (RFC 9110 7.6.1), with
// Expect, which is answered here, and the forms of Connection that old proxies send.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect":
		return true
	}
	return false
}

// tellsOrigin says whether a header is what a browser or an earlier proxy says of where a
// request came from, or one of ours: it ends here.
func tellsOrigin(name string) bool {
	switch name {
	case "Origin", "Referer", "Forwarded", "X-Real-Ip":
		return true
	}
	return hasPrefix(name, originPrefixes)
}

// originPrefixes are the families of such headers.
var originPrefixes = []string{"Sec-Fetch-", "X-Forwarded-", "X-Understudy-"}

// credentials are the headers in which a client's secrets come.
var credentials = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Proxy-Authorization", "Cookie"}

// secretive says whether a header, spelt as the keys of one, is by its name somebody's
// secret: a credential as vendors, their gateways and clouds call it, known or not.
func secretive(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Connection", "Content-Length", "Content-Type", "User-Agent":
		return false // which most are
	case "Token", "Auth":
		return true
	}
	if isCredential(name) {
		return true
	}
	if strings.HasPrefix(name, "X-Stainless-") { // what the vendors' SDKs tell of themselves
		return false
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	// Not "-tokens": those are counted.
	return strings.HasSuffix(name, "-token") || strings.HasSuffix(name, "-auth") || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// secretWords stand in the names of headers and parameters that are secrets.
var secretWords = []string{"authorization", "api-key", "apikey", "subscription-key", "access-key", "secret", "password", "credential", "auth-token", "access-token", "security-token", "session-token"}

// protocolKey begins a WebSocket subprotocol that is no protocol but a browser's way
// to send a key (platform.openai.com, Realtime API).
const protocolKey = "openai-insecure-api-key."

// protocolKeys are the keys that a client sends among its subprotocols.
func protocolKeys(h http.Header) (keys []string) {
	for _, line := range h["Sec-Websocket-Protocol"] {
		for protocol := range strings.SplitSeq(line, ",") {
			if key, ok := strings.CutPrefix(strings.TrimSpace(protocol), protocolKey); ok {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// withoutProtocolKeys drops such keys and leaves the other subprotocols.
func withoutProtocolKeys(h http.Header) {
	const name = "Sec-Websocket-Protocol"
	if len(protocolKeys(h)) == 0 {
		return
	}
	var kept []string
	for _, line := range h[name] {
		for protocol := range strings.SplitSeq(line, ",") {
			if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.HasPrefix(protocol, protocolKey) {
				kept = append(kept, protocol)
			}
		}
	}
	if delete(h, name); len(kept) > 0 {
		h.Set(name, strings.Join(kept, ", "))
	}
}

// field is Get for a name that is spelt as the header's keys are: nothing is spent on
// making sure of that.
func field(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// connected are the names that Connection lists: those headers end with it.
func connected(h http.Header) (names map[string]bool) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				if names == nil {
					names = map[string]bool{}
				}
				names[http.CanonicalHeaderKey(name)] = true
			}
		}
	}
	return names
}

// forwardable is what of a client's headers may go on to an upstream; its
// credentials only where secrets says so.
func forwardable(client http.Header, secrets bool) http.Header {
	h := make(http.Header, len(client)+4)
	listed := connected(client)
	for name, values := range client {
		if hopByHop(name) || tellsOrigin(name) || listed[name] || name == "Host" || name == "Content-Length" || !secrets && secretive(name) {
			continue
		}
		h[name] = values
	}
	return h
}

func hasPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

// ofOrigin says whether a header of an answer is about the origin that a browser has it
// from, beyond the answer itself: what it keeps, wipes or reports there, and how it gets
// there. The origin is ours, and an upstream has no say about it.
func ofOrigin(name string) bool {
	switch name {
	case "Set-Cookie", "Set-Cookie2", "Alt-Svc", "Alt-Used", "Clear-Site-Data", "Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct",
		"Nel", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed", "Accept-Ch", "Critical-Ch", "Origin-Agent-Cluster",
		"Set-Login", "Sec-Session-Registration", "Secure-Session-Registration", "Use-As-Dictionary", "Speculation-Rules", "Activate-Storage-Access":
		return true
	}
	return false
}

// ofFront says whether a header of an answer tells a server in front of this one what to
// send in its place: a file of that machine, or what another address has. Buffering is no
// more than how.
func ofFront(name string) bool {
	switch name {
	case "X-Accel-Redirect", "X-Accel-Expires", "X-Accel-Limit-Rate", "X-Accel-Charset", "X-Sendfile", "X-Sendfile2", "X-Lighttpd-Send-File", "X-Lighttpd-Send-Tempfile",
		"X-Litespeed-Location", "X-Reproxy-Url", "X-Reproxy-File":
		return true
	}
	return false
}

// returnable puts what of an upstream's headers goes to the client into dst, where
// what stands there already stays: it is ours. What quotes one of the credentials that
// upstreams have been shown is dropped.
func returnable(dst, upstream http.Header, shown []string) {
	listed := connected(upstream)
	for name, values := range upstream {
		if hopByHop(name) || listed[name] || ofOrigin(name) || ofFront(name) || hasPrefix(name, ourPrefixes) || holdsAny(values, shown) {
			continue
		}
		if own, ours := dst[name]; ours {
			if name == "Vary" { // theirs holds beside ours
				dst[name] = slices.Concat(values, own)
			}
			continue
		}
		if name == "Date" && len(values) > 1 {
			values = values[:1]
		}
		dst[name] = values
	}
	if _, ok := dst["Content-Type"]; !ok {
		// Without this net/http would guess one.
		dst["Content-Type"] = nil
	}
}

// holdsAny says whether a value holds one of the secrets. Nearly every value is shorter than
// they are.
func holdsAny(values, secrets []string) bool {
	for _, value := range values {
		for _, secret := range secrets {
			if len(value) >= len(secret) && strings.Contains(value, secret) {
				return true
			}
		}
	}
	return false
}

// show notes credentials that an upstream is shown, but for words that any header may
// hold.
func (r *run) show(secrets []string) {
	if r.shown == nil {
		r.shown = r.showing[:0]
	}
	for _, secret := range secrets {
		if slices.Contains(r.shown, secret) {
			continue // tried again
		}
		if strings.IndexByte(secret, ' ') < 0 { // as nearly all are
			if len(secret) >= shortestWord {
				r.shown = append(r.shown, secret)
			}
			continue
		}
		for _, spelt := range spellings(nil, secret) {
			if len(spelt) >= shortestWord {
				r.shown = append(r.shown, spelt)
			}
		}
	}
}

// ourPrefixes are the families of headers in answers that only we set.
var ourPrefixes = []string{"Access-Control-", "X-Understudy-"}

// visible percent-encodes what is not visible ASCII, so that any name fits a header.
func visible(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '%' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
