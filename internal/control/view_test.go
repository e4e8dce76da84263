package control

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/route"
	"understudy/internal/stats"
)

const small = `
virtual_models:
  auto:
    - {name: a, base_url: "http://127.0.0.1:9001", auth_style: none, model: m}
    - {name: b, base_url: "http://127.0.0.1:9002", auth_style: none, model: n}
`

const full = `
server:
  metrics_window_minutes: 15
  max_held_bytes: 512 MiB
pool:
  cooldown_seconds: 10
  rules:
    - {match: {status: 404}, action: passthrough}
upstream:
  - {id: primary, base_url: "https://primary.example.com", header_env: {authorization: UNDERSTUDY_TEST_NOT_SET}, weight: 2}
virtual_models:
  auto-strong:
    - name: Direct API
      base_url: https://user:hunter2hunter2@api.openai.com/v1?key=abcdefgh12345678&v=1
      api_key: sk-proj-abcdefghijklmnop1234
      model: gpt-4o
      stall_timeout: 30
      headers: {x-client: lingtai-is-the-client}
      max_parallel: 3
      rpm: 60
    - any_of:
        - {name: Claude, base_url: "https://api.anthropic.com", api_key_env: UNDERSTUDY_TEST_NOT_SET, model: claude-sonnet-4-5, auth_style: x-api-key}
        - {upstream: primary, model: big, enabled: false}
  held:
    delivery: complete
    candidates:
      - {name: the same, base_url: "https://api.anthropic.com/", api_key_env: UNDERSTUDY_TEST_NOT_SET, model: claude-sonnet-4-5, auth_style: x-api-key}
    rules:
      - {match: {status: [529, network], fault: capacity}, action: retry, max_attempts: 2}
rules:
  - {name: weekly, match: {body_regex: '(\d+) hours'}, action: freeze, freeze_from_group: 1, freeze_unit: hours}
`

// candidate finds one in force by its chain and index.
func (r *rig) candidate(vm string, index int) *route.Candidate {
	r.t.Helper()
	for _, chain := range r.handler.Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				if chain.Model == vm && tier[i].Index == index {
					return &tier[i]
				}
			}
		}
	}
	r.t.Fatalf("no candidate %d in %s", index, vm)
	return nil
}

// happen books requests of every sort; the last one's id is req-4.
func (r *rig) happen() {
	ledger, now := r.handler.Ledger(), time.Now()
	direct, claude := string(r.candidate("auto-strong", 1).ID), string(r.candidate("auto-strong", 2).ID)
	good := stats.Try{Candidate: claude, Name: "Claude", Model: "claude-sonnet-4-5", Start: now.Add(-2 * time.Second), Header: 100 * time.Millisecond,
		FirstContent: 400 * time.Millisecond, Released: 500 * time.Millisecond, End: 1500 * time.Millisecond, Verdict: stats.OK, Status: 200,
		Usage: stats.Usage{Input: 100, Output: 20, Cached: 50, CacheWrite: -1, Reasoning: -1, Total: 120}, Bytes: 900}
	bad := stats.Try{Candidate: direct, Name: "Direct API", Model: "gpt-4o", Start: now.Add(-3 * time.Second), Header: 200 * time.Millisecond,
		End: 250 * time.Millisecond, Verdict: stats.Failed, Status: 429, Class: "429", Fault: "rate", Rule: "built-in rate", Action: "retry",
		Text: "429: slow down", Wait: 2 * time.Second, Froze: 7 * time.Second, Usage: stats.NoUsage()}
	record := stats.Record{ID: "req-1", Model: "auto-strong", Method: "POST", Path: "/v1/chat/completions", Dialect: "openai", Stream: true,
		Start: now.Add(-3 * time.Second), Released: 1500 * time.Millisecond, FirstContent: 1400 * time.Millisecond, End: 2500 * time.Millisecond,
		Status: 200, Tries: []stats.Try{bad, good}, Winner: 1, Ending: stats.Success, Usage: good.Usage, Bytes: 900}
	add := func(r stats.Record) {
		ledger.Enter(r.Model)
		ledger.Add(r)
	}
	add(record)
	add(stats.Record{ID: "req-2", Model: "auto-strong", Client: "ci", Method: "POST", Path: "/v1/messages", Dialect: "anthropic", Start: now.Add(-time.Second),
		End: time.Second, Status: 502, Tries: []stats.Try{bad}, Skips: []stats.Skip{{Candidate: claude, Name: "Claude", Reason: "frozen", Left: 90 * time.Second}},
		Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage()})
	add(stats.Record{ID: "req-3", Model: "*", Method: "POST", Path: "/v1/embeddings", Dialect: "openai", Start: now.Add(-time.Second), End: time.Second,
		Winner: -1, Ending: stats.Cancelled, Usage: stats.NoUsage()})
	add(stats.Record{ID: "req-4", Method: "GET", Path: "/nothing", Dialect: "openai", Start: now, Status: 404, Winner: -1, Ending: stats.Refused, Usage: stats.NoUsage()})
	ledger.Enter("auto-strong") // and one is under way

	board := r.handler.Board()
	lease, _, _ := board.Acquire(proxy.Key(r.candidate("auto-strong", 1).ID), now, false)
	lease.Settle(health.Failed, now, health.Strike{Counts: true, Error: "429: slow down"})
	board.Acquire(proxy.Key(r.candidate("auto-strong", 1).ID), now, false) // in flight
	board.Freeze(proxy.Key(r.candidate("auto-strong", 2).ID), health.Freeze{Length: 90*time.Second + time.Millisecond, Reason: "rule weekly: 429", By: health.Rule}, now)
	board.Freeze(proxy.Key(r.candidate("*", 1).ID), health.Freeze{Since: now.Add(-time.Minute), Length: time.Second, Reason: "cooldown", By: health.Rule}, now)
}

func TestViewAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", full)
		time.Sleep(90 * time.Minute) // so that something is old
		r.happen()
		time.Sleep(2 * time.Second)
		r.handler.Target().Set(true)
		r.status.NeedsRestart, r.status.Warnings, r.status.Hash = []string{"port"}, []string{"understudy.yaml:1:1: a warning"}, "c0ffee"
		v := r.View()
		// The whole day and all windows would be most of the file.
		shorten := func(h *History, w *[]Window) {
			*w = (*w)[:2]
			h.States, h.Successes, h.Failures = h.States[len(h.States)-2:], h.Successes[len(h.Successes)-2:], h.Failures[len(h.Failures)-2:]
		}
		for i := range v.Models {
			shorten(&v.Models[i].History, &v.Models[i].Windows)
			for j := range v.Models[i].Candidates {
				shorten(&v.Models[i].Candidates[j].History, &v.Models[i].Candidates[j].Windows)
			}
		}
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(string(text), strings.TrimSuffix(r.path, "understudy.yaml"), "") + "\n"
		expect(t, "testdata/view.json", got)
	})
}

// TestViewHasWhatIsPromised checks the names that other programs rely on.
func TestViewHasWhatIsPromised(t *testing.T) {
	r := newRig(t, "understudy.yaml", full)
	r.run("freeze add held 1 600")
	text, err := json.Marshal(r.View())
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	within := func(v any, steps ...any) map[string]any {
		for _, s := range steps {
			switch s := s.(type) {
			case string:
				v = v.(map[string]any)[s]
			case int:
				v = v.([]any)[s]
			}
		}
		return v.(map[string]any)
	}
	for _, test := range []struct {
		at   map[string]any
		keys string
	}{
		{v, "version uptime_seconds config target_mode totals virtual_models freezes rules"},
		{within(v, "config"), "path loaded_at error"},
		{within(v, "totals"), "requests exhausted in_flight client_cancelled"},
		{within(v, "virtual_models", 0), "name delivery rpm tpm candidates"},
		{within(v, "virtual_models", 0, "candidates", 0), "index tier name model base_url state seconds_left reason in_flight requests successes failures " +
			"freezes hedged consecutive_failures last_error input_tokens output_tokens cached_tokens total_tokens"},
		{within(v, "freezes", 0), "virtual_model candidate model reason seconds_left"},
	} {
		for _, key := range strings.Fields(test.keys) {
			if _, ok := test.at[key]; !ok {
				t.Errorf("%s is missing in %v", key, test.at)
			}
		}
	}
	if n := within(v, "virtual_models", 2)["name"]; n != "*" {
		t.Errorf("the pool is named %v", n)
	}
	if n := within(v, "virtual_models", 2, "candidates", 0)["name"]; n != "primary" {
		t.Errorf("its upstream is named %v", n)
	}
	if n := within(v, "virtual_models", 0, "candidates", 0)["input_tokens"]; n != nil {
		t.Errorf("unknown tokens are %v", n)
	}
	if n := len(v["freezes"].([]any)); n != 2 {
		t.Errorf("%d freezes, want one per virtual model that holds the identity", n)
	}
}

