package probe

import (
	"io"
	"time"

	"understudy/internal/wire"
)

// complete judges an answer that is held until it is whole: a break, a stall or an
// error anywhere before its terminal event is a failure, and nobody has seen a byte.
func (x *Exchange) complete(out []byte, err error, d *Delivery) (*Failure, bool) {
	if len(out) > 0 && d.Holding != nil && !x.announced && x.reader.Open().Format == wire.SSE {
		x.announced = true
		d.Holding()
	}
	_, healthy := x.reader.Release()
	if healthy && !x.proved {
		// It has proved good: from here on only silence ends it, not its length.
		x.proved = true
		x.prove(d)
	}
	mute := x.mute(d.Mute, time.Now())
	if x.proved && mute && err == nil && !x.reader.Terminal() {
		x.clock.Cancel(ErrBudget)
		return x.broke(ErrBudget), false
	}
	switch {
	case x.reader.Verdict() == wire.Erred:
		return x.sick(), false
	case healthy && (x.over(err != nil || mute) || x.reader.Unknown() || d.Limit > 0 && x.held.len() >= d.Limit):
		return nil, x.release(err)
	case err == io.EOF:
		return x.ended()
	case err != nil:
		return x.broke(err), false
	}
	return nil, false
}

// over says whether an answer that is held has ended. A finish reason is its end only
// where nothing more comes: some are followed by more words.
func (x *Exchange) over(last bool) bool {
	return x.reader.Over() || last && x.reader.Terminal()
}

// mute says whether an answer has shown no event for so long.
func (x *Exchange) mute(most time.Duration, now time.Time) bool {
	if n := x.reader.Events(); n != x.events || x.spoke.IsZero() {
		x.events, x.spoke = n, now
	}
	return most > 0 && now.Sub(x.spoke) > most
}

// prove notes that the answer is good and is only held for longer.
func (x *Exchange) prove(d *Delivery) {
	x.clock.Proved()
	if x.progress != nil {
		x.progress.proved.Store(true)
	}
	if d.Proved != nil {
		d.Proved()
	}
}

// window holds an answer that has proved good for a while longer: what breaks
// within that time fails over unseen.
func (x *Exchange) window(d *Delivery) (*Failure, bool) {
	x.prove(d)
	x.src.pump()
	end := time.NewTimer(d.Window)
	defer end.Stop()
	for {
		out, plain, err, ok := x.src.nextUntil(end.C)
		if !ok {
			return nil, x.release(nil)
		}
		x.hold(out, plain)
		x.take(plain)
		switch {
		case x.reader.Verdict() == wire.Erred:
			return x.sick(), false
		case err == nil && (x.reader.Over() || x.full || d.Limit > 0 && x.held.len() >= d.Limit):
			return nil, x.release(nil)
		case err == io.EOF:
			return x.ended()
		case err != nil && x.reader.Terminal():
			return nil, x.release(err)
		case err != nil:
			return x.broke(err), false
		}
	}
}
