package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"understudy/bench/load"
)

// soakKeys are the clients' keys.
var soakKeys = []string{"sk-soak-one-0123456789", "sk-soak-two-0123456789", "sk-soak-three-0123456789", "sk-soak-four-0123456789"}

// soakConfig is everything that an hour should see, with the settings that understudy is
// shipped with: a chain that fails over, one that retries, equals that keep sessions,
// answers that are delivered complete, upstreams that always fail, and a pool of which
// one is now and then over its limit. generation makes each reload another file.
func soakConfig(a, b, c, secure string, generation int) string {
	var keys strings.Builder
	for i, k := range soakKeys {
		fmt.Fprintf(&keys, "  - {name: client-%d, key: %s}\n", i+1, k)
	}
	return fmt.Sprintf(`# generation %[6]d
server: {metrics_window_minutes: %[7]d}
clients:
%[5]svirtual_models:
  equals:
    affinity: warm
    candidates:
      - any_of:
          - {name: a, base_url: "http://%[1]s", api_key: sk-a-0123456789, model: m-real}
          - {name: b, base_url: "http://%[2]s", api_key: sk-b-0123456789, model: m-real}
          - {name: c, base_url: "http://%[3]s", api_key: sk-c-0123456789, model: m-real, weight: 2}
      - {name: secure, base_url: "https://%[4]s", api_key: sk-d-0123456789, model: m-real}
  vendor:
    - {name: secure, base_url: "https://%[4]s", api_key: sk-d-0123456789, model: m-real}
    - {name: a, base_url: "http://%[1]s", api_key: sk-a-0123456789, model: m-real}
  complete:
    delivery: complete
    candidates:
      - {name: b, base_url: "http://%[2]s", api_key: sk-b-0123456789, model: m-real}
      - {name: c, base_url: "http://%[3]s", api_key: sk-c-0123456789, model: m-real}
  failover:
    rules: [{match: {status: 503}, action: next}]
    candidates:
      - {name: weak, base_url: "http://%[1]s/fail/503/2", api_key: sk-weak-0123456789, model: m-real}
      - {name: b, base_url: "http://%[2]s", api_key: sk-b-0123456789, model: m-real}
  retries:
    - {name: tired, base_url: "http://%[1]s/fail/502/3", api_key: sk-tired-0123456789, model: m-real}
    - {name: c, base_url: "http://%[3]s", api_key: sk-c-0123456789, model: m-real}
  down:
    - {name: down, base_url: "http://%[2]s/fail/500/1", api_key: sk-down-0123456789, model: m-real}
  refused:
    - {name: refused, base_url: "http://%[2]s/fail/400/1", api_key: sk-refused-0123456789, model: m-real}
upstream:
  - {id: one, base_url: "http://%[1]s", api_key: sk-p1-0123456789}
  - {id: two, base_url: "http://%[2]s", api_key: sk-p2-0123456789}
  - {id: limited, base_url: "http://%[3]s/fail/429/40", api_key: sk-p3-0123456789}
pool: {}
`, a, b, c, secure, keys.String(), generation, 30+generation%2)
}

// A soakMix makes the requests. All but responses is for one goroutine.
type soakMix struct {
	to       load.Target
	r        *rand.Rand
	chat     []byte // what the upstream answers
	response struct{ head, tail []byte }
	ending   int // bytes of a stream without deltas
	delta    int // bytes of each
	unit     time.Duration
	bodies   [][]byte // large requests
	number   int

	mu     sync.Mutex
	recent [64]struct{ key, id string } // responses to go on from
	given  int
}

// soakKind is a kind of request, and how often it is sent: so many of the sum of all.
type soakKind struct {
	often float64
	make  func(m *soakMix) load.Ask
}

