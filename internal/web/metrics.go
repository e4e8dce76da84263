package web

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"understudy/internal/control"
)

// Limits on what one scrape gives, whatever the configuration holds. Labels come
// from the configuration only, never from requests.
const (
	maxMetricModels     = 500
	maxMetricCandidates = 1000
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("understudy_"+name, help, labels, nil)
}

var (
	buildDesc    = desc("build_info", "Always 1; the label says which build runs.", "version")
	uptimeDesc   = desc("uptime_seconds", "Time since the process began.")
	reloadDesc   = desc("config_last_reload_successful", "1 if the configuration file as it stands is in force, 0 if it could not be read.")
	loadedDesc   = desc("config_last_reload_success_timestamp_seconds", "When the configuration in force was read.")
	targetDesc   = desc("target_mode", "1 while target mode is on.")
	requestsDesc = desc("requests_total", "Finished client requests that a chain had a say in, by how they ended.", "ending")
	apartDesc    = desc("requests_uncounted_total", "Requests in no other figure: to ignored endpoints, or refused before any chain was asked.", "kind")
	heldDesc     = desc("held_bytes", "What all requests hold in memory: bodies, answers before release, events being read.")
	heldMaxDesc  = desc("held_limit_bytes", "How much all requests may hold (max_held_bytes); absent without a limit.")
	heldLineDesc = desc("held_waiting_requests", "Requests that wait for memory.")
	heldShutDesc = desc("held_refused_total", "Requests that waited for memory in vain, or asked for more than there is.")
	rushDesc     = desc("rush", "1 while more requests come than can be served, and some are turned away.")
	turnedDesc   = desc("turned_away_total", "Requests and connections turned away with 503 because more came than could be served; in no other figure.")
	flightDesc   = desc("requests_in_flight", "Client requests under way.")

	archiveDesc = desc("archive_ready", "1 while the request log on disk is written, 0 while it cannot be.")
	entriesDesc = desc("archive_entries", "Requests in the request log on disk.")
	droppedDesc = desc("archive_dropped_total", "What the request log on disk could not take: whole requests, or their bodies alone.", "kind")

	storeDesc        = desc("store_up", "1 while this instance shares with others through the store, 0 while the store is away; absent without a store.")
	storeOthersDesc  = desc("store_instances", "Instances that share the store, this one too, as far as they were heard of.")
	storeWaitingDesc = desc("store_news_waiting", "News for the other instances that could not be told yet.")
	storeDroppedDesc = desc("store_news_dropped_total", "News for the other instances that were dropped since too many waited.")
	storeAloneDesc   = desc("store_limits_alone_total", "Requests whose limits were decided by this instance's share, since the store did not answer in time.")

	modelRequestsDesc = desc("virtual_model_requests_total", "Finished client requests of a virtual model (the pool is *).", "virtual_model", "result")
	modelFlightDesc   = desc("virtual_model_requests_in_flight", "Client requests of a virtual model under way.", "virtual_model")
	modelTokensDesc   = desc("virtual_model_tokens_total", "Tokens that the winning answers reported; absent where none did.", "virtual_model", "kind")
	modelLatencyDesc  = desc("virtual_model_latency_seconds", "Latency of whole successes.", "virtual_model")
	modelFirstDesc    = desc("virtual_model_first_content_seconds", "Time to the first content of whole successes.", "virtual_model")

	infoDesc            = desc("candidate_info", "Always 1; says which identity stands where.", "virtual_model", "index", "candidate", "id")
	attemptsDesc        = desc("candidate_attempts_total", "Attempts by what they turned out to be, per identity.", "id", "candidate", "model", "verdict")
	failuresDesc        = desc("candidate_failures_total", "Failed attempts by failure class: a status, network, bad_stream, stalled_stream or timeout.", "id", "candidate", "model", "class")
	candidateFlightDesc = desc("candidate_in_flight", "Attempts under way.", "id", "candidate", "model")
	waitingDesc         = desc("candidate_waiting", "Requests that wait for room, each with every candidate that it waits for.", "id", "candidate", "model")
	stateDesc           = desc("candidate_state", "1 for the state a candidate is in: ready, frozen, probation or disabled.", "id", "candidate", "model", "state")
	leftDesc            = desc("candidate_freeze_seconds_left", "How long the running freeze still lasts; 0 without one.", "id", "candidate", "model")
	freezesDesc         = desc("candidate_freezes_total", "How often it was frozen, by whomever.", "id", "candidate", "model")
	hedgesDesc          = desc("candidate_auto_hedges_total", "How often a streak of failures froze it.", "id", "candidate", "model")
	streakDesc          = desc("candidate_consecutive_failures", "Failures in a row up to now.", "id", "candidate", "model")
	tokensDesc          = desc("candidate_tokens_total", "Tokens that its answers reported, failed ones too; absent where none did.", "id", "candidate", "model", "kind")
)

