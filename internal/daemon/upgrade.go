package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"understudy/internal/archive"
	"understudy/internal/handover"
)

const (
	// heirPatience is how long an heir may take from its start until it serves.
	heirPatience = 30 * time.Second
	// upgradeDrain is how long running requests may finish after a hand-over, or as
	// long as drain_timeout where that is more: the new process serves already, and
	// nobody waits for the former one.
	upgradeDrain = time.Hour
)

var (
	errUpgrading = errors.New("an upgrade is under way, or this process is ending")
	errFirst     = errors.New("this is process 1, and its container ends with it: start another container instead")
	errNoProgram = errors.New("this process does not know its own program")
	errUnsaved   = errors.New("the request log and the statistics cannot be saved now, so that the new process would begin without them (the log and /api/state, archive, say why): free the disk, or restart instead")
)

// taken is what a process that hands over says besides what it has saved.
type taken struct {
	TargetMode bool `json:"target_mode"`
}

// Upgrade starts the program that stands at this one's place now, with the same
// arguments, and gives it the listeners and the state. Once the new process serves,
// this one's Serve accepts nothing more, finishes its requests and returns. On an
// error, which the log and Status tell too, everything is as before; so it is where
// ctx is done first. It may be called while Serve runs.
func (d *Daemon) Upgrade(ctx context.Context) error {
	if !d.upgrading.TryLock() {
		return d.noUpgrade(errUpgrading, false)
	}
	defer d.upgrading.Unlock()
	if d.heir != nil {
		return d.noUpgrade(fmt.Errorf("handed over to process %d already: it is the one to upgrade", d.heir.PID), false)
	}
	d.options.Manager.Reloading()
	d.mu.Lock()
	d.upgrade.running = true
	d.mu.Unlock()
	d.log.Info("upgrade: starting the new process", slog.String("program", d.options.Program))
	heir, err := d.raise(ctx)
	d.mu.Lock()
	d.upgrade.running = false
	d.mu.Unlock()
	if err != nil {
		return d.noUpgrade(err, true)
	}
	// Before anybody hears of it: whoever comes from here on comes to the heir.
	d.proxyConns.leaving.Store(true)
	d.adminConns.leaving.Store(true)
	d.unlisten()
	d.options.Manager.Handed(heir.PID)
	d.heir = heir
	close(d.handed)
	return nil
}

// noUpgrade notes why there was none, and tells the service manager if it knows of one.
func (d *Daemon) noUpgrade(err error, began bool) error {
	d.log.Error("upgrade failed, this process goes on", slog.String("problem", err.Error()))
	d.mu.Lock()
	d.upgrade.problem, d.upgrade.at = err.Error(), time.Now()
	d.mu.Unlock()
	if began {
		d.options.Manager.Ready("upgrade failed, the former program goes on: " + err.Error())
	}
	return err
}

