package h1server

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A script is what a handler does, and notes of it.
type script func(w http.ResponseWriter, r *http.Request, note func(string, ...any))

// compare runs a script behind both servers, and wants the same.
func compare(t *testing.T, name, text string, s script) {
	t.Helper()
	var answers [2][]answer
	var notes [2]string
	for i := range 2 {
		var noted strings.Builder
		ran := make(chan struct{}, 8)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/last" {
				_, _ = io.WriteString(w, "last")
				return
			}
			defer func() { ran <- struct{}{} }()
			s(w, r, func(format string, args ...any) { fmt.Fprintf(&noted, format+"\n", args...) })
		})
		var address string
		if i == 0 {
			address = theirs(t, h)
		} else {
			address = ours(t, &Server{HTTP: &http.Server{Handler: h}})
		}
		answers[i] = answersOf(t, address, text+lastly)
		<-ran
		notes[i] = noted.String()
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		t.Errorf("%s: net/http answers\n%s\nwe answer\n%s", name, shown(answers[0]), shown(answers[1]))
	}
	if notes[0] != notes[1] {
		t.Errorf("%s: behind net/http\n%s\nbehind us\n%s", name, notes[0], notes[1])
	}
}

func shown(all []answer) string {
	var b strings.Builder
	for _, a := range all {
		body := a.Body
		if len(body) > 100 {
			body = fmt.Sprintf("%s… %d", body[:100], len(body))
		}
		fmt.Fprintf(&b, "%s %q body %q trailer %q close %v chunked %v cut %v\n", a.Status, a.Header, body, a.Trailer, a.Close, a.Chunked, a.Cut)
	}
	return b.String()
}

// write writes a piece, and notes what came of it.
func write(w io.Writer, note func(string, ...any), p []byte) {
	n, err := w.Write(p)
	note("wrote %d of %d, %v", n, len(p), err)
}

// read reads from a body, up to n bytes (all where n < 0), and notes it.
func read(r *http.Request, note func(string, ...any), n int64) {
	if n < 0 {
		b, err := io.ReadAll(r.Body)
		note("read %d %.20q, %v", len(b), b, err)
		return
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, n))
	note("read %d %.20q, %v", len(b), b, err)
}

func postOf(n int, more string) string {
	return fmt.Sprintf("POST /run HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", more, n, strings.Repeat("b", n))
}

const getRun = "GET /run HTTP/1.1\r\nHost: localhost\r\n\r\n"

