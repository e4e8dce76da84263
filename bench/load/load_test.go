package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func target(t *testing.T, h http.HandlerFunc) Target {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Target{Addr: strings.TrimPrefix(s.URL, "http://"), Path: "/v1/chat/completions"}
}

func TestRequestsAreCounted(t *testing.T) {
	n := 0
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if n++; n == 3 || !strings.Contains(string(body), `"model":"m"`) {
			w.WriteHeader(503)
		}
		_, _ = w.Write(body)
	})
	got := Serial(to, to.Request(Body("m", false)), 5, time.Minute)
	if got.Good != 4 || got.Bad != 1 || !errors.Is(got.Err, StatusError(503)) {
		t.Errorf("tally = %+v", got)
	}
	if w := Warm(to, [][]byte{to.Request(Body("m", false))}, 10, 4); w.Good != 10 {
		t.Errorf("tally = %+v", w)
	}
}

func stamped(at time.Time) string { return fmt.Sprintf(`{"content":"@T%019d@ fox"}`, at.UnixNano()) }

// TestStampsAreFoundHoweverTheyAreCut feeds a stream in pieces of every size.
func TestStampsAreFoundHoweverTheyAreCut(t *testing.T) {
	at := time.Now().Add(-time.Second)
	text := strings.Repeat("data: "+stamped(at)+"\n\n", 3) + "@T or @T12@ are none\n\ndata: [DONE]\n\n"
	for size := 1; size <= len(text); size++ {
		var w watcher
		begun := 0
		w.each = func() { begun++ }
		for p := text; p != ""; p = p[min(size, len(p)):] {
			w.piece([]byte(p[:min(size, len(p))]))
		}
		if w.deltas != 3 || begun != 3 || !w.whole() {
			t.Fatalf("pieces of %d: %d deltas, told of %d, whole %v", size, w.deltas, begun, w.whole())
		}
		for _, d := range w.delays {
			if d < time.Second || d > time.Minute {
				t.Fatalf("pieces of %d: a delay of %v", size, d)
			}
		}
	}
}

func TestACutStreamIsBad(t *testing.T) {
	for _, c := range []struct {
		name, end   string
		good, bad   int
		cut, breaks bool
	}{
		{"whole", "data: [DONE]\n\n", 1, 0, false, false},
		{"without its end", "", 0, 1, true, false},
		{"broken off", "", 0, 1, false, true},
	} {
		to := target(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, stamped(time.Now()), c.end)
			w.(http.Flusher).Flush()
			if c.breaks {
				panic(http.ErrAbortHandler)
			}
		})
		got := Streams(to, Body("m", true), Pattern{Deltas: 2}, 1, 1, 0)
		if got.Good != c.good || got.Bad != c.bad || got.Deltas != 1 || got.Missing != 1 || errors.Is(got.Err, ErrCut) != c.cut {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestACrowdIsHeldAndLeaves(t *testing.T) {
	gone := make(chan struct{}, 20)
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, stamped(time.Now()))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})
	g := Gather(to, Body("m", true), Pattern{Deltas: 1}, 20)
	if g.Open() != 20 {
		t.Errorf("%d open", g.Open())
	}
	if err := g.Leave(); err != nil {
		t.Error(err)
	}
	for range 20 {
		<-gone
	}
	if err := Gather(Target{Addr: "127.0.0.1:1"}, nil, Pattern{}, 3).Leave(); err == nil {
		t.Error("a crowd that found nobody says nothing")
	}
}

func TestPacedRequestsAreCompared(t *testing.T) {
	fast := target(t, func(w http.ResponseWriter, r *http.Request) {})
	slow := target(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	})
	a := Paced(slow, fast, nil, 100, 300*time.Millisecond)
	if a.Good != 30 || a.Bad != 0 || a.P50 < 10*time.Millisecond {
		t.Errorf("%+v", a)
	}
}

func TestQuantile(t *testing.T) {
	times := []time.Duration{5, 1, 4, 2, 3}
	for p, want := range map[float64]time.Duration{0: 1, .5: 3, .99: 5, 1: 5} {
		if got := Quantile(times, p); got != want {
			t.Errorf("%v-quantile = %d, want %d", p, got, want)
		}
	}
	if Quantile(nil, .5) != 0 {
		t.Error("a quantile of nothing")
	}
}

func TestImageBodiesHaveTheirSize(t *testing.T) {
	for _, size := range []int{0, 1 << 10, 1 << 20} {
		if n := len(ImageBody("m", size)); n < size || n > size+1<<10 {
			t.Errorf("%d bytes, wanted %d", n, size)
		}
	}
}
