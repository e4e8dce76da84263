package control

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", full)
		r.happen()
		for _, test := range []struct {
			q    Query
			want string
		}{
			{Query{}, "req-4 req-3 req-2 req-1"},
			{Query{Limit: 2}, "req-4 req-3"},
			{Query{Limit: 99999}, "req-4 req-3 req-2 req-1"},
			{Query{Model: "auto-strong"}, "req-2 req-1"},
			{Query{Model: "*"}, "req-3"},
			{Query{Model: "nothing"}, ""},
			{Query{Failed: new(true)}, "req-4 req-2"},
			{Query{Failed: new(false)}, "req-3 req-1"},
			{Query{Failed: new(true), Model: "auto-strong", Limit: 1}, "req-2"},
			{Query{After: 2}, "req-4 req-3"},
			{Query{After: 4}, ""},
		} {
			got := r.Requests(test.q)
			var ids []string
			for _, q := range got.Requests {
				ids = append(ids, q.ID)
				if q.Attempts != nil {
					t.Errorf("%s is listed with its attempts", q.ID)
				}
			}
			if text := strings.Join(ids, " "); text != test.want || got.Sequence != 4 || got.Dropped != 0 {
				t.Errorf("%+v gives %s (%d, %d), want %s", test.q, text, got.Sequence, got.Dropped, test.want)
			}
		}

		for range 100 {
			r.handler.Ledger().Enter("")
			r.handler.Ledger().Add(stats.Record{ID: "more", Winner: -1, Usage: stats.NoUsage()})
		}
		if got := r.Requests(Query{After: 2}); got.Dropped != 2 || got.Sequence != 104 || len(got.Requests) != 100 {
			t.Errorf("%d dropped of %d, %d left", got.Dropped, got.Sequence, len(got.Requests))
		}
		if _, ok := r.Request("req-1"); ok {
			t.Error("a request that is no longer kept was found")
		}
	})
}

func TestDecisionTrail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", full)
		r.happen()
		got, ok := r.Request("req-2")
		if !ok || len(got.Attempts) != 1 || len(got.Skips) != 1 || got.Candidate != "" || !got.Failed || got.Ending != "exhausted" || got.Released != nil {
			t.Fatalf("%+v", got)
		}
		a := got.Attempts[0]
		if a.Candidate != "Direct API" || a.Verdict != "failed" || a.Rule != "built-in rate" || a.Action != "retry" || a.WaitSeconds != 2 || a.FrozeSeconds != 7 ||
			a.Class != "429" || a.Fault != "rate" || a.Tokens.Input != nil || a.FirstContent != nil || *a.Header != 200 || a.Duration != 250 {
			t.Errorf("%+v", a)
		}
		if s := got.Skips[0]; s.Candidate != "Claude" || s.Reason != "frozen" || s.SecondsLeft != 90 {
			t.Errorf("%+v", s)
		}
		got, _ = r.Request("req-1")
		if got.Candidate != "Claude" || *got.Tokens.Input != 100 || *got.Released != 1500 || got.AttemptCount != 2 || got.Failed {
			t.Errorf("%+v", got)
		}
	})
}

func TestChangedGivesOneSignForMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", small)
		ctx, cancel := context.WithCancel(t.Context())
		signs := r.Changed(ctx)
		signs2 := r.Changed(ctx) // nobody ever reads this one
		pending := func() bool {
			synctest.Wait()
			return len(signs) == 1
		}
		time.Sleep(time.Second)
		if pending() {
			t.Error("a sign though nothing has happened")
		}
		for what, change := range map[string]func(){
			"a request":      func() { r.handler.Ledger().Enter(""); r.handler.Ledger().Add(stats.Record{Winner: -1}) },
			"one in flight":  func() { r.handler.Ledger().Enter("auto") },
			"a freeze":       func() { r.run("freeze add auto 1 600") },
			"a moved freeze": func() { r.run("freeze add auto 1 300") },
			"target mode":    func() { r.handler.Target().Set(!r.handler.Target().On()) },
			"a reload":       func() { r.run("reload") },
		} {
			for range 100 {
				change()
			}
			if what == "target mode" {
				r.handler.Target().Set(!r.handler.Target().On())
			}
			start := time.Now()
			<-signs
			if waited := time.Since(start); waited > pace {
				t.Errorf("%s: a sign after %s", what, waited)
			}
			time.Sleep(time.Second)
			if pending() {
				t.Errorf("%s: a second sign", what)
			}
		}
		// The end of a freeze is nobody's doing.
		r.run("freeze add auto 2 5")
		<-signs
		start := time.Now()
		<-signs
		if waited := time.Since(start); waited < 4*time.Second || waited > 5*time.Second+pace {
			t.Errorf("the end of a freeze gave a sign after %s", waited)
		}
		cancel()
		synctest.Wait()
		if _, open := <-signs; open {
			t.Error("the channel stays open after its context is done")
		}
		if len(signs2) != 1 {
			t.Error("signs pile up, or get lost, where nobody reads")
		}
	})
}

func TestEveryChangeIsLoggedWithWhoMadeIt(t *testing.T) {
	r := newRig(t, "understudy.yaml", full)
	for _, line := range []string{
		"vm add new {\"base_url\": \"http://x.example.com\", \"model\": \"m\", \"api_key\": \"sk-secret-abcdefghijklmnop\"}",
		"vm rm new", "cand add auto-strong base_url=http://y.example.com model=m auth_style=none", "cand set auto-strong 1 weight 2", "cand mv auto-strong 1 4",
		"cand rm auto-strong 1", "rule add status=500 action=next", "rule mv 1 2", "rule rm 1", "freeze add held 1 5", "freeze rm held 1", "freeze add held 1 5", "freeze clear",
		"set stall_timeout 5", "target on", "reload",
	} {
		before := len(r.log.String())
		if out := r.run(line); strings.HasPrefix(out, "error") {
			t.Errorf("%s: %s", line, out)
		}
		logged := r.log.String()[before:]
		if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, "who=test") || !strings.Contains(logged, "command=") {
			t.Errorf("%s is logged as %q", line, logged)
		}
	}
	if strings.Contains(r.log.String(), "sk-secret") {
		t.Error("a key is logged")
	}
	// What changes nothing is no change.
	for _, line := range []string{"set stall_timeout 5", "target on", "freeze clear", "freeze rm held 1", "vm", "stats", "save", "set stall_timeout -1", "cand rm held 1", "help"} {
		before := len(r.log.String())
		r.run(line)
		if logged := r.log.String()[before:]; logged != "" {
			t.Errorf("%s is logged as %q", line, logged)
		}
	}
}

func TestAnIndexOfAnotherFileIsRefused(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	r.write(strings.Replace(small, "    - {name: a", "    - {name: first, base_url: \"http://127.0.0.1:9000\", auth_style: none, model: m}\n    - {name: a", 1))
	changed := r.file()
	for _, line := range []string{"cand rm auto 1", "cand mv auto 1 2", "cand set auto 1 weight 2", "cand add auto at 1 base_url=http://x model=m auth_style=none", "rule add at 1 status=500 action=next"} {
		if out := r.run(line); !strings.Contains(out, "reload") || r.file() != changed {
			t.Errorf("%s: %s", line, out)
		}
	}
	if out := r.run("save"); !strings.Contains(out, "not the one in force") {
		t.Errorf("save: %s", out)
	}
	if out := r.run("cand set auto n weight 2"); strings.HasPrefix(out, "error") {
		t.Errorf("by its model: %s", out)
	}
	if out := r.run("cand rm auto 1"); !strings.Contains(out, "first") {
		t.Errorf("after the reload: %s", out)
	}
}