func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	header := func(name string, values ...string) script {
		return func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header()[name] = values
			write(w, note, []byte("body"))
		}
	}
	status := func(code int, with http.Header, body string) script {
		return func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			for name, values := range with {
				w.Header()[name] = values
			}
			w.WriteHeader(code)
			if body != "" {
				write(w, note, []byte(body))
			}
		}
	}
	for name, c := range map[string]struct {
		text string
		run  script
	}{
		"nothing":                   {getRun, func(http.ResponseWriter, *http.Request, func(string, ...any)) {}},
		"204":                       {getRun, status(204, nil, "")},
		"204 with a body":           {getRun, status(204, nil, "body")},
		"204 with a length":         {getRun, status(204, http.Header{"Content-Length": {"4"}, "Content-Type": {"a/b"}}, "")},
		"304":                       {getRun, status(304, nil, "")},
		"304 with fields":           {getRun, status(304, http.Header{"Content-Length": {"4"}, "Content-Type": {"a/b"}, "Etag": {"x"}}, "")},
		"404":                       {getRun, status(404, nil, "gone")},
		"999":                       {getRun, status(999, nil, "odd")},
		"999 without a body":        {getRun, status(999, nil, "")},
		"200 without a body":        {getRun, status(200, nil, "")},
		"a status that is none":     {getRun, status(99, nil, "body")},
		"a status that is too much": {getRun, status(1000, nil, "body")},
		"an exact length":           {getRun, status(200, http.Header{"Content-Length": {"4"}}, "body")},
		"too few bytes":             {getRun, status(200, http.Header{"Content-Length": {"9"}}, "body")},
		"no byte at all":            {getRun, status(200, http.Header{"Content-Length": {"9"}}, "")},
		"too many bytes":            {getRun, status(200, http.Header{"Content-Length": {"3"}}, "body")},
		"a length of none":          {getRun, status(200, http.Header{"Content-Length": {"0"}}, "body")},
		"a body of a known length and a type unsaid": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "15")
			write(w, note, []byte("<!"))
			write(w, note, []byte("DOCTYPE html>"))
		}},
		"a type that only the second piece tells": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("<!"))
			write(w, note, append([]byte("DOCTYPE html>"), big...))
		}},
		"a type that the first piece tells": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("\x1f\x8b\x08"))
			write(w, note, big)
		}},
		"more after too many": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "4")
			write(w, note, []byte("too many"))
			write(w, note, []byte("body"))
		}},
		"too many after enough": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "4")
			write(w, note, []byte("body"))
			write(w, note, []byte("x"))
		}},
		"a flush first": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			note("%v", http.NewResponseController(w).Flush())
			write(w, note, []byte("body"))
		}},
		"no length but its field": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "x")
			w.(http.Flusher).Flush()
			write(w, note, []byte("body"))
		}},
		"a negative length": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "-1")
			w.(http.Flusher).Flush()
			write(w, note, []byte("body"))
		}},
		"a flush after a length": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "4")
			note("%v", http.NewResponseController(w).Flush())
			write(w, note, []byte("body"))
		}},
		"flushed pieces": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			for range 5 {
				write(w, note, []byte("<p>piece"))
				w.(http.Flusher).Flush()
			}
		}},
		"a flush last": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("a"))
			w.(http.Flusher).Flush()
		}},
		"a large body": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) { write(w, note, big) }},
		"2048 bytes":   {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) { write(w, note, big[:2048]) }},
		"2049 bytes":   {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) { write(w, note, big[:2049]) }},
		"2048 and one": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, big[:2048])
			write(w, note, big[:1])
		}},
		"a large known body": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			write(w, note, big)
		}},
		"many small pieces": {getRun, func(w http.ResponseWriter, _ *http.Request, _ func(string, ...any)) {
			for i := range 5000 {
				_, _ = fmt.Fprintf(w, "%d,", i)
			}
		}},
		"a reader": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			n, err := io.Copy(w, struct{ io.Reader }{bytes.NewReader(big)})
			note("copied %d, %v", n, err)
		}},
		"a small reader": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("<html>")})
			note("copied %d, %v", n, err)
		}},
		"a reader beyond the length": {getRun, func(w http.ResponseWriter, _ *http.Request, _ func(string, ...any)) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.Copy(w, struct{ io.Reader }{bytes.NewReader(big)})
		}},
		"a string": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			n, err := io.WriteString(w, "text")
			note("wrote %d, %v", n, err)
		}},
		"an empty piece": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, nil)
			write(w, note, []byte{})
		}},
		"a second status": {getRun, func(w http.ResponseWriter, _ *http.Request, _ func(string, ...any)) {
			w.WriteHeader(404)
			w.WriteHeader(200)
			w.WriteHeader(103)
		}},
		"fields too late": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("X-Early", "1")
			w.WriteHeader(200)
			w.Header().Set("X-Late", "1")
			w.Header().Set("Content-Length", "1")
			w.Header().Del("X-Early")
			write(w, note, []byte("body"))
		}},
		"a type":                 {getRun, header("Content-Type", "a/b; c=d")},
		"an empty type":          {getRun, header("Content-Type", "")},
		"no type, and said so":   {getRun, header("Content-Type")},
		"a coding":               {getRun, header("Content-Encoding", "gzip")},
		"an empty coding":        {getRun, header("Content-Encoding", "")},
		"a date":                 {getRun, header("Date", "Mon, 02 Jan 2006 15:04:05 GMT")},
		"no date, and said so":   {getRun, header("Date")},
		"values":                 {getRun, header("X-A", "1", "2", "", "3")},
		"line ends in a value":   {getRun, header("X-A", "a\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK", "\r\n", "\n a \r", "\ta\t")},
		"bytes in a value":       {getRun, header("X-A", "\xff\xe4", "a\tb", "  a  ")},
		"a name that is none":    {getRun, header("X A", "1")},
		"a name with a line end": {getRun, header("X\r\nX-Evil", "1")},
		"an empty name":          {getRun, header("", "1")},
		"a small name":           {getRun, header("x-small", "1")},
		"a long value":           {getRun, header("X-A", strings.Repeat("long", 5000))},
		"the end by the handler": {getRun, header("Connection", "close")},
		"the end by the client":  {"GET /run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", status(200, nil, "body")},
		"a hint": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Link", "</a>")
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(103)
			w.WriteHeader(102)
			w.Header().Del("Link")
			write(w, note, []byte("body"))
		}},
		"a hint alone": {getRun, func(w http.ResponseWriter, _ *http.Request, _ func(string, ...any)) { w.WriteHeader(103) }},
		"trailers": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set(http.TrailerPrefix+"X-T", "early")
			write(w, note, []byte("body"))
			w.Header().Set(http.TrailerPrefix+"X-T", "late\r\nX-Evil: 1")
			w.Header().Set(http.TrailerPrefix+"X-U", "2")
			w.Header().Set(http.TrailerPrefix+"X V", "3")
		}},
		"trailers after a flush": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("body"))
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-T", "late")
		}},
		"trailers of a short answer": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("body"))
			w.Header().Set(http.TrailerPrefix+"X-T", "late")
		}},
		"trailers with a length": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set(http.TrailerPrefix+"X-T", "1")
			w.Header().Set("Content-Length", "4")
			write(w, note, []byte("body"))
		}},
		"a panic before anything": {getRun, func(http.ResponseWriter, *http.Request, func(string, ...any)) { panic("fault") }},
		"an abort":                {getRun, func(http.ResponseWriter, *http.Request, func(string, ...any)) { panic(http.ErrAbortHandler) }},
		"a panic after a flush": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("body"))
			w.(http.Flusher).Flush()
			panic("fault")
		}},
		"an abort after a flush": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Length", "9")
			write(w, note, []byte("body"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}},
		"an abort of an answer that has its length": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			w.Header().Set("Content-Type", "a/b")
			w.Header().Set("Content-Length", "4")
			write(w, note, []byte("body"))
			panic(http.ErrAbortHandler)
		}},
		"an abort of a short answer": {getRun, func(w http.ResponseWriter, _ *http.Request, note func(string, ...any)) {
			write(w, note, []byte("body"))
			panic(http.ErrAbortHandler)
		}},
		"a body read": {postOf(5, ""), func(_ http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			read(r, note, -1)
			read(r, note, -1)
		}},
		"a body in part":        {postOf(5, ""), func(_ http.ResponseWriter, r *http.Request, note func(string, ...any)) { read(r, note, 2) }},
		"a body ignored":        {postOf(5, ""), status(200, nil, "body")},
		"a longer body ignored": {postOf(200<<10, ""), status(200, nil, "body")},
		"a body at the edge":    {postOf(256<<10, ""), status(200, nil, "body")},
		"a body below the edge": {postOf(256<<10-1, ""), status(200, nil, "body")},
		"a large body ignored":  {postOf(300<<10, ""), status(413, nil, "body")},
		"a large body in part": {postOf(300<<10, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			read(r, note, 100<<10)
			write(w, note, []byte("a"))
		}},
		"a large body read": {postOf(1<<20, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			read(r, note, -1)
			write(w, note, []byte("a"))
		}},
		"a body after the answer": {postOf(9000, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			w.(http.Flusher).Flush()
			read(r, note, -1)
		}},
		"a body after it was closed": {postOf(9000, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			read(r, note, 10)
			note("%v", r.Body.Close())
			read(r, note, 10)
		}},
		"a body closed when it was read": {postOf(9, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			read(r, note, -1)
			note("%v", r.Body.Close())
			read(r, note, 10)
		}},
		"a body with the end": {postOf(5, "Connection: close\r\n"), status(200, nil, "body")},
		"a body and the end":  {postOf(5000, ""), header("Connection", "close")},
		"three at once": {getRun + postOf(3, "") + postOf(0, ""), func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			note("%s", r.Method)
			read(r, note, -1)
			write(w, note, []byte(r.Method))
		}},
		"a line end after a body": {postOf(3, "") + "\r\n", func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) { read(r, note, -1) }},
		"two after a body":        {postOf(3, "") + "\r\n\r\n", func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) { read(r, note, -1) }},
		"three after a body":      {postOf(3, "") + "\r\n\r\n\r\n", func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) { read(r, note, -1) }},
		"a line end after none":   {getRun + "\r\n", status(200, nil, "body")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, c.text, c.run)
		})
	}
}

