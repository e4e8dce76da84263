package web

import "understudy/internal/control"

// Limits on what one scrape gives, whatever the configuration holds. Labels come
// from the configuration only, never from requests.
const (
	maxMetricModels     = 500
	maxMetricCandidates = 1000
)

var (
	buildFamily    = &family{"understudy_build_info", "Always 1; the label says which build runs.", []string{"version"}}
	uptimeFamily   = &family{"understudy_uptime_seconds", "Time since the process began.", nil}
	reloadFamily   = &family{"understudy_config_last_reload_successful", "1 if the configuration file as it stands is in force, 0 if it could not be read.", nil}
	loadedFamily   = &family{"understudy_config_last_reload_success_timestamp_seconds", "When the configuration in force was read.", nil}
	targetFamily   = &family{"understudy_target_mode", "1 while target mode is on.", nil}
	requestsFamily = &family{"understudy_requests_total", "Finished client requests that a chain had a say in, by how they ended.", []string{"ending"}}
	apartFamily    = &family{"understudy_requests_uncounted_total", "Requests in no other figure: to ignored endpoints, or refused before any chain was asked.", []string{"kind"}}
	heldFamily     = &family{"understudy_held_bytes", "What all requests hold in memory: bodies, answers before release, events being read.", nil}
	heldMaxFamily  = &family{"understudy_held_limit_bytes", "How much all requests may hold (max_held_bytes); absent without a limit.", nil}
	heldLineFamily = &family{"understudy_held_waiting_requests", "Requests that wait for memory.", nil}
	heldShutFamily = &family{"understudy_held_refused_total", "Requests that waited for memory in vain, or asked for more than there is.", nil}
	rushFamily     = &family{"understudy_rush", "1 while more requests come than can be served, and some are turned away.", nil}
	turnedFamily   = &family{"understudy_turned_away_total", "Requests and connections turned away with 503 because more came than could be served; in no other figure.", nil}
	flightFamily   = &family{"understudy_requests_in_flight", "Client requests under way.", nil}

	archiveFamily = &family{"understudy_archive_ready", "1 while the request log on disk is written, 0 while it cannot be.", nil}
	entriesFamily = &family{"understudy_archive_entries", "Requests in the request log on disk.", nil}
	droppedFamily = &family{"understudy_archive_dropped_total", "What the request log on disk could not take: whole requests, or their bodies alone.", []string{"kind"}}

	storeFamily        = &family{"understudy_store_up", "1 while this instance shares with others through the store, 0 while the store is away; absent without a store.", nil}
	storeOthersFamily  = &family{"understudy_store_instances", "Instances that share the store, this one too, as far as they were heard of.", nil}
	storeWaitingFamily = &family{"understudy_store_news_waiting", "News for the other instances that could not be told yet.", nil}
	storeDroppedFamily = &family{"understudy_store_news_dropped_total", "News for the other instances that were dropped since too many waited.", nil}
	storeAloneFamily   = &family{"understudy_store_limits_alone_total", "Requests whose limits were decided by this instance's share, since the store did not answer in time.", nil}

	modelRequestsFamily = &family{"understudy_virtual_model_requests_total", "Finished client requests of a virtual model (the pool is *).", []string{"virtual_model", "result"}}
	modelFlightFamily   = &family{"understudy_virtual_model_requests_in_flight", "Client requests of a virtual model under way.", []string{"virtual_model"}}
	modelTokensFamily   = &family{"understudy_virtual_model_tokens_total", "Tokens that the winning answers reported; absent where none did.", []string{"virtual_model", "kind"}}
	modelLatencyFamily  = &family{"understudy_virtual_model_latency_seconds", "Latency of whole successes.", []string{"virtual_model"}}
	modelFirstFamily    = &family{"understudy_virtual_model_first_content_seconds", "Time to the first content of whole successes.", []string{"virtual_model"}}

	infoFamily            = &family{"understudy_candidate_info", "Always 1; says which identity stands where.", []string{"virtual_model", "index", "candidate", "id"}}
	attemptsFamily        = &family{"understudy_candidate_attempts_total", "Attempts by what they turned out to be, per identity.", []string{"id", "candidate", "model", "verdict"}}
	failuresFamily        = &family{"understudy_candidate_failures_total", "Failed attempts by failure class: a status, network, bad_stream, stalled_stream or timeout.", []string{"id", "candidate", "model", "class"}}
	candidateFlightFamily = &family{"understudy_candidate_in_flight", "Attempts under way.", []string{"id", "candidate", "model"}}
	waitingFamily         = &family{"understudy_candidate_waiting", "Requests that wait for room, each with every candidate that it waits for.", []string{"id", "candidate", "model"}}
	stateFamily           = &family{"understudy_candidate_state", "1 for the state a candidate is in: ready, frozen, probation or disabled.", []string{"id", "candidate", "model", "state"}}
	leftFamily            = &family{"understudy_candidate_freeze_seconds_left", "How long the running freeze still lasts; 0 without one.", []string{"id", "candidate", "model"}}
	freezesFamily         = &family{"understudy_candidate_freezes_total", "How often it was frozen, by whomever.", []string{"id", "candidate", "model"}}
	hedgesFamily          = &family{"understudy_candidate_auto_hedges_total", "How often a streak of failures froze it.", []string{"id", "candidate", "model"}}
	streakFamily          = &family{"understudy_candidate_consecutive_failures", "Failures in a row up to now.", []string{"id", "candidate", "model"}}
	tokensFamily          = &family{"understudy_candidate_tokens_total", "Tokens that its answers reported, failed ones too; absent where none did.", []string{"id", "candidate", "model", "kind"}}
)

