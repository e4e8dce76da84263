package redisstore

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"understudy/internal/health"
)

// Version is the layout of what is written, and part of every key: programs of
// different layouts that share a server do not see each other.
const Version = "1"

// The scripts, each a whole change.
var (
	//go:embed lua/put.lua
	putText string
	//go:embed lua/drop.lua
	dropText string
	//go:embed lua/try.lua
	tryText string
	//go:embed lua/load.lua
	loadText string
	//go:embed lua/beat.lua
	beatText string
	//go:embed lua/leave.lua
	leaveText string
	//go:embed lua/count.lua
	countText string

	putScript   = redis.NewScript(putText)
	dropScript  = redis.NewScript(dropText)
	tryScript   = redis.NewScript(tryText)
	loadScript  = redis.NewScript(loadText)
	beatScript  = redis.NewScript(beatText)
	leaveScript = redis.NewScript(leaveText)
	countScript = redis.NewScript(countText)
)

// Times and sizes. The calls' own contexts are shorter than most.
const (
	dialFor     = 2 * time.Second        // TCP, TLS and the login; in nobody's way
	answerIn    = 500 * time.Millisecond // one command, where its context allows it
	keptAfter   = time.Hour              // what is over is remembered for who was away
	maxFreezes  = 10_000                 // held at once, the longest ones
	connections = 4
)

// Options say where the store is and who speaks.
type Options struct {
	// URL is redis:// or rediss://, with user, password and number of the database
	// where they are wanted.
	URL string
	// Password takes the place of the URL's where it is not "".
	Password string
	// RootCAs are trusted for rediss://; nil = the system's.
	RootCAs *x509.CertPool
	// Prefix is what every key begins with.
	Prefix string
	// Name is this instance's: another one for every process.
	Name string
	// Rescan is how often everything is read again; 0 = 5 s.
	Rescan time.Duration
}

// A Store is health.Store on a Redis server.
type Store struct {
	client *redis.Client
	prefix string
	name   string
	rescan time.Duration
	fresh  chan struct{} // capacity 1: the server has forgotten
}

// silent is the library's logger: what goes wrong is returned, and told once by
// whoever keeps the status.
type silent struct{}

// Printf implements the library's interface.
func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// ErrURL is wrapped by the refusal of a URL. It does not repeat it: a password may
// stand in it.
var ErrURL = errors.New("no usable redis URL")

// New makes a store. Nothing is dialled yet; a server that is away is no error.
func New(o Options) (*Store, error) {
	options, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: write redis://user@host:6379/0 or rediss://…", ErrURL)
	}
	if o.Password != "" {
		options.Password = o.Password
	}
	if options.TLSConfig != nil {
		options.TLSConfig.RootCAs = o.RootCAs
	}
	// One try each, soon over: everything is tried again by its callers.
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = dialFor, answerIn, answerIn, answerIn
	options.ContextTimeoutEnabled = true
	options.PoolSize, options.MinIdleConns = connections, 0
	options.Protocol, options.DisableIdentity = 2, true // what Valkey and older servers understand too
	dial := redis.NewDialer(options)
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return guard(c), nil
	}
	s := &Store{client: redis.NewClient(options), prefix: o.Prefix + Version + ":", name: o.Name, rescan: o.Rescan, fresh: make(chan struct{}, 1)}
	if s.rescan == 0 {
		s.rescan = 5 * time.Second
	}
	return s, nil
}

// Close closes all connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	return nil
}

// run runs a script whose first argument is not the instance's name.
func (s *Store) run(ctx context.Context, script *redis.Script, args ...any) (any, error) {
	v, err := script.Run(ctx, s.client, []string{s.prefix}, args...).Result()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return v, nil
}

// Put implements health.Store.
func (s *Store) Put(ctx context.Context, f health.Freeze) error {
	left := time.Until(f.Until).Milliseconds()
	if left <= 0 {
		return nil
	}
	_, err := s.run(ctx, putScript, string(f.Key), s.name, f.By.String(), left, f.Length.Milliseconds(), max(time.Since(f.Since).Milliseconds(), 0), f.Reason, keptAfter.Milliseconds())
	return err
}

// Drop implements health.Store.
func (s *Store) Drop(ctx context.Context, k health.Key, by health.By) error {
	_, err := s.run(ctx, dropScript, string(k), s.name, by.String(), keptAfter.Milliseconds())
	return err
}

// Try implements health.Store.
func (s *Store) Try(ctx context.Context, k health.Key, on bool) error {
	flag := 0
	if on {
		flag = 1
	}
	_, err := s.run(ctx, tryScript, string(k), s.name, flag)
	return err
}

// Beat implements health.Store.
func (s *Store) Beat(ctx context.Context) (health.Roll, error) {
	v, err := s.run(ctx, beatScript, s.name, health.Lifetime.Milliseconds())
	if err != nil {
		return health.Roll{}, err
	}
	names, ok := texts(v)
	if !ok || len(names) == 0 {
		return health.Roll{}, errAnswer
	}
	r := health.Roll{Names: names[1:], Fresh: names[0] == "0"}
	slices.Sort(r.Names)
	if r.Fresh {
		select {
		case s.fresh <- struct{}{}:
		default: // it will be read anew already
		}
	}
	return r, nil
}

// Leave implements health.Store.
func (s *Store) Leave(ctx context.Context) error {
	_, err := s.run(ctx, leaveScript, s.name)
	return err
}

// errAnswer is an answer that no script of ours gives.
var errAnswer = errors.New("store: the server gave an answer that is none")

func texts(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// What the count script reads.
type (
	counting struct {
		Had  []usage `json:"had"`
		Asks []ask   `json:"asks"`
	}
	usage struct {
		Key  string     `json:"k"`
		Open int        `json:"open"`
		Had  [][3]int64 `json:"had"` // seconds ago, began, tokens
	}
	ask struct {
		Key      string `json:"k"`
		Parallel int    `json:"p"`
		RPM      int    `json:"r"`
		TPM      int    `json:"t"`
	}
)

// limited names a key for limits: clients are named by people, and what people write
// stays at home.
func limited(k health.Key) string {
	sum := sha256.Sum256([]byte(k))
	return hex.EncodeToString(sum[:8])
}

// Count implements health.Store.
func (s *Store) Count(ctx context.Context, had []health.Usage, asks []health.Ask) ([]health.Grant, error) {
	c := counting{Had: make([]usage, 0, len(had)), Asks: make([]ask, 0, len(asks))}
	for _, u := range had {
		list := make([][3]int64, 0, len(u.Had))
		for _, h := range u.Had {
			list = append(list, [3]int64{int64(h.Ago), int64(h.Began), h.Tokens})
		}
		c.Had = append(c.Had, usage{limited(u.Key), u.Open, list})
	}
	for _, a := range asks {
		c.Asks = append(c.Asks, ask{limited(a.Key), a.Limits.Parallel, a.Limits.RPM, a.Limits.TPM})
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	v, err := s.run(ctx, countScript, s.name, health.Lifetime.Milliseconds(), string(text))
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok || len(list) != 2*len(asks) {
		return nil, errAnswer
	}
	grants := make([]health.Grant, 0, len(asks))
	for i := 0; i < len(list); i += 2 {
		limit, ok := list[i].(int64)
		ms, also := list[i+1].(int64)
		if !ok || !also || limit < 0 || limit > int64(health.TPM) {
			return nil, errAnswer
		}
		grants = append(grants, health.Grant{Limit: health.Limit(limit), Wait: max(time.Duration(ms), 0) * time.Millisecond})
	}
	return grants, nil
}
