package movein

import (
	"fmt"
	"net"
	"strings"

	"understudy/internal/config"
)

// cliproxy reads CLIProxyAPI's config.yaml.
type cliproxy struct {
	*file
	*draft
	keys   *keyring
	advice []string
	proxy  *section // of the file, for proxy-url
	// proxyTold is set once its missing user has been told of.
	proxyTold bool
	whole     []*cliKind
}

// cliKind is what the entries of one of its lists have in common.
type cliKind struct {
	key     string // in the file
	name    string
	base    string // "" = base-url is needed
	style   string
	env     string
	dialect string
	// open are entries without a list of models: they serve whatever the vendor has.
	// at is the first of them.
	open []*block
	at   *config.Tree
	path string
}

var cliKinds = []cliKind{
	{key: "claude-api-key", name: "claude", base: "https://api.anthropic.com", style: "x-api-key", env: "ANTHROPIC_API_KEY", dialect: "Messages (/v1/messages)"},
	{key: "gemini-api-key", name: "gemini", base: "https://generativelanguage.googleapis.com", style: "x-goog-api-key", env: "GEMINI_API_KEY", dialect: "Gemini's API (generateContent)"},
	{key: "codex-api-key", name: "codex", env: "CODEX_API_KEY", dialect: "Responses (/v1/responses)"},
	{key: "xai-api-key", name: "xai", base: "https://api.x.ai/v1", env: "XAI_API_KEY", dialect: "Responses (/v1/responses)"},
	{key: "interactions-api-key", name: "interactions", base: "https://generativelanguage.googleapis.com", style: "x-goog-api-key", env: "GEMINI_API_KEY", dialect: "Gemini's Interactions API"},
	{key: "vertex-api-key", name: "vertex", style: "x-goog-api-key", env: "VERTEX_API_KEY", dialect: "Gemini's API (generateContent)"},
}

const whyLogin = "accounts that were logged in by OAuth have no counterpart: understudy sends keys. Keep CLIProxyAPI for them and name it as an upstream: base_url http://127.0.0.1:8317/v1"

var cliTop = map[string]string{
	"auth-dir": whyLogin, "remote-management": "server.admin is the dashboard and the admin API, server.admin_token guards it",
	"debug": "serve --log-level debug", "pprof": "there is no such listener", "logging-to-file": "logs go to stderr", "logs-max-total-size-mb": "logs go to stderr",
	"usage-statistics-enabled": "statistics are always kept", "request-log": "request_log keeps requests; bodies with bodies: failed or all", "error-logs-max-files": "request_log.keep and days",
	"quota-exceeded": "used-up quota freezes a candidate until its reset, by the built-in rule; there are no projects to switch",
	"ws-auth":        "server.websocket decides whether WebSockets are proxied; client keys hold for them too",
	"streaming":      "an answer is released once it has proved good; no keep-alives are added to streams", "nonstream-keepalive-interval": "nothing is added to answers that are no streams",
	"oauth-excluded-models": whyLogin, "oauth-model-alias": whyLogin, "oauth-model-mappings": whyLogin, "oauth-request-scoped-errors": whyLogin,
	"payload": whyBody, "passthrough-headers": "answers' headers always pass", "force-model-prefix": "a virtual model's name says which candidates serve it",
	"commercial-mode": "there is no such mode", "claude-header-defaults": "the client's own headers pass", "codex-header-defaults": "the client's own headers pass",
	"ampcode": "Amp's own upstream has no counterpart", "plugins": "there are no plugins", "max-retry-credentials": "a chain is walked to its end",
	"max-retry-interval":               "rules[].max_wait bounds the waits of a retry",
	"disable-cooling":                  "server.auto_hedge_threshold: 0 freezes nobody for failing often; rules decide about the rest",
	"transient-error-cooldown-seconds": "server.auto_hedge_minutes is how long a candidate is frozen that fails often",
	"save-cooldown-status":             "freezes always survive a restart", "allow-localhost-unauthenticated": "without clients anyone on this machine may call; with clients everybody needs a key",
	"codex": "answers are held until they have proved good, so an overload inside a stream fails over; nothing else of requests is changed",
	"xai":   whyBody, "antigravity": whyLogin, "claude-code": "models are listed by the names of the virtual models", "disable-claude-cloak-mode": "requests pass as they come",
	"disable-image-generation": whyBody, "home": "there is no such mode", "redis-usage-queue-retention-seconds": "see /metrics",
}

