package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy/internal/config"
	"understudy/internal/h1"
	"understudy/internal/held"
	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/wire"
)

// A request is what a client wants, read whole and immutable from then on: every
// attempt is built from it anew.
type request struct {
	id       string
	start    time.Time
	method   string
	path     string // escaped, as it came
	query    string // raw, as it came
	header   http.Header
	endpoint wire.Endpoint
	upload   *upload
	body     []byte
	memory   *memory     // where a large body lies; nil for others
	share    *held.Share // what all this takes of max_held_bytes
	doc      *wire.Doc   // nil where the body has no fields to read
	broken   error       // why a body that should have fields could not be read
	model    string      // the model asked for, "" without one
	resource bool        // the body names it by its resource, with googleModels before it
	stream   bool
	choices  int    // answers that a stream was asked for at once; 0 = nobody said
	http10   bool   // the client knows no chunks: a body ends with the connection
	http2    bool   // the client's connection is shared: it cannot leave HTTP
	upgrade  bool   // it asks for a WebSocket
	several  bool   // whose query names different models
	ignored  bool   // an ignored endpoint
	client   string // the name of the client key it came with
	remote   string // the address it came from
	clientOf *client
	secrets  []string // the client's own, for the redactor
}

// googleModels is the collection that Google's names of models begin with
// (ai.google.dev/api, EmbedContentRequest).
const googleModels = "models/"

// named is a model's name as the body spells names.
func (q *request) named(model string) string {
	if q.resource && !strings.HasPrefix(model, googleModels) {
		return googleModels + model
	}
	return model
}

// quote makes a text from outside fit to be shown, without the request's own secrets.
func (q *request) quote(s *Snapshot, text string, max int) string {
	return (&quoter{base: s.Redact, secrets: q.secrets}).Quote(text, max)
}

// whose is the client as far as taking turns goes: the one whose key it is, else the
// host that it comes from.
func (q *request) whose() string {
	if q.client != "" {
		return "key:" + q.client
	}
	host, _, err := net.SplitHostPort(q.remote)
	if err != nil {
		host = q.remote
	}
	return "host:" + host
}

// done gives back what the request holds.
func (q *request) done() {
	q.memory.release()
	q.share.Close()
}

// admit reads the request whole. A refusal is an answer that calls nobody.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, s *Snapshot, u *upload) (*request, *answer) {
	req := &request{id: newID(), start: time.Now(), method: r.Method, remote: r.RemoteAddr, upload: u, header: r.Header, http10: !r.ProtoAtLeast(1, 1), http2: r.ProtoAtLeast(2, 0)}
	req.path, req.query, _ = strings.Cut(r.RequestURI, "?")
	req.endpoint = wire.ParseEndpoint(r.Method, req.path, req.query)
	req.secrets = clientSecrets(r.Header, req.query)
	if refusal := lined(r); refusal != nil {
		return req, refusal
	}
	if refusal := h.guard(w, r, s, req); refusal != nil {
		return req, refusal
	}
	if refusal := req.oldFashioned(w, r); refusal != nil {
		return req, refusal
	}
	if len(r.Header["Content-Type"]) > 1 { // RFC 9110, 8.3: two readers would read two bodies
		return req, invalid(http.StatusBadRequest, "bad_request", "the request has more than one Content-Type")
	}
	if climbs(req.path) {
		return req, invalid(http.StatusBadRequest, "bad_request", "the path has a '..' segment")
	}
	if webSocket(r.Header) {
		return req, req.upgrades(s)
	}
	req.ignored = s.ignored[config.IgnoredEndpoint{Method: r.Method, Path: req.path}]
	if refusal := h.readBody(w, r, s, req); refusal != nil {
		return req, refusal
	}
	return req, req.scan(s)
}

// unproxied are the methods that are not sent on: a tunnel to elsewhere, and those that
// send the upstream's key back (TRACE, and what IIS calls it). Some servers read them in
// any case of letters.
var unproxied = []string{http.MethodConnect, http.MethodTrace, "TRACK"}

// lined refuses what is no request line: HTTP/2 carries methods and paths that HTTP/1.1
// would read as more than that, and net/http hands them over.
func lined(r *http.Request) *answer {
	switch {
	case slices.ContainsFunc(unproxied, func(method string) bool { return strings.EqualFold(r.Method, method) }), !strings.HasPrefix(r.RequestURI, "/"):
		return invalid(http.StatusBadRequest, "bad_request", "CONNECT, TRACE and absolute request targets are not proxied; send a path such as /v1/chat/completions")
	case !h1.IsToken(r.Method):
		return invalid(http.StatusBadRequest, "bad_request", "the method is none that HTTP has (RFC 9110, 9.1)")
	case !h1.IsTarget(r.RequestURI):
		return invalid(http.StatusBadRequest, "bad_request", "the path or the query holds a space, a control character or '#'; escape it")
	}
	return nil
}

