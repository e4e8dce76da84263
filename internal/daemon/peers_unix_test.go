//go:build unix

package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"understudy/internal/control"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/redisstore/redistest"
)

const storePassword = "hunter2-of-the-store"

// instances are daemons on one configuration that share a store.
type instances struct {
	t      *testing.T
	server *redistest.Server
	link   *redistest.Link
	all    []*rig
	bases  []string
}

// newInstances starts a Redis server and so many instances, the last of which reaches
// it by way of a link that can be cut. more stands in the limited first candidate.
func newInstances(t *testing.T, n int, more string) *instances {
	t.Helper()
	server := redistest.Start(t, "--requirepass", storePassword)
	s := &instances{t: t, server: server, link: redistest.NewLink(t, server.Addr())}
	t.Setenv("UNDERSTUDY_TEST_STORE", storePassword)
	first, second := well(t), well(t)
	s.bases = []string{first.URL(), second.URL()}
	for i := range n {
		addr := server.Addr()
		if i == n-1 {
			addr = s.link.Addr()
		}
		text := strings.Replace(vm("", "first "+first.URL()+" m1", "second "+second.URL()+" m2", "third "+second.URL()+" m3"), "model: m1}", "model: m1"+more+"}", 1) +
			fmt.Sprintf("store: {url: %q, password_env: UNDERSTUDY_TEST_STORE}\n", "redis://"+addr+"/0")
		s.all = append(s.all, newRig(t, text).serve())
	}
	s.shared()
	return s
}

func (s *instances) status(r *rig) control.StoreStatus {
	return r.Control("test").View().Store
}

// shared waits until everybody knows of everybody.
func (s *instances) shared() {
	s.t.Helper()
	for i, r := range s.all {
		eventually(s.t, fmt.Sprintf("instance %d shares with the others", i), func() bool {
			st := s.status(r)
			return st.State == control.StoreShared && len(st.Instances) == len(s.all) && st.Waiting == 0
		})
	}
}

func (s *instances) away() {
	s.t.Helper()
	for i, r := range s.all {
		eventually(s.t, fmt.Sprintf("instance %d has noticed", i), func() bool { st := s.status(r); return st.State == control.StoreAway && st.Problem != "" })
	}
}

// frozen waits until a candidate is frozen, or not, at an instance.
func (s *instances) frozen(r *rig, name string, want bool) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%s is frozen: %v", name, want), func() bool { return (r.left(name) > 0) == want })
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInstancesShareFreezes(t *testing.T) {
	s := newInstances(t, 3, "")
	a, b, c := s.all[0], s.all[1], s.all[2]
	quickest := time.Hour
	for range 5 { // the machine may be busy for a moment
		began := time.Now()
		a.freeze("first", time.Hour, health.Person)
		s.frozen(b, "first", true)
		s.frozen(c, "first", true)
		quickest = min(quickest, time.Since(began))
		c.board.Thaw(proxy.Key(c.candidate("first").ID), time.Now())
		s.frozen(a, "first", false)
		s.frozen(b, "first", false)
	}
	if quickest >= 100*time.Millisecond {
		t.Errorf("known everywhere only after %v", quickest)
	}
	t.Logf("known everywhere after %v", quickest)

	a.freeze("first", time.Hour, health.Rule)
	s.frozen(b, "first", true)
	f := b.Control("test").View().Freezes
	if len(f) != 1 || f[0].From != s.status(a).Instance || f[0].By != "rule" || f[0].Reason != "by the test" {
		t.Errorf("the other instance shows %+v", f)
	}
	b.answers("vm", "second")
	if h := b.Handler().Ledger(); h.Totals().Successes != 1 {
		t.Errorf("%+v", h.Totals())
	}
	// What is lifted by a success is lifted everywhere; this one began after it.
	lease := b.board.Seize(proxy.Key(b.candidate("first").ID), time.Now())
	lease.Settle(health.OK, time.Now(), health.Strike{})
	s.frozen(a, "first", false)
	s.frozen(c, "first", false)
	if n := a.log.count("sharing with other instances"); n != 1 {
		t.Errorf("%d lines about the store, want one\n%s", n, a.log)
	}
}