// A collector shows a View as metrics: nothing is counted a second time.
type collector struct{ control *control.Control }

// metricsHandler serves the metrics of the program and of its runtime.
func metricsHandler(c *control.Control) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{c}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return newScrape(registry)
}

// Describe lists what Collect may give.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildDesc, uptimeDesc, reloadDesc, loadedDesc, targetDesc, requestsDesc, apartDesc, flightDesc, heldDesc, heldMaxDesc, heldLineDesc, heldShutDesc, rushDesc, turnedDesc, archiveDesc, entriesDesc, droppedDesc,
		storeDesc, storeOthersDesc, storeWaitingDesc, storeDroppedDesc, storeAloneDesc,
		modelRequestsDesc, modelFlightDesc, modelTokensDesc, modelLatencyDesc, modelFirstDesc,
		infoDesc, attemptsDesc, failuresDesc, candidateFlightDesc, waitingDesc, stateDesc, leftDesc, freezesDesc, hedgesDesc, streakDesc, tokensDesc,
	} {
		out <- d
	}
}

// Collect gives the metrics of one View.
func (c collector) Collect(out chan<- prometheus.Metric) {
	v := c.control.View()
	s := sink(out)
	s.gauge(buildDesc, 1, v.Version)
	s.gauge(uptimeDesc, float64(v.UptimeSeconds))
	s.gauge(reloadDesc, flag(v.Config.Error == ""))
	if !v.Config.LoadedAt.IsZero() {
		s.gauge(loadedDesc, float64(v.Config.LoadedAt.Unix()))
	}
	s.gauge(targetDesc, flag(v.TargetMode))
	t := &v.Totals
	for ending, n := range map[string]int64{
		"success": t.Successes, "passed_through": t.PassedThrough, "empty": t.Empty,
		"exhausted": t.Exhausted, "broken": t.Broken, "client_cancelled": t.ClientCancelled,
	} {
		s.counter(requestsDesc, n, ending)
	}
	s.counter(apartDesc, t.Ignored, "ignored")
	s.counter(apartDesc, t.Refused, "refused")
	s.gauge(flightDesc, float64(t.InFlight))
	s.gauge(heldDesc, float64(v.Held.Bytes))
	if v.Held.Limit > 0 {
		s.gauge(heldMaxDesc, float64(v.Held.Limit))
	}
	s.gauge(heldLineDesc, float64(v.Held.Waiting))
	s.counter(heldShutDesc, v.Held.Refused)
	s.gauge(rushDesc, flag(v.Rush.On))
	s.counter(turnedDesc, v.Rush.TurnedAway)

	if a := &v.Archive; a.State != "" {
		s.gauge(archiveDesc, flag(a.Problem == ""))
		s.gauge(entriesDesc, float64(a.Entries))
		s.counter(droppedDesc, a.Dropped, "requests")
		s.counter(droppedDesc, a.BodiesDropped, "bodies")
	}

	if st := &v.Store; st.State != "" {
		s.gauge(storeDesc, flag(st.State == control.StoreShared))
		s.gauge(storeOthersDesc, float64(len(st.Instances)))
		s.gauge(storeWaitingDesc, float64(st.Waiting))
		s.counter(storeDroppedDesc, st.Dropped)
		s.counter(storeAloneDesc, st.Alone)
	}

	// Names are shown shortened, so that two of them may come out as one.
	models, places, identities := map[string]bool{}, 0, map[string]bool{}
	for i := range v.Models {
		m := &v.Models[i]
		if models[m.Name] || len(models) == maxMetricModels {
			continue
		}
		models[m.Name] = true
		s.model(m)
		for j := range m.Candidates {
			k := &m.Candidates[j]
			if places++; places > maxMetricCandidates {
				break
			}
			s.info(m, k)
			if !identities[k.Identity] {
				identities[k.Identity] = true
				s.candidate(k)
			}
		}
	}
}
