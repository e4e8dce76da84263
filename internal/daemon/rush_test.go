package daemon

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A tide is a rush whose soundings return when the test says so.
type tide struct {
	*rush
	t    *testing.T
	now  time.Time
	sent int
}

func newTide(t *testing.T) *tide {
	r := &tide{rush: newRush(slog.New(slog.DiscardHandler)), t: t, now: time.Now()}
	r.sound = func() { r.sent++ }
	r.inside.Store(fewInside)
	return r
}

// let asserts how many of so many that come after a time are let in, and whether those
// that are not are turned away.
func (r *tide) let(after time.Duration, come, in int, on bool) {
	r.t.Helper()
	r.now = r.now.Add(after)
	got := 0
	for range come {
		if r.enter(r.now) {
			got++
		}
	}
	if got != in || r.on(r.now) != on {
		r.t.Errorf("%d of %d are let in, turned away: %v; want %d, %v", got, come, r.on(r.now), in, on)
	}
}

// back is the return of the sounding that is under way.
func (r *tide) back(after time.Duration) {
	r.now = r.now.Add(after)
	r.echo(r.now)
}

// Soundings that return in time hold nobody up, however many come; and nothing is
// sounded when nobody comes, nor more often than need be.
func TestNobodyIsHeldUpWithoutARush(t *testing.T) {
	r := newTide(t)
	for range 100 {
		r.let(time.Millisecond, 5000, 5000, false)
		r.back(lateAfter)
	}
	if r.sent != 100 {
		t.Errorf("%d soundings", r.sent)
	}
	for range 10 {
		r.let(soundEvery/100, 1000, 1000, false)
		r.back(0)
	}
	if r.sent != 101 {
		t.Errorf("%d soundings within %v", r.sent-100, soundEvery)
	}
	var none *rush
	if !none.enter(r.now) || none.on(r.now) {
		t.Error("there is a rush where nobody notices one")
	}
}

// A machine that is busy with something else, or has slept, is late too. With few
// requests under way nobody is held up for it, let alone turned away, and so nothing is
// sounded.
func TestFewRequestsAreNoRush(t *testing.T) {
	r := newTide(t)
	r.inside.Store(fewInside - 1)
	r.let(0, 1, 1, false)
	for range 50 {
		r.let(lateAfter+1, 5, 5, false)
	}
	if r.sent != 0 {
		t.Errorf("%d soundings", r.sent)
	}
}

// Late soundings let requests in by batches: as many at each return as could be served
// since the last, more while that is soon and they are not enough, fewer when it is late.
func TestARushLetsInWhatCanBeServed(t *testing.T) {
	r := newTide(t)
	r.let(0, 10, 10, false)
	r.let(lateAfter+1, 10, 0, false) // noticed before the sounding returns
	r.back(time.Second)
	r.let(0, 100, firstBatch, false)
	r.back(time.Millisecond)
	r.let(0, 100, firstBatch*5/4, false) // soon, and they were not enough
	r.let(soundEvery, 1, 0, false)
	r.back(lateAfter * 3 / 4)
	r.let(0, 100, firstBatch*5/4, false) // neither soon nor late
	r.let(soundEvery, 1, 0, false)
	r.back(lateAfter + 1)
	r.let(0, 100, firstBatch*5/4*7/10, false)
	for range 50 {
		r.now = r.now.Add(soundEvery)
		r.enter(r.now) // sends one
		r.back(lateAfter + 1)
	}
	if r.batch != leastBatch {
		t.Errorf("batches of %d", r.batch)
	}
}

// Who was let in counts as inside until a sounding has gone the same way; then only what
// is under way does, however many connections stand open for nothing.
func TestWhoWasLetInCountsUntilTheNextSounding(t *testing.T) {
	r := newTide(t)
	r.let(0, 1, 1, false)
	r.let(lateAfter+1, 1, 0, false)
	r.inside.Store(0)
	r.let(0, 1000, fewInside, false)
	r.back(time.Millisecond)
	r.let(0, 1000, fewInside+r.batch, false)
	r.let(soundEvery, 1, 0, false)
	r.back(0)
	r.inside.Store(fewInside - 1)
	r.let(0, 1000, 1+r.batch, false)
	if want := firstBatch * 5 / 4; r.batch != want {
		t.Errorf("batches of %d and not %d", r.batch, want)
	}
}

// One burst is not turned away, however late it is. What goes on is, after the grace;
// and soon after it is over, everybody comes in again.
func TestARushTurnsAwayAfterItsGrace(t *testing.T) {
	r := newTide(t)
	r.let(0, 1, 1, false)
	r.let(lateAfter+1, 1, 0, false)
	for at := time.Duration(0); at < rushGrace-200*time.Millisecond; at += 110 * time.Millisecond {
		r.back(100 * time.Millisecond)
		r.let(10*time.Millisecond, 5000, r.batch, false)
	}
	r.let(200*time.Millisecond, 1, 0, true)
	r.back(0)
	r.let(0, 5, 5, true) // there is room, and it is used
	for range 4 {
		r.back(time.Millisecond)
		r.let(rushCalm/4-time.Millisecond, 1, 1, true)
	}
	r.let(time.Millisecond, 5000, 5000, false)
	if on, turned := r.seen(r.now); on || turned != 0 {
		t.Errorf("%v, %d", on, turned)
	}
}

