package daemon

import (
	"io"
	"log/slog"
)

// Libraries takes the lines that libraries log by themselves, net/http above all: they
// quote clients and upstreams as they come. Each becomes a line at level debug, in a
// form that is fit to be shown.
func (d *Daemon) Libraries() io.Writer { return libraries{d} }

type libraries struct{ d *Daemon }

// Write implements io.Writer; it never fails.
func (l libraries) Write(line []byte) (int, error) {
	l.d.log.Debug("a library says", slog.String("text", l.d.handler.Snapshot().Redact.Quote(string(line), 300)))
	return len(line), nil
}
