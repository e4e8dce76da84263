package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// A line sends commands over one connection, which it makes when it is needed. Commands
// of several goroutines go out behind each other, and the answers come in that order.
type line struct {
	to *server
	// turn is held by who connects or sends.
	turn chan struct{}

	mu      sync.Mutex
	link    *link // nil: none, or it is broken
	waiting []waiting
	closed  bool
	readers sync.WaitGroup
}

// waiting is a command whose answer is to come.
type waiting struct {
	since  time.Time
	answer chan<- answer // with room for it: who asked may have left
}

type answer struct {
	v   any
	err error
}

var (
	errClosed = errors.New("the store is closed")
	errLate   = fmt.Errorf("the server does not answer: %w", os.ErrDeadlineExceeded)
)

func newLine(to *server) *line { return &line{to: to, turn: make(chan struct{}, 1)} }

// do sends a command and waits for its answer, for answerIn at most. A refusal is an
// error too.
func (l *line) do(ctx context.Context, words ...any) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerIn+dialFor, errLate)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	came, err := l.send(ctx, appendCommand(nil, words...))
	<-l.turn
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(answerIn)
	defer late.Stop()
	select {
	case a := <-came:
		if r, ok := a.v.(refusal); ok {
			return nil, r
		}
		return a.v, a.err
	case <-late.C:
		return nil, errLate
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send sends a command over the connection that there is, or a new one. The answer comes
// through the channel.
func (l *line) send(ctx context.Context, command []byte) (<-chan answer, error) {
	to, err := l.connected(ctx)
	if err != nil {
		return nil, err
	}
	came := make(chan answer, 1)
	l.mu.Lock()
	if l.link != to {
		l.mu.Unlock()
		return nil, net.ErrClosed // it broke just now
	}
	l.waiting = append(l.waiting, waiting{time.Now(), came})
	l.mu.Unlock()
	if err := to.write(command); err != nil {
		l.broken(to, err)
	}
	return came, nil
}

// connected is the connection that there is, or a new one. One whose answers do not come
// is given up: nobody who asks it now would hear.
func (l *line) connected(ctx context.Context) (*link, error) {
	l.mu.Lock()
	have, closed := l.link, l.closed
	stuck := have != nil && len(l.waiting) > 0 && time.Since(l.waiting[0].since) > answerIn
	l.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case stuck:
		l.broken(have, errLate)
	case have != nil:
		return have, nil
	}
	fresh, err := l.to.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := fresh.SetReadDeadline(time.Time{}); err != nil {
		fresh.Close()
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		fresh.Close()
		return nil, errClosed
	}
	l.link = fresh
	l.readers.Go(func() { l.read(fresh) })
	return fresh, nil
}

// read hands the answers to who waits for them, until the connection breaks.
func (l *line) read(from *link) {
	for {
		v, err := from.replies.next()
		if err != nil {
			l.broken(from, err)
			return
		}
		l.mu.Lock()
		if l.link != from {
			l.mu.Unlock()
			return
		}
		if len(l.waiting) == 0 {
			l.mu.Unlock()
			l.broken(from, errProtocol) // nobody asked
			return
		}
		first := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		first.answer <- answer{v: v}
	}
}

// broken gives a connection up, and tells who waits for it.
func (l *line) broken(which *link, err error) {
	l.mu.Lock()
	var told []waiting
	if l.link == which { // else somebody else was first
		told, l.link, l.waiting = l.waiting, nil, nil
	}
	l.mu.Unlock()
	which.Close()
	for _, w := range told {
		w.answer <- answer{err: err}
	}
}

// Close ends the connection; who waits is told.
func (l *line) Close() {
	l.mu.Lock()
	l.closed = true
	have := l.link
	l.mu.Unlock()
	if have != nil {
		l.broken(have, errClosed)
	}
	l.readers.Wait()
}
