package movein

import (
	"net/url"
	"strconv"
	"strings"

	"understudy/internal/config"
)

// Keys says where the keys go that stand in a source.
type Keys uint8

const (
	// KeysEnv leaves every key out: the configuration names a variable instead,
	// which the user has to export.
	KeysEnv Keys = iota
	// KeysInline writes keys into the configuration.
	KeysInline
)

// Export is a variable that has to be set, because the source holds the key
// itself.
type Export struct {
	Name string
	// Masked is the key as people may see it: enough to tell it from others.
	Masked       string
	File         string
	Line, Column int
	Path         string // of the key in the source
}

// keyring hands out names of variables for keys. The same key gets the same name
// wherever it stands.
type keyring struct {
	keys    Keys
	taken   map[string]bool
	names   map[[32]byte]string
	exports []Export
	// read are the variables that the source names itself, in its order.
	read []string
}

func newKeyring(keys Keys) *keyring {
	return &keyring{keys: keys, taken: map[string]bool{}, names: map[[32]byte]string{}}
}

// refer notes a variable that the source names itself.
func (k *keyring) refer(name string) {
	if !k.taken[name] {
		k.taken[name] = true
		k.read = append(k.read, name)
	}
}

// found is a key in a source and its place.
type found struct {
	secret config.Secret
	want   string // the name its variable should have
	file   *file
	tree   *config.Tree
	path   string
}

// variable is the name for a key that stands in the source. A name that is taken
// by another key gets a number.
func (k *keyring) variable(f found) string {
	digest := f.secret.Digest()
	if name := k.names[digest]; name != "" {
		return name
	}
	want := variableOf(f.want)
	name := want
	for n := 2; k.taken[name]; n++ {
		name = want + "_" + strconv.Itoa(n)
	}
	k.taken[name] = true
	k.names[digest] = name
	k.exports = append(k.exports, Export{Name: name, Masked: f.secret.Mask(), File: f.file.path, Line: f.tree.Line, Column: f.tree.Column, Path: f.path})
	return name
}

// put writes a key into a block, under name or, as a variable, under nameEnv.
func (k *keyring) put(b *block, name, nameEnv string, f found) {
	if k.keys == KeysInline {
		b.set(name, f.secret.Reveal())
		return
	}
	b.set(nameEnv, k.variable(f))
}

// keyOf is the name of the variable for somebody's key: "Direct API" →
// "DIRECT_API_KEY".
func keyOf(owner string) string {
	name := variableOf(owner)
	for _, end := range []string{"_KEY", "_TOKEN"} {
		if strings.HasSuffix(name, end) {
			return name
		}
	}
	return strings.TrimSuffix(name, "_API") + "_API_KEY"
}