var cliEntry = map[string]string{
	"request-retry": "retries are a rule's matter: rules[].max_attempts", "disable-cooling": "see server.auto_hedge_threshold",
	"request-scoped-errors": "write rules: match {status, body_regex}, action passthrough (stop), next (continue) or freeze (and-cooldown)",
	"cloak":                 "requests pass as they come", "fingerprint-profile": "requests pass as they come", "experimental-cch-signing": "requests pass as they come",
	"excluded-models": "a chain holds only the models that are named", "websockets": "websocket: on",
	"support-prompt-cache-key": "sessions stick by prompt_cache_key where the client sends one", "rebuild-mid-system-message": whyBody, "alpha-search": "every path is passed through",
	"tool-prefix-disabled": whyBody,
}

var cliModel = map[string]string{
	"thinking": whyBody, "max-context-length": "windows are not known here", "display-name": "", "force-mapping": "answers pass as they come, with the upstream's model in them",
	"is-compat": whyBody, "image": "every path is passed through", "input-modalities": "", "output-modalities": "",
}

func (c *cliproxy) read(root *config.Tree) {
	top := c.section(root, "")
	c.proxy = top
	c.listen(top)
	for i, key := range top.texts("api-keys") {
		b := &block{}
		b.set("name", fmt.Sprintf("client-%d", i+1))
		c.keys.put(b, "key", "key_env", found{config.NewSecret(key), fmt.Sprintf("UNDERSTUDY_CLIENT_%d_KEY", i+1), c.file, keyTree(top, "api-keys", i), index("api-keys", i)})
		if !c.sameClient(b) {
			c.clients = append(c.clients, b)
		}
	}
	for i := range cliKinds {
		kind := cliKinds[i]
		for j, item := range top.list(kind.key) {
			c.entry(&kind, c.section(item, index(kind.key, j)), item)
		}
		if kind.key == "gemini-api-key" {
			c.oldGemini(&kind, top)
		}
		c.whole = append(c.whole, &kind)
	}
	for i, item := range top.list("openai-compatibility") {
		c.compatible(c.section(item, index("openai-compatibility", i)))
	}
	c.openEntries()
	c.retry(top)
	c.routing(top.sub("routing"))
	c.server.notes = append(c.server.notes, top.leftOver(cliTop)...)
	for _, m := range c.models {
		m.notes = append(m.notes, c.speaks(m)...)
	}
}

// sameClient reports a key that another client has already.
func (c *cliproxy) sameClient(b *block) bool {
	for _, o := range c.clients {
		if o.get("key") != nil && o.get("key") == b.get("key") || o.get("key_env") != nil && o.get("key_env") == b.get("key_env") {
			return true
		}
	}
	return false
}

func keyTree(s *section, key string, i int) *config.Tree {
	t := s.tree.Find(key)
	if t.Kind == config.TreeList && i < len(t.Items) {
		return t.Items[i]
	}
	return t
}

// listen reads where it listens. An address beyond this machine is taken over only
// with client keys.
func (c *cliproxy) listen(top *section) {
	port, ok := top.whole("port", 1, 65535)
	if !ok {
		port = 8317
	}
	c.server.set("port", port)
	host := top.text("host")
	keys := top.has("api-keys")
	switch {
	case !top.has("host") || host == "":
		c.server.notes = append(c.server.notes, remark("CLIProxyAPI listens on every interface unless host says otherwise; this listens on 127.0.0.1. For other machines: host: 0.0.0.0, with clients."))
	case loopback(host) || keys:
		c.host(top, host)
	default:
		c.server.notes = append(c.server.notes, top.missing("host", "without client keys understudy listens on this machine only: give clients keys, then set host"))
	}
	c.advice = append(c.advice, fmt.Sprintf("base URL: stays http://HOST:%d (stop CLIProxyAPI first, the port is its own)", port),
		"each client must ask for a model whose candidates speak its API; comments at the virtual models say which")
	tls := top.sub("tls")
	on, _ := tls.flag("enable")
	cert, key := tls.text("cert"), tls.text("key")
	if on && cert != "" && key != "" {
		c.server.set("tls_cert", cert)
		c.server.set("tls_key", key)
	}
	c.server.notes = append(c.server.notes, tls.leftOver(nil)...)
}

