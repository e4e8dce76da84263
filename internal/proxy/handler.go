package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"understudy/internal/health"
	"understudy/internal/held"
	"understudy/internal/owner"
	"understudy/internal/probe"
	"understudy/internal/route"
	"understudy/internal/stats"
	"understudy/internal/wire"
)

// A Handler serves requests by the snapshot that is current when they come.
// Everything else it holds outlives snapshots.
type Handler struct {
	snap       atomic.Pointer[Snapshot]
	board      *health.Board
	callers    *health.Board // the clients' limits
	ledger     *stats.Ledger
	owners     *owner.Book
	transports *Transports
	target     Target
	hedges     hedgeBook
	guests     guestBook
	tunnels    tunnels
	room       held.Gate // for what all requests hold
	log        *slog.Logger
	rand       func() float64
}

// New makes a handler that serves s. board, ledger and transports are shared with
// whoever shows and keeps them, as is the book of owners (Owners); random gives
// numbers in [0, 1).
func New(s *Snapshot, board *health.Board, ledger *stats.Ledger, transports *Transports, log *slog.Logger, random func() float64) *Handler {
	h := &Handler{board: board, callers: health.NewBoard(), ledger: ledger, owners: owner.NewBook(0), transports: transports, log: log, rand: random}
	h.snap.Store(s)
	h.room.Limit(s.heldLimit())
	return h
}

// Swap puts another snapshot in place at once and returns the former one. Running
// requests finish on theirs; only limits hold for them too, those that wait for room
// among them.
func (h *Handler) Swap(s *Snapshot) *Snapshot {
	former := h.snap.Swap(s)
	h.room.Limit(s.heldLimit())
	limits := map[health.Key]health.Limits{}
	for _, k := range s.keys {
		limits[k.own] = k.limits
	}
	h.board.Relimit(func(k health.Key) (health.Limits, bool) { l, ok := limits[k]; return l, ok }, time.Now())
	return former
}

// Snapshot is the one that new requests are served by.
func (h *Handler) Snapshot() *Snapshot { return h.snap.Load() }

// Board is the health of every candidate; it outlives snapshots.
func (h *Handler) Board() *health.Board { return h.board }

// Callers is where the clients' limits are counted; it outlives snapshots.
func (h *Handler) Callers() *health.Board { return h.callers }

// Ledger is what happened; it outlives snapshots.
func (h *Handler) Ledger() *stats.Ledger { return h.ledger }

// Owners is where identifiers in answers came from; it outlives snapshots.
func (h *Handler) Owners() *owner.Book { return h.owners }

// Held is what all requests hold together.
func (h *Handler) Held() held.Figures { return h.room.Figures() }

// Key is an identity on the board, by itself; see Keys.
func Key(id route.ID) health.Key { return key(id) }

// Target is the switch of target mode.
func (h *Handler) Target() *Target { return &h.target }

// ServeHTTP is the way of one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.snap.Load() // once; never again in this request
	defer func() {
		if fault := recover(); fault != nil {
			if fault != http.ErrAbortHandler {
				h.mourn(s, "", fault)
			}
			panic(fault) // net/http breaks the connection off
		}
	}()
	upload := s.begin(w, r)
	if h.alive(w, r, s) {
		return
	}
	req, refusal := h.admit(w, r, s, upload) // 1
	defer req.done()
	var chain *route.Chain
	if refusal == nil {
		if !req.upgrade && h.page(w, req, s) {
			return
		}
		chain, refusal = h.route(req, s) // 2
	}
	if refusal == nil {
		refusal = s.permit(req, chain)
	}
	if refusal == nil && req.upgrade {
		refusal = s.upgradable(req, chain)
	}
	var caller *health.Lease
	if refusal == nil {
		caller, refusal = h.admitted(req)
	}
	if refusal != nil {
		h.refuse(w, req, refusal)
		return
	}
	if req.upgrade {
		h.tunnels.enter()
		defer h.tunnels.leave()
	}
	run := h.begin(w, s, req, chain)
	run.caller = caller
	defer run.report() // 8, whatever happens
	run.finish(r.Context(), w, run.race(r.Context()))
}

