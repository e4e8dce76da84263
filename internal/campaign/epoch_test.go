package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/daemon"
	"understudy/internal/web"
)

// A run is one epoch: one world, one program.
type run struct {
	w     *world
	b     *book
	f     *figures
	addr  string
	admin string
	http  http.Client
}

// quiet is how long everything has to come to rest. A busy machine may need long;
// what leaks never gets there.
const quiet = time.Minute

// epoch plays n requests by so many clients against a world made from the seed. dir
// is its own.
func epoch(seed uint64, n, clients int, dir string, f *figures) error {
	goroutines, open := runtime.NumGoroutine(), descriptors()
	b := newBook(f)
	w := newWorld(seed, dir, b)
	b.w = w
	x := &run{w: w, b: b, f: f, http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}}
	if err := x.play(n, clients); err != nil {
		w.close()
		return err
	}
	w.close()
	if !eventually(func() bool { return runtime.NumGoroutine() <= goroutines }) {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1) // a builder takes everything
		f.violate("goroutines", "%d before, %d when all is over:\n%s", goroutines, runtime.NumGoroutine(), stacks.String())
	}
	if !eventually(func() bool { return descriptors() <= open }) {
		f.violate("descriptors", "%d before, %d when all is over", open, descriptors())
	}
	return nil
}

// eventually says whether a condition comes true in time.
func eventually(cond func() bool) bool {
	for end := time.Now().Add(quiet); !cond(); {
		if time.Now().After(end) {
			return cond()
		}
		<-time.After(5 * time.Millisecond)
	}
	return true
}

func (x *run) play(n, clients int) error {
	w := x.w
	if err := w.write(w.variants[0]); err != nil {
		return err
	}
	out := watched{x.f, &x.b.rush}
	var handler slog.Handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})
	if w.seed%2 == 0 {
		handler = slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	log := slog.New(handler)
	d, err := daemon.Open(daemon.Options{ConfigPath: w.file(), Log: log, Dial: (&net.Dialer{Resolver: w.names.Resolver()}).DialContext,
		AdminHandler: func(d *daemon.Daemon) http.Handler { return web.New(d.Control("campaign"), log) }})
	if err != nil {
		return fmt.Errorf("the configuration of this seed: %w\n%s", err, w.variants[0])
	}
	stdlog.SetOutput(d.Libraries())
	defer stdlog.SetOutput(io.Discard) // whatever still is on its way
	drain, end := context.WithCancel(context.Background())
	now, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- d.Serve(drain, now) }()
	x.addr, x.admin = d.Addr(), "http://"+d.AdminAddr()

	var next atomic.Int64
	var load, trouble sync.WaitGroup
	calm, ended := context.WithCancel(context.Background())
	for range clients {
		load.Go(func() {
			c := &client{w: w, b: x.b, addr: x.addr}
			defer c.close()
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				c.ask(int(i))
			}
		})
	}
	for _, t := range []func(context.Context){x.reload, x.freeze, x.kill, x.look, x.tryOut} {
		trouble.Go(func() { t(calm) })
	}
	load.Wait()
	ended()
	trouble.Wait()
	for _, h := range w.hosts {
		h.gate.revive()
	}
	if !eventually(func() bool { return x.inFlight() == "" }) {
		x.f.violate("in flight", "%s, a minute after the last request", x.inFlight())
	}
	eventually(x.b.resting) // what does not is told by settle
	x.b.settle()
	x.scan()
	end()
	select {
	case err := <-served:
		if err != nil {
			x.f.violate("end", "Serve returned %v", err)
		}
	case <-time.After(quiet):
		x.f.violate("end", "Serve has not returned")
		stop()
		<-served
	}
	return x.scanFiles()
}

