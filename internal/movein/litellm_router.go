package movein

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/config"
)

// build turns the groups into virtual models: each group's deployments are tiers
// of equals by their order, and its fallbacks come after them.
func (l *litellm) build(settings, router *section) {
	fallbacks := l.fallbacks("fallbacks", settings, router)
	windows := l.fallbacks("context_window_fallbacks", settings, router)
	policies := l.fallbacks("content_policy_fallbacks", settings, router)
	var all link
	for _, s := range []*section{settings, router} {
		if s.has("default_fallbacks") {
			all = link{names: s.texts("default_fallbacks"), tree: s.tree.Find("default_fallbacks"), path: s.at("default_fallbacks")}
		}
	}
	for _, name := range l.order {
		g := l.groups[name]
		if name == "*" && len(g.all) == 0 {
			l.notes = append(l.notes, g.notes...)
			continue
		}
		m := &chain{name: name, notes: g.notes, tiers: tiersOf(g)}
		if !l.nameOK(name, g.tree, "model_name") {
			continue
		}
		next := fallbacks[name]
		if len(next.names) == 0 {
			next = all
		}
		l.follow(m, next.names, "")
		l.follow(m, windows[name].names, "LiteLLM comes here for prompts that are too long (context_window_fallbacks); here it is also tried when all before it have failed.")
		if policy := policies[name]; len(policy.names) > 0 {
			m.notes = append(m.notes, l.missingAt(policy.tree, policy.path, "a refusal goes to the client as it came. For another try write a rule of this virtual model: match {status: 400, body_regex: content.policy}, action next, and put the candidates of "+shown(policy.names[0])+" behind its own"))
		}
		if speak := m.dialects(); len(speak) > 1 {
			m.notes = append(m.notes, l.missingAt(g.tree, "model_name "+shown(name), whyMixed(speak)))
		}
		l.models = append(l.models, m)
	}
	l.unknownTargets(fallbacks, windows, map[string]link{"": all})
	l.aliases(router)
}

// nameOK reports a name that a virtual model may have; another one is a problem.
func (f *file) nameOK(name string, t *config.Tree, path string) bool {
	if name == "*" || len(name) > 200 || len(name) > 1 && name[0] == '.' || len(name) > 1 && name[:2] == "x-" && !slices.Contains([]byte(name), '/') {
		f.problem(t.Line, t.Column, path, path+": a name that no virtual model may have (names that begin with a dot or with x-, or *)", "give it another one, here and at the clients")
		return false
	}
	return true
}

// tiersOf sorts a group's deployments into tiers, the lowest order first.
func tiersOf(g *group) (list []tier) {
	slices.SortStableFunc(g.all, func(a, b deployment) int { return cmp.Compare(a.order, b.order) })
	seen := map[string]int{}
	for i, d := range g.all {
		if name, ok := d.get("name").(string); ok {
			if seen[name]++; seen[name] > 1 {
				d.set("name", name+" "+strconv.Itoa(seen[name]))
			}
		}
		if i == 0 || d.order != g.all[i-1].order {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], d.block)
	}
	return list
}

// link is where a group's requests go when it has failed.
type link struct {
	names []string
	tree  *config.Tree
	path  string
}

// fallbacks reads a list of {group: [groups]}, the router's over the library's.
func (l *litellm) fallbacks(key string, sections ...*section) map[string]link {
	all := map[string]link{}
	for _, s := range sections {
		for i, item := range s.list(key) {
			one := l.section(item, index(s.at(key), i))
			for _, p := range one.tree.Pairs {
				all[p.Key] = link{one.texts(p.Key), p.Value, one.at(p.Key)}
			}
		}
	}
	return all
}

