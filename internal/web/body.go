package web

import (
	"io"
	"net/http"
	"time"
)

// bodyTime is how long a request's body may take, from its head on: what somebody
// edited is at most a few megabytes, and comes from a browser that has it.
const bodyTime = 30 * time.Second

// An arriving body has a deadline until its end has come. One that does not come would
// hold its connection for ever, whoever sends it, a refused request's too.
type arriving struct {
	io.ReadCloser
	control *http.ResponseController
}

// arrive gives a request's body so long to come.
func arrive(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(within)) == nil {
		r.Body = &arriving{r.Body, control}
	}
}

// Read implements io.Reader.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF {
		_ = a.control.SetReadDeadline(time.Time{}) // what runs now may take longer
	}
	return n, err
}
