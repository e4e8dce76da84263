package load

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// A Fate is what became of a request.
type Fate uint8

// The fates.
const (
	Served   Fate = iota // answered as it should be
	Shed                 // 503 or 429 that says when to come again
	ShedMute             // 503 or 429 that does not
	Refused              // the connection was refused or did not come about
	Cut                  // the connection broke
	Late                 // the client's patience was over
	Wrong                // anything else
	Fates                // how many there are
)

// A Landing is the end of one request.
type Landing struct {
	Sent time.Duration // when, since the surge began
	Took time.Duration
	Fate Fate
}

// mostUnder bounds the requests of a surge that are under way: each has a descriptor.
const mostUnder = 15000

// A Surge is a flow that takes note of each request, and whose clients have little patience.
type Surge struct {
	flow  Flow
	began time.Time

	mu       sync.Mutex
	landings []Landing
	unsent   int
	why      error
}

// Capacity keeps so many clients busy for a time, each with its next request when the
// answer to the last is whole, and returns how many were served per second.
func Capacity(to Target, ask func(i int) Ask, clients int, d time.Duration) (perSecond float64, why error) {
	s := &Surge{flow: Flow{to: to, patience: requestTime}, began: time.Now()}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := i; time.Since(s.began) < d; n += clients {
				s.one(ask(n))
			}
		})
	}
	wg.Wait()
	span := time.Since(s.began)
	s.flow.Wait()
	served := 0
	for _, l := range s.landings {
		if l.Fate == Served {
			served++
		}
	}
	return float64(served) / span.Seconds(), s.why
}

// Begin sends requests at a fixed rate until ctx is done, whatever becomes of those
// before. A client leaves when its patience is over.
func Begin(ctx context.Context, to Target, perSecond float64, patience time.Duration, ask func(i int) Ask) *Surge {
	s := &Surge{flow: Flow{to: to, patience: patience}, began: time.Now()}
	s.flow.wg.Go(func() {
		// Timers that come late are made up for: all that is due is sent at once.
		for sent := 0; ctx.Err() == nil; {
			due := int(time.Since(s.began).Seconds()*perSecond) + 1
			for ; sent < due && ctx.Err() == nil; sent++ {
				if s.flow.under.Load() >= mostUnder {
					s.mu.Lock()
					s.unsent++
					s.mu.Unlock()
					continue
				}
				s.flow.under.Add(1)
				a := ask(sent) // as cheap as can be: it is on the clock
				s.flow.wg.Go(func() {
					defer s.flow.under.Add(-1)
					s.one(a)
				})
			}
			time.Sleep(time.Until(s.began.Add(time.Duration(float64(sent) / perSecond * float64(time.Second)))))
		}
	})
	return s
}

// one sends a request and notes its end.
func (s *Surge) one(a Ask) {
	c := s.flow.connection(a.Fresh)
	sent := time.Since(s.began)
	err := s.flow.ask(c, a)
	l := Landing{sent, time.Since(s.began) - sent, fate(err, c.when)}
	if a.Fresh {
		c.drop()
	}
	s.flow.keep(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landings = append(s.landings, l)
	if l.Fate == Wrong {
		s.why = err
	}
}

// Wait waits for the last answer. It returns the ends of all requests, how many could
// not be sent since too many were under way, and why the last of the wrong ones is wrong.
func (s *Surge) Wait() (landings []Landing, unsent int, why error) {
	s.flow.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.landings, s.unsent, s.why
}

// fate is what an error means; when says that the answer told when to come again.
func fate(err error, when bool) Fate {
	var status StatusError
	switch {
	case err == nil:
		return Served
	case errors.As(err, &status) && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests):
		if when {
			return Shed
		}
		return ShedMute
	case errors.As(err, &status):
		return Wrong
	case errors.Is(err, errDial):
		return Refused
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Late
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, ErrCut):
		return Cut
	}
	return Wrong
}
