package daemon

import (
	"io"
	"log/slog"
	"strings"
)

// Libraries takes the lines that libraries log by themselves, net/http above all: they
// quote clients and upstreams as they come. Each becomes a line at level debug, in a
// form that is fit to be shown, without what it quotes: that may be a part of a secret,
// the rest of which went out before, and no redactor knows parts.
func (d *Daemon) Libraries() io.Writer { return libraries{d} }

type libraries struct{ d *Daemon }

// Write implements io.Writer; it never fails.
func (l libraries) Write(line []byte) (int, error) {
	text, quoted, cut := strings.Cut(string(line), `"`)
	if cut {
		text += "…"
		if i := strings.LastIndex(quoted, `"`); i >= 0 {
			text += quoted[i+1:]
		}
	}
	l.d.log.Debug("a library says", slog.String("text", l.d.handler.Snapshot().Redact.Quote(text, 300)))
	return len(line), nil
}