// oldFashioned sees to HTTP/1.0, which knows no chunks: net/http drops a Transfer-Encoding
// there, and with it what tells where the body ends. So a body needs a length, and what
// stands behind it is never read as another request.
func (q *request) oldFashioned(w http.ResponseWriter, r *http.Request) *answer {
	if !q.http10 {
		return nil
	}
	w.Header().Set("Connection", "close")
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		if len(r.Header["Content-Length"]) == 0 {
			return invalid(http.StatusLengthRequired, "length_required", "a body over HTTP/1.0 needs a Content-Length")
		}
	}
	return nil
}

// scan finds the model, and whether a stream is wanted.
func (q *request) scan(s *Snapshot) *answer {
	unread, refusal := q.decode(s)
	if refusal != nil {
		return refusal
	}
	q.model = q.endpoint.Model
	if !unread {
		q.parse()
	}
	if q.doc != nil {
		if name, ok := q.doc.Model(); ok {
			// Google's bodies name a model by its resource, as their paths do.
			bare, resource := strings.CutPrefix(name, googleModels)
			if q.resource = resource && q.endpoint.Dialect == wire.Gemini; q.resource {
				name = bare
			}
			q.model = name
		} else if q.doc.HasModel() {
			q.model = ""
		}
	}
	if q.stream = q.wantsStream(); q.stream && q.doc != nil && (q.endpoint.Generation || q.endpoint.Kind == wire.Images) {
		q.choices = q.doc.Choices(q.endpoint.Kind)
	}
	return nil
}

// decode undoes the body's content coding. unread says that nobody here knows the
// coding, and that nobody needs to: the body goes on as it came.
func (q *request) decode(s *Snapshot) (unread bool, _ *answer) {
	coding := strings.Join(q.header["Content-Encoding"], ", ")
	if coding == "" || len(q.body) == 0 {
		return false, nil
	}
	grown := int64(0)
	plain, err := wire.DecodeWithin(coding, q.body, s.Config.Server.MaxBodyBytes, func(n int64) bool {
		ok := q.share.Grow(n)
		if ok {
			grown += n
		}
		return ok
	})
	switch {
	case errors.Is(err, wire.ErrNoRoom):
		return false, overloaded()
	case errors.Is(err, wire.ErrUnknownCoding):
		if s.opaque() {
			return true, nil
		}
		return false, invalid(http.StatusUnsupportedMediaType, "unsupported_content_encoding", "Content-Encoding "+q.quote(s, coding, 60)+" is not understood; send gzip, zstd, br, deflate or none")
	case errors.Is(err, wire.ErrTooLarge):
		return false, tooLarge(s.Config.Server.MaxBodyBytes)
	case err != nil:
		return false, invalid(http.StatusBadRequest, "bad_content_encoding", "the body does not decode as "+q.quote(s, coding, 60))
	}
	q.share.Give(grown + int64(len(q.body)) - int64(len(plain)))
	q.body = plain
	// Forwarded decoded: the header would lie from here on.
	q.header = q.header.Clone()
	q.header.Del("Content-Encoding")
	return false, nil
}

// parse reads the body's fields. A body that should have some and cannot be read
// is remembered as broken: it may pass where no model is replaced, and only there.
func (q *request) parse() {
	media, params, err := "application/json", map[string]string(nil), error(nil)
	if written := field(q.header, "Content-Type"); written != media { // which most are
		media, params, err = mime.ParseMediaType(written)
	}
	first := firstByte(q.body)
	switch {
	case err == nil && media == "multipart/form-data":
		q.doc, q.broken = wire.ScanMultipart(q.body, params["boundary"])
	case first == 0:
		return
	case first == '{', first == '[', q.endpoint.Generation:
		q.doc, q.broken = wire.Scan(q.body)
		if !q.endpoint.Generation && media != "application/json" {
			// It only looks like JSON: lines of it, or a file that begins so.
			q.broken = nil
		}
	}
	if q.broken != nil {
		q.doc = nil
	}
}

