package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func start(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return "http://" + l.Addr().String()
}

func ask(t *testing.T, url, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, got
}

// TestAnswersAreWhatAnUpstreamSays reads an answer and a stream with the standard
// library's client, and their JSON with its decoder.
func TestAnswersAreWhatAnUpstreamSays(t *testing.T) {
	url := start(t) + "/v1/chat/completions"
	if resp, body := ask(t, url, `{"model":"m"}`); resp.StatusCode != 200 || !json.Valid(body) || len(body) < 900 || len(body) > 1200 {
		t.Errorf("%d, %d bytes: %s", resp.StatusCode, len(body), body)
	}
	_, body := ask(t, url, `{"model":"m","stream":true}`, "X-Bench-Chunks", "7", "X-Bench-Gap-Us", "0")
	events := bytes.Split(bytes.TrimSuffix(body, []byte("\n\n")), []byte("\n\n"))
	if len(events) != 7+3 || string(events[9]) != "data: [DONE]" {
		t.Fatalf("%d events: %s", len(events), body)
	}
	for _, e := range events[:9] {
		if data, ok := bytes.CutPrefix(e, []byte("data: ")); !ok || !json.Valid(data) {
			t.Errorf("no JSON: %s", e)
		}
	}
	if n := bytes.Count(body, []byte("@T1")); n != 7 {
		t.Errorf("%d deltas say when they were written", n)
	}
}

func TestOneOfTenFails(t *testing.T) {
	url := start(t) + "/fail/503/10/v1/chat/completions"
	failed := 0
	for range 20 {
		if resp, body := ask(t, url, `{"model":"m"}`); resp.StatusCode == 503 {
			failed++
			if !json.Valid(body) {
				t.Errorf("no JSON: %s", body)
			}
		}
	}
	if failed != 2 {
		t.Errorf("%d of 20 failed", failed)
	}
}

func TestDeltasKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		err := pace(3, time.Second, func(int) error {
			at = append(at, time.Since(began))
			time.Sleep(300 * time.Millisecond) // a slow reader does not shift the rest
			return nil
		}, func() error { return nil })
		if err != nil || len(at) != 3 || at[0] != 0 || at[1] != time.Second || at[2] != 2*time.Second {
			t.Errorf("written at %v: %v", at, err)
		}
	})
}

func TestChunkedRequests(t *testing.T) {
	url := start(t) + "/v1/chat/completions"
	req, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(`{"model":"m",`), strings.NewReader(`"stream":true}`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Bench-Chunks", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
}

// TestOnlyTheOneThatGaveItKnowsAResponse goes on from a response at the upstream that
// gave it, and at another one.
func TestOnlyTheOneThatGaveItKnowsAResponse(t *testing.T) {
	one, two := start(t)+"/v1/responses", start(t)+"/v1/responses"
	var first, second struct{ ID string }
	_, body := ask(t, one, `{"model":"m","input":"hello"}`)
	if err := json.Unmarshal(body, &first); err != nil || first.ID == "" {
		t.Fatalf("%v: %s", err, body)
	}
	next := `{"model":"m","previous_response_id":"` + first.ID + `","input":"go on"}`
	resp, body := ask(t, one, next)
	if err := json.Unmarshal(body, &second); err != nil || resp.StatusCode != 200 || second.ID == first.ID {
		t.Errorf("%d %v: %s", resp.StatusCode, err, body)
	}
	if resp, body := ask(t, two, next); resp.StatusCode != 400 || !json.Valid(body) {
		t.Errorf("%d: %s", resp.StatusCode, body)
	}
}