// variableOf makes the name of a variable of any name: "my relay" → "MY_RELAY".
func variableOf(name string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(name) {
		switch {
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		if b.Len() >= 60 {
			break
		}
	}
	v := strings.Trim(b.String(), "_")
	if v == "" || v[0] >= '0' && v[0] <= '9' {
		v = "UPSTREAM_" + v
	}
	if v = strings.TrimRight(v, "_"); !config.VariableName(v) {
		v = "UPSTREAM_KEY"
	}
	return v
}

// secretHeader reports a header whose value must not be shown: by its name, or
// because of what the value looks like.
func secretHeader(name, value string) bool {
	return config.CredentialHeader(name) || config.SecretQuery(name) || config.LooksSecret(value) || len(value) > 60
}

// forbidden are headers that a configuration of ours cannot set.
var forbidden = map[string]bool{
	"host": true, "content-length": true, "transfer-encoding": true, "content-encoding": true, "trailer": true, "expect": true,
	"connection": true, "keep-alive": true, "proxy-connection": true, "proxy-authenticate": true, "proxy-authorization": true,
	"te": true, "upgrade": true, "http2-settings": true,
}

func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r < 128 && strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// headers writes the headers of a source into a block: secret ones as variables,
// the others as they are. owner names whose they are, for the variables.
func (k *keyring) headers(b *block, s *section, key, owner string) {
	t := s.value(key)
	if t == nil {
		return
	}
	if t.Kind != config.TreeMapping {
		s.wrong(t, s.at(key), "a mapping of headers")
		return
	}
	static, env := &block{}, &block{}
	seen := map[string]bool{}
	sub := s.file.section(t, s.at(key))
	for _, p := range t.Pairs {
		lower := strings.ToLower(p.Key)
		switch {
		case !headerName(p.Key):
			s.problem(p.Line, p.Column, s.at(key), s.at(key)+": no name of a header", "write letters, digits and hyphens")
			continue
		case forbidden[lower]:
			b.notes = append(b.notes, sub.missing(p.Key, "this header belongs to one connection or names the host, and cannot be set"))
			continue
		case seen[lower] || len(seen) >= 100:
			continue
		}
		seen[lower] = true
		value := s.file.line(p.Value, sub.at(p.Key))
		if value == "" {
			continue
		}
		if name, ok := reference(value); ok && config.VariableName(name) {
			k.refer(name)
			env.set(p.Key, name)
			continue
		}
		if strings.HasPrefix(value, "$") {
			b.notes = append(b.notes, sub.missing(p.Key, "a header copied from the client's; clients' headers pass as they are, under their own names"))
			continue
		}
		if k.keys == KeysEnv && secretHeader(p.Key, value) {
			env.set(p.Key, k.variable(found{config.NewSecret(value), owner + "_" + p.Key, s.file, p.Value, sub.at(p.Key)}))
			continue
		}
		static.set(p.Key, value)
	}
	if len(static.pairs) > 0 {
		b.set("headers", static)
	}
	if len(env.pairs) > 0 {
		b.set("header_env", env)
	}
}

// reference is the variable that a value of LiteLLM names.
func reference(value string) (name string, ok bool) {
	return strings.CutPrefix(value, "os.environ/")
}

// bare is a URL without what may be secret in it, and whether there was any.
func bare(u *url.URL) (*url.URL, bool) {
	if len(config.Secrets(u)) == 0 {
		return u, false
	}
	c := *u
	c.User = nil
	var kept []string
	for part := range strings.SplitSeq(c.RawQuery, "&") {
		if name, _, _ := strings.Cut(part, "="); part != "" && !config.SecretQuery(name) {
			kept = append(kept, part)
		}
	}
	c.RawQuery = strings.Join(kept, "&")
	return &c, true
}

// proxy writes a proxy URL into a block.
func (k *keyring) proxy(b *block, s *section, key string) {
	text := s.text(key)
	if text == "" {
		return
	}
	if text == "none" || text == "direct" {
		b.set("proxy", "none")
		return
	}
	t := s.tree.Find(key)
	u := s.url(t, s.at(key), text, "http", "https", "socks5", "socks5h")
	if u == nil {
		return
	}
	if safe, had := bare(u); had && k.keys == KeysEnv {
		u = safe
		n := s.missing(key, "its user and password are left out here, since a URL cannot take them from a variable: put them into proxy by hand, or set HTTPS_PROXY and leave proxy out")
		b.notes = append(b.notes, n)
	}
	b.set("proxy", u.String())
}

// url reads a URL of a source. Nothing of it is repeated in a problem.
func (f *file) url(t *config.Tree, path, text string, schemes ...string) *url.URL {
	want := schemes[0] + "://host"
	u, err := url.Parse(text)
	scheme, _, ok := strings.Cut(text, "://")
	known := false
	for _, s := range schemes {
		known = known || strings.EqualFold(s, scheme)
	}
	if err != nil || !ok || !known || u.Hostname() == "" || u.Opaque != "" || strings.ContainsAny(text, " \"<>\\^`{|}#") || !portOK(u.Port()) {
		f.problem(t.Line, t.Column, path, path+": no URL that can be used", "write "+want)
		return nil
	}
	return u
}

func portOK(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n < 65536
}
