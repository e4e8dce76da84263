package drill

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func hostOf(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestRefusedPortsRefuseAndStayTaken(t *testing.T) {
	base, release := Refused()
	defer release()
	addr := hostOf(t, base)
	for range 3 {
		if r := Ask(t.Context(), addr, Query{}); !errors.Is(r.Err, syscall.ECONNREFUSED) {
			t.Errorf("%v, want ECONNREFUSED", r.Err)
		}
	}
	if l, err := net.Listen("tcp", addr); err == nil {
		l.Close()
		t.Errorf("somebody else could listen at %s", addr)
	}
}

func TestBlackHolesNeitherAcceptNorRefuse(t *testing.T) {
	base, release, err := BlackHole()
	if err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Logf("this system has none: %v", err)
		return
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if r := Ask(ctx, hostOf(t, base), Query{}); !errors.Is(r.Err, os.ErrDeadlineExceeded) && !errors.Is(r.Err, context.DeadlineExceeded) {
		t.Errorf("%+v", r)
	}
}

func TestTLSHandshakesHang(t *testing.T) {
	u := TLSHang()
	defer u.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	if c, err := d.DialContext(ctx, "tcp", u.Addr()); err == nil {
		c.Close()
		t.Error("the handshake ended")
	}
	if !u.Await(t.Context(), func() bool { return u.Accepted() == 1 && u.Open() == 0 }) {
		t.Error("the connection stayed open")
	}
	if !strings.HasPrefix(u.URL(), "http://127.0.0.1:") {
		t.Errorf("URL %s", u.URL())
	}
}