// soakKinds are the mix. Of each hundred, about ten fail over, are retried or answered
// with an error, and five are left by the client.
var soakKinds = []soakKind{
	{20, func(m *soakMix) load.Ask { return m.json("equals", "equals") }},
	{12, func(m *soakMix) load.Ask { return m.json("pool", fmt.Sprintf("model-%d", m.r.IntN(5000))) }},
	{5, func(m *soakMix) load.Ask { return m.json("vendor", "vendor") }},
	{28, (*soakMix).responses},
	{10, func(m *soakMix) load.Ask { return m.stream("equals, short stream", "equals", 20, 1, 0) }},
	{4, func(m *soakMix) load.Ask { return m.stream("equals, stream", "equals", 100, 3, 0) }},
	{1, func(m *soakMix) load.Ask { return m.stream("equals, long stream", "equals", 120, 100, 0) }},
	{3, func(m *soakMix) load.Ask { return m.stream("vendor, stream", "vendor", 40, 2, 0) }},
	{2, func(m *soakMix) load.Ask { return m.stream("complete, stream", "complete", 30, 2, 0) }},
	{8, func(m *soakMix) load.Ask { return m.json("failover", "failover") }},
	{2, func(m *soakMix) load.Ask { return m.stream("failover, stream", "failover", 20, 2, 0) }},
	{1, func(m *soakMix) load.Ask { return m.json("retries", "retries") }},
	{1.5, func(m *soakMix) load.Ask { return m.error("refused", m.to, 400, m.refused) }},
	{1, func(m *soakMix) load.Ask {
		return m.error("equals", load.Target{Addr: m.to.Addr, Path: m.to.Path, Key: "sk-nobodys-0123456789"}, 401, nil)
	}},
	{.5, func(m *soakMix) load.Ask { return m.error("down", m.to, 502, nil) }},
	{4.5, func(m *soakMix) load.Ask { return m.stream("left by the client", "equals", 100, 3, 1+m.r.IntN(20)) }},
	{.5, func(m *soakMix) load.Ask {
		a := m.json("left while sending", "equals")
		a.Cut, a.Fresh = len(a.Bytes)-1-m.r.IntN(700), true
		return a
	}},
}

// newSoakMix learns from an upstream what answers must be. unit is the gap between the
// deltas of the fastest streams.
func newSoakMix(to, upstream load.Target, seed uint64, unit time.Duration) (*soakMix, error) {
	m := &soakMix{to: to, r: rand.New(rand.NewPCG(seed, 0)), unit: unit}
	var err error
	fetch := func(path string, body []byte, header ...string) []byte {
		t := upstream
		t.Path = path
		got, e := load.Fetch(t, t.Request(body, header...))
		err = errors.Join(err, e)
		return got
	}
	m.chat = fetch(chatPath, load.Body("m", false))
	m.ending = len(fetch(chatPath, load.Body("m", true), load.Pattern{}.Header()...))
	m.delta = len(fetch(chatPath, load.Body("m", true), load.Pattern{Deltas: 1}.Header()...)) - m.ending
	text := fetch(responsesPath, []byte(`{"model":"m","input":"hello"}`))
	id, tail, ok := idOf(text)
	if err == nil && (!ok || m.delta <= 0) {
		err = fmt.Errorf("the upstream answers strangely: %s", text)
	}
	m.response.head, m.response.tail = text[:len(text)-len(id)-len(tail)], tail
	for _, mib := range []int{1, 2, 4, 8} {
		m.bodies = append(m.bodies, load.ImageBody("equals", mib<<20))
	}
	return m, err
}

const responsesPath = "/v1/responses"

