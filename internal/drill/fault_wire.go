package drill

import (
	"bytes"
	"time"
)

// timingFaults say too little, too late, or nothing for too long.
func timingFaults() []Fault {
	return []Fault{
		{Name: "silence-before-headers", Says: "takes the request and never answers", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) { w.Silence() }
		}},
		{Name: "silence-after-headers", Says: "sends the headers and then nothing", Script: staged(0, 0, stop(Hang))},
		{Name: "keep-alives-for-ever", Says: "sends headers and then only keep-alives, every Gap (1 s)", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.begin(w)
				for ok := true; ok; ok = w.Pause(orSecond(a.Gap)) {
					w.Chunk(p.keepalive)
				}
			}
		}},
		{Name: "blank-events-for-ever", Says: "opens the answer and then sends events that say nothing, every Gap (1 s)", Script: staged(0, 0, func(s *stage) {
			if s.format == whole {
				s.Silence()
				return
			}
			gap := s.answer.Gap
			s.answer.Gap = 0
			s.say(s.lead...)
			for s.Pause(orSecond(gap)) {
				s.say(s.blank)
			}
		})},
		{Name: "stall-two-characters", Says: "says two characters and then nothing", Script: brief(staged(-1, -1, stop(Hang)))},
		{Name: "trickle", Healthy: true, Says: "sends the answer byte by byte, one every Gap (1 ms)", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				body := bytes.Join(p.frames(), nil)
				p.begin(w)
				for i := range body {
					if i > 0 && !w.Pause(max(a.Gap, time.Millisecond)) {
						return
					}
					w.Chunk(body[i : i+1])
				}
				w.End()
			}
		}},
		{Name: "slow-headers", Healthy: true, Says: "answers well, after Wait (2 s)", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				if w.Pause(a.wait()) {
					Healthy(a)(w, r, n)
				}
			}
		}},
		{Name: "slow-first-token", Healthy: true, Says: "opens the answer, thinks for Wait (2 s), and answers well", Script: staged(-1, 0, func(s *stage) {
			if !s.Pause(s.answer.wait()) {
				return
			}
			s.rest(0)
		})},
		{Name: "slow-middle", Healthy: true, Says: "says half, sends keep-alives every Gap (1 s) for Wait (2 s), and says the rest", Script: func(a Answer) Script {
			half := func(s *stage) int { return len(s.content) / 2 }
			return staged(-1, 0, func(s *stage) {
				if s.format == whole {
					if s.Pause(s.answer.wait()) {
						s.rest(0)
					}
					return
				}
				s.say(s.content[:half(s)]...)
				for waited := time.Duration(0); waited < s.answer.wait(); waited += orSecond(s.answer.Gap) {
					if !s.Pause(orSecond(s.answer.Gap)) {
						return
					}
					s.Chunk(s.keepalive)
				}
				s.rest(half(s))
			})(a)
		}},
	}
}

// connectionFaults break the connection before anything worth passing on.
func connectionFaults() []Fault {
	return []Fault{
		{Name: "reset-before-headers", Says: "resets the connection before it answers", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) { w.Reset() }
		}},
		{Name: "fin-before-headers", Says: "closes the connection before it answers", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) { w.FIN() }
		}},
		{Name: "reset-after-headers", Says: "sends the headers and resets the connection", Script: staged(0, 0, stop(RST))},
		{Name: "fin-after-headers", Says: "sends the headers and closes the connection", Script: staged(0, 0, stop(FIN))},
		{Name: "reset-two-characters", Says: "says two characters and resets the connection", Script: brief(staged(-1, -1, stop(RST)))},
		{Name: "fin-two-characters", Says: "says two characters and closes the connection", Script: brief(staged(-1, -1, stop(FIN)))},
		{Name: "clean-two-characters", Says: "says two characters and ends the body cleanly, without the event that ends a stream", Script: brief(clean)},
		{Name: "short-length", Says: "announces a Content-Length and closes the connection before it is reached", Script: brief(func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				body := bytes.Join(p.frames(), nil)
				w.Head(200, Length(len(body)), "Content-Type", p.contentType)
				if p.format != whole {
					p.close = nil
					body = bytes.Join(p.encode(0, p.events()), nil)
					w.Chunk(body)
				} else {
					w.Chunk(body[:len(body)-1])
				}
				w.FIN()
			}
		})},
		{Name: "broken-chunk", Says: "opens the answer and breaks its own chunking", Script: func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.begin(w)
				if p.format == whole {
					w.Chunk(p.body[:len(p.body)/2])
				} else {
					for _, f := range p.encode(0, p.lead) {
						w.Chunk(f)
					}
				}
				breakChunk(w)
			}
		}},
		{Name: "garbage-head", Says: "answers with bytes that are no HTTP", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) {
				w.Raw([]byte("\x15\x03\x01\x00\x02\x02\x28 not HTTP\r\n\r\n"))
				w.FIN()
			}
		}},
		{Name: "endless-headers", Says: "sends 16 MiB of header lines and no end of them", Script: func(Answer) Script {
			return func(w *Wire, r Request, n int) {
				w.Raw([]byte("HTTP/1.1 200 OK\r\n"))
				line := []byte("x-filler: " + string(bytes.Repeat([]byte{'f'}, 64<<10)) + "\r\n")
				for range 256 {
					if w.Err() != nil {
						return
					}
					w.Raw(line)
				}
				w.FIN()
			}
		}},
	}
}

