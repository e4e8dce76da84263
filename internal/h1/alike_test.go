package h1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// errGone is with what a piecemeal connection ends, the first time it is asked.
var errGone = errors.New("gone")

// A piecemeal connection has an answer that comes in pieces, and then breaks: with an
// error of its own once, with a clean end ever after, as a reset connection does.
type piecemeal struct {
	net.Conn
	left  []byte
	piece int
	ends  []error
	reads int
}

func (c *piecemeal) Close() error { return nil }

func (c *piecemeal) Read(p []byte) (int, error) {
	c.reads++
	if len(c.left) == 0 {
		if len(c.ends) == 0 {
			return 0, io.EOF
		}
		err := c.ends[0]
		c.ends = c.ends[1:]
		return 0, err
	}
	n := copy(p[:min(len(p), c.piece)], c.left)
	c.left = c.left[n:]
	return n, nil
}

// heard counts how often a watcher was told of bytes.
type heard struct {
	told
	times int
}

func (h *heard) Heard() { h.times++ }

// An account is all that can be seen of an answer, and of how it was read.
type account struct {
	Err                    string
	Status, Proto          string
	Code, Major, Minor     int
	Header, Trailer        http.Header
	Length                 int64
	Encoding               []string
	Close, Empty           bool
	HeardOfHead, HeadReads int
	Reads                  []string // of the body
	Left                   string   // nobody's bytes
}

// read reads an answer with the given way to read heads, its body with a buffer of a
// size, and says how that went.
func read(head func(*conn, *http.Request, *body) (*http.Response, error), method string, answer []byte, piece, size int, ends []error) (a account, inPlace bool) {
	from := &piecemeal{left: answer, piece: piece, ends: slices.Clone(ends)}
	watch := &heard{}
	k := &conn{Conn: from, client: &Client{}, watch: watch, room: maxHead}
	k.in = bufio.NewReaderSize(k, readAhead)
	b := &body{conn: k, ctx: context.Background(), stop: func() bool { return true }}
	resp, err := head(k, &http.Request{Method: method}, b)
	a.HeardOfHead, a.HeadReads = watch.times, from.reads
	if err != nil {
		a.Err = err.Error()
		return a, false
	}
	inPlace = resp == &b.resp
	a.Status, a.Proto, a.Code, a.Major, a.Minor = resp.Status, resp.Proto, resp.StatusCode, resp.ProtoMajor, resp.ProtoMinor
	a.Header, a.Length, a.Encoding, a.Close, a.Empty = resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Close, resp.Body == http.NoBody
	if a.Empty {
		b.end()
	}
	for p := make([]byte, size); !a.Empty && err == nil; {
		var n int
		n, err = b.Read(p)
		a.Reads = append(a.Reads, fmt.Sprintf("%q %v %v", p[:n], err, errors.Is(err, io.ErrUnexpectedEOF)))
	}
	a.Trailer = resp.Trailer
	if a.Empty || err == io.EOF { // else nobody reads on
		rest, _ := k.in.Peek(k.in.Buffered())
		a.Left = string(rest) + string(from.left)
	}
	return a, inPlace
}

