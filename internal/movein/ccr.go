package movein

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"understudy/internal/config"
)

// router reads claude-code-router's config.json.
type router struct {
	*file
	*draft
	keys   *keyring
	advice []string
	// providers by their names, with the models they list.
	providers map[string]*provider
	names     []string // in the file's order
}

type provider struct {
	id     string
	models []string
	mute   bool // it does not speak Messages, as far as import knows
}

var ccrTop = map[string]string{
	"LOG": "logs go to stderr", "LOG_LEVEL": "serve --log-level", "CLAUDE_PATH": "understudy does not start Claude Code: set ANTHROPIC_BASE_URL where you start it",
	"CUSTOM_ROUTER_PATH":   "no code is run to choose a model: give what it chose a virtual model of its own",
	"NON_INTERACTIVE_MODE": "understudy does not start Claude Code", "transformers": "nothing is translated: name an endpoint that speaks what your clients speak",
	"StatusLine": "the console and the dashboard show the state", "REWRITE_SYSTEM_PROMPT": whyBody, "FORCE_USE_IMAGE_AGENT": "no agent sits in between",
	"forceUseImageAgent": "no agent sits in between", "plugins": "there are no plugins", "Presets": "there are no presets",
}

var ccrProvider = map[string]string{"tokenizer": "tokens are not counted beforehand"}

// roles are what claude-code-router tells requests apart by, with what Claude Code
// itself can do about it.
var roles = []struct{ key, how string }{
	{"default", "ANTHROPIC_MODEL=default"},
	{"background", "ANTHROPIC_DEFAULT_HAIKU_MODEL=background: Claude Code's small jobs"},
	{"think", "ANTHROPIC_DEFAULT_OPUS_MODEL=think, with the model opusplan: plan mode"},
	{"longContext", "nobody counts tokens here: /model longContext by hand; it is also behind default, where a prompt that is refused as too long goes on to it"},
	{"webSearch", "nobody looks for web search here: /model webSearch by hand"},
	{"image", "nobody looks for images here: /model image by hand"},
}

func (r *router) read(root *config.Tree) {
	top := r.section(root, "")
	r.providers = map[string]*provider{}
	r.listen(top)
	for _, key := range []string{"Providers", "providers"} {
		for i, item := range top.list(key) {
			r.provider(r.section(item, index(key, i)), top)
		}
	}
	routes := top.sub("Router")
	if len(routes.tree.Pairs) == 0 {
		routes = top.sub("router")
	}
	fallback := top.sub("fallback")
	for _, role := range roles {
		r.role(role.key, role.how, routes, fallback)
	}
	r.longContext(routes)
	r.direct()
	for _, m := range r.models {
		if m.count() > 0 && !slices.ContainsFunc(m.tiers, func(t tier) bool { return slices.ContainsFunc(t, r.speaks) }) {
			m.notes = append(m.notes, remark("Nobody here is known to speak Messages (/v1/messages): see the comments at upstream, or add a candidate that does."))
			if routes.has(m.name) {
				r.notes = append(r.notes, routes.missing(m.name, "nobody in it is known to answer Claude Code yet; see the comments at upstream"))
			}
		}
	}
	r.server.notes = append(r.server.notes, routes.leftOver(map[string]string{"longContextThreshold": "tokens are not counted beforehand; longContext is behind default instead", "custom": "no code is run to choose a model"})...)
	r.server.notes = append(r.server.notes, fallback.leftOver(nil)...)
	r.server.notes = append(r.server.notes, top.leftOver(ccrTop)...)
}

// speaks reports a candidate whose upstream answers Messages.
func (r *router) speaks(b *block) bool {
	for _, p := range r.providers {
		if p.id == b.get("upstream") {
			return !p.mute
		}
	}
	return false
}

func (r *router) listen(top *section) {
	port, ok := top.whole("PORT", 1, 65535)
	if !ok {
		port = 3456
	}
	r.server.set("port", port)
	key, host := top.text("APIKEY"), top.text("HOST")
	if key != "" {
		b := &block{}
		b.set("name", "claude-code")
		if name, ok := variable(key); ok {
			r.keys.refer(name)
			b.set("key_env", name)
		} else {
			r.keys.put(b, "key", "key_env", found{config.NewSecret(key), "UNDERSTUDY_CLIENT_KEY", r.file, top.tree.Find("APIKEY"), "APIKEY"})
		}
		r.clients = append(r.clients, b)
	}
	switch {
	case host == "" || loopback(host):
	case key != "" && ipAddress(host):
		r.server.set("host", host)
	default:
		r.server.notes = append(r.server.notes, top.missing("HOST", "without client keys understudy listens on this machine only: give clients keys, then set host"))
	}
	if v, ok := top.number("API_TIMEOUT_MS"); ok && v >= 1 && v <= 86400_000 {
		r.server.set("nonstream_timeout", v/1000)
		r.server.set("stream_timeout", v/1000)
	}
	r.advice = append(r.advice, fmt.Sprintf("base URL: stays http://127.0.0.1:%d, but is set by hand: ANTHROPIC_BASE_URL=http://127.0.0.1:%d claude (instead of `ccr code`)", port, port))
}

