package rule

import "understudy/internal/config"

// Scope is how far a freeze reaches.
type Scope uint8

const (
	// Identity is the candidate that failed: its host, key and model.
	Identity Scope = iota
	// Key is its credential at its host, with whatever model.
	Key
	// Host is its host, with whatever credential.
	Host
)

// String is the word for it in configuration files.
func (s Scope) String() string { return [...]string{"identity", "key", "host"}[s] }

// scope is how far r's freeze reaches for c.
func scope(r *config.Rule, c Case) Scope {
	switch r.Scope {
	case "key":
		return Key
	case "host":
		return Host
	case "auto":
		return Evidence(c)
	}
	return Identity
}

// Evidence is how far a failure speaks for itself. Without a connection it would
// have been the same for every key and model; 401, 402, an unknown key and a quota
// are the key's, whatever the model. All else says something of the candidate only:
// 404 for a model, and 403, which may be a key without that one model.
func Evidence(c Case) Scope {
	status, fault := c.status(), c.fault()
	switch {
	case c.Unreached:
		return Host
	case status == 401, status == 402, fault == "quota", fault == "credential" && status != 403:
		return Key
	}
	return Identity
}
