package h2

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy/internal/drill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trusting is a client that keeps connections until the test ends.
func trusting(t *testing.T, pem []byte) *http.Client {
	t.Helper()
	c := drill.Trusting(pem)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

const askChat = `{"model":"m1","stream":true,"messages":[]}`

// said asks an upstream and returns what it said, and the connection's protocol.
func said(c *http.Client, u *drill.Upstream) (text, proto string, err error) {
	resp, err := c.Post("https://"+u.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(askChat))
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return drill.Spoken(body), resp.Proto, err
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestHTTP2AnswersComeToHarm(t *testing.T) {
	cert, pem := drill.Certificate()
	for _, c := range []struct {
		harm  drill.Harm
		fails bool
		conns int // for this request and the next
		count int // requests that arrived in both
	}{
		{drill.Harm{}, false, 1, 2},
		{drill.Harm{Ruin: drill.GoAway, At: 100}, false, 2, 2},
		{drill.Harm{Ruin: drill.GoAway, At: -1}, false, 2, 2},
		{drill.Harm{Ruin: drill.GoAwayUnanswered, At: -1}, false, 2, 3}, // the client asks again by itself
		{drill.Harm{Ruin: drill.ResetStream, At: 0}, true, 1, 2},
		{drill.Harm{Ruin: drill.ResetStream, At: 100}, true, 1, 2},
		{drill.Harm{Ruin: drill.Close, At: 100}, true, 2, 2},
		{drill.Harm{Ruin: drill.Reset, At: 100}, true, 2, 2},
		{drill.Harm{Ruin: drill.Close, At: 1 << 20}, false, 1, 2}, // no such byte
	} {
		t.Run(c.harm.String(), func(t *testing.T) {
			u := Start(loopback(t), cert, func(r drill.Request, n int) Turn {
				if r.Model() != "m1" || string(r.Body) != askChat {
					t.Errorf("asked %q", r.Body)
				}
				if n == 1 {
					return Turn{Harm: c.harm}
				}
				return Turn{}
			})
			defer u.Close()
			client := trusting(t, pem)
			text, proto, err := said(client, u)
			if (err != nil) != c.fails || err == nil && (text != drill.DefaultText || proto != "HTTP/2.0") {
				t.Errorf("%q over %s, %v", text, proto, err)
			}
			if text, _, err := said(client, u); text != drill.DefaultText || err != nil {
				t.Errorf("the next one: %q, %v", text, err)
			}
			if u.Accepted() != c.conns || u.Count() != c.count {
				t.Errorf("%d requests over %d connections, want %d over %d", u.Count(), u.Accepted(), c.count, c.conns)
			}
		})
	}
	u := Start(loopback(t), cert, func(drill.Request, int) Turn { return Turn{Harm: drill.Harm{Ruin: drill.Silence, At: 50}} })
	defer u.Close()
	client := trusting(t, pem)
	client.Timeout = 50 * time.Millisecond
	if text, _, err := said(client, u); err == nil {
		t.Errorf("silence is %q", text)
	}
}
