package proxy

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
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

// transports are two pools with one setting: what pooled carries is reused, what
// fresh carries always dials anew.
type transports struct{ pooled, fresh *http.Transport }

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
	pair := &transports{pooled, fresh}
	t.open[proxy] = pair
	return pair
}

func (t *Transports) make(proxy string) *http.Transport {
	dial := t.Dial
	if dial == nil {
		// The attempt's own clock bounds the dial (connect_timeout); this bound is
		// for dials whose request has gone away meanwhile.
		dial = (&net.Dialer{Timeout: 60 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
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
	}
}
