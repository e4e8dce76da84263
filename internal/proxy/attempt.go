package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"understudy/internal/config"
	"understudy/internal/h1"
	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/wire"
)

// An identity is what a candidate adds to a request on the way out: its credential
// and its own headers, resolved for one attempt.
type identity struct {
	header  []headerField
	own     bool     // it has a credential, so the client's must not go there
	secrets []string // its credentials
	hidden  []string // what else comes from the environment, and is shown to nobody
}

// A headerField is one header, its name spelt as the keys of one are.
type headerField struct {
	name   string
	values []string
}

// set puts a header among those that the candidate adds, in the place of one of that
// name.
func (id *identity) set(name, value string) {
	field := headerField{name, []string{value}}
	if i := slices.IndexFunc(id.header, func(f headerField) bool { return f.name == name }); i >= 0 {
		id.header[i] = field
		return
	}
	id.header = append(id.header, field)
}

// identify resolves a candidate's secrets now. missing names what is not there;
// then nobody may be called.
func identify(c *route.Candidate) (id identity, missing string) {
	if c.BaseURL.User != nil || c.BaseURL.RawQuery != "" {
		id.fromURL(c.BaseURL)
	}
	if !c.Credential.IsNone() {
		secret, err := c.Credential.Resolve()
		if err != nil {
			return id, c.Credential.Missing()
		}
		id.own = true
		id.secrets = append(id.secrets, secret.Reveal())
		switch c.AuthStyle {
		case "x-api-key":
			id.set("X-Api-Key", secret.Reveal())
		case "x-goog-api-key":
			id.set("X-Goog-Api-Key", secret.Reveal())
		case "api-key":
			id.set("Api-Key", secret.Reveal())
		case "none":
		default:
			id.set("Authorization", "Bearer "+secret.Reveal())
		}
	}
	for _, h := range c.Headers {
		value, err := h.Resolve()
		if err != nil {
			return id, h.Missing()
		}
		name := http.CanonicalHeaderKey(h.Name)
		id.set(name, value.Reveal())
		if isCredential(name) {
			id.own = true
		}
		if secretive(name) {
			id.secrets = append(id.secrets, value.Reveal())
		} else if h.Env != "" {
			id.hidden = append(id.hidden, value.Reveal())
		}
	}
	return id, ""
}

// fromURL takes over what a base URL says of who is calling: a key among its query,
// which goes out with it, and its user, who goes out as every HTTP client sends one.
func (id *identity) fromURL(u *url.URL) {
	for _, secret := range config.Secrets(u) {
		id.own = true
		id.secrets = append(id.secrets, secret.Reveal())
	}
	if u.User == nil {
		return
	}
	basic := basicOf(u.User)
	id.own = true
	id.secrets = append(id.secrets, basic)
	id.set("Authorization", basic)
}

// basicOf is the Authorization header of a URL's user (RFC 7617).
func basicOf(user *url.Userinfo) string {
	password, _ := user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
}

// isCredential says whether a header, spelt as the keys of one, is a credential.
func isCredential(name string) bool {
	return slices.Contains(credentials, name)
}

// anthropicVersion is what Anthropic's API requires of every request
// (platform.claude.com, "Versions"); only x-api-key upstreams get it, and only
// where the client sent none.
const anthropicVersion = "2023-06-01"

// An outgoing request is what one candidate is asked: head and body apart, since the
// body may have to go out twice.
type outgoing struct {
	*http.Request // without its body
	parts         [][]byte
	memory        *memory // where they lie, if the body is a large one
}

// outgoing builds the request for one candidate, from the client's originals.
func (q *request) outgoing(s *Snapshot, chain *route.Chain, c *route.Candidate, id identity) *outgoing {
	own := !chain.Pool || id.own || len(s.clients) > 0 // the client's credentials must not go there
	header := forwardable(q.header, !own)
	path, query := q.path, q.query
	if own {
		withoutProtocolKeys(header)
		query = withoutKey(query)
	}
	if c.AuthStyle == "x-api-key" && field(header, "Anthropic-Version") == "" {
		header["Anthropic-Version"] = []string{anthropicVersion}
	}
	for _, field := range id.header {
		header[field.name] = field.values
	}
	if q.method == http.MethodPost {
		header["Accept-Encoding"] = identityOnly
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = unsigned // else net/http would sign for the client
	}
	if c.Model != "" {
		path = q.endpoint.WithModel(path, c.Model)
		if q.upgrade {
			query = withModel(query, c.Model)
		}
	}
	u := joinURL(c.BaseURL, path, query, c.PlainJoin)
	out := &outgoing{memory: q.memory, Request: &http.Request{Method: q.method, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}}
	if q.doc != nil && c.Model != "" {
		out.parts = q.doc.Segments(q.named(c.Model))
	} else {
		out.parts = [][]byte{q.body}
	}
	for _, part := range out.parts {
		out.ContentLength += int64(len(part))
	}
	return out
}

