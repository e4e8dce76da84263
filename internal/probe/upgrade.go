package probe

import (
	"net/http"
	"strconv"

	"understudy/internal/wire"
)

// NoUpgrade makes the failure of a request to leave HTTP that was answered by
// anything but what was asked for. It owns resp.Body.
func NoUpgrade(clock *Clock, resp *http.Response, ask *Ask, budget *Budget) *Failure {
	clock.Heard()
	x := open(clock, resp, ask)
	if resp.StatusCode >= 300 {
		return x.refused(budget)
	}
	x.Close()
	text := "the handshake was answered with " + strconv.Itoa(resp.StatusCode) + ", and no WebSocket"
	if resp.StatusCode == http.StatusSwitchingProtocols {
		text = "the handshake was answered with something that is no WebSocket"
	}
	return &Failure{Kind: BadStream, Phase: Header, Status: resp.StatusCode, Fault: wire.FaultServer, Text: text}
}
