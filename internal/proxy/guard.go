package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"understudy/internal/config"
	"understudy/internal/health"
	"understudy/internal/route"
	"understudy/internal/wire"
)

// A client is somebody who may call, by the digest of the key.
type client struct {
	name   string
	digest [sha256.Size]byte
	models map[string]bool // nil = all
	limits health.Limits
}

func newClient(c config.Client) (client, error) {
	known := client{name: c.Name, limits: health.Limits{Parallel: c.MaxParallel, RPM: c.RPM, TPM: c.TPM}}
	if c.KeySHA256 != "" {
		raw, err := hex.DecodeString(c.KeySHA256)
		if err != nil || len(raw) != len(known.digest) {
			return known, fmt.Errorf("key_sha256 is no SHA-256 in hex")
		}
		copy(known.digest[:], raw)
	} else if secret, err := c.Key.Resolve(); err == nil {
		known.digest = secret.Digest()
	}
	// A key that is missing stays all zeros, which no text's SHA-256 is known to
	// give: that client cannot call.
	if len(c.Models) > 0 {
		known.models = map[string]bool{}
		for _, m := range c.Models {
			known.models[m] = true
		}
	}
	return known, nil
}

// may says whether the client's list holds a model; the pool is "*".
func (c *client) may(model string) bool { return c == nil || c.models == nil || c.models[model] }

// guard decides who may call at all, before anything is read: web pages, other
// hosts' names, and, where client keys are configured, who has none. It writes the
// CORS headers that listed origins need.
func (h *Handler) guard(w http.ResponseWriter, r *http.Request, s *Snapshot, req *request) *answer {
	req.clientOf = s.identify(r)
	if refusal := s.enter(w.Header(), r, req.clientOf); refusal != nil {
		return refusal
	}
	if len(s.clients) > 0 && req.clientOf == nil {
		return &answer{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key", message: "the client key is missing or wrong"}
	}
	if req.clientOf != nil {
		req.client = req.clientOf.name
	}
	return nil
}

// enter refuses what a web page makes somebody's browser send, unless the page's
// origin is this listener's or listed, and what asks for a host that is none of
// this program's.
func (s *Snapshot) enter(out http.Header, r *http.Request, c *client) *answer {
	origin, site := field(r.Header, "Origin"), field(r.Header, "Sec-Fetch-Site")
	listed := s.listed(origin)
	if listed {
		// First of all, so that the page can read a refusal too.
		out.Set("Access-Control-Allow-Origin", origin)
		out.Set("Access-Control-Expose-Headers", "*")
		out.Set("Vary", "Origin")
	}
	if c == nil && !s.knownHost(r.Host) {
		host := s.Redact.Quote(r.Host, 100)
		return invalid(http.StatusForbidden, "unknown_host", fmt.Sprintf("Host '%s' is not one of this program's; if it is, add allowed_hosts: [%s] to the server section", host, host))
	}
	foreign := site == "cross-site" || site == "same-site"
	if origin == "" || samePlace(origin, r.Host) {
		// No page's, or one that this listener served.
		listed = listed || !foreign
	}
	if listed {
		return nil
	}
	add := "add the page's origin to cors_origins in the server section"
	if origin != "" && origin != "null" {
		add = fmt.Sprintf("add cors_origins: [\"%s\"] to the server section", s.Redact.Quote(origin, 100))
	}
	return invalid(http.StatusForbidden, "origin_not_allowed", "requests from web pages of other origins are refused; to let this one in, "+add)
}

// samePlace says whether an Origin is what a Host header names.
func samePlace(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// listed says whether an Origin is one of cors_origins; "null" never is.
func (s *Snapshot) listed(origin string) bool {
	return origin != "" && origin != "null" && s.origins[strings.ToLower(origin)]
}

// preflight answers a listed origin's CORS preflight; true when it did.
func (s *Snapshot) preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" || !s.listed(r.Header.Get("Origin")) || !s.knownHost(r.Host) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS")
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
		h.Set("Access-Control-Allow-Headers", names)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true") // a page out there calls a machine in here
	}
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// identify finds the client whose key the request carries. Every key is compared,
// in constant time, so that the time taken says nothing about which one matched.
func (s *Snapshot) identify(r *http.Request) (found *client) {
	if len(s.clients) == 0 {
		return nil
	}
	for _, text := range presented(r) {
		digest := sha256.Sum256([]byte(text))
		for i := range s.clients {
			if subtle.ConstantTimeCompare(digest[:], s.clients[i].digest[:]) == 1 {
				found = &s.clients[i]
			}
		}
	}
	return found
}