// TestNoSecretIsReachable walks the types of all that is shown: only plain values,
// so that nothing of a configuration or of live state can be reached.
func TestNoSecretIsReachable(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type, string)
	walk = func(at reflect.Type, path string) {
		if at == reflect.TypeFor[time.Time]() || seen[at] {
			return
		}
		seen[at] = true
		switch at.Kind() {
		case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64, reflect.String:
		case reflect.Slice:
			walk(at.Elem(), path+"[]")
		case reflect.Pointer:
			switch e := at.Elem(); {
			case e == reflect.TypeFor[time.Time](), e.Kind() == reflect.Int64, e.Kind() == reflect.Float64:
			case e == reflect.TypeFor[Evidence]():
				walk(e, path)
			default:
				t.Errorf("%s points to a %s", path, e)
			}
		case reflect.Struct:
			if pkg := at.PkgPath(); pkg != reflect.TypeFor[View]().PkgPath() {
				t.Errorf("%s is a %s", path, at)
			}
			for f := range at.Fields() {
				if !f.IsExported() {
					t.Errorf("%s.%s is hidden", path, f.Name)
				}
				walk(f.Type, path+"."+f.Name)
			}
		default:
			t.Errorf("%s is a %s", path, at)
		}
	}
	walk(reflect.TypeFor[View](), "View")
	walk(reflect.TypeFor[Requests](), "Requests")
	walk(reflect.TypeFor[Output](), "Output")
	if seen[reflect.TypeFor[config.Secret]()] {
		t.Error("a secret is reachable")
	}
}

