package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard says why a request is refused before anything else is looked at, "" if it
// is not: a name that is not this listener's may be somebody's domain that points
// here (DNS rebinding), and no other page may use a person's browser to get in.
func (h *Handler) guard(r *http.Request) string {
	if !h.knownHost(r.Host) {
		name := printable(hostName(r.Host))
		return fmt.Sprintf("Host '%s' is not one of this listener's; if it is, add allowed_hosts: [%s] to the server section", name, name)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return "requests from pages of other origins are refused"
	}
	for _, origin := range r.Header.Values("Origin") {
		if !ownOrigin(origin, r.Host) {
			return "requests from pages of other origins are refused"
		}
	}
	return ""
}

func (h *Handler) knownHost(host string) bool {
	name := hostName(host)
	if name == "" {
		return true // HTTP/1.0: no name, no rebinding
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || h.control.Access().Host(name)
}

// hostName is the name in a Host header: lower case, no port, no brackets, no dot
// at its end.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// ownOrigin says whether an Origin is this listener as the browser knows it. The
// scheme may differ: somebody else may have ended TLS in front.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// printable is a text of a caller's as an answer may repeat it.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '\'' && r != '"' && r != '<' && r != '>' {
			return r
		}
		return '?'
	}, text)
	return clean[:min(len(clean), 100)]
}

// authorised lets a request through that has the admin token or a session, where a
// token is configured at all.
func (h *Handler) authorised(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h.admits(r) {
			next(w, r)
			return
		}
		if r.URL.Path == "/" || r.URL.Path == "/plain" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="understudy"`)
		sendError(w, http.StatusUnauthorized, "the admin token is missing or wrong: send it as Authorization: Bearer, or log in at /login")
	}
}

// admits says whether a request has, as things are now, the admin token or a session, or
// needs none.
func (h *Handler) admits(r *http.Request) bool {
	access := h.control.Access()
	return !access.NeedsToken() || access.Token(bearer(r)) || h.session.valid(r, access.Digest())
}

// bearer is the token that a request carries, "" if it has none.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
