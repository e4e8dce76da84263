package config

import (
	"net/url"
	"strconv"
	"strings"
)

// SafeURL is a URL as people may see it: the password and every query value
// whose key speaks of a key are replaced by "***". A nil URL is "".
func SafeURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	c := *u
	var auth string
	if c.User != nil {
		auth, c.User = "***@", nil
	}
	if c.RawQuery != "" {
		parts := strings.Split(c.RawQuery, "&")
		for i, p := range parts {
			if name, _, ok := strings.Cut(p, "="); ok && SecretQuery(name) {
				parts[i] = name + "=***"
			} else if !ok && looksSecret(p) {
				parts[i] = "***"
			}
		}
		c.RawQuery = strings.Join(parts, "&")
	}
	s := c.String()
	if auth != "" {
		s = strings.Replace(s, "://", "://"+auth, 1)
	}
	return s
}

var secretQuery = lazily(`(?i)key|token|secret|passw|auth|sig|credential|^code$`)

// SecretQuery reports whether a query key's value is to be treated as a secret.
func SecretQuery(name string) bool {
	if n, err := url.QueryUnescape(name); err == nil {
		name = n
	}
	return secretQuery().MatchString(name)
}

// Secrets lists the secrets that stand in a URL itself: its user, its password
// and the values of key-like query keys.
func Secrets(u *url.URL) []Secret {
	if u == nil {
		return nil
	}
	var list []Secret
	if u.User != nil {
		if p, ok := u.User.Password(); ok && p != "" {
			list = append(list, NewSecret(p))
		}
		if u.User.Username() != "" {
			list = append(list, NewSecret(u.User.Username()))
		}
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if SecretQuery(name) && v != "" {
				list = append(list, NewSecret(v))
			}
		}
	}
	return list
}

// CredentialHeader reports whether a header carries who is calling.
func CredentialHeader(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization":
		return true
	}
	return false
}

// forbiddenHeaders are those that a configuration cannot set, with the reason.
var forbiddenHeaders = map[string]string{
	"host":                "it is the upstream's",
	"content-length":      "it frames the body",
	"transfer-encoding":   "it frames the body",
	"content-encoding":    "it describes the client's body",
	"trailer":             "it frames the body",
	"expect":              "it belongs to one connection",
	"connection":          "it belongs to one connection",
	"keep-alive":          "it belongs to one connection",
	"proxy-connection":    "it belongs to one connection",
	"proxy-authenticate":  "it belongs to one connection",
	"proxy-authorization": "it belongs to one connection",
	"te":                  "it belongs to one connection",
	"upgrade":             "it belongs to one connection",
	"http2-settings":      "it belongs to one connection",
}

// headerName reports a name HTTP can carry (RFC 9110, token).
func headerName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// baseURL reads an http or https URL. Nothing of it is repeated in a problem
// but its scheme: a password may stand anywhere in it.
func (d *decoder) baseURL(n *node) *url.URL {
	u := d.absoluteURL(n, "http://host or https://host", "http", "https")
	if u == nil {
		return nil
	}
	switch {
	case u.Fragment != "" || strings.Contains(n.text, "#"):
		d.errorOn(n, "a fragment (#) in the URL", "remove it")
		return nil
	case len(Secrets(u)) > 0:
		d.literal = true
	}
	return u
}

func (d *decoder) proxyURL(n *node) string {
	if n.kind == kindText && n.text == "none" {
		return "none"
	}
	u := d.absoluteURL(n, "http://host:port, https://host:port, socks5://host:port or none", "http", "https", "socks5", "socks5h")
	if u == nil {
		return ""
	}
	if len(Secrets(u)) > 0 {
		d.literal = true
	}
	return n.text
}

// storeURL reads a URL of a Redis server, which may hold a password.
func (d *decoder) storeURL(n *node) (Credential, bool) {
	u := d.absoluteURL(n, "redis://host:port or rediss://host:port", "redis", "rediss")
	if u == nil {
		return Credential{}, false
	}
	if !storeText().MatchString(n.text) {
		d.errorOn(n, "more behind the host than the number of a database", "write redis://host:port/0; password_env and ca_file have keys of their own")
		return Credential{}, false
	}
	if u.User != nil {
		d.literal = true
	}
	return LiteralCredential(n.text), true
}

var schemeWord = lazily(`^[a-z][a-z0-9+.-]{0,9}$`)

func (d *decoder) absoluteURL(n *node, want string, schemes ...string) *url.URL {
	s, ok := d.line(n)
	if !ok {
		return nil
	}
	if strings.ContainsAny(s, " \"<>\\^`{|}") {
		d.errorOn(n, "a character in the URL that must be escaped", "write "+want)
		return nil
	}
	scheme, _, found := strings.Cut(s, "://")
	known := false
	for _, k := range schemes {
		known = known || strings.EqualFold(scheme, k)
	}
	switch {
	case !found:
		d.errorOn(n, "no URL", "write "+want)
		return nil
	case !known:
		what := "another scheme"
		if schemeWord().MatchString(strings.ToLower(scheme)) {
			what = "the scheme " + strconv.Quote(strings.ToLower(scheme))
		}
		d.errorOn(n, what+" in the URL", "write "+want)
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		d.errorOn(n, "a URL without a host, or with a part that is wrong", "write "+want)
		return nil
	}
	if p := u.Port(); p != "" {
		if i, err := strconv.Atoi(p); err != nil || i < 1 || i > 65535 {
			d.errorOn(n, "a port that is none", "write 1 to 65535")
			return nil
		}
	}
	return u
}
