package probe

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Rehearse judges an answer that is known whole, as Judge would have, without a
// network: for people who try rules. Header names are in any case. The Exchange, or
// the Failure, is closed already.
func Rehearse(ctx context.Context, status int, header map[string][]string, body []byte, ask *Ask) (*Exchange, *Failure) {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	for name, values := range header {
		for _, value := range values {
			resp.Header.Add(name, value)
		}
	}
	x, f := Judge(NewClock(ctx, &Budget{}), resp, ask, &Budget{})
	f.Close()
	if x != nil {
		x.Close()
	}
	return x, f
}
