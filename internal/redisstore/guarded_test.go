package redisstore

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

func TestRepliesThatAnnounceTooMuch(t *testing.T) {
	for reply, ok := range map[string]bool{
		"+OK\r\n:7\r\n$-1\r\n*0\r\n":                         true,
		"*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n":                    true,
		"$14\r\n\r\n*9999999999\r\n+x\r\n":                   true, // within a string
		strings.Repeat("*3\r\n:1\r\n:2\r\n:3\r\n", 1_000_00): true,
		"*60000000\r\n":                                      false,
		"$-1\r\n*-1\r\n*60000000\r\n":                        false,
		"%2000000000\r\n":                                    false,
		"*99999999999999999999999999\r\n":                    false,
		"$99999999999\r\n":                                   false,
		strings.Repeat("*500000\r\n", 5):                     false,
	} {
		for _, piece := range []int{1, 7, len(reply)} {
			g := &guarded{}
			good := true
			for text := reply; text != "" && good; {
				n := min(piece, len(text))
				good = g.follow([]byte(text[:n]))
				text = text[n:]
			}
			if good != ok {
				t.Errorf("%.30q in pieces of %d: %v", reply, piece, good)
			}
		}
	}
}

// A store that announces gigabytes is given up; nothing is made room for.
func TestAStoreThatAnnouncesGigabytes(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go io.WriteString(there, "*2000000000\r\n")
	if n, err := guard(here).Read(make([]byte, 100)); n != 0 || !errors.Is(err, errAnnounced) {
		t.Errorf("%d, %v", n, err)
	}
}
