package h1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A request whose line would hold more than itself is not written, and nobody is called
// for it; one whose line is odd and one line goes out as it is.
func TestWhatIsNoRequestLineIsNotWritten(t *testing.T) {
	addr, accepted := upstream(t, func(_ int, c net.Conn) {
		if _, err := readRequest(c); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		}
	})
	ask := func(change func(r *http.Request)) error {
		r, _ := http.NewRequest("GET", "http://"+addr+"/v1/x", nil)
		change(r)
		freed := 0
		resp, err := client(t).RoundTrip(t.Context(), r, nil, false, told{freed: func() { freed++ }})
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if freed != 1 {
			t.Errorf("%q %q: freed %d times", r.Method, r.URL.RequestURI(), freed)
		}
		return err
	}
	for _, c := range []string{" ", "\t", "\r", "\n", "\r\n", "\x00", "\x1f", "\x7f", " HTTP/1.1\r\nX-Evil: 1\r\n\r\n"} {
		for name, change := range map[string]func(r *http.Request){
			"the method":         func(r *http.Request) { r.Method = "GET" + c + "/v1/y" },
			"the method's end":   func(r *http.Request) { r.Method += c },
			"the method's start": func(r *http.Request) { r.Method = c + r.Method },
			"the path":           func(r *http.Request) { r.URL.Opaque = "/v1/x" + c + "y" },
			"the query":          func(r *http.Request) { r.URL.RawQuery = "a=" + c + "b" },
			"the host":           func(r *http.Request) { r.Host = "u1" + c },
		} {
			if err := ask(change); !errors.Is(err, ErrUnsendable) {
				t.Errorf("%q in %s: %v", c, name, err)
			}
		}
	}
	for name, change := range map[string]func(r *http.Request){
		"no method":       func(r *http.Request) { r.Method = "" },
		"a method of two": func(r *http.Request) { r.Method = "GET,POST" },
		"a method's é":    func(r *http.Request) { r.Method = "GÉT" },
		"no host":         func(r *http.Request) { r.Host = "" },
		"a fragment":      func(r *http.Request) { r.URL.Opaque = "/v1/x#y" },
	} {
		if err := ask(change); !errors.Is(err, ErrUnsendable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Fatalf("%d connections were made", n)
	}
	for name, change := range map[string]func(r *http.Request){
		"as it is":         func(*http.Request) {},
		"an odd method":    func(r *http.Request) { r.Method = "m-search" },
		"marks":            func(r *http.Request) { r.URL.Opaque, r.URL.RawQuery = "/v1/\"<x>\\^`{|}", "a=[b]{}|" },
		"beyond ASCII":     func(r *http.Request) { r.URL.Opaque = "/v1/\xff\xc3\xa9" },
		"an escaped space": func(r *http.Request) { r.URL = &url.URL{Scheme: "http", Host: addr, Path: "/a b"} },
	} {
		if err := ask(change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := accepted.Load(); n != 5 {
		t.Errorf("%d connections were made, want 5", n)
	}
}

// What net/http would refuse, or pass on, is found before it is asked.
func TestRequestsAreChecked(t *testing.T) {
	for want, headers := range map[bool][]http.Header{
		true:  {nil, {"A": {"b"}, "User-Agent": {""}}, {"A": {"a\tb", "\xff", "é", ""}}, {"!#$%&'*+-.^_`|~": {"1"}}},
		false: {{"": {"1"}}, {"A B": {"1"}}, {"A:": {"1"}}, {"A\r\nB": {"1"}}, {"É": {"1"}}, {"A": {"b\r\nc: d"}}, {"A": {"b", "\n"}}, {"A": {"\x00"}}, {"A": {"\x7f"}}},
	} {
		for _, header := range headers {
			r, _ := http.NewRequest("GET", "https://u1/v1/x?y=z", nil)
			r.Header = header
			if err := Check(r); (err == nil) != want || err != nil && !errors.Is(err, ErrUnsendable) {
				t.Errorf("%q: %v", header, err)
			}
		}
	}
	r, _ := http.NewRequest("GET", "https://u1/v1/x?y=z", nil)
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "z", "a b")
	if err := Check(r); !errors.Is(err, ErrUnsendable) {
		t.Errorf("a space in the query: %v", err)
	}
}
