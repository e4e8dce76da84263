package movein

import (
	"fmt"
	"net/url"
	"strings"

	"understudy/internal/config"
)

// litellm reads LiteLLM's config.yaml.
type litellm struct {
	*file
	*draft
	keys    *keyring
	options Options
	groups  map[string]*group
	order   []string // of the groups, as they stand
	// modelInfo is set once the first model_info has been noted.
	modelInfo bool
	// unversioned is set by a base URL of chat completions without a version at
	// its end.
	unversioned bool
}

// group is a model group: the deployments of one model_name.
type group struct {
	name  string
	tree  *config.Tree // of its first deployment
	notes []note
	all   []deployment
}

// deployment is one entry of model_list.
type deployment struct {
	*block
	order    float64 // litellm_params.order, 1 where there is none
	provider string
}

// Why keys of LiteLLM have no counterpart.
const (
	whyBody     = "understudy passes bodies as they come: set it at the client"
	whyCost     = "understudy counts requests and tokens, no money"
	whyObserve  = "see the request log, /metrics and `understudy explain` instead"
	whyDatabase = "there is no database: client keys stand under clients, in this file"
	whyCache    = "answers are not cached; prompt caches at the upstream stay warm because sessions stick"
)

var litellmParams = map[string]string{
	"temperature": whyBody, "max_tokens": whyBody, "max_completion_tokens": whyBody, "top_p": whyBody, "stop": whyBody, "seed": whyBody,
	"thinking": whyBody, "reasoning_effort": whyBody, "extra_body": whyBody, "drop_params": whyBody, "additional_drop_params": whyBody,
	"response_format": whyBody, "stream": whyBody, "user": whyBody,
	"input_cost_per_token": whyCost, "output_cost_per_token": whyCost, "input_cost_per_second": whyCost, "max_budget": whyCost, "budget_duration": whyCost,
	"max_retries":                        "retries are a rule's matter: rules[].max_attempts",
	"num_retries":                        "retries are a rule's matter: rules[].max_attempts",
	"cooldown_time":                      "how long a failed candidate is skipped is a rule's matter (freeze_seconds), or server.auto_hedge_minutes",
	"tags":                               "there is no routing by tags: give what they choose a virtual model of its own",
	"region_name":                        "the base URL says where it is",
	"mock_response":                      "`understudy demo` and `understudy drill` have made-up answers",
	"guardrails":                         "there are no guardrails",
	"aws_access_key_id":                  "requests are not signed for AWS",
	"vertex_project":                     "Vertex AI has no counterpart",
	"azure_ad_token":                     "tokens of Entra ID are not renewed here: use the resource's key",
	"use_in_pass_through":                "every path is passed through",
	"merge_reasoning_content_in_choices": whyBody,
}

var litellmSettings = map[string]string{
	"cache": whyCache, "cache_params": whyCache, "enable_caching_on_provider_specific_optional_params": whyCache,
	"callbacks": whyObserve, "success_callback": whyObserve, "failure_callback": whyObserve, "service_callbacks": whyObserve,
	"langfuse_default_tags": whyObserve, "turn_off_message_logging": "bodies are not kept unless request_log.bodies says so",
	"redact_user_api_key_info": "keys are never shown", "set_verbose": "serve --log-level debug", "json_logs": "serve --log-format json",
	"drop_params": whyBody, "modify_params": whyBody, "default_team_settings": whyDatabase, "max_budget": whyCost, "budget_duration": whyCost,
	"telemetry": "there is none", "force_ipv4": "no such setting: the system's resolver decides",
	"ssl_verify": "certificates are always checked", "guardrails": "there are no guardrails",
	"max_internal_user_budget": whyCost, "key_generation_settings": whyDatabase, "upperbound_key_generate_params": whyDatabase,
}

