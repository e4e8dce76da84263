package healthtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"understudy/internal/health"
)

// A Hub is what instances of one program share, in memory: the simplest thing that
// keeps the contract of health.Store. Its zero value is ready.
type Hub struct {
	mu       sync.Mutex
	records  map[health.Key]*record
	watchers map[*watcher]bool
	seen     map[string]time.Time
	limited  map[health.Key]*limited
	cut      map[string]bool // names that cannot reach it
	revs     int
	puts     int
}

// record is what stands about one key.
type record struct {
	freeze health.Freeze // zero: thawed
	by     health.By     // who has thawed it
	at     time.Time     // when it was last changed
	trial  string
	from   string
	rev    int // which of all changes made it
}

// what a watcher is sent, and what it has been told of a key.
type (
	news struct {
		health.Change
		rev int
	}
	seen struct {
		rev   int
		trial string
	}
)

type limited struct {
	open    map[string]int
	began   []time.Time
	spent   []spending
	waiting bool
}

type spending struct {
	at     time.Time
	tokens int64
}

// ErrCut is why an instance that was cut off gets nothing.
var ErrCut = errors.New("cut off")

// Rescan is how often a Hub tells everything again.
const Rescan = 100 * time.Millisecond

type watcher struct {
	name string
	news chan news
	cut  chan struct{}
}

// Store is the hub as one instance has it.
func (h *Hub) Store(name string) health.Store { return &memory{h, name} }

// Cut takes the hub away from an instance, or gives it back.
func (h *Hub) Cut(name string, off bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut == nil {
		h.cut = map[string]bool{}
	}
	h.cut[name] = off
	for w := range h.watchers {
		if off && w.name == name {
			close(w.cut)
			delete(h.watchers, w)
		}
	}
}

// Flush has the hub forget everything.
func (h *Hub) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records, h.seen, h.limited = nil, nil, nil
}

// Puts is how many freezes took hold in it.
func (h *Hub) Puts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.puts
}

type memory struct {
	hub  *Hub
	name string
}

// enter locks the hub, unless the instance is cut off.
func (m *memory) enter() (leave func(), err error) {
	m.hub.mu.Lock()
	if m.hub.cut[m.name] {
		m.hub.mu.Unlock()
		return nil, ErrCut
	}
	return m.hub.mu.Unlock, nil
}

// tell gives news to everybody else, and freezes and thaws to who made them too. The hub
// is locked.
func (m *memory) tell(c health.Change, rev int) {
	c.From = m.name
	for w := range m.hub.watchers {
		if w.name == m.name && c.News != health.Froze && c.News != health.Thawed {
			continue
		}
		select {
		case w.news <- news{c, rev}:
		default: // as a network would; the rescan makes up for it
		}
	}
}

func (h *Hub) record(k health.Key) *record {
	if h.records == nil {
		h.records = map[health.Key]*record{}
	}
	r := h.records[k]
	if r == nil {
		r = &record{}
		h.records[k] = r
	}
	return r
}

// Put implements health.Store.
func (m *memory) Put(_ context.Context, f health.Freeze) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	now := time.Now()
	r := m.hub.record(f.Key)
	running := now.Before(r.freeze.Until)
	if !now.Before(f.Until) || f.By != health.Person && running && (r.freeze.By == health.Person || !f.Until.After(r.freeze.Until)) {
		return nil
	}
	if r.rev > 0 && r.freeze.Until.IsZero() && f.Since.Before(r.at) {
		return nil // the thaw was later
	}
	f.From = m.name
	m.hub.revs++
	*r = record{freeze: f, at: now, from: m.name, rev: m.hub.revs}
	m.hub.puts++
	m.tell(health.Change{News: health.Froze, Key: f.Key, Freeze: f}, r.rev)
	return nil
}

// Drop implements health.Store.
func (m *memory) Drop(_ context.Context, k health.Key, by health.By) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	now := time.Now()
	r := m.hub.record(k)
	if by != health.Person && r.freeze.By == health.Person && now.Before(r.freeze.Until) {
		return nil
	}
	m.hub.revs++
	*r = record{by: by, at: now, from: m.name, rev: m.hub.revs}
	m.tell(health.Change{News: health.Thawed, Key: k, By: by, At: now}, r.rev)
	return nil
}

// Try implements health.Store.
func (m *memory) Try(_ context.Context, k health.Key, on bool) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	r := m.hub.record(k)
	switch {
	case on:
		r.trial = m.name
		m.tell(health.Change{News: health.Trying, Key: k}, r.rev)
	case r.trial == m.name:
		r.trial = ""
		m.tell(health.Change{News: health.Tried, Key: k}, r.rev)
	}
	return nil
}

