package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// Refused, DNS, TLS and no connection in time are the host's, whatever was asked of
// it; what a proxy on the way, this machine or an answer says is not.
func TestUnreached(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
	for name, c := range map[string]struct {
		cause error
		phase Phase
		err   error
		want  bool
	}{
		"refused":                    {nil, Dial, dial(syscall.ECONNREFUSED), true},
		"no route":                   {nil, Dial, dial(syscall.EHOSTUNREACH), true},
		"no such name":               {nil, Dial, &net.OpError{Op: "dial", Err: &net.DNSError{Name: "h", IsNotFound: true}}, true},
		"no such name, bare":         {nil, Dial, &net.DNSError{Name: "h"}, true},
		"an unknown authority":       {nil, Dial, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, true},
		"no TLS":                     {nil, Dial, fmt.Errorf("h2: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), true},
		"an alert":                   {nil, Dial, &net.OpError{Op: "remote error", Err: tls.AlertError(40)}, true},
		"closed within a handshake":  {nil, Dial, io.EOF, true},
		"a handshake takes too long": {nil, Dial, context.DeadlineExceeded, true},
		"no connection in time":      {ErrConnectBudget, Header, context.Canceled, true},
		"a proxy refuses":            {nil, Dial, &net.OpError{Op: "proxyconnect", Err: dial(syscall.ECONNREFUSED)}, false},
		"a SOCKS proxy refuses":      {nil, Dial, &net.OpError{Op: "socks connect", Err: errors.New("not allowed")}, false},
		"no more files here":         {nil, Dial, dial(syscall.EMFILE), false},
		"a bad header of ours":       {nil, Dial, errors.New("net/http: invalid header field value"), false},
		"the client left":            {ErrClientGone, Dial, context.Canceled, false},
		"a reset behind the dial":    {nil, Header, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		"closed before an answer":    {nil, Header, io.EOF, false},
		"silence":                    {ErrStalled, Header, context.Canceled, false},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			cancel(c.cause)
		}
		if got := Classify(ctx, c.phase, c.err).Unreached; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		cancel(nil)
	}
}

// What this machine lacks to connect with is its own, whoever was to be called.
func TestOurs(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{syscall.EMFILE: true, syscall.ENFILE: true, syscall.EADDRNOTAVAIL: true, syscall.ENOBUFS: true, syscall.ECONNREFUSED: false, syscall.EHOSTUNREACH: false} {
		err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
		if got := Classify(t.Context(), Dial, err).Ours; got != want {
			t.Errorf("%v: %v, want %v", errno, got, want)
		}
	}
}
