package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// answersTo sends bytes on one connection and reads answers until it is closed.
func answersTo(t *testing.T, addr, text string) (statuses []int, all string) {
	t.Helper()
	c := dial(t, addr)
	go func() { _, _ = io.WriteString(c, text) }() // the server may close before it has read all
	var seen strings.Builder
	in := bufio.NewReader(io.TeeReader(c, &seen))
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses, seen.String()
		}
		statuses = append(statuses, resp.StatusCode)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close {
			return statuses, seen.String()
		}
	}
}

// Where two readers could disagree about where a request ends, what it asks for or who
// it is for, there is one reading, or none: the upstream gets requests that were framed
// anew, or is not called, and what a body holds is never a request.
func TestNothingIsSmuggled(t *testing.T) {
	u := upstream(t, func(w *drill.Wire, _ drill.Request, _ int) { w.JSON(202, []byte(`{}`)) })
	r := newRig(t, fmt.Sprintf("server: {port: 0, admin: \"127.0.0.1:0\", state_dir: \"STATE\", read_idle_timeout: 1}\npool: {}\nupstream: [{id: a, base_url: %q, headers: {authorization: Bearer sk-upstream-secret-1}}]\n", u.URL()), withAdmin).serve()
	const (
		last   = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
		hidden = "GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
		post   = "POST /v1/things HTTP/1.1\r\nHost: localhost\r\n"
	)
	within := func(head, body string) string { return post + head + "\r\n" + body + last }
	long := fmt.Sprint("Content-Length: ", len(hidden), "\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	for name, c := range map[string]struct {
		text     string
		statuses []int
		targets  []string // what the upstream is asked for
	}{
		"a body that looks like a request":    {within(long, hidden), []int{202, 200}, []string{"/v1/things"}},
		"a chunk that looks like a request":   {within("Transfer-Encoding: chunked\r\n", chunk), []int{202, 200}, []string{"/v1/things"}},
		"two requests":                        {post + "Content-Length: 2\r\n\r\n{}" + hidden + last, []int{202, 202, 200}, []string{"/v1/things", "/hidden"}},
		"length and chunks":                   {within("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunk), []int{202, 200}, []string{"/v1/things"}},
		"chunks and length":                   {within("Transfer-Encoding: chunked\r\n"+long, "0\r\n\r\n"), []int{202, 200}, []string{"/v1/things"}},
		"two lengths":                         {within("Content-Length: 0\r\n"+long, hidden), []int{400}, nil},
		"two equal lengths":                   {within(long+long, hidden), []int{202, 200}, []string{"/v1/things"}},
		"two lengths in a line":               {within("Content-Length: 0, 44\r\n", hidden), []int{400}, nil},
		"a signed length":                     {within("Content-Length: +0\r\n", hidden), []int{400}, nil},
		"a negative length":                   {within("Content-Length: -1\r\n", hidden), []int{400}, nil},
		"a length in hex":                     {within("Content-Length: 0x0\r\n", hidden), []int{400}, nil},
		"an empty length":                     {within("Content-Length: \r\n", hidden), []int{400}, nil},
		"a length beyond any":                 {within("Content-Length: 99999999999999999999\r\n", hidden), []int{400}, nil},
		"a coding nobody knows":               {within("Transfer-Encoding: xchunked\r\n", chunk), []int{501}, nil},
		"codings in a line":                   {within("Transfer-Encoding: gzip, chunked\r\n", chunk), []int{501}, nil},
		"chunks and nothing":                  {within("Transfer-Encoding: chunked, identity\r\n", chunk), []int{501}, nil},
		"two lines of codings":                {within("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunk), []int{501}, nil},
		"no coding and a length":              {within("Transfer-Encoding: identity\r\n"+long, hidden), []int{501}, nil},
		"a coding behind a tab that is none":  {within("Transfer-Encoding:\x0bchunked\r\n", chunk), []int{400}, nil},
		"a space before the colon":            {within("Transfer-Encoding : chunked\r\n", chunk), []int{400}, nil},
		"a length with a space before it":     {within("Content-Length : 4\r\n", hidden), []int{400}, nil},
		"a header that begins with a space":   {"POST /v1/things HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: localhost\r\n\r\n" + chunk + last, []int{400}, nil},
		"a CR in a value":                     {within("X-A: b\rTransfer-Encoding: chunked\r\n", chunk), []int{400}, nil},
		"a NUL in a value":                    {within("X-A: b\x00\r\n", ""), []int{400}, nil},
		"a NUL in a name":                     {within("X\x00A: b\r\n", ""), []int{400}, nil},
		"a name that is none":                 {within("X(A): b\r\n", ""), []int{400}, nil},
		"a line without a colon":              {within("X-A\r\n", ""), []int{400}, nil},
		"a size that is no number":            {within("Transfer-Encoding: chunked\r\n", "2x\r\n{}\r\n0\r\n\r\n"), []int{400}, nil},
		"a signed size":                       {within("Transfer-Encoding: chunked\r\n", "+2\r\n{}\r\n0\r\n\r\n"), []int{400}, nil},
		"a size beyond any":                   {within("Transfer-Encoding: chunked\r\n", "10000000000000002\r\n{}\r\n0\r\n\r\n"), []int{400}, nil},
		"a chunk longer than its size":        {within("Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n"), []int{400}, nil},
		"a bare LF behind a size":             {within("Transfer-Encoding: chunked\r\n", "2;\n\r\n{}\r\n0\r\n\r\n"), []int{400}, nil},
		"a length among the trailers":         {within("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nContent-Length: 99\r\nHost: evil.example\r\n\r\n"), []int{202, 200}, []string{"/v1/things"}},
		"two hosts":                           {within("Host: evil.example\r\n", ""), []int{400}, nil},
		"no host":                             {"GET /v1/things HTTP/1.1\r\n\r\n" + last, []int{400}, nil},
		"a host with a path":                  {"GET /v1/things HTTP/1.1\r\nHost: localhost/x\r\n\r\n" + last, []int{400}, nil},
		"a host with a user":                  {"GET /v1/things HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n" + last, []int{400}, nil},
		"a host with a space":                 {"GET /v1/things HTTP/1.1\r\nHost: local host\r\n\r\n" + last, []int{400}, nil},
		"a tunnel":                            {"CONNECT upstream.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400, 200}, nil},
		"a tunnel with a path":                {"CONNECT /v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400, 200}, nil},
		"a trace":                             {"TRACE /v1/things HTTP/1.1\r\nHost: localhost\r\nX-Secret: 1\r\n\r\n" + last, []int{400, 200}, nil},
		"a whole URL":                         {"GET http://localhost/v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400, 200}, nil},
		"a whole URL of another host":         {"GET http://evil.example/v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400, 200}, nil},
		"a URL without a scheme":              {"GET //evil.example/v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{202, 200}, []string{"/evil.example/v1/things"}},
		"a host as the target":                {"GET evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400, 200}, nil},
		"a target of two words":               {"GET /v1/things HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400}, nil},
		"a CR in the target":                  {"GET /v1/things\rX HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400}, nil},
		"an escaped line break in the target": {"GET /v1/things%0d%0aX-Evil:1?a=%0d%0ab HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{202, 200}, []string{"/v1/things%0d%0aX-Evil:1?a=%0d%0ab"}},
		"a method that is none":               {"G<T /v1/things HTTP/1.1\r\nHost: localhost\r\n\r\n" + last, []int{400}, nil},
		"another version":                     {"GET /v1/things HTTP/3.0\r\nHost: localhost\r\n\r\n" + last, []int{505}, nil},
		"HTTP/2 on one line":                  {"GET /v1/things HTTP/2.0\r\nHost: localhost\r\n\r\n" + last, []int{505}, nil},
		"chunks in HTTP/1.0":                  {"POST /v1/things HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + last, []int{411}, nil},
		"an upgrade to HTTP/2":                {"GET /v1/things HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + last, []int{202, 200}, []string{"/v1/things"}},
		"an upgrade to TLS":                   {"GET /v1/things HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2\r\n\r\n" + last, []int{202, 200}, []string{"/v1/things"}},
		"the beginning of HTTP/2, later":      {"GET /v1/things HTTP/1.1\r\nHost: localhost\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + last, []int{202, 400}, []string{"/v1/things"}},
	} {
		before := u.Count()
		statuses, all := answersTo(t, r.Addr(), c.text)
		if !slices.Equal(statuses, c.statuses) {
			t.Errorf("%s: client got %v, want %v\n%s", name, statuses, c.statuses, all)
		}
		var targets []string
		for _, q := range u.Requests()[before:] {
			targets = append(targets, q.Target)
			if n := len(q.Values("Content-Length")); n > 1 || len(q.Values("Transfer-Encoding")) > 0 || len(q.Values("Host")) != 1 || q.Get("X-Evil") != "" || q.Get("Host") == "evil.example" {
				t.Errorf("%s: upstream got\n%s", name, q.Head)
			}
			if n := q.Get("Content-Length"); n != "" && n != fmt.Sprint(len(q.Body)) {
				t.Errorf("%s: upstream got %s bytes that are %d", name, n, len(q.Body))
			}
		}
		if !slices.Equal(targets, c.targets) {
			t.Errorf("%s: upstream was asked for %q, want %q", name, targets, c.targets)
		}
	}
}
