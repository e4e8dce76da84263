// Command reference is what every figure is divided by: net/http/httputil's
// ReverseProxy with a transport that keeps its connections.
//
//	-mode bare    ReverseProxy as it comes: a copy buffer of 32 KiB for each answer
//	-mode lean    the same with pooled buffers of 4 KiB
//	-mode splice  the least that a failover proxy does on net/http: the body is read
//	              whole, its model is replaced in place, and the answer is flushed read
//	              by read while its end is kept for the usage
//
// It listens on loopback only, and ends with SIGTERM.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "loopback address")
	to := flag.String("to", "", "base URL of the upstream")
	mode := flag.String("mode", "bare", "bare, lean or splice")
	flag.Parse()
	log.SetFlags(0)
	host, _, err := net.SplitHostPort(*listen)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		log.Fatalf("-listen %q is no loopback address", *listen)
	}
	upstream, err := url.Parse(*to)
	if err != nil || upstream.Host == "" {
		log.Fatalf("-to %q is no URL", *to)
	}
	handler, err := handlerOf(*mode, upstream)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal((&http.Server{Addr: *listen, Handler: handler}).ListenAndServe())
}

// handlerOf returns the proxy of a mode.
func handlerOf(mode string, upstream *url.URL) (http.Handler, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true, IdleConnTimeout: 90 * time.Second}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }}
	switch mode {
	case "bare":
		return proxy, nil
	case "lean":
		proxy.BufferPool = &buffers{sync.Pool{New: func() any { return new([4 << 10]byte) }}}
		return proxy, nil
	case "splice":
		return &splicer{transport: transport, upstream: upstream}, nil
	}
	return nil, fmt.Errorf("-mode %q is none of bare, lean and splice", mode)
}

// buffers are the pooled copy buffers of a ReverseProxy.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of 4 KiB.
func (b *buffers) Get() []byte { return b.pool.Get().(*[4 << 10]byte)[:] }

// Put takes a buffer back that Get gave.
func (b *buffers) Put(p []byte) { b.pool.Put((*[4 << 10]byte)(p)) }
