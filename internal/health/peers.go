package health

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How often and how patiently the store is spoken to. None of it is on a request's
// path.
const (
	beatEvery = time.Second            // while all is well
	probe     = 50 * time.Millisecond  // while it is not
	callFor   = 250 * time.Millisecond // one call's longest
	lifetime  = 3 * beatEvery          // silent for so long, an instance is taken for dead
	shortest  = time.Second            // freezes with less time left are not told anew
)

// Lifetime is how long an instance is taken to live after its last beat.
const Lifetime = lifetime

// Status is how an instance stands with the others.
type Status struct {
	// Up says that news come and go, and that limits are counted together; while it
	// is false this instance goes by what it knows.
	Up bool
	// Problem is why not, "" where nothing has been tried yet, and Since the moment
	// of the last change.
	Problem error
	Since   time.Time
	// Names are the instances that lived when they were last heard of, this one too.
	Names []string
	// Waiting are the news that are still to be told; Dropped those that never will
	// be; Alone the limits that were decided by this instance's share.
	Waiting        int
	Dropped, Alone int64
}

// Peers are the other instances of a store, as one instance's boards deal with them.
// Its boards stay local: what happens on them is queued and told, and what the others
// tell is put on them.
type Peers struct {
	store  Store
	name   string
	board  *Board   // of freezes
	boards []*Board // all, for limits
	out    *outbox
	heard  func(Freeze)
	change func(Status)
	// patience is Patience; tests on busy machines have more of it.
	patience time.Duration
	start    time.Time

	names    atomic.Pointer[[]string]
	up       atomic.Bool // as in Status
	counting atomic.Bool // limits are asked of the store
	alone    atomic.Int64

	telling sync.Mutex // of change, which hears one thing after another

	mu      sync.Mutex
	status  Status
	watched bool // Watch has told all that the store holds
	beaten  bool // the last beat went well
	tallies map[Key]*tally
	asks    []*pending
	asked   chan struct{} // capacity 1: there are asks, or tallies to tell
}

// pending is an ask that somebody waits for.
type pending struct {
	Ask
	reply chan Grant        // capacity 1; nil with then
	then  func(Grant, bool) // instead, for who can wait
	// settled is set once, by whoever is first: the answer, or the asker who has
	// waited long enough.
	settled atomic.Bool
}

// Join makes boards share what they know with the other instances of a store, before
// they are used. Freezes and trials are shared for freezes, limits for every board.
// name is this instance's in the store. heard is called for a freeze of another
// instance that took hold here, change after the store was found or lost; both from
// the goroutines of Run.
func Join(s Store, name string, heard func(Freeze), change func(Status), freezes *Board, others ...*Board) *Peers {
	p := &Peers{store: s, name: name, board: freezes, out: newOutbox(), heard: heard, change: change, patience: Patience,
		start: time.Now(), tallies: map[Key]*tally{}, asked: make(chan struct{}, 1)}
	p.status.Since = p.start
	p.names.Store(&[]string{name})
	p.boards = append(others, freezes)
	for _, b := range p.boards {
		b.mu.Lock()
		b.peers = p
		b.mu.Unlock()
	}
	return p
}

// Status says how this instance stands with the others.
func (p *Peers) Status() Status {
	lost, waiting := p.out.count()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	s.Names, s.Waiting, s.Dropped, s.Alone = slices.Clone(*p.names.Load()), waiting, lost, p.alone.Load()
	return s
}

// Run speaks with the store until ctx is done, and then takes leave of it.
func (p *Peers) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { p.store.Watch(ctx, p.hear) })
	wg.Go(func() { p.tell(ctx) })
	wg.Go(func() { p.count(ctx) })
	wg.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callFor)
	defer cancel()
	p.deliver(last)
	_ = p.store.Leave(last) // who is away will find out by itself
}

// hear takes the store's news.
func (p *Peers) hear(c Change) {
	now := time.Now()
	switch c.News {
	case Known:
		p.reconcile(c.Keys, now)
		p.stand(&p.watched, true, nil)
	case Lost:
		p.stand(&p.watched, false, c.Err)
	case Room:
		for _, b := range p.boards {
			b.room(now)
		}
	case Gone:
		p.board.orphan(func(name string) bool { return name == c.From }, now)
	default:
		if c.From == p.name {
			if !p.out.holds(c.Key) { // else it is old news
				p.board.echo(c, now)
			}
			return
		}
		if f, took := p.board.hear(c, now); took && p.heard != nil {
			p.heard(f)
		}
	}
}

// reconcile tells the store the running freezes that it knows nothing of: it has
// lost them, or they were set before it was there.
func (p *Peers) reconcile(known map[Key]bool, now time.Time) {
	for _, f := range p.board.Freezes(now) {
		if !known[f.Key] && f.Until.Sub(now) > shortest {
			p.out.post(letter{news: Froze, freeze: f})
		}
	}
}

// stand notes that one of the ways to the store is open or not, and tells of a
// change.
func (p *Peers) stand(way *bool, open bool, why error) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	*way = open
	s := &p.status
	was := s.Up
	s.Up = p.watched && p.beaten
	switch {
	case s.Up:
		s.Problem = nil
	case why != nil && (was || s.Problem == nil):
		s.Problem = why
	}
	first := s.Problem != nil && !was && !s.Up && s.Since.Equal(p.start)
	news := s.Up != was || first
	if news {
		s.Since = time.Now()
	}
	up := s.Up
	p.up.Store(up)
	p.mu.Unlock()
	if !news {
		return
	}
	if !up {
		// Trials elsewhere cannot be heard to end.
		p.board.orphan(func(string) bool { return true }, time.Now())
	}
	p.out.nudge()
	if p.change != nil {
		p.change(p.Status())
	}
}

// tell delivers the outbox while the store is there.
func (p *Peers) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.out.filled:
		}
		p.deliver(ctx)
	}
}

// deliver tells what is in the outbox, in order. What cannot be told stays; the next
// success of any kind tries again.
func (p *Peers) deliver(ctx context.Context) {
	for l, more := p.out.next(); more; l, more = p.out.next() {
		err := p.send(ctx, l)
		if p.out.sent(err == nil); err != nil {
			return
		}
	}
}

func (p *Peers) send(ctx context.Context, l letter) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	switch l.news {
	case Froze:
		if s, _ := p.board.Standing(l.freeze.Key, time.Now()); s != Frozen {
			return nil // it was over, or lifted, before anybody could be told
		}
		return p.store.Put(ctx, l.freeze)
	case Thawed:
		return p.store.Drop(ctx, l.key, l.by)
	default:
		return p.store.Try(ctx, l.key, l.news == Trying)
	}
}

// place is how many instances are before this one in line for a key's trial.
func (p *Peers) place(k Key) int {
	names := *p.names.Load()
	if len(names) < 2 || !p.up.Load() {
		return 0 // whoever cannot hear the others does not wait for them
	}
	return max(slices.Index(inOrder(names, k), p.name), 0)
}
