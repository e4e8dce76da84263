package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"understudy/internal/archive"
	"understudy/internal/handover"
)

// lockName is the lock among what is passed on.
const lockName = "lock"

// errAlone is why an heir gives up: it was to be given everything, and was not.
var errAlone = errors.New("the process that started this one has gone, or has given the upgrade up")

// await tells the former process that this one is prepared, and waits for its word
// that the state is on disk.
func (d *Daemon) await() (t taken, err error) {
	link := d.options.Heir.Link
	if err := link.Send(handover.Prepared, nil); err != nil {
		return t, fmt.Errorf("%w: %w", errAlone, err)
	}
	for {
		m, err := link.Receive()
		if err != nil {
			return t, fmt.Errorf("%w: %w", errAlone, err)
		}
		if m.Kind == handover.Take {
			return t, m.Read(&t)
		}
	}
}

// former is the process that has handed over to this one, while it still finishes
// requests. Its zero value is none.
type former struct {
	mu       sync.Mutex
	inFlight int64
	gone     chan struct{} // closed when nothing comes from it any more; nil = there never was one
}

// running says whether there is one, and how many requests run there.
func (f *former) running() (is bool, inFlight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone == nil {
		return false, 0
	}
	select {
	case <-f.gone:
		return false, 0
	default:
		return true, f.inFlight
	}
}

// wait waits until it has ended, or ctx has.
func (f *former) wait(ctx context.Context) {
	if f.gone == nil {
		return
	}
	select {
	case <-f.gone:
	case <-ctx.Done():
	}
}

// urge asks the process before this one, if it still runs, to end within a time.
func (d *Daemon) urge(within time.Duration) {
	if is, _ := d.former.running(); is {
		_ = d.options.Heir.Link.Send(handover.Ending, within.Seconds()) // one that has gone needs no haste
	}
}

// succeed tells the former process that this one serves, and books what it tells from
// then on until it is done.
func (d *Daemon) succeed() {
	defer close(d.former.gone)
	link := d.options.Heir.Link
	if err := link.Send(handover.Serving, nil); err != nil {
		d.log.Warn("upgrade: the former process has gone", slog.String("problem", err.Error()))
	}
	if err := d.lock.sign(); err != nil {
		d.log.Warn("state", slog.String("problem", err.Error()))
	}
	for {
		m, err := link.Receive()
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) {
				d.log.Warn("upgrade: the former process cannot be understood", slog.String("problem", err.Error()))
			} else {
				d.log.Warn("upgrade: the former process has ended before it was done")
			}
			return
		case m.Kind == handover.Done:
			d.log.Info("upgrade: the former process has finished")
			return
		case m.Kind == handover.News:
			var n news
			if err := m.Read(&n); err != nil {
				d.log.Warn("upgrade", slog.String("problem", err.Error()))
				continue
			}
			d.book(&n)
		}
	}
}

// book takes what has happened at the former process into this one's books.
func (d *Daemon) book(n *news) {
	d.former.mu.Lock()
	d.former.inFlight = n.InFlight
	d.former.mu.Unlock()
	d.board.Apply(n.Board, time.Now())
	if len(n.Owners) > 0 {
		if err := d.handler.Owners().Learned(n.Owners); err != nil {
			d.log.Warn("upgrade", slog.String("problem", err.Error()))
		}
	}
	if n.Lost > 0 {
		d.log.Warn("upgrade: requests of the former process are in no books", slog.Int64("requests", n.Lost))
	}
	if len(n.Records) == 0 {
		return
	}
	records, err := archive.Unpack(n.Records)
	if err != nil {
		d.log.Warn("upgrade: requests of the former process cannot be read", slog.String("problem", err.Error()))
	}
	for i := range records {
		r := records[i].Record
		if i < len(n.Bodies) {
			r.Bodies = n.Bodies[i]
		}
		d.ledger.Adopt(r)
	}
}

// UpgradeStatus is how upgrades go.
type UpgradeStatus struct {
	// Running: a new process is being started.
	Running bool
	// Problem is why the last one failed, and FailedAt when; "" = none has.
	Problem  string
	FailedAt time.Time
	// Former: the process before this one finishes FormerInFlight requests.
	Former         bool
	FormerInFlight int64
}

// UpgradeStatus says how upgrades go.
func (d *Daemon) UpgradeStatus() UpgradeStatus {
	var s UpgradeStatus
	d.mu.Lock()
	s.Running, s.Problem, s.FailedAt = d.upgrade.running, d.upgrade.problem, d.upgrade.at
	d.mu.Unlock()
	s.Former, s.FormerInFlight = d.former.running()
	return s
}