// begin opens the record of a request.
func (h *Handler) begin(w http.ResponseWriter, s *Snapshot, req *request, chain *route.Chain) *run {
	h.ledger.Enter(chain.Model)
	r := &run{h: h, s: s, req: req, chain: chain, rules: s.rules[chain], bodies: newBodies(s.Config.RequestLog.Bodies), redact: quoter{base: s.Redact, secrets: slices.Clip(req.secrets)}, sticky: req.sticky(s, chain)}
	if chain.Hedge != nil && req.hedgeable() {
		r.hedge = chain.Hedge
		h.hedges.request(chain.Model, req.start)
	}
	r.deliver = chain.Delivery
	if asked := field(req.header, "X-Understudy-Delivery"); asked == "complete" || asked == "window" || asked == "stream" {
		r.deliver = asked
	}
	if r.deliver == "complete" && req.stream && req.endpoint.Generation && !req.endpoint.Array && req.endpoint.Dialect != wire.Ollama {
		r.early = newEarly(w, req.id)
	}
	r.record = stats.Record{ID: req.id, Model: chain.Model, Client: req.client, Method: req.method, Path: r.path(),
		Dialect: req.endpoint.Dialect.String(), Stream: req.stream, Ignored: req.ignored, Start: req.start, Winner: -1,
		Ending: stats.Cancelled, Usage: stats.NoUsage()}
	return r
}

// path is the request's, for people.
func (r *run) path() string {
	if wire.Usual(r.req.path) {
		return r.req.path
	}
	return r.redact.Quote(r.req.path, 300)
}

// finish sends what the race came to. An answer that broke off ends with an abort:
// the client sees a cut, never a false end.
func (r *run) finish(ctx context.Context, w http.ResponseWriter, res result) {
	defer r.drop()
	r.early.end()
	if r.early.begun() && !res.gone {
		if res.won != nil && res.won.exchange.Format() != wire.SSE {
			// A whole JSON answer cannot follow the head of an event stream.
			res.won.exchange.Close()
			res.won.lease.Settle(health.Abandoned, time.Now(), health.Strike{})
			res = result{answer: r.exhausted("the answer is no event stream, and one had begun")}
		}
		if res.won == nil {
			r.lateFailure(w, res)
		}
	}
	head := w.Header()
	r.ours[0], r.ours[1] = r.req.id, strconv.Itoa(len(r.record.Tries))
	head["X-Understudy-Request-Id"] = r.ours[0:1:1]
	head["X-Understudy-Attempts"] = r.ours[1:2:2]
	switch {
	case res.won != nil && res.won.upgraded != nil:
		r.carry(w, res.won)
	case res.won != nil:
		r.send(ctx, w, res.won)
	case res.pass != nil:
		r.passOn(ctx, w, res.pass)
	case res.answer != nil:
		r.record.Ending, r.record.Status = stats.Exhausted, res.answer.status
		if res.answer.status == http.StatusConflict {
			r.record.Ending = stats.Refused // the owner is away: nobody was called
		}
		if res.answer.status == 0 {
			panic(http.ErrAbortHandler) // target_mode_timeout_action: drop_connection
		}
		res.answer.write(w, r.req.endpoint.Dialect, r.req.id, len(r.record.Tries))
	default:
		// Who has left hears nothing; who has only closed the sending half of the
		// connection looks the same, and must not take silence for an empty 200.
		abort(w, r.req)
	}
}

// name tells the client whose answer it gets.
func (r *run) name(w http.ResponseWriter, c *route.Candidate) {
	r.ours[2] = visible(c.Name)
	w.Header()["X-Understudy-Candidate"] = r.ours[2:3:3]
}

// send relays the winner and settles its lease by how it ended.
func (r *run) send(ctx context.Context, w http.ResponseWriter, win *won) {
	x := win.exchange
	defer x.Close()
	outcome, strike := health.Abandoned, health.Strike{}
	// Deferred, so that a panic on the way leaves no request in flight.
	defer func() { win.lease.Settle(outcome, time.Now(), strike) }()
	r.releasing(w, win)
	n, err := relay(ctx, w, x, r.delivery())
	var cut bool
	if outcome, strike, cut = r.sent(win, n, err); cut {
		abort(w, r.req)
	}
}

// releasing notes that the winner's answer goes out from now on.
func (r *run) releasing(w http.ResponseWriter, win *won) {
	now := time.Now()
	win.lease.Released(now)
	win.learner.released(win.exchange.Header)
	r.stayed(win.candidate, now)
	r.record.Winner, r.record.Status = win.try, win.exchange.Status
	t := &r.record.Tries[win.try]
	r.record.Released = now.Sub(r.req.start)
	t.Released = now.Sub(t.Start)
	r.name(w, win.candidate)
}

