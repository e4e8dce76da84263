package control

import (
	"context"
	"log/slog"
	"time"

	"understudy/internal/config"
	"understudy/internal/proxy"
)

// Deps is what a Control works on. All but Admin, Proxy, Archive, Store, Save, Quit and
// Log are required.
type Deps struct {
	// Handler has the snapshot, the board, the ledger and the target switch.
	Handler *proxy.Handler
	Started time.Time
	Version string
	// Admin is the address that the admin listener is bound to, where that is not
	// the one in the file; "" is the file's.
	Admin string
	// Proxy is the address that clients call; "" where nobody listens.
	Proxy string
	// Status says how the last reload went.
	Status func() Status
	// Reload reads the file again and waits for the outcome.
	Reload func(ctx context.Context) error
	// Edit reads the file, lets edit change it, checks the result, writes it and
	// reloads, all of it or nothing. It returns the changed settings that take
	// effect only after a restart.
	Edit func(ctx context.Context, who string, edit func(config.Source) (config.Source, error)) (needsRestart []string, err error)
	// Upgrade says how upgrades go; nil where there are none.
	Upgrade func() Upgrade
	// Archive is the request log on disk.
	Archive Archive
	// Store says how this instance stands with those that share its store; nil where
	// no store is configured.
	Store func() StoreStatus
	// Rush says whether more comes than can be served; nil where nobody notices.
	Rush func() Rush
	// Save writes the state file now; nil where there is none.
	Save func(ctx context.Context) error
	// Quit begins the end of the process; nil where nobody may end it from here.
	Quit func()
	// Log takes one line per change; nil is slog.Default().
	Log *slog.Logger
}

// Status is the outcome of the last reload.
type Status struct {
	Path     string    // of the configuration file
	LoadedAt time.Time // when the configuration in force was read
	Hash     string    // of its bytes, in hex
	Error    string    // why the last try failed; "" if it did not
	// NeedsRestart are changed settings that wait for a restart.
	NeedsRestart []string
	Warnings     []string
}

// Control answers questions and runs commands. Its methods may be called from
// any goroutine; none of them is on a request's path or can hold one up.
type Control struct {
	deps Deps
}

// New makes a Control.
func New(d Deps) *Control {
	if d.Log == nil {
		d.Log = slog.Default()
	}
	return &Control{deps: d}
}

// Quit begins the end of the process. It is for the console of that process: a
// remote one ends only itself.
func (c *Control) Quit() {
	if c.deps.Quit != nil {
		c.deps.Quit()
	}
}

// Sequence is the number of the newest finished request: see Query.After.
func (c *Control) Sequence() uint64 { return c.deps.Handler.Ledger().Seq() }

// logChange notes a change of anything: who, by which command, what. None of
// the values is a secret.
func (c *Control) logChange(who, command, what string) {
	c.deps.Log.Info("changed by command", slog.String("who", who), slog.String("command", command), slog.String("what", what))
}

// pace is the shortest time between two signs of a change: a reader draws at
// most four times a second.
const pace = 250 * time.Millisecond

// A mark is what a View changes with, time apart.
type mark struct {
	sequence uint64
	snapshot *proxy.Snapshot
	inFlight int64
	frozen   int
	target   bool
	loaded   time.Time
	failure  string
	upgrade  Upgrade
	store    string
	others   int
}

func (c *Control) mark() mark {
	h := c.deps.Handler
	status := c.deps.Status()
	upgrade := c.upgrade()
	upgrade.FailedAt = nil // compared by its place, which is another every time
	var store StoreStatus
	if c.deps.Store != nil {
		store = c.deps.Store()
	}
	return mark{
		sequence: h.Ledger().Seq(), snapshot: h.Snapshot(), inFlight: h.Ledger().Totals().InFlight,
		frozen: h.Frozen(), target: h.Target().On(), loaded: status.LoadedAt, failure: status.Error,
		upgrade: upgrade, store: store.State, others: len(store.Instances),
	}
}

// upgrade says how upgrades go.
func (c *Control) upgrade() Upgrade {
	if c.deps.Upgrade == nil {
		return Upgrade{}
	}
	return c.deps.Upgrade()
}

// Changed gives a sign when the View has changed in more than its ages: at most
// four times a second, one sign however much happened. Who reads slowly misses
// signs, never the newest View, and holds up nobody. The channel is closed when
// ctx is done.
func (c *Control) Changed(ctx context.Context) <-chan struct{} {
	signs := make(chan struct{}, 1)
	board := c.deps.Handler.Board()
	// The board has no counter: a freeze moved in the same breath as another is
	// lifted shows only here. Both are taken now, so that whatever happens after
	// this call gives a sign.
	moved, last := board.Changed(), c.mark()
	go func() {
		defer close(signs)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, news := c.mark(), false
			select {
			case <-moved:
				moved, news = board.Changed(), true
			default:
			}
			if news || now != last {
				last = now
				select {
				case signs <- struct{}{}:
				default: // one is waiting already
				}
			}
		}
	}()
	return signs
}