func ipAddress(host string) bool { return strings.Count(host, ".") == 3 || strings.Contains(host, ":") }

var interpolated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))$`)
})

// variable is the variable that a value of claude-code-router is, whole.
func variable(value string) (string, bool) {
	m := interpolated().FindStringSubmatch(value)
	if m == nil {
		return "", false
	}
	name := m[1] + m[2]
	return name, config.VariableName(name)
}

// provider reads one provider as an upstream.
func (r *router) provider(s *section, top *section) {
	before := len(r.problems)
	name, base, key := s.text("name"), s.text("api_base_url"), s.text("api_key")
	models := s.texts("models")
	transformers := uses(s.value("transformer"))
	for _, need := range []struct{ key, value string }{{"name", name}, {"api_base_url", base}} {
		if need.value == "" && len(r.problems) == before {
			r.problem(s.tree.Line, s.tree.Column, s.path, s.path+": "+need.key+" is missing", "write it")
		}
	}
	if len(r.problems) > before {
		return
	}
	if r.providers[name] != nil {
		r.problem(s.tree.Line, s.tree.Column, s.path, s.path+": a second provider of this name", "give each a name of its own")
		return
	}
	p := &provider{id: name, models: models}
	if config.LooksSecret(name) || len(name) > 80 {
		p.id = "provider-" + strconv.Itoa(len(r.providers)+1)
	}
	b := &block{}
	b.set("id", p.id)
	if !r.target(b, s, p, base, transformers) {
		return
	}
	switch env, ok := variable(key); {
	case ok:
		r.keys.refer(env)
		b.set("api_key_env", env)
	case key == "" || strings.EqualFold(key, "ollama"):
		b.set("auth_style", "none")
	default:
		r.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), keyOf(p.id), r.file, s.tree.Find("api_key"), s.at("api_key")})
	}
	if base, _ := b.get("base_url").(string); top.has("PROXY_URL") && !local(base) {
		if env, ok := variable(top.text("PROXY_URL")); ok {
			b.notes = append(b.notes, top.missing("PROXY_URL", "a proxy does not come from a variable: put it here, or export HTTPS_PROXY="+"$"+env))
		} else {
			r.keys.proxy(b, top, "PROXY_URL")
		}
	}
	if on, given := s.flag("enabled"); given && !on {
		b.set("enabled", false)
	}
	if p.mute {
		b.set("enabled", false)
	}
	b.notes = append(b.notes, s.leftOver(ccrProvider)...)
	r.providers[name] = p
	r.names = append(r.names, name)
	b.shared = true
	r.upstream = append(r.upstream, b)
}

// local reports a base URL on this machine, which no proxy leads to.
func local(base string) bool {
	u, err := url.Parse(base)
	return err == nil && loopback(u.Hostname())
}

// uses are the transformers of a provider, also of single models of it.
func uses(t *config.Tree) (list []string) {
	if t == nil {
		return nil
	}
	for _, p := range t.Pairs {
		items := p.Value
		if p.Key != "use" {
			items = p.Value.Find("use")
		}
		if items == nil {
			continue
		}
		for _, item := range items.Items {
			if item.Kind == config.TreeList && len(item.Items) > 0 {
				item = item.Items[0]
			}
			if item.Kind == config.TreeText {
				list = append(list, item.Text)
			}
		}
	}
	return list
}

// target finds where a provider answers Messages.
func (r *router) target(b *block, s *section, p *provider, base string, transformers []string) bool {
	if strings.Contains(base, "$") {
		b.set("base_url", "https://replace-me.invalid")
		b.set("enabled", false)
		b.notes = append(b.notes, s.missing("api_base_url", "a base URL does not come from a variable: put it here, and take enabled away"))
		p.mute = true
		return true
	}
	u := s.url(s.tree.Find("api_base_url"), s.at("api_base_url"), base, "https", "http")
	if u == nil {
		return false
	}
	if safe, had := bare(u); had && r.keys.keys == KeysEnv {
		u = safe
		b.notes = append(b.notes, s.missing("api_base_url", "what looked secret in this URL is left out, since a URL cannot take it from a variable: put it in by hand"))
	}
	native := slices.ContainsFunc(transformers, func(t string) bool { return strings.EqualFold(t, "anthropic") })
	atMessages := strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/messages")
	known, ok := messagesBase(u)
	switch {
	case native || atMessages:
		rest := withoutEndpoint(u)
		rest.Path = strings.TrimSuffix(rest.Path, "/v1")
		b.set("base_url", rest.String())
		if native || strings.Contains(u.Hostname(), "anthropic.com") {
			b.set("auth_style", "x-api-key")
		}
		others := slices.DeleteFunc(slices.Clone(transformers), func(t string) bool { return strings.EqualFold(t, "anthropic") })
		if len(others) == 0 {
			return true
		}
	case ok:
		b.set("base_url", known)
		if strings.Contains(u.Hostname(), "anthropic.com") {
			b.set("auth_style", "x-api-key")
		}
		b.notes = append(b.notes, remark("claude-code-router translated to another API here; this is where the same host answers Messages itself."))
	default:
		p.mute = true
		b.set("base_url", withoutEndpoint(u).String())
		b.notes = append(b.notes, remark("claude-code-router translated Claude Code's Messages for this one; understudy does not. Off until you know a base URL at which it answers POST /v1/messages: put that here and take enabled away. Clients that speak its own API may use it as it is."))
	}
	if len(transformers) > 0 {
		b.notes = append(b.notes, s.missing("transformer", "nothing is translated and no body is changed"))
	}
	return true
}

// candidate is the block for "provider,model", nil where there is none.
func (r *router) candidate(route string) *block {
	name, model, ok := strings.Cut(route, ",")
	p := r.providers[strings.TrimSpace(name)]
	if model = strings.TrimSpace(model); !ok || p == nil || model == "" {
		return nil
	}
	b := &block{}
	b.set("upstream", p.id)
	b.set("model", model)
	return b
}

// role makes a virtual model of one of the routes, with its fallbacks behind it.
func (r *router) role(key, how string, routes, fallback *section) {
	route := routes.text(key)
	rest := fallback.texts(key)
	if route == "" && len(rest) == 0 {
		return
	}
	m := &chain{name: key, notes: []note{remark("For Claude Code: " + how + ".")}}
	for i, one := range append([]string{route}, rest...) {
		if one == "" {
			continue
		}
		b := r.candidate(one)
		if b == nil {
			from, at := routes, key
			if i > 0 {
				from = fallback
			}
			m.notes = append(m.notes, from.missing(at, "it names no provider and model of this file"))
			continue
		}
		if !m.holds(b) {
			m.tiers = append(m.tiers, tier{b})
		}
	}
	r.models = append(r.models, m)
}

func (c *chain) holds(b *block) bool {
	return slices.ContainsFunc(c.tiers, func(t tier) bool {
		return slices.ContainsFunc(t, func(o *block) bool { return o.get("upstream") == b.get("upstream") && o.get("model") == b.get("model") })
	})
}

// longContext goes behind default, for prompts that are refused as too long.
func (r *router) longContext(routes *section) {
	m, long := r.model("default"), r.model("longContext")
	if m == nil || long == nil {
		return
	}
	for _, t := range long.tiers {
		for _, b := range t {
			c := b.again()
			c.notes = append(c.notes, remark("From longContext: for prompts that are refused above as too long, and when all above have failed."))
			if !m.holds(c) {
				m.tiers = append(m.tiers, tier{c})
			}
		}
	}
}

// direct gives every model of every provider the name by which it was asked for
// directly, "provider,model".
func (r *router) direct() {
	first := true
	for _, name := range r.names {
		p := r.providers[name]
		for _, model := range p.models {
			direct := name + "," + model
			if r.model(direct) != nil || config.LooksSecret(direct) || direct != strings.TrimSpace(direct) || len(direct) > 200 || strings.HasPrefix(direct, ".") || strings.HasPrefix(direct, "x-") {
				continue
			}
			b := &block{}
			b.set("upstream", p.id)
			b.set("model", model)
			m := &chain{name: direct, tiers: []tier{{b}}}
			if first {
				m.notes = append(m.notes, remark("The models by themselves, under the names that /model knows them by."))
				first = false
			}
			r.models = append(r.models, m)
		}
	}
}