// A rush of yesterday is none today, even where it ended with the last who came.
func TestARushThatEndsWithTheLastWhoCame(t *testing.T) {
	r := newTide(t)
	r.let(0, 1, 1, false)
	r.let(lateAfter+1, 1, 0, false)
	for range 10 {
		r.now = r.now.Add(rushGrace / 10)
		r.enter(r.now)
	}
	r.let(0, 1, 0, true)
	r.back(0)
	r.let(0, firstBatch+1, r.batch, true)
	r.back(time.Millisecond)
	r.let(24*time.Hour, 5000, 5000, false)
}

// Where soundings cannot return any more, there is no rush.
func TestASoundingThatIsLost(t *testing.T) {
	r := newTide(t)
	r.let(0, 1, 1, false)
	r.let(time.Hour, 1, 0, false)
	r.deafen()
	r.let(time.Hour, 10, 10, false)
	if r.sent != 1 {
		t.Errorf("%d soundings", r.sent)
	}
}

// What turning away costs is bounded.
func TestFewAreTurnedAwayAtOnce(t *testing.T) {
	r := newTide(t)
	r.turns = 1000
	got := 0
	for range 100 {
		for range 1000 {
			if r.afford(r.now) {
				got++
			}
		}
		r.now = r.now.Add(10 * time.Millisecond)
	}
	if got < 900 || got > 1100 {
		t.Errorf("%d in a second of 1000 each", got)
	}
}

// answered sends a request over a connection and returns what was answered, and whether the
// connection is kept.
func answered(t *testing.T, c net.Conn, path string) (answer string, kept bool) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return err.Error(), false
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error(), false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), false
	}
	why := ""
	if strings.Contains(string(body), "more requests come than can be served") {
		why = " a rush"
	}
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Retry-After"), why), !resp.Close
}

// deaf has soundings be lost from now on, in a rush that there has been since a time. It
// returns what sends real ones.
func (r *rig) deaf(since time.Time) (sound func()) {
	for {
		r.rush.mu.Lock()
		if r.rush.sent.IsZero() { // else one is still on its way back
			break
		}
		r.rush.mu.Unlock()
		runtime.Gosched()
	}
	defer r.rush.mu.Unlock()
	sound, r.rush.sound = r.rush.sound, func() {}
	r.rush.since, r.rush.last, r.rush.batch, r.rush.places = since, time.Now(), firstBatch, 0
	return sound
}

// In a rush, a request on a connection that is kept and a new connection get 503 with
// Retry-After, and are closed; who asks whether the program lives is told that it does.
// When it is over, all is as it was.
func TestARush(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m")).serve()
	kept, other := dial(t, r.Addr()), dial(t, r.Addr())
	for _, c := range []net.Conn{kept, other} {
		if got, _ := answered(t, c, "/v1/models"); got != "200 " {
			t.Fatal(got)
		}
	}
	r.rush.inside.Add(fewInside)
	sound := r.deaf(time.Now().Add(-rushGrace))
	if got, keeps := answered(t, kept, "/healthz"); got != "200 " || !keeps {
		t.Errorf("healthz: %s, kept %v", got, keeps)
	}
	if got, keeps := answered(t, kept, "/v1/models"); got != "503 2 a rush" || keeps {
		t.Errorf("on a connection that is kept: %s, kept %v", got, keeps)
	}
	if got, keeps := answered(t, dial(t, r.Addr()), "/v1/models"); got != "503 2 a rush" || keeps {
		t.Errorf("on a new connection: %s, kept %v", got, keeps)
	}
	r.rush.inside.Add(-fewInside)
	if got, keeps := answered(t, other, "/v1/models"); got != "200 " || !keeps {
		t.Errorf("with few requests under way: %s, kept %v", got, keeps)
	}
	if v := r.Control("v").View(); v.Rush.TurnedAway != 2 {
		t.Errorf("%+v", v.Rush)
	}
	r.rush.mu.Lock()
	r.rush.sound, r.rush.sent, r.rush.last = sound, time.Time{}, time.Now().Add(-2*rushCalm)
	r.rush.mu.Unlock()
	for _, c := range []net.Conn{other, dial(t, r.Addr())} {
		for end := time.Now().Add(10 * time.Second); ; {
			got, keeps := answered(t, c, "/v1/models")
			if got == "200 " {
				break
			}
			if !keeps {
				c = dial(t, r.Addr())
			}
			if time.Now().After(end) {
				t.Fatalf("it is not over: %s", got)
			}
		}
	}
}

// Within the grace a new connection waits, and is served once there is room; those that
// are open are served meanwhile.
func TestABurstWaits(t *testing.T) {
	r := newRig(t, vm("", "a http://127.0.0.1:1 m")).serve()
	open := dial(t, r.Addr())
	if got, _ := answered(t, open, "/v1/models"); got != "200 " {
		t.Fatal(got)
	}
	r.rush.inside.Add(fewInside)
	sound := r.deaf(time.Now().Add(time.Hour))
	late := dial(t, r.Addr())
	if _, err := io.WriteString(late, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, keeps := answered(t, open, "/v1/models"); got != "200 " || !keeps {
		t.Errorf("on a connection that is open: %s, kept %v", got, keeps)
	}
	r.rush.mu.Lock()
	short := r.rush.short
	r.rush.sound, r.rush.sent = sound, time.Time{}
	r.rush.mu.Unlock()
	if !short {
		t.Error("there was room for everybody")
	}
	resp, err := http.ReadResponse(bufio.NewReader(late), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %+v", err, resp)
	}
	resp.Body.Close()
	if _, turned := r.rush.seen(time.Now()); turned != 0 {
		t.Errorf("%d were turned away", turned)
	}
}