// host writes an address to listen on, if it is one.
func (c *cliproxy) host(top *section, host string) {
	if net.ParseIP(host) == nil && host != "localhost" {
		c.server.notes = append(c.server.notes, top.missing("host", "it is no address: write one under host"))
		return
	}
	c.server.set("host", host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// entry reads one key of a vendor.
func (c *cliproxy) entry(kind *cliKind, s *section, item *config.Tree) {
	b := c.credential(kind, s, item)
	if b == nil {
		return
	}
	c.serve(kind, s, b, s.text("prefix"))
}

// oldGemini reads the list of bare keys that older files have.
func (c *cliproxy) oldGemini(kind *cliKind, top *section) {
	for i, key := range top.texts("generative-language-api-key") {
		b := &block{}
		b.set("base_url", kind.base)
		c.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), kind.env, c.file, keyTree(top, "generative-language-api-key", i), index("generative-language-api-key", i)})
		b.set("auth_style", kind.style)
		c.fileProxy(b)
		kind.leave(b, keyTree(top, "generative-language-api-key", i), index("generative-language-api-key", i))
	}
}

// credential reads what an entry says of where it is and who pays.
func (c *cliproxy) credential(kind *cliKind, s *section, item *config.Tree) *block {
	b := &block{}
	base := s.text("base-url")
	key := s.text("api-key")
	switch {
	case base == "" && kind.base == "":
		c.problem(item.Line, item.Column, s.path, s.path+": base-url is missing", "write where it is")
		return nil
	case base == "":
		b.set("base_url", kind.base)
	default:
		if !c.baseURL(b, s, base) {
			return nil
		}
	}
	if key == "" {
		c.problem(item.Line, item.Column, s.path, s.path+": api-key is missing", "write the key")
		return nil
	}
	style := kind.style
	if base != "" && kind.key == "claude-api-key" && !strings.Contains(base, "api.anthropic.com") {
		style = "" // it sends Authorization: Bearer to other hosts than Anthropic's
	}
	c.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), kind.env, c.file, s.tree.Find("api-key"), s.at("api-key")})
	if style != "" {
		b.set("auth_style", style)
	}
	c.tune(b, s, kind.name)
	return b
}

func (c *cliproxy) baseURL(b *block, s *section, base string) bool {
	u := s.url(s.tree.Find("base-url"), s.at("base-url"), base, "https", "http")
	if u == nil {
		return false
	}
	if safe, had := bare(u); had && c.keys.keys == KeysEnv {
		u = safe
		b.notes = append(b.notes, s.missing("base-url", "what looked secret in this URL is left out, since a URL cannot take it from a variable: put it in by hand, or use a header (header_env)"))
	}
	b.set("base_url", withoutEndpoint(u).String())
	return true
}

// tune writes weight, headers and proxy.
func (c *cliproxy) tune(b *block, s *section, owner string) {
	if v, ok := s.number("weight"); ok && v > 0 && v <= 1e6 {
		b.set("weight", v)
	}
	c.keys.headers(b, s, "headers", owner)
	if s.has("proxy-url") {
		c.keys.proxy(b, s, "proxy-url")
	} else {
		c.fileProxy(b)
	}
}

// fileProxy gives an entry the proxy of the whole file.
func (c *cliproxy) fileProxy(b *block) {
	if c.proxy.has("proxy-url") {
		before := len(b.notes)
		c.keys.proxy(b, c.proxy, "proxy-url")
		if len(b.notes) > before && !c.proxyTold { // once is enough
			c.proxyTold = true
			c.server.notes = append(c.server.notes, b.notes[before:]...)
		}
		b.notes = b.notes[:before]
	}
}

