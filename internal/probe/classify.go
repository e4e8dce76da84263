package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"

	"understudy/internal/wire"
)

// Classify makes the failure of an attempt that got no whole answer: err is what
// the transport or the body said, and the attempt's cause, where it was
// cancelled, goes before it.
func Classify(ctx context.Context, phase Phase, err error) *Failure {
	f := &Failure{Kind: Network, Phase: phase, Fault: wire.FaultServer}
	cause := context.Cause(ctx)
	f.Cause = cause
	switch {
	case errors.Is(cause, ErrStalled):
		f.Kind, f.Text = Stalled, "not one byte for too long"
	case errors.Is(cause, ErrConnectBudget):
		f.Kind, f.Phase, f.Text = Timeout, Dial, "no connection in time"
	case errors.Is(cause, ErrContentBudget):
		f.Kind, f.Text = Timeout, "no content in time"
	case errors.Is(cause, ErrBudget):
		f.Kind, f.Text = Timeout, "the attempt's time was used up"
	case errors.Is(cause, ErrChainSpent):
		f.Kind, f.Text = Timeout, "the request's time over all attempts was used up"
	case cause != nil:
		f.Text = cause.Error()
	case errors.Is(err, errCoding):
		f.Kind, f.Text = BadStream, "the answer's content coding is damaged"
	case errors.As(err, new(unfinished)):
		f.Kind, f.Text = BadStream, err.Error()
	default:
		f.Text = account(err)
	}
	f.Ours = f.Phase == Dial && cause == nil && ours(err)
	f.Unreached = f.Phase == Dial && (errors.Is(cause, ErrConnectBudget) || cause == nil && unreached(err))
	if f.Phase > Dial && (f.Kind == Stalled || f.Kind == Timeout) {
		f.Text += " (" + where[phase] + ")"
	}
	return f
}

var where = map[Phase]string{Header: "before an answer", Probe: "within the answer", Relay: "after release"}

// account says in plain words what the transport reported.
func account(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "name not found: " + dns.Name
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "connection closed before the answer was whole"
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return "the answer's head is malformed"
	}
	return unquoted(err.Error())
}

// unreached says whether an error before there was a connection is the host's: not
// one of a proxy on the way, nor of this machine, nor of the request.
func unreached(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		switch {
		case op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks"):
			return false
		case ours(err):
			return false
		}
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	// The connection ended within the handshake, or it took too long.
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// ours says whether an error is this machine's own: it has no more files, ports or
// memory to connect with.
func ours(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// unquoted leaves out what stands between quotes. There net/http repeats pieces of a
// malformed answer, and a piece of a secret is not known for one.
func unquoted(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, `"`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(`"…"`)
		for i := 0; ; i++ {
			if i >= len(rest) {
				return b.String()
			}
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '"' {
				text = rest[i+1:]
				break
			}
		}
	}
}
