package control

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/route"
)

// maxFreeze bounds what a person may ask for, so that every time stays in range.
const maxFreeze = 10 * 365 * 24 * time.Hour

func listFreezes(c *call) (string, error) {
	if err := c.want(0, 0); err != nil {
		return "", err
	}
	list := c.builder.freezes()
	if len(list) == 0 {
		return "nobody is frozen", nil
	}
	t := newTable("vm", ">#", "candidate", "model", ">left", "by", "reason")
	for i := range list {
		f := &list[i]
		t.row(f.Model, fmt.Sprint(f.Index), f.Candidate, orDash(f.RealModel), left(f.SecondsLeft), f.who(), f.Reason)
	}
	return t.String(), nil
}

// who says who froze, and at which instance where it was not this one.
func (f *Freeze) who() string {
	if f.From == "" {
		return f.By
	}
	return f.By + " at " + f.From
}

// left is a time still to wait; "" for none.
func left(seconds int64) string {
	if seconds <= 0 {
		return ""
	}
	return (time.Duration(seconds) * time.Second).String()
}

// pick finds candidates in force: the chain, and the members that a word means.
func (c *call) pick(vm, word string) (*route.Chain, []*route.Candidate, error) {
	chain, err := c.chain(vm)
	if err != nil {
		return nil, nil, err
	}
	var members []*route.Candidate
	var list []config.Candidate
	for _, tier := range chain.Tiers {
		for i := range tier {
			members = append(members, &tier[i])
			list = append(list, tier[i].Candidate)
		}
	}
	found, err := c.choose(chain.Model, chain.Pool, list, word)
	if err != nil {
		return nil, nil, err
	}
	var picked []*route.Candidate
	for _, i := range found {
		picked = append(picked, members[i])
	}
	return chain, picked, nil
}

func (c *call) labels(chain *route.Chain, picked []*route.Candidate) string {
	var list []string
	for _, k := range picked {
		list = append(list, c.label(k.Index, chain.Pool, &k.Candidate))
	}
	return c.name(chain.Model) + " " + strings.Join(list, ", ")
}

func addFreeze(c *call) (string, error) {
	if err := c.want(3, -1); err != nil {
		return "", err
	}
	length, err := c.length(c.args[2])
	if err != nil {
		return "", err
	}
	chain, picked, err := c.pick(c.args[0], c.args[1])
	if err != nil {
		return "", err
	}
	reason := strings.Join(c.args[3:], " ")
	if reason == "" {
		reason = "frozen by hand"
	}
	reason = c.prose(reason)
	h := c.c.deps.Handler
	for _, k := range picked {
		f := h.Board().Freeze(proxy.Key(k.ID), health.Freeze{Since: c.now, Length: length, Reason: reason, By: health.Person}, c.now)
		// A person's freeze may end before the one it takes the place of.
		h.Ledger().Thaw(string(k.ID), c.now)
		h.Ledger().MarkFrozen(string(k.ID), c.now, f.Until)
	}
	what := c.labels(chain, picked) + ": frozen for " + length.String()
	c.changed(what + ", " + reason)
	return what + c.elsewhere(chain, picked), nil
}

// length reads seconds, or a time with its unit such as 10m.
func (c *call) length(text string) (time.Duration, error) {
	length := time.Duration(-1)
	if n, ok := number(text); ok {
		var seconds float64
		switch n := n.(type) {
		case int64:
			seconds = float64(n)
		case float64:
			seconds = n
		}
		if seconds*float64(time.Second) > float64(maxFreeze) {
			return 0, errors.New("a freeze lasts ten years at most; to leave a candidate out for good: cand set <vm> <candidate> enabled false")
		}
		length = time.Duration(seconds * float64(time.Second))
	} else if d, err := time.ParseDuration(text); err == nil {
		length = min(d, maxFreeze)
	} else {
		return 0, c.misuse(c.shown(text) + " is no number of seconds")
	}
	if length < time.Millisecond {
		return 0, c.misuse("a freeze takes more than 0 seconds")
	}
	return length, nil
}

// elsewhere names the other chains in which the same identities stand.
func (c *call) elsewhere(here *route.Chain, picked []*route.Candidate) string {
	var names []string
	for _, chain := range c.s.Routes.Chains() {
		if chain != here && holds(chain, picked) {
			names = append(names, c.name(chain.Model))
		}
	}
	if names == nil {
		return ""
	}
	return "\nalso in " + strings.Join(names, ", ") + ", where the same upstream and model stand"
}

func holds(chain *route.Chain, picked []*route.Candidate) bool {
	for _, tier := range chain.Tiers {
		for i := range tier {
			for _, k := range picked {
				if tier[i].ID == k.ID {
					return true
				}
			}
		}
	}
	return false
}

func removeFreeze(c *call) (string, error) {
	if err := c.want(2, 2); err != nil {
		return "", err
	}
	chain, picked, err := c.pick(c.args[0], c.args[1])
	if err != nil {
		return "", err
	}
	n, shared := c.thaw(picked)
	if n == 0 {
		return c.labels(chain, picked) + ": not frozen", nil
	}
	what := c.labels(chain, picked) + ": no longer frozen"
	c.changed(what)
	if shared {
		what += "\nneither are the others that share its key or host, which was frozen"
	}
	return what + c.elsewhere(chain, picked), nil
}

// thaw lifts freezes and ends probations, those of keys and hosts too, and counts
// the identities that had one. shared says that others had it with them.
func (c *call) thaw(picked []*route.Candidate) (n int, shared bool) {
	board := c.c.deps.Handler.Board()
	before := c.frozen()
	for _, k := range picked {
		own, wider := proxy.Keys(k)
		if standing, _ := board.Standing(own, c.now, wider...); standing != health.Ready {
			n++
		}
	}
	for _, k := range picked {
		own, wider := proxy.Keys(k)
		board.Thaw(own, c.now)
		for _, w := range wider {
			shared = board.Thaw(w, c.now) || shared
		}
	}
	c.thawed(before)
	return n, shared
}

// frozen are the identities that are frozen now.
func (c *call) frozen() map[route.ID]bool {
	frozen := map[route.ID]bool{}
	for _, chain := range c.s.Routes.Chains() {
		for _, tier := range chain.Tiers {
			for i := range tier {
				own, wider := proxy.Keys(&tier[i])
				if standing, _ := c.c.deps.Handler.Board().Standing(own, c.now, wider...); standing == health.Frozen {
					frozen[tier[i].ID] = true
				}
			}
		}
	}
	return frozen
}

// thawed takes back what the history says of the time to come for those that were
// frozen and are not any more.
func (c *call) thawed(before map[route.ID]bool) {
	still := c.frozen()
	for id := range before {
		if !still[id] {
			c.c.deps.Handler.Ledger().Thaw(string(id), c.now)
		}
	}
}

func clearFreezes(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	h := c.c.deps.Handler
	n, of := 0, ""
	if len(c.args) == 1 {
		chain, err := c.chain(c.args[0])
		if err != nil {
			return "", err
		}
		var all []*route.Candidate
		for _, tier := range chain.Tiers {
			for i := range tier {
				all = append(all, &tier[i])
			}
		}
		n, _ = c.thaw(all)
		of = " of " + c.name(chain.Model)
	} else {
		before := c.frozen()
		n = h.Board().ThawAll(c.now)
		c.thawed(before)
	}
	if n == 0 {
		return "nobody is frozen", nil
	}
	what := fmt.Sprintf("lifted %d freeze(s)%s", n, of)
	c.changed(what)
	return what, nil
}