// wantsStream says whether the client asked for a stream: in the body, the path or
// the query, or by Ollama's default.
func (q *request) wantsStream() bool {
	if q.endpoint.Stream {
		return true
	}
	if q.doc != nil {
		if on, ok := q.doc.Bool("stream"); ok {
			return on
		}
		if format, ok := q.doc.String("stream_format"); ok && format == "sse" {
			return true
		}
	}
	return q.endpoint.StreamDefault
}

// route finds the chain that serves the request.
func (h *Handler) route(q *request, s *Snapshot) (*route.Chain, *answer) {
	name := q.model
	if q.upgrade && name == "" && s.Routes.Pool() == nil {
		return nil, &websocketElsewhere
	}
	if q.broken != nil && name == "" && s.Routes.Pool() == nil {
		return nil, q.unreadable(s)
	}
	if name == "" && s.Routes.Pool() == nil {
		if name = s.Config.Server.DefaultModel; name == "" {
			name = h.ownerModel(q, s)
		}
		if name == "" {
			return nil, &answer{status: http.StatusBadRequest, kind: "invalid_request_error", code: "missing_model", available: s.namesFor(q.clientOf),
				message: "the request names no model; send one of the virtual models, or set server.default_model"}
		}
	}
	chain, err := s.Routes.Route(name)
	if err != nil {
		return nil, &answer{status: http.StatusNotFound, kind: "invalid_request_error", code: "model_not_found", available: s.namesFor(q.clientOf),
			message: fmt.Sprintf("model '%s' is no virtual model here", q.quote(s, name, 200))}
	}
	if q.broken != nil && s.replaces(chain) {
		return nil, q.unreadable(s)
	}
	return chain, nil
}

// unreadable refuses a body that is broken where a model must be replaced in it: an
// upstream might read it all the same, and find another model than the candidate's.
func (q *request) unreadable(s *Snapshot) *answer {
	return invalid(http.StatusBadRequest, "invalid_body", "the body cannot be read: "+q.quote(s, q.broken.Error(), 200))
}

// sticky is the session key; "" without one. With client keys configured it is
// the client's own name space.
func (q *request) sticky(s *Snapshot, chain *route.Chain) string {
	body := func(...string) (string, bool) { return "", false }
	if q.doc != nil {
		body = q.doc.String
	}
	key := route.SessionKey(q.header, body, s.stickyKeys(chain))
	if key != "" && q.client != "" {
		key = q.client + "\x00" + key
	}
	return key
}

// ask is what judging the answer needs to know.
func (q *request) ask(s *Snapshot, c *route.Candidate) probe.Ask {
	return probe.Ask{Method: q.method, AcceptEncoding: q.header["Accept-Encoding"], Want: wire.Want{
		Kind: q.endpoint.Kind, Stream: q.stream, Choices: q.choices, Array: q.endpoint.Array, MinChars: s.Config.Server.MinContentChars,
		TerminalOptional: c.TerminalOptional, Judged: q.endpoint.Generation, ErrorIsFailure: q.method == http.MethodPost,
	}}
}

// discardTime bounds how long the rest of a body that is too large is read.
const discardTime = 10 * time.Second

// discard reads the rest of a body and throws it away: many clients read no answer
// before they have sent all, and a connection closed on them would be reset, and
// the answer lost. It reports whether the end was reached, so that the connection
// can carry another request.
func discard(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(discardTime)) != nil {
		return false
	}
	_, err := io.Copy(io.Discard, r.Body)
	return err == nil && control.SetReadDeadline(time.Time{}) == nil
}

func tooLarge(limit int64) *answer {
	return invalid(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("the request body is larger than max_body_bytes (%d)", limit))
}

// shortestCookie is the length below which a cookie's value is a setting, not a
// session.
const shortestCookie = 8

// clientSecrets are a client's own credentials, to be kept out of every text.
func clientSecrets(h http.Header, query string) (secrets []string) {
	for name, values := range h {
		if secretive(name) {
			secrets = append(secrets, values...)
		}
	}
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			if _, value, _ := strings.Cut(pair, "="); len(value) >= shortestCookie {
				secrets = append(secrets, value)
			}
		}
	}
	secrets = append(secrets, protocolKeys(h)...)
	for part := range queryParts(query) {
		if value, ok := secretValue(part); ok {
			secrets = append(secrets, unescaped(value), unescaped(strings.ReplaceAll(value, "+", " ")))
		}
	}
	return secrets
}

// firstByte is the first byte that is no JSON white space; 0 without one.
func firstByte(b []byte) byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// newID is a fresh request id.
func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "req_" + hex.EncodeToString(b[:])
}
