package proxy

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

// patience is how long a test on real sockets waits for what ought to happen at once.
const patience = 2 * time.Minute

// send asks the proxy at addr with net/http's client. The answer's body is the
// caller's.
func send(t *testing.T, addr, path, body string, header ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// booked waits until a handler has booked n requests and returns the last one.
func booked(t *testing.T, h *Handler, n int) stats.Record {
	t.Helper()
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		if records, _ := h.Ledger().Since(0, 100); len(records) >= n {
			return records[len(records)-1].Record
		}
		if time.Now().After(end) {
			t.Fatalf("no %d requests were booked", n)
		}
	}
}

// Case 10 on a real socket: two deltas are at the client when the upstream resets.
// The client's chunked body is left without its end.
func TestAResetOnTheWireBreaksTheClientsBody(t *testing.T) {
	body := role + said("one two three") + said("four")
	for setting, tail := range map[string]string{"abort": "", "error_event": brokeOff} {
		t.Run(setting, func(t *testing.T) {
			got := make(chan struct{})
			u1 := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				w.Chunk([]byte(body))
				w.Wait(got)
				w.Reset()
			})
			u2 := play(t, frames(okSSE))
			h, addr, _ := wired(t, over("server: {broken_stream: "+setting+"}", u1.URL(), u2.URL()))
			told := false
			r := drill.Ask(t.Context(), addr, drill.Query{Path: chatPath, Body: []byte(requestFor(chatPath, true)), Watch: func(r drill.Reply) bool {
				if string(r.Body) == body && !told {
					told = true
					close(got)
				}
				return true
			}})
			rest, ok := strings.CutPrefix(string(r.Body), body)
			if !ok || tail == "" && rest != "" || !strings.Contains(rest, tail) || r.Clean || !errors.Is(r.Err, io.ErrUnexpectedEOF) {
				t.Errorf("client got %q, clean %v, %v", r.Body, r.Clean, r.Err)
			}
			for _, end := range []string{"[DONE]", "message_stop", `"finish_reason":"`} {
				if strings.Contains(rest, end) {
					t.Errorf("an ending was made up: %q", rest)
				}
			}
			if rec := booked(t, h, 1); rec.Ending != stats.Broken || rec.Tries[0].Class != "network" || u2.Count() != 0 {
				t.Errorf("booked %v, %+v; u2 was called %d times", rec.Ending, rec.Tries, u2.Count())
			}
		})
	}
}

// A client of HTTP/1.0, as nginx is by default, has no chunks whose end could be
// missing: it is reset instead, and a whole answer ends in good order.
func TestAnHTTP10ClientIsResetWhereAnAnswerBreaks(t *testing.T) {
	body := said("one two three")
	for name, c := range map[string]struct {
		script drill.Script
		want   string
		reset  bool
	}{
		"broken": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType)
			w.Chunk([]byte(body))
			w.FIN()
		}, body, true},
		"whole": {frames(okSSE), okSSE, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := play(t, c.script)
			_, addr, _ := wired(t, over("", u.URL()))
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			sent := requestFor(chatPath, true)
			fmt.Fprintf(conn, "POST %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", chatPath, addr, len(sent), sent)
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if c.reset != errors.Is(err, syscall.ECONNRESET) || !c.reset && err != nil {
				t.Errorf("the connection ended with %v", err)
			}
			// A reset may overtake what was sent before it.
			if !strings.HasPrefix(c.want, string(got)) || !c.reset && string(got) != c.want {
				t.Errorf("client got %q", got)
			}
		})
	}
}

