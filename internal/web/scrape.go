package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"understudy/internal/control"
)

// maxScrapes is how many may run at once: each reads a whole View.
const maxScrapes = 8

// A scrape answers with a page of metrics.
type scrape struct {
	page    func() *exposition
	running chan struct{} // one element per scrape
	zippers sync.Pool     // of *gzip.Writer: one takes nearly a megabyte
}

// metricsHandler serves the metrics of the program, of its runtime and of its process.
func metricsHandler(c *control.Control) http.Handler {
	return newScrape(func() *exposition {
		e, v := new(exposition), c.View()
		expose(&v, e)
		exposeRuntime(e)
		exposeProcess(e)
		return e
	})
}

func newScrape(page func() *exposition) *scrape {
	return &scrape{page: page, running: make(chan struct{}, maxScrapes),
		zippers: sync.Pool{New: func() any { return gzip.NewWriter(nil) }}}
}

// ServeHTTP implements http.Handler.
func (s *scrape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		sendError(w, http.StatusServiceUnavailable, "too many scrapes at once")
		return
	}
	page := s.page()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Add("Vary", "Accept-Encoding")
	to := io.Writer(w)
	if takesGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		z := s.zippers.Get().(*gzip.Writer)
		z.Reset(w)
		defer func() {
			_ = z.Close() // the scraper has left
			s.zippers.Put(z)
		}()
		to = z
	}
	_, _ = page.WriteTo(to) // here, too
}

// takesGzip says whether a client asks for gzip (RFC 9110, 12.5.3). One that takes just
// anything gets it plain.
func takesGzip(h http.Header) bool {
	for _, part := range strings.Split(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighed := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		if !weighed {
			return true
		}
		name, value, _ := strings.Cut(strings.TrimSpace(weight), "=")
		q, err := strconv.ParseFloat(value, 64)
		return strings.EqualFold(name, "q") && err == nil && q > 0
	}
	return false
}
