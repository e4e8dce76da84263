package names

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamesThatFail(t *testing.T) {
	s := Start()
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
