package web

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What a scraper gets is the text format, whatever else it would take, and coded only
// where it asks for that.
func TestScrapesAreTextAsTheScraperTakesIt(t *testing.T) {
	// As Prometheus 3 asks.
	const prometheusAccepts = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
	r := newRig(t, "virtual_models: {vm: [{name: a, base_url: \"http://127.0.0.1:1\", auth_style: none, model: m}]}\n")
	for asks, zipped := range map[string]bool{
		"": false, "gzip": true, "zstd, gzip;q=0.5": true, "GZIP ; Q=1": true, "deflate,  gzip": true,
		"identity": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=x": false, "gzip;q": false, "*": false, "x-gzip2": false,
	} {
		a := r.ask("GET", "/metrics", "", "Accept: "+prometheusAccepts, "Accept-Encoding: "+asks)
		body := io.Reader(a.Body)
		if coding := a.Header.Get("Content-Encoding"); zipped != (coding == "gzip") || !zipped && coding != "" {
			t.Errorf("%q is answered with %q", asks, coding)
		}
		if zipped {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Errorf("%q: %v", asks, err)
				continue
			}
			body = z
		}
		if kind, parameters, err := mime.ParseMediaType(a.Header.Get("Content-Type")); a.StatusCode != 200 || kind != "text/plain" || parameters["version"] != "0.0.4" || err != nil {
			t.Errorf("%q: %d %q %v", asks, a.StatusCode, a.Header.Get("Content-Type"), err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(body)
		if err != nil || families["understudy_build_info"] == nil || families["go_goroutines"] == nil {
			t.Errorf("%q: %d families, %v", asks, len(families), err)
		}
	}
}

func TestOnlySoManyScrapesAtOnce(t *testing.T) {
	in, out := make(chan struct{}), make(chan struct{})
	s := newScrape(func() *exposition {
		in <- struct{}{}
		<-out
		return new(exposition)
	})
	ask := func() int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Code
	}
	codes := make(chan int)
	for range maxScrapes {
		go func() { codes <- ask() }()
		<-in
	}
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", code)
	}
	close(out)
	for range maxScrapes {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one of those: %d", code)
		}
	}
}
