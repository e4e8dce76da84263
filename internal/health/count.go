package health

import (
	"context"
	"slices"
	"time"
)

// counted says that limits are asked of the store: it answered in time, last.
func (p *Peers) counted() bool { return p.counting.Load() }

// share is one instance's part of limits, as far as the others are known.
func (p *Peers) share(l Limits) Limits {
	n := len(*p.names.Load())
	part := func(limit int) int {
		if limit == 0 {
			return 0
		}
		return max(limit/n, 1)
	}
	return Limits{Parallel: part(l.Parallel), RPM: part(l.RPM), TPM: part(l.TPM)}
}

// second is the present one, by a clock that nobody sets.
func (p *Peers) second() int64 { return int64(time.Since(p.start) / time.Second) }

// tally is k's, made if need be. p.mu is held.
func (p *Peers) tally(k Key) *tally {
	t := p.tallies[k]
	if t == nil {
		t = &tally{own: cells{}, owed: cells{}}
		p.tallies[k] = t
	}
	return t
}

// ask asks the store for a lease. It is false where there is no answer in time.
func (p *Peers) ask(k Key, l Limits) (Grant, bool) {
	a := &pending{Ask: Ask{Key: k, Limits: l}, reply: make(chan Grant, 1)}
	p.mu.Lock()
	p.asks = append(p.asks, a)
	p.mu.Unlock()
	p.nudge()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case g := <-a.reply:
		return g, true
	case <-timer.C:
	}
	if !a.settled.CompareAndSwap(false, true) {
		return <-a.reply, true
	}
	p.counting.Store(false) // nobody else waits in vain
	return Grant{}, false
}

// askFor is ask for who can wait: then gets the answer, from the goroutine of Run; it is
// false where there is none.
func (p *Peers) askFor(k Key, l Limits, then func(Grant, bool)) {
	p.mu.Lock()
	p.asks = append(p.asks, &pending{Ask: Ask{Key: k, Limits: l}, then: then})
	p.mu.Unlock()
	p.nudge()
}

// fail tells those who can wait that there is no answer. The others do not wait for it.
func fail(waiting []*pending) {
	for _, a := range waiting {
		if a.then != nil {
			a.then(Grant{}, false)
		}
	}
}

func (p *Peers) nudge() {
	select {
	case p.asked <- struct{}{}:
	default: // who reads it will see this ask too
	}
}

// began notes a lease that was granted without the store.
func (p *Peers) began(k Key, l Limits) {
	p.alone.Add(1)
	second := p.second()
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tally(k)
	t.open++
	t.told = false
	if l.RPM > 0 {
		t.own.add(second, 1, 0)
		t.owed.add(second, 1, 0)
	}
}

// over notes that a lease was settled.
func (p *Peers) over(k Key) {
	p.mu.Lock()
	t := p.tally(k)
	t.open--
	t.told = false
	p.mu.Unlock()
	p.nudge()
}

// spent notes tokens. They are told with what comes next.
func (p *Peers) spent(k Key, tokens int64) {
	second := p.second()
	p.mu.Lock()
	t := p.tally(k)
	t.own.add(second, 0, tokens)
	t.owed.add(second, 0, tokens)
	p.mu.Unlock()
	p.nudge()
}

// count beats, and tells and asks the store of limits, in turn: what this instance
// has open is then never in doubt.
func (p *Peers) count(ctx context.Context) {
	for {
		p.beat(ctx)
		pause := beatEvery
		if !p.counting.Load() {
			pause = probe
		}
		timer := time.NewTimer(pause)
		for beating := false; !beating; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				beating = true
			case <-p.asked:
				beating = !p.exchange(ctx) && pause == beatEvery
			}
		}
		timer.Stop()
	}
}

// beat says that this instance lives, and tells everything again that the store may
// have wrong.
func (p *Peers) beat(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	began := time.Now()
	roll, err := p.store.Beat(call)
	took := time.Since(began)
	if err != nil {
		p.counting.Store(false)
		if ctx.Err() == nil {
			p.stand(&p.beaten, false, err)
		}
		return
	}
	names := roll.Names
	p.names.Store(&names)
	p.board.orphan(func(name string) bool { return !slices.Contains(names, name) }, began.Add(-lifetime))
	second := p.second()
	p.mu.Lock()
	for k, t := range p.tallies {
		t.own.forget(second)
		t.owed.forget(second)
		if roll.Fresh {
			clear(t.owed)
			for s, x := range t.own {
				t.owed[s] = x
			}
		}
		if t.open > 0 || roll.Fresh {
			t.told = false
		}
		if t.told && len(t.own)+len(t.owed) == 0 {
			delete(p.tallies, k)
		}
	}
	p.mu.Unlock()
	p.stand(&p.beaten, true, nil)
	p.out.nudge()
	if p.exchange(ctx) && took <= p.patience {
		p.counting.Store(true)
	}
	for _, b := range p.boards {
		b.serveAll(time.Now()) // whoever has missed that there is room
	}
}

// exchange tells the store what it is owed and asks it what is asked. It is false
// where the store has not answered, or too late.
func (p *Peers) exchange(ctx context.Context) bool {
	second := p.second()
	p.mu.Lock()
	waiting := p.asks
	p.asks = nil
	if !p.beaten {
		p.mu.Unlock()
		fail(waiting)
		return false // whoever waits goes by the shares; what is owed can wait
	}
	var had []Usage
	owed := map[Key]cells{}
	for k, t := range p.tallies {
		if !t.told || len(t.owed) > 0 {
			had = append(had, Usage{Key: k, Open: t.open, Had: t.owed.had(second)})
			owed[k], t.owed, t.told = t.owed, cells{}, true
		}
	}
	p.mu.Unlock()
	waiting = slices.DeleteFunc(waiting, func(a *pending) bool { return a.settled.Load() })
	asks := make([]Ask, 0, len(waiting))
	for _, a := range waiting {
		asks = append(asks, a.Ask)
	}
	if len(had)+len(asks) == 0 {
		return true
	}
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	began := time.Now()
	grants, err := p.store.Count(call, had, asks)
	late := time.Since(began) > p.patience
	if err != nil {
		p.counting.Store(false)
		p.mu.Lock()
		for k, c := range owed {
			t := p.tally(k)
			t.told = false
			for s, x := range c {
				t.owed.add(s, x.began, x.tokens)
			}
		}
		p.mu.Unlock()
		if ctx.Err() == nil {
			p.stand(&p.beaten, false, err)
		}
		fail(waiting)
		return false
	}
	for i, a := range waiting {
		granted := grants[i].Limit == Unlimited
		if answered := a.settled.CompareAndSwap(false, true); granted {
			p.mu.Lock()
			t := p.tally(a.Key)
			if answered {
				t.open++
				if a.Limits.RPM > 0 {
					t.own.add(second, 1, 0)
				}
			} else {
				t.told = false // granted to somebody who has gone on without it
			}
			p.mu.Unlock()
		}
		if a.then != nil {
			a.then(grants[i], true)
			continue
		}
		// Whoever has waited long enough reads this no more.
		a.reply <- grants[i]
	}
	return !late
}
