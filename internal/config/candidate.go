package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// entry is a candidate while it is read: what the file says, before defaults
// and the upstream it may refer to are filled in.
type entry struct {
	Candidate
	upstream string
	anyOf    *node
	timeout  time.Duration // timeout_seconds, 0 = not given
	// taken are the timeouts that come from the upstream it refers to.
	taken map[string]bool
}

// The words of join and terminal, the default first.
var (
	joins     = []string{"fold", "plain"}
	terminals = []string{"required", "optional"}
)

// AuthStyles are the ways a credential is sent, the default first.
var AuthStyles = []string{"bearer", "x-api-key", "x-goog-api-key", "api-key", "none"}

// override is a timeout of one candidate, which wins over the server's.
func override(name string, low lowest, doc string, at func(*Candidate) *time.Duration) key[entry] {
	k := seconds(name, -1, low, doc, func(e *entry) *time.Duration { return at(&e.Candidate) })
	k.DefaultWords = "the server's"
	read := k.read
	k.read = func(d *decoder, n *node, e *entry) {
		before := len(d.problems)
		if read(d, n, e); len(d.problems) == before {
			e.Overrides[name] = *at(&e.Candidate)
		}
	}
	return k
}

var candidateKeys = []key[entry]{
	text("name", "", "What people call it; vm#n by default.", func(e *entry) *string { return &e.Name }),
	custom(Key{Name: "base_url", Type: "http or https URL", Doc: "Where the API is. A version at its end stands for the one in the client's path.", form: func() form { return urlForm(true, "http", "https") }}, func(d *decoder, n *node, e *entry) { e.BaseURL = d.baseURL(n) }),
	text("model", "", "The real model name to ask for.", func(e *entry) *string { return &e.Model }),
	custom(Key{Name: "api_key", Type: "secret", Doc: "The credential itself. Give this, api_key_env, api_key_file, or auth_style none.", form: lineForm, Secret: true}, func(d *decoder, n *node, e *entry) {
		d.oneCredential(n, &e.Credential, func() (Credential, bool) {
			s, ok := d.secret(n)
			return LiteralCredential(s.Reveal()), ok
		})
	}),
	custom(Key{Name: "api_key_env", Type: "name of a variable", Doc: "The environment variable that holds the credential.", form: variableForm}, func(d *decoder, n *node, e *entry) {
		d.oneCredential(n, &e.Credential, func() (Credential, bool) { return d.variable(n) })
	}),
	custom(Key{Name: "api_key_file", Type: "path", Doc: "The file that holds the credential; white space at its end is dropped.", form: lineForm}, func(d *decoder, n *node, e *entry) {
		d.oneCredential(n, &e.Credential, func() (Credential, bool) {
			s, ok := d.line(n)
			if ok && looksSecret(s) {
				d.errorOn(n, "no path of a file", "write the file's path; a key itself goes into api_key")
				ok = false
			}
			return FileCredential(s, d.dir), ok
		})
	}),
	choice("auth_style", AuthStyles, "How the credential is sent: bearer as Authorization, the others as the header of that name (x-api-key adds anthropic-version where the client sent none); none sends none.", func(e *entry) *string { return &e.AuthStyle }),
	custom(Key{Name: "headers", Type: "mapping of header to text", Doc: "Headers that replace the client's of the same name.", form: func() form { return headersForm(lineForm()) }}, func(d *decoder, n *node, e *entry) { d.headers(n, e, false) }),
	custom(Key{Name: "header_env", Type: "mapping of header to the name of a variable", Doc: "The same with values from the environment; a variable wins over headers.", form: func() form { return headersForm(variableForm()) }}, func(d *decoder, n *node, e *entry) { d.headers(n, e, true) }),
	custom(Key{Name: "weight", Type: "number", Default: "1", Range: "> 0", Doc: "Its share among equals.", form: func() form { return aboveForm(1e9) }}, func(d *decoder, n *node, e *entry) {
		if v, ok := d.ratio(n, 1e9); ok {
			e.Weight = v
		}
	}).withDefault(func(e *entry) { e.Weight = 1 }),
	custom(Key{Name: "proxy", Type: "http, https or socks5 URL, or none", DefaultWords: "the environment's proxy variables", Doc: "The proxy to reach it through; none goes straight.", form: func() form {
		return form{{"anyOf", []form{{{"const", "none"}}, urlForm(false, "http", "https", "socks5", "socks5h")}}}
	}, Secret: true}, func(d *decoder, n *node, e *entry) { e.Proxy = d.proxyURL(n) }),
	override("stall_timeout", positive, "As in server, for this candidate.", func(c *Candidate) *dur { return &c.Stall }),
	override("stream_timeout", positive, "As in server, for this candidate.", func(c *Candidate) *dur { return &c.Stream }),
	override("nonstream_timeout", positive, "As in server, for this candidate.", func(c *Candidate) *dur { return &c.Nonstream }),
	override("content_timeout", zeroUp, "As in server, for this candidate.", func(c *Candidate) *dur { return &c.Content }),
	boolean("enabled", true, "Whether it is tried at all.", func(e *entry) *bool { return &e.Enabled }),
	custom(Key{Name: "join", Type: "one of " + words(joins), Default: joins[0], Doc: "How base_url and the client's path meet: fold lets base_url's version stand for both, plain keeps both.", form: func() form { return choiceForm(joins) }}, func(d *decoder, n *node, e *entry) {
		v, _ := d.choice(n, joins)
		e.PlainJoin = v == "plain"
	}),
	custom(Key{Name: "terminal", Type: "one of " + words(terminals), Default: terminals[0], Doc: "Whether a stream must end with the dialect's terminal event; optional for upstreams that never send one.", form: func() form { return choiceForm(terminals) }}, func(d *decoder, n *node, e *entry) {
		v, _ := d.choice(n, terminals)
		e.TerminalOptional = v == "optional"
	}),
	whole("max_parallel", 0, 0, maxCount, "Requests in flight at once; 0 = no limit.", func(e *entry) *int { return &e.MaxParallel }),
	whole("rpm", 0, 0, maxCount, "Requests per minute; 0 = no limit.", func(e *entry) *int { return &e.RPM }),
	whole("tpm", 0, 0, maxCount, "Tokens per minute, as far as it reports them; 0 = no limit.", func(e *entry) *int { return &e.TPM }),
	custom(Key{Name: "websocket", Type: "on or off", DefaultWords: "the server's", Doc: "Whether WebSocket requests are proxied to it.", form: onOffForm}, func(d *decoder, n *node, e *entry) {
		if v, ok := d.onOff(n); ok {
			e.WebSocket = &v
		}
	}),
}