func TestNothingShownHoldsASecret(t *testing.T) {
	secrets := map[string]string{
		"literal": "sk-literal-abcdefghijklmnop1234", "variable": "sk-variable-abcdefghijklmnop1234", "header": "sk-header-abcdefghijklmnop1234",
		"header's variable": "Bearer sk-headenv-abcdefghijklmnop1234", "password": "pass-abcdefghijklmnop1234", "query": "query-abcdefghijklmnop1234",
		"admin": "admin-abcdefghijklmnop1234", "client": "client-abcdefghijklmnop1234",
	}
	t.Setenv("UNDERSTUDY_TEST_KEY", secrets["variable"])
	t.Setenv("UNDERSTUDY_TEST_HEADER", secrets["header's variable"])
	all := func(prefix string) string {
		text := prefix
		for _, what := range slices.Sorted(maps.Keys(secrets)) {
			text += " " + strings.TrimPrefix(secrets[what], "Bearer ")
		}
		return text
	}
	quote := func(s string) string { return `"` + s + `"` }
	r := newRig(t, "understudy.yaml", `
server: {admin_token: `+secrets["admin"]+`}
clients: [{name: c, key: `+secrets["client"]+`}]
virtual_models:
  `+quote(all("vm"))+`:
    candidates:
      - name: `+quote(all("name"))+`
        base_url: https://user:`+secrets["password"]+`@example.com/v1?api_key=`+secrets["query"]+`
        api_key: `+secrets["literal"]+`
        model: `+quote(all("model"))+`
        headers: {authorization: `+secrets["header"]+`}
      - {name: b, base_url: "https://example.com", api_key_env: UNDERSTUDY_TEST_KEY, model: m, header_env: {x-api-key: UNDERSTUDY_TEST_HEADER}}
      - {name: c, base_url: "https://example.com", auth_style: none, model: m}
    rules:
      - {name: `+quote(all("rule"))+`, match: {body_regex: `+quote(all("regex"))+`}, action: next}
`)
	vm := all("vm")
	c := r.candidate(vm, 1)
	r.handler.Board().Freeze(proxy.Key(c.ID), health.Freeze{Length: time.Minute, Reason: all("reason"), By: health.Rule}, time.Now())
	lease := r.handler.Board().Seize(proxy.Key(c.ID), time.Now())
	lease.Settle(health.Failed, time.Now(), health.Strike{Counts: true, Error: all("error \x1b[31m\u202e")})
	r.handler.Ledger().Enter(vm)
	r.handler.Ledger().Add(stats.Record{ID: "req", Model: vm, Path: all("/path"), Start: time.Now(), Winner: 0, Ending: stats.Broken, Usage: stats.NoUsage(),
		Strategy: "order", Plan: []stats.Planned{{Candidate: string(c.ID), Name: all("name"), Model: all("model"), Tier: 1}},
		Tries: []stats.Try{{Candidate: string(c.ID), Name: all("name"), Model: all("model"), Verdict: stats.Failed, Text: all("text"), Rule: all("rule"),
			Failure: &stats.Failure{Kind: "status", Code: all("code"), Message: all("message"), Account: all("account"), Body: all("body")}}},
		Skips: []stats.Skip{{Name: all("name"), Reason: all("reason")}}})
	r.status.Error, r.status.Warnings = all("error"), []string{all("warning")}

	var shown bytes.Buffer
	request, _ := r.Request("req")
	for _, v := range []any{r.View(), r.Requests(Query{}), request} {
		if err := json.NewEncoder(&shown).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	name := "'" + vm + "'"
	for _, line := range []string{
		"vm", "cand ls", "rule ls", "rule ls " + name, "freeze ls", "stats", "stats " + name, "cand ls " + name, "target on", "help", "save", "set",
		"freeze add " + name + " 1 60 '" + all("because") + "'", "freeze rm " + name + " 1", "freeze rm " + name + " 9", "freeze rm nobody 1", "freeze rm " + name + " '" + all("") + "'",
		"cand set " + name + " 1 weight 2", "cand set " + name + " 1 api_key " + secrets["literal"], "cand set " + name + " 2 headers.x-key " + secrets["header"],
		"cand set " + name + " 1 base_url https://u:" + secrets["password"] + "@example.com?key=" + secrets["query"],
		"cand mv " + name + " 1 2", "cand rm " + name + " 3", "cand rm " + name + " 3", "rule rm " + name + " 1", "vm rm " + name,
		"cand add " + name + " api_key=" + secrets["literal"] + " base_url=nonsense", secrets["literal"], "set " + secrets["admin"] + " 4", "cand " + secrets["client"],
		"cand add " + name + " api_kei=" + secrets["literal"], "cand add " + name + " " + secrets["variable"], `cand add ` + name + ` {"a": "` + secrets["literal"] + `"}`,
	} {
		shown.WriteString(r.run(line) + "\n")
	}
	shown.WriteString(r.log.String())
	for what, s := range secrets {
		s = strings.TrimPrefix(s, "Bearer ")
		if at := strings.Index(shown.String(), s); at >= 0 {
			t.Errorf("the %s is shown: …%s…", what, shown.String()[max(0, at-200):min(shown.Len(), at+60)])
		}
	}
	if strings.ContainsAny(shown.String(), "\x1b\u202e") {
		t.Error("a control character is shown")
	}
	if !strings.Contains(shown.String(), "sk-lit***1234") {
		t.Error("the key's mask is not shown")
	}
}

func TestStateOfACandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", small)
		state := func() (string, int64) {
			c := r.View().Models[0].Candidates[0]
			return c.State, c.SecondsLeft
		}
		check := func(want string, left int64) {
			t.Helper()
			if got, n := state(); got != want || n != left {
				t.Errorf("%s with %d s left, want %s with %d", got, n, want, left)
			}
		}
		check(StateReady, 0)
		r.run("freeze add auto 1 10")
		check(StateFrozen, 10)
		time.Sleep(9*time.Second + 500*time.Millisecond)
		check(StateFrozen, 1)
		time.Sleep(500 * time.Millisecond)
		check(StateProbation, 0)
		r.run("freeze rm auto 1")
		check(StateReady, 0)
		r.run("freeze add auto 1 10")
		r.run("cand set auto 1 enabled false")
		check(StateDisabled, 10)
	})
}

func TestWindowsAndHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", full)
		time.Sleep(90 * time.Minute)
		r.happen()
		time.Sleep(20 * time.Minute)
		m := r.View().Models[0]
		var got []string
		for _, w := range m.Windows {
			got = append(got, w.Span+" "+count(w.Requests)+" "+percent(w.SuccessRate)+" "+duration(w.Latency.Avg)+" "+known(w.Input, w.Incomplete))
		}
		want := "all 2 50.0% 2.5s 100; 6h 2 50.0% 2.5s 100; 1h 2 50.0% 2.5s 100; 30m 2 50.0% 2.5s 100; 10m 0 - - ?"
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("windows are %s, want %s", text, want)
		}
		if n := len(m.History.States); n != 144 || m.History.States[140] != "ok" || m.History.States[141] != "failing" || m.History.States[143] != "idle" || m.History.CellSeconds != 600 {
			t.Errorf("%d cells of %d s that end with %v", n, m.History.CellSeconds, m.History.States[140:])
		}
		if m.AvgLatency != nil {
			t.Errorf("an average of %v over a window of 15 minutes in which nothing happened", *m.AvgLatency)
		}
	})
}
