package archive

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/stats"
)

// Bounds on what waits to be written, so that a disk which takes nothing costs
// entries, never memory.
const (
	maxQueued = 4096     // entries, and as many again in the batch that is tried
	maxBodies = 32 << 20 // bytes of bodies
)

const (
	// writeAfter is how long an entry waits for others to share its transaction.
	writeAfter = 250 * time.Millisecond
	// checkpointEvery and checkpointAfter, in entries, are how often the ledger
	// itself is saved. In between the entries stand for it, so these bound what a
	// start has to replay.
	checkpointEvery = 20 * time.Second
	checkpointAfter = 5000
	// tidyEvery is how often old entries are looked for when none come in.
	tidyEvery = 10 * time.Minute
	// A file that could not be written is tried again after retryFirst, then less
	// and less often.
	retryFirst, retryLast = 500 * time.Millisecond, 5 * time.Second
	// closeTime bounds the last writing.
	closeTime = 3 * time.Second
)

// Limits are how much of the request log is kept.
type Limits struct {
	// Keep is how many requests, the newest; 0 = none, beyond what stands for the
	// books until they are saved.
	Keep int
	// Age is how old they may become; 0 = as old as Keep lets them.
	Age time.Duration
}

// Options are what an Archive is made with; Path and Ledger are required.
type Options struct {
	Path   string
	Ledger *stats.Ledger
	Limits Limits
	// Log takes what goes wrong and when it is over; nil discards it.
	Log *slog.Logger
	// Restored is called once the ledger has got what the file held, by whoever
	// restores: Open, or Run where Open could not; nil = nobody wants to know.
	Restored func()
}

// An Archive writes what the ledger books behind the requests' backs. Offer and the
// methods that read may be called from any goroutine; Open, then Run, then nothing
// else, from one.
type Archive struct {
	path     string
	ledger   *stats.Ledger
	log      *slog.Logger
	restored func()
	boot     int64 // tells this process's entries from others'

	limits atomic.Pointer[Limits]
	last   atomic.Pointer[checkpoint] // what the ledger is saved as at the end; nil = as it is then

	mu     sync.Mutex // guards the queue
	queue  []item
	closed bool          // what is offered from here on is dropped
	queued int64         // bytes of bodies in it
	wake   chan struct{} // something has come into an empty queue
	full   chan struct{} // it should not wait any longer

	dropped, bodiesDropped, written, kept atomic.Int64

	statusMu sync.Mutex // guards status
	status   Status

	reader Reader // of the same file

	// What follows belongs to the goroutine that runs.
	pragmas  []string // for tests: what a small disk cannot be had for
	db       *sql.DB  // nil while the file is not open
	open     bool     // the ledger has what the file held, or it held nothing
	batch    []item   // taken from the queue and not yet written
	encoder  *encoder
	saved    time.Time // when the ledger was saved last; zero = not by this process
	unsaved  int       // entries since
	tidied   time.Time
	tail     tail
	pause    time.Duration // before the next try; 0 = all is well
	finished bool          // another process has taken over
	claimed  bool          // the file says that it is this process's
}

// item is an entry on its way to the file.
type item struct {
	entry  *stats.Sequenced
	bodies *stats.Bodies
}

// State is how an archive is doing.
type State string

// The states.
const (
	Ready   State = "ready"   // what was to be written is written
	Waiting State = "waiting" // the file cannot be written now; it is tried again
	Ended   State = "ended"   // another process writes the file
)

// Status is how an archive is doing, for people.
type Status struct {
	Path  string
	State State
	// Problem says what is wrong, and Since since when; "" = nothing.
	Problem string
	Since   time.Time
	// SetAside is where a damaged file was moved by this process; "" = none was.
	SetAside string
	// Entries are the requests in the file, Written those that this process added,
	// and Dropped those that found the queue full or could not be written at the
	// end. BodiesDropped are those whose bodies alone were left out.
	Entries, Written, Dropped, BodiesDropped int64
}

// New makes an archive. Nothing is opened or written yet.
func New(o Options) *Archive {
	a := &Archive{
		path: o.Path, ledger: o.Ledger, log: o.Log, restored: o.Restored,
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), encoder: newEncoder(),
		status: Status{Path: o.Path, State: Ready},
	}
	a.reader.path, a.reader.keep = o.Path, func() int { return a.limits.Load().Keep }
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.restored == nil {
		a.restored = func() {}
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	a.boot = int64(binary.BigEndian.Uint64(b[:]) >> 1)
	a.SetLimits(o.Limits)
	return a
}

