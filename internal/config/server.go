package config

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

type dur = time.Duration

var serverTable = &table[Server]{
	path:  "server",
	doc:   "Listen addresses, time limits and other settings of the process.",
	empty: true,
	together: func() form {
		return form{{"dependentRequired", form{{"tls_cert", []string{"tls_key"}}, {"tls_key", []string{"tls_cert"}}}}}
	},
	keys: []key[Server]{
		custom(Key{Name: "host", Type: "address", Default: "127.0.0.1", Doc: "Address the proxy listens on; a change needs a restart.", form: hostForm}, readHost).withDefault(func(s *Server) { s.Host = "127.0.0.1" }),
		whole("port", 8787, 0, 65535, "Port the proxy listens on, 0 for any free one; a change needs a restart.", func(s *Server) *int { return &s.Port }),
		custom(Key{Name: "admin", Type: "host:port or off", Default: "127.0.0.1:8788", Doc: "Address of the dashboard, the admin API and /metrics; off disables them.", form: adminForm}, readAdmin).withDefault(func(s *Server) { s.Admin = "127.0.0.1:8788" }),
		seconds("stall_timeout", 60, positive, "Streaming attempts: longest silence of an upstream before release, not one byte, not even a keep-alive.", func(s *Server) *dur { return &s.StallTimeout }),
		seconds("stream_timeout", 300, positive, "Budget of a streaming attempt from sending it to release; after release it never cuts anything.", func(s *Server) *dur { return &s.StreamTimeout }),
		seconds("nonstream_timeout", 600, positive, "Budget of a non-streaming attempt, to its last byte or release.", func(s *Server) *dur { return &s.NonstreamTimeout }),
		seconds("connect_timeout", 15, positive, "Longest wait for TCP and TLS.", func(s *Server) *dur { return &s.ConnectTimeout }),
		seconds("content_timeout", 0, zeroUp, "Streaming: longest wait for the first content (text, reasoning, tool call), which keep-alives do not satisfy; 0 = off.", func(s *Server) *dur { return &s.ContentTimeout }),
		seconds("chain_timeout", 900, zeroUp, "Longest time from admission to release over all attempts and waits; 0 = off.", func(s *Server) *dur { return &s.ChainTimeout }),
		seconds("relay_stall_timeout", 600, zeroUp, "Longest silence after release, then the stream is broken off; 0 = never.", func(s *Server) *dur { return &s.RelayStallTimeout }),
		seconds("read_idle_timeout", 60, zeroUp, "A client that sends no byte of its request body for so long, or less than 500 a second beyond that time, gets 408; 0 = never.", func(s *Server) *dur { return &s.ReadIdleTimeout }),
		seconds("write_idle_timeout", 300, zeroUp, "A client that takes no byte for so long is let go; 0 = never.", func(s *Server) *dur { return &s.WriteIdleTimeout }),
		whole("min_content_chars", 10, 1, maxCount, "Characters of content a stream must show before it is released.", func(s *Server) *int { return &s.MinContentChars }),
		custom(Key{Name: "min_chars_per_second", Type: "number", Default: "0", Range: "at least 0", Doc: "Virtual models with a hedge: content that comes more slowly than this before release counts as none; 0 = off.", form: func() form { return numberForm(0, maxSeconds) }}, func(d *decoder, n *node, s *Server) { s.MinCharsPerSecond, _ = d.rate(n) }),
		size("max_body_bytes", 64<<20, 1<<10, "Larger request bodies get 413.", func(s *Server) *int64 { return &s.MaxBodyBytes }),
		size("hold_bytes", 8<<20, 64<<10, "How much of an answer, decoded, is held before it must be released.", func(s *Server) *int64 { return &s.HoldBytes }),
		whole("auto_hedge_threshold", 5, 0, maxCount, "Consecutive failures of a candidate that freeze it; 0 = off.", func(s *Server) *int { return &s.AutoHedgeThreshold }),
		minutes("auto_hedge_minutes", 10, positive, "How long that freeze lasts.", func(s *Server) *dur { return &s.AutoHedge }),
		custom(Key{Name: "freeze_max_seconds", Type: "seconds", Default: "86400", Range: "at least 1", Doc: "Longest automatic freeze, whatever an upstream asks for.", form: func() form { return numberForm(1, maxSeconds) }}, readFreezeMax).withDefault(func(s *Server) { s.FreezeMax = 86400 * time.Second }),
		minutes("metrics_window_minutes", 30, positive, "Window of the average latency and the cache-hit rate.", func(s *Server) *dur { return &s.MetricsWindow }),
		seconds("reload_poll_interval", 2, zeroUp, "How often the file is looked at for changes; 0 turns automatic reload off.", func(s *Server) *dur { return &s.ReloadPoll }),
		seconds("target_mode_max_wait_seconds", 300, positive, "Target mode: how long an exhausted request is tried again.", func(s *Server) *dur { return &s.TargetMaxWait }),
		seconds("target_mode_round_interval_seconds", 5, positive, "Target mode: pause between two rounds.", func(s *Server) *dur { return &s.TargetInterval }),
		choice("target_mode_timeout_action", []string{"return_504", "return_429", "return_502", "drop_connection"}, "Target mode: what the client gets when the wait was in vain.", func(s *Server) *string { return &s.TargetTimeoutAction }),
		custom(Key{Name: "ignored_error_endpoints", Type: "list of {method, path}", Default: "[{method: POST, path: /v1/messages/count_tokens}]", Doc: "Endpoints whose failures count for nothing; a list replaces the default, [] empties it.", form: func() form { return listForm(refForm("ignored_error_endpoint")) }}, readIgnored).withDefault(func(s *Server) {
			s.IgnoredErrorEndpoints = []IgnoredEndpoint{{"POST", "/v1/messages/count_tokens"}}
		}),
		choice("broken_stream", []string{"abort", "error_event"}, "How a stream that breaks after release ends: abort breaks the connection off, error_event sends the dialect's error event first.", func(s *Server) *string { return &s.BrokenStream }),
		choice("when_all_frozen", []string{"fail", "try_soonest"}, "What a request gets when every candidate is frozen: an error at once, or one attempt at the candidate nearest its thaw.", func(s *Server) *string { return &s.WhenAllFrozen }),
		text("default_model", "", "The virtual model of requests that carry no model, where there is no pool.", func(s *Server) *string { return &s.DefaultModel }),
		custom(Key{Name: "websocket", Type: "on or off", Default: "off", Doc: "Whether WebSocket requests are proxied; off answers 426, so that clients use HTTP at once.", form: onOffForm}, func(d *decoder, n *node, s *Server) { s.WebSocket, _ = d.onOff(n) }),
		choice("ownership", []string{"on", "prefer", "off"}, "Whether requests that refer to state of one account (files, earlier responses) go to that account only; prefer tries the others all the same.", func(s *Server) *string { return &s.Ownership }),
		custom(Key{Name: "sticky_keys", Type: "list of header:NAME, body:a.b", Default: stickyText(DefaultStickyKeys), DefaultWords: "see below", Doc: "Where the session key is looked for; the first found wins, [] means nowhere.", form: func() form { return listForm(stickyForm()) }}, func(d *decoder, n *node, s *Server) { s.StickyKeys = d.stickyKeys(n) }).withDefault(func(s *Server) { s.StickyKeys = slices.Clone(DefaultStickyKeys) }),
		seconds("drain_timeout", 300, zeroUp, "How long running requests may finish after SIGTERM.", func(s *Server) *dur { return &s.DrainTimeout }),
		custom(Key{Name: "state_dir", Type: "path", DefaultWords: "the user's state directory", Doc: "Where freezes, counters and history are kept, readable by the owner only.", form: lineForm}, func(d *decoder, n *node, s *Server) { s.StateDir, _ = d.filePath(n) }).withDefault(func(s *Server) { s.StateDir = DefaultStateDir() }),
		texts("cors_origins", "Web origins whose pages may call, such as https://chat.example.com.", func() form { return patternForm(originPattern) }, func(s *Server) *[]string { return &s.CORSOrigins }, checkOrigin),
		texts("allowed_hosts", "Host names clients may use for this proxy, besides addresses, loopback names and the bound name.", func() form { return patternForm(hostNamePattern) }, func(s *Server) *[]string { return &s.AllowedHosts }, checkHostName),
		custom(Key{Name: "admin_token", Type: "secret", Doc: "The token of the admin listener; required where it does not listen on loopback.", form: lineForm, Secret: true}, func(d *decoder, n *node, s *Server) { s.AdminToken, _ = d.secret(n) }),
		boolean("allow_unauthenticated", false, "Listens beyond loopback without client keys.", func(s *Server) *bool { return &s.AllowUnauthenticated }),
		custom(Key{Name: "tls_cert", Type: "path", Doc: "Certificate chain of the proxy listener, PEM; with tls_key.", form: lineForm}, func(d *decoder, n *node, s *Server) { s.TLSCert, _ = d.filePath(n) }),
		custom(Key{Name: "tls_key", Type: "path", Doc: "Private key of tls_cert, PEM.", form: lineForm}, func(d *decoder, n *node, s *Server) { s.TLSKey, _ = d.filePath(n) }),
		custom(Key{Name: "max_held_bytes", Type: "bytes", DefaultWords: "a quarter of the memory", Range: "at least 0", form: func() form { return sizeForm(0) }, Doc: "How much memory all held bodies and answers may take together; over it new requests wait up to 5 s, then get 503; 0 = no limit."}, readMaxHeld).withDefault(func(s *Server) { s.MaxHeldBytes = -1 }),
		whole("max_connections", 20000, 1, maxCount, "Connections of clients at once, less where the system allows fewer descriptors; beyond it they get 503; a change needs a restart.", func(s *Server) *int { return &s.MaxConnections }),
		seconds("queue_timeout", 0, zeroUp, "How long a request waits for room where every candidate that is left is at a limit of its own; 0 = not at all.", func(s *Server) *dur { return &s.QueueTimeout }),
	},
}

