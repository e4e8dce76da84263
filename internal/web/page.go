package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"
)

//go:embed templates
var templates embed.FS

var (
	plainTemplate = parse("plain.html")
	loginTemplate = parse("login.html")
)

// parse reads a template when it is first used.
func parse(name string) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		return template.Must(template.New(name).Funcs(template.FuncMap{
			"known": known, "percent": percent, "milliseconds": milliseconds, "span": span,
		}).ParseFS(templates, "templates/"+name))
	})
}

// plain is a status page for browsers without scripts: one View as HTML.
func (h *Handler) plain(w http.ResponseWriter, _ *http.Request) {
	render(w, http.StatusOK, plainTemplate(), struct {
		View  any
		Login bool
	}{h.control.View(), h.control.Access().NeedsToken()})
}

// render sends a whole page or none: a template that fails leaves no half of one.
func render(w http.ResponseWriter, status int, t *template.Template, v any) {
	var page bytes.Buffer
	if err := t.Execute(&page, v); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // a reader that has left cannot be told
}

// known is a sum; what nobody reported is shown as such.
func known(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}

func percent(share *float64) string {
	if share == nil {
		return "–"
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return time.Duration(*ms * float64(time.Millisecond)).Round(time.Millisecond).String()
}

// span is a number of seconds for people.
func span(seconds int64) string { return (time.Duration(seconds) * time.Second).String() }