// serve puts an entry behind the models it names; without any it serves all that
// its vendor has.
func (c *cliproxy) serve(kind *cliKind, s *section, b *block, prefix string) {
	items := s.list("models")
	for i, item := range items {
		m := c.section(item, index(s.at("models"), i))
		real, alias := m.text("name"), m.text("alias")
		if real == "" {
			c.problem(item.Line, item.Column, m.path, m.path+": name is missing", "write the model's real name")
			continue
		}
		if alias == "" {
			alias = real
		}
		if prefix != "" {
			alias = strings.Trim(prefix, "/") + "/" + alias
		}
		if !c.nameOK(alias, item, m.at("alias")) {
			continue
		}
		notes := m.leftOver(cliModel)
		c.into(alias, b, real, kind, notes)
		if v := c.model(alias); v.line == 0 {
			v.line = item.Line
		}
	}
	b.notes = append(b.notes, s.leftOver(cliEntry)...)
	if len(items) == 0 {
		kind.leave(b, s.tree, s.path)
	}
}

// into adds a candidate to the one tier of a virtual model.
func (c *cliproxy) into(name string, b *block, model string, kind *cliKind, notes []note) {
	m := c.model(name)
	if m == nil {
		m = &chain{name: name, tiers: []tier{nil}}
		c.models = append(c.models, m)
	}
	candidate := &block{notes: append(append([]note{}, b.notes...), notes...)}
	title := kind.name
	for n := 2; ; n++ {
		taken := false
		for _, o := range m.tiers[0] {
			taken = taken || o.get("name") == title
		}
		if !taken {
			break
		}
		title = fmt.Sprintf("%s-%d", kind.name, n)
	}
	candidate.set("name", title)
	candidate.pairs = append(candidate.pairs, b.pairs...)
	candidate.set("model", model)
	candidate.dialect = kind.dialect
	m.tiers[0] = append(m.tiers[0], candidate)
}

// speaks says which API the clients of a virtual model must speak.
func (c *cliproxy) speaks(m *chain) []note {
	switch list := m.dialects(); len(list) {
	case 0:
		return nil
	case 1:
		return []note{remark("For clients that speak " + list[0] + ": CLIProxyAPI translated, understudy does not.")}
	default:
		return []note{{file: c.path, line: m.line, key: "alias " + shown(m.name), why: whyMixed(list)}}
	}
}

// compatible reads a provider of chat completions with its keys.
func (c *cliproxy) compatible(s *section) {
	name := s.text("name")
	if name == "" || config.LooksSecret(name) || len(name) > 80 {
		name = "compatible"
	}
	kind := &cliKind{key: "openai-compatibility", name: name, env: keyOf(name), dialect: chatCompletions}
	template := &block{}
	base := s.text("base-url")
	if base == "" {
		c.problem(s.tree.Line, s.tree.Column, s.path, s.path+": base-url is missing", "write where it is")
		return
	}
	if !c.baseURL(template, s, base) {
		return
	}
	off, _ := s.flag("disabled")
	prefix := s.text("prefix")
	c.keys.headers(template, s, "headers", name)
	var entries []*block
	for i, item := range s.list("api-key-entries") {
		e := c.section(item, index(s.at("api-key-entries"), i))
		b := &block{notes: template.notes, pairs: append([]pair{}, template.pairs...)}
		if key := e.text("api-key"); key != "" {
			c.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), kind.env, c.file, e.tree.Find("api-key"), e.at("api-key")})
		} else {
			b.set("auth_style", "none")
		}
		c.tune(b, e, name)
		b.notes = append(append([]note{}, b.notes...), e.leftOver(cliEntry)...)
		entries = append(entries, b)
	}
	for i, key := range s.texts("api-keys") { // as older files have them
		b := &block{notes: template.notes, pairs: append([]pair{}, template.pairs...)}
		c.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), kind.env, c.file, keyTree(s, "api-keys", i), index(s.at("api-keys"), i)})
		c.fileProxy(b)
		entries = append(entries, b)
	}
	if len(entries) == 0 {
		b := &block{notes: template.notes, pairs: append([]pair{}, template.pairs...)}
		b.set("auth_style", "none")
		entries = append(entries, b)
	}
	for i, b := range entries {
		if off {
			b.set("enabled", false)
		}
		if i == 0 {
			c.serve(kind, s, b, prefix)
			continue
		}
		// The keys of the section have been seen with the first one.
		quiet := c.section(&config.Tree{Kind: config.TreeMapping, Pairs: []config.TreePair{{Key: "models", Value: s.tree.Find("models")}}}, s.path)
		if !s.has("models") {
			quiet = c.section(nil, s.path)
		}
		c.serve(kind, quiet, b, prefix)
	}
	if len(kind.open) > 0 {
		c.whole = append(c.whole, kind)
	}
}

