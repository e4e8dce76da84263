package control

import (
	"cmp"
	"crypto/subtle"
	"net"
	"slices"
	"strings"

	"understudy/internal/config"
)

// Access is who may use the admin listener, by the configuration in force.
type Access struct {
	bound string
	hosts []string
	token config.Secret
}

// Access gives the rules of the configuration in force now.
func (c *Control) Access() Access {
	server := &c.deps.Handler.Snapshot().Config.Server
	bound, _, err := net.SplitHostPort(cmp.Or(c.deps.Admin, server.Admin))
	if err != nil {
		bound = ""
	}
	return Access{bound: bound, hosts: server.AllowedHosts, token: server.AdminToken}
}

// Host says whether a host name, in lower case and without its port, is the bound
// one or one of allowed_hosts. Addresses and loopback names are not its business.
func (a Access) Host(name string) bool {
	return a.bound != "" && name == strings.ToLower(a.bound) ||
		slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// NeedsToken says whether an admin token is configured: without it only callers
// of this machine get as far as here.
func (a Access) NeedsToken() bool { return !a.token.IsZero() }

// Token compares a token with the configured one in constant time. Without a
// configured one none is right.
func (a Access) Token(text string) bool {
	// Digests are of one length, so that not even the length shows.
	want, given := a.token.Digest(), config.NewSecret(text).Digest()
	return a.NeedsToken() && subtle.ConstantTimeCompare(want[:], given[:]) == 1
}

// Digest stands for the configured token where something is to end with it, such
// as a session.
func (a Access) Digest() [32]byte { return a.token.Digest() }
