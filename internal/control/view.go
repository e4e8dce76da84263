package control

import "time"

// View is everything that people see, at one moment. It is plain data: nothing
// in it points into live state, and its texts hold no secret and no character
// that could disturb a terminal or a page. nil is "unknown", which is not 0.
type View struct {
	Version string `json:"version"`
	// Time is when the View was made; all ages in it count from here.
	Time          time.Time `json:"time"`
	UptimeSeconds int64     `json:"uptime_seconds"`
	// Proxy is the address that clients call.
	Proxy string `json:"proxy"`
	// Sequence is the number of the newest finished request.
	Sequence   uint64 `json:"sequence"`
	Config     Config `json:"config"`
	TargetMode bool   `json:"target_mode"`
	Totals     Totals `json:"totals"`
	// WindowSeconds is how far the average latency and the cache-hit rate of
	// every Model reach back.
	WindowSeconds float64 `json:"window_seconds"`
	// Models are the virtual models in the file's order, then the pool as "*".
	Models  []Model       `json:"virtual_models"`
	Freezes []Freeze      `json:"freezes"`
	Archive ArchiveStatus `json:"archive"`
	Upgrade Upgrade       `json:"upgrade"`
	Held    Held          `json:"held"`
	Rush    Rush          `json:"rush"`
	Store   StoreStatus   `json:"store"`
	// Rules are the common rules of the chains.
	Rules        []Rule `json:"rules"`
	BuiltInRules bool   `json:"built_in_rules"`
}

// Upgrade says how upgrades go: handing over to another program while requests run.
type Upgrade struct {
	// Running: a new process is being started.
	Running bool `json:"running"`
	// Problem is why the last one failed, and FailedAt when; "" = none has failed.
	Problem  string     `json:"problem"`
	FailedAt *time.Time `json:"failed_at"`
	// Former: the process before this one still finishes FormerInFlight requests,
	// which are in no total until they end.
	Former         bool  `json:"former"`
	FormerInFlight int64 `json:"former_in_flight"`
}

// Config says which configuration is in force.
type Config struct {
	Path     string    `json:"path"`
	LoadedAt time.Time `json:"loaded_at"`
	Hash     string    `json:"hash"`
	// Error is why the file as it stands now could not be read; "" if it is the
	// one in force.
	Error        string   `json:"error"`
	NeedsRestart []string `json:"needs_restart"`
	Warnings     []string `json:"warnings"`
}

// Totals count the finished requests of the process, and as far as its state was
// kept those before. Ignored and refused ones are not among Requests.
type Totals struct {
	Requests        int64 `json:"requests"`
	Successes       int64 `json:"successes"`
	PassedThrough   int64 `json:"passed_through"`
	Empty           int64 `json:"empty"`
	Exhausted       int64 `json:"exhausted"`
	Broken          int64 `json:"broken"`
	ClientCancelled int64 `json:"client_cancelled"`
	Ignored         int64 `json:"ignored"`
	Refused         int64 `json:"refused"`
	InFlight        int64 `json:"in_flight"`
}

// Held is what all requests hold together, of max_held_bytes.
type Held struct {
	Bytes int64 `json:"bytes"`
	Limit int64 `json:"limit_bytes"` // 0 = none
	// Waiting is how many requests wait to be let in, Refused how many were not since
	// the process began.
	Waiting int   `json:"waiting"`
	Refused int64 `json:"refused"`
}

// Rush is whether more requests come than can be served.
type Rush struct {
	On bool `json:"on"` // some are turned away now
	// TurnedAway is how many were since the process began; they are in no other figure.
	TurnedAway int64 `json:"turned_away"`
}

// Counts are what became of requests, or of attempts that got a verdict.
type Counts struct {
	Requests  int64 `json:"requests"`
	Successes int64 `json:"successes"`
	Failures  int64 `json:"failures"`
	// Empty are well-formed answers that said nothing.
	Empty int64 `json:"empty"`
	// Abandoned are those whose client left; for a candidate they are not among
	// Requests.
	Abandoned int64 `json:"abandoned"`
}

