package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"understudy/internal/held"
)

const (
	// heldPatience is how long a request waits where all that may be held is.
	heldPatience = 5 * time.Second
	// heldRetry is when a client that waited in vain is told to come back.
	heldRetry = 2 * time.Second
	// readFirst is the size up to which a body is read before the request asks for
	// room: only what has read its body sees over HTTP/1 that its client leaves.
	readFirst = 32 << 10
	// proveBelow is how much of a large body has to come before memory is made for
	// all of it.
	proveBelow = 256 << 10
	// announcedTime is how long what a client has announced counts as held. After
	// that only what has come does, so that nobody takes room by announcing.
	announcedTime = 3 * time.Second
	// slowestBody is how many bytes a second a body must come with at least, counted
	// from its beginning with read_idle_timeout on top.
	slowestBody = 500
)

// An upload is a body on its way in.
type upload struct {
	r     *http.Request
	w     http.ResponseWriter // nil without a body
	idle  time.Duration       // read_idle_timeout; 0 = none
	start time.Time           // of the first read
	set   time.Time           // when the deadline was last moved; zero = there is none
	probe [1]byte             // where a byte behind the end would go

	memory *memory // where the body lies, if that is a large one

	mu    sync.Mutex
	share *held.Share // nil until the request is in
	got   int64
	owed  int64 // announced, taken, and not come yet
}

// begin opens a request's body, and lets its time run: what is refused before it was
// read is bounded too, since net/http reads on for a while behind a refusal.
func (s *Snapshot) begin(w http.ResponseWriter, r *http.Request) *upload {
	u := &upload{r: r, idle: s.Config.Server.ReadIdleTimeout}
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		u.w = w
		u.expect(time.Now())
	}
	return u
}

// expect moves the deadline along.
func (u *upload) expect(now time.Time) {
	if u.idle <= 0 {
		return
	}
	if u.got == 0 && u.set.IsZero() {
		u.start = now
	}
	u.set = now
	latest := u.start.Add(u.idle + time.Duration(u.got)*(time.Second/slowestBody))
	// Not every writer can have a deadline; then the client is trusted.
	_ = http.NewResponseController(u.w).SetReadDeadline(earlier(now.Add(u.idle+time.Second), latest))
}

// Read implements io.Reader. It moves the deadline along, at most once a second.
func (u *upload) Read(p []byte) (int, error) {
	if !u.set.IsZero() {
		if now := time.Now(); now.Sub(u.set) >= time.Second {
			u.expect(now)
		}
	}
	n, err := u.r.Body.Read(p)
	if n > 0 && !u.arrived(int64(n)) {
		return n, errNoRoom
	}
	return n, err
}

// errNoRoom is a body that grows over what may be held.
var errNoRoom = errors.New("no room for the body")

// arrived counts bytes that have come, against what was announced or beside it.
func (u *upload) arrived(n int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got += n
	if u.share == nil {
		return true
	}
	if n -= u.owed; n <= 0 {
		u.owed = -n
		return true
	}
	u.owed = 0
	return u.share.Grow(n)
}

// enter asks for room for n bytes, which the body is at least.
func (u *upload) enter(ctx context.Context, gate *held.Gate, n int64) error {
	share, err := gate.Enter(ctx, n, heldPatience)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.share, u.owed = share, max(0, n-u.got)
	if u.got == 0 && !u.set.IsZero() {
		u.set = time.Time{} // what was waited for room is not the client's time
		u.expect(time.Now())
	}
	return nil
}

// late gives back what was announced and has not come in time.
func (u *upload) late() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.share.Give(u.owed)
	u.owed = 0
}

// end takes the deadline away.
func (u *upload) end() {
	if !u.set.IsZero() {
		_ = http.NewResponseController(u.w).SetReadDeadline(time.Time{})
	}
}

