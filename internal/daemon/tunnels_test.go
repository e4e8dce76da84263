package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"understudy/internal/stats"
)

// WebSockets have no end of their own: they are broken off when the time to finish is
// up, or at once with a second signal, and booked before the state is written.
func TestWebSocketsEndWithTheProgram(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		_, _, _ = c.Read(r.Context()) // until it is broken off
	}))
	defer upstream.Close()
	for name, end := range map[string]func(r *rig){
		"the time is up":  func(r *rig) { r.drain() },
		"a second signal": func(r *rig) { r.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			timeout := 0.2
			if name == "a second signal" {
				timeout = 300
			}
			r := newRig(t, fmt.Sprintf(`
server: {port: 0, admin: off, state_dir: STATE, websocket: on, drain_timeout: %v}
virtual_models:
  vm: [{name: one, base_url: %q, model: m, auth_style: none}]
`, timeout, upstream.URL)).serve()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c, _, err := websocket.Dial(ctx, "ws://"+r.Addr()+"/v1/realtime?model=vm", nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, r.log)
			}
			defer c.CloseNow()
			if n := r.ledger.Totals().InFlight; n != 1 {
				t.Errorf("%d in flight", n)
			}
			end(r)
			r.quits(10 * time.Second)
			if _, _, err := c.Read(ctx); err == nil {
				t.Error("it goes on")
			}
			records, _ := r.ledger.Since(0, 10)
			if len(records) != 1 || records[0].Ending != stats.Cancelled || records[0].Status != 101 {
				t.Errorf("booked %+v", records)
			}
		})
	}
}