// idOf cuts a response at its id.
func idOf(body []byte) (id string, tail []byte, ok bool) {
	_, rest, ok := bytes.Cut(body, []byte(`"id":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return "", nil, false
	}
	return string(rest[:end]), rest[end:], true
}

// next is the next request; every largeEvery-th is a large one.
func (m *soakMix) next(largeEvery int) load.Ask {
	m.number++
	if m.number%largeEvery == 0 {
		return m.large(m.number / largeEvery)
	}
	sum := 0.0
	for _, k := range soakKinds {
		sum += k.often
	}
	at := m.r.Float64() * sum
	for _, k := range soakKinds {
		if at -= k.often; at < 0 {
			return k.make(m)
		}
	}
	return m.json("equals", "equals")
}

// target has one of the clients' keys.
func (m *soakMix) target() load.Target {
	t := m.to
	t.Key = soakKeys[m.r.IntN(len(soakKeys))]
	return t
}

// session is a header that makes most of the requests part of one of a million
// sessions; some of those come back, and most do not, so that the tables of sessions
// are full before half an hour is over.
func (m *soakMix) session() []string {
	if m.r.IntN(10) == 0 {
		return nil
	}
	n := m.r.IntN(1_000_000)
	if m.r.IntN(6) == 0 {
		n %= 100
	}
	return []string{"X-Session-Id", fmt.Sprintf("session-%d", n)}
}

// json is a request that is answered with JSON. One in five has a connection of its own.
func (m *soakMix) json(kind, model string) load.Ask {
	return load.Ask{Kind: kind, Status: 200, Fresh: m.r.IntN(5) == 0, Bytes: m.target().Request(load.Body(model, false), m.session()...), Whole: m.same(m.chat)}
}

// same wants exactly these bytes.
func (m *soakMix) same(want []byte) func([]byte) error {
	return func(got []byte) error {
		if !bytes.Equal(got, want) {
			return fmt.Errorf("another answer, of %d bytes: %.200s", len(got), got)
		}
		return nil
	}
}

// stream is a request for a stream whose deltas are so many units apart; the client
// leaves after so many deltas, or stays with 0.
func (m *soakMix) stream(kind, model string, deltas, units, leave int) load.Ask {
	p := load.Pattern{Deltas: deltas, Gap: time.Duration(units) * m.unit}
	return load.Ask{Kind: kind, Status: 200, Fresh: m.r.IntN(5) == 0, Leave: leave,
		Bytes:  m.target().Request(load.Body(model, true), append(p.Header(), m.session()...)...),
		Stream: &load.Stream{Pattern: p, Bytes: m.ending + deltas*m.delta}}
}

// large is a request with a large body.
func (m *soakMix) large(n int) load.Ask {
	return load.Ask{Kind: "large body", Status: 200, Bytes: m.target().Request(m.bodies[n%len(m.bodies)]), Whole: m.same(m.chat)}
}

// error is a request that is answered with an error.
func (m *soakMix) error(model string, to load.Target, status int, whole func([]byte) error) load.Ask {
	if to.Key == "" {
		to.Key = soakKeys[0]
	}
	return load.Ask{Kind: fmt.Sprintf("answered with %d", status), Status: status, Bytes: to.Request(load.Body(model, false)), Whole: whole}
}

// refused is what the upstream that refuses everything says.
func (m *soakMix) refused(body []byte) error {
	if !bytes.Contains(body, []byte("the mock fails on purpose")) {
		return fmt.Errorf("not what the upstream said: %.200s", body)
	}
	return nil
}

// responses is a request for a response, half of them going on from one that another
// upstream would not know.
func (m *soakMix) responses() load.Ask {
	to := m.target()
	to.Path = responsesPath
	kind, previous := "responses", ""
	m.mu.Lock()
	if from := m.recent[m.r.IntN(len(m.recent))]; from.id != "" && m.r.IntN(2) == 0 {
		kind, previous, to.Key = "responses, going on", `"previous_response_id":"`+from.id+`",`, from.key
	}
	m.mu.Unlock()
	body := []byte(`{"model":"equals",` + previous + `"input":"Say something about foxes."}`)
	return load.Ask{Kind: kind, Status: 200, Bytes: to.Request(body, m.session()...), Whole: func(got []byte) error {
		id, tail, ok := idOf(got)
		if !ok || !bytes.Equal(tail, m.response.tail) || !bytes.HasPrefix(got, m.response.head) {
			return fmt.Errorf("another answer, of %d bytes: %.200s", len(got), got)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.given++
		m.recent[m.given%len(m.recent)] = struct{ key, id string }{to.Key, id}
		return nil
	}}
}