// wait waits for a random time of so many milliseconds, and is false when it is over.
func (x *run) wait(ctx context.Context, what string, n, from, to int) bool {
	select {
	case <-time.After(time.Duration(from+chance(x.w.seed, what, n).IntN(to-from)) * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}

// reload puts other configurations in place, now and then one that is none.
func (x *run) reload(ctx context.Context) {
	for n := 0; x.wait(ctx, "reload", n, 20, 200); n++ {
		random := chance(x.w.seed, "reloaded", n)
		text := pick(random, x.w.variants...)
		if random.IntN(6) == 0 {
			text = text[:len(text)/2]
		}
		if x.w.write(text) == nil && x.command("reload") {
			x.f.trouble("reloads")
		} else {
			x.f.trouble("reloads of a broken file")
		}
	}
	_ = x.w.write(x.w.variants[0]) // only for those who look at it afterwards
}

// freeze freezes candidates by hand and lifts that.
func (x *run) freeze(ctx context.Context) {
	for n := 0; x.wait(ctx, "freeze", n, 10, 200); n++ {
		random := chance(x.w.seed, "frozen", n)
		c := pick(random, pick(random, x.w.models...).candidates...)
		word := c.model
		if word == "" {
			word = fmt.Sprint(c.index)
		}
		if random.IntN(3) == 0 {
			x.b.lifting(c)
			if x.command(fmt.Sprintf("freeze rm %s %s", c.chain, word)) {
				x.f.trouble("freezes lifted")
			}
			continue
		}
		length := time.Duration(20+random.IntN(500)) * time.Millisecond
		x.b.lifting(c) // another freeze takes the place of the one before
		issued := time.Now()
		if x.command(fmt.Sprintf("freeze add %s %s %v", c.chain, word, length.Seconds())) {
			x.b.froze(c, time.Now(), issued.Add(length))
			x.f.trouble("freezes by hand")
		}
	}
}

func (b *book) lifting(c *candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.freezes[c] {
		if f.rm.IsZero() {
			f.rm = time.Now()
		}
	}
}

func (b *book) froze(c *candidate, from, to time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freezes[c] = append(b.freezes[c], &frozen{from: from, to: to})
}

// resting says whether no upstream answers any more.
func (b *book) resting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.asked {
		q.mu.Lock()
		for _, a := range q.arrivals {
			a.mu.Lock()
			over := a.over
			a.mu.Unlock()
			if !over {
				q.mu.Unlock()
				return false
			}
		}
		q.mu.Unlock()
	}
	return true
}

// kill kills upstreams and brings them back.
func (x *run) kill(ctx context.Context) {
	for n := 0; x.wait(ctx, "kill", n, 200, 1500); n++ {
		h := pick(chance(x.w.seed, "killed", n), x.w.hosts...)
		h.gate.kill()
		x.f.trouble("upstreams killed")
		on := x.wait(ctx, "revive", n, 5, 100)
		h.gate.revive()
		if !on {
			return
		}
	}
}

// tryOut plays rounds of probation.
func (x *run) tryOut(ctx context.Context) {
	for n := 0; x.wait(ctx, "probation", n, 50, 400); n++ {
		if !x.w.probation.round(ctx, x) {
			x.f.trouble("trials that did not last")
		}
	}
}

// look looks at what the program shows.
func (x *run) look(ctx context.Context) {
	for n := 0; x.wait(ctx, "look", n, 50, 250); n++ {
		x.scan()
		x.f.peak()
	}
}

// scan looks for secrets in all that the admin listener shows.
func (x *run) scan() {
	for _, path := range []string{"/api/state", "/metrics", "/api/requests?limit=40&trail=true"} {
		if s := leak(x.get(path)); s != "" {
			x.f.violate("secret", "in %s: %s", path, s)
		}
	}
	var list struct{ Requests []struct{ ID string } }
	if json.Unmarshal(x.get("/api/requests?limit=1&failed=true"), &list) == nil {
		for _, r := range list.Requests {
			if s := leak(x.get("/api/requests/" + r.ID)); s != "" {
				x.f.violate("secret", "in a request's trail: %s", s)
			}
			x.command("explain " + r.ID)
		}
	}
}

// scanFiles looks for secrets in what the program has written.
func (x *run) scanFiles() error {
	return filepath.WalkDir(filepath.Join(x.w.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			if s := leak(text); s != "" {
				x.f.violate("secret", "in the file %s: %s", filepath.Base(path), s)
			}
		}
		return err
	})
}

// get asks the admin listener.
func (x *run) get(path string) []byte {
	req, err := http.NewRequest(http.MethodGet, x.admin+path, nil)
	if err != nil {
		return nil
	}
	return x.send(req)
}

func (x *run) send(req *http.Request) []byte {
	req.Header.Set("Authorization", "Bearer "+x.w.token())
	resp, err := x.http.Do(req)
	if err != nil {
		x.f.violate("admin", "%s: %v", req.URL.Path, err)
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 500 {
		x.f.violate("admin", "%s: %d, %v", req.URL.Path, resp.StatusCode, err)
	}
	return body
}

// command runs a line of the console's, and says whether it went well.
func (x *run) command(line string) bool {
	body, err := json.Marshal(map[string]string{"line": line})
	if err != nil {
		return false
	}
	req, err := http.NewRequest(http.MethodPost, x.admin+"/api/command", strings.NewReader(string(body)))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	out := x.send(req)
	if s := leak(out); s != "" {
		x.f.violate("secret", "in the output of %s: %s", line, s)
	}
	var done struct{ OK bool }
	return json.Unmarshal(out, &done) == nil && done.OK
}

// state is what /api/state shows of what is looked at here.
type state struct {
	Totals struct {
		InFlight int64 `json:"in_flight"`
	}
	VirtualModels []struct {
		Name       string
		Candidates []shown
	} `json:"virtual_models"`
}

type shown struct {
	Name, State string
	Failures    int64
	InFlight    int64 `json:"in_flight"`
}

func (x *run) state() (s state) {
	_ = json.Unmarshal(x.get("/api/state"), &s) // whoever waits for something in it does not find it
	return s
}

func (x *run) candidate(model, name string) shown {
	for _, m := range x.state().VirtualModels {
		for _, c := range m.Candidates {
			if m.Name == model && c.Name == name {
				return c
			}
		}
	}
	return shown{}
}

// inFlight says what still is; "" for nothing.
func (x *run) inFlight() string {
	s := x.state()
	text := ""
	if len(s.VirtualModels) == 0 {
		return "no state"
	}
	if s.Totals.InFlight != 0 {
		text = fmt.Sprintf("%d requests in flight", s.Totals.InFlight)
	}
	for _, m := range s.VirtualModels {
		for _, c := range m.Candidates {
			if c.InFlight != 0 {
				text += fmt.Sprintf(", %d at %s", c.InFlight, c.Name)
			}
		}
	}
	return text
}