// lateFaults fail when enough was said to be passed on.
func lateFaults() []Fault {
	return []Fault{
		{Name: "reset-late", AfterRelease: true, Says: "resets the connection before the event that ends the stream", Script: late(staged(-1, -1, stop(RST)))},
		{Name: "fin-late", AfterRelease: true, Says: "closes the connection before the event that ends the stream", Script: late(staged(-1, -1, stop(FIN)))},
		{Name: "clean-late", AfterRelease: true, Says: "ends the body cleanly before the event that ends the stream", Script: late(clean)},
		{Name: "stall-late", AfterRelease: true, Says: "falls silent before the event that ends the stream", Script: late(staged(-1, -1, stop(Hang)))},
		{Name: "error-late", AfterRelease: true, Says: "says it all but the end, and then sends an error event", Script: late(erring(-1, -1, trouble.event))},
		{Name: "failed-late", AfterRelease: true, Says: "says it all but the end, and then fails (Responses: response.failed)", Script: late(erring(-1, -1, func(t trouble, f form, n int) event {
			return t.failed(Answer{}.complete(f), f, n)
		}))},
		{Name: "error-unframed-late", AfterRelease: true, Says: "says it all but the end, and then a bare JSON error without framing", Script: late(func(a Answer) Script {
			framed := staged(-1, -1, func(s *stage) {
				s.Chunk([]byte(unavailable.object(s.form, "")))
				s.End()
			})(a)
			return func(w *Wire, r Request, n int) {
				f := formOf(r)
				if a.play(f).format == whole {
					w.JSON(200, []byte(unavailable.object(f, "")))
					return
				}
				framed(w, r, n)
			}
		})},
		{Name: "broken-chunk-late", AfterRelease: true, Says: "breaks its own chunking before the event that ends the stream", Script: late(func(a Answer) Script {
			return func(w *Wire, r Request, n int) {
				p := a.play(formOf(r))
				p.begin(w)
				if p.format == whole {
					w.Chunk(p.body[:len(p.body)/2])
				} else {
					p.close = nil
					for _, f := range p.encode(0, p.events()) {
						w.Chunk(f)
					}
				}
				breakChunk(w)
			}
		})},
	}
}

// clean ends a body cleanly before its closing events; half of it where there are
// none.
func clean(a Answer) Script {
	return func(w *Wire, r Request, n int) {
		p := a.play(formOf(r))
		p.begin(w)
		if p.format == whole {
			w.Chunk(p.body[:len(p.body)/2])
		} else {
			p.close = nil
			w.chunks(p.encode(0, p.events()), a.Gap)
		}
		w.End()
	}
}

func breakChunk(w *Wire) {
	w.Raw([]byte("zz;this is no chunk size\r\ndata: {}\n\n\r\n"))
	w.FIN()
}

// rest sends the answer from its i-th event with content on, or its second half.
func (s *stage) rest(i int) {
	if s.format == whole {
		s.Chunk(s.body[len(s.body)/2:])
		s.End()
		return
	}
	s.say(s.content[i:]...)
	s.say(s.close...)
	s.finishBody()
}

func (a Answer) wait() time.Duration {
	if a.Wait <= 0 {
		return 2 * time.Second
	}
	return a.Wait
}

func orSecond(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Second
	}
	return d
}
