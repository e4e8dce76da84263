//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"understudy/internal/drill"
)

// refused is the fault of an upstream that is not there: nobody listens on its port.
var refused = drill.Fault{Name: "refused", Says: "refuses the connection"}

// plainFaults are those of the catalogue that show in an answer which is no generation: such an answer is never judged
// by what it lacks.
var plainFaults = []string{
	"429-retry-after", "429-text", "429-quota", "401", "402", "403-challenge", "404-model", "500", "502-html", "503", "529", "302",
	"200-error", "html", "html-as-json", "reset-before-headers", "fin-before-headers", "reset-after-headers", "fin-after-headers",
	"short-length", "broken-chunk", "garbage-head", "silence-before-headers", "silence-after-headers",
}

// before lists the faults that show before anything of the answer can have gone to the client: those that the proxy
// has to hide altogether.
func (c call) before() []drill.Fault {
	faults := []drill.Fault{refused}
	for _, f := range drill.Faults() {
		switch {
		case f.Healthy || !c.meets(f):
		case c.kind == plain && !slices.Contains(plainFaults, f.Name):
		case c.kind == stream && f.AfterRelease:
		default:
			faults = append(faults, f)
		}
	}
	return faults
}

// chain is a virtual model of two candidates, each with an upstream of its own, in a proxy under test.
type chain struct {
	call          call
	model         string // what the client asks for
	first, second *drill.Upstream
	candidates    []candidate
}

// chain adds a virtual model to the configuration whose first upstream plays the script, or is not there if the script
// is nil, and whose second one plays the other.
func (s *setup) chain(t *testing.T, c call, first, second drill.Script) *chain {
	t.Helper()
	ch := &chain{call: c, model: fmt.Sprintf("virtual-%d", len(s.models)+1)}
	urls := [2]string{absent(t), ""}
	if first != nil {
		ch.first = drill.Start(first)
		t.Cleanup(ch.first.Close)
		urls[0] = ch.first.URL()
	}
	ch.second = drill.Start(second)
	t.Cleanup(ch.second.Close)
	urls[1] = ch.second.URL()
	for i, name := range []string{"first", "second"} {
		ch.candidates = append(ch.candidates, candidate{
			name: name, baseURL: urls[i], model: "real-" + name, authStyle: c.auth, key: "sk-of-the-" + name + "-candidate",
		})
	}
	s.models = append(s.models, virtualModel{name: ch.model, candidates: ch.candidates, delivery: s.delivery})
	return ch
}

// failing is a chain whose first upstream has the fault and whose second one is well.
func (s *setup) failing(t *testing.T, c call, f drill.Fault) *chain {
	t.Helper()
	var first drill.Script
	if f.Script != nil {
		first = f.Script(c.says(firstText))
	}
	return s.chain(t, c, first, drill.Healthy(c.says(secondText)))
}

// late has one chain for each streamed call and each fault that shows only when much of the answer was sent.
func (s *setup) late(t *testing.T) ([]*chain, []drill.Fault) {
	t.Helper()
	var chains []*chain
	var faults []drill.Fault
	for _, c := range calls {
		for _, f := range drill.Faults() {
			if c.kind == stream && f.AfterRelease && !f.Healthy && c.meets(f) {
				chains = append(chains, s.failing(t, c, f))
				faults = append(faults, f)
			}
		}
	}
	return chains, faults
}

// absent returns the base URL of an upstream that refuses connections. Its port stays taken until the test ends, so
// that nobody comes to listen there.
func absent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("socket: %v", err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("bind: %v", err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("getsockname: %v", err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", address.(*syscall.SockaddrInet4).Port)
}