// withDefault gives a custom key its default.
func (k key[T]) withDefault(preset func(*T)) key[T] {
	k.preset = preset
	return k
}

func (d *decoder) server(n *node, s *Server) {
	given := serverTable.decode(d, n, s)
	if (given["tls_cert"] == nil) != (given["tls_key"] == nil) {
		one, other := "tls_cert", "tls_key"
		if given[one] == nil {
			one, other = other, one
		}
		d.errorOn(given[one], one+" without "+other, "give both, or neither")
	}
}

func readHost(d *decoder, n *node, s *Server) {
	h, ok := d.line(n)
	if !ok {
		return
	}
	if in, found := strings.CutPrefix(h, "["); found && strings.HasSuffix(in, "]") {
		h = strings.TrimSuffix(in, "]")
	}
	what := ""
	switch {
	case !hostText().MatchString(n.text):
		what = "no address"
	case net.ParseIP(strings.SplitN(h, "%", 2)[0]) == nil && strings.ContainsAny(h, ":/@ []"):
		what = "no IP address"
	}
	if what != "" {
		d.errorOn(n, what, "write a name or an IP address alone; the port goes to port")
		return
	}
	s.Host = h
}

func readAdmin(d *decoder, n *node, s *Server) {
	if n.kind == kindBool && !n.bool || n.kind == kindText && n.text == "off" {
		s.Admin = ""
		return
	}
	a, ok := d.line(n)
	if !ok {
		return
	}
	host, port, err := net.SplitHostPort(a)
	_, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || strings.ContainsAny(host, "/@ ") {
		d.errorOn(n, "no address", "write host:port, such as 127.0.0.1:8788, or off")
		return
	}
	s.Admin = a
}