// alike holds our reading of an answer against net/http's, and says whether the head was
// read in place.
func alike(t *testing.T, method string, answer []byte, piece, size int) (inPlace bool) {
	t.Helper()
	for _, ends := range [][]error{nil, {errGone}} {
		theirs, foreign := read((*conn).unusual, method, bytes.Clone(answer), piece, size, ends)
		ours, own := read((*conn).head, method, bytes.Clone(answer), piece, size, ends)
		if len(answer) > readAhead { // then reads are cut off where the buffer ends
			ours.HeadReads, ours.HeardOfHead = theirs.HeadReads, theirs.HeardOfHead
		}
		if foreign {
			t.Fatal("net/http's reading is our own")
		}
		if !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%s, pieces of %d, reads of %d, in place %v: %q\n  ours %+v\ntheirs %+v", method, piece, size, own, answer, ours, theirs)
		}
		inPlace = own
	}
	return inPlace
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// answers are answers as they come, and whether their heads are read in place.
var answers = []struct {
	text    string
	inPlace bool
}{
	{fine, true},
	{fine + "surplus", true},
	{"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", true},
	{"HTTP/1.1 200 \r\nCONTENT-TYPE:\t text/plain; charset=\"x\" \t\r\nDate:\r\nx-a:b:c\r\nx_é: \r\n\r\n", false},
	{"HTTP/1.1 200 \r\nCONTENT-TYPE:\t text/plain; charset=\"x\" \t\r\nDate:\r\nx-a:b:c\r\nContent-Length:2\r\n\r\nok", true},
	{"HTTP/1.1 500 Not  good \xff\r\ntransfer-encoding: chunked\r\nX: \xe4\xf6\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\no\r\n1 \t\r\nk\r\n000\r\nX-T: 1\r\nX-T: 2\r\nx-u: v\r\n\r\nsurplus", true},
	{"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX: 1\r\nSET-COOKIE: c=3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
	{"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: keep-alive\r\nconnection: Keep-Alive\r\n\r\n", true},
	{"HTTP/1.1 200 OK\r\nContent-Length: 007\r\n\r\nseven..", true},
	{"HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~0aA-bB: x\r\nA-b--C-: y\r\nContent-Length: 0\r\n\r\n", true},
	{apiHead + "Content-Length: 2\r\n\r\nok", true},
	{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 47) + "Content-Length: 0\r\n\r\n", true},

	{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 48) + "Content-Length: 0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", readAhead) + "\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\n" + strings.Repeat("x", 65) + ": y\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", false},
	{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + fine, false},
	{"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n", false},
	{"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 20x OK\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 O\x00K\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n0\r\nX-T: 1\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-A\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end", false},
	{"HTTP/1.1 200 OK\r\n\r\n", false},
	{"HTTP/1.1 200 OK\r\nX: folded\r\n  twice\r\n\tthrice\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nX-a b: y\r\nx-C : d\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\n: y\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nX(: y\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nX: 1234567\x008\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nX: 12345678\x7f12345678\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: cut", false},
	{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r", false},
	{"HTTP/1.1 200 OK\r\n", false},
	{"HTTP/1.1 2", false},
	{"garbage\r\nthat goes on", false},
	{"", false},
}

// What the usual heads are, and that we and net/http read every answer alike, however
// it comes: what it says, when that is known, what is told meanwhile, each read of the
// body, what is left over.
func TestAnswersAreReadAsNetHTTPReadsThem(t *testing.T) {
	for _, a := range answers {
		for _, piece := range []int{1, 7, 64, 1 << 20} {
			for _, size := range []int{1, 3, 4096} {
				if inPlace := alike(t, "POST", []byte(a.text), piece, size); inPlace != a.inPlace {
					t.Fatalf("read in place %v, want %v: %q", inPlace, a.inPlace, a.text)
				}
			}
		}
		if alike(t, "HEAD", []byte(a.text), 64, 64) {
			t.Errorf("the answer to a HEAD was read in place: %q", a.text)
		}
	}
}

// A name that is known by its letters is spelt as net/http would have spelt it.
func TestUsualNamesAreSpeltAsNetHTTPSpellsThem(t *testing.T) {
	const names = `Access-Control-Allow-Credentials Access-Control-Allow-Headers Access-Control-Allow-Methods
		Access-Control-Allow-Origin Access-Control-Expose-Headers Cache-Control Connection Content-Encoding
		Content-Length Content-Type Date Etag Keep-Alive Openai-Organization Openai-Processing-Ms Openai-Version
		Request-Id Retry-After Server Set-Cookie Strict-Transport-Security Transfer-Encoding Vary Via
		X-Accel-Buffering X-Content-Type-Options X-Powered-By X-Request-Id`
	for name := range strings.FieldsSeq(names) {
		for _, spelt := range []string{name, strings.ToLower(name)} {
			if got := usualName([]byte(spelt)); got != http.CanonicalHeaderKey(spelt) {
				t.Errorf("%s is spelt %q", spelt, got)
			}
			alike(t, "POST", []byte("HTTP/1.1 200 OK\r\n"+spelt+": x\r\nContent-Length: 0\r\n\r\n"), 1<<20, 1)
		}
	}
}