var routerSettings = map[string]string{
	"retry_policy":         "write a rule per fault instead (rules[].match.fault, max_attempts)",
	"allowed_fails_policy": "server.auto_hedge_threshold counts every failure that is the upstream's",
	"retry_after":          "the waits of a rule: backoff_base and max_wait; an upstream's Retry-After is kept to",
	"redis_host":           "one process needs no store; several share one by store.url", "redis_port": "see redis_host", "redis_password": "see redis_host",
	"redis_url": "one process needs no store; several share one by store.url_env", "redis_db": "see redis_host", "cache_responses": whyCache,
	"enable_pre_call_checks": "a prompt that is too long goes to the next candidate when the upstream refuses it; windows are not counted beforehand",
	"max_fallbacks":          "a chain is walked to its end", "enable_tag_filtering": "there is no routing by tags",
	"routing_strategy_args": "see routing_strategy", "set_verbose": "serve --log-level debug", "debug_level": "serve --log-level debug",
	"default_litellm_params": whyBody, "polling_interval": "server.queue_timeout waits for a candidate at its max_parallel",
	"default_priority": "there are no priorities among requests", "client_ttl": "connections are kept as long as they live",
}

var generalSettings = map[string]string{
	"database_url": whyDatabase, "store_model_in_db": whyDatabase, "database_connection_pool_limit": whyDatabase, "database_connection_timeout": whyDatabase,
	"allow_requests_on_db_unavailable": whyDatabase, "disable_spend_logs": whyCost, "store_prompts_in_spend_logs": "request_log.bodies keeps bodies",
	"proxy_batch_write_at": whyDatabase, "custom_auth": "clients have keys, and nothing else", "enable_jwt_auth": "clients have keys, and nothing else",
	"alerting": "see /metrics, and an alert rule at it", "alerting_threshold": "see alerting", "alert_types": "see alerting",
	"background_health_checks": "health is seen from real requests; nothing is called to find out", "health_check_interval": "see background_health_checks",
	"allowed_ips": "bind server.host, and use a firewall", "allowed_routes": "every path is passed through", "ui_access_mode": "server.admin_token guards the dashboard",
	"forward_client_headers_to_llm_api": "headers are always passed on, but for credentials and those of the connection",
	"pass_through_endpoints":            "every path is passed through, to the chain of the request's model",
	"max_parallel_requests":             "max_parallel of a client or a candidate", "global_max_parallel_requests": "max_parallel of each client",
	"user_api_key_cache_ttl": whyDatabase, "spend_report_frequency": whyCost, "maximum_spend_logs_retention_period": "request_log.days",
	"use_x_forwarded_for": "addresses of clients decide nothing", "litellm_license": "there is none to buy",
}

func (l *litellm) read(root *config.Tree) {
	top := l.section(root, "")
	l.groups = map[string]*group{}
	for i, item := range top.list("model_list") {
		l.deployment(l.section(item, index("model_list", i)))
	}
	settings, router, general := top.sub("litellm_settings"), top.sub("router_settings"), top.sub("general_settings")
	l.build(settings, router)
	l.limits(settings, router)
	l.general(general)
	for _, p := range top.sub("environment_variables").tree.Pairs {
		l.server.notes = append(l.server.notes, note{file: l.path, line: p.Line, column: p.Column, key: "environment_variables." + shown(p.Key),
			why: "variables come from the environment: export it before you start understudy, if it is still needed"})
	}
	top.asked["environment_variables"] = true
	for _, name := range top.texts("include") {
		_ = name // it may hold anything
		l.notes = append(l.notes, top.missing("include", "the files it names are not read: give them to `understudy import` too"))
		break
	}
	l.server.notes = append(l.server.notes, settings.leftOver(litellmSettings)...)
	l.server.notes = append(l.server.notes, router.leftOver(routerSettings)...)
	l.server.notes = append(l.server.notes, general.leftOver(generalSettings)...)
	l.notes = append(l.notes, top.leftOver(map[string]string{
		"mcp_servers": "MCP servers are the clients' own matter", "guardrails": "there are no guardrails", "callback_settings": whyObserve,
		"finetune_settings": "files and jobs go where the request's model or account is", "files_settings": "files and jobs go where the request's model or account is",
		"vector_store_registry": "there are no vector stores", "prompts": "there are no prompts", "search_tools": "there are no search tools",
		"credential_list": "name the key at each deployment, by api_key",
	})...)
}

// shown is a name of the source, if it may be shown.
func shown(name string) string {
	if !plainKey(name) || config.LooksSecret(name) {
		return "?"
	}
	return name
}