// Over HTTP/2 a broken answer resets its own stream; the connection lives on.
func TestAnHTTP2ClientsStreamIsReset(t *testing.T) {
	u := play(t, drill.Sequence(broken(sseType, said("one two three"), func(w *drill.Wire) { w.FIN() }), frames(okSSE)))
	h, _, _ := wired(t, over("", u.URL()))
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	var conns []net.Conn
	tr := server.Client().Transport.(*http.Transport).Clone()
	tr.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: tr.TLSClientConfig.RootCAs, NextProtos: []string{"h2"}}}).DialContext(ctx, network, addr)
		conns = append(conns, c)
		return c, err
	}
	defer tr.CloseIdleConnections()
	for n, want := range []string{said("one two three"), okSSE} {
		resp, err := (&http.Client{Transport: tr}).Post(server.URL+chatPath, "application/json", strings.NewReader(requestFor(chatPath, true)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.ProtoMajor != 2 || string(got) != want || (n == 0) != (err != nil) {
			t.Errorf("%s answer %d: %q, %v", resp.Proto, n+1, got, err)
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections, want one that lives on", len(conns))
	}
}

// Case 18 (a): a line of six MiB, as the first event and as later ones, is passed on
// byte for byte, in memory that does not grow with what was sent before.
func TestVeryLongLines(t *testing.T) {
	const size, events = 6 << 20, 24
	output := func() io.Reader {
		return io.MultiReader(strings.NewReader("event: response.completed\ndata: "+`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`),
			io.LimitReader(sevens{}, size), strings.NewReader(`"}]}]}}`+"\n\n"))
	}
	image := func() io.Reader {
		return io.MultiReader(strings.NewReader("event: response.image_generation_call.partial_image\ndata: "+`{"type":"response.image_generation_call.partial_image","partial_image_index":0,"partial_image_b64":"`),
			io.LimitReader(sevens{}, size), strings.NewReader("\"}\n\n"))
	}
	for name, body := range map[string]func() io.Reader{
		"the first event":  output,
		"behind the first": func() io.Reader { return io.MultiReader(strings.NewReader(created), output()) },
		"later events": func() io.Reader {
			parts := []io.Reader{strings.NewReader(created + rsDelta("response.output_text.delta", "one two three"))}
			for range events {
				parts = append(parts, image())
			}
			return io.MultiReader(append(parts, output())...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := sha256.New()
			if _, err := io.Copy(want, body()); err != nil {
				t.Fatal(err)
			}
			u := play(t, func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", sseType)
				buf := make([]byte, 30<<10)
				for r := body(); w.Err() == nil; {
					n, err := r.Read(buf)
					w.Chunk(buf[:n])
					if err != nil {
						break
					}
				}
				w.End()
			})
			h, addr, log := wired(t, over("", u.URL()))
			resp := send(t, addr, responsesPath, requestFor(responsesPath, true))
			got := sha256.New()
			var m runtime.MemStats
			var peak uint64
			memories.clear(time.Now().Add(2 * shelfTime)) // the bodies of other tests
			runtime.GC()
			for {
				if _, err := io.CopyN(got, resp.Body, 2<<20); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("reading: %v\n%s", err, log)
				}
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
			if fmt.Sprintf("%x", got.Sum(nil)) != fmt.Sprintf("%x", want.Sum(nil)) {
				t.Error("other bytes came than were sent")
			}
			if limit := uint64(100 << 20); peak > limit {
				t.Errorf("%d MiB of memory were in use, want at most %d", peak>>20, limit>>20)
			}
			if rec := booked(t, h, 1); rec.Ending != stats.Success {
				t.Errorf("booked as %v: %+v", rec.Ending, rec.Tries)
			}
		})
	}
}

// sevens reads as 7 for ever.
type sevens struct{}

func (sevens) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '7'
	}
	return len(p), nil
}

// Case 18 (b): characters cut by packets arrive as they were sent, whichever byte
// they were cut at.
func TestCharactersCutByPackets(t *testing.T) {
	for _, c := range []released{
		{"chat", chatPath, sseType, role + said("渐🌍渐🌍渐🌍渐🌍渐🌍渐") + said("🌍") + finish("stop") + done, ""},
		{"chat, CRLF", chatPath, sseType, strings.ReplaceAll(role+said("渐🌍渐🌍渐🌍渐🌍渐🌍渐")+finish("stop")+done, "\n", "\r\n"), ""},
		{"chat, CR", chatPath, sseType, strings.ReplaceAll(role+said("渐🌍渐🌍渐🌍渐🌍渐🌍渐")+finish("stop")+done, "\n", "\r"), ""},
		{"a short one", chatPath, sseType, said("渐🌍") + finish("stop") + done, ""},
		{"ollama", ollamaPath, "application/x-ndjson", ollamaLine("渐🌍渐🌍渐🌍渐🌍渐🌍渐", "") + ollamaLine("", "stop"), ""},
		{"gemini array", geminiArray, jsonType, "[" + geminiJSON(part("渐🌍渐🌍渐🌍渐🌍渐🌍渐"), "STOP") + "]", ""},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := newStage(t, "", func(w *drill.Wire, _ drill.Request, _ int) {
				w.Head(200, drill.Chunked, "Content-Type", c.kind)
				for i := range len(c.body) {
					w.Chunk([]byte(c.body[i : i+1]))
					w.Pause(time.Millisecond)
				}
				w.End()
			})
			sent := requestFor(c.path, true)
			s.expect(sent, s.ask("POST", c.path, sent), outcome{body: c.body, winner: 1, calls: []int{1}, took: time.Duration(len(c.body)) * time.Millisecond, ending: stats.Success})
		})
	}
}

// chorus are twenty events that an upstream sends one by one, each only when the
// client has got the one before: whatever is withheld ends the test by its patience.
type chorus struct {
	path, kind string
	events     []string
	end        string
}