// expose gives the metrics of one View: nothing is counted a second time.
func expose(v *control.View, e *exposition) {
	e.gauge(buildFamily, 1, v.Version)
	e.gauge(uptimeFamily, float64(v.UptimeSeconds))
	e.gauge(reloadFamily, flag(v.Config.Error == ""))
	if !v.Config.LoadedAt.IsZero() {
		e.gauge(loadedFamily, float64(v.Config.LoadedAt.Unix()))
	}
	e.gauge(targetFamily, flag(v.TargetMode))
	t := &v.Totals
	for ending, n := range map[string]int64{
		"success": t.Successes, "passed_through": t.PassedThrough, "empty": t.Empty,
		"exhausted": t.Exhausted, "broken": t.Broken, "client_cancelled": t.ClientCancelled,
	} {
		e.counter(requestsFamily, float64(n), ending)
	}
	e.counter(apartFamily, float64(t.Ignored), "ignored")
	e.counter(apartFamily, float64(t.Refused), "refused")
	e.gauge(flightFamily, float64(t.InFlight))
	e.gauge(heldFamily, float64(v.Held.Bytes))
	if v.Held.Limit > 0 {
		e.gauge(heldMaxFamily, float64(v.Held.Limit))
	}
	e.gauge(heldLineFamily, float64(v.Held.Waiting))
	e.counter(heldShutFamily, float64(v.Held.Refused))
	e.gauge(rushFamily, flag(v.Rush.On))
	e.counter(turnedFamily, float64(v.Rush.TurnedAway))

	if a := &v.Archive; a.State != "" {
		e.gauge(archiveFamily, flag(a.Problem == ""))
		e.gauge(entriesFamily, float64(a.Entries))
		e.counter(droppedFamily, float64(a.Dropped), "requests")
		e.counter(droppedFamily, float64(a.BodiesDropped), "bodies")
	}

	if st := &v.Store; st.State != "" {
		e.gauge(storeFamily, flag(st.State == control.StoreShared))
		e.gauge(storeOthersFamily, float64(len(st.Instances)))
		e.gauge(storeWaitingFamily, float64(st.Waiting))
		e.counter(storeDroppedFamily, float64(st.Dropped))
		e.counter(storeAloneFamily, float64(st.Alone))
	}

	// Names are shown shortened, so that two of them may come out as one.
	models, places, identities := map[string]bool{}, 0, map[string]bool{}
	for i := range v.Models {
		m := &v.Models[i]
		if models[m.Name] || len(models) == maxMetricModels {
			continue
		}
		models[m.Name] = true
		e.model(m)
		for j := range m.Candidates {
			k := &m.Candidates[j]
			if places++; places > maxMetricCandidates {
				break
			}
			e.info(m, k)
			if !identities[k.Identity] {
				identities[k.Identity] = true
				e.candidate(k)
			}
		}
	}
}
