package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"understudy/internal/archive"
	"understudy/internal/config"
	"understudy/internal/h1server"
	"understudy/internal/handover"
	"understudy/internal/health"
	"understudy/internal/proxy"
	"understudy/internal/stats"
)

// Options are what the command line says, over what the file says.
type Options struct {
	// ConfigPath is the configuration file.
	ConfigPath string
	// Host, Port and Admin replace the file's where they are not nil.
	Host  *string
	Port  *int
	Admin *string
	// AllowUnauthenticated lets a listener on a network start without client keys.
	AllowUnauthenticated bool
	// Log takes the log; nil discards it.
	Log *slog.Logger
	// AdminHandler builds what the admin listener serves; nil = no admin listener.
	// One with a Close method is told when its streams are to end.
	AdminHandler func(*Daemon) http.Handler
	// Sockets are the listeners that the service manager has opened: they go before
	// Host, Port and Admin, and before the file's.
	Sockets []handover.Socket
	// Manager is told how we are; nil = nobody is.
	Manager *handover.Manager
	// Heir is what a former process has passed on to this one; nil = there is none.
	Heir *handover.Inheritance
	// Program is the file that Upgrade starts; "" = there are no upgrades. Patience is
	// how long the new process may take to serve; 0 = half a minute.
	Program  string
	Patience time.Duration
	// Dial replaces the network towards upstreams; nil is the real one.
	Dial proxy.DialFunc
}

// A Daemon is a running understudy.
type Daemon struct {
	options    Options
	log        *slog.Logger
	started    time.Time
	board      *health.Board
	ledger     *stats.Ledger
	transports *proxy.Transports
	handler    *proxy.Handler
	archive    *archive.Archive
	bound      config.Server // what the listeners were opened with
	statePath  string
	lock       *lock // nil where the state directory cannot be locked

	proxyListener, adminListener listener
	activated                    map[string]net.Addr // of the listeners that the service manager has opened
	proxyServer                  *h1server.Server
	adminServer                  *http.Server
	proxyConns, adminConns       *connections
	rush                         *rush
	closeAdmin                   func()       // ends the admin handler's streams; nil where it has none
	certificate                  *certificate // nil: no TLS
	writing                      writing

	former    former
	upgrading sync.Mutex     // held during an upgrade, and from the beginning of the end on
	heir      *handover.Heir // who has taken over; set before handed is closed
	out       *outlet        // likewise
	handed    chan struct{}
	ending    chan struct{} // closed when the end begins

	asks chan ask // to the goroutine that owns the reload
	quit chan struct{}
	once sync.Once // closes quit

	sharing *sharing // with other instances; nil without a store

	saving      sync.Mutex // one writer of the state files at a time
	savedHealth []byte     // the board as it is on disk
	savedOwners uint64     // the owners' changes that are on disk
	given       bool       // an heir has the files, or is about to: nothing is saved here

	mu      sync.Mutex
	status  Status
	upgrade struct {
		running bool
		problem string
		at      time.Time
	}
	tried [32]byte // hash of the bytes tried last, good or bad
}

// Status is how the last reload went.
type Status struct {
	Path     string
	LoadedAt time.Time
	// Hash is the SHA-256 of the bytes that are served.
	Hash [32]byte
	// Error says why the file on disk is not what is served; "" = it is.
	Error string
	// NeedsRestart names the settings that differ from what the listeners use.
	NeedsRestart []string
	Warnings     []string
}

const (
	// headTime bounds how long a request's head may take, TLS included; beyond it the
	// connection is closed.
	headTime = 30 * time.Second
	// watchAfter is how long a request runs before its client is watched for leaving: one
	// that is answered at once is not.
	watchAfter = 25 * time.Millisecond
	// idleTime is how long a connection without a request is kept.
	idleTime = 3 * time.Minute
	// maxHead bounds a request's head, in bytes (net/http allows 4 KiB more); larger
	// ones get 431.
	maxHead = 256 << 10
)

// ErrOpen is wrapped by the refusal to serve a network without keys.
var ErrOpen = errors.New("refused to start open on a network")

// Problems is a configuration that cannot be used.
type Problems []config.Problem

// Error lists the problems, a line each.
func (p Problems) Error() string {
	text := ""
	for i, problem := range p {
		if i > 0 {
			text += "\n"
		}
		text += problem.String()
	}
	return text
}

// Load reads, parses and compiles a configuration file: the one way in, for
// serving, checking and previews. The warnings stand beside any result; errors in
// the file come back as Problems.
func Load(path string) (snap *proxy.Snapshot, src config.Source, warnings Problems, err error) {
	if src, err = config.Read(path); err != nil {
		return nil, src, nil, err
	}
	snap, warnings, err = compile(src)
	return snap, src, warnings, err
}

