package proxy

import (
	"net/http"
	"strings"
)

// hopByHop are the headers that belong to one connection (RFC 9110 7.6.1), with
// Expect, which is answered here, and the forms of Connection that old proxies send.
var hopByHop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"}

// origins are what a browser or an earlier proxy says of where a request came from:
// it ends here.
var origins = []string{"Origin", "Referer", "Forwarded", "X-Real-Ip"}

// originPrefixes are the families of such headers; ours are one.
var originPrefixes = []string{"Sec-Fetch-", "X-Forwarded-", "X-Understudy-"}

// credentials are the headers in which a client's secrets come.
var credentials = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Proxy-Authorization", "Cookie"}

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

// removeHopByHop drops what belongs to one connection: first the names that
// Connection lists, then the fixed ones.
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// forwardable is what of a client's headers may go on to an upstream, credentials
// not yet decided on.
func forwardable(client http.Header) http.Header {
	h := make(http.Header, len(client)+4)
	for name, values := range client {
		if !hasPrefix(name, originPrefixes) {
			h[name] = values
		}
	}
	for _, name := range origins {
		delete(h, name)
	}
	removeHopByHop(h)
	delete(h, "Host")
	delete(h, "Content-Length")
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

// returnable is what of an upstream's headers goes to the client.
func returnable(dst, upstream http.Header) {
	for name, values := range upstream {
		dst[name] = values
	}
	removeHopByHop(dst)
	for _, name := range []string{"Set-Cookie", "Alt-Svc"} {
		delete(dst, name)
	}
	for name := range dst {
		if hasPrefix(name, []string{"Access-Control-", "X-Understudy-"}) {
			delete(dst, name)
		}
	}
	if dates := dst["Date"]; len(dates) > 1 {
		dst["Date"] = dates[:1]
	}
	if _, ok := dst["Content-Type"]; !ok {
		// Without this net/http would guess one.
		dst["Content-Type"] = nil
	}
}

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
