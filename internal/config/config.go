package config

import (
	"io/fs"
	"net/url"
	"time"
)

// Config is one configuration file, checked, with every default filled in. It
// is immutable: snapshots and requests share its slices and maps.
type Config struct {
	Server Server
	// Pool is nil where the file serves virtual models only. Its members are
	// all of Upstreams.
	Pool *Pool
	// Upstreams are the [[upstream]] entries in the file's order, whether or
	// not there is a pool.
	Upstreams []Candidate
	// Models are the virtual models in the file's order.
	Models []VirtualModel
	// Rules are the common rules of all chains: the file's, or the built-in
	// ones where BuiltInRules is true. An empty list means next for everything.
	Rules        []Rule
	BuiltInRules bool
	Clients      []Client
	// Store is nil where the file names no shared store.
	Store      *Store
	RequestLog RequestLog
	// Source is what was parsed.
	Source Source
}

// Server holds the settings of the process and the limits that candidates
// inherit. A zero duration means "off" for the keys whose range says so.
type Server struct {
	Host  string
	Port  int    // 0–65535; 0 lets the system choose
	Admin string // host:port of the admin listener; "" is off

	StallTimeout      time.Duration
	StreamTimeout     time.Duration
	NonstreamTimeout  time.Duration
	ConnectTimeout    time.Duration
	ContentTimeout    time.Duration // 0 = off
	ChainTimeout      time.Duration // 0 = off
	RelayStallTimeout time.Duration // 0 = never
	ReadIdleTimeout   time.Duration
	WriteIdleTimeout  time.Duration // 0 = never

	MinContentChars   int
	MinCharsPerSecond float64 // 0 = off
	MaxBodyBytes      int64
	HoldBytes         int64

	AutoHedgeThreshold  int           // consecutive failures; 0 = off
	AutoHedge           time.Duration // auto_hedge_minutes
	FreezeMax           time.Duration
	MetricsWindow       time.Duration // metrics_window_minutes
	ReloadPoll          time.Duration // 0 = no automatic reload
	TargetMaxWait       time.Duration
	TargetInterval      time.Duration
	TargetTimeoutAction string // return_504, return_429, return_502, drop_connection

	IgnoredErrorEndpoints []IgnoredEndpoint
	BrokenStream          string // abort, error_event
	WhenAllFrozen         string // fail, try_soonest
	DefaultModel          string // a virtual model's name, or ""
	Ownership             string // on, prefer, off
	WebSocket             bool
	StickyKeys            []StickyKey
	DrainTimeout          time.Duration
	StateDir              string

	CORSOrigins          []string
	AllowedHosts         []string
	AdminToken           Secret
	AllowUnauthenticated bool
	TLSCert, TLSKey      string        // paths; both or neither
	MaxHeldBytes         int64         // all held answers and bodies together; 0 = no limit, -1 = by the memory there is
	MaxConnections       int           // of clients at once
	QueueTimeout         time.Duration // wait for a slot under max_parallel; 0 = none
}

// IgnoredEndpoint is an endpoint whose failures count for nothing. Path is
// compared exactly with the client's path.
type IgnoredEndpoint struct {
	Method, Path string
}

// StickyKey names one place a session key is looked for: a header, or a path of
// keys in the JSON body. Exactly one of the two is set.
type StickyKey struct {
	Header string
	Body   []string
}

// Pool is what serves requests whose model is no virtual model. Its members are
// [Config.Upstreams].
type Pool struct {
	RetryStatuses []int
	MaxAttempts   int
	Cooldown      time.Duration // 0 = no cooldown
	Affinity      string        // strict, warm, off
	AffinityTTL   time.Duration // how long affinity "warm" keeps a session away from home
	StickyKeys    []StickyKey
	Rules         []Rule // before the pool's own table
}