// follow appends the tiers of other groups to a chain, each candidate once.
func (l *litellm) follow(m *chain, groups []string, why string) {
	have := map[string]bool{}
	for _, t := range m.tiers {
		for _, b := range t {
			have[b.identity()] = true
		}
	}
	for _, name := range groups {
		g := l.groups[name]
		if g == nil || name == m.name {
			continue
		}
		for i, t := range tiersOf(g) {
			var copied tier
			for _, b := range t {
				if have[b.identity()] {
					continue
				}
				have[b.identity()] = true
				c := b.again()
				if i == 0 && len(copied) == 0 {
					c.notes = append(c.notes, remark("From here on the candidates of "+shown(name)+"."))
					if why != "" {
						c.notes = append(c.notes, remark(why))
					}
				}
				copied = append(copied, c)
			}
			if len(copied) > 0 {
				m.tiers = append(m.tiers, copied)
			}
		}
	}
}

// identity tells candidates apart: where they are, with which key, for which
// model.
func (b *block) identity() string {
	return fmt.Sprint(b.get("base_url"), "\x00", b.get("api_key"), "\x00", b.get("api_key_env"), "\x00", b.get("model"))
}

// unknownTargets notes fallbacks from or to groups that are not there.
func (l *litellm) unknownTargets(all ...map[string]link) {
	told := map[string]bool{}
	for _, fallbacks := range all {
		for _, from := range slices.Sorted(maps.Keys(fallbacks)) {
			at := fallbacks[from]
			for _, name := range append([]string{from}, at.names...) {
				if name != "" && name != "*" && l.groups[name] == nil && !told[name] {
					told[name] = true
					l.notes = append(l.notes, l.missingAt(at.tree, at.path, shown(name)+" is no model_name of this file, so nothing leads to it or from it: where models come from LiteLLM's database, write them here by hand"))
				}
			}
		}
	}
}

// aliases give further names to groups.
func (l *litellm) aliases(router *section) {
	aliases := router.sub("model_group_alias")
	for _, p := range aliases.tree.Pairs {
		target := p.Value
		if target.Kind == config.TreeMapping {
			target = target.Find("model")
		}
		if target == nil {
			l.wrong(p.Value, aliases.at(p.Key), "the name of a model group")
			continue
		}
		m := l.model(l.line(target, aliases.at(p.Key)))
		switch {
		case m == nil:
			l.notes = append(l.notes, aliases.missing(p.Key, "its model group is not in this file, or has no candidate"))
		case l.model(p.Key) != nil:
			l.notes = append(l.notes, aliases.missing(p.Key, "a model group has this name already"))
		case hasControl(p.Key) || p.Key == "" || !l.nameOK(p.Key, p.Value, aliases.at(p.Key)):
			if hasControl(p.Key) || p.Key == "" {
				l.problem(p.Line, p.Column, "router_settings.model_group_alias", "router_settings.model_group_alias: no name for a model", "write the name that clients send")
			}
		default:
			alias := &chain{name: p.Key, notes: []note{remark("Another name for " + shown(m.name) + ".")}}
			for _, t := range m.tiers {
				var copied tier
				for _, b := range t {
					copied = append(copied, b.again())
				}
				alias.tiers = append(alias.tiers, copied)
			}
			l.models = append(l.models, alias)
		}
	}
	router.asked["model_group_alias"] = true
}

// limits reads times, retries and cooldowns.
func (l *litellm) limits(settings, router *section) {
	var stream, whole float64
	if v, ok := seconds(settings, "request_timeout"); ok {
		stream, whole = v, v
	}
	if v, ok := seconds(router, "timeout"); ok {
		stream, whole = v, v
	}
	if v, ok := seconds(router, "stream_timeout"); ok {
		stream = v
	}
	if whole > 0 {
		l.server.set("nonstream_timeout", whole)
	}
	if stream > 0 {
		l.server.set("stream_timeout", stream)
	}
	if s, ok := router.value("routing_strategy"), router.has("routing_strategy"); ok && s.Text != "simple-shuffle" && s.Text != "least-busy" {
		l.server.notes = append(l.server.notes, router.missing("routing_strategy", "equals are chosen by session (weighted), and without a session by load; weight says how many sessions each gets"))
	}
	retries, ok := settings.whole("num_retries", 0, 100)
	if v, given := router.whole("num_retries", 0, 100); given {
		retries, ok = v, true
	}
	if ok {
		l.retries(int(retries))
	}
	l.cooldown(settings, router)
	if v, ok := router.whole("default_max_parallel_requests", 1, maxCount); ok {
		for _, m := range l.models {
			for _, t := range m.tiers {
				for _, b := range t {
					if b.get("max_parallel") == nil {
						b.set("max_parallel", v)
					}
				}
			}
		}
	}
}