// Values of headers that are always the same. net/http does not change them.
var (
	identityOnly = []string{"identity"}
	unsigned     = []string{""}
)

// errUnread is how net/http says that an upstream has not looked at a request, which may
// be sent again.
var errUnread = errors.New("the upstream has not looked at the request")

// anew is the request with its body, for net/http. Sending it again is not left to that:
// over HTTP/2 it would look at the body while the stream that was given up still reads
// it. It asks for the body again where it would send it, and only there.
func (o *outgoing) anew(ctx context.Context) *http.Request {
	r := o.Request.WithContext(ctx)
	if r.ContentLength == 0 {
		r.Body = http.NoBody
		return r
	}
	r.GetBody = func() (io.ReadCloser, error) { return nil, errUnread }
	r.Body = o.body()
	return r
}

// joinBelow is the size up to which the parts of a body are copied together:
// net/http sends a body that it knows to be in memory along with the head, in one
// write, and any other in a write per part.
const joinBelow = 64 << 10

// body reads the parts one after another. Large ones are not copied together.
func (o *outgoing) body() io.ReadCloser {
	switch {
	case o.memory != nil:
		return newBodyReader(o.parts, o.memory)
	case len(o.parts) == 1:
		return io.NopCloser(bytes.NewReader(o.parts[0]))
	case o.ContentLength <= joinBelow:
		return io.NopCloser(bytes.NewReader(bytes.Join(o.parts, nil)))
	}
	readers := make([]io.Reader, len(o.parts))
	for i, part := range o.parts {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...))
}

// marks are the moments of an attempt, in nanoseconds since its start; the
// transport's goroutines set them.
type marks struct {
	start             time.Time
	connected, header atomic.Int64
	reused, answered  atomic.Bool
	witness           atomic.Pointer[witness] // nil where net/http tells all
	beneath           atomic.Pointer[ending]  // nil without TLS
	progress          *probe.Progress         // nil where nobody hedges
	kept              *probe.Kept             // nil where no bodies are kept
}

// attempt sends the request to one candidate and judges the answer; exactly one of
// the results is not nil. It has no ResponseWriter.
func (h *Handler) attempt(s *Snapshot, req *request, chain *route.Chain, at *seat) (*probe.Exchange, *probe.Failure) {
	c, clock, m := at.c, at.clock, at.m
	out := req.outgoing(s, chain, c, at.id)
	wires := h.transports.get(c.Proxy)
	var resp *http.Response
	var err error
	if wires.straight(out.Request) {
		resp, err = sendPlain(wires, clock, m, out)
	} else {
		resp, err = sendTraced(wires, clock, m, out)
	}
	if err != nil {
		return nil, m.failed(clock, err)
	}
	ask := req.ask(s, c)
	if at.delivery.Holding != nil {
		// The head of a plain event stream may go out before this answer is whole:
		// no coded bytes can follow it.
		ask.AcceptEncoding = nil
	}
	ask.Delivery, ask.Progress, ask.Keep, ask.Share = at.delivery, m.progress, m.kept, req.share
	if under := m.beneath.Load(); under != nil {
		ask.Cut = under.over.Load
	}
	if at.learn != nil {
		ask.Want.Seen = at.learn.seen
	}
	x, f := probe.Judge(clock, resp, &ask, &at.budget)
	if f != nil {
		req.absent(f)
	}
	return x, f
}

// absent sees to it that an answer which is how servers say that they have not got a path,
// or the method there, is blamed on nobody: a client with a wrong base URL would have
// everybody's upstreams frozen. A page under such a status, nginx's say, is taken at the
// status's word; one with 200 is what relays have for every path.
func (q *request) absent(f *probe.Failure) {
	switch f.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented:
		if q.endpoint.Kind == wire.Other && f.Fault == wire.FaultServer {
			f.Fault = wire.FaultClient
		}
	default:
		f.Absent = f.Page && !wire.TakesModel(q.method, q.path)
	}
}

// failed ends an attempt that got no answer. One whose request was none to be sent is
// nobody's failure.
func (m *marks) failed(clock *probe.Clock, err error) *probe.Failure {
	phase := probe.Header
	if m.connected.Load() == 0 {
		phase = probe.Dial
	}
	f := probe.Classify(clock.Context(), phase, err)
	f.Unsendable = errors.Is(err, h1.ErrUnsendable)
	f.Ours = f.Ours || f.Unsendable
	clock.Cancel(nil)
	return f
}

