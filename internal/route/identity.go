package route

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"understudy/internal/config"
)

// ID is the identity of a candidate, 16 hex digits: base URL, credential (as a
// digest) and model. Name, position, weight and limits are no part of it, so
// that renaming, reordering and reweighting keep the health of an upstream, and
// a new key starts clean.
type ID string

// credentialHeaders are the headers that say who is calling. Two upstreams at
// one URL that differ only in these are different accounts.
var credentialHeaders = []string{
	"authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization", "cookie",
}

// Identity computes c's identity. It reads c's secrets from where they are; one
// that is missing is represented by the name of its source.
func Identity(c config.Candidate) ID {
	h := sha256.New()
	h.Write([]byte(normalURL(c.BaseURL)))
	h.Write([]byte{0})
	h.Write([]byte(keyDigest(c)))
	h.Write([]byte{0})
	h.Write([]byte(c.Model))
	return ID(hex.EncodeToString(h.Sum(nil)[:8]))
}

// keyDigest is the hex digest of everything in c that says who is calling, and
// "" where nothing does.
func keyDigest(c config.Candidate) string {
	var parts []string
	if !c.Credential.IsNone() {
		parts = append(parts, secretDigest(c.Credential.Source(), c.Credential.Resolve))
	}
	var headers []string
	for _, h := range c.Headers {
		name := strings.ToLower(h.Name)
		if slices.Contains(credentialHeaders, name) {
			headers = append(headers, name+"\x00"+secretDigest("env "+h.Env, h.Resolve))
		}
	}
	slices.Sort(headers)
	parts = append(parts, headers...)
	if len(parts) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// hostID names where c is: the scheme, name and port of its base URL, spelled so
// that the same host comes out equal.
func hostID(c config.Candidate) string {
	if c.BaseURL == nil {
		return ""
	}
	return normalURL(&url.URL{Scheme: c.BaseURL.Scheme, Host: c.BaseURL.Host})
}

// keyID names the account of c, with whatever model: its host and what c says of
// who is calling, as 16 hex digits of a digest. It is "" where c says nothing: then
// the client's own credential is sent on, and there is no account to tell.
func keyID(c config.Candidate) string {
	digest := keyDigest(c)
	var inURL []string
	if c.BaseURL != nil {
		for _, secret := range config.Secrets(c.BaseURL) {
			d := secret.Digest()
			inURL = append(inURL, hex.EncodeToString(d[:]))
		}
	}
	if digest == "" && inURL == nil {
		return ""
	}
	slices.Sort(inURL)
	sum := sha256.Sum256([]byte(hostID(c) + "\x00" + digest + "\x00" + strings.Join(inURL, "\x00")))
	return hex.EncodeToString(sum[:8])
}

func secretDigest(source string, resolve func() (config.Secret, error)) string {
	s, err := resolve()
	if err != nil {
		return "missing " + source
	}
	d := s.Digest()
	return hex.EncodeToString(d[:])
}

// normalURL writes u so that spellings of one base URL come out equal: scheme
// and host in lower case, no default port, no slash at the end of the path, no
// fragment. What is left may matter to the upstream and stays.
func normalURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	n := *u
	n.Scheme = strings.ToLower(n.Scheme)
	n.Host = strings.ToLower(n.Host)
	switch {
	case n.Scheme == "http":
		n.Host = strings.TrimSuffix(n.Host, ":80")
	case n.Scheme == "https":
		n.Host = strings.TrimSuffix(n.Host, ":443")
	}
	n.Host = strings.TrimSuffix(n.Host, ":")
	path := strings.TrimRight(n.EscapedPath(), "/")
	n.Path, n.RawPath, n.Fragment, n.RawFragment, n.ForceQuery = "", "", "", "", false
	query := n.RawQuery
	n.RawQuery = ""
	s := n.String() + path
	if query != "" {
		s += "?" + query
	}
	return s
}
