package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"
)

//go:embed static
var static embed.FS

// An asset is one file of the dashboard, as it is embedded.
type asset struct {
	body        []byte
	contentType string
	etag        string
}

// assets are the files by their paths, "/static/app.js". They hold nothing that
// anybody may not see. They are read when somebody opens the dashboard.
var assets = sync.OnceValue(loadAssets)

// types are those of the endings that the dashboard uses: what a system's own table
// says about them is not ours to trust.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".woff2": "font/woff2",
}

func loadAssets() map[string]asset {
	list := map[string]asset{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := static.ReadFile(name)
		sum := sha256.Sum256(body)
		kind, ok := types[path.Ext(name)]
		if !ok {
			kind = "text/plain; charset=utf-8" // licences
		}
		list["/"+name] = asset{body, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return err
	})
	if err != nil {
		panic("web: the embedded files cannot be read: " + err.Error())
	}
	return list
}

// asset serves one of the dashboard's files. Browsers keep it, and ask whether it is
// still the same: a newer program has newer ones.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.URL.Path]
	if !ok || path.Ext(r.URL.Path) == ".html" {
		sendError(w, http.StatusNotFound, "no such file")
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	if path.Ext(r.URL.Path) == ".woff2" {
		w.Header().Set("Cache-Control", "max-age=604800") // a font that comes late is not used at all
	}
	w.Header().Set("ETag", a.etag)
	if r.Header.Get("If-None-Match") == a.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	a.send(w)
}

// page is the dashboard.
func (h *Handler) page(w http.ResponseWriter, _ *http.Request) {
	assets()["/static/index.html"].send(w)
}

func (a asset) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(a.body) // a reader that has left cannot be told
}