// TestTheStoreMayGoAwayUnderLoad takes Redis away in every way while requests run: none
// fails, and afterwards everybody knows what happened meanwhile.
func TestTheStoreMayGoAwayUnderLoad(t *testing.T) {
	s := newInstances(t, 2, ", max_parallel: 1000, rpm: 1000000")
	a, b := s.all[0], s.all[1]
	var stop atomic.Bool
	var sent, failed atomic.Int64
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			client := &http.Client{Timeout: 20 * time.Second}
			for !stop.Load() {
				res, err := client.Post("http://"+s.all[n%2].Addr()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"vm","messages":[]}`))
				sent.Add(1)
				if err != nil || res.StatusCode != 200 {
					failed.Add(1)
					t.Errorf("a request failed: %v %v", err, res)
				}
				if err == nil {
					res.Body.Close()
				}
			}
		})
	}
	defer load.Wait()
	defer stop.Store(true)
	freeze := func(r *rig, by health.By) { r.freeze("first", time.Hour, by) }
	thaw := func(r *rig) { r.board.Thaw(proxy.Key(r.candidate("first").ID), time.Now()) }
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"killed and started again, empty", s.server.Kill, s.server.Restart},
		{"paused", s.server.Pause, s.server.Resume},
	} {
		t.Log(outage.name)
		outage.begin()
		s.away()
		freeze(a, health.Rule)
		outage.end()
		s.shared()
		s.frozen(b, "first", true)
		outage.begin()
		s.away()
		thaw(b)
		outage.end()
		s.shared()
		if outage.name != "paused" {
			// The store has forgotten that it was frozen, and a knows nothing else.
			thaw(a)
		}
		s.frozen(a, "first", false)
		s.frozen(b, "first", false)
	}
	t.Log("flushed")
	freeze(a, health.Person)
	s.frozen(b, "first", true)
	s.server.Flush()
	late := newRig(t, strings.Replace(readFile(t, a.path), a.state, "STATE", 1)).serve()
	s.frozen(late, "first", true)
	thaw(late)
	s.frozen(a, "first", false)
	s.frozen(b, "first", false)
	t.Log("cut off")
	s.link.Cut()
	eventually(t, "b has noticed", func() bool { return s.status(b).State == control.StoreAway })
	freeze(a, health.Rule)
	b.freeze("second", time.Hour, health.Person)
	s.frozen(late, "first", true)
	if b.left("first") > 0 || a.left("second") > 0 {
		t.Error("news got through where nothing does")
	}
	s.link.Mend()
	s.frozen(b, "first", true)
	s.frozen(a, "second", true)
	a.board.ThawAll(time.Now())
	s.frozen(b, "first", false)
	s.frozen(b, "second", false)

	stop.Store(true)
	load.Wait()
	t.Logf("%d requests, %d failed", sent.Load(), failed.Load())
	if sent.Load() < 100 {
		t.Errorf("%d requests are no load", sent.Load())
	}
	// One line for each change of state, whatever the requests were. A busy machine may
	// miss a beat now and then.
	eventually(t, "b is back", func() bool { return s.status(b).State == control.StoreShared })
	if gone, back := b.log.count("the store is away"), b.log.count("sharing with other instances"); gone < 5 || gone > 10 || back != gone+1 {
		t.Errorf("%d lines that it is away, %d that it is back, want 5 and 6\n%s", gone, back, b.log)
	}
}

func TestInstancesShareLimits(t *testing.T) {
	s := newInstances(t, 2, ", rpm: 6")
	served := map[string]int{}
	for n := range 10 {
		got := s.all[n%2].ask("vm", false)
		served[got.Get("X-Understudy-Candidate")]++
	}
	// On a busy machine the store may miss a moment: what an instance decides alone
	// meanwhile comes on top of what the store has granted to the other.
	alone := 0
	for _, r := range s.all {
		alone += int(s.status(r).Alone)
	}
	if served["first"]+served["second"] != 10 || served["first"] < 3 || served["first"] > 6+min(alone, 3) || alone == 0 && served["first"] != 6 {
		t.Errorf("served by %v, %d decided alone, want 6 by the first", served, alone)
	}
}

func TestNothingSecretIsInTheStore(t *testing.T) {
	s := newInstances(t, 2, ", rpm: 100, max_parallel: 10")
	client := redis.NewClient(&redis.Options{Addr: s.server.Addr(), Password: storePassword})
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sub := client.PSubscribe(ctx, "*")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	s.all[0].answers("vm", "first")
	for _, name := range []string{"first", "second"} {
		own, wider := proxy.Keys(s.all[0].candidate(name))
		for _, k := range append(wider, own) {
			s.all[0].board.Freeze(k, health.Freeze{Length: time.Hour, By: health.Rule, Reason: "429"}, time.Now())
		}
	}
	var all strings.Builder
	for range 6 {
		m, err := sub.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, m.Channel, m.Payload)
	}
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil || len(keys) < 6 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	for _, k := range keys {
		if !strings.HasPrefix(k, "understudy:1:") {
			t.Errorf("key %q has neither prefix nor version", k)
		}
		dump := client.Dump(ctx, k).Val()
		fmt.Fprintln(&all, k, dump, client.HGetAll(ctx, k).Val())
	}
	for _, secret := range append(s.bases, "sk-", storePassword, "127.0.0.1", "first") {
		if strings.Contains(all.String(), secret) {
			t.Errorf("%q is in the store:\n%s", secret, all.String())
		}
	}
}

func TestAStoreThatCannotBeUsedIsNoReasonNotToStart(t *testing.T) {
	u := well(t)
	for name, text := range map[string]string{
		"nobody listens":    "store: redis://:" + storePassword + "@127.0.0.1:1/0\n",
		"no variable":       "store: {url_env: UNDERSTUDY_TEST_NO_SUCH}\n",
		"no certificates":   "store: {url: rediss://127.0.0.1:1, ca_file: /nonexistent}\n",
		"no URL in the env": "store: {url_env: PATH}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, vm("", "only "+u.URL()+" m1")+text).serve()
			r.answers("vm", "only")
			eventually(t, "it is told", func() bool {
				s := r.Control("test").View().Store
				return s.State == control.StoreAway && s.Problem != ""
			})
			if strings.Contains(r.log.String()+r.Control("test").View().Store.Problem, storePassword) {
				t.Errorf("the password is told\n%s", r.log)
			}
			if n := r.log.count("store"); n == 0 {
				t.Errorf("nothing in the log\n%s", r.log)
			}
		})
	}
}

// A store over TLS is trusted by the certificate that the file names, and by that alone.
func TestAStoreOverTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, otherFile := dir+"/cert.pem", dir+"/key.pem", dir+"/other.pem"
	cert, key := issue(t, 1)
	put(t, certFile, cert, time.Hour)
	put(t, keyFile, key, time.Hour)
	other, _ := issue(t, 2)
	put(t, otherFile, other, time.Hour)
	server := redistest.StartTLS(t, certFile, keyFile, "--requirepass", storePassword)
	t.Setenv("UNDERSTUDY_TEST_STORE", storePassword)
	s := &instances{t: t, server: server}
	for _, file := range []string{certFile, otherFile} {
		s.all = append(s.all, newRig(t, vm("", "first http://127.0.0.1:1 m")+
			fmt.Sprintf("store: {url: %q, password_env: UNDERSTUDY_TEST_STORE, ca_file: %q}\n", "rediss://"+server.Addr()+"/0", file)).serve())
	}
	eventually(t, "the first one shares", func() bool { return s.status(s.all[0]).State == control.StoreShared })
	eventually(t, "the other one tells why it does not", func() bool {
		st := s.status(s.all[1])
		return st.State == control.StoreAway && strings.Contains(st.Problem, "certificate")
	})
}