func compile(src config.Source) (*proxy.Snapshot, Problems, error) {
	cfg, problems := config.Parse(src)
	var warnings, wrong Problems
	for _, p := range problems {
		if p.Severity == config.Warning {
			warnings = append(warnings, p)
		} else {
			wrong = append(wrong, p)
		}
	}
	if len(wrong) > 0 || cfg == nil {
		return nil, warnings, wrong
	}
	snap, err := proxy.Compile(cfg)
	return snap, warnings, err
}

// Open loads the configuration and the state, and listens. Nothing serves yet. On
// an error nothing is left open.
func Open(o Options) (_ *Daemon, err error) {
	d := &Daemon{options: o, log: o.Log, started: time.Now(), board: health.NewBoard(), ledger: stats.NewLedger(1000),
		transports: &proxy.Transports{Dial: o.Dial}, asks: make(chan ask), quit: make(chan struct{}),
		handed: make(chan struct{}), ending: make(chan struct{}), proxyConns: newConnections(), adminConns: newConnections()}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	snap, src, warnings, err := Load(o.ConfigPath)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		d.log.Warn("configuration", slog.String("problem", w.String()))
	}
	if err := d.activate(); err != nil {
		return nil, err
	}
	d.bound = d.listening(snap.Config.Server)
	if err := d.mayListen(snap.Config); err != nil {
		return nil, err
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.unlisten()
		}
	}()
	var before taken
	if o.Heir != nil {
		if before, err = d.await(); err != nil {
			return nil, err
		}
		d.former.gone = make(chan struct{})
	}
	d.statePath = statePath(d.bound.StateDir, o.ConfigPath)
	if f := o.Heir.Take(lockName, lockPath(d.statePath)); f != nil {
		d.lock = &lock{f}
	} else if d.lock, err = takeLock(lockPath(d.statePath)); errors.Is(err, ErrInUse) {
		return nil, err
	} else if err != nil {
		d.log.Warn("state", slog.String("problem", err.Error()))
	}
	o.Heir.Drop()
	defer func() {
		if err != nil {
			d.lock.release()
		}
	}()
	saved, damaged := loadState(d.statePath)
	if damaged != nil {
		d.log.Warn("state", slog.String("problem", damaged.Error()))
	}
	now := time.Now()
	if saved.Version != 0 {
		d.board.Import(saved.Health, now)
	}
	seed := uint64(now.UnixNano())
	var randomMu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed>>1))
	d.handler = proxy.New(snap, d.board, d.ledger, d.transports, d.log, func() float64 {
		randomMu.Lock()
		defer randomMu.Unlock()
		return random.Float64()
	})
	if damaged := loadOwners(ownersPath(d.statePath), d.handler.Owners()); damaged != nil {
		d.log.Warn("state", slog.String("problem", damaged.Error()))
	}
	d.share(snap.Config.Store)
	d.tried = src.Hash
	d.status = Status{Path: o.ConfigPath, LoadedAt: now, Hash: src.Hash, Warnings: lines(warnings)}
	d.archive = d.newArchive(snap.Config) // the admin handler may look for it at once
	d.writing.archive = d.archive
	d.handler.Target().Set(before.TargetMode)
	d.serveWith()
	d.openArchive()
	d.retain(snap)
	return d, nil
}

// listening is the server section with the command line's words over it.
func (d *Daemon) listening(s config.Server) config.Server {
	if d.options.Host != nil {
		s.Host = *d.options.Host
	}
	if d.options.Port != nil {
		s.Port = *d.options.Port
	}
	if d.options.Admin != nil {
		if s.Admin = *d.options.Admin; s.Admin == "off" {
			s.Admin = ""
		}
	}
	if a, ok := d.activated[handover.Proxy].(*net.TCPAddr); ok {
		s.Host, s.Port = a.IP.String(), a.Port
	}
	if a := d.activated[handover.Admin]; a != nil {
		s.Admin = a.String()
	}
	return s
}