// checkpoint is a ledger's state, and the number of the last record in it.
type checkpoint struct {
	state stats.State
	seq   uint64
}

// Conclude has the end of Run save this state of the ledger, and not what the ledger
// says then: what has been added after the record of that number goes elsewhere. It is
// called before Run's context is done.
func (a *Archive) Conclude(s stats.State, seq uint64) { a.last.Store(&checkpoint{s, seq}) }

// Resume takes entries again after Run has come to its end. Run is to be called again.
func (a *Archive) Resume() {
	a.last.Store(nil)
	a.claimed = false // another process may have had it meanwhile
	a.mu.Lock()
	a.closed = false
	a.mu.Unlock()
}

// Reader reads the file that is written, whatever the state it is in. It is closed
// with the archive.
func (a *Archive) Reader() *Reader { return &a.reader }

// SetLimits changes how much is kept, from the next writing on.
func (a *Archive) SetLimits(l Limits) { a.limits.Store(&l) }

// Status says how the archive is doing.
func (a *Archive) Status() Status {
	a.statusMu.Lock()
	s := a.status
	a.statusMu.Unlock()
	s.Entries, s.Written, s.Dropped, s.BodiesDropped = a.kept.Load(), a.written.Load(), a.dropped.Load(), a.bodiesDropped.Load()
	return s
}

// Offer takes a record that was booked, with its bodies, nil without any. It is the
// ledger's tap: it never blocks. Where the queue is full the record is dropped and
// counted.
func (a *Archive) Offer(entry *stats.Sequenced, bodies *stats.Bodies) {
	size := sizeOf(bodies)
	a.mu.Lock()
	n := len(a.queue)
	if n >= maxQueued || a.closed {
		a.mu.Unlock()
		a.dropped.Add(1)
		return
	}
	if a.queued+size > maxBodies {
		bodies, size = nil, 0
		a.bodiesDropped.Add(1)
	}
	a.queue = append(a.queue, item{entry, bodies})
	a.queued += size
	a.mu.Unlock()
	switch n {
	case 0:
		sign(a.wake)
	case maxQueued / 2:
		sign(a.full)
	}
}

func sign(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // one is waiting already
	}
}

func sizeOf(b *stats.Bodies) (n int64) {
	if b == nil {
		return 0
	}
	n = int64(len(b.Request.Text))
	for _, answer := range b.Answers {
		n += int64(len(answer.Text))
	}
	return n
}

// take empties the queue into the batch, as far as there is room.
func (a *Archive) take() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.batch) == 0 {
		// The two change places, so that neither grows anew.
		a.batch, a.queue = a.queue, a.batch[:0]
		a.queued = 0
		return
	}
	n := min(len(a.queue), maxQueued-len(a.batch))
	for _, moved := range a.queue[:n] {
		a.queued -= sizeOf(moved.bodies)
	}
	a.batch = append(a.batch, a.queue[:n]...)
	a.queue = append(a.queue[:0], a.queue[n:]...)
}

// Open restores the ledger from the file, if there is one and it can be read now.
// It takes no longer than a moment: what it cannot do Run goes on trying, and what
// is wrong is told to the log and to Status.
func (a *Archive) Open(ctx context.Context) {
	if _, err := os.Stat(a.path); errors.Is(err, fs.ErrNotExist) {
		a.open = true // the file is made with the first entry
		return
	}
	if err := a.ready(ctx); err != nil {
		a.fail(err)
	}
}

// Run writes until ctx is done, and then what is left, and closes the file.
func (a *Archive) Run(ctx context.Context) {
	timer := time.NewTimer(tidyEvery)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(a.rest())
		select {
		case <-ctx.Done():
			continue
		case <-timer.C:
		case <-a.wakes():
			timer.Reset(writeAfter)
			select {
			case <-ctx.Done():
				continue
			case <-timer.C:
			case <-a.full:
			}
		}
		a.turn(context.WithoutCancel(ctx)) // what has begun is done soon
	}
	a.close()
}