// readBody reads a body of at most limit bytes whole, once there is room for it. Over
// the limit the rest is read and thrown away, as far as is reasonable.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request, s *Snapshot, req *request) *answer {
	limit, u := s.Config.Server.MaxBodyBytes, req.upload
	if r.ContentLength > limit {
		// A client that withholds its body is not asked for it.
		if r.Header.Get("Expect") != "" || !discard(w, r) {
			w.Header().Set("Connection", "close")
		}
		return tooLarge(limit)
	}
	defer func() { req.share, req.memory = u.share, u.memory }()
	if u.w == nil {
		return crowded(u.enter(r.Context(), &h.room, 0))
	}
	body, err := u.read(r.Context(), &h.room, limit)
	switch {
	case err == nil && int64(len(body)) <= limit:
		u.end()
		req.body = body
		return nil
	case int64(len(body)) > limit:
		if !discard(w, r) {
			w.Header().Set("Connection", "close")
		}
		return tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return invalid(http.StatusRequestTimeout, "request_timeout", "the request body came too slowly, or not at all (read_idle_timeout)")
	case errors.Is(err, held.ErrFull), errors.Is(err, held.ErrNever), errors.Is(err, errNoRoom):
		if r.Header.Get("Expect") != "" || !discard(w, r) {
			w.Header().Set("Connection", "close")
		}
		return crowded(err)
	}
	return invalid(http.StatusBadRequest, "bad_body", "the request body could not be read whole")
}

// crowded is the answer where there was no room for what a request holds; nil where
// there was.
func crowded(err error) *answer {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, held.ErrNever):
		return invalid(http.StatusRequestEntityTooLarge, "request_too_large", "the request body is larger than all requests may hold together (max_held_bytes)")
	case errors.Is(err, held.ErrFull), errors.Is(err, errNoRoom):
		return overloaded()
	}
	return invalid(http.StatusBadRequest, "bad_body", "the client left")
}

// overloaded is the answer where all that may be held is.
func overloaded() *answer {
	return &answer{status: http.StatusServiceUnavailable, kind: "overloaded_error", code: "overloaded", retry: heldRetry,
		message: "all memory for requests is in use (max_held_bytes); try again in a moment"}
}

// read reads the body: a small one before it asks for room, a large one after.
func (u *upload) read(ctx context.Context, gate *held.Gate, limit int64) ([]byte, error) {
	n := u.r.ContentLength
	if n > readFirst {
		if err := u.enter(ctx, gate, n); err != nil {
			return nil, err
		}
		return u.readLarge(n)
	}
	if n > 0 {
		body := make([]byte, n)
		if _, err := io.ReadFull(u, body); err != nil {
			return nil, err
		}
		u.seeEnd()
		return body, u.enter(ctx, gate, n)
	}
	body, err := io.ReadAll(io.LimitReader(u, min(readFirst, limit+1)))
	if err != nil || int64(len(body)) > limit {
		return body, err
	}
	if err := u.enter(ctx, gate, u.got); err != nil {
		return nil, err
	}
	if u.got < readFirst {
		return body, nil
	}
	for {
		if len(body) == cap(body) {
			body = append(make([]byte, 0, 2*cap(body)), body...)
		}
		n, err := u.Read(body[len(body):min(int64(cap(body)), max(limit+1, int64(len(body)+1)))])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			return body, nil
		case err != nil, int64(len(body)) > limit:
			return body, err
		}
	}
}

// readLarge reads a body of n bytes into memory that is used again.
func (u *upload) readLarge(n int64) ([]byte, error) {
	have := int64(0)
	if n > proveBelow {
		defer time.AfterFunc(announcedTime, u.late).Stop()
		first := newMemory(proveBelow)
		defer first.release()
		if _, err := io.ReadFull(u, first.bytes[:proveBelow]); err != nil {
			return nil, err
		}
		u.memory = newMemory(n)
		have = int64(copy(u.memory.bytes, first.bytes[:proveBelow]))
	} else {
		u.memory = newMemory(n)
	}
	body := u.memory.bytes[:n:n]
	if _, err := io.ReadFull(u, body[have:]); err != nil {
		return nil, err
	}
	u.seeEnd()
	return body, nil
}

// seeEnd reads the body's end: the server notices that a client leaves only once it
// has been read.
func (u *upload) seeEnd() { _, _ = u.r.Body.Read(u.probe[:]) }