// mayListen refuses to serve a network without anybody having to show a key.
func (d *Daemon) mayListen(cfg *config.Config) error {
	if !loopback(d.bound.Host) && len(cfg.Clients) == 0 && !cfg.Server.AllowUnauthenticated && !d.options.AllowUnauthenticated {
		return fmt.Errorf("%w: %q is no loopback address, and no client keys are configured, so anybody who reaches it could spend your upstreams' keys: add `clients`, or set allow_unauthenticated: true (--allow-unauthenticated) if something in front guards it", ErrOpen, d.bound.Host)
	}
	if !loopback(d.bound.Host) && len(cfg.Clients) == 0 {
		d.log.Warn("open to the network: no client keys are configured")
	}
	if d.bound.Admin == "" || d.options.AdminHandler == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(d.bound.Admin)
	if err != nil {
		return fmt.Errorf("server.admin %q: %w", d.bound.Admin, err)
	}
	if !loopback(host) && cfg.Server.AdminToken.IsZero() {
		return fmt.Errorf("%w: the admin listener's %q is no loopback address, and admin_token is not set: set it, or listen on 127.0.0.1", ErrOpen, host)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// Addr is the address the proxy listens on.
func (d *Daemon) Addr() string { return d.proxyListener.Addr().String() }

// Scheme is how both listeners are reached: https where the file names a certificate.
func (d *Daemon) Scheme() string {
	if d.bound.TLSCert != "" {
		return "https"
	}
	return "http"
}

// AdminAddr is the admin listener's address; "" without one.
func (d *Daemon) AdminAddr() string {
	if d.adminListener.Listener == nil {
		return ""
	}
	return d.adminListener.Addr().String()
}

// endEvents has the admin listener's streams end.
func (d *Daemon) endEvents() {
	if d.closeAdmin != nil {
		d.closeAdmin()
	}
}

// Handler serves the requests.
func (d *Daemon) Handler() *proxy.Handler { return d.handler }

// Started is when the daemon was opened.
func (d *Daemon) Started() time.Time { return d.started }

// Close gives up a daemon that was opened and is not to be served.
func (d *Daemon) Close() {
	d.unlisten()
	<-d.writing.opened
	d.archive.Reader().Close()
	d.lock.release()
}

// Quit starts the end, as SIGTERM does. It does not wait.
func (d *Daemon) Quit() { d.once.Do(func() { close(d.quit) }) }

// Serve serves until ctx is done or Quit is called, and then drains: it stops
// accepting, lets running requests finish within drain_timeout, breaks off the
// rest, and writes the state. When now is done it stops at once. It returns the
// first error that made serving impossible.
func (d *Daemon) Serve(ctx, now context.Context) error {
	running, stop := context.WithCancel(context.Background())
	defer stop()
	failed := make(chan error, 2)
	var wg sync.WaitGroup
	wg.Go(func() { d.own(running) })
	wg.Go(func() { d.keep(running) })
	wg.Go(func() { d.sharing.run(running) })
	d.writing.begin()
	serve := func(serving func() error) {
		if err := serving(); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}
	calm := d.rush.begin()
	wg.Go(func() { serve(d.serveProxy) })
	if d.adminServer != nil {
		d.adminServer.BaseContext = func(net.Listener) context.Context { return running }
		wg.Go(func() {
			<-d.writing.opened // nobody is shown statistics that are not there yet
			serve(d.serveAdmin)
		})
	}
	if d.options.Heir != nil {
		wg.Go(d.succeed) // the former process tells the service manager
	} else {
		d.options.Manager.Ready("serving on " + d.Addr())
	}
	watching, unwatch := context.WithCancel(running)
	defer unwatch()
	wg.Go(func() { d.watch(watching) })
	var first error
	select {
	case <-ctx.Done():
	case <-d.quit:
	case <-now.Done():
	case first = <-failed:
	case <-d.handed:
	}
	unwatch()
	close(d.ending)
	d.upgrading.Lock() // for good: one that is under way is given up, or has gone well
	if d.heir != nil {
		first = nil // its listeners were closed
		d.retire(ctx, now)
	} else {
		d.options.Manager.Stopping()
		d.drain(now)
	}
	stop()
	d.options.Heir.Part()
	if d.adminServer != nil {
		d.endEvents()
		ctx, cancel := context.WithTimeout(now, time.Second)
		if d.adminServer.Shutdown(ctx) != nil {
			d.adminServer.Close()
		}
		cancel()
	}
	wg.Wait()
	calm()
	d.transports.CloseIdle()
	if d.heir != nil {
		return first
	}
	d.writing.end() // everything that ran has been booked
	if err := d.Save(); err != nil && first == nil {
		d.log.Error("state", slog.String("problem", err.Error()))
	}
	d.lock.release()
	return first
}

// drain lets running requests finish, as long as it may.
func (d *Daemon) drain(now context.Context) {
	timeout := d.handler.Snapshot().Config.Server.DrainTimeout
	if n := d.ledger.Totals().InFlight; n > 0 {
		d.log.Info("finishing running requests", slog.Int64("requests", n), slog.Duration("at_most", timeout))
	}
	ctx, cancel := context.WithTimeout(now, timeout)
	defer cancel()
	d.urge(timeout)
	var tunnels sync.WaitGroup
	tunnels.Go(func() { d.handler.EndTunnels(ctx) })
	defer tunnels.Wait()
	if err := d.proxyServer.Shutdown(ctx); err != nil {
		d.log.Warn("requests broken off", slog.Int64("requests", d.ledger.Totals().InFlight))
		d.proxyServer.Close()
	}
	d.former.wait(ctx)
}
