package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"understudy/internal/wire"
)

// Who ended an attempt is read from its cause, and only without one from what the
// network said; nothing is guessed from a text.
func TestClassify(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		cause  error
		phase  Phase
		err    error
		class  string
		phased Phase
		text   string
	}{
		"refused":               {nil, Dial, dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "network", Dial, "connection refused"},
		"no such name":          {nil, Dial, dial(&net.DNSError{Err: "no such host", Name: "u1.test", IsNotFound: true}), "network", Dial, "name not found: u1.test"},
		"a reset":               {nil, Header, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, "network", Header, "connection reset"},
		"a broken pipe":         {nil, Header, &net.OpError{Op: "write", Err: syscall.EPIPE}, "network", Header, "connection reset"},
		"an end too early":      {nil, Probe, io.ErrUnexpectedEOF, "network", Probe, "connection closed before the answer was whole"},
		"an end before a byte":  {nil, Header, fmt.Errorf("transport: %w", io.EOF), "network", Header, "connection closed before the answer was whole"},
		"anything else":         {nil, Header, errors.New("malformed HTTP response"), "network", Header, "malformed HTTP response"},
		"no connection in time": {ErrConnectBudget, Dial, context.Canceled, "timeout", Dial, "no connection in time"},
		"TLS not in time":       {ErrConnectBudget, Header, context.Canceled, "timeout", Dial, "no connection in time"},
		"silence":               {ErrStalled, Header, context.Canceled, "stalled_stream", Header, "not one byte for too long (before an answer)"},
		"silence while held":    {ErrStalled, Probe, context.Canceled, "stalled_stream", Probe, "not one byte for too long (within the answer)"},
		"silence after release": {ErrStalled, Relay, context.Canceled, "stalled_stream", Relay, "not one byte for too long (after release)"},
		"no content in time":    {ErrContentBudget, Probe, context.Canceled, "timeout", Probe, "no content in time (within the answer)"},
		"the attempt's time":    {ErrBudget, Probe, context.Canceled, "timeout", Probe, "the attempt's time was used up (within the answer)"},
		"the request's time":    {ErrChainSpent, Probe, context.Canceled, "timeout", Probe, "the request's time over all attempts was used up (within the answer)"},
		"the client":            {ErrClientGone, Probe, context.Canceled, "network", Probe, "client gone"},
		"a lost race":           {ErrHedgeLost, Probe, context.Canceled, "network", Probe, "another attempt won"},
		"a cause before a text": {ErrStalled, Probe, io.ErrUnexpectedEOF, "stalled_stream", Probe, "not one byte for too long (within the answer)"},
		"a damaged coding":      {nil, Probe, errors.Join(errCoding, wire.ErrCorrupt), "bad_stream", Probe, "the answer's content coding is damaged"},
		"an unfinished stream":  {nil, Relay, unfinished("the stream ended without a terminal event"), "bad_stream", Relay, "the stream ended without a terminal event"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.cause != nil {
				cancel(c.cause)
			}
			f := Classify(ctx, c.phase, c.err)
			if f.Class() != c.class || f.Phase != c.phased || f.Text != c.text || f.Fault != wire.FaultServer || f.Cause != c.cause || f.Status != 0 || f.Held != nil {
				t.Errorf("%s in phase %v, %q, cause %v; want %s in phase %v, %q", f.Class(), f.Phase, f.Text, f.Cause, c.class, c.phased, c.text)
			}
		})
	}
}
