package web

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"understudy/internal/control"
)

// Handler serves the admin listener. It is safe for concurrent use and never in
// the way of a proxied request.
type Handler struct {
	control  *control.Control
	log      *slog.Logger
	session  *session
	metrics  http.Handler
	mux      *http.ServeMux
	patience time.Duration // how long a request's body may take

	// closing is closed when the streams of events are to end.
	closing chan struct{}
	once    sync.Once
	streams chan struct{} // one element per running stream
}

// New makes a handler over a Control. log gets one line per refused login.
func New(c *control.Control, log *slog.Logger) *Handler {
	h := &Handler{
		control: c, log: log, session: newSession(), metrics: metricsHandler(c), mux: http.NewServeMux(), patience: bodyTime,
		closing: make(chan struct{}), streams: make(chan struct{}, maxStreams),
	}
	open := map[string]http.HandlerFunc{
		"GET /login": h.loginPage, "POST /login": h.login, "POST /logout": h.logout, "GET /static/": h.asset,
	}
	guarded := map[string]http.HandlerFunc{
		"GET /{$}": h.page, "GET /plain": h.plain, "GET /api/state": h.state, "GET /api/requests": h.requests, "GET /api/requests/{id}": h.request,
		"GET /api/requests/{id}/bodies": h.bodies, "GET /api/route": h.route,
		"GET /api/events": h.events, "POST /api/command": h.command, "GET /metrics": h.metrics.ServeHTTP,
		"GET /api/curves": h.curves, "GET /api/config": h.configFile, "POST /api/config/check": h.checkConfig, "PUT /api/config": h.writeConfig,
	}
	for pattern, serve := range open {
		h.mux.HandleFunc(pattern, serve)
	}
	for pattern, serve := range guarded {
		h.mux.HandleFunc(pattern, h.authorised(serve))
	}
	return h
}

// Close ends the streams of events, so that a server can shut down: register it
// with http.Server.RegisterOnShutdown. It may be called more than once.
func (h *Handler) Close() { h.once.Do(func() { close(h.closing) }) }

// ServeHTTP answers whoever the guard lets through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	arrive(w, r, h.patience)
	// Whoever watches over the process has neither token nor the right name.
	if r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		sendJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	if refusal := h.guard(r); refusal != "" {
		sendError(w, http.StatusForbidden, refusal)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// secure sets the headers of every answer: nothing runs in the pages but what
// this listener itself serves, nothing frames, caches or shares them.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with that, browsers send "Origin: null" with our own forms.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
