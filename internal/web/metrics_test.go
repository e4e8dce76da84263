package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

func TestMetricsAreThoseOfTheView(t *testing.T) {
	r := newRig(t, models)
	a, b := r.proxy.Snapshot().Routes.Chains()[0].Tiers[0][0].ID, r.proxy.Snapshot().Routes.Chains()[0].Tiers[1][0].ID
	record := success("x")
	record.Tries[0].Candidate = string(a)
	r.book(record)
	r.book(record)
	r.book(stats.Record{ID: "y", Model: "auto", Start: time.Now(), Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage()})
	r.book(stats.Record{ID: "z", Start: time.Now(), Winner: -1, Ending: stats.Refused, Usage: stats.NoUsage()})
	r.proxy.Ledger().Enter("auto")
	r.proxy.Board().Freeze(proxy.Key(b), health.Freeze{Length: time.Hour, By: health.Streak}, time.Now())
	r.proxy.Target().Set(true)

	labels := `candidate="<script>alert(1)</script>",id="` + string(b) + `",model="n"`
	want := `
# HELP understudy_requests_total Finished client requests that a chain had a say in, by how they ended.
# TYPE understudy_requests_total counter
understudy_requests_total{ending="broken"} 0
understudy_requests_total{ending="client_cancelled"} 0
understudy_requests_total{ending="empty"} 0
understudy_requests_total{ending="exhausted"} 1
understudy_requests_total{ending="passed_through"} 0
understudy_requests_total{ending="success"} 2
# HELP understudy_requests_in_flight Client requests under way.
# TYPE understudy_requests_in_flight gauge
understudy_requests_in_flight 1
# HELP understudy_requests_uncounted_total Requests in no other figure: to ignored endpoints, or refused before any chain was asked.
# TYPE understudy_requests_uncounted_total counter
understudy_requests_uncounted_total{kind="ignored"} 0
understudy_requests_uncounted_total{kind="refused"} 1
# HELP understudy_target_mode 1 while target mode is on.
# TYPE understudy_target_mode gauge
understudy_target_mode 1
# HELP understudy_config_last_reload_successful 1 if the configuration file as it stands is in force, 0 if it could not be read.
# TYPE understudy_config_last_reload_successful gauge
understudy_config_last_reload_successful 1
# HELP understudy_virtual_model_tokens_total Tokens that the winning answers reported; absent where none did.
# TYPE understudy_virtual_model_tokens_total counter
understudy_virtual_model_tokens_total{kind="input",virtual_model="auto"} 200
understudy_virtual_model_tokens_total{kind="output",virtual_model="auto"} 40
understudy_virtual_model_tokens_total{kind="total",virtual_model="auto"} 240
# HELP understudy_candidate_info Always 1; says which identity stands where.
# TYPE understudy_candidate_info gauge
understudy_candidate_info{candidate="a",id="` + string(a) + `",index="1",virtual_model="auto"} 1
understudy_candidate_info{candidate="<script>alert(1)</script>",id="` + string(b) + `",index="2",virtual_model="auto"} 1
understudy_candidate_info{candidate="the same as a",id="` + string(a) + `",index="1",virtual_model="other"} 1
# HELP understudy_candidate_attempts_total Attempts by what they turned out to be, per identity.
# TYPE understudy_candidate_attempts_total counter
understudy_candidate_attempts_total{candidate="a",id="` + string(a) + `",model="m",verdict="abandoned"} 0
understudy_candidate_attempts_total{candidate="a",id="` + string(a) + `",model="m",verdict="empty"} 0
understudy_candidate_attempts_total{candidate="a",id="` + string(a) + `",model="m",verdict="failed"} 0
understudy_candidate_attempts_total{candidate="a",id="` + string(a) + `",model="m",verdict="ok"} 2
understudy_candidate_attempts_total{` + labels + `,verdict="abandoned"} 0
understudy_candidate_attempts_total{` + labels + `,verdict="empty"} 0
understudy_candidate_attempts_total{` + labels + `,verdict="failed"} 0
understudy_candidate_attempts_total{` + labels + `,verdict="ok"} 0
# HELP understudy_candidate_auto_hedges_total How often a streak of failures froze it.
# TYPE understudy_candidate_auto_hedges_total counter
understudy_candidate_auto_hedges_total{candidate="a",id="` + string(a) + `",model="m"} 0
understudy_candidate_auto_hedges_total{` + labels + `} 1
# HELP understudy_candidate_state 1 for the state a candidate is in: ready, frozen, probation or disabled.
# TYPE understudy_candidate_state gauge
understudy_candidate_state{candidate="a",id="` + string(a) + `",model="m",state="disabled"} 0
understudy_candidate_state{candidate="a",id="` + string(a) + `",model="m",state="frozen"} 0
understudy_candidate_state{candidate="a",id="` + string(a) + `",model="m",state="probation"} 0
understudy_candidate_state{candidate="a",id="` + string(a) + `",model="m",state="ready"} 1
understudy_candidate_state{` + labels + `,state="disabled"} 0
understudy_candidate_state{` + labels + `,state="frozen"} 1
understudy_candidate_state{` + labels + `,state="probation"} 0
understudy_candidate_state{` + labels + `,state="ready"} 0
`
	page := text(t, r.ask("GET", "/metrics", ""))
	for line := range strings.Lines(want) {
		if !strings.Contains(page, line) {
			t.Errorf("missing: %s", line)
		}
	}
	// Of every series that is wanted, all are.
	for line := range strings.Lines(page) {
		name, _, _ := strings.Cut(line, "{")
		if !strings.HasPrefix(line, "#") && strings.Contains(want, "\n"+name+"{") && !strings.Contains(want, line) {
			t.Errorf("unwanted: %s", line)
		}
	}
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Error(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "understudy_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

// A scrape must never fail, whatever names a configuration holds, and labels must
// never come from requests.
func TestMetricsAreBounded(t *testing.T) {
	var config strings.Builder
	config.WriteString("virtual_models:\n")
	long := strings.Repeat("long", 80)
	for i := range 40 {
		// Names that differ only behind what is shown of them.
		fmt.Fprintf(&config, "  \"%s%d\":\n", long, i)
		for j := range 30 {
			fmt.Fprintf(&config, "    - {name: same, base_url: \"http://127.0.0.1:%d\", auth_style: none, model: m}\n", 1000+i*30+j)
		}
	}
	fmt.Fprintf(&config, "  few:\n")
	for j := range 3000 {
		fmt.Fprintf(&config, "    - {name: n%d, base_url: \"http://127.0.0.2:%d\", auth_style: none, model: m}\n", j, j+1)
	}
	r := newRig(t, config.String())
	for i := range 200 {
		name := fmt.Sprintf("asked-for-%d", i)
		r.book(stats.Record{ID: name, Model: name, Path: "/" + name, Start: time.Now(), Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage()})
	}
	a := r.ask("GET", "/metrics", "")
	page := text(t, a)
	if a.StatusCode != 200 || !strings.Contains(page, "go_goroutines") || !strings.Contains(page, "understudy_build_info{version=\"1.2.3\"} 1") {
		t.Errorf("%d %.200s", a.StatusCode, page)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(page)); err != nil {
		t.Error(err)
	}
	known, series := map[string]bool{}, 0
	for _, f := range families {
		known[f.name] = true
	}
	seen := map[string]bool{}
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "# TYPE understudy_"); ok && !known["understudy_"+strings.Fields(name)[0]] {
			t.Errorf("a family that no test knows: %s", line)
		}
		if !strings.HasPrefix(line, "understudy_") {
			continue
		}
		id := line[:strings.LastIndexByte(line, ' ')]
		if seen[id] {
			t.Errorf("twice: %s", line)
		}
		if seen[id] = true; !strings.Contains(id, "_bucket{") {
			series++
		}
		if strings.Contains(line, "asked-for") {
			t.Errorf("a label from a request: %s", line)
		}
	}
	if series > 14*maxMetricCandidates+10*maxMetricModels+50 {
		t.Errorf("%d series", series)
	}
}