// sent books how a released answer ended, of which n bytes went out before err. cut
// says that the client must not take it for a whole one. Apart from send, so that a
// stream that runs holds none of what this needs.
func (r *run) sent(win *won, n int64, err error) (outcome health.Outcome, strike health.Strike, cut bool) {
	x, t, now := win.exchange, &r.record.Tries[win.try], time.Now()
	t.End, t.Bytes, t.Usage = now.Sub(t.Start), n, stats.Usage(x.Usage())
	if t.FirstContent == 0 {
		t.FirstContent = since(t.Start, x.FirstContent)
	}
	r.record.Bytes, r.record.Usage = n, t.Usage
	win.lease.Spend(tokens(t.Usage), now)
	if !x.FirstContent.IsZero() {
		r.record.FirstContent = x.FirstContent.Sub(r.req.start)
	}
	switch {
	case errors.Is(err, errClient):
		t.Verdict, r.record.Ending = stats.Abandoned, stats.Cancelled
		t.Text = "the client left"
		return health.Abandoned, strike, true
	case err != nil:
		// What was held could not be read back: the disk's fault, not the upstream's.
		t.Verdict, r.record.Ending = stats.Abandoned, stats.Broken
		t.Text = "broke off after release: " + r.redact.Quote(err.Error(), 200)
		return health.Abandoned, strike, true
	case x.Ending() == probe.Whole:
		r.record.Ending = stats.Success
		if r.req.ignored { // whose success says nothing about answers
			return health.Abandoned, strike, false
		}
		return health.OK, strike, false
	default:
		r.record.Ending = stats.Broken
		t.Verdict, t.Class, t.Fault, t.Text = stats.Failed, "bad_stream", "server", "an error of the upstream's own, after release"
		if x.Err() != nil {
			f := probe.Classify(x.Clock().Context(), probe.Relay, x.Err())
			t.Class, t.Text = f.Class(), "broke off after release: "+r.redact.Quote(f.Text, 200)
		}
		strike = r.strike(true, t.Text)
		if freeze, enough := r.enough(win.lease, t.Text); enough {
			t.Hedged, t.Froze = true, r.put(win.candidate, key(win.candidate.ID), freeze, time.Now())
		}
		return health.Failed, strike, x.Ending() == probe.Broken
	}
}

// carry joins the client with the upstream that has left HTTP too, until either
// ends. What they say is theirs: it is copied, not read.
func (r *run) carry(w http.ResponseWriter, win *won) {
	u := win.upgraded
	defer u.close()
	outcome, strike := health.Abandoned, health.Strike{}
	defer func() { win.lease.Settle(outcome, time.Now(), strike) }()
	win.lease.Released(time.Now())
	win.learner.released(u.header)
	r.stayed(win.candidate, time.Now())
	r.record.Winner, r.record.Status = win.try, http.StatusSwitchingProtocols
	t := &r.record.Tries[win.try]
	r.record.Released = time.Since(r.req.start)
	t.Released = time.Since(t.Start)
	r.name(w, win.candidate)
	conn, early, err := switchOver(w, u.header, r.shown)
	if err != nil {
		t.Verdict, t.Text, r.record.Ending = stats.Abandoned, "the client left", stats.Cancelled
		return
	}
	server := &r.s.Config.Server
	pipe := &tunnel{client: conn, upstream: u.conn, clientIdle: server.WriteIdleTimeout, upstreamIdle: server.RelayStallTimeout}
	broke, err := r.h.tunnels.carry(pipe, early)
	t.End, t.Bytes = time.Since(t.Start), pipe.down.Load()
	r.record.Bytes = t.Bytes
	switch {
	case err == nil:
		outcome, r.record.Ending = health.OK, stats.Success
	case pipe.dropped.Load():
		t.Verdict, t.Text, r.record.Ending = stats.Abandoned, "broken off: the program ended", stats.Cancelled
	case broke == clientSide:
		t.Verdict, t.Text, r.record.Ending = stats.Abandoned, "the client left", stats.Cancelled
	default:
		f := probe.Classify(context.Background(), probe.Relay, err)
		outcome, r.record.Ending = health.Failed, stats.Broken
		t.Verdict, t.Class, t.Fault, t.Text = stats.Failed, f.Class(), f.Fault.String(), "broke off after release: "+r.redact.Quote(f.Text, 200)
		strike = r.strike(true, t.Text)
		if freeze, enough := r.enough(win.lease, t.Text); enough {
			t.Hedged, t.Froze = true, r.put(win.candidate, key(win.candidate.ID), freeze, time.Now())
		}
	}
}