// presented are the keys a request carries, wherever the dialects put them.
func presented(r *http.Request) (keys []string) {
	for _, line := range r.Header["Authorization"] {
		if scheme, rest, ok := strings.Cut(line, " "); ok && strings.EqualFold(scheme, "bearer") {
			keys = append(keys, strings.TrimSpace(rest))
		}
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		keys = append(keys, r.Header[name]...)
	}
	for part := range queryParts(r.URL.RawQuery) {
		if value, ok := keyValue(part); ok {
			if key, err := url.QueryUnescape(value); err == nil {
				keys = append(keys, key)
			}
		}
	}
	if webSocket(r.Header) {
		// Where a browser can put no header.
		keys = append(keys, protocolKeys(r.Header)...)
	}
	return keys
}

// permit says whether the client may use the chain: its list must hold the chain,
// and the request must name one model, not two.
func (s *Snapshot) permit(req *request, chain *route.Chain) *answer {
	c := req.clientOf
	if c == nil || c.models == nil {
		return nil
	}
	refused := func(why string) *answer { return invalid(http.StatusForbidden, "model_not_allowed", why) }
	if req.several || req.doc != nil && len(req.doc.Models()) > 1 {
		return refused("the request names more than one model")
	}
	if req.model == "" {
		return refused("the request names no model, and this client key is for certain models only")
	}
	if !req.upgrade && !wire.TakesModel(req.method, req.path) {
		return refused("this is nothing of a model's, and this client key is for certain models only")
	}
	if req.disguised() {
		return refused("the request asks to be taken for one of another method or path, and this client key is for certain models only")
	}
	for _, name := range wire.NamesInPath(req.method, req.path) {
		if name != req.model {
			return refused("the request names one model in its path and another in its body")
		}
	}
	if req.upgrade && !strings.HasSuffix(strings.TrimRight(req.path, "/"), "/realtime") {
		// Everywhere but in OpenAI's realtime API the frames name the model.
		return refused("over this WebSocket frames name the model, and this client key is for certain models only")
	}
	for part := range queryParts(req.query) {
		if name, ok := anyParameter(part, "deployment"); ok && name != req.model { // Azure's realtime API
			return refused("the request names one model as its deployment and another in its query")
		}
		if name, ok := anyParameter(part, "model"); ok && name != req.model {
			return refused("the request names one model in its query and another in its body")
		}
	}
	if req.form() {
		for part := range queryParts(string(req.body)) {
			if name, ok := anyParameter(part, "model"); ok && name != req.model {
				return refused("the request names one model as JSON and another as a form")
			}
		}
	}
	if req.doc != nil {
		for _, name := range req.doc.NamesInBody() {
			if name != req.named(req.model) && strings.TrimSpace(name) != req.model {
				return refused("the request names other models beside the one that it asks for")
			}
		}
	}
	if !c.may(chain.Model) {
		return refused(fmt.Sprintf("this client key is not for model '%s'", req.quote(s, req.model, 200)))
	}
	return nil
}

// namesFor are the virtual models that a client may use.
func (s *Snapshot) namesFor(c *client) []string {
	names := slices.Clone(s.Routes.Names())
	return slices.DeleteFunc(names, func(name string) bool { return !c.may(name) })
}

// knownHost says whether a Host header is one this program answers to. A name that
// is none may be somebody's domain that points here (DNS rebinding).
func (s *Snapshot) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" {
		return true // HTTP/1.0: no name, no rebinding
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == strings.ToLower(s.Config.Server.Host) || s.hosts[name] || s.hosts[strings.ToLower(host)]
}
