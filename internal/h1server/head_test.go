package h1server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

const (
	get  = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
	post = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:4000\r\n"
)

// plainHeads are heads that are decided here; were they not, nothing would be gained.
var plainHeads = []string{
	get + "\r\n",
	post + "\r\n",
	post + "Content-Length: 2\r\n\r\n{}",
	post + "Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\n",
	post + "Content-Length: 007\r\n\r\n",
	post + "Content-Length: 999999999999999\r\n\r\n",
	"GET / HTTP/1.1\r\nhost: [::1]:80\r\nUSER-AGENT: curl/8\r\naccept: */*\r\n\r\n",
	"GET /a;b=c,d:e/@f/$&+~_.- HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /../a/./b//c HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /v1?a=b&c=%0d%0a?/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /v1??a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /v1?%zz\"<>|\\^`{} HTTP/1.1\r\nHost: a\r\n\r\n",
	get + "X-A: 1\r\nx-b: 2\r\nx-A: 3\r\n\r\n",
	get + "Cookie: a\r\nCookie: b\r\nX:\r\nCookie:  \t c \t \r\n\r\n",
	get + "X-Latin: \xe4\xf6\xfc\xff\x80\r\n\r\n",
	get + "-: a\r\n--x-: b\r\n!#$%&'*+-.^_`|~9aZ: c\r\n\r\n",
	get + "Connection: keep-alive\r\n\r\n",
	get + "Connection: Keep-Alive\r\n\r\n",
	get + "Connection: close\r\n\r\n",
	get + "Authorization: Bearer \t x : y\r\nContent-Type: a/b; c=\"d\"\r\n\r\n",
	get + "Cache-Control: no-cache\r\nX-Transfer-Encoding: chunked\r\n\r\n",
	get + strings.Repeat("a: b\r\n", mostFields-1) + "\r\n",
}