// Candidate is an upstream with the model to ask it for. Its timeouts are the
// effective ones.
type Candidate struct {
	ID      string // the [[upstream]] id, "" where the entry names its own base_url
	Name    string // the name given, else "vm#n" or the upstream's id
	Named   bool   // Name was given
	BaseURL *url.URL
	Model   string // "" keeps the client's

	Credential Credential
	AuthStyle  string // bearer, x-api-key, x-goog-api-key, api-key, none
	Headers    []HeaderValue
	Weight     float64 // > 0
	Proxy      string  // "" = the environment's variables, "none", or a URL

	Connect   time.Duration
	Stall     time.Duration
	Stream    time.Duration
	Nonstream time.Duration
	Content   time.Duration // 0 = off
	// StallAlways runs the stall clock for non-streaming attempts too: an
	// upstream's timeout_seconds.
	StallAlways bool
	// Overrides are the timeouts the file sets on this very entry, by key.
	Overrides map[string]time.Duration

	Enabled          bool
	PlainJoin        bool // no folding of version segments
	TerminalOptional bool // a clean end without a terminal event is healthy
	MaxParallel      int  // 0 = no limit
	RPM, TPM         int  // 0 = no limit
	WebSocket        *bool

	Index int // 1-based in its virtual model or pool, over all tiers
	Tier  int // 1-based
}

// HeaderValue is a header that replaces the client's of that name. The variable
// Env, where it is set, wins over Value.
type HeaderValue struct {
	Name  string
	Value Secret
	Env   string
}

// VirtualModel is a name clients send, and the chain it stands for.
type VirtualModel struct {
	Name     string
	Tiers    [][]Candidate
	Delivery string        // stream, complete, window
	Hold     time.Duration // how long delivery "window" holds an answer
	Hedge    *Hedge        // nil = off
	// MinCharsPerSecond is the slowest that content may come before release
	// without a hedge: the model's own, else the server's; 0 = off.
	MinCharsPerSecond float64
	Affinity          string        // strict, warm, off
	AffinityTTL       time.Duration // how long affinity "warm" keeps a session away from home
	Rules             []Rule        // before Config.Rules
}

// Hedge starts another attempt beside one that says nothing.
type Hedge struct {
	After  time.Duration // wait for content before another attempt starts; 0 where P95 is set
	P95    bool          // After is the virtual model's own p95 instead
	Max    int           // extra attempts of one request, 1 to 3
	Budget float64       // extra attempts as a share of requests, 0 < x ≤ 1
}

// Rule maps failures to an action. Of its conditions those that are set must
// all hold; Statuses and Classes together are one condition.
type Rule struct {
	Name       string // "rule 3", "built-in quota"
	Statuses   []int
	Classes    []string    // network, bad_stream, stalled_stream, timeout
	Body       *Expression // nil = any
	BodySource string      // as it stands in the file
	Faults     []string

	Action      string // retry, next, freeze, passthrough
	MaxAttempts int    // retry: the first one included
	BackoffBase float64
	MaxWait     time.Duration

	FreezeGroup int           // freeze: group of Body that holds the length; 0 = none
	FreezeUnit  time.Duration // what one of that group's number means
	Freeze      time.Duration // freeze_seconds
	Scope       string        // freeze: identity, key, host, auto

	Line int // in the file; 0 for built-in rules
}

// Client is somebody who may call. Exactly one of Key and KeySHA256 is set.
type Client struct {
	Name        string
	Key         Credential
	KeySHA256   string   // 64 lower-case hex digits
	Models      []string // virtual models, "*" is the pool; empty = all
	RPM, TPM    int      // 0 = no limit
	MaxParallel int      // 0 = no limit
}

// Store is a store that several instances share.
type Store struct {
	URL      Credential // redis:// or rediss://, or a variable or file that holds it
	Password Credential // in the place of the URL's; none = the URL's
	CAFile   string     // certificates that rediss:// trusts; "" = the system's
	Prefix   string     // in front of every key
}

// RequestLog is how much is kept on disk of the requests that are over.
type RequestLog struct {
	Keep   int    // requests, the newest; 0 = none
	Days   int    // older ones are deleted; 0 = as old as Keep lets them become
	Bodies string // off, failed, all: whose bodies are kept too
}

// Format is the spelling of a file.
type Format uint8

// The two spellings.
const (
	YAML Format = iota
	TOML
)

// String is "yaml" or "toml".
func (f Format) String() string {
	if f == TOML {
		return "toml"
	}
	return "yaml"
}

// Source is the bytes of a configuration file and where they came from. Its
// methods never change Bytes; edits return a new Source.
type Source struct {
	Path   string
	Format Format
	Bytes  []byte
	// Hash is the SHA-256 of the file as it was read from disk; an edited
	// Source keeps it, so that Write can tell whether the file has changed.
	Hash [32]byte
	Mode fs.FileMode
}