var candidateTable = &table[entry]{
	path:     "virtual_models.*[]",
	doc:      "A candidate. It names base_url, model and a credential; or {upstream: id, model: m}; or {any_of: [entry, ...]}, a tier of equals.",
	together: entryForm,
	keys: append(slices.Clone(candidateKeys),
		text("upstream", "", "The id of an upstream whose settings this candidate takes over.", func(e *entry) *string { return &e.upstream }),
		custom(Key{Name: "any_of", Type: "list of candidates", Doc: "Equals, chosen among by session or load; nothing else stands beside it.", form: func() form { return form{{"type", "array"}, {"minItems", 1}, {"items", refForm("equal")}} }}, func(_ *decoder, n *node, e *entry) { e.anyOf = n }),
	),
}

var upstreamTable = &table[entry]{
	path: "upstream[]",
	doc:  "A member of the pool. Its credential and model may be left out: then the client's are sent on.",
	together: func() form {
		return form{{"required", []string{"base_url"}}, {"allOf", []form{mostOneKey(), noKeyFor("none")}}}
	},
	keys: append([]key[entry]{
		text("id", "", "Its name, unique; with weight it decides which sessions it gets.", func(e *entry) *string { return &e.ID }).required(),
		seconds("timeout_seconds", -1, positive, "Longest wait for the connection, and longest silence before release, streaming or not.", func(e *entry) *dur { return &e.timeout }).shown("60"),
	}, candidateKeys...),
}