// died says that an attempt on a kept connection ended before any byte of an answer
// came, and nobody cancelled it: the connection had died, which is no failure of the
// upstream's. The request is sent once more, on a connection that is new.
func (m *marks) died(clock *probe.Clock) bool {
	return m.reused.Load() && !m.answered.Load() && context.Cause(clock.Context()) == nil
}

// tired says that an answer on a kept connection is no answer to this request: a
// server that closes an idle connection may say 408 first, and the request crossed it
// on the way (RFC 9110, 15.5.9, says to send it again over another connection).
func (m *marks) tired(resp *http.Response) bool {
	if resp == nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close || !m.reused.Load() {
		return false
	}
	resp.Body.Close()
	m.answered.Store(false)
	return true
}

// at notes a moment.
func (m *marks) at(mark *atomic.Int64) { mark.Store(int64(time.Since(m.start))) }

// A plainWatch tells clock and marks how far a request over a plain connection has
// come.
type plainWatch struct {
	*probe.Clock
	m      *marks
	memory *memory // held until Freed
}

// Connected implements h1.Watcher.
func (w *plainWatch) Connected(reused bool) {
	w.Clock.Connected()
	w.m.reused.Store(reused)
	w.m.at(&w.m.connected)
}

// Heard implements h1.Watcher.
func (w *plainWatch) Heard() {
	w.m.answered.Store(true)
	w.m.at(&w.m.header)
	w.Clock.Heard()
}

// Freed implements h1.Watcher.
func (w *plainWatch) Freed() { w.memory.release() }

// sendPlain sends over a plain HTTP/1.1 connection.
func sendPlain(wires *transports, clock *probe.Clock, m *marks, out *outgoing) (*http.Response, error) {
	watch := &plainWatch{clock, m, out.memory}
	watch.memory.hold()
	resp, err := wires.plain.RoundTrip(clock.Context(), out.Request, out.parts, false, watch)
	if err != nil && m.died(clock) || m.tired(resp) {
		watch.memory.hold()
		resp, err = wires.plain.RoundTrip(clock.Context(), out.Request, out.parts, true, watch)
	}
	return resp, err
}

// sendTraced sends with net/http: TLS, HTTP/2, proxies.
func sendTraced(wires *transports, clock *probe.Clock, m *marks, out *outgoing) (*http.Response, error) {
	if err := h1.Check(out.Request); err != nil {
		return nil, err
	}
	traced := httptrace.WithClientTrace(clock.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { clock.Connecting() },
		GotConn: func(info httptrace.GotConnInfo) {
			clock.Connected()
			m.reused.Store(info.Reused)
			m.at(&m.connected)
			m.beneath.Store(beneath(info.Conn))
			w, _ := info.Conn.(*witness)
			if m.witness.Store(w); w != nil {
				w.watch(clock.Heard)
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				clock.Sent()
			}
		},
		GotFirstResponseByte: func() {
			m.answered.Store(true)
			m.at(&m.header)
			clock.Heard()
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			clock.Heard()
			return nil
		},
	})
	send := wires.pooled.RoundTrip
	if !h1.Reusable(out.Request) {
		send = wires.anew
	}
	resp, err := send(out.anew(traced))
	if errors.Is(err, errUnread) || err != nil && m.died(clock) && !streamReset(err) || m.tired(resp) {
		resp, err = wires.anew(out.anew(traced))
	}
	if err != nil {
		return nil, err
	}
	if w := m.witness.Load(); w != nil && resp.Close {
		// net/http has dropped it; its names are dropped on the way to the client.
		resp.Header["Connection"] = w.connection()
	}
	return resp, nil
}

// streamReset says that an upstream has ended one stream of HTTP/2: its connection
// lives, and so does whoever read the request. What was refused unread is errUnread.
func streamReset(err error) bool {
	_, is := errors.AsType[streamError](err)
	return is
}

// streamError is net/http's own error of that kind, which fills in every struct that
// looks like it (its method As): the type itself is not exported.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "a stream was reset" }

// budget is what one attempt may take.
func (r *run) budget(c *route.Candidate) probe.Budget {
	b := probe.Budget{Connect: c.Connect, Hold: r.s.Config.Server.HoldBytes, Chain: r.left(), Total: c.Nonstream}
	switch {
	case r.req.upgrade:
		b.Stall, b.Total = c.Stall, c.Stream
	case r.req.stream:
		b.Stall, b.Total, b.Content = c.Stall, c.Stream, c.Content
	case c.StallAlways:
		b.Stall = c.Stall
	}
	return b
}
