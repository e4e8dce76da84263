package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

const schemaFile = "../../docs/understudy.schema.json"

// schemaOf compiles the schema. What it returns gives a part of it by its pointer, ""
// for the whole.
func schemaOf(t *testing.T) func(pointer string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:schema", doc); err != nil {
		t.Fatal(err)
	}
	return func(pointer string) *jsonschema.Schema {
		t.Helper()
		s, err := c.Compile("mem:schema#" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestSchemaFile: docs/understudy.schema.json is the schema. With -update it is
// written.
func TestSchemaFile(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(JSONSchema())); diff != "" {
		t.Errorf("run go test -update (-file +schema):\n%s", diff)
	}
}

// TestSchemaDefaults: every default in the schema is a value that its own key takes,
// and what Parse fills in where the key is missing.
func TestSchemaDefaults(t *testing.T) {
	var whole struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Description string
				Default     json.RawMessage
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(JSONSchema(), &whole); err != nil {
		t.Fatal(err)
	}
	defaults, part := 0, schemaOf(t)
	for def, s := range whole.Defs {
		for name, p := range s.Properties {
			if p.Description == "" || strings.HasPrefix(p.Description, "As in") {
				t.Errorf("%s of %s: hovering says nothing: %q", name, def, p.Description)
			}
			if p.Default == nil {
				continue
			}
			defaults++
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(p.Default))
			if err != nil {
				t.Fatal(err)
			}
			if err := part("/$defs/" + def + "/properties/" + name).Validate(v); err != nil {
				t.Errorf("the default of %s of %s: %v", name, def, err)
			}
		}
	}
	if defaults < 50 {
		t.Errorf("%d defaults", defaults)
	}
	plain := parsed(t, YAML, "virtual_models: {a: [{base_url: https://h, model: m, auth_style: none}]}")
	var file strings.Builder
	file.WriteString("virtual_models: {a: [{base_url: https://h, model: m, auth_style: none}]}\nserver:\n")
	for name, p := range whole.Defs["server"].Properties {
		if p.Default != nil {
			fmt.Fprintf(&file, "  %s: %s\n", name, p.Default)
		}
	}
	if diff := cmp.Diff(plain.Server, parsed(t, YAML, file.String()).Server, sameConfig); diff != "" {
		t.Errorf("server (-without +with the schema's defaults):\n%s", diff)
	}
}

// onlyParse is what the schema cannot say and Parse alone knows: its problem, and a
// file that the schema takes and Parse does not.
var onlyParse = []struct {
	doc     string // how docs/configuration.md puts it
	problem string // a pattern for what is wrong
	yaml    string
}{
	{"a regular expression is one RE2 takes", `^(bad regular expression|look-around|a back-reference)`, "rules: [{match: {body_regex: '('}, action: next}]"},
	{"at most 16 KiB long", `^a pattern of more than 16 KiB`, "rules: [{match: {body_regex: '" + strings.Repeat("x", maxRegex+1) + "'}, action: next}]"},
	{"has the group that `freeze_from_group` names", `^body_regex has no group`, "rules: [{match: {body_regex: 'a(b)'}, action: freeze, freeze_from_group: 2}]"},
	{"ids, names and keys that stand twice", `^duplicate id `, "upstream: [{id: a, base_url: https://h}, {id: a, base_url: https://i}]"},
	{"of clients", `^(duplicate client |the same key as another client's)`, "clients: [{name: a, key: k}, {name: a, key: l}]"},
	{"names and keys that stand twice", `^(duplicate client |the same key as another client's)`, "clients: [{name: a, key: k}, {name: b, key: k}]"},
	{"of headers in upper and lower case", `^duplicate header `, "virtual_models: {a: [{base_url: https://h, model: m, auth_style: none, headers: {x-a: b, X-A: c}}]}"},
	{"references: to an upstream", `^no upstream has the id `, "virtual_models: {a: [{upstream: u, model: m}]}"},
	{"the model that neither an entry nor its upstream names", `^model is missing, and its upstream`, "{upstream: [{id: u, base_url: https://h}], virtual_models: {a: [{upstream: u}]}}"},
	{"to a virtual model", `is no virtual model$`, "server: {default_model: b}"},
	{"that a URL can be read", `^(a URL without a host|a port that is none)`, "virtual_models: {a: [{base_url: 'http://', model: m, auth_style: none}]}"},
	{"its port included", `^(a URL without a host|a port that is none)`, "virtual_models: {a: [{base_url: 'http://h:70000', model: m, auth_style: none}]}"},
	{"is an IP address", `^no IP address$`, "server: {host: '1::2::3'}"},
	{"a key where the name of a variable", `^what looks like a key where`, "server: {x-: 1}\nstore: {url_env: sk_live_0123456789abcdefABCDEF}"},
	{"or a file should be", `^no path of a file$`, "virtual_models: {a: [{base_url: https://h, model: m, api_key_file: sk-live-0123456789abcdefABCDEF}]}"},
	{"the range of a time or a size written with its unit", `^(".*"|this text) is out of range$`, "virtual_models: {a: {candidates: [{base_url: https://h, model: m, auth_style: none}], hedge: {after: 0.5ms}}}"},
	{"a size written with its unit", `^a size that is out of range$`, "server: {max_body_bytes: 0 KiB}"},
	{"a whole number with a point", `^a whole number with a point$`, "server: {port: 8787.0}"},
	{"a whole number with a point", `^a whole number with a point$`, "rules: [{match: {status: 429.0}, action: next}]"},
}