func TestABrokenFileIsNotEdited(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	r.write(small + "servr: {}\n")
	for _, line := range []string{"set stall_timeout 5", "save", "reload", "vm add new base_url=http://x model=m auth_style=none"} {
		if out := r.run(line); !strings.HasPrefix(out, "error:") || !strings.Contains(out, "servr") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if got := r.file(); got != small+"servr: {}\n" {
		t.Errorf("the file has become\n%s", got)
	}
	if v := r.View(); !strings.Contains(v.Config.Error, "servr") || len(v.Models) != 1 {
		t.Errorf("%+v", v.Config)
	}
}

func TestBuiltInRulesAreWrittenOutAsTheyAre(t *testing.T) {
	for _, format := range []struct{ name, text string }{
		{"understudy.yaml", small},
		{"understudy.toml", "[[virtual_models.auto]]\nbase_url = \"http://127.0.0.1:9001\"\nauth_style = \"none\"\nmodel = \"m\"\n"},
	} {
		r := newRig(t, format.name, format.text)
		if out := r.run("rule add at 1 status=418 action=passthrough"); !strings.Contains(out, "built-in") {
			t.Error(out)
		}
		written := r.handler.Snapshot().Config.Rules
		plain := func(list []config.Rule) []config.Rule {
			list = slices.Clone(list)
			for i := range list {
				list[i].Line = 0
				if list[i].Body != nil {
					list[i].BodySource, list[i].Body = list[i].Body.String(), nil
				}
			}
			return list
		}
		if got, want := plain(written[1:]), plain(config.BuiltInRules()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the rules are now\n%+v\nwant\n%+v", format.name, got, want)
		}
		if r.handler.Snapshot().Config.BuiltInRules {
			t.Error("they still count as built in")
		}
		r.run("rule rm 1")
		if got := r.handler.Snapshot().Config.Rules; len(got) != len(config.BuiltInRules()) {
			t.Errorf("%d rules", len(got))
		}
	}
}

func TestAPersonsFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "understudy.yaml", strings.Replace(small, "virtual_models", "server: {freeze_max_seconds: 60}\nvirtual_models", 1))
		key := proxy.Key(r.candidate("auto", 1).ID)
		r.run("freeze add auto 1 7200 a reason")
		f := r.handler.Board().Freezes(time.Now())[0]
		if f.Key != key || f.By != health.Person || f.Reason != "a reason" || time.Until(f.Until) != 2*time.Hour {
			t.Errorf("%+v", f)
		}
		r.run("freeze add auto 1 5")
		if f := r.handler.Board().Freezes(time.Now())[0]; time.Until(f.Until) != 5*time.Second {
			t.Errorf("%+v", f)
		}
		cells := r.View().Models[0].Candidates[0].History.States
		if cells[len(cells)-1] != "frozen" {
			t.Errorf("the history says %s", cells[len(cells)-1])
		}
		// By model name: all that match, wherever they stand.
		if out := r.run("freeze add auto m 5"); !strings.Contains(out, "1 a (m)") {
			t.Error(out)
		}
	})
}

func TestQuitEndsNothingByItself(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	for _, line := range []string{"quit", "exit", "q", "QUIT"} {
		out, err := r.Run(t.Context(), "test", line)
		if err != nil || !out.Quit || r.quit != 0 {
			t.Errorf("%s: %+v, %v", line, out, err)
		}
	}
	r.Quit()
	if r.quit != 1 {
		t.Error("Quit does nothing")
	}
	New(Deps{}).Quit() // nobody may end it: nothing happens
}

func TestSaveWritesTheState(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	if out := r.run("save"); !strings.Contains(out, "is valid") || r.saved != 1 {
		t.Errorf("%s, saved %d times", out, r.saved)
	}
}

