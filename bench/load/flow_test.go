package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAFlowFindsWhatIsWrong sends every kind of request to a server that answers some
// of them wrongly, and finds those and no others.
func TestAFlowFindsWhatIsWrong(t *testing.T) {
	event := "data: " + stamped(time.Now()) + "\n\n"
	const end = "data: [DONE]\n\n"
	left := make(chan struct{})
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			close(left)
			return
		}
		switch string(body) {
		case "stream":
			fmt.Fprint(w, event, event, end)
		case "short stream":
			fmt.Fprint(w, event, end)
		case "no end":
			fmt.Fprint(w, event, event)
		case "for ever":
			fmt.Fprint(w, event)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprintf(w, "%s", body)
		}
	})
	says := func(want string) func([]byte) error {
		return func(got []byte) error {
			if string(got) != want {
				return errors.New("something else")
			}
			return nil
		}
	}
	request := func(body string) []byte { return to.Request([]byte(body)) }
	two := &Stream{Pattern{Deltas: 2}, 2*len(event) + len(end)}
	asks := []Ask{
		{Kind: "right", Bytes: request("yes"), Status: 200, Whole: says("yes")},
		{Kind: "fresh", Bytes: request("yes"), Status: 200, Fresh: true},
		{Kind: "wrong", Bytes: request("no"), Status: 200, Whole: says("yes")},
		{Kind: "status", Bytes: request("yes"), Status: 502},
		{Kind: "stream", Bytes: request("stream"), Status: 200, Stream: two},
		{Kind: "short", Bytes: request("short stream"), Status: 200, Stream: two},
		{Kind: "no end", Bytes: request("no end"), Status: 200, Stream: two},
		{Kind: "left", Bytes: request("for ever"), Status: 200, Stream: two, Leave: 1},
		{Kind: "cut", Bytes: request("never whole"), Cut: len(request("never whole")) - 1},
	}
	ctx, stop := context.WithCancel(t.Context())
	n := 0
	f := Open(ctx, to, 500, func() Ask {
		if n++; n == len(asks) {
			stop()
		}
		return asks[n-1]
	})
	kinds, failures := f.Wait()
	for _, a := range asks {
		bad := map[string]int{"wrong": 1, "status": 1, "short": 1, "no end": 1}[a.Kind]
		if k := kinds[a.Kind]; k == nil || k.Bad != bad || k.Good != 1-bad {
			t.Errorf("%s: %+v", a.Kind, k)
		}
	}
	if !errors.Is(kinds["no end"].Err, ErrCut) || !errors.Is(kinds["status"].Err, StatusError(200)) {
		t.Errorf("%v, %v", kinds["no end"].Err, kinds["status"].Err)
	}
	if s := f.Seen(); s.Good != 5 || s.Bad != 4 || s.InFlight != 0 || len(s.Times) != 2 {
		t.Errorf("%+v", s)
	}
	if len(failures) != 4 || !strings.Contains(strings.Join(failures, "\n"), "short after") {
		t.Errorf("%q", failures)
	}
	<-left
}

func TestFetch(t *testing.T) {
	to := target(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer mine" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, "here")
	})
	if _, err := Fetch(to, to.Request(nil)); !errors.Is(err, StatusError(401)) {
		t.Error(err)
	}
	to.Key = "mine"
	if got, err := Fetch(to, to.Request(nil)); err != nil || string(got) != "here" {
		t.Errorf("%q %v", got, err)
	}
}
