package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync/atomic"
	"time"

	"understudy/internal/config"
	"understudy/internal/probe"
	"understudy/internal/route"
)

// An identity is what a candidate adds to a request on the way out: its credential
// and its own headers, resolved for one attempt.
type identity struct {
	header  http.Header
	own     bool // it has a credential, so the client's must not go there
	secrets []string
}

// identify resolves a candidate's secrets now. missing names what is not there;
// then nobody may be called.
func identify(c *route.Candidate) (id identity, missing string) {
	id.header = make(http.Header, len(c.Headers)+2)
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
			id.header.Set("X-Api-Key", secret.Reveal())
		case "x-goog-api-key":
			id.header.Set("X-Goog-Api-Key", secret.Reveal())
		case "api-key":
			id.header.Set("Api-Key", secret.Reveal())
		case "none":
		default:
			id.header.Set("Authorization", "Bearer "+secret.Reveal())
		}
	}
	for _, h := range c.Headers {
		value, err := h.Resolve()
		if err != nil {
			return id, h.Missing()
		}
		id.header.Set(h.Name, value.Reveal())
		if isCredential(h.Name) {
			id.own = true
		}
		if isCredential(h.Name) || h.Env != "" {
			id.secrets = append(id.secrets, value.Reveal())
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
	id.header.Set("Authorization", basic)
}

// basicOf is the Authorization header of a URL's user (RFC 7617).
func basicOf(user *url.Userinfo) string {
	password, _ := user.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password))
}

func isCredential(name string) bool {
	name = http.CanonicalHeaderKey(name)
	for _, c := range credentials {
		if name == c {
			return true
		}
	}
	return false
}

// anthropicVersion is what Anthropic's API requires of every request
// (platform.claude.com, "Versions"); only x-api-key upstreams get it, and only
// where the client sent none.
const anthropicVersion = "2023-06-01"

// outgoing builds the request for one candidate, from the client's originals.
func (q *request) outgoing(ctx context.Context, s *Snapshot, chain *route.Chain, c *route.Candidate, id identity) *http.Request {
	header := forwardable(q.header)
	path, query := q.path, q.query
	if !chain.Pool || id.own || len(s.clients) > 0 {
		for _, name := range credentials {
			delete(header, name)
		}
		withoutProtocolKeys(header)
		query = withoutKey(query)
	}
	if c.AuthStyle == "x-api-key" && header.Get("Anthropic-Version") == "" {
		header.Set("Anthropic-Version", anthropicVersion)
	}
	for name, values := range id.header {
		header[name] = values
	}
	if q.method == http.MethodPost {
		header.Set("Accept-Encoding", "identity")
	}
	if _, ok := header["User-Agent"]; !ok {
		header["User-Agent"] = []string{""} // else net/http would sign for the client
	}
	if c.Model != "" {
		path = q.endpoint.WithModel(path, c.Model)
	}
	u := joinURL(c.BaseURL, path, query, c.PlainJoin)
	out := (&http.Request{Method: q.method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	segments := [][]byte{q.body}
	if q.doc != nil && c.Model != "" {
		segments = q.doc.Segments(q.named(c.Model))
	}
	for _, part := range segments {
		out.ContentLength += int64(len(part))
	}
	if out.ContentLength == 0 {
		out.Body = http.NoBody
		return out
	}
	out.GetBody = func() (io.ReadCloser, error) { return newBody(segments, out.ContentLength), nil }
	out.Body = newBody(segments, out.ContentLength)
	return out
}

// joinBelow is the size up to which the parts of a body are copied together:
// net/http sends a body that it knows to be in memory along with the head, in one
// write, and any other in a write per part.
const joinBelow = 64 << 10

// newBody reads the parts one after another. Large ones are not copied together.
func newBody(parts [][]byte, total int64) io.ReadCloser {
	if len(parts) == 1 {
		return io.NopCloser(bytes.NewReader(parts[0]))
	}
	if total <= joinBelow {
		return io.NopCloser(bytes.NewReader(bytes.Join(parts, nil)))
	}
	readers := make([]io.Reader, len(parts))
	for i, part := range parts {
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
}

// attempt sends the request to one candidate and judges the answer; exactly one of
// the results is not nil. It has no ResponseWriter.
func (h *Handler) attempt(ctx context.Context, s *Snapshot, req *request, chain *route.Chain, c *route.Candidate, id identity, chainLeft time.Duration, m *marks, d probe.Delivery, learn *learner) (*probe.Exchange, *probe.Failure) {
	b := budget(s, req, c, chainLeft)
	clock := probe.NewClock(ctx, b)
	traced := httptrace.WithClientTrace(clock.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { clock.Connecting() },
		GotConn: func(info httptrace.GotConnInfo) {
			clock.Connected()
			m.reused.Store(info.Reused)
			m.connected.Store(int64(time.Since(m.start)))
			w, _ := info.Conn.(*witness)
			if m.witness.Store(w); w != nil {
				w.watch()
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				clock.Sent()
			}
		},
		GotFirstResponseByte: func() {
			m.answered.Store(true)
			m.header.Store(int64(time.Since(m.start)))
			clock.Heard()
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			clock.Heard()
			return nil
		},
	})
	wires := h.transports.get(c.Proxy)
	resp, err := wires.pooled.RoundTrip(req.outgoing(traced, s, chain, c, id))
	if err != nil && m.reused.Load() && !m.answered.Load() && context.Cause(clock.Context()) == nil {
		// The kept connection had died: that is no failure of the upstream's.
		// Sent once more, on a connection that is new.
		resp, err = wires.fresh.RoundTrip(req.outgoing(traced, s, chain, c, id))
	}
	if err != nil {
		phase := probe.Header
		if m.connected.Load() == 0 {
			phase = probe.Dial
		}
		f := probe.Classify(clock.Context(), phase, err)
		clock.Cancel(nil)
		return nil, f
	}
	if w := m.witness.Load(); w != nil && resp.Close {
		// net/http has dropped it; its names are dropped on the way to the client.
		resp.Header["Connection"] = w.connection()
	}
	ask := req.ask(s, c)
	if d.Holding != nil {
		// The head of a plain event stream may go out before this answer is whole:
		// no coded bytes can follow it.
		ask.AcceptEncoding = nil
	}
	ask.Delivery = d
	if learn != nil {
		ask.Want.Seen = learn.seen
	}
	return probe.Judge(clock, resp, ask, b)
}

// budget is what one attempt may take.
func budget(s *Snapshot, req *request, c *route.Candidate, chainLeft time.Duration) probe.Budget {
	b := probe.Budget{Connect: c.Connect, Hold: s.Config.Server.HoldBytes, Chain: chainLeft, Total: c.Nonstream}
	if req.stream {
		b.Stall, b.Total, b.Content = c.Stall, c.Stream, c.Content
	} else if c.StallAlways {
		b.Stall = c.Stall
	}
	return b
}

// missingNow lists what a candidate's secrets lack now: for previews that call nobody.
func missingNow(c config.Candidate) (names []string) {
	if name := c.Credential.Missing(); name != "" {
		names = append(names, name)
	}
	for _, h := range c.Headers {
		if name := h.Missing(); name != "" {
			names = append(names, name)
		}
	}
	return names
}