// passOn sends a failed answer as it came.
func (r *run) passOn(ctx context.Context, w http.ResponseWriter, k *kept) {
	defer k.failure.Close()
	r.record.Ending = stats.PassedThrough
	if k.failure.Empty {
		r.record.Ending = stats.EmptyPassed
		r.record.Winner = k.try
		r.record.Usage = r.record.Tries[k.try].Usage
	}
	r.record.Released = time.Since(r.req.start)
	r.name(w, k.candidate)
	if a := r.reworded(k.failure); a != nil {
		r.record.Status = a.status
		a.write(w, r.req.endpoint.Dialect, r.req.id, len(r.record.Tries))
		return
	}
	x := k.failure.Held
	if x == nil {
		r.record.Status, r.record.Bytes = passEmbedded(w, k.failure, r.req.endpoint.Dialect)
		return
	}
	r.record.Status = x.Status
	n, err := relay(ctx, w, x, r.delivery())
	r.record.Bytes = n
	if err != nil || x.Ending() == probe.Broken {
		if err != nil {
			r.record.Ending = stats.Cancelled
		}
		abort(w, r.req)
	}
}

// reworded is a failed answer in our words, where it quotes a key of the configuration's
// in its body or in its head: upstreams do that with keys that they refuse, and the client
// need not have it. It is nil where nothing is quoted, as far as the answer is held
// (hold_bytes).
func (r *run) reworded(f *probe.Failure) *answer {
	if f.Empty {
		return nil // it failed nobody
	}
	quotes := func(text string) bool { return r.s.Redact.Hide(text) != text }
	found, status := quotes(string(f.Body)), f.Embedded
	if f.Held != nil {
		status = f.Held.Status
		for _, values := range f.Held.Header {
			found = found || slices.ContainsFunc(values, quotes)
		}
	}
	if !found && f.Held != nil && f.Held.HeldBytes() > int64(len(f.Body)) {
		found = r.quotedInHeld(f.Held)
	}
	if !found {
		return nil
	}
	if status < 400 {
		status = http.StatusBadGateway
	}
	return &answer{status: status, kind: "upstream_error", code: "upstream_error", model: r.chain.Model,
		message: "the upstream's error quotes a key, and is told in other words: " + r.account(f)}
}

// quotedInHeld looks through all that is held of an answer, a piece at a time.
func (r *run) quotedInHeld(x *probe.Exchange) (found bool) {
	const piece = 64 << 10
	var last []byte // the end of the piece before, where a key may begin
	err := x.ShowHeld(func(b []byte) error {
		for len(b) > 0 && !found {
			n := min(len(b), piece)
			text := string(last) + string(b[:n])
			found = r.s.Redact.Hide(text) != text
			last = append(last[:0], text[max(0, len(text)-hideAhead):]...)
			b = b[n:]
		}
		return nil
	})
	return found || err != nil // what cannot be looked at is not passed on
}

// completeMemory and completeLimit bound what is held of an answer that is
// delivered complete: the first in memory, the second in all.
const (
	completeMemory = 1 << 20
	completeLimit  = 64 << 20
)

// delivered is how long a healthy stream is held.
func (r *run) delivered() probe.Delivery {
	d := probe.Delivery{Memory: completeMemory, Limit: completeLimit}
	switch {
	case r.deliver == "complete":
		d.Complete = true
		if r.early != nil {
			d.Holding = r.early.announce
		}
	case r.deliver == "window":
		d.Window = r.chain.Hold
	default:
		return probe.Delivery{}
	}
	return d
}

// lateFailure tells a failure to a client that has the head of an event stream
// already: the dialect's own error event, and then a break.
func (r *run) lateFailure(w http.ResponseWriter, res result) {
	r.record.Ending, r.record.Status = stats.Exhausted, http.StatusOK
	a := res.answer
	if res.pass != nil {
		res.pass.failure.Close()
		a = r.exhausted("the answer had begun")
	}
	event := wire.ErrorEvent(r.req.endpoint.Dialect, r.req.endpoint.Kind, a.message)
	if _, err := w.Write(event); err == nil {
		_ = http.NewResponseController(w).Flush() // a client that has left cannot be told
	}
	abort(w, r.req)
}

// delivery is how this request's answer goes out.
func (r *run) delivery() delivery {
	server := &r.s.Config.Server
	return delivery{stall: server.RelayStallTimeout, writeIdle: server.WriteIdleTimeout, errorEvent: server.BrokenStream == "error_event",
		dialect: r.req.endpoint.Dialect, kind: r.req.endpoint.Kind, begun: r.early.begun(), shown: r.shown}
}

// load is how many requests a candidate has in flight, for plans.
func (h *Handler) load(id route.ID) int { return h.board.InFlight(key(id)) }
