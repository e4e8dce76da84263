package h1

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// netHTTPHead is a request's head with the fields as net/http writes them.
func netHTTPHead(req *http.Request) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", req.Method, req.URL.RequestURI(), req.Host)
	header := req.Header.Clone()
	if ua := header["User-Agent"]; len(ua) > 0 && ua[0] == "" {
		delete(header, "User-Agent")
	}
	header.Write(&b)
	if req.ContentLength > 0 || req.Method == "POST" || req.Method == "PUT" || req.Method == "PATCH" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", req.ContentLength)
	}
	b.WriteString("\r\n")
	return b.String()
}

// writtenHead is a request's head as we write it, with memory that was used before.
func writtenHead(req *http.Request) string {
	w := new(writing)
	w.head(&http.Request{Method: "GET", URL: &url.URL{Path: "/before"}, Host: "before", Header: http.Header{"X-Before": {"before"}, "B": {"b"}}})
	w.head(req)
	return string(w.text)
}

// Fields go out as net/http writes them: by name, nothing that would begin another
// field or another request.
func TestFieldsGoOutAsNetHTTPWritesThem(t *testing.T) {
	for name, header := range map[string]http.Header{
		"none":             {},
		"nil":              nil,
		"usual":            {"Accept": {"*/*"}, "Authorization": {"Bearer x"}, "User-Agent": {"a/1"}, "X-Stainless-Os": {"Linux"}, "X-Stainless-Arch": {"x64"}, "X-Api-Key": {"k"}},
		"one begins other": {"X-Stainless-Runtime-Version": {"1"}, "X-Stainless-Runtime": {"2"}, "X-Stain": {"3"}, "X-Stainl": {"4"}, "X": {"5"}, "X-Stainless": {"6"}, "x-stainless": {"7"}},
		"no user agent":    {"User-Agent": {""}, "B": {"b"}},
		"nor a second one": {"User-Agent": {"", "x"}},
		"lower user agent": {"user-agent": {""}},
		"several values":   {"A": {"1", "", "2"}, "B": nil, "C": {}},
		"line breaks":      {"A": {"1\r\nEvil: 1", "\n", "a\nb", "a\rb", "\r\n\r\nGET / HTTP/1.1\r\n\r\n"}},
		"space around":     {"A": {" 1 ", "\t2\t", "   ", "3 ", " \r\n4\n "}},
		"beyond ASCII":     {"A": {"é", "\xff\xfe", "\u2028", "\x00", "\x7f"}},
		"no names":         {"": {"1"}, "A B": {"2"}, "A:": {"3"}, "A\r\nEvil": {"4"}, "é": {"5"}, "A\x00": {"6"}, "(": {"7"}, "B": {"8"}},
		"odd names":        {"!#$%&'*+-.^_`|~09aZ": {"1"}, "lower-case": {"2"}},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			for _, length := range []int64{0, 1234567} {
				req := &http.Request{Method: method, URL: &url.URL{Path: "/a b", RawQuery: "c=d"}, Host: "u1:80", Header: header, ContentLength: length}
				if got, want := writtenHead(req), netHTTPHead(req); got != want {
					t.Errorf("%s:\n got %q\nwant %q", name, got, want)
				}
			}
		}
	}
}

// FuzzRequestHead writes any fields. Names and values come with bars between them.
func FuzzRequestHead(f *testing.F) {
	f.Add("Accept|User-Agent|X-Api-Key", "*/*|curl|a\r\nb")
	f.Add("A|A|B|a|", " 1 |\t2|\n|\r|3")
	f.Fuzz(func(t *testing.T, names, values string) {
		header := http.Header{}
		rest := strings.Split(values, "|")
		for i, name := range strings.Split(names, "|") {
			header[name] = append(header[name], rest[i%len(rest)])
		}
		req := &http.Request{Method: "POST", URL: &url.URL{Path: "/v1"}, Host: "u1", Header: header, ContentLength: 1}
		if got, want := writtenHead(req), netHTTPHead(req); got != want {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	})
}