// cooldown reads how many failures stop a deployment, and for how long.
func (l *litellm) cooldown(settings, router *section) {
	fails, given := settings.whole("allowed_fails", 0, 10000)
	if v, ok := router.whole("allowed_fails", 0, 10000); ok {
		fails, given = v, true
	}
	off, _ := router.flag("disable_cooldowns")
	length, timed := seconds(settings, "cooldown_time")
	if v, ok := seconds(router, "cooldown_time"); ok {
		length, timed = v, true
	}
	switch {
	case off:
		l.server.set("auto_hedge_threshold", 0)
		l.server.notes = append(l.server.notes, remark("disable_cooldowns: nobody is frozen for failing often. The rules still freeze for used-up quota and dead keys."))
	case given:
		l.server.set("auto_hedge_threshold", fails+1)
	}
	if timed && !off {
		l.server.set("auto_hedge_minutes", length/60)
	}
	if !off && (given || timed) {
		l.server.notes = append(l.server.notes, remark("allowed_fails and cooldown_time: LiteLLM counts failures per minute, auto_hedge_threshold counts failures in a row."))
	}
}

// retries writes the built-in rules with another number of attempts.
func (l *litellm) retries(n int) {
	l.ruleNotes = append(l.ruleNotes, remark(fmt.Sprintf("The built-in rules with num_retries: %d. LiteLLM retries on any deployment of the group; here the same candidate is asked again, then the next. Without this key the built-in ones hold as they are.", n)))
	for _, r := range config.BuiltInRules() {
		if r.Action == "retry" {
			if r.MaxAttempts = n + 1; n == 0 {
				r.Action = "next"
			}
		}
		l.rules = append(l.rules, ruleBlock(r))
	}
}

// ruleBlock writes a rule out.
func ruleBlock(r config.Rule) *block {
	b, match := &block{}, &block{}
	b.set("name", strings.TrimPrefix(r.Name, "built-in "))
	var statuses []any
	for _, s := range r.Statuses {
		statuses = append(statuses, s)
	}
	for _, c := range r.Classes {
		statuses = append(statuses, c)
	}
	if len(statuses) > 0 {
		match.set("status", statuses)
	}
	if r.BodySource != "" {
		match.set("body_regex", r.BodySource)
	}
	if len(r.Faults) > 0 {
		match.set("fault", r.Faults)
	}
	b.set("match", match)
	b.set("action", r.Action)
	switch r.Action {
	case "retry":
		b.set("max_attempts", r.MaxAttempts)
		b.set("backoff_base", r.BackoffBase)
		b.set("max_wait", r.MaxWait.Seconds())
	case "freeze":
		b.set("freeze_seconds", r.Freeze.Seconds())
	}
	return b
}

// general reads the keys of the proxy itself.
func (l *litellm) general(s *section) {
	if key := s.text("master_key"); key != "" {
		b := &block{notes: []note{remark("LiteLLM's master key. Its virtual keys are in its database: each that is still in use becomes a client of its own, with models and limits.")}}
		b.set("name", "master")
		if name, ok := reference(key); ok && config.VariableName(name) {
			l.keys.refer(name)
			b.set("key_env", name)
		} else {
			l.keys.put(b, "key", "key_env", found{config.NewSecret(key), "LITELLM_MASTER_KEY", l.file, s.tree.Find("master_key"), s.at("master_key")})
		}
		l.clients = append(l.clients, b)
	}
	if v, ok := s.number("max_request_size_mb"); ok && v >= 0.01 && v <= 1<<18 {
		l.server.set("max_body_bytes", int64(v*(1<<20)))
	}
	if model := s.text("completion_model"); model != "" {
		if m := l.model(model); m != nil && m.count() > 0 {
			l.server.set("default_model", model)
		} else {
			l.server.notes = append(l.server.notes, s.missing("completion_model", "it is no model_name of this file"))
		}
	}
}