// deployment reads one entry of model_list into its group.
func (l *litellm) deployment(s *section) {
	before := len(l.problems)
	name := s.text("model_name")
	params := s.sub("litellm_params")
	model := params.text("model")
	info := s.sub("model_info")
	if !l.modelInfo && len(info.tree.Pairs) > 0 {
		l.modelInfo = true
		l.notes = append(l.notes, s.missing("model_info", "prices, modes and windows are not kept here, for this deployment and all others; ids have become names"))
	}
	switch {
	case len(l.problems) > before:
		return
	case name == "":
		l.problem(s.tree.Line, s.tree.Column, s.path, s.path+": model_name is missing", "write the name that clients send")
		return
	case model == "":
		l.problem(s.tree.Line, s.tree.Column, s.path, s.path+": litellm_params.model is missing", "write model: provider/name")
		return
	}
	g := l.groups[name]
	if g == nil {
		g = &group{name: name, tree: s.tree}
		l.groups[name] = g
		l.order = append(l.order, name)
	}
	d := deployment{block: &block{}, order: 1}
	id := info.text("id")
	var ok bool
	if d.provider, ok = l.target(d.block, g, params, model, id); !ok {
		return
	}
	if v, given := params.number("order"); given {
		d.order = v
	}
	l.tuning(d.block, params, s)
	d.notes = append(d.notes, params.leftOver(litellmParams)...)
	d.notes = append(d.notes, s.leftOver(nil)...)
	if d.get("id") == nil { // else it is in the pool
		g.all = append(g.all, d)
	}
}

// target writes name, base URL, credential and model of a deployment.
func (l *litellm) target(b *block, g *group, params *section, model, id string) (provider string, ok bool) {
	provider, rest, found := strings.Cut(model, "/")
	_, known := vendors[provider]
	_, other := foreign[provider]
	if own := params.text("custom_llm_provider"); own != "" {
		if provider != own {
			rest = model
		}
		provider = own
	} else if !found || !known && !other {
		provider, rest = guess(model), model
	}
	base := params.text("api_base")
	if base == "" {
		base = params.text("base_url")
	}
	v, known := vendors[provider]
	switch {
	case foreign[provider] != "":
		g.notes = append(g.notes, params.missing("model", foreign[provider]))
		l.drop(params)
		return provider, false
	case !known && base == "":
		g.notes = append(g.notes, params.missing("model", "import does not know where this provider is: write a candidate with base_url, a key and model"))
		l.drop(params)
		return provider, false
	case !known:
		provider, v = "openai_like", vendors["openai_like"]
		b.notes = append(b.notes, remark("LiteLLM's provider for this model is not known to import: it is taken to answer chat completions at its api_base."))
	}
	for _, route := range []string{"responses/", "o_series/", "gpt5_series/", "chat/"} {
		rest = strings.TrimPrefix(rest, route)
	}
	if rest == "" {
		l.problem(params.tree.Line, params.tree.Column, params.path, params.at("model")+": no model behind the provider", "write provider/name")
		return provider, false
	}
	u, style := l.base(b, params, provider, v, base)
	if u == nil {
		return provider, false
	}
	if strings.Contains(rest, "*") {
		return provider, l.wildcard(b, g, params, provider, rest, u, style, v)
	}
	if b.dialect == "" {
		b.dialect = chatCompletions
	}
	b.set("name", candidateName(id, model))
	b.set("base_url", u)
	l.credential(b, params, v, style)
	if style != "" {
		b.set("auth_style", style)
	}
	b.set("model", rest)
	return provider, true
}

// candidateName is what people will call a candidate.
func candidateName(id, model string) string {
	if id != "" && !config.LooksSecret(id) && len(id) <= 80 {
		return id
	}
	return model
}

// drop asks for the keys of a deployment that is left out, so that they are not
// noted one by one.
func (l *litellm) drop(params *section) {
	for _, p := range params.tree.Pairs {
		params.asked[p.Key] = true
	}
}

