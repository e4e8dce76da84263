package campaign

import (
	"crypto/tls"
	"flag"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"understudy/internal/drill"
)

var (
	seedFlag = flag.Uint64("seed", 1, "the first epoch's seed; 0: a random one, which is told")
	requests = flag.Int("requests", 0, "how many requests to make; 0: as many as -duration allows")
	duration = flag.Duration("duration", time.Minute, "for how long epochs are begun, where -requests is not given")
	size     = flag.Int("epoch", 2000, "requests of one epoch")
	clients  = flag.Int("clients", 32, "clients at once")
	progress = flag.Duration("progress", 0, "how often to tell how far it is; 0: not at all")
)

// certificate is every upstream's that has one, and trusted.
var certificate tls.Certificate

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "campaign")
	if err != nil {
		panic(err)
	}
	var pem []byte
	certificate, pem = drill.Certificate()
	file := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		panic(err)
	}
	// What the system trusts is read once, at the first handshake. Where it is not a
	// file, upstreams with TLS fail, which is a fault like others.
	os.Setenv("SSL_CERT_FILE", file)
	os.Setenv("SSL_CERT_DIR", dir)
	log.SetOutput(io.Discard) // an epoch has the program take what libraries say
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// What epochs leave behind may be at most bytes. A campaign that took longer than settling
// may in the end leave slack more than what was the most until then, and is given as long
// to get there: net/http's connections over HTTP/2 are held by timers for a minute and a
// half after they have ended, and how many there are in it depends on the machine.
const (
	most     = 160 << 20
	slack    = 32 << 20
	settling = 4 * time.Minute
)

// left is what lives when what is dead has been collected.
func left() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	return heapNow()
}

// A randomised campaign; see docs/campaign.md.
func TestCampaign(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = 1 + uint64(rand.Uint32())
	}
	f := newFigures(t.Errorf)
	start, told := time.Now(), time.Now()
	var heap uint64
	for n := 0; ; n++ {
		rest := *requests - int(f.requests.Load())
		if *requests > 0 && rest <= 0 || *requests == 0 && time.Since(start) > *duration {
			break
		}
		k := *size
		if *requests > 0 {
			k = min(k, rest)
		}
		was := f.violated()
		if err := epoch(seed+uint64(n), k, *clients, t.TempDir(), f); err != nil {
			t.Fatal(err)
		}
		if f.violated() > was {
			t.Errorf("once more: go test ./internal/campaign -run Campaign -seed %d -requests %d -epoch %d -clients %d", seed+uint64(n), k, *size, *clients)
		}
		now := left()
		if time.Since(start) < settling {
			heap = max(heap, now)
		}
		if now > most {
			f.violate("memory", "%d MiB after %d epochs", now>>20, n+1)
		}
		if *progress > 0 && time.Since(told) > *progress {
			told = time.Now()
			t.Logf("%v: %d requests, %d violations, %d epochs", time.Since(start).Round(time.Second), f.requests.Load(), f.violated(), n+1)
		}
	}
	if time.Since(start) > settling {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		now := left()
		for end := time.Now().Add(settling); now > heap+slack && time.Now().Before(end); now = left() {
			<-tick.C
		}
		if now > heap+slack {
			f.violate("memory", "%d MiB at the end, at most %d MiB in the first %v", now>>20, heap>>20, settling)
		}
	}
	t.Logf("seed %d, %v\n%v", seed, time.Since(start).Round(time.Second), f)
}