// Tokens are sums of what was reported; nil where nobody reported any.
type Tokens struct {
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
	Cached *int64 `json:"cached_tokens"`
	Total  *int64 `json:"total_tokens"`
	// Incomplete says that some answers reported nothing: the sums are "at
	// least". CachedIncomplete says the same of Cached.
	Incomplete       bool `json:"tokens_incomplete"`
	CachedIncomplete bool `json:"cached_tokens_incomplete"`
}

// Times are milliseconds over whole successes; nil where there were none.
type Times struct {
	Avg *float64 `json:"avg"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
}

// Window is one stretch of time up to now.
type Window struct {
	Span string `json:"span"` // all, 6h, 1h, 30m, 10m
	Counts
	// SuccessRate is from 0 to 1; nil where there was nothing to count.
	SuccessRate *float64 `json:"success_rate"`
	Tokens
	Latency      Times `json:"latency_ms"`
	FirstContent Times `json:"first_content_ms"`
	// CacheHit is the share of the input that was read from a cache, over the
	// answers that report both.
	CacheHit *float64 `json:"cache_hit_rate"`
}

// History is the last day in cells of equal length, oldest first; the last cell
// is the running one. The three lists are of one length.
type History struct {
	Start       time.Time `json:"start"`
	CellSeconds int       `json:"cell_seconds"`
	States      []string  `json:"states"` // ok, mixed, failing, frozen, idle
	Successes   []int64   `json:"successes"`
	Failures    []int64   `json:"failures"` // empty answers among them
}

// Distribution is how durations since the beginning were spread, in seconds.
type Distribution struct {
	Count uint64
	Sum   float64
	Under []Bound
}

// Bound is how many durations were no longer than so many seconds.
type Bound struct {
	Seconds float64
	Count   uint64
}

// ClassCount is how many attempts failed with a class: a status, network, bad_stream,
// stalled_stream or timeout.
type ClassCount struct {
	Class    string `json:"class"`
	Failures int64  `json:"failures"`
}

// Model is a virtual model, or the pool.
type Model struct {
	Name     string `json:"name"`
	Pool     bool   `json:"pool"`
	Delivery string `json:"delivery"`
	// RPM are the successes that finished in the last 60 s, TPM the tokens
	// reported in them; nil where answers came and none reported any.
	RPM           int64  `json:"rpm"`
	TPM           *int64 `json:"tpm"`
	TPMIncomplete bool   `json:"tpm_incomplete"`
	InFlight      int64  `json:"in_flight"`
	Counts
	ConsecutiveFailures int64      `json:"consecutive_failures"`
	LastError           string     `json:"last_error"`
	LastErrorAt         *time.Time `json:"last_error_at"`
	Tokens
	// AvgLatency (in ms) and CacheHit are over the View's WindowSeconds.
	AvgLatency *float64    `json:"avg_latency_ms"`
	CacheHit   *float64    `json:"cache_hit_rate"`
	Windows    []Window    `json:"windows"`
	History    History     `json:"history"`
	Candidates []Candidate `json:"candidates"`
	// Latencies and FirstContents are for the metrics.
	Latencies     Distribution `json:"-"`
	FirstContents Distribution `json:"-"`
	// Rules are its own ones, before the View's.
	Rules []Rule `json:"rules"`
}

// The states of a candidate.
const (
	StateReady     = "ready"
	StateFrozen    = "frozen"
	StateProbation = "probation"
	StateDisabled  = "disabled"
)

// Candidate is one candidate of a Model. What is counted is counted by identity:
// candidates of one identity share their figures, wherever they stand.
type Candidate struct {
	Index int `json:"index"` // from 1, over all tiers
	Tier  int `json:"tier"`  // from 1
	// Name is the one given, or vm#n; in the pool it is the upstream's id.
	Name  string `json:"name"`
	Model string `json:"model"` // "" keeps the client's
	// BaseURL has passwords and keys taken out.
	BaseURL  string `json:"base_url"`
	Identity string `json:"identity"`
	// State is one of the State words. SecondsLeft is how long a freeze still
	// lasts, rounded up, and Reason why it was set; 0 and "" where there is none.
	State       string `json:"state"`
	SecondsLeft int64  `json:"seconds_left"`
	Reason      string `json:"reason"`
	InFlight    int    `json:"in_flight"`
	// AtLimit is the limit of ours that keeps requests out now, max_parallel, rpm or
	// tpm, and Waiting how many wait for room; "" and 0 where there is none.
	AtLimit string `json:"at_limit"`
	Waiting int    `json:"waiting"`
	Counts
	// FailureClasses are the failures by class; older ones may be missing.
	FailureClasses      []ClassCount `json:"failure_classes"`
	Freezes             int64        `json:"freezes"`
	Hedged              int64        `json:"hedged"`
	ConsecutiveFailures int64        `json:"consecutive_failures"`
	LastError           string       `json:"last_error"`
	LastErrorAt         *time.Time   `json:"last_error_at"`
	Tokens
	RPM     int64    `json:"rpm"`
	TPM     *int64   `json:"tpm"`
	Windows []Window `json:"windows"`
	History History  `json:"history"`
	Settings
}

// Settings are what the file says about a candidate.
type Settings struct {
	// Key is where its key comes from ("env NAME", "file PATH", "none"), or the
	// mask of one that stands in the file.
	Key string `json:"key"`
	// MissingEnv are the variables it wants and does not find now.
	MissingEnv []string `json:"missing_env"`
	AuthStyle  string   `json:"auth_style"`
	// Headers are the names of those it sets.
	Headers     []string `json:"headers"`
	Weight      float64  `json:"weight"`
	Enabled     bool     `json:"enabled"`
	MaxParallel int      `json:"max_parallel"` // 0 = no limit, as the next two
	RPMLimit    int      `json:"rpm_limit"`
	TPMLimit    int      `json:"tpm_limit"`
	Timeouts    Timeouts `json:"timeouts"`
	// Overrides are the timeouts it has of its own, by key.
	Overrides []string `json:"overrides"`
}

// Timeouts are the ones in force for a candidate, in seconds; 0 = off.
type Timeouts struct {
	Connect   float64 `json:"connect_timeout"`
	Stall     float64 `json:"stall_timeout"`
	Stream    float64 `json:"stream_timeout"`
	Nonstream float64 `json:"nonstream_timeout"`
	Content   float64 `json:"content_timeout"`
}

// Freeze is a running freeze in one virtual model that holds its identity.
type Freeze struct {
	Model     string `json:"virtual_model"`
	Index     int    `json:"index"`
	Candidate string `json:"candidate"` // its name
	RealModel string `json:"model"`
	Identity  string `json:"identity"`
	Reason    string `json:"reason"`
	By        string `json:"by"` // rule, streak, person
	// From is the instance that it comes from; "" is this one.
	From        string    `json:"from"`
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until"`
	SecondsLeft int64     `json:"seconds_left"` // rounded up
}

// Rule is a rule as it stands in the file.
type Rule struct {
	Index  int      `json:"index"` // from 1
	Name   string   `json:"name"`
	Status []string `json:"status"` // statuses and classes
	Body   string   `json:"body_regex"`
	Fault  []string `json:"fault"`
	Action string   `json:"action"`
	// The settings of retry, else 0.
	MaxAttempts    int     `json:"max_attempts"`
	BackoffBase    float64 `json:"backoff_base"`
	MaxWaitSeconds float64 `json:"max_wait"`
	// The settings of freeze, else 0.
	FreezeGroup       int     `json:"freeze_from_group"`
	FreezeUnitSeconds float64 `json:"freeze_unit_seconds"`
	FreezeSeconds     float64 `json:"freeze_seconds"`
	Scope             string  `json:"scope"` // identity, key, host or auto; "" for other actions
}