// wakes is the sign that there is something to write; nobody listens while the file
// cannot be written.
func (a *Archive) wakes() <-chan struct{} {
	if a.pause > 0 {
		return nil
	}
	return a.wake
}

// rest is how long there is nothing to do, if nothing comes in.
func (a *Archive) rest() time.Duration {
	switch {
	case a.pause > 0:
		return a.pause
	case a.unsaved > 0:
		return max(checkpointEvery-time.Since(a.saved), time.Millisecond)
	}
	return tidyEvery
}

// turn writes what there is. A file that proves damaged is set aside at once, and
// the batch goes into a new one.
func (a *Archive) turn(ctx context.Context) {
	if a.finished {
		a.drop()
		return
	}
	err := a.write(ctx)
	if err != nil && troubleOf(err) == damaged {
		a.fail(err)
		err = a.write(ctx)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.well()
}

// drop gives up what waits, and counts it.
func (a *Archive) drop() {
	a.take()
	a.dropped.Add(int64(len(a.batch)))
	a.forgetBatch()
	a.pause = 0
}

func (a *Archive) forgetBatch() {
	clear(a.batch) // what is written need not stay in memory
	a.batch = a.batch[:0]
}

// close writes what is left, saves the ledger, and closes the file.
func (a *Archive) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	a.saved = time.Time{} // the ledger is due
	lost := 0
	for done := false; !done; {
		a.turn(ctx)
		a.mu.Lock()
		// A request that was broken off may still be reporting: it comes too late,
		// and is counted as dropped.
		if done = a.pause > 0 || len(a.queue) == 0; done {
			a.closed, lost = true, len(a.batch)+len(a.queue)
		}
		a.mu.Unlock()
	}
	if lost > 0 {
		a.dropped.Add(int64(lost))
		a.log.Error("archive", slog.String("problem", "the last requests could not be written"), slog.Int("requests", lost))
	}
	a.reader.Close() // first: who closes last, and may write, leaves one file
	a.shut()
}

// shut closes the file; it is opened again when there is something to write.
func (a *Archive) shut() {
	if a.db != nil {
		_ = a.db.Close() // everything was committed, or has failed and been told
		a.db = nil
	}
}

// fail notes what went wrong, once per problem, and says when to try again.
func (a *Archive) fail(err error) {
	if errors.Is(err, errTaken) {
		a.finished = true
		a.say(Ended, "another process writes this archive; this one's requests are in no log")
		a.shut()
		a.drop()
		return
	}
	what := troubleOf(err)
	a.shut()
	a.reader.Close()
	if what == damaged {
		aside, moved := setAside(a.path)
		if moved == nil {
			a.statusMu.Lock()
			a.status.SetAside = aside
			a.statusMu.Unlock()
			a.log.Error("archive", slog.String("problem", "damaged, set aside, and begun anew"), slog.String("error", err.Error()), slog.String("aside", aside))
			// Nothing of it is left to be restored; what this process counted is in
			// the ledger, and is saved with the next writing.
			a.open, a.saved, a.tail, a.claimed = true, time.Time{}, tail{}, false
			a.kept.Store(0)
			return
		}
		err = fmt.Errorf("%w (%w)", err, moved)
	}
	a.pause = min(cmp.Or(2*a.pause, retryFirst), retryLast)
	a.say(Waiting, what.String()+": "+err.Error())
}

// say puts a problem into the status, and into the log where it is a new one.
func (a *Archive) say(s State, problem string) {
	a.statusMu.Lock()
	known := a.status.State == s
	a.status.State, a.status.Problem = s, problem
	if !known {
		a.status.Since = time.Now()
	}
	a.statusMu.Unlock()
	if !known {
		a.log.Error("archive", slog.String("problem", problem), slog.String("path", a.path))
	}
}

// well notes that all is well.
func (a *Archive) well() {
	a.pause = 0
	a.mu.Lock()
	if len(a.queue) > 0 {
		sign(a.wake) // what found no room in the batch
	}
	a.mu.Unlock()
	a.statusMu.Lock()
	before := a.status
	a.status.State, a.status.Problem, a.status.Since = Ready, "", time.Time{}
	a.statusMu.Unlock()
	if before.State != Ready {
		a.log.Info("archive is written again", slog.String("path", a.path), slog.Int64("dropped", a.dropped.Load()))
	}
}