// A body that breaks stays broken, and its connection carries nothing else, however
// often it is read.
func TestABrokenBodyStaysBroken(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", chunkedHead + "3\r\nok", chunkedHead + "2\r\nokX"} {
		addr, accepted := upstream(t, func(_ int, c net.Conn) {
			if _, err := readRequest(c); err == nil {
				io.WriteString(c, answer)
			}
		})
		k := client(t)
		resp, err := k.RoundTrip(t.Context(), get(addr), nil, false, told{})
		if err != nil {
			t.Fatal(err)
		}
		if text, first := io.ReadAll(resp.Body); string(text) != "ok" || first == nil {
			t.Errorf("%q: %q, %v", answer, text, first)
		} else if n, second := resp.Body.Read(make([]byte, 1)); n != 0 || second != first {
			t.Errorf("%q: %v, then %d bytes and %v", answer, first, n, second)
		}
		resp.Body.Close()
		resp, err = k.RoundTrip(t.Context(), get(addr), nil, false, told{})
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); accepted.Load() != 2 {
			t.Errorf("%q: %d connections", answer, accepted.Load())
		}
	}
}

// bodies are bodies in chunks, clean and broken.
var bodies = []string{
	"0\r\n\r\n", "2\r\nok\r\n0\r\n\r\n", "2\r\nok\r\n", "2\r\nok", "2\r\no", "2\r\n", "2\r", "2", "",
	"2\r\nokX\r\n", "2\r\nok\r", "2\r\nok\n0\r\n\r\n", "2\nok\r\n0\r\n\r\n", "2\r\r\nok\r\n0\r\n\r\n",
	"\nok\r\n0\r\n\r\n", "g\r\nok\r\n0\r\n\r\n", "\r\nok\r\n", ";x\r\nok\r\n", "-2\r\nok\r\n", "0x2\r\nok\r\n", " 2\r\nok\r\n", "2 \r\nok\r\n0\r\n\r\n", "2 ;x\r\nok\r\n0\r\n\r\n",
	"000000000000000A\r\n0123456789\r\n0\r\n\r\n", "00000000000000002\r\nok\r\n", "ffffffffffffffff\r\nendless", "7fffffffffffffff\r\nendless", "8000000000000000\r\nendless",
	"0\r\nX-T: 1\r\n\r\nsurplus", "0\r\nX-T: 1\r\n", "0\r\nX", "0\r\n\n", "0\r\n", "0\r\nno colon\r\n\r\n", "0\r\nX-T: " + strings.Repeat("y", readAhead) + "\r\n\r\n", "0\r\nA: b\r\n folded\r\n\r\n",
	strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\ny\r\n", 20) + "0\r\n\r\n", strings.Repeat("1\r\ny\r\n", 5000) + "0\r\n\r\n",
	"1;" + strings.Repeat("x", readAhead) + "\r\ny\r\n0\r\n\r\n", "1000\r\n" + strings.Repeat("y", 4096) + "\r\n0\r\n\r\n",
}

// chunkedHead stands before a body in chunks.
const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func TestChunksAreReadAsNetHTTPReadsThem(t *testing.T) {
	for _, text := range bodies {
		for _, piece := range []int{1, 5, 1 << 20} {
			for _, size := range []int{1, 100, 8192} {
				alike(t, "POST", []byte(chunkedHead+text), piece, size)
			}
		}
	}
}

// FuzzHead reads any bytes as an answer.
func FuzzHead(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a.text), uint16(1<<15), uint16(100))
	}
	f.Add([]byte(fine), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, answer []byte, piece, size uint16) {
		alike(t, "POST", answer, int(piece)+1, int(size)+1)
	})
}

// FuzzChunks reads any bytes as a body in chunks.
func FuzzChunks(f *testing.F) {
	for _, text := range bodies {
		f.Add([]byte(text), uint16(1<<15), uint16(100))
	}
	f.Add([]byte(bodies[1]), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, text []byte, piece, size uint16) {
		alike(t, "POST", append([]byte(chunkedHead), text...), int(piece)+1, int(size)+1)
	})
}