// raise starts the heir and brings it to serve; it is gone again after an error.
func (d *Daemon) raise(ctx context.Context) (*handover.Heir, error) {
	if os.Getpid() == 1 {
		return nil, errFirst
	}
	if d.options.Program == "" {
		return nil, errNoProgram
	}
	patience := d.options.Patience
	if patience <= 0 {
		patience = heirPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { // ends with ctx, at the latest here
		select {
		case <-d.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	descriptors, done, err := d.descriptors()
	if err != nil {
		return nil, err
	}
	defer done()
	heir, err := handover.Start(handover.Command{Path: d.options.Program, Args: os.Args, Descriptors: descriptors})
	if err != nil {
		return nil, err
	}
	if err = heir.Expect(ctx, handover.Prepared); err == nil {
		err = d.give(ctx, heir)
	}
	if err != nil {
		heir.Kill()
		return nil, err
	}
	return heir, nil
}

// descriptors are what an heir gets: the listeners, and the lock of the state.
func (d *Daemon) descriptors() (list []handover.Descriptor, done func(), err error) {
	var fds []int
	done = func() {
		for _, fd := range fds {
			handover.CloseFD(fd)
		}
	}
	for name, l := range map[string]*listener{handover.Proxy: &d.proxyListener, handover.Admin: &d.adminListener} {
		if l.Listener == nil {
			continue
		}
		fd, err := handover.Of(l.Listener)
		if err != nil {
			done()
			return nil, nil, err
		}
		fds = append(fds, fd)
		list = append(list, handover.Descriptor{Name: name, Address: l.address, FD: fd})
	}
	if d.lock != nil {
		list = append(list, handover.Descriptor{Name: lockName, Address: lockPath(d.statePath), FD: int(d.lock.file.Fd())})
	}
	return list, done, nil
}

// give gives the state away and waits until the heir serves. What happens here from
// the first moment on is told later; should the heir fail, this process keeps it.
func (d *Daemon) give(ctx context.Context, heir *handover.Heir) (err error) {
	out := &outlet{handler: d.handler, board: d.board, wake: make(chan struct{}, 1)}
	dropped := d.archive.Status().Dropped
	state, seq := d.ledger.Divert(time.Now(), out.offer)
	d.archive.Conclude(state, seq)
	d.writing.end()
	defer func() {
		if err != nil {
			heir.Kill() // before anything is written here again
			d.resume(out)
		}
	}()
	if s := d.archive.Status(); s.State != archive.Ready || s.Dropped != dropped {
		return errUnsaved
	}
	if err := d.saveLast(out); err != nil {
		return fmt.Errorf("%w: %w", errUnsaved, err)
	}
	if err := heir.Send(handover.Take, taken{TargetMode: d.handler.Target().On()}); err != nil {
		return err
	}
	if err := heir.Expect(ctx, handover.Serving); err != nil {
		return err
	}
	d.out = out
	return nil
}

// saveLast saves the state for the heir; this process saves none any more.
func (d *Daemon) saveLast(out *outlet) error {
	out.owners = d.handler.Owners().Changes() // what comes while it is saved is told again
	board, err := d.saveHealth(true)
	if err == nil {
		err = d.saveOwners()
	}
	out.known = board
	d.saving.Lock()
	d.given = true
	d.saving.Unlock()
	return err
}

// resume takes back what was given away.
func (d *Daemon) resume(out *outlet) {
	d.saving.Lock()
	d.given, d.savedHealth = false, nil
	d.saving.Unlock()
	d.archive.Resume()
	d.writing.begin()
	out.giveBack(d.archive.Offer)
	d.ledger.Tap(d.archive.Offer)
	if err := d.lock.sign(); err != nil {
		d.log.Warn("state", slog.String("problem", err.Error()))
	}
}

// retire is the end of a process that has handed over: nothing is accepted any more,
// what runs may finish, and the heir is told all of it. ctx asks for haste, now for
// the end.
func (d *Daemon) retire(ctx, now context.Context) {
	timeout := d.handler.Snapshot().Config.Server.DrainTimeout
	d.log.Info("handed over, finishing running requests", slog.Int("process", d.heir.PID), slog.Int64("requests", d.ledger.Totals().InFlight))
	until, cancel := context.WithTimeout(now, max(upgradeDrain, timeout))
	defer cancel()
	go d.hasten(ctx, until, cancel, timeout)
	telling, enough := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.out.run(telling, d.heir) }()

	d.endEvents()
	d.lock.release() // it is the heir's alone
	tunnels := make(chan struct{})
	go func() {
		defer close(tunnels)
		d.handler.EndTunnels(until)
	}()
	d.proxyConns.leave(until, linger)
	if err := d.proxyServer.Shutdown(until); err != nil {
		d.log.Warn("requests broken off", slog.Int64("requests", d.ledger.Totals().InFlight))
		d.proxyServer.Close()
	}
	<-tunnels
	d.former.wait(until)
	d.settle()
	enough()
	if err := <-ended; err != nil {
		d.log.Error("the new process does not listen, what has finished here since is in no books", slog.Int64("requests", d.out.untold()), slog.String("problem", err.Error()))
	}
	d.heir.Close()
}

// hasten leaves drain_timeout from the moment on when somebody asks for the end: a
// signal to this process, or one to the heir.
func (d *Daemon) hasten(ctx, until context.Context, cancel context.CancelFunc, timeout time.Duration) {
	messages := d.heir.Messages()
	for asked := false; !asked; {
		select {
		case <-until.Done():
			return
		case <-ctx.Done():
			asked = true
		case m, ok := <-messages:
			if !ok {
				messages = nil // gone; its end is no reason to cut anybody off
				continue
			}
			seconds := 0.0
			if asked = m.Kind == handover.Ending; asked && m.Read(&seconds) == nil {
				timeout = time.Duration(seconds * float64(time.Second))
			}
		}
	}
	d.log.Info("finishing running requests", slog.Int64("requests", d.ledger.Totals().InFlight), slog.Duration("at_most", timeout))
	d.urge(timeout)
	end := time.NewTimer(timeout)
	defer end.Stop()
	select {
	case <-end.C:
		cancel()
	case <-until.Done():
	}
}

// settleTime bounds the wait for requests that were broken off to be booked.
const settleTime = time.Second

// settle waits until every request is booked.
func (d *Daemon) settle() {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for end := time.Now().Add(settleTime); d.ledger.Totals().InFlight > 0 && time.Now().Before(end); {
		<-tick.C
	}
}