func TestNumericKeysAreListed(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	out := r.run("set")
	for _, key := range []string{"port", "stall_timeout", "hold_bytes", "auto_hedge_minutes", "freeze_max_seconds", "reload_poll_interval", "min_content_chars"} {
		if !strings.Contains(out, "\n"+key+" ") {
			t.Errorf("%s is not in\n%s", key, out)
		}
		if one := r.run("set " + key); !strings.HasPrefix(one, key+" is ") || !strings.Contains(one, "; default ") {
			t.Error(one)
		}
	}
	r.run("set hold_bytes 1MiB")
	if out := r.run("set"); !regexp.MustCompile(`(?m)^hold_bytes +1 ?MiB +bytes at least 64 KiB +8 MiB `).MatchString(out) {
		t.Errorf("what holds now is not in\n%s", out)
	}
	if strings.Contains(out, "target_mode") || strings.Contains(out, "admin") {
		t.Error(out)
	}
}

func TestEveryCommandHasUsageAndHelp(t *testing.T) {
	r := newRig(t, "understudy.yaml", small)
	all := r.run("help")
	for _, c := range Commands() {
		if c.Does == "" || strings.HasSuffix(c.Does, ".") || !strings.Contains(all, c.Usage()) {
			t.Errorf("%s: %q", c.Usage(), c.Does)
		}
		if one := r.run("help " + c.Name); !strings.Contains(one, c.Usage()) {
			t.Errorf("help %s: %s", c.Name, one)
		}
	}
	for alias, name := range aliases {
		if !slices.ContainsFunc(Commands(), func(c Command) bool { return c.Name == name }) {
			t.Errorf("%s stands for %s, which is no command", alias, name)
		}
	}
}

func TestAccess(t *testing.T) {
	r := newRig(t, "understudy.yaml", "server: {admin: \"box.example.com:8788\", allowed_hosts: [Proxy.example.com], admin_token: sk-admin-abcdefghijkl}"+small)
	a := r.Access()
	for host, want := range map[string]bool{"box.example.com": true, "proxy.example.com": true, "example.com": false, "": false} {
		if a.Host(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
	for token, want := range map[string]bool{"sk-admin-abcdefghijkl": true, "sk-admin-abcdefghijk": false, "": false} {
		if a.Token(token) != want || !a.NeedsToken() {
			t.Errorf("%q: %v", token, !want)
		}
	}
	open := newRig(t, "understudy.yaml", small).Access()
	if open.NeedsToken() || open.Token("") {
		t.Error("without a token, the empty one is right")
	}
}

// TestEverythingAtOnce is for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	r := newRig(t, "understudy.yaml", full)
	ctx, cancel := context.WithCancel(t.Context())
	var others, editor sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for range r.Changed(ctx) {
				r.View()
			}
		})
	}
	// The daemon makes one edit after another.
	editor.Go(func() {
		for _, line := range []string{"set stall_timeout 5", "cand add held base_url=http://x.example.com model=m auth_style=none", "cand rm held 2", "reload", "rule add status=500 action=next"} {
			if out := r.run(line); strings.HasPrefix(out, "error") {
				t.Errorf("%s: %s", line, out)
			}
		}
	})
	for _, lines := range [][]string{
		{"vm", "stats", "stats auto-strong", "freeze ls", "cand ls", "rule ls"},
		{"freeze add auto-strong 1 60", "freeze rm auto-strong 1", "freeze clear", "target on", "target off"},
	} {
		others.Go(func() {
			for range 20 {
				for _, line := range lines {
					r.run(line)
				}
			}
		})
	}
	others.Go(func() {
		for range 200 {
			r.handler.Ledger().Enter("held")
			r.handler.Ledger().Add(stats.Record{ID: "x", Model: "held", Start: time.Now(), Winner: -1, Ending: stats.Exhausted, Usage: stats.NoUsage()})
			r.Requests(Query{Limit: 5})
			r.Request("x")
		}
	})
	editor.Wait()
	cancel()
	others.Wait()
}