// base is a deployment's base URL and the way its key is sent.
func (l *litellm) base(b *block, params *section, provider string, v vendor, base string) (any, string) {
	version := params.text("api_version")
	if name, ok := reference(base); ok {
		value, set := l.options.env(name)
		if set && value != "" && len(value) < 500 && !hasControl(value) {
			b.notes = append(b.notes, params.missing(baseKey(params), "a base URL does not come from a variable: this is what "+shown(name)+" held when this file was written"))
			base = value
		} else {
			b.notes = append(b.notes, params.missing(baseKey(params), "a base URL does not come from a variable, and "+shown(name)+" is not set now: put it here, in the place of replace-me"))
			base = "https://replace-me.invalid"
		}
	}
	if base == "" {
		return l.vendorBase(b, v, provider, params)
	}
	t := params.tree.Find(baseKey(params))
	u := params.url(t, params.at(baseKey(params)), base, "https", "http")
	if u == nil {
		return nil, ""
	}
	if safe, had := bare(u); had && l.options.Keys == KeysEnv {
		u = safe
		b.notes = append(b.notes, params.missing(baseKey(params), "what looked secret in this URL is left out, since a URL cannot take it from a variable: put it in by hand, or use a header (header_env)"))
	}
	u = withoutEndpoint(u)
	switch {
	case provider == "azure":
		u.Path, u.RawQuery = "/openai/v1", ""
		b.notes = append(b.notes, remark("Azure's v1 API: the deployment is the model, and no api-version is needed."))
	case v.own != "":
		u.Path = strings.TrimSuffix(u.Path, "/v1")
		b.dialect = v.own
		b.notes = append(b.notes, remark("Its clients must speak "+v.own+": LiteLLM translated, understudy does not."))
		return u.String(), v.ownStyle
	case strings.HasPrefix(provider, "ollama"):
		if u.Path == "" {
			u.Path = "/v1"
		}
	default:
		if version != "" {
			b.notes = append(b.notes, params.missing("api_version", "only Azure has one; put a query into base_url where an upstream wants it"))
		}
		l.remarkVersion(b, u)
	}
	return u.String(), v.style
}

func baseKey(params *section) string {
	if params.has("api_base") {
		return "api_base"
	}
	return "base_url"
}

// vendorBase is the vendor's own base URL.
func (l *litellm) vendorBase(b *block, v vendor, provider string, params *section) (any, string) {
	name := strings.ToUpper(provider) + "_API_BASE"
	if value, set := l.options.env(name); set && value != "" && !hasControl(value) && len(value) < 500 {
		if u, err := url.Parse(value); err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https") && len(config.Secrets(u)) == 0 && !strings.ContainsAny(value, " \"<>\\^`{|}#") {
			if u = withoutEndpoint(u); provider == "azure" {
				u.Path, u.RawQuery = "/openai/v1", ""
			}
			l.remarkVersion(b, u)
			b.notes = append(b.notes, remark("LiteLLM takes this base URL from the environment: it is what "+name+" held when this file was written."))
			return u.String(), v.style
		}
	}
	if v.own != "" && l.options.Native {
		b.dialect = v.own
		b.notes = append(b.notes, remark("Its clients must speak "+v.own+": LiteLLM translated, understudy does not."))
		return v.ownBase, v.ownStyle
	}
	if v.base == "" {
		b.notes = append(b.notes, note{file: l.path, line: params.tree.Line, column: params.tree.Column, key: params.at("api_base"),
			why: "a base URL does not come from a variable, and " + shown(name) + " is not set now: put it here, in the place of replace-me"})
		if provider == "azure" {
			return "https://replace-me.openai.azure.com/openai/v1", v.style
		}
		return "https://replace-me.invalid/v1", v.style
	}
	if v.own != "" {
		b.notes = append(b.notes, remark(fmt.Sprintf("The vendor's endpoint for chat completions, since LiteLLM's clients speak that. For clients that speak %s: base_url %s, auth_style %s (or import with --native).", v.own, v.ownBase, v.ownStyle)))
	}
	if u, err := url.Parse(v.base); err == nil {
		l.remarkVersion(b, u)
	}
	return v.base, v.style
}

// remarkVersion tells of a base URL without a version at its end, to which a
// client's /v1 would be added.
func (l *litellm) remarkVersion(b *block, u *url.URL) {
	if versioned(u) || u.Hostname() == "replace-me.invalid" {
		return
	}
	l.unversioned = true
	b.notes = append(b.notes, remark("This base URL has no version at its end: clients leave /v1 out of theirs (http://127.0.0.1:PORT), or it gets a /v1 too many."))
}

