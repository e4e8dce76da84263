package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// maxScrapes is how many may run at once: each reads a whole View.
const maxScrapes = 8

// A scrape answers with what a registry has, in Prometheus' text format, which every
// scraper reads. The library's own handler offers protobuf and zstd too, and has more
// bytes in the program than the whole of this package.
type scrape struct {
	from    prometheus.Gatherer
	running chan struct{} // one element per scrape
	zippers sync.Pool     // of *gzip.Writer: one takes nearly a megabyte
}

func newScrape(from prometheus.Gatherer) *scrape {
	return &scrape{from: from, running: make(chan struct{}, maxScrapes),
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
	families, err := s.from.Gather()
	if err != nil {
		sendError(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
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
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(to, f); err != nil {
			return // the same
		}
	}
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
