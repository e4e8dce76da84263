package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"time"
)

//go:embed templates
var templates embed.FS

var (
	pageTemplate  = parse("page.html")
	loginTemplate = parse("login.html")
)

func parse(name string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{
		"known": known, "percent": percent, "milliseconds": milliseconds, "span": span,
	}).ParseFS(templates, "templates/"+name))
}

// page is the status page: one View as HTML, without a script.
func (h *Handler) page(w http.ResponseWriter, _ *http.Request) {
	render(w, http.StatusOK, pageTemplate, struct {
		View  any
		Login bool
	}{h.control.View(), h.control.Access().NeedsToken()})
}

func (h *Handler) style(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, static, "static/style.css")
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