func readMaxHeld(d *decoder, n *node, s *Server) {
	if v, ok := d.size(n, 0); ok {
		s.MaxHeldBytes = v
	}
}

func readFreezeMax(d *decoder, n *node, s *Server) {
	v, ok := d.length(n, time.Second, positive)
	if !ok {
		return
	}
	if v < time.Second {
		d.errorOn(n, number(n.num)+" is out of range", "write at least 1")
		return
	}
	s.FreezeMax = v
}

var ignoredMethods = []string{"POST", "PUT", "PATCH", "GET", "DELETE"}

var endpointTable = &table[IgnoredEndpoint]{
	path: "server.ignored_error_endpoints[]",
	doc:  "One endpoint whose failures count for nothing.",
	keys: []key[IgnoredEndpoint]{
		custom(Key{Name: "method", Type: "one of " + words(ignoredMethods), Required: true, Doc: "The request's method.", form: func() form { return choiceForm(ignoredMethods) }}, func(d *decoder, n *node, e *IgnoredEndpoint) { e.Method, _ = d.choice(n, ignoredMethods) }),
		custom(Key{Name: "path", Type: "path", Required: true, Doc: "The client's path, without query, compared exactly.", form: func() form { return patternForm("^/[^?#" + control + "]+$") }}, func(d *decoder, n *node, e *IgnoredEndpoint) {
			p, ok := d.line(n)
			if ok && (!strings.HasPrefix(p, "/") || p == "/" || strings.ContainsAny(p, "?#")) {
				d.errorOn(n, "no path of an endpoint", "begin with /, name more than /, leave ? and # out")
				return
			}
			e.Path = p
		}),
	},
}

