package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"understudy/internal/control"
	"understudy/internal/drill"
)

// services is the name of what stands in for a service manager, see serviceManager.
const services = "service-manager"

// serviceManager starts the program in its arguments and is, as systemd would be, the
// parent of whatever becomes of it: it prints the number and the end of every process,
// ends them all when its input ends, and ends itself when none is left. The environment
// says which of its descriptors are sockets: SOCKETS is their number, from 3 on.
func serviceManager() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	attr := &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stderr, os.Stderr}}
	args := os.Args[1:]
	if n, _ := strconv.Atoi(os.Getenv("SOCKETS")); n > 0 {
		for i := range n {
			attr.Files = append(attr.Files, os.NewFile(uintptr(3+i), "socket"))
		}
		// The number must be the program's own, which a shell knows before it is one.
		args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=$SOCKETS exec "$0" "$@"`}, args...)
	}
	if _, err := os.StartProcess(args[0], args, attr); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C { // one may have just started another
			for _, pid := range childrenOf(os.Getpid()) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			os.Exit(0) // no child is left
		case status.Signaled():
			fmt.Println(pid, status.Signal())
		default:
			fmt.Println(pid, status.ExitStatus())
		}
	}
}

// childrenOf lists a process's children: each belongs to the thread that made it.
func childrenOf(pid int) (list []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // a thread that has gone has none
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// A service is understudy under a service manager.
type service struct {
	t      *testing.T
	dir    string
	path   string // of the program, which is replaced
	image  []byte // of the program, of the version "upgrade-test-000"
	config string
	errs   lockedBuffer
	told   chan string // what the manager is told, in order
	main   int         // the process that is the service
	mains  []int       // those that have been
	proxy  string      // host:port
	admin  string
	all    chan struct{} // closed when every process has ended

	mu    sync.Mutex
	ended map[string]string // how, by process
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

const imageVersion = "upgrade-test-000"

// image is the program with a version that can be exchanged in place.
var image = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "understudy-upgrade-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "understudy")
	args := []string{"build", "-o", path, "-ldflags", "-X main.release=" + imageVersion}
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(path)
})

func versionOf(n int) string { return fmt.Sprintf("upgrade-test-%03d", n) }

// install puts the program of another version in the place of the one that may run.
func (s *service) install(n int) {
	s.t.Helper()
	s.replace(bytes.ReplaceAll(s.image, []byte(imageVersion), []byte(versionOf(n))))
}

func (s *service) replace(program []byte) {
	s.t.Helper()
	next := s.path + ".new"
	if err := os.WriteFile(next, program, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.path); err != nil {
		s.t.Fatal(err)
	}
}

// newService starts a service with this configuration; STATE in it is its directory.
// sockets are passed to it, under these names.
func newService(t *testing.T, config, names string, sockets ...*os.File) *service {
	t.Helper()
	program, err := image()
	if err != nil {
		t.Fatal(err)
	}
	// A socket's path must be short.
	dir, err := os.MkdirTemp("/tmp", "us-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &service{t: t, dir: dir, path: filepath.Join(dir, "understudy"), image: program, config: filepath.Join(dir, "config.yaml"),
		told: make(chan string, 1000), all: make(chan struct{}), ended: map[string]string{}}
	s.install(0)
	s.write(config)
	ear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ear.Close() })
	go func() { // ends with the socket
		buf := make([]byte, 64<<10)
		for {
			n, err := ear.Read(buf)
			if err != nil {
				return
			}
			s.told <- string(buf[:n])
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: []string{services, s.path, "serve", "--no-repl", "-c", s.config}, Stderr: &s.errs, ExtraFiles: sockets,
		Env: append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=60000000", "GORACE=log_path="+dir+"/race", fmt.Sprintf("SOCKETS=%d", len(sockets)), "LISTEN_FDNAMES="+names)}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.all)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			pid, how, _ := strings.Cut(lines.Text(), " ")
			s.mu.Lock()
			s.ended[pid] = how
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-s.all
		_ = cmd.Wait() // its children's ends are what counts
		if races, _ := filepath.Glob(dir + "/race.*"); len(races) > 0 {
			text, _ := os.ReadFile(races[0])
			t.Errorf("a data race: %s", text)
		}
	})
	if got := s.hears("READY=1"); !strings.Contains(got, "STATUS=serving on ") {
		t.Errorf("the status at the start: %q", got)
	}
	children := childrenOf(cmd.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("the manager has started %v", children)
	}
	s.main = children[0]
	s.addresses()
	return s
}

// write replaces the configuration.
func (s *service) write(config string) {
	s.t.Helper()
	if err := os.WriteFile(s.config, []byte(strings.ReplaceAll(config, "STATE", s.dir+"/state")), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// addresses finds out where it listens, from what it said at its start.
func (s *service) addresses() {
	s.t.Helper()
	if !until(func() bool {
		found := addresses.FindStringSubmatch(s.errs.String())
		if found != nil {
			s.proxy, s.admin = strings.TrimPrefix(found[1], "http://"), found[2]
		}
		return found != nil
	}) {
		s.t.Fatalf("it does not say where it listens: %s", s.errs.String())
	}
}

// hears waits for the next message to the manager, which begins so. Answers to the
// watchdog, which come at any time, are passed over.
func (s *service) hears(begins string) string {
	s.t.Helper()
	for end := time.After(patience); ; {
		select {
		case got := <-s.told:
			if got == "WATCHDOG=1" {
				continue
			}
			if !strings.HasPrefix(got, begins) {
				s.t.Fatalf("the manager is told %q, not %q\n%s", got, begins, s.errs.String())
			}
			return got
		case <-end:
			s.t.Fatalf("the manager is not told %q\n%s", begins, s.errs.String())
		}
	}
}

// upgrade hands over to the program that is installed, and waits until it serves.
func (s *service) upgrade() {
	s.t.Helper()
	if err := syscall.Kill(s.main, syscall.SIGUSR2); err != nil {
		s.t.Fatal(err)
	}
	if got := s.hears("RELOADING=1\n"); !strings.Contains(got, "\nMONOTONIC_USEC=") {
		s.t.Errorf("the manager is told %q", got)
	}
	lines := strings.Split(s.hears("MAINPID="), "\n")
	pid, err := strconv.Atoi(strings.TrimPrefix(lines[0], "MAINPID="))
	if err != nil || pid == s.main || len(lines) < 2 || lines[1] != "READY=1" {
		s.t.Fatalf("the manager is told %q", lines)
	}
	s.mains = append(s.mains, s.main)
	s.main = pid
}

// view is its state; each request has a connection of its own.
func (s *service) view() control.View {
	s.t.Helper()
	return state(s.t, s.admin)
}

// alone waits until no former process is left.
func (s *service) alone() control.View {
	s.t.Helper()
	var v control.View
	if !until(func() bool { v = s.view(); return !v.Upgrade.Former }) {
		s.t.Fatalf("a former process goes on: %+v\n%s", v.Upgrade, s.errs.String())
	}
	return v
}

// descriptors is how many the service's process has open, once they are as few as
// they get.
func (s *service) descriptors(most int) (n int) {
	s.t.Helper()
	if !until(func() bool {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.main))
		n = len(list)
		return err == nil && n <= most
	}) {
		s.t.Errorf("%d descriptors are open, want at most %d", n, most)
	}
	return n
}

// ends ends the service and checks that every process of it has ended, and how.
func (s *service) ends() {
	s.t.Helper()
	if err := syscall.Kill(s.main, syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	s.hears("STOPPING=1\n")
	select {
	case <-s.all:
	case <-time.After(patience):
		s.t.Fatalf("it does not end\n%s", s.errs.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range append(s.mains, s.main) {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			s.t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	for pid, how := range s.ended {
		if how != "0" {
			s.t.Errorf("process %s ended with %s\n%s", pid, how, s.errs.String())
		}
	}
}

// lasting is an upstream whose streams last for some time: so many chunks, each after
// a while.
func lasting(t *testing.T, chunks int, every time.Duration) *drill.Upstream {
	u := drill.Start(func(w *drill.Wire, _ drill.Request, _ int) {
		w.Head(200, drill.Chunked, "Content-Type", "text/event-stream")
		for n := range chunks {
			w.Chunk(fmt.Appendf(nil, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a part of the answer, number %d\"},\"finish_reason\":null}]}\n\n", n))
			<-time.NewTimer(every).C // the stream takes its time
		}
		w.Chunk([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,\"total_tokens\":15}}\n\ndata: [DONE]\n\n"))
		w.End()
	})
	t.Cleanup(u.Close)
	return u
}

// The program is replaced ten times under load, by another version each time. Nobody
// notices: no request fails, no connection is refused, every request is in the log
// and the totals once; and nothing is left of the former processes.
func TestTenUpgradesUnderLoad(t *testing.T) {
	const upgrades, chunks = 10, 20
	first, second := actors(t)
	long := lasting(t, chunks, 75*time.Millisecond)
	s := newService(t, cast("server: {port: 0, admin: 127.0.0.1:0, state_dir: \"STATE\", auto_hedge_threshold: 0, reload_poll_interval: 0}\nrequest_log: {keep: 1000000}", first, second)+
		fmt.Sprintf("  long: [{base_url: %q, auth_style: none, model: m-3}]\n  held: [{base_url: \"http://127.0.0.1:9\", auth_style: none, model: m-4}]\n", long.URL()), "")
	crowd := &crowd{t: t, proxy: s.proxy}
	warm := client{crowd: crowd}
	warm.ask(t.Context(), well)
	warm.close()
	s.install(1)
	s.upgrade()
	s.alone()
	atRest := s.descriptors(1000)
	command(t, s.admin, "freeze add held 1 36000 by hand")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var sent, streams, across, version atomic.Int64
	sent.Add(1)
	for w := range 6 {
		wg.Go(func() {
			one := client{crowd: crowd}
			for n := w; ctx.Err() == nil; n++ {
				// Half of them keep their connection, the others have one for each request.
				if w%2 == 0 {
					one.close()
				}
				before := crowd.strange.Load()
				if one.ask(t.Context(), []plot{well, well, saved}[n%3]) == "" {
					if crowd.strange.Load() == before {
						t.Error("no connection")
					}
					return
				}
				sent.Add(1)
			}
			one.close()
		})
	}
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := version.Load()
				r := drill.Ask(t.Context(), s.proxy, drill.Query{Path: "/v1/chat/completions", Header: []string{"Content-Type", "application/json"},
					Body: []byte(`{"model":"long","stream":true,"messages":[{"role":"user","content":"at length"}]}`)})
				if r.Status != 200 || !r.Clean || strings.Count(string(r.Body), "a part of the answer") != chunks || !strings.HasSuffix(string(r.Body), "data: [DONE]\n\n") {
					t.Errorf("a long stream: %d, clean %v, %v, %d bytes: %.300s", r.Status, r.Clean, r.Err, len(r.Body), r.Body)
					return
				}
				sent.Add(1)
				streams.Add(1)
				if version.Load() > began {
					across.Add(1)
				}
			}
		})
	}
	for n := range upgrades {
		before := sent.Load() // some requests go through every one of them
		if !until(func() bool { return sent.Load() > before+50 || t.Failed() }) || t.Failed() {
			t.Fatalf("no requests get through\n%s", s.errs.String())
		}
		s.install(n + 2)
		s.upgrade()
		version.Add(1)
		v := s.view()
		if v.Version != versionOf(n+2) {
			t.Errorf("after upgrade %d the version is %q", n+1, v.Version)
		}
		if len(v.Freezes) != 1 || v.Freezes[0].Reason != "by hand" {
			t.Errorf("after upgrade %d the freezes are %+v", n+1, v.Freezes)
		}
	}
	stop()
	wg.Wait()
	if n := crowd.strange.Load(); n > 0 {
		t.Errorf("%d requests failed\n%s", n, s.errs.String())
	}
	s.alone()
	var v control.View
	until(func() bool {
		v = s.view()
		return v.Totals.InFlight == 0 && v.Archive.Entries == sent.Load()
	})
	t.Logf("%d requests, %d of them long streams, went through %d upgrades, %d of the streams open across one", sent.Load(), streams.Load(), upgrades, across.Load())
	if v.Totals.InFlight != 0 || v.Totals.Requests != sent.Load() || v.Totals.Successes != sent.Load() || v.Archive.Entries != sent.Load() {
		t.Errorf("%d requests were answered; the books say %+v, the log %+v\n%s", sent.Load(), v.Totals, v.Archive, s.errs.String())
	}
	if across.Load() < 4 {
		t.Error("hardly a stream was open across an upgrade: this proves little")
	}
	s.install(upgrades + 2)
	s.upgrade()
	s.alone()
	s.descriptors(atRest)
	s.ends()
}

// command runs one of the console's commands.
func command(t *testing.T, admin, line string) {
	t.Helper()
	resp, err := http.Post(admin+"/api/command", "application/json", strings.NewReader(fmt.Sprintf(`{"line":%q}`, line)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", line, resp.StatusCode)
	}
}

// A program that cannot take over leaves the running one as it was, which says why.
func TestUpgradesThatFail(t *testing.T) {
	t.Parallel()
	first, second := actors(t)
	good := cast("server: {port: 0, admin: 127.0.0.1:0, state_dir: \"STATE\", reload_poll_interval: 0}", first, second)
	s := newService(t, good, "")
	answers := func() {
		t.Helper()
		one := client{crowd: &crowd{t: t, proxy: s.proxy}}
		defer one.close()
		if one.ask(t.Context(), well) == "" {
			t.Errorf("no answer\n%s", s.errs.String())
		}
	}
	answers()
	fails := func(want string) {
		t.Helper()
		if err := syscall.Kill(s.main, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		s.hears("RELOADING=1\n")
		if got := s.hears("READY=1\nSTATUS=upgrade failed, the former program goes on: "); !strings.Contains(got, want) {
			t.Errorf("the manager is told %q, want %q", got, want)
		}
		v := s.view()
		if !strings.Contains(v.Upgrade.Problem, want) || v.Upgrade.FailedAt == nil || v.Upgrade.Running || v.Version != versionOf(0) {
			t.Errorf("the state is %s %+v, want %q", v.Version, v.Upgrade, want)
		}
		if !until(func() bool {
			return strings.Contains(s.errs.String(), "upgrade failed, this process goes on") && strings.Contains(s.errs.String(), want)
		}) {
			t.Errorf("the log does not say %q:\n%s", want, s.errs.String())
		}
		answers()
	}
	s.replace([]byte("#!/bin/sh\nexit 3\n"))
	fails("exit status 3")
	s.replace([]byte("no program"))
	fails("exec format error")
	s.install(1)
	s.write(strings.Replace(good, "port: 0", "prot: 0", 1))
	fails("config.yaml:1:")
	s.write(good)
	s.upgrade()
	if v := s.alone(); v.Version != versionOf(1) || v.Totals.Requests != 4 || v.Upgrade.Problem != "" {
		t.Errorf("after all: %s %+v %+v", v.Version, v.Totals, v.Upgrade)
	}
	answers()
	s.ends()
}

// Sockets that a service manager has opened go before the configuration's, stay where
// they are across an upgrade, and are guarded as if they had been configured.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	first, second := actors(t)
	listen := func(address string) (*os.File, string) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f, l.Addr().String()
	}
	proxy, at := listen("127.0.0.1:0")
	admin, adminAt := listen("127.0.0.1:0")
	config := cast("server: {port: 1, admin: 127.0.0.1:2, state_dir: \"STATE\", reload_poll_interval: 0}", first, second)
	s := newService(t, config, "admin:proxy", admin, proxy)
	if s.proxy != at || s.admin != "http://"+adminAt {
		t.Fatalf("it serves %s and %s, not %s and %s", s.proxy, s.admin, at, adminAt)
	}
	answers := func() {
		t.Helper()
		one := client{crowd: &crowd{t: t, proxy: at}}
		defer one.close()
		if one.ask(t.Context(), well) == "" {
			t.Errorf("no answer\n%s", s.errs.String())
		}
	}
	answers()
	if err := syscall.Kill(s.main, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := s.hears("RELOADING=1\n"); !strings.Contains(got, "\nMONOTONIC_USEC=") {
		t.Errorf("the manager is told %q", got)
	}
	s.hears("READY=1\nSTATUS=serving on " + at)
	if v := s.view(); len(v.Config.NeedsRestart) > 0 {
		t.Errorf("needs a restart for %v", v.Config.NeedsRestart)
	}
	s.write(strings.Replace(config, "virtual_models", "virtual_modles", 1))
	if err := syscall.Kill(s.main, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.hears("RELOADING=1\n")
	s.hears("READY=1\nSTATUS=the configuration on disk cannot be used, the former one goes on")
	s.write(config)
	for n := range 2 {
		s.install(n + 1)
		s.upgrade()
		answers()
		if v := s.alone(); v.Version != versionOf(n+1) || v.Totals.Requests != int64(n+2) {
			t.Errorf("after an upgrade: %s %+v", v.Version, v.Totals)
		}
	}
	s.ends()

	open, _ := listen("0.0.0.0:0")
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	udp, err := packets.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for _, c := range []struct {
		names, want string
		files       []*os.File
	}{
		{"proxy", "refused to start open on a network", []*os.File{open}},
		{"proxy:more", `"more"`, []*os.File{proxy, admin}},
		{"proxy:proxy", `"proxy"`, []*os.File{proxy, admin}},
		{"proxy", "is no listener", []*os.File{udp}},
	} {
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, s.path, "serve", "--no-repl", "-c", s.config)
		cmd.Env = append(os.Environ(), "LISTEN_FDNAMES="+c.names, fmt.Sprintf("LISTEN_FDS=%d", len(c.files)))
		cmd.ExtraFiles = c.files
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v %s, want %q", c.names, err, out, c.want)
		}
	}
}
