package daemon

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// rushBody is what is said to who is turned away.
const rushBody = `{"error":{"message":"more requests come than can be served; try again in a moment","type":"overloaded_error","param":null,"code":"overloaded"}}` + "\n"

// turning turns requests away in a rush: those that come over a connection on which
// there was one before, since a new connection has waited to be let in itself. Who asks
// whether the program lives is always told.
func (r *rush) turning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		now := time.Now()
		if newcomer(q) || r.enter(now) || !r.on(now) || q.URL.Path == "/healthz" {
			r.inside.Add(1)
			defer r.inside.Add(-1)
			next.ServeHTTP(w, q)
			return
		}
		r.count()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Retry-After", strconv.Itoa(int(rushRetry/time.Second)))
		if q.ProtoMajor == 1 {
			h.Set("Connection", "close") // the next one waits outside, which costs less
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, rushBody)
	})
}

// newcomer says whether a request is the first of its connection.
func newcomer(q *http.Request) bool {
	c, _ := q.Context().Value(connName{}).(net.Conn)
	for {
		if k, ok := c.(*crowdConn); ok {
			return !k.used.Swap(true)
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		c = outer.NetConn()
	}
}
