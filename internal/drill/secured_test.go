package drill

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// trusting is a client that trusts a certificate, and keeps connections until the
// test ends.
func trusting(t *testing.T, pem []byte) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
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

func TestHTTP2AnswersComeToHarm(t *testing.T) {
	cert, pem := Certificate()
	for _, c := range []struct {
		harm  Harm
		fails bool
		conns int // for this request and the next
		count int // requests that arrived in both
	}{
		{Harm{}, false, 1, 2},
		{Harm{Ruin: GoAway, At: 100}, false, 2, 2},
		{Harm{Ruin: GoAway, At: -1}, false, 2, 2},
		{Harm{Ruin: GoAwayUnanswered, At: -1}, false, 2, 3}, // the client asks again by itself
		{Harm{Ruin: ResetStream, At: 0}, true, 1, 2},
		{Harm{Ruin: ResetStream, At: 100}, true, 1, 2},
		{Harm{Ruin: Close, At: 100}, true, 2, 2},
		{Harm{Ruin: Reset, At: 100}, true, 2, 2},
		{Harm{Ruin: Close, At: 1 << 20}, false, 1, 2}, // no such byte
	} {
		t.Run(c.harm.String(), func(t *testing.T) {
			u := StartHTTP2(cert, func(r Request, n int) Turn {
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
			if (err != nil) != c.fails || err == nil && (text != DefaultText || proto != "HTTP/2.0") {
				t.Errorf("%q over %s, %v", text, proto, err)
			}
			if text, _, err := said(client, u); text != DefaultText || err != nil {
				t.Errorf("the next one: %q, %v", text, err)
			}
			if u.Accepted() != c.conns || u.Count() != c.count {
				t.Errorf("%d requests over %d connections, want %d over %d", u.Count(), u.Accepted(), c.count, c.conns)
			}
		})
	}
	u := StartHTTP2(cert, func(Request, int) Turn { return Turn{Harm: Harm{Ruin: Silence, At: 50}} })
	defer u.Close()
	client := trusting(t, pem)
	client.Timeout = 50 * time.Millisecond
	if text, _, err := said(client, u); err == nil {
		t.Errorf("silence is %q", text)
	}
}

func TestNamesThatFail(t *testing.T) {
	s := StartNames()
	defer s.Close()
	r := s.Resolver()
	if addrs, err := r.LookupHost(t.Context(), "well.test"); err != nil || len(addrs) != 1 || addrs[0] != "127.0.0.1" {
		t.Errorf("%v, %v", addrs, err)
	}
	for name, check := range map[string]func(*net.DNSError) bool{
		"nxdomain.test": func(e *net.DNSError) bool { return e.IsNotFound },
		"servfail.test": func(e *net.DNSError) bool { return e.IsTemporary && !e.IsTimeout },
		"garbage.test":  func(e *net.DNSError) bool { return e.IsTimeout },
		"silent.test":   func(e *net.DNSError) bool { return e.IsTimeout },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := r.LookupHost(ctx, name)
		cancel()
		if e, ok := errors.AsType[*net.DNSError](err); !ok || !check(e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