func readIgnored(d *decoder, n *node, s *Server) {
	s.IgnoredErrorEndpoints = []IgnoredEndpoint{}
	d.each(n, func(item *node) {
		var e IgnoredEndpoint
		endpointTable.decode(d, item, &e)
		s.IgnoredErrorEndpoints = append(s.IgnoredErrorEndpoints, e)
	})
}

// stickyKeys reads "header:NAME" and "body:a.b".
func (d *decoder) stickyKeys(n *node) []StickyKey {
	keys := []StickyKey{}
	d.each(n, func(item *node) {
		s, ok := d.line(item)
		if !ok {
			return
		}
		where, name, _ := strings.Cut(s, ":")
		name = strings.TrimSpace(name)
		switch {
		case where == "header" && headerName(name):
			keys = append(keys, StickyKey{Header: name})
		case where == "body" && name != "" && !slices.Contains(strings.Split(name, "."), ""):
			keys = append(keys, StickyKey{Body: strings.Split(name, ".")})
		default:
			d.errorOn(item, "no place of a session key", "write header:NAME or body:key.key")
		}
	})
	return keys
}

func checkOrigin(d *decoder, n *node, s string) (string, bool) {
	if !originText().MatchString(s) {
		d.errorOn(n, "no origin", "write scheme://host or scheme://host:port, each origin by itself, without a path")
		return "", false
	}
	return strings.ToLower(s), true
}

func checkHostName(d *decoder, n *node, s string) (string, bool) {
	if !hostNameText().MatchString(s) {
		d.errorOn(n, "no host name", "write the name alone, such as proxy.example.com")
		return "", false
	}
	return strings.ToLower(s), true
}

// filePath is a path of the file system; a relative one counts from the
// configuration's directory, "~/" from the user's home.
func (d *decoder) filePath(n *node) (string, bool) {
	s, ok := d.line(n)
	if !ok {
		return "", false
	}
	return absolute(s, d.dir), true
}

// absolute places a path of the configuration.
func absolute(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) && dir != "" {
		return filepath.Join(dir, path)
	}
	return path
}

// DefaultStateDir is where state is kept when the file does not say:
// $XDG_STATE_HOME/understudy or ~/.local/state/understudy, on macOS
// ~/Library/Application Support/understudy, on Windows
// %LocalAppData%\understudy. Where there is no home it is a directory in the
// working directory.
func DefaultStateDir() string {
	const name = "understudy"
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) && runtime.GOOS != "windows" {
		return filepath.Join(dir, name)
	}
	if dir := os.Getenv("LocalAppData"); dir != "" && runtime.GOOS == "windows" {
		return filepath.Join(dir, name)
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil || home == "":
		return filepath.Join(".understudy")
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", name)
	case runtime.GOOS == "windows":
		return filepath.Join(home, "AppData", "Local", name)
	}
	return filepath.Join(home, ".local", "state", name)
}