// oddHeads are left to net/http, whatever it makes of them.
var oddHeads = []string{
	"", "G", "\r\n\r\n", "\r\n\r\n\r\n\r\n", "\n\n", "\r\n" + get + "\r\n",
	get, get + "\r", get + "\n", get + "X: y\r\n", "GET / HTTP/1.1\r\n\r\n",
	"GET /a HTTP/1.1\nHost: a\n\n", "GET /a HTTP/1.1\r\nHost: a\n\r\n\r\n", "GET /a HTTP/1.1\nHost: a\r\n\r\n",
	"GET  /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a  HTTP/1.1\r\nHost: a\r\n\r\n", "GET\t/a HTTP/1.1\r\nHost: a\r\n\r\n",
	" GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1 \r\nHost: a\r\n\r\n", "GET /a HTTP/1.1\r\r\nHost: a\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?b c HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?b\tc HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a?\x00 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?\x80 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /?a#b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a? HTTP/1.1\r\nHost: a\r\n\r\n", "GET //evil/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "GET b:80 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /* HTTP/1.1\r\nHost: a\r\n\r\n", "GET /'()! HTTP/1.1\r\nHost: a\r\n\r\n", "GET /[a] HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.0\r\nHost: a\r\n\r\n", "GET /a HTTP/1.2\r\nHost: a\r\n\r\n", "GET /a HTTP/2.0\r\nHost: a\r\n\r\n",
	"GET /a http/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a\r\nHost: a\r\n\r\n",
	"get /a HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n", "PUT /a HTTP/1.1\r\nHost: a\r\n\r\n",
	"CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POSTGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	// Who it is for.
	get + "Host: localhost\r\n\r\n", get + "hOST: evil\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: \r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "GET / HTTP/1.1\r\nHost: \xff\r\n\r\n", "GET / HTTP/1.1\r\nHost: a%41\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n", "GET / HTTP/1.1\r\nHost\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
	// Where its body ends.
	post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
	post + "Content-Length: 1\r\ncontent-length: 1\r\n\r\n", post + "Content-Length: 1, 1\r\n\r\n", post + "Content-Length: 1 1\r\n\r\n",
	post + "Content-Length: +1\r\n\r\n", post + "Content-Length: -1\r\n\r\n", post + "Content-Length: -0\r\n\r\n",
	post + "Content-Length: 0x1\r\n\r\n", post + "Content-Length: 1_0\r\n\r\n", post + "Content-Length: 1e1\r\n\r\n",
	post + "Content-Length: 1.0\r\n\r\n", post + "Content-Length: \r\n\r\n", post + "Content-Length:\r\n\r\n", post + "Content-Length: \xb2\r\n\r\n",
	post + "Content-Length: 9999999999999999\r\n\r\n", post + "Content-Length: 99999999999999999999999\r\n\r\n",
	post + "Content-Length : 1\r\n\r\n", post + "Content-Length\t: 1\r\n\r\n", post + "Content-Length\x00: 1\r\n\r\n", post + "Content Length: 1\r\n\r\n",
	get + "Content-Length: 1\r\n\r\n", get + "Content-Length: 0\r\n\r\n",
	post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", post + "transfer-encoding: chunked\r\n\r\n", post + "TRANSFER-ENCODING:chunked\r\n\r\n",
	post + "Transfer-Encoding: \r\n\r\n", post + "Transfer-Encoding: identity\r\n\r\n", post + "Transfer-Encoding: xchunked\r\n\r\n",
	post + "Transfer-Encoding: chunked, chunked\r\n\r\n", post + "Transfer-Encoding : chunked\r\n\r\n", post + "Transfer-Encoding\x0b: chunked\r\n\r\n",
	post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
	// Lines that are more or fewer than they seem.
	get + " Transfer-Encoding: chunked\r\n\r\n", get + "X: a\r\n b\r\n\r\n", get + "X: a\r\n\tb\r\n\r\n", "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
	get + "X: a\rY: b\r\n\r\n", get + "X: a\nY: b\r\n\r\n", get + "X: a\r\r\n\r\n", get + "X: a\x00\r\n\r\n", get + "X: a\x7fb\r\n\r\n", get + "X: \x01\r\n\r\n",
	get + "X: a\n\r\n\r\n", get + "X\r\n\r\n", get + ": a\r\n\r\n", get + ":\r\n\r\n", get + "X Y: a\r\n\r\n", get + "X(Y): a\r\n\r\n", get + "\xc4: a\r\n\r\n",
	get + "X\r: a\r\n\r\n", get + "X\n: a\r\n\r\n", get + "\rX: a\r\n\r\n", get + "\nX: a\r\n\r\n", get + "X\x00: a\r\n\r\n",
	// What asks for more than an answer.
	get + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", get + "Upgrade: h2c\r\n\r\n", get + "Connection: close, x\r\n\r\n", get + "Connection: CLOSE\r\n\r\n",
	get + "Connection: close\r\nConnection: keep-alive\r\n\r\n", get + "Connection: keep-alive\r\nConnection: close\r\n\r\n", get + "Connection:\r\n\r\n",
	get + "Connection: authorization\r\n\r\n", post + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", post + "Expect: x\r\n\r\n", post + "expect:\r\n\r\n",
	get + "Te: trailers\r\n\r\n", get + "Trailer: x\r\n\r\n", get + "Pragma: no-cache\r\n\r\n", get + "Proxy-Connection: close\r\n\r\n", get + "HTTP2-Settings: a\r\n\r\n",
	get + strings.Repeat("a: b\r\n", mostFields) + "\r\n", get + "X: " + strings.Repeat("a", 1<<16) + "\r\n\r\n",
}

func TestPlainHeadsAreDecidedHere(t *testing.T) {
	for _, in := range plainHeads {
		if _, _, ok := parse([]byte(in)); !ok {
			t.Errorf("%q is not plain", in)
		}
		checkHead(t, []byte(in))
	}
}

func TestOddHeadsAreLeft(t *testing.T) {
	for _, in := range oddHeads {
		if h, size, ok := parse([]byte(in)); ok {
			t.Errorf("%q is plain: %+v, %d bytes", in, h, size)
		}
		checkHead(t, []byte(in))
	}
}

// Whatever is cut off or changed in a plain head makes it an odd one, or one that
// net/http reads in the same way.
func TestEveryByteOfAPlainHeadCounts(t *testing.T) {
	for _, text := range plainHeads {
		if len(text) > 256 {
			continue
		}
		in := []byte(text)
		for i := range in {
			checkHead(t, in[:i])
			for _, c := range []byte("\x00\t\n\r :;,-0a%#?/\x7f\x80") {
				changed := bytes.Clone(in)
				changed[i] = c
				checkHead(t, changed)
				checkHead(t, slices.Insert(bytes.Clone(in), i, c))
			}
			checkHead(t, slices.Delete(bytes.Clone(in), i, i+1))
		}
	}
}

// Heads that are put together from what has fooled other readers.
func TestRandomHeadsHaveOneMeaning(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func() string {
		return pick("Host", "host", "Content-Length", "content-length", "CONTENT-LENGTH", "Transfer-Encoding", "transfer-encoding", "Connection", "X-A", "x-b", "Cookie", "Accept", "Te", "Expect", "Upgrade", "X", "-", "x--y", "a.b", "\xc4", "", "X Y", "Pragma", "Trailer")
	}
	value := func() string {
		return pick("", "a", "0", "1", "12", "+1", "-1", "1,1", "chunked", "identity", "close", "keep-alive", "close, keep-alive", "localhost", "localhost:80", "[::1]", "a\tb", " a ", "\xff", "a\x00", "a\rb", "a\nb", "100-continue", "%41", "a:b", "\x0b1")
	}
	plain := 0
	for range 30_000 {
		var b strings.Builder
		b.WriteString(pick("GET", "GET", "POST", "POST", "post", "PUT", "GET ", ""))
		b.WriteString(pick(" ", " ", " ", " ", "  ", "\t"))
		b.WriteString(pick("/", "/a", "/a/b?c=d", "/a?", "//a", "/%41", "/a;b", "/a b", "*", "http://a/", "/\x80", "/a#b", "/?a?b", "/:80"))
		b.WriteString(pick(" HTTP/1.1", " HTTP/1.1", " HTTP/1.1", " HTTP/1.1", " HTTP/1.0", " HTTP/1.1 ", "", " HTTP/2.0"))
		end := func() {
			b.WriteString(pick("\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\r\n\r\n"))
		}
		end()
		if random.IntN(4) > 0 {
			b.WriteString("Host: a\r\n")
		}
		for range random.IntN(4) {
			b.WriteString(pick("", "", "", "", "", "", " ", "\t"))
			b.WriteString(name())
			b.WriteString(pick(":", ": ", ": ", ": ", ":\t", " :", ""))
			b.WriteString(value())
			end()
		}
		b.WriteString("\r\n")
		b.WriteString(pick("", "{}", "GET / HTTP/1.1\r\nHost: b\r\n\r\n", "\r\n"))
		if checkHead(t, []byte(b.String())) {
			plain++
		}
	}
	if plain < 200 {
		t.Errorf("only %d of the heads were plain", plain)
	}
}

func FuzzParse(f *testing.F) {
	for _, in := range slices.Concat(plainHeads, oddHeads) {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) { checkHead(t, in) })
}

// checkHead holds what parse makes of in against what net/http does, and says whether
// it is plain.
func checkHead(t *testing.T, in []byte) bool {
	t.Helper()
	before := bytes.Clone(in)
	h, size, ok := parse(in)
	if !bytes.Equal(in, before) {
		t.Fatalf("%q was changed to %q", before, in)
	}
	if !ok {
		return false
	}
	source := bytes.NewReader(in)
	buffered := bufio.NewReaderSize(source, len(in)+16)
	r, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatalf("%q is plain, and net/http says %v", in, err)
	}
	if read := len(in) - source.Len() - buffered.Buffered(); read != size {
		t.Errorf("%q: %d bytes, by net/http %d", in, size, read)
	}
	if why := refusal(r); why != "" {
		t.Errorf("%q is plain, and net/http's server refuses it: %s", in, why)
	}
	x := &response{conn: new(Conn)}
	got := x.request(t.Context(), &h)
	if got.Method != r.Method || got.RequestURI != r.RequestURI || got.Host != r.Host || got.Close != r.Close || got.ContentLength != r.ContentLength ||
		got.Proto != r.Proto || got.ProtoMajor != r.ProtoMajor || got.ProtoMinor != r.ProtoMinor {
		t.Errorf("%q: %+v, by net/http %+v", in, got, r)
	}
	if !reflect.DeepEqual(got.URL, r.URL) {
		t.Errorf("%q: URL %#v, by net/http %#v", in, got.URL, r.URL)
	}
	if !reflect.DeepEqual(got.Header, r.Header) {
		t.Errorf("%q: header %q, by net/http %q", in, got.Header, r.Header)
	}
	if (got.Body == http.NoBody) != (r.Body == http.NoBody) || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 {
		t.Errorf("%q: body %v, by net/http %v %q %q", in, got.Body, r.Body, r.TransferEncoding, r.Trailer)
	}
	return true
}

// refusal is why net/http's server would not call a handler with what ReadRequest takes.
func refusal(r *http.Request) string {
	switch {
	case !httpguts.ValidHostHeader(r.Host):
		return "the host"
	case r.Host == "":
		return "no host"
	case r.Header.Get("Expect") != "":
		return "an expectation"
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Sprintf("the name %q", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Sprintf("the value %q", v)
			}
		}
	}
	return ""
}

// The header's values must not share room: a handler that adds to one must not change
// another's.
func TestValuesShareNoRoom(t *testing.T) {
	h, _, ok := parse([]byte(get + "A: 1\r\nB: 2\r\nA: 3\r\nC: 4\r\n\r\n"))
	if !ok {
		t.Fatal("not plain")
	}
	for _, name := range []string{"A", "B", "C"} {
		h.header.Add(name, "added")
	}
	want := http.Header{"A": {"1", "3", "added"}, "B": {"2", "added"}, "C": {"4", "added"}}
	if !reflect.DeepEqual(h.header, want) {
		t.Errorf("got %q, want %q", h.header, want)
	}
}

// What stands behind a head is nobody's yet.
func TestAHeadEndsWhereItsEmptyLineDoes(t *testing.T) {
	in := get + "\r\n" + "X-Smuggled: 1\r\n\r\n"
	h, size, ok := parse([]byte(in))
	if !ok || size != len(get)+2 || len(h.header) != 0 {
		t.Errorf("got %v %d %q", ok, size, h.header)
	}
	if rest, _ := io.ReadAll(strings.NewReader(in[size:])); !bytes.HasPrefix(rest, []byte("X-Smuggled")) {
		t.Errorf("what is left is %q", rest)
	}
}