func choruses() map[string]chorus {
	twenty := func(event string) (out []string) {
		for range 20 {
			out = append(out, event)
		}
		return out
	}
	array := twenty("," + geminiJSON(part("0123456789"), ""))
	array[0] = "[" + array[0][1:]
	return map[string]chorus{
		"SSE":              {chatPath, sseType, twenty(`data: {"choices":[{"delta":{"content":"0123456789"}}]}` + "\n\n"), done},
		"SSE, CRLF":        {geminiPath, sseType, twenty(gemini(part("0123456789"), "")), gemini(part(""), "STOP")},
		"NDJSON":           {ollamaPath, "application/x-ndjson", twenty(`{"message":{"content":"0123456789"},"done":false}` + "\n"), ollamaLine("", "stop")},
		"an array":         {geminiArray, jsonType, array, "," + geminiJSON(part(""), "STOP") + "]"},
		"an unknown one":   {"/v1/unheard/of", sseType, twenty("data: " + strings.Repeat("0123456789", 5) + "\n\n"), done},
		"lines of no type": {"/v1/unheard/of", "application/x-ndjson", twenty(`{"n":"` + strings.Repeat("0123456789", 5) + "\"}\n"), ""},
		"sound":            {"/v1/audio/speech", "audio/mpeg", twenty("\x00\x01" + strings.Repeat("0123456789", 5)), ""},
	}
}

// Case 21: events come one by one as they were sent, over HTTP/1.1 and HTTP/2, in
// any format, and streaming answers ask nginx not to collect them.
func TestEventsComeOneByOne(t *testing.T) {
	for name, c := range choruses() {
		for _, proto := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+" over "+proto, func(t *testing.T) {
				heard := make(chan struct{}, 1)
				url := ""
				if proto == "HTTP/1.1" {
					url = play(t, func(w *drill.Wire, _ drill.Request, _ int) {
						w.Head(200, drill.Chunked, "Content-Type", c.kind)
						for _, e := range c.events {
							w.Chunk([]byte(e))
							if !w.Wait(heard) {
								return
							}
						}
						w.Chunk([]byte(c.end))
						w.End()
					}).URL()
				}
				var roots *tls.Config
				if proto == "HTTP/2" {
					server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.ProtoMajor != 2 {
							t.Errorf("the upstream was asked over %s", r.Proto)
						}
						w.Header().Set("Content-Type", c.kind)
						for _, e := range c.events {
							io.WriteString(w, e)
							w.(http.Flusher).Flush()
							select {
							case <-heard:
							case <-r.Context().Done():
								return
							}
						}
						io.WriteString(w, c.end)
					}))
					server.EnableHTTP2 = true
					server.StartTLS()
					t.Cleanup(server.Close)
					url, roots = server.URL, server.Client().Transport.(*http.Transport).TLSClientConfig
				}
				h, addr, _ := wired(t, over("server: {default_model: vm}", url))
				h.transports.get("").pooled.TLSClientConfig = roots
				resp := send(t, addr, c.path, requestFor(c.path, true))
				for i, e := range c.events {
					buf := make([]byte, len(e))
					if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != e {
						t.Fatalf("event %d came as %q, %v", i+1, buf, err)
					}
					heard <- struct{}{}
				}
				if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != c.end {
					t.Errorf("the end came as %q, %v", rest, err)
				}
				if c.kind != "audio/mpeg" && (resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Cache-Control") != "no-cache") {
					t.Errorf("headers %v", resp.Header)
				}
			})
		}
	}
}

// Streaming answers say to whom it concerns that they are not to be collected or
// kept, unless the upstream said something of that itself. Others say nothing.
func TestStreamingAnswersAskNotToBeCollected(t *testing.T) {
	for name, c := range map[string]struct {
		script         drill.Script
		stream         bool
		accel, control string
	}{
		"a stream": {frames(okSSE), true, "no", "no-cache"},
		"a stream that says otherwise": {func(w *drill.Wire, _ drill.Request, _ int) {
			w.Head(200, drill.Chunked, "Content-Type", sseType, "X-Accel-Buffering", "yes", "Cache-Control", "no-store, private")
			w.Chunk([]byte(okSSE))
			w.End()
		}, true, "yes", "no-store, private"},
		"an empty one that is passed on": {frames(role + finish("stop") + done), true, "no", "no-cache"},
		"a whole answer":                 {page(jsonType, okChat), false, "", ""},
		"an error to a stream request":   {refusal(422, `{"error":{"message":"bad temperature"}}`), true, "", ""},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newStage(t, "", c.script)
			got := s.ask("POST", chatPath, requestFor(chatPath, c.stream))
			if a, b := got.header.Get("X-Accel-Buffering"), got.header.Get("Cache-Control"); a != c.accel || b != c.control {
				t.Errorf("X-Accel-Buffering %q, Cache-Control %q", a, b)
			}
		})
	}
}