// What a handler may do in any order, at random.
func TestRandomHandlersAnswerAsBehindNetHTTP(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		body := []int{0, 0, 1, 100, 5000, 70_000}[random.IntN(6)]
		text := getRun
		if random.IntN(2) == 0 {
			text = postOf(body, "")
		}
		if random.IntN(4) == 0 {
			text = strings.Replace(text, "\r\n", "\r\nConnection: close\r\n", 1)
		}
		text = strings.Repeat(text, 1+random.IntN(3))
		compare(t, fmt.Sprint("seed ", seed), text, func(w http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			steps := rand.New(rand.NewPCG(seed, 4))
			for range steps.IntN(8) {
				randomStep(w, r, note, steps)
			}
		})
	}
}

func randomStep(w http.ResponseWriter, r *http.Request, note func(string, ...any), random *rand.Rand) {
	pick := func(of ...int) int { return of[random.IntN(len(of))] }
	switch random.IntN(14) {
	case 0:
		code := pick(200, 201, 204, 304, 404, 500, 999, 103)
		note("status %d", code)
		w.WriteHeader(code)
	case 1:
		w.Header().Set("Content-Length", fmt.Sprint(pick(0, 1, 10, 100, 2048, 5000)))
	case 2:
		w.Header().Add("X-A", []string{"", "a", " b ", "c\r\nd", "\xff"}[random.IntN(5)])
	case 3:
		w.Header().Set("Content-Type", "text/event-stream")
	case 4:
		w.Header().Set(http.TrailerPrefix+"X-T", fmt.Sprint(random.IntN(9)))
	case 5:
		w.Header().Set("Connection", "close")
	case 6:
		note("flush %v", http.NewResponseController(w).Flush())
	case 7:
		read(r, note, int64(pick(1, 10, 4096, 100_000)))
	case 8:
		read(r, note, -1)
	case 9:
		w.Header().Del("Content-Length")
	default:
		n := pick(0, 1, 9, 10, 100, 511, 512, 2040, 2048, 4095, 4096, 5000, 70_000)
		write(w, note, bytes.Repeat([]byte(pick2("<p>", "text ", "{\"a\":1}", "\x00\x01", "%PDF-", "<!")[random.IntN(6)]), n)[:n])
	}
}

func pick2(of ...string) []string { return slices.Clip(of) }
