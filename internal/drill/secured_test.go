package drill

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// trusting is a client that keeps connections until the test ends.
func trusting(t *testing.T, pem []byte) *http.Client {
	t.Helper()
	c := Trusting(pem)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

const askChat = `{"model":"m1","stream":true,"messages":[]}`

// said asks an upstream and returns what it said, and the connection's protocol.
func said(c *http.Client, u *Upstream) (text, proto string, err error) {
	resp, err := c.Post("https://"+u.Addr()+"/v1/chat/completions", "application/json", strings.NewReader(askChat))
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Spoken(body), resp.Proto, err
}

func TestScriptsRunBehindTLS(t *testing.T) {
	cert, pem := Certificate()
	u := StartTLS(cert, Sequence(Healthy(Answer{}), Harmed(Healthy(Answer{}), Harm{Ruin: Reset, At: 400})))
	defer u.Close()
	c := trusting(t, pem)
	if text, proto, err := said(c, u); text != DefaultText || proto != "HTTP/1.1" || err != nil {
		t.Errorf("%q over %s, %v", text, proto, err)
	}
	if _, _, err := said(c, u); err == nil {
		t.Error("the second one is whole")
	}
}

func TestHandshakesStopAtAByte(t *testing.T) {
	cert, pem := Certificate()
	for _, at := range []int{0, 1, 100, 600} {
		u := StallTLS(cert, at)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		req, _ := http.NewRequestWithContext(ctx, "GET", "https://"+u.Addr(), nil)
		if _, err := trusting(t, pem).Do(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d bytes: %v", at, err)
		}
		cancel()
		u.Close()
	}
}
