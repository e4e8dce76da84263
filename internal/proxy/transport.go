package proxy

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"understudy/internal/h1"
)

// DialFunc opens a connection to an upstream, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Transports are the connections to upstreams, one pool per proxy setting. They
// outlive snapshots, so that a reload costs no warm connection.
type Transports struct {
	// Dial replaces the network's own dialling; nil is the real network. It is
	// set before the first request.
	Dial DialFunc

	mu   sync.Mutex
	open map[string]*transports
}

// transports are pools with one setting: what pooled carries is reused, what fresh
// carries always dials anew. plain carries what goes to an http:// host without a
// proxy between, at a fraction of the cost.
type transports struct {
	pooled, fresh *http.Transport
	plain         *h1.Client
	upgrade       *transports // for what leaves HTTP: only HTTP/1.1 can be left

	mu     sync.RWMutex
	direct map[string]bool // hosts of http:// URLs: no proxy stands between
}

// straight says whether plain can carry a request.
func (t *transports) straight(req *http.Request) bool {
	if req.URL.Scheme != "http" || len(req.Header["Upgrade"]) > 0 {
		return false
	}
	t.mu.RLock()
	direct, known := t.direct[req.URL.Host]
	t.mu.RUnlock()
	if known {
		return direct
	}
	direct = h1.Alive && plainHost(req.URL.Host)
	if direct && t.pooled.Proxy != nil {
		proxy, err := t.pooled.Proxy(req)
		direct = proxy == nil && err == nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.direct[req.URL.Host] = direct
	return direct
}

// plainHost says whether a host goes out as it stands; others net/http translates.
func plainHost(host string) bool {
	for i := range len(host) {
		if host[i] <= ' ' || host[i] >= 0x7f {
			return false
		}
	}
	return true
}

// anew sends a request over a connection that is new and that nobody else gets: over
// HTTP/2 a connection outlives its request, and the next one that needs a new one
// would find it, perhaps as dead as the one before.
func (t *transports) anew(req *http.Request) (*http.Response, error) {
	return t.fresh.Clone().RoundTrip(req)
}

// get returns the transports for a candidate's proxy setting: "" for the
// environment's, "none", or a URL (checked when the file was read).
func (t *Transports) get(proxy string) *transports {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pair := t.open[proxy]; pair != nil {
		return pair
	}
	if t.open == nil {
		t.open = map[string]*transports{}
	}
	pooled, fresh := t.make(proxy), t.make(proxy)
	// A negative limit keeps no connection idle, and unlike DisableKeepAlives
	// it says nothing to the upstream.
	fresh.MaxIdleConnsPerHost = -1
	fresh.IdleConnTimeout = time.Second // what it does not hold for is HTTP/2
	pair := &transports{pooled: pooled, fresh: fresh, plain: &h1.Client{Dial: t.dial()}, direct: map[string]bool{}}
	leaving := t.make(proxy)
	leaving.MaxIdleConnsPerHost = -1
	leaving.ForceAttemptHTTP2, leaving.DialTLSContext, leaving.DialContext = false, nil, t.dial()
	leaving.Protocols = new(http.Protocols)
	leaving.Protocols.SetHTTP1(true)
	pair.upgrade = &transports{pooled: leaving}
	t.open[proxy] = pair
	return pair
}

// dial opens connections. The attempt's own clock bounds a dial (connect_timeout);
// the bound here is for dials whose request has gone away meanwhile.
func (t *Transports) dial() DialFunc {
	if t.Dial != nil {
		return t.Dial
	}
	return (&net.Dialer{Timeout: 60 * time.Second, KeepAlive: 30 * time.Second}).DialContext
}

func (t *Transports) make(proxy string) *http.Transport {
	dial := t.dial()
	tr := &http.Transport{
		DialContext:         witnessed(dial),
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 60 * time.Second,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 512,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		// Dead HTTP/2 connections are found by ping (net/http.HTTP2Config).
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second},
		MaxResponseHeaderBytes: 1 << 20,
	}
	tr.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return secure(ctx, dial, tr.TLSClientConfig, network, addr)
	}
	switch proxy {
	case "none":
	case "":
		tr.Proxy = http.ProxyFromEnvironment
	default:
		if u, err := url.Parse(proxy); err == nil {
			tr.Proxy = http.ProxyURL(u)
		}
	}
	return tr
}

// CloseIdle closes every connection that carries no request.
func (t *Transports) CloseIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pair := range t.open {
		pair.pooled.CloseIdleConnections()
		pair.fresh.CloseIdleConnections()
		pair.plain.CloseIdle()
	}
}
