package proxy

import (
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"

	"understudy/internal/probe"
	"understudy/internal/route"
)

// websocketOff is what a client gets where nobody may be asked for a WebSocket:
// Codex goes on over HTTP at once then, and for good; after any other status it
// tries again first (openai/codex, responses_websocket.rs).
var websocketOff = answer{status: http.StatusUpgradeRequired, kind: "invalid_request_error", code: "websocket_off", message: "WebSocket is off here; use HTTP"}

// websocketElsewhere is the same where no model stands in the query: which one a
// frame will name nobody can know, and frames are not changed.
var websocketElsewhere = answer{status: http.StatusUpgradeRequired, kind: "invalid_request_error", code: "websocket_off",
	message: "a WebSocket reaches a virtual model only where the model stands in the query (?model=); use HTTP"}

// websocketVersion is the same where the request's own HTTP cannot be left: a proxy in
// front that speaks HTTP/1.0 to us, as nginx does unless it is told otherwise.
var websocketVersion = answer{status: http.StatusUpgradeRequired, kind: "invalid_request_error", code: "bad_handshake",
	message: "a WebSocket is asked for over HTTP/1.1, and this request came over another version; use HTTP/1.1, or no WebSocket"}

// webSocket says whether the client wants to leave HTTP for a WebSocket.
func webSocket(h http.Header) bool { return lists(h["Upgrade"], "websocket") }

// lists says whether a header's comma-separated values hold a word, in any case.
func lists(lines []string, word string) bool {
	for _, line := range lines {
		for w := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(w), word) {
				return true
			}
		}
	}
	return false
}

// handshakes says whether a client's handshake is one: with the version that there is, and
// one key of 16 bytes (RFC 6455, 4.1). An upstream would refuse any other, and have failed.
func handshakes(h http.Header) bool {
	keys, versions := h["Sec-Websocket-Key"], h["Sec-Websocket-Version"]
	if len(keys) != 1 || len(versions) != 1 || strings.TrimSpace(versions[0]) != "13" {
		return false
	}
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(keys[0]))
	return err == nil && len(key) == 16
}

// upgrades takes a request to leave HTTP for what it is, or refuses it: only a GET
// over HTTP/1.1 can (RFC 6455, 4.1).
func (q *request) upgrades(s *Snapshot) *answer {
	if !s.websocket {
		return &websocketOff
	}
	if q.http10 || q.http2 {
		return &websocketVersion
	}
	if q.method != http.MethodGet || !lists(q.header["Connection"], "upgrade") {
		return invalid(http.StatusBadRequest, "bad_handshake", "a WebSocket is asked for by GET, with Connection: Upgrade")
	}
	if !handshakes(q.header) {
		return invalid(http.StatusBadRequest, "bad_handshake", "a WebSocket is asked for with Sec-WebSocket-Version: 13 and one Sec-WebSocket-Key of 16 bytes in base64")
	}
	q.upgrade = true
	q.model, q.several = modelParameter(q.query)
	return nil
}

// mayUpgrade says whether a candidate may be asked for a WebSocket: by its own
// setting, else the server's.
func (s *Snapshot) mayUpgrade(c *route.Candidate) bool {
	if c.WebSocket != nil {
		return *c.WebSocket
	}
	return s.Config.Server.WebSocket
}

// upgradable refuses a WebSocket that nobody in the chain may be asked for, or that
// does not say in its query which model it is for, where the chain replaces it.
func (s *Snapshot) upgradable(q *request, chain *route.Chain) *answer {
	if !chain.Pool && q.model == "" {
		return &websocketElsewhere
	}
	for _, tier := range chain.Tiers {
		for i := range tier {
			if s.mayUpgrade(&tier[i]) {
				return nil
			}
		}
	}
	return &websocketOff
}

// modelParameter is the model that a query names, "" without one; of several the
// last, as most servers read them. several says that there are different ones.
func modelParameter(query string) (model string, several bool) {
	for part := range queryParts(query) {
		value, ok := parameter(part, "model")
		if !ok {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			several = several || model != "" && plain != model
			model = plain
		}
	}
	return model, several
}

// withModel replaces every model that a query names, and leaves the rest as it is.
func withModel(query, model string) string {
	var b strings.Builder
	for part := range queryParts(query) {
		if value, ok := parameter(part, "model"); ok {
			part = strings.TrimSuffix(part, value) + url.QueryEscape(model)
		}
		b.WriteString(part)
	}
	return b.String()
}

// An upgraded answer is a connection that has left HTTP, with the head that said so.
type upgraded struct {
	header http.Header
	conn   io.ReadWriteCloser
	clock  *probe.Clock
}

func (u *upgraded) close() {
	u.conn.Close()
	u.clock.Cancel(nil)
}

// handshake asks one candidate for a WebSocket; exactly one of the results is not
// nil. Like attempt it has no ResponseWriter.
func (h *Handler) handshake(s *Snapshot, req *request, chain *route.Chain, at *seat) (*upgraded, *probe.Failure) {
	c, clock, m := at.c, at.clock, at.m
	out := req.outgoing(s, chain, c, at.id)
	out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	resp, err := sendTraced(h.transports.get(c.Proxy).upgrade, clock, m, out)
	if err != nil {
		return nil, m.failed(clock, err)
	}
	conn, writable := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !writable || !webSocket(resp.Header) || !accepts(req.header, resp.Header) {
		ask := req.ask(s, c)
		return nil, probe.NoUpgrade(clock, resp, &ask, &at.budget)
	}
	clock.Release(0)
	return &upgraded{resp.Header, conn, clock}, nil
}

// accepts says whether the upstream's answer belongs to the client's key
// (RFC 6455, 4.2.2): the client would break off, and nobody could be asked instead.
func accepts(asked, answered http.Header) bool {
	const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	sum := sha1.Sum([]byte(strings.TrimSpace(asked.Get("Sec-Websocket-Key")) + guid))
	return strings.TrimSpace(answered.Get("Sec-Websocket-Accept")) == base64.StdEncoding.EncodeToString(sum[:])
}
