package drill

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A Turn is what an HTTP/2 upstream does with one request: a healthy answer that may
// come to harm. Of the harm's Ruins it plays Unharmed, Reset, Close, Silence, GoAway,
// GoAwayUnanswered and ResetStream; At counts in the body, and a negative one is
// before the headers.
type Turn struct {
	Answer Answer
	Harm   Harm
}

// StartHTTP2 runs an upstream that speaks HTTP/2 alone, behind TLS, on a free port of
// 127.0.0.1; turn says what it does with the n-th request, counted from 1. Its base
// URL is "https://" + Addr(). It takes no notice of flow control: answers stay below
// what clients take unasked, some megabytes. It panics where there is no port. The
// caller calls Close.
func StartHTTP2(cert tls.Certificate, turn func(r Request, n int) Turn) *Upstream {
	return StartHTTP2On(loopback(), cert, turn)
}

// StartHTTP2On is StartHTTP2 on l, which the Upstream then owns.
func StartHTTP2On(l net.Listener, cert tls.Certificate, turn func(r Request, n int) Turn) *Upstream {
	l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
	u := newUpstream(l)
	u.run(func(c net.Conn, nth int) {
		h := &h2conn{u: u, c: c, nth: nth, turn: turn, f: http2.NewFramer(c, c), open: map[uint32]*h2stream{}, gone: make(chan struct{})}
		defer h.wg.Wait()
		defer close(h.gone)
		h.serve()
	})
	return u
}

// h2conn is one connection.
type h2conn struct {
	u    *Upstream
	c    net.Conn
	nth  int // its number
	turn func(Request, int) Turn
	open map[uint32]*h2stream // requests that are not whole yet
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

type h2stream struct {
	r    Request
	body bytes.Buffer
}

// serve reads until the peer leaves.
func (h *h2conn) serve() {
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
			s := &h2stream{r: Request{Method: frame.PseudoValue("method"), Target: frame.PseudoValue("path"), Conn: h.nth}}
			for _, f := range frame.RegularFields() {
				s.r.Header = append(s.r.Header, Field{f.Name, f.Value})
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
func (h *h2conn) arrived(id uint32, whole bool) {
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
	t := h.turn(s.r, h.u.record(s.r))
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
func (h *h2conn) answer(id uint32, r Request, t Turn, gone <-chan struct{}) {
	if t.Harm.Ruin != Unharmed && t.Harm.At < 0 && !h.strike(id, t.Harm.Ruin, gone) {
		return
	}
	p := t.Answer.play(formOf(r))
	fields := append([]string{":status", strconv.Itoa(http.StatusOK), "content-type", p.contentType}, p.header...)
	if h.write(func(f *http2.Framer) error {
		h.coded.Reset()
		for i := 0; i < len(fields); i += 2 {
			_ = h.coder.WriteField(hpack.HeaderField{Name: string(bytes.ToLower([]byte(fields[i]))), Value: fields[i+1]}) // a buffer takes everything
		}
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: h.coded.Bytes(), EndHeaders: true})
	}) != nil {
		return
	}
	struck, sent := t.Harm.Ruin == Unharmed || t.Harm.At < 0, 0
	const most = 16 << 10 // of a frame, as every peer takes it
	for i, frame := range p.frames() {
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
func (h *h2conn) strike(id uint32, r Ruin, gone <-chan struct{}) bool {
	switch r {
	case GoAway:
		return h.write(func(f *http2.Framer) error {
			h.away = true
			return f.WriteGoAway(h.last, http2.ErrCodeNo, nil)
		}) == nil
	case GoAwayUnanswered:
		_ = h.write(func(f *http2.Framer) error { return f.WriteGoAway(max(id, 2)-2, http2.ErrCodeNo, nil) })
		h.c.Close()
	case ResetStream:
		_ = h.write(func(f *http2.Framer) error { return f.WriteRSTStream(id, http2.ErrCodeInternal) })
	case Close:
		h.c.Close()
	case Reset:
		(&Wire{c: h.c}).Reset()
	case Silence:
		select {
		case <-gone:
		case <-h.gone:
		}
	}
	return false
}

// write writes frames, nobody else's between them.
func (h *h2conn) write(frames func(*http2.Framer) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return frames(h.f)
}