// basis is what a file needs to be one.
const basis = "\nvirtual_models: {a: [{base_url: https://h, model: m, auth_style: none}]}\n"

// tree reads a file to plain values.
func tree(t *testing.T, format Format, text string) Map {
	t.Helper()
	doc := parseDocument(format, []byte(text))
	if doc.root == nil || len(doc.problems) > 0 {
		t.Fatalf("%v\n%s", doc.problems, text)
	}
	budget := maxVisits
	v, _ := plainValue(doc.root, &budget)
	return v.(Map)
}

// instance is a plain value as the schema's validator takes it.
func instance(v any) any {
	switch v := v.(type) {
	case Map:
		m := map[string]any{}
		for _, e := range v {
			m[e.Key] = instance(e.Value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = instance(v[i])
		}
		return list
	}
	return v
}

// places is a document of nothing but places.
var places = newDocument(YAML, bytes.Repeat([]byte(" \n"), 2_000))

// judge decodes plain values as if they stood in a file, each in a place of its own.
func judge(v Map) []Problem {
	doc := &document{format: YAML, src: places.src, starts: places.starts}
	at := 0
	var build func(v any) *node
	build = func(v any) *node {
		at += 2
		n := &node{outer: at, span: span{at, at + 1}}
		switch v := v.(type) {
		case nil:
		case bool:
			n.kind, n.bool = kindBool, v
		case int64:
			n.kind, n.int, n.num = kindInt, v, float64(v)
		case float64:
			n.kind, n.num = kindFloat, v
		case string:
			n.kind, n.text = kindText, v
		case []any:
			n.kind = kindList
			for _, item := range v {
				n.items = append(n.items, build(item))
			}
		case Map:
			n.kind = kindMap
			for _, e := range v {
				at += 2
				n.pairs = append(n.pairs, pair{key: e.Key, span: span{at, at + 1}, value: build(e.Value)})
			}
		default:
			panic(fmt.Sprintf("%T", v))
		}
		return n
	}
	doc.root = build(v)
	d := &decoder{doc: doc, src: Source{Path: "x.yaml"}, entries: map[string]*entry{}, syntax: map[[2]int]bool{}}
	d.config(doc.root)
	return d.sorted()
}

var onlyParsePattern = func() *regexp.Regexp {
	var all []string
	for _, o := range onlyParse {
		all = append(all, "(?:"+o.problem+")")
	}
	return regexp.MustCompile(strings.Join(all, "|"))
}()

// A rival compares the two judges of a configuration.
type rival struct {
	schema   *jsonschema.Schema
	seen     int
	refused  int
	accepted int
}

// disagree says how the judges differ about a configuration, "" if they do not: the
// schema refuses exactly what Parse refuses for a reason that is not its alone.
func (r *rival) disagree(v Map, problems []Problem) string {
	var known, alone []string
	for _, p := range problems {
		switch {
		case p.Severity != Error:
		case onlyParsePattern.MatchString(p.What):
			alone = append(alone, p.String())
		default:
			known = append(known, p.String())
		}
	}
	err := r.schema.Validate(instance(v))
	r.seen++
	switch {
	case err != nil && len(known) == 0:
		return fmt.Sprintf("the schema refuses what Parse takes (but for %v): %v", alone, err)
	case err == nil && len(known) > 0:
		return fmt.Sprintf("the schema takes what Parse refuses: %v", known)
	case err != nil:
		r.refused++
	case len(alone) == 0:
		r.accepted++
	}
	return ""
}

// TestSchemaTakesTheExamples: the schema takes every example, every template and every
// configuration in docs/configuration.md, and each part of them.
func TestSchemaTakesTheExamples(t *testing.T) {
	r := rival{schema: schemaOf(t)("")}
	for name, v := range samples(t) {
		if why := r.disagree(v, nil); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	if r.accepted < 8 {
		t.Errorf("%d examples", r.accepted)
	}
}

// samples are the configurations that the project shows.
func samples(t *testing.T) map[string]Map {
	list := map[string]Map{}
	for _, path := range []string{exampleYAML, exampleTOML, "../../examples/resilient.yaml"} {
		src := read(t, path)
		list[path] = tree(t, src.Format, string(src.Bytes))
	}
	src := read(t, exampleYAML)
	list["turned on"] = tree(t, YAML, turnedOn(string(src.Bytes)))
	for _, f := range []Format{YAML, TOML} {
		list["template "+f.String()] = tree(t, f, string(Template(f)))
		for _, purpose := range Templates {
			list["template for "+purpose+" "+f.String()] = tree(t, f, string(TemplateFor(purpose, f)))
		}
	}
	b, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range regexp.MustCompile("(?s)```(yaml|toml)\n(.*?)```").FindAllSubmatch(b, -1) {
		format, _ := FormatOf("." + string(block[1]))
		list[fmt.Sprintf("%s, example %d", reference, i+1)] = tree(t, format, string(block[2]))
	}
	return list
}

// TestSchemaKnowsAllButThis: the schema takes what only Parse can know to be wrong, and
// docs/configuration.md lists it.
func TestSchemaKnowsAllButThis(t *testing.T) {
	r := rival{schema: schemaOf(t)("")}
	doc, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(strings.Fields(string(doc)), " ")
	for _, o := range onlyParse {
		if !strings.Contains(lines, o.doc) {
			t.Errorf("%s does not say %q", reference, o.doc)
		}
		text := o.yaml
		if !strings.Contains(text, "virtual_models") && !strings.Contains(text, "upstream") {
			text += basis
		}
		v := tree(t, YAML, text)
		if err := r.schema.Validate(instance(v)); err != nil {
			t.Errorf("%s: %v", o.doc, err)
		}
		_, problems := Parse(Source{Path: "x.yaml", Format: YAML, Bytes: []byte(text)})
		found := slices.ContainsFunc(problems, func(p Problem) bool {
			return p.Severity == Error && regexp.MustCompile(o.problem).MatchString(p.What)
		})
		if !found {
			t.Errorf("%s: %v", o.doc, problems)
		}
	}
}

// The values that a mutation puts in the place of another.
var mutants = []any{
	nil, true, false, int64(0), int64(1), int64(-1), int64(4), int64(200), int64(429), int64(1000), int64(65536), int64(1 << 41),
	0.5, 1.5, 1.0, 0.0005, -0.5, 1e10, 429.0,
	"", "x", "a\nb", "a\u202eb", "on", "off", "none", "p95", "8s", "0.1ms", "1h30m", "5%", "0%", "101%", "1 KiB", "64 MiB", "5 kb", "12", "*", " x ",
	"http://h", "HTTPS://h/v1?a=b#c", "ftp://h", "socks5://h:1", "redis://h", "http://", "http:/h", "http://h h", "127.0.0.1:80", "[::1]:80", "h:99999", "::1", "[::1]",
	"/", "/a/b", "/a?b", "header:x-a", "header:x a", "body:a.b", "body:a..b", "body:", "body: a ", "retry", "network", "rate", "error_event", "GET", "warm", "failed",
	"SOME_VARIABLE", "no-variable", strings.Repeat("0a", 32), "(", "sk-live-0123456789abcdefABCDEF",
	[]any{}, []any{nil}, []any{"x"}, []any{int64(429), "network"}, []any{[]any{}}, []any{Map{}}, []any{true},
	Map{}, Map{{"x", "y"}}, Map{{"x-free", int64(1)}}, Map{{"Host", "h"}}, Map{{"x a", "y"}}, Map{{"any_of", []any{}}},
	Map{{"base_url", "https://h"}, {"model", "m"}, {"api_key", "k"}}, Map{{"upstream", "spare"}, {"model", "m"}},
}

// strangers are keys that no mapping knows, or every one takes.
var strangers = []string{"frobnicate", "x-free", ".free", "x-ai/grok", "request_timeout", "first_content_timeout", "", " a", "*", "a\x01", "<<"}

// mutate calls visit with every configuration that differs from v in one place.
func mutate(v Map, visit func(what string, changed Map)) {
	var paths [][]any
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		paths = append(paths, path)
		switch v := v.(type) {
		case Map:
			for _, e := range v {
				walk(e.Value, append(slices.Clone(path), e.Key))
			}
		case []any:
			for i := range v {
				walk(v[i], append(slices.Clone(path), i))
			}
		}
	}
	walk(v, nil)
	given := map[string]any{} // a value that each key takes somewhere
	for _, path := range paths {
		if key, ok := last(path).(string); ok {
			given[key], _ = lookUp(v, path)
		}
	}
	set := func(path []any, what string, to any) {
		if len(path) == 0 {
			if m, ok := to.(Map); ok {
				visit(what, m)
			}
			return
		}
		changed, _ := withSet(v, path, to)
		visit(fmt.Sprintf("%v: %s", path, what), changed.(Map))
	}
	for _, path := range paths {
		for _, m := range mutants {
			set(path, fmt.Sprintf("is %#v", m), m)
		}
		if len(path) > 0 {
			changed, _ := withRemoved(v, path)
			visit(fmt.Sprintf("%v is gone", path), changed.(Map))
		}
		at, _ := lookUp(v, path)
		switch at := at.(type) {
		case Map:
			for _, key := range append(slices.Sorted(maps.Keys(given)), strangers...) {
				if at.find(key) < 0 && key != "<<" {
					set(path, "has "+key, append(slices.Clone(at), Entry{key, given[key]}))
				}
			}
		case []any:
			set(path, "twice", append(slices.Clone(at), at...))
			set(path, "with nothing", append(slices.Clone(at), nil))
			if len(at) > 0 {
				set(path, "not a list", at[0])
			}
		default:
			set(path, "in a list", []any{at})
		}
	}
}

func last(path []any) any {
	if len(path) == 0 {
		return nil
	}
	return path[len(path)-1]
}

// grounds are small configurations in which together every key stands.
var grounds = []string{
	`server: {host: h, port: 1, admin: "off", websocket: on, ignored_error_endpoints: [{method: POST, path: /a}], sticky_keys: [header:a, body:a.b], cors_origins: [https://h], allowed_hosts: [h], tls_cert: c, tls_key: k, default_model: a, ownership: prefer, max_body_bytes: 64 MiB, min_chars_per_second: 1, content_timeout: 1}` + basis,
	`{virtual_models: {a: [{base_url: https://h, model: m, api_key: k, name: n, headers: {x-a: b}, header_env: {x-b: B}, proxy: none, join: plain, terminal: optional, websocket: off}, {upstream: spare, weight: 2}, {any_of: [{base_url: https://h, model: m, auth_style: none}, {upstream: spare, model: m}]}], x-anchor: 1}, upstream: [{id: spare, base_url: https://h, model: m, api_key_env: K, timeout_seconds: 5}]}`,
	`{virtual_models: {a: {candidates: [{base_url: https://h, model: m, api_key_file: f}], delivery: window, hold_ms: 5, hedge: {after: 8s, max: 2, budget: 5%}, min_chars_per_second: 1, affinity: warm, affinity_ttl: 5, rules: [{match: {status: 429}, action: next}]}}}`,
	`{pool: {retry_statuses: [429], max_attempts: 2, cooldown_seconds: 0, affinity: warm, affinity_ttl: 5, sticky_keys: [], rules: []}, upstream: [{id: a, base_url: https://h, auth_style: none}, {id: b, base_url: https://h, api_key: k}]}`,
	`{upstream: [{id: a, base_url: https://h}], rules: [{name: r, match: {status: [429, network], body_regex: 'a(b)', fault: rate}, action: freeze, freeze_from_group: 1, freeze_unit: s, freeze_seconds: 1, scope: host}, {match: {fault: [rate, quota]}, action: retry, max_attempts: 2, backoff_base: 2, max_wait: 0}]}`,
	`{clients: [{name: a, key: k, models: [a, "*"], rpm: 1, tpm: 1, max_parallel: 1}, {name: b, key_env: K}, {name: c, key_sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}], store: {url: redis://h, prefix: p}, request_log: {keep: 1, days: 0, bodies: off}, virtual_models: {a: [{base_url: https://h, model: m, auth_style: none}]}}`,
	`store: {url_env: K}` + basis,
	`store: {url_file: f, password_env: P, ca_file: c}` + basis,
	`store: {url: rediss://u@h:1/2, password_file: f}` + basis,
	`store: redis://h` + basis,
}

// TestSchemaAndParseAgree changes every value of some configurations, one at a time, in
// every way it knows: what one of the two refuses the other refuses too.
func TestSchemaAndParseAgree(t *testing.T) {
	r := rival{schema: schemaOf(t)("")}
	for _, ground := range grounds {
		v := tree(t, YAML, ground)
		if why := r.disagree(v, judge(v)); why != "" {
			t.Fatalf("%s\n%s", why, ground)
		}
		mutate(v, func(what string, changed Map) {
			if why := r.disagree(changed, judge(changed)); why != "" {
				t.Errorf("%s: %s", what, why)
			}
		})
	}
	t.Logf("%d configurations, %d taken, %d refused", r.seen, r.accepted, r.refused)
	if r.accepted < 1000 || r.refused < 5000 {
		t.Errorf("%d configurations, %d taken, %d refused: too few to say anything", r.seen, r.accepted, r.refused)
	}
}

// TestSchemaAndParseAgreeOnFiles does the same with several changes at once, in files
// of both spellings that are written and read.
func TestSchemaAndParseAgreeOnFiles(t *testing.T) {
	r := rival{schema: schemaOf(t)("")}
	var bases []Map
	for _, ground := range grounds {
		bases = append(bases, tree(t, YAML, ground))
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom(bases).Draw(t, "base")
		format := rapid.SampledFrom([]Format{YAML, TOML}).Draw(t, "format")
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			path := anyPath(t, v)
			if len(path) == 0 {
				continue
			}
			m := rapid.SampledFrom(mutants).Draw(t, "to")
			if m == nil || hasNull(m) {
				m = "x" // which TOML can write too
			}
			changed, ok := withSet(v, path, m)
			if ok {
				v = changed.(Map)
			}
		}
		s := &scribe{t: t, doc: &document{format: format, starts: []int{0}}}
		src := s.write(v)
		_, problems := Parse(src)
		if why := r.disagree(v, problems); why != "" {
			t.Fatalf("%s\n%s", why, src.Bytes)
		}
	})
}

func hasNull(v any) bool {
	list, ok := v.([]any)
	return ok && slices.ContainsFunc(list, func(v any) bool { return v == nil || hasNull(v) })
}

// TestGroundsHaveEveryKey keeps the configurations of these tests whole.
func TestGroundsHaveEveryKey(t *testing.T) {
	all := strings.Join(grounds, "\n")
	for _, s := range Schema() {
		for _, k := range s.Keys {
			if s.Path == "server" || s.Path == "virtual_models.*[]" || s.Path == "upstream[]" {
				continue // of which one of each kind is there; the others go by the example
			}
			if !regexp.MustCompile(`\b` + k.Name + `:`).MatchString(all) {
				t.Errorf("no ground has %s of %s", k.Name, s.Path)
			}
		}
	}
}

// TestAnAliasOfNothingIsNothing: an item that an alias leaves empty is a mistake like
// any other empty item.
func TestAnAliasOfNothingIsNothing(t *testing.T) {
	_, problems := Parse(Source{Path: "x.yaml", Format: YAML, Bytes: []byte("x-a: &none\nvirtual_models: {a: [*none]}\n")})
	if len(problems) == 0 || problems[0].Severity != Error {
		t.Errorf("an empty candidate by an alias: %v", problems)
	}
}
