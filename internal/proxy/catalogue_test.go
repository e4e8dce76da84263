package proxy

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// Faults that come back to the client: they are the request's own, and nobody else
// could cure them.
var clientsOwn = []string{"400-filter", "400-state", "422", "404-path"}

// Whatever an upstream does of all that drill knows, in any dialect, streamed or not:
// before release the client gets the other upstream's answer, byte for byte, and
// behind it a cut one, or the upstream's own error. What is odd but right passes.
func TestEveryFaultOfTheCatalogue(t *testing.T) {
	for _, fault := range drill.Faults() {
		for n, ask := range []struct {
			path   string
			stream bool
		}{
			{chatPath, true}, {chatPath, false}, {"/v1/completions", true}, {"/v1/completions", false}, {responsesPath, true}, {responsesPath, false},
			{messagesPath, true}, {messagesPath, false}, {geminiPath, true}, {geminiArray, true}, {geminiWhole, false},
			{ollamaPath, true}, {ollamaPath, false}, {"/api/generate", true}, {"/api/generate", false},
		} {
			if big := fault.Name == "long-line" || fault.Name == "endless-headers"; big && n%4 != 0 {
				continue // megabytes each
			}
			name := fault.Name + strings.ReplaceAll(ask.path, "/", "_")
			if ask.stream {
				name += ", streamed"
			}
			inBubble(t, name, func(t *testing.T) {
				s := newStage(t, "server: {content_timeout: 30, relay_stall_timeout: 20}", fault.Script(drill.Answer{}), drill.Healthy(drill.Answer{ID: "second", Text: "The understudy speaks."}))
				sent := requestFor(ask.path, ask.stream)
				asked := drill.NewRequest("POST", strings.Replace(ask.path, "vm", "m2", 1), []byte(strings.Replace(sent, `"vm"`, `"m2"`, 1)))
				second := string(drill.Answer{ID: "second", Text: "The understudy speaks."}.Body(asked))
				got := s.ask("POST", ask.path, sent)
				synctest.Wait()
				r := s.record()
				switch {
				case fault.Healthy || !fault.Applies(asked):
					want := direct(t, s, fault, ask.path, sent)
					if got.status != 200 || got.body != want || got.err != nil || s.up[1].Count() != 0 || r.Ending != stats.Success {
						t.Errorf("client got %d %q, %v, want %q; u2 was called %d times, booked as %v\n%s", got.status, brief(got.body), got.err, brief(want), s.up[1].Count(), r.Ending, s.log)
					}
				case fault.AfterRelease && ask.stream:
					own := strings.HasPrefix(fault.Name, "error-") || strings.HasPrefix(fault.Name, "failed-")
					if fault.Name == "error-unframed-late" && !strings.HasPrefix(ask.path, "/v1beta/") && !strings.HasPrefix(ask.path, "/api/") {
						own = false // its clients do not see it
					}
					if got.status != 200 || len(got.body) < 100 || (got.err == nil) != own || s.up[1].Count() != 0 || r.Ending != stats.Broken {
						t.Errorf("client got %d %q, %v; u2 was called %d times, booked as %v\n%s", got.status, brief(got.body), got.err, s.up[1].Count(), r.Ending, s.log)
					}
				case slices.Contains(clientsOwn, fault.Name):
					if got.status < 400 || got.err != nil || s.up[0].Count() != 1 || s.up[1].Count() != 0 || r.Ending != stats.PassedThrough {
						t.Errorf("client got %d %q, %v after %d and %d calls, booked as %v\n%s", got.status, brief(got.body), got.err, s.up[0].Count(), s.up[1].Count(), r.Ending, s.log)
					}
				default:
					if got.status != 200 || got.body != second || got.err != nil || s.up[1].Count() != 1 || r.Ending != stats.Success {
						t.Errorf("client got %d %q, %v, want %q; u2 was called %d times, booked as %v\n%s", got.status, brief(got.body), got.err, brief(second), s.up[1].Count(), r.Ending, s.log)
					}
				}
				s.saw(2, s.up[1].Count(), sent)
				s.saw(1, s.up[0].Count(), sent)
				if n := s.handler.Ledger().Totals(); n.InFlight != 0 {
					t.Errorf("totals %+v", n)
				}
			})
		}
	}
}

// direct is what an upstream with that fault sends, decoded.
func direct(t *testing.T, s *stage, fault drill.Fault, path, sent string) string {
	t.Helper()
	u := drill.StartOn(s.net.Listen("direct:80"), fault.Script(drill.Answer{}))
	defer u.Close()
	c, err := s.net.DialContext(t.Context(), "tcp", "direct:80")
	if err != nil {
		t.Fatal(err)
	}
	client := drill.NewClient(c, "direct")
	defer client.Close()
	r := client.Ask(t.Context(), drill.Query{Path: strings.Replace(path, "vm", "m1", 1), Body: []byte(strings.Replace(sent, `"vm"`, `"m1"`, 1)), Header: []string{"Accept-Encoding", "identity"}})
	if r.Get("Content-Encoding") != "gzip" {
		return string(r.Body)
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}
