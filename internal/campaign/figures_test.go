package campaign

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// figures are what a campaign comes to.
type figures struct {
	say func(format string, args ...any) // prints a violation

	requests, arrivals atomic.Int64

	mu         sync.Mutex
	kinds      map[string]int
	faults     map[string]int
	troubles   map[string]int
	violations map[string]int
	spent      map[string]time.Duration
	goroutines int
	descr      int
	heap       uint64
}

func newFigures(say func(string, ...any)) *figures {
	return &figures{say: say, kinds: map[string]int{}, faults: map[string]int{}, troubles: map[string]int{}, violations: map[string]int{}, spent: map[string]time.Duration{}}
}

// violate notes that an invariant does not hold. The first few of each are told.
func (f *figures) violate(invariant, format string, args ...any) {
	f.mu.Lock()
	f.violations[invariant]++
	n := f.violations[invariant]
	f.mu.Unlock()
	if n <= 40 {
		f.say("VIOLATED %s: "+format, append([]any{invariant}, args...)...)
	}
}

func (f *figures) violated() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.violations {
		n += k
	}
	return n
}

func (f *figures) add(m map[string]int, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m[key]++
}

// took notes what a request took.
func (f *figures) took(kind string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spent[kind] += d
}

func (f *figures) kind(k string)    { f.add(f.kinds, k) }
func (f *figures) trouble(k string) { f.add(f.troubles, k) }
func (f *figures) fault(k string) {
	f.arrivals.Add(1)
	f.add(f.faults, k)
}

// peak notes what the process holds now.
func (f *figures) peak() {
	goroutines, descr, heap := runtime.NumGoroutine(), descriptors(), heapNow()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goroutines, f.descr, f.heap = max(f.goroutines, goroutines), max(f.descr, descr), max(f.heap, heap)
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// descriptors is how many the process has open; 0 where the system does not say.
func descriptors() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list) - 1 // that of the directory itself
		}
	}
	return 0
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests, %d attempts that reached an upstream\n", f.requests.Load(), f.arrivals.Load())
	table := func(title string, m map[string]int) {
		fmt.Fprintf(&b, "%s:\n", title)
		var keys []string
		for k := range m {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(x, y string) int { return m[y] - m[x] })
		for _, k := range keys {
			fmt.Fprintf(&b, "  %9d  %s\n", m[k], k)
		}
	}
	table("what clients got", f.kinds)
	for k, d := range f.spent {
		fmt.Fprintf(&b, "  %v %s\n", d/time.Duration(f.kinds[k]), k)
	}
	table("what upstreams did", f.faults)
	table("what was done meanwhile", f.troubles)
	fmt.Fprintf(&b, "at most %d goroutines, %d descriptors, %d MiB of heap\n", f.goroutines, f.descr, f.heap>>20)
	table("violations", f.violations)
	if len(f.violations) == 0 {
		b.WriteString("          0\n")
	}
	return b.String()
}

// marks are how the marker looks where secrets might slip through: as it is, and in
// base64 wherever it begins.
var marks = func() [][]byte {
	list := [][]byte{[]byte(marker)}
	for i := range 3 {
		s := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", i) + marker))
		list = append(list, []byte(s[4*((i+2)/3):len(s)-4]))
	}
	return list
}()

// leak returns what stands around a secret in a text; "" where there is none.
func leak(p []byte) string {
	for _, m := range marks {
		if i := bytes.Index(p, m); i >= 0 {
			return strings.ToValidUTF8(string(p[max(0, i-300):min(len(p), i+100)]), "?")
		}
	}
	return ""
}

// watched is a log that nobody reads but for secrets.
type watched struct {
	f    *figures
	rush *atomic.Bool // set once the program says that it turns requests away
}

func (w watched) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("some are turned away")) {
		w.rush.Store(true)
	}
	if s := leak(p); s != "" {
		w.f.violate("secret", "in the log: %s", s)
	}
	if bytes.Contains(p, []byte("internal error")) && bytes.Contains(p, []byte("goroutine ")) {
		w.f.violate("panic", "in the log: %s", p)
	}
	return len(p), nil
}
