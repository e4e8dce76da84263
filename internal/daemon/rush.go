package daemon

import (
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// soundEvery is how often, at most, the way through the program is sounded.
	soundEvery = 10 * time.Millisecond
	// lateAfter is how long that may take before the program counts as behind.
	lateAfter = 150 * time.Millisecond
	// rushGrace is for how long it must be behind before anybody is turned away: what
	// comes in one burst waits, and is served.
	rushGrace = 3 * time.Second
	// rushCalm is for how long nothing must be late, and nobody wait, before everybody
	// comes in as they come again.
	rushCalm = time.Second
	// rushRetry is when who is turned away is told to come back.
	rushRetry = 2 * time.Second
	// firstBatch, leastBatch and mostBatch are how many requests are let in at once while
	// the program is behind: at first, and at least and at most.
	firstBatch, leastBatch, mostBatch = 64, 8, 4096
	// fewInside is how many requests may always be under way: where soundings are late
	// with fewer, it is the machine that is busy, or has slept, and not with these.
	fewInside = 64
	// turnedPerSecond bounds, for each processor, the connections that are turned away in
	// a second: at so many it costs half of its time, for as long as there are some who
	// have waited for too long. The others wait, which costs nothing.
	turnedPerSecond = 8000
)

// A rush is more than the program can do: what has come waits for a processor, ever
// more of it, until every client has waited for longer than it would and what is done
// for it is done in vain. It is noticed by soundings, bytes that go the way of
// everything that comes from the network. While they come back late, requests are let
// in by batches, each when a sounding has come back, so that there are as many as can
// be done; after a grace those that are not let in are turned away.
//
// Nothing is sounded but when somebody comes and many are under way, and nobody is held up while soundings
// come back in time, however many requests are under way. A nil rush is none.
type rush struct {
	turns  float64 // how many connections may be turned away in a second
	log    *slog.Logger
	inside atomic.Int64 // requests under way
	behind atomic.Bool  // requests are let in by batches: since is not zero

	mu     sync.Mutex
	sound  func()    // sends a sounding, and echo tells of its return; nil = nobody does
	next   time.Time // before then nothing is sounded
	sent   time.Time // when the sounding under way was sent; zero = none is
	noted  bool      // it is late, and that has been taken note of
	since  time.Time // since when requests are let in by batches; zero = they are not
	last   time.Time // when a sounding was late, or somebody not let in, last
	batch  int
	places int       // left of this batch
	came   int64     // how many were let in since a sounding returned, which goes their way
	short  bool      // they were not enough
	turned int64     // how many were turned away, in all
	before int64     // of those, in former rushes
	budget float64   // how many connections may be turned away now
	filled time.Time // when that was worked out
}

// newRush is a rush that nobody notices until begin.
func newRush(log *slog.Logger) *rush {
	return &rush{turns: float64(turnedPerSecond * runtime.GOMAXPROCS(0)), log: log}
}

// begin sounds by a pipe, whose reader waits as everybody does who waits for the
// network; where there is no pipe to be had, there is no rush. end ends the reader.
func (r *rush) begin() (end func()) {
	from, to, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sound = func() { _, _ = to.Write([]byte{0}) } // one at a time is under way, so that it never waits
	go func() {
		defer from.Close()
		var b [1]byte
		for {
			if _, err := from.Read(b[:]); err != nil {
				r.deafen()
				return
			}
			r.echo(time.Now())
		}
	}()
	return func() { _ = to.Close() }
}

// enter says whether somebody who has come may be let in now.
func (r *rush) enter(now time.Time) bool {
	if r == nil || r.inside.Load() < fewInside && !r.behind.Load() {
		return true // no sounding could keep them out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look(now)
	switch {
	case r.since.IsZero():
		return true
	// Who has just been let in counts, too: before the first of them is served a thousand
	// could come in at once.
	case r.inside.Load()+r.came < fewInside:
	case r.places > 0:
		r.places--
	default:
		r.short, r.last = true, now
		return false
	}
	r.came++
	return true
}

// on says whether it has gone on for so long that who is not let in is turned away.
func (r *rush) on(now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since.IsZero() && now.Sub(r.since) >= rushGrace && now.Sub(r.last) <= rushCalm
}

// afford says whether one more connection may be turned away now.
func (r *rush) afford(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget = min(r.budget+now.Sub(r.filled).Seconds()*r.turns, r.turns/20)
	r.filled = now
	if r.budget < 1 {
		return false
	}
	r.budget--
	return true
}

// count counts one that was turned away.
func (r *rush) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turned++; r.turned == r.before+1 {
		r.log.Warn("more requests come than can be served: some are turned away (503)")
	}
}

// seen says whether requests are turned away now, and how many have been in all.
func (r *rush) seen(now time.Time) (on bool, turned int64) {
	on = r.on(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	return on, r.turned
}

// deafen ends it where soundings will not return any more.
func (r *rush) deafen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sound, r.sent, r.since = nil, time.Time{}, time.Time{}
	r.behind.Store(false)
}

// look sends a sounding where one is due, sees whether the one under way is late, and
// ends the rush where nothing has been for a while. The mutex is held.
func (r *rush) look(now time.Time) {
	if r.sound == nil {
		return
	}
	if !r.sent.IsZero() && !r.noted && now.Sub(r.sent) > lateAfter {
		r.late(now)
	}
	if !r.since.IsZero() && now.Sub(r.last) > rushCalm {
		r.since = time.Time{}
		r.behind.Store(false)
		if n := r.turned - r.before; n > 0 {
			r.before = r.turned
			r.log.Info("requests are served as they come again", slog.Int64("turned_away", n))
		}
	}
	if r.sent.IsZero() && !now.Before(r.next) {
		r.sent, r.noted, r.next = now, false, now.Add(soundEvery)
		r.sound()
	}
}

// late takes note of a sounding that is late. The mutex is held.
func (r *rush) late(now time.Time) {
	r.noted, r.last, r.places = true, now, 0
	if r.since.IsZero() {
		r.since, r.batch = now, firstBatch
		r.behind.Store(true)
		return
	}
	r.batch = max(leastBatch, r.batch*7/10)
}

// echo is the return of a sounding.
func (r *rush) echo(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent.IsZero() {
		return // nobody asked
	}
	took := now.Sub(r.sent)
	r.sent = time.Time{}
	if took > lateAfter && !r.noted {
		r.late(now)
	}
	if r.since.IsZero() {
		return
	}
	if r.short && took < lateAfter/2 {
		r.batch = min(mostBatch, r.batch+r.batch/4)
	}
	r.places, r.short, r.came = r.batch, false, 0
}