// shown sets the default the reference shows, where code elsewhere applies it.
func (k key[T]) shown(def string) key[T] {
	k.Default = def
	return k
}

func newEntry() *entry {
	return &entry{Candidate: Candidate{Overrides: map[string]time.Duration{}}}
}

// inherit fills in the server's limits where the entry has none of its own.
func (e *entry) inherit(s *Server, connect, stall time.Duration) {
	e.Connect = connect
	for key, place := range map[string]struct{ own, server *time.Duration }{
		"stall_timeout":     {&e.Stall, &stall},
		"stream_timeout":    {&e.Stream, &s.StreamTimeout},
		"nonstream_timeout": {&e.Nonstream, &s.NonstreamTimeout},
		"content_timeout":   {&e.Content, &s.ContentTimeout},
	} {
		if _, own := e.Overrides[key]; !own && !e.taken[key] {
			*place.own = *place.server
		}
	}
}

// upstreams reads the [[upstream]] list. What each says itself stays in
// d.entries, for the virtual models that refer to it.
func (d *decoder) upstreams(n *node, s *Server) []Candidate {
	if n == nil || n.kind == kindNull {
		return nil
	}
	var list []Candidate
	lines := map[string]int{}
	d.each(n, func(item *node) {
		e := newEntry()
		given := upstreamTable.decode(d, item, e)
		if item.kind != kindMap {
			return
		}
		d.checkEntry(item, e, given, "base_url")
		if id := given["id"]; id != nil && e.ID != "" {
			if line, dup := lines[e.ID]; dup {
				d.errorOn(id, "duplicate id "+quoteName(e.ID)+", first given on line "+itoa(line), "give each upstream an id of its own")
			} else {
				lines[e.ID], _ = d.doc.position(id.outer)
				d.entries[e.ID] = e
			}
		}
		c := *e
		c.Named = c.Name != ""
		if !c.Named {
			c.Name = c.ID
		}
		c.StallAlways = true
		c.Index, c.Tier = len(list)+1, 1
		timeout := c.timeout
		if timeout == 0 {
			timeout = 60 * time.Second
		}
		c.inherit(s, timeout, timeout)
		list = append(list, c.Candidate)
	})
	return list
}

// checkEntry looks at what the keys of one entry say together.
func (d *decoder) checkEntry(n *node, e *entry, given map[string]*node, required ...string) {
	for _, name := range required {
		if given[name] == nil {
			d.errorAt(outerStart(n), name+" is missing", "add "+name)
		}
	}
	if style := given["auth_style"]; style != nil && e.AuthStyle == "none" && !e.Credential.IsNone() {
		d.errorOn(style, "auth_style none beside a key", "remove one of them")
	}
	for _, name := range []string{"api_key_env", "api_key_file"} {
		if at := given[name]; at != nil && e.Credential.Missing() != "" {
			d.missing(at, e.Credential, "this upstream is skipped")
		}
	}
	for _, h := range e.Headers {
		if at := given["header_env"].find(h.Name); at != nil && h.Missing() != "" {
			d.missing(at, EnvCredential(h.Env), "this upstream is skipped")
		}
	}
}

// missing warns of a secret that is not there yet, naming where it should be.
func (d *decoder) missing(n *node, c Credential, effect string) {
	_, err := c.Resolve()
	what := c.Source() + " is not set or empty"
	if c.kind == credentialFile {
		what = c.Source() + " cannot be read"
	}
	if !errors.Is(err, ErrMissing) {
		what = c.Source() + " holds no usable key"
	}
	d.warnAt(n.outer, what, "until it is there, "+effect)
}

// oneCredential reads a credential unless there is one already.
func (d *decoder) oneCredential(n *node, into *Credential, read func() (Credential, bool)) {
	if !into.IsNone() {
		d.errorOn(n, "a second credential", "keep one of them")
		return
	}
	if c, ok := read(); ok {
		*into = c
	}
}

const variablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

var variableName = lazily(variablePattern)

// variable is the name of an environment variable. A key put there by mistake
// is not shown.
func (d *decoder) variable(n *node) (Credential, bool) {
	s, ok := d.line(n)
	if !ok {
		return Credential{}, false
	}
	what := ""
	switch {
	case !variableName().MatchString(s):
		what = "no name of an environment variable"
	case looksSecret(s):
		what = "what looks like a key where the name of an environment variable is due"
	}
	if what != "" {
		d.errorOn(n, what, "write its name, such as OPENAI_API_KEY; a key itself goes elsewhere")
		return Credential{}, false
	}
	return EnvCredential(s), true
}

const maxHeaders = 100

// headers reads headers or header_env into the entry's one list.
func (d *decoder) headers(n *node, e *entry, env bool) {
	if n.kind == kindNull {
		return
	}
	if n.kind != kindMap {
		d.wrongType(n, "a mapping")
		return
	}
	if len(n.pairs) > maxHeaders {
		d.errorOn(n, "more than 100 headers", "no upstream takes so many")
		return
	}
	seen := map[string]bool{}
	for i := range n.pairs {
		p := &n.pairs[i]
		if p.key == "<<" && p.value.kind != kindText {
			continue
		}
		if !d.visit(p.value) {
			return
		}
		leave := d.enter("." + p.key)
		switch name := strings.ToLower(p.key); {
		case !headerName(p.key):
			d.errorAt(p.span.start, "no name of a header", "write letters, digits and hyphens")
		case forbiddenHeaders[name] != "":
			d.errorAt(p.span.start, quoteName(p.key)+" cannot be set: "+forbiddenHeaders[name], "remove it")
		case seen[name]:
			d.errorAt(p.span.start, "duplicate header "+quoteName(p.key), "keep one of them")
		default:
			seen[name] = true
			d.header(p, e, env)
		}
		leave()
	}
}

func (d *decoder) header(p *pair, e *entry, env bool) {
	i := slices.IndexFunc(e.Headers, func(h HeaderValue) bool { return strings.EqualFold(h.Name, p.key) })
	if i < 0 {
		i = len(e.Headers)
		e.Headers = append(e.Headers, HeaderValue{Name: p.key})
	}
	if env {
		if c, ok := d.variable(p.value); ok {
			e.Headers[i].Env = c.Env()
		}
		return
	}
	if s, ok := d.line(p.value); ok {
		if CredentialHeader(p.key) {
			d.literal = true
		}
		e.Headers[i].Value = NewSecret(s)
	}
}

// MissingEnv lists the environment variables the candidate wants and does not
// find now, in the file's order.
func (c Candidate) MissingEnv() []string {
	var missing []string
	if env := c.Credential.Env(); env != "" && c.Credential.Missing() != "" {
		missing = append(missing, env)
	}
	for _, h := range c.Headers {
		if h.Missing() != "" {
			missing = append(missing, h.Env)
		}
	}
	return missing
}

// Missing names the first secret the candidate wants and does not find now:
// "env NAME" or "file PATH", "" if all is well.
func (c Candidate) Missing() string {
	if m := c.Credential.Missing(); m != "" {
		return m
	}
	for _, h := range c.Headers {
		if m := h.Missing(); m != "" {
			return m
		}
	}
	return ""
}

// Format prints a candidate without the secrets that its URLs may hold.
func (c Candidate) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// String is the candidate's name, model and masked base URL.
func (c Candidate) String() string {
	return fmt.Sprintf("%q (%s at %s)", c.Name, c.Model, SafeURL(c.BaseURL))
}

// LogValue is String for slog.
func (c Candidate) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String for JSON and YAML. What people are shown of a candidate
// is built by package control, field by field.
func (c Candidate) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalJSON is String as a JSON string.
func (c Candidate) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