// Watch implements health.Store.
func (m *memory) Watch(ctx context.Context, told func(health.Change)) {
	for ctx.Err() == nil {
		w := &watcher{name: m.name, news: make(chan news, 64), cut: make(chan struct{})}
		if err := m.subscribe(w); err != nil {
			told(health.Change{News: health.Lost, Err: err})
		} else {
			m.follow(ctx, w, told)
		}
		again := time.NewTimer(Rescan)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

func (m *memory) subscribe(w *watcher) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	if m.hub.watchers == nil {
		m.hub.watchers = map[*watcher]bool{}
	}
	m.hub.watchers[w] = true
	return nil
}

// follow tells what there is and what comes, until the end or the cut.
func (m *memory) follow(ctx context.Context, w *watcher, told func(health.Change)) {
	defer func() {
		m.hub.mu.Lock()
		delete(m.hub.watchers, w)
		m.hub.mu.Unlock()
	}()
	tick := time.NewTicker(Rescan)
	defer tick.Stop()
	known := map[health.Key]seen{}
	for {
		m.all(known, told)
		for rescan := false; !rescan; {
			select {
			case <-ctx.Done():
				return
			case <-w.cut:
				told(health.Change{News: health.Lost, Err: ErrCut})
				return
			case c := <-w.news:
				known[c.Key] = known[c.Key].after(c)
				told(c.Change)
			case <-tick.C:
				rescan = true
			}
		}
	}
}

// after is s once the news have been told.
func (s seen) after(c news) seen {
	switch c.News {
	case health.Trying:
		s.trial = c.From
	case health.Tried:
		s.trial = ""
	case health.Froze, health.Thawed:
		s = seen{rev: c.rev}
	}
	return s
}

// all tells what the hub holds, as far as it was not told in the same way before.
func (m *memory) all(known map[health.Key]seen, told func(health.Change)) {
	m.hub.mu.Lock()
	keys := map[health.Key]bool{}
	var changes []health.Change
	for k, r := range m.hub.records {
		keys[k] = true
		before := known[k]
		known[k] = seen{r.rev, r.trial}
		if r.rev != before.rev {
			c := health.Change{News: health.Froze, Key: k, From: r.from, Freeze: r.freeze}
			if r.freeze.Until.IsZero() {
				c = health.Change{News: health.Thawed, Key: k, From: r.from, By: r.by, At: r.at}
			}
			changes = append(changes, c)
		}
		if r.trial != "" && r.trial != m.name && r.trial != before.trial {
			changes = append(changes, health.Change{News: health.Trying, Key: k, From: r.trial})
		}
	}
	m.hub.mu.Unlock()
	for _, c := range changes {
		told(c)
	}
	told(health.Change{News: health.Known, Keys: keys})
}

// Count implements health.Store.
func (m *memory) Count(_ context.Context, had []health.Usage, asks []health.Ask) ([]health.Grant, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	now := time.Now()
	for _, u := range had {
		l := m.hub.limit(u.Key)
		if u.Open < l.open[m.name] && l.waiting {
			l.waiting = false
			m.tell(health.Change{News: health.Room}, 0)
		}
		l.open[m.name] = u.Open
		for _, x := range u.Had {
			at := now.Add(-time.Duration(x.Ago) * time.Second)
			l.began = append(l.began, slices.Repeat([]time.Time{at}, x.Began)...)
			if x.Tokens > 0 {
				l.spent = append(l.spent, spending{at, x.Tokens})
			}
		}
	}
	var grants []health.Grant
	for _, a := range asks {
		grants = append(grants, m.hub.limit(a.Key).grant(a.Limits, m.hub.alive(now), m.name, now))
	}
	return grants, nil
}

func (h *Hub) limit(k health.Key) *limited {
	if h.limited == nil {
		h.limited = map[health.Key]*limited{}
	}
	l := h.limited[k]
	if l == nil {
		l = &limited{open: map[string]int{}}
		h.limited[k] = l
	}
	return l
}

func (l *limited) grant(limits health.Limits, alive []string, name string, now time.Time) health.Grant {
	past := now.Add(-time.Minute)
	l.began = slices.DeleteFunc(l.began, func(t time.Time) bool { return !t.After(past) })
	l.spent = slices.DeleteFunc(l.spent, func(s spending) bool { return !s.at.After(past) })
	if n := len(l.began) - limits.RPM; limits.RPM > 0 && n >= 0 {
		return health.Grant{Limit: health.RPM, Wait: l.began[n].Add(time.Minute).Sub(now)}
	}
	total := int64(0)
	for _, s := range l.spent {
		total += s.tokens
	}
	if limits.TPM > 0 && total >= int64(limits.TPM) {
		for _, s := range l.spent {
			if total -= s.tokens; total < int64(limits.TPM) {
				return health.Grant{Limit: health.TPM, Wait: s.at.Add(time.Minute).Sub(now)}
			}
		}
	}
	open := 0
	for _, n := range alive {
		open += l.open[n]
	}
	if limits.Parallel > 0 && open >= limits.Parallel {
		l.waiting = true
		return health.Grant{Limit: health.Parallel}
	}
	if limits.RPM > 0 {
		l.began = append(l.began, now)
	}
	l.open[name]++
	return health.Grant{}
}

// alive are the names that have beaten lately.
func (h *Hub) alive(now time.Time) (names []string) {
	for name, at := range h.seen {
		if now.Sub(at) < health.Lifetime {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Beat implements health.Store.
func (m *memory) Beat(context.Context) (health.Roll, error) {
	leave, err := m.enter()
	if err != nil {
		return health.Roll{}, err
	}
	defer leave()
	if m.hub.seen == nil {
		m.hub.seen = map[string]time.Time{}
	}
	_, known := m.hub.seen[m.name]
	now := time.Now()
	m.hub.seen[m.name] = now
	return health.Roll{Names: m.hub.alive(now), Fresh: !known}, nil
}

// Leave implements health.Store.
func (m *memory) Leave(context.Context) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	delete(m.hub.seen, m.name)
	m.tell(health.Change{News: health.Gone}, 0)
	return nil
}
