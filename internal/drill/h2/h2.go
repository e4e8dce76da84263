// Package h2 plays upstreams that speak HTTP/2 and fail. It stands beside package drill,
// whose answers and harms it plays, so that what `understudy drill` and `understudy demo`
// do without, an HTTP/2 library of their own, is not in the program.
package h2

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy/internal/drill"
)

// A Turn is what an HTTP/2 upstream does with one request: a healthy answer that may
// come to harm. Of the harm's Ruins it plays Unharmed, Reset, Close, Silence, GoAway,
// GoAwayUnanswered and ResetStream; At counts in the body, and a negative one is
// before the headers.
type Turn struct {
	Answer drill.Answer
	Harm   drill.Harm
}

// Start runs an upstream that speaks HTTP/2 alone, behind TLS, on l, which the Upstream
// then owns; turn says what it does with the n-th request, counted from 1. Its base URL
// is "https://" + Addr(). It takes no notice of flow control: answers stay below what
// clients take unasked, some megabytes. The caller calls Close.
func Start(l net.Listener, cert tls.Certificate, turn func(r drill.Request, n int) Turn) *drill.Upstream {
	l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	return drill.StartConns(l, func(u *drill.Upstream, c net.Conn, nth int) {
		h := &conn{u: u, c: c, nth: nth, turn: turn, f: http2.NewFramer(c, c), open: map[uint32]*stream{}, gone: make(chan struct{})}
		defer h.wg.Wait()
		defer close(h.gone)
		h.serve()
	})
}

// conn is one connection.
type conn struct {
	u    *drill.Upstream
	c    net.Conn
	nth  int // its number
	turn func(drill.Request, int) Turn
	open map[uint32]*stream // requests that are not whole yet
	asks int
	last uint32        // the newest stream that is answered
	away bool          // GOAWAY has been sent: no newer one is
	gone chan struct{} // closed when nothing is read any more
	wg   sync.WaitGroup

	mu     sync.Mutex // guards writing
	f      *http2.Framer
	coder  *hpack.Encoder
	coded  bytes.Buffer
	resets map[uint32]chan struct{} // closed when the peer gives a stream up
}

type stream struct {
	r    drill.Request
	body bytes.Buffer
}

// serve reads until the peer leaves.
func (h *conn) serve() {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(h.c, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	h.f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.coder = hpack.NewEncoder(&h.coded)
	h.resets = map[uint32]chan struct{}{}
	if h.write(func(f *http2.Framer) error {
		if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 16 << 20}); err != nil {
			return err
		}
		return f.WriteWindowUpdate(0, 1<<30)
	}) != nil {
		return
	}
	for {
		frame, err := h.f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = h.write((*http2.Framer).WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = h.write(func(f *http2.Framer) error { return f.WritePing(true, frame.Data) })
			}
		case *http2.MetaHeadersFrame:
			h.mu.Lock()
			away := h.away
			if !away {
				h.last = frame.StreamID
			}
			h.mu.Unlock()
			if away {
				continue // the peer has been told that it is not
			}
			s := &stream{r: drill.Request{Method: frame.PseudoValue("method"), Target: frame.PseudoValue("path"), Conn: h.nth}}
			for _, f := range frame.RegularFields() {
				s.r.Header = append(s.r.Header, drill.Field{Name: f.Name, Value: f.Value})
			}
			h.open[frame.StreamID] = s
			h.arrived(frame.StreamID, frame.StreamEnded())
		case *http2.DataFrame:
			if s := h.open[frame.StreamID]; s != nil {
				s.body.Write(frame.Data())
			}
			if n := uint32(len(frame.Data())); n > 0 {
				err = h.write(func(f *http2.Framer) error { return f.WriteWindowUpdate(0, n) })
			}
			h.arrived(frame.StreamID, frame.StreamEnded())
		case *http2.RSTStreamFrame:
			delete(h.open, frame.StreamID)
			h.mu.Lock()
			if gone := h.resets[frame.StreamID]; gone != nil {
				close(gone)
				delete(h.resets, frame.StreamID)
			}
			h.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// arrived has a request answered that is whole.
func (h *conn) arrived(id uint32, whole bool) {
	s := h.open[id]
	if s == nil || !whole {
		return
	}
	delete(h.open, id)
	h.asks++
	s.r.Body, s.r.Nth, s.r.At = s.body.Bytes(), h.asks, time.Now()
	gone := make(chan struct{})
	h.mu.Lock()
	h.resets[id] = gone
	h.mu.Unlock()
	t := h.turn(s.r, h.u.Record(s.r))
	h.wg.Go(func() {
		defer func() {
			h.mu.Lock()
			delete(h.resets, id)
			h.mu.Unlock()
		}()
		h.answer(id, s.r, t, gone)
	})
}

// answer plays one turn.
func (h *conn) answer(id uint32, r drill.Request, t Turn, gone <-chan struct{}) {
	if t.Harm.Ruin != drill.Unharmed && t.Harm.At < 0 && !h.strike(id, t.Harm.Ruin, gone) {
		return
	}
	fields := append([]string{":status", strconv.Itoa(http.StatusOK)}, t.Answer.Header(r)...)
	if h.write(func(f *http2.Framer) error {
		h.coded.Reset()
		for i := 0; i < len(fields); i += 2 {
			_ = h.coder.WriteField(hpack.HeaderField{Name: strings.ToLower(fields[i]), Value: fields[i+1]}) // a buffer takes everything
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.coded.Bytes(), EndHeaders: true})
	}) != nil {
		return
	}
	struck, sent := t.Harm.Ruin == drill.Unharmed || t.Harm.At < 0, 0
	const most = 16 << 10 // of a frame, as every peer takes it
	for i, frame := range t.Answer.Frames(r) {
		if i > 0 && t.Answer.Gap > 0 {
			select {
			case <-time.After(t.Answer.Gap):
			case <-gone:
				return
			case <-h.gone:
				return
			}
		}
		for len(frame) > 0 {
			n := min(len(frame), most)
			if !struck {
				if n = min(n, t.Harm.At-sent); n == 0 {
					struck = true
					if !h.strike(id, t.Harm.Ruin, gone) {
						return
					}
					continue
				}
			}
			if h.write(func(f *http2.Framer) error { return f.WriteData(id, false, frame[:n]) }) != nil {
				return
			}
			sent, frame = sent+n, frame[n:]
		}
	}
	_ = h.write(func(f *http2.Framer) error { return f.WriteData(id, true, nil) }) // who left does not matter any more
}

// strike does the harm, and reports whether the answer goes on.
func (h *conn) strike(id uint32, r drill.Ruin, gone <-chan struct{}) bool {
	switch r {
	case drill.GoAway:
		return h.write(func(f *http2.Framer) error {
			h.away = true
			return f.WriteGoAway(h.last, http2.ErrCodeNo, nil)
		}) == nil
	case drill.GoAwayUnanswered:
		_ = h.write(func(f *http2.Framer) error { return f.WriteGoAway(max(id, 2)-2, http2.ErrCodeNo, nil) })
		h.c.Close()
	case drill.ResetStream:
		_ = h.write(func(f *http2.Framer) error { return f.WriteRSTStream(id, http2.ErrCodeInternal) })
	case drill.Close:
		h.c.Close()
	case drill.Reset:
		drill.ResetConn(h.c)
	case drill.Silence:
		select {
		case <-gone:
		case <-h.gone:
		}
	}
	return false
}

// write writes frames, nobody else's between them.
func (h *conn) write(frames func(*http2.Framer) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return frames(h.f)
}