// credential writes a deployment's key, or where it comes from.
func (l *litellm) credential(b *block, params *section, v vendor, style string) {
	key := params.text("api_key")
	switch name, ref := reference(key); {
	case ref && config.VariableName(name):
		l.keys.refer(name)
		b.set("api_key_env", name)
	case ref:
		t := params.tree.Find("api_key")
		l.problem(t.Line, t.Column, params.at("api_key"), params.at("api_key")+": no name of an environment variable behind os.environ/", "write os.environ/NAME")
	case none(key):
		b.set("auth_style", "none")
		return
	case key != "":
		want := v.env
		if want == "" {
			want = "UPSTREAM_API_KEY"
		}
		l.keys.put(b, "api_key", "api_key_env", found{config.NewSecret(key), want, l.file, params.tree.Find("api_key"), params.at("api_key")})
	case v.env == "":
		b.set("auth_style", "none")
	default:
		l.keys.refer(v.env)
		b.set("api_key_env", v.env)
	}
	if style != "" && b.get("auth_style") == nil {
		b.set("auth_style", style)
	}
}

// none reports what people write where an upstream wants no key.
func none(key string) bool {
	switch strings.ToLower(key) {
	case "none", "empty", "null", "no-key", "not-needed":
		return true
	}
	return false
}

// wildcard reads a deployment of many models. "*" is the pool; others have no
// counterpart.
func (l *litellm) wildcard(b *block, g *group, params *section, provider, rest string, u any, style string, v vendor) bool {
	if g.name != "*" || rest != "*" {
		g.notes = append(g.notes, params.missing("model", "a virtual model has one name: write one for each model you use, or a pool (model_name \"*\") for all others"))
		l.drop(params)
		return false
	}
	if l.pool == nil {
		l.pool = &block{notes: []note{remark("LiteLLM's \"*\": every model that is no virtual model, under the name that the client sends.")}}
	}
	for _, up := range l.upstream {
		if up.get("base_url") != u {
			l.pool.notes = append(l.pool.notes, params.missing("model", "a pool's members are equals, so this other provider is left out: give its models virtual models"))
			l.drop(params)
			return false
		}
	}
	b.set("id", fmt.Sprintf("%s-%d", shown(provider), len(l.upstream)+1))
	b.set("base_url", u)
	l.credential(b, params, v, style)
	l.upstream = append(l.upstream, b)
	return true
}

// tuning writes limits, times and headers of a deployment.
func (l *litellm) tuning(b *block, params, outer *section) {
	for _, limit := range []struct{ theirs, ours string }{{"rpm", "rpm"}, {"tpm", "tpm"}, {"max_parallel_requests", "max_parallel"}} {
		for _, s := range []*section{params, outer} {
			if v, ok := s.whole(limit.theirs, 0, maxCount); ok {
				b.set(limit.ours, v)
			}
		}
	}
	if v, ok := params.number("weight"); ok && v > 0 && v <= 1e6 {
		b.set("weight", v)
	}
	timeout, ok := seconds(params, "timeout")
	if ok {
		b.set("nonstream_timeout", timeout)
		b.set("stream_timeout", timeout)
	}
	if v, ok := seconds(params, "stream_timeout"); ok {
		b.set("stream_timeout", v)
	}
	owner := "UPSTREAM"
	if name, ok := b.get("name").(string); ok {
		owner = name
	}
	l.keys.headers(b, params, "extra_headers", owner)
	if org := params.text("organization"); org != "" {
		if name, ok := reference(org); ok && config.VariableName(name) {
			l.keys.refer(name)
			b.setHeader("header_env", "OpenAI-Organization", name)
		} else if !ok {
			b.setHeader("headers", "OpenAI-Organization", org)
		}
	}
}

func (b *block) setHeader(key, name string, value any) {
	headers, ok := b.get(key).(*block)
	if !ok {
		headers = &block{}
		b.set(key, headers)
	}
	headers.set(name, value)
}

// maxCount bounds limits.
const maxCount = 1_000_000_000

// seconds is a key's time, more than 0 and at most a day.
func seconds(s *section, key string) (float64, bool) {
	t := s.tree.Find(key)
	v, ok := s.number(key)
	if !ok {
		return 0, false
	}
	if v < 0.001 || v > 86400 {
		s.problem(t.Line, t.Column, s.at(key), s.at(key)+": out of range", "write more than 0 seconds, at most a day")
		return 0, false
	}
	return v, true
}
