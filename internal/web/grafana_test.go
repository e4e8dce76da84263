package web

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"understudy/internal/stats"
)

var metricName = regexp.MustCompile(`understudy_[a-z0-9_]+`)

// families are all that a View may give.
var families = []*family{
	buildFamily, uptimeFamily, reloadFamily, loadedFamily, targetFamily, requestsFamily, apartFamily, flightFamily, heldFamily, heldMaxFamily, heldLineFamily, heldShutFamily, rushFamily, turnedFamily, archiveFamily, entriesFamily, droppedFamily,
	storeFamily, storeOthersFamily, storeWaitingFamily, storeDroppedFamily, storeAloneFamily,
	modelRequestsFamily, modelFlightFamily, modelTokensFamily, modelLatencyFamily, modelFirstFamily,
	infoFamily, attemptsFamily, failuresFamily, candidateFlightFamily, waitingFamily, stateFamily, leftFamily, freezesFamily, hedgesFamily, streakFamily, tokensFamily,
}

// The dashboard and the alerts that we ship ask for metrics that there are: Grafana
// shows an empty panel for any other, and an alert on it never fires.
func TestGrafanaAndAlertsAskForMetricsThatThereAre(t *testing.T) {
	there := map[string]bool{}
	for _, f := range families {
		name := f.name
		there[name] = true
		if name == "understudy_virtual_model_latency_seconds" || name == "understudy_virtual_model_first_content_seconds" {
			there[name+"_bucket"] = true
		}
	}
	var board struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../examples/grafana/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, p := range board.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("a panel without a title, a description or a question: %+v", p)
		}
		for _, target := range p.Targets {
			asked = append(asked, target.Expr)
		}
	}
	asked = append(asked, string(text[strings.Index(string(text), `"templating"`):]))
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	text, err = os.ReadFile("../../examples/grafana/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	for _, r := range alerts.Groups[0].Rules {
		if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("an alert that says too little: %+v", r)
		}
		asked = append(asked, r.Expr)
	}
	if len(asked) < 20 {
		t.Fatalf("only %d questions", len(asked))
	}
	for _, question := range asked {
		for _, name := range metricName.FindAllString(question, -1) {
			if !there[name] {
				t.Errorf("no metric %s, which is asked for in %s", name, question)
			}
		}
	}
}

func TestFailuresByClassAndSpreadsOfTimes(t *testing.T) {
	r := newRig(t, models)
	id := string(r.proxy.Snapshot().Routes.Chains()[0].Tiers[0][0].ID)
	start := time.Now()
	r.book(stats.Record{ID: "x", Model: "auto", Start: start, End: 3 * time.Second, FirstContent: 300 * time.Millisecond, Ending: stats.Success, Winner: 1, Usage: stats.NoUsage(), Tries: []stats.Try{
		{Candidate: id, Start: start, Verdict: stats.Failed, Class: "429", Usage: stats.NoUsage()}, {Candidate: id, Start: start, Verdict: stats.Failed, Class: "network", Usage: stats.NoUsage()}}})
	page := text(t, r.ask("GET", "/metrics", ""))
	for _, want := range []string{
		`understudy_candidate_failures_total{candidate="a",class="429",id="` + id + `",model="m"} 1`,
		`understudy_candidate_failures_total{candidate="a",class="network",id="` + id + `",model="m"} 1`,
		`understudy_virtual_model_latency_seconds_bucket{virtual_model="auto",le="2.5"} 0`,
		`understudy_virtual_model_latency_seconds_bucket{virtual_model="auto",le="5"} 1`,
		`understudy_virtual_model_latency_seconds_sum{virtual_model="auto"} 3`,
		`understudy_virtual_model_first_content_seconds_bucket{virtual_model="auto",le="0.5"} 1`,
		`understudy_virtual_model_first_content_seconds_count{virtual_model="auto"} 1`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
}