// leave keeps an entry that names no models.
func (k *cliKind) leave(b *block, at *config.Tree, path string) {
	if k.at == nil {
		k.at, k.path = at, path
	}
	k.open = append(k.open, b)
}

// openEntries makes a pool of the entries that name no models. The members of a
// pool are equals, so of several kinds the largest has it; the others become
// virtual models whose names have to be put in.
func (c *cliproxy) openEntries() {
	var most *cliKind
	for _, kind := range c.whole {
		if len(kind.open) > 0 && (most == nil || len(kind.open) > len(most.open)) {
			most = kind
		}
	}
	for _, kind := range c.whole {
		switch {
		case len(kind.open) == 0:
		case kind == most:
			c.pool = &block{notes: []note{remark("The keys without a list of models (" + kind.key + "): every model that is no virtual model goes to one of them. Clients must speak " + kind.dialect + ".")}}
			for i, b := range kind.open {
				up := &block{notes: b.notes}
				up.set("id", fmt.Sprintf("%s-%d", kind.name, i+1))
				up.pairs = append(up.pairs, b.pairs...)
				c.upstream = append(c.upstream, up)
			}
		default:
			name := kind.name + "-replace-me"
			for _, b := range kind.open {
				c.into(name, b, "replace-me", kind, nil)
			}
			if m := c.model(name); m != nil {
				m.notes = append(m.notes, c.missingAt(kind.at, kind.path, plural(len(kind.open), "key")+" without a list of models: the pool of this file is for another API, and understudy does not find out which models a vendor has. Write a virtual model like this one for each model you use, with its name and its model"))
			}
		}
	}
}

// routing reads how one of several keys is chosen.
func (c *cliproxy) routing(s *section) {
	strategy := s.text("strategy")
	sticky, _ := s.flag("session-affinity")
	if strategy == "fill-first" {
		for _, m := range c.models {
			var tiers []tier
			for _, b := range m.tiers[0] {
				tiers = append(tiers, tier{b})
			}
			m.tiers = tiers
		}
		c.server.notes = append(c.server.notes, remark("routing.strategy fill-first: the keys of a model are tried in the file's order."))
	} else if !sticky {
		c.server.notes = append(c.server.notes, remark("Of several keys a session keeps to one, so that its prompt cache stays warm; requests without a session go to the least loaded. As CLIProxyAPI does without session-affinity: affinity: off, at the virtual model (with its list under candidates) or the pool."))
	}
	c.server.notes = append(c.server.notes, s.leftOver(map[string]string{
		"session-affinity-ttl": "a session's key decides where it goes; nothing is remembered that could expire", "session-affinity-subagents": "a session is what its key says",
	})...)
}

// retry reads how often failed requests are tried again.
func (c *cliproxy) retry(top *section) {
	n, ok := top.whole("request-retry", 0, 100)
	if !ok || n == 3 && len(c.models) == 0 {
		return
	}
	c.ruleNotes = append(c.ruleNotes, remark(fmt.Sprintf("request-retry: %d means rounds over all keys there. Here a retry asks the same candidate again, then the next one is tried; the built-in rules do so three times where waiting helps, and server.auto_hedge_threshold freezes who fails often.", n)))
}
