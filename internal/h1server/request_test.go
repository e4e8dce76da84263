package h1server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// What a handler sees of a request is the same, all that a Request and its context have.
func TestHandlersSeeTheRequestOfNetHTTP(t *testing.T) {
	const fields = "User-Agent: curl/8\r\nx-a: 1\r\nX-A: 2\r\nCookie: a=b\r\nAuthorization: Basic YTpi\r\n"
	for name, text := range map[string]string{
		"a GET":         "GET /v1/a;b?c=d&c=e&f HTTP/1.1\r\nHost: localhost:80\r\n" + fields + "\r\n",
		"a POST":        postOf(9, fields+"Content-Type: application/x-www-form-urlencoded\r\n"),
		"an empty POST": postOf(0, fields),
		"the last one":  postOf(9, fields+"Connection: close\r\n"),
	} {
		compare(t, name, text, func(_ http.ResponseWriter, r *http.Request, note func(string, ...any)) {
			user, password, _ := r.BasicAuth()
			note("%s %s %#v %s %s %d.%d %q", r.Method, r.RequestURI, r.URL, r.Host, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Header)
			note("%d %q %v %q %v %q %q %s %s", r.ContentLength, r.TransferEncoding, r.Close, r.Trailer, r.TLS, r.Pattern, r.Cookies(), user, password)
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			note("%s %v", host, err)
			server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
			note("%v", server != nil && server.Handler != nil)
			local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
			note("%v", local.IP)
			note("%v %v", r.Context().Err(), r.ParseForm())
			note("%q %q %v", r.Form, r.PostForm, r.Body == http.NoBody)
		})
	}
}

func TestARequestsContextHasWhatConnContextGave(t *testing.T) {
	type key struct{}
	address := ours(t, &Server{HTTP: &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, key{}, c.RemoteAddr().String())
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, r.Context().Value(key{}) == r.RemoteAddr)
		})}})
	for i, a := range answersOf(t, address, getRun+getRun+oddRun+strings.Replace(oddRun, "Host", "Connection: close\r\nHost", 1)) {
		if a.Body != "true" {
			t.Errorf("request %d has another connection's", i)
		}
	}
}

// Files that a form has left on disk go with the request.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // on Windows
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	part, err := form.CreateFormFile("file", "name")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(make([]byte, 11<<20))
	_ = form.Close()
	files := func() (n int) {
		all, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Error(err)
		}
		return len(all)
	}
	address := ours(t, &Server{HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/run" {
			if err := r.ParseMultipartForm(1); err != nil {
				t.Error(err)
			}
		}
		_, _ = fmt.Fprint(w, files())
	})}})
	c := fmt.Sprintf("POST /run HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", form.FormDataContentType(), b.Len())
	all := answersOf(t, address, c+b.String()+lastly)
	if len(all) != 2 || all[0].Body != "1" || all[1].Body != "0" {
		t.Errorf("got\n%s", shown(all))
	}
}

// A client that leaves in the middle of an answer ends the handler's writes, and its
// request.
func TestAClientThatLeavesInAnAnswer(t *testing.T) {
	for watch, after := range watches {
		t.Run(watch, func(t *testing.T) {
			ended := make(chan error, 2)
			address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				piece := make([]byte, 32<<10)
				for {
					if _, err := w.Write(piece); err != nil {
						ended <- err
						break
					}
				}
				<-r.Context().Done()
				ended <- r.Context().Err()
			})}})
			c := dial(t, address)
			_, _ = io.WriteString(c, getRun)
			_, _ = io.CopyN(io.Discard, c, 100_000)
			c.Close()
			await(t, "the end of the writes", ended)
			await(t, "the end of the request", ended)
		})
	}
}

// An upgrade behind plain requests takes the connection, with all that was sent behind it.
func TestAnUpgradeBehindPlainRequests(t *testing.T) {
	const upgrade = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
	for watch, after := range watches {
		for name, cut := range map[string]int{"at once": 0, "ahead": 1, "in two": len(upgrade) / 2, "later": len(upgrade)} {
			t.Run(watch+" "+name, func(t *testing.T) {
				var told states
				address := ours(t, &Server{WatchAfter: after, HTTP: &http.Server{ConnState: told.note, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, rw, err := http.NewResponseController(w).Hijack()
					if err != nil {
						echo(w, r)
						return
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
					_, _ = io.Copy(conn, rw)
				})}})
				c := dial(t, address)
				in := bufio.NewReader(c)
				text := getRun + upgrade + "tunnelled"
				first := len(getRun) + cut
				_, _ = io.WriteString(c, text[:first])
				if a, err := answerFrom(in); err != nil || a.Body != "GET /run " {
					t.Fatalf("%+v, %v", a, err)
				}
				_, _ = io.WriteString(c, text[first:])
				if a, err := answerFrom(in); err != nil || a.Status != "101 Switching Protocols" {
					t.Fatalf("%+v, %v", a, err)
				}
				_ = c.CloseWrite()
				if b, err := io.ReadAll(in); string(b) != "tunnelled" {
					t.Errorf("%q, %v", b, err)
				}
				if got := told.all(); got != "new active idle new active hijacked" {
					t.Error(got)
				}
			})
		}
	}
}
