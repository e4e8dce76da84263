package proxy

import (
	"context"
	"net"
	"strings"
	"testing"

	"understudy/internal/stats"
)

// A fault of this program's own while an upstream is tried costs that attempt, not the
// request, whose chain goes on, nor the process; and it is told of loudly.
func TestAnInternalErrorCostsOneAttempt(t *testing.T) {
	for name, more := range map[string]string{"one after another": "", "beside another": "hedge: {after: 20}", "held whole": "delivery: complete"} {
		inBubble(t, name, func(t *testing.T) {
			cfg := chain(2, "server: {auto_hedge_threshold: 0}")
			if more != "" {
				cfg = strings.Replace(cfg, "  vm:\n", "  vm:\n    "+more+"\n    candidates:\n", 1)
			}
			s := newScene(t, cfg)
			s.play("u2", sayPong)
			s.handler.transports.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == "u1:80" {
					panic("sk-upstream-secret-1 is at fault")
				}
				return s.net.DialContext(ctx, network, addr)
			}
			s.from(s.hi(), "u2")
			if r := s.records()[0]; len(r.Tries) != 2 || r.Tries[0].Class != "bad_stream" || r.Ending != stats.Success {
				t.Errorf("booked %+v", r)
			}
			if log := s.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "panic_test.go") || strings.Contains(log, "sk-upstream-secret-1") {
				t.Errorf("the log says\n%s", log)
			}
			s.idle()
		})
	}
}
