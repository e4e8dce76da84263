package redisstore

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReplies(t *testing.T) {
	const all = "+OK\r\n:-7\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n$7\r\n*2\r\n+a\n\r\n-NOSCRIPT No matching script.\r\n*3\r\n$1\r\na\r\n*2\r\n:1\r\n-ERR b\r\n$-1\r\n"
	want := []any{"OK", int64(-7), nil, nil, []any{}, "", "*2\r\n+a\n", refusal("NOSCRIPT No matching script."), []any{"a", []any{int64(1), refusal("ERR b")}, nil}}
	for _, from := range []io.Reader{strings.NewReader(all), iotest.OneByteReader(strings.NewReader(all))} {
		r := newReplyReader(from)
		for i, w := range want {
			if v, err := r.next(); err != nil || !reflect.DeepEqual(v, w) {
				t.Errorf("%d: %#v, %v, want %#v", i, v, err, w)
			}
		}
		if v, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after the last: %v, %v", v, err)
		}
	}
	if code := refusal("NOSCRIPT No matching script.").code(); code != "NOSCRIPT" {
		t.Errorf("code %q", code)
	}
}

func TestWhatIsNoReply(t *testing.T) {
	for _, text := range []string{"\r\n", "OK\r\n", "+OK\n", ":x\r\n", ":\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "$1\r\nab\r\n", "%1\r\n+a\r\n+b\r\n", "HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x01\x00\x02\x02\x28\n"} {
		if v, err := newReplyReader(strings.NewReader(text)).next(); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
}

// Every cut is seen, wherever it is.
func TestRepliesThatAreCut(t *testing.T) {
	const text = "*3\r\n$3\r\nabc\r\n:12\r\n+OK\r\n"
	for i := range len(text) {
		if v, err := newReplyReader(strings.NewReader(text[:i])).next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v, %v", text[:i], v, err)
		}
	}
}

func TestRepliesThatAnnounceTooMuch(t *testing.T) {
	for reply, ok := range map[string]bool{
		"+OK\r\n:7\r\n$-1\r\n*0\r\n":                         true,
		"*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n":                    true,
		"$18\r\n\r\n*9999999999\r\n+x\r\n\r\n":               true, // within a string
		strings.Repeat("*3\r\n:1\r\n:2\r\n:3\r\n", 1_000_00): true,
		"*60000000\r\n":                                      false,
		"$-1\r\n*-1\r\n*60000000\r\n":                        false,
		"*99999999999999999999999999\r\n":                    false,
		"$99999999999\r\n":                                   false,
		strings.Repeat("*500000\r\n", 5):                     false,
		strings.Repeat("*1\r\n", 1_000_000):                  false,
		"-" + strings.Repeat("long", 10_000) + "\r\n":        false,
	} {
		r := newReplyReader(strings.NewReader(reply))
		var err error
		for err == nil {
			_, err = r.next()
		}
		if errors.Is(err, errAnnounced) == ok {
			t.Errorf("%.30q: %v", reply, err)
		}
	}
}

// FuzzReplies: whatever a server sends, it is read or refused, and what was read is
// written again as it came, but for the ways to write a number.
func FuzzReplies(f *testing.F) {
	f.Add("+OK\r\n:-7\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n")
	f.Add("*3\r\n$1\r\na\r\n*2\r\n:1\r\n-ERR b\r\n$-1\r\n")
	f.Add("*2000000000\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := newReplyReader(strings.NewReader(text))
		for {
			v, err := r.next()
			if err != nil {
				if !errors.Is(err, errAnnounced) && !errors.Is(err, errProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				return
			}
			again, err := newReplyReader(strings.NewReader(written(v))).next()
			if err != nil || !reflect.DeepEqual(v, again) {
				t.Errorf("%#v becomes %#v, %v", v, again, err)
			}
		}
	})
}

// written is a reply as a server writes it.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return "$-1\r\n"
	case int64:
		return fmt.Sprintf(":%d\r\n", v)
	case refusal:
		return "-" + string(v) + "\r\n"
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	}
	var b strings.Builder
	list := v.([]any)
	fmt.Fprintf(&b, "*%d\r\n", len(list))
	for _, item := range list {
		b.WriteString(written(item))
	}
	return b.String()
}
