package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestASurgeTellsWhatBecameOfEach has a server answer in every way there is.
func TestASurgeTellsWhatBecameOfEach(t *testing.T) {
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		switch string(body) {
		case "shed":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "mute":
			w.WriteHeader(http.StatusTooManyRequests)
		case "cut":
			panic(http.ErrAbortHandler)
		case "wrong":
			w.WriteHeader(http.StatusBadGateway)
		case "late":
			<-r.Context().Done()
		}
	})
	wants := map[string]Fate{"good": Served, "shed": Shed, "mute": ShedMute, "cut": Cut, "wrong": Wrong, "late": Late}
	for body, want := range wants {
		ctx, stop := context.WithCancel(t.Context())
		s := Begin(ctx, to, 1000, 300*time.Millisecond, func(i int) Ask {
			if i == 4 {
				stop()
			}
			return Ask{Bytes: to.Request([]byte(body)), Status: 200, Fresh: i%2 == 0}
		})
		landings, unsent, why := s.Wait()
		if len(landings) != 5 || unsent != 0 || (why != nil) != (want == Wrong) {
			t.Errorf("%s: %d landings, %d unsent, %v", body, len(landings), unsent, why)
		}
		for _, l := range landings {
			if l.Fate != want && body != "good" { // the machine may be slow
				t.Errorf("%s: %+v", body, l)
			}
		}
	}
	if perSecond, why := Capacity(to, func(int) Ask { return Ask{Bytes: to.Request(nil), Status: 200} }, 3, 50*time.Millisecond); perSecond <= 0 || why != nil {
		t.Errorf("%v a second, %v", perSecond, why)
	}
}

func TestFates(t *testing.T) {
	for want, err := range map[Fate]error{
		Refused: fmt.Errorf("%w: %w", errDial, os.ErrDeadlineExceeded),
		Late:    &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		Cut:     &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
		Served:  nil,
		Wrong:   errMalformed,
	} {
		if got := fate(err, true); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
