package web

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/proto"
)

// read reads a page as Prometheus does.
func read(t *testing.T, page string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%v\n%s", err, page)
	}
	return families
}

// vendors is what the vendor's library makes of metrics.
func vendors(t *testing.T, c ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// given is a collector of what it holds.
type given []prometheus.Metric

func (g given) Describe(out chan<- *prometheus.Desc) {
	for _, m := range g {
		out <- m.Desc()
	}
}

func (g given) Collect(out chan<- prometheus.Metric) {
	for _, m := range g {
		out <- m
	}
}

// What we write is, to the byte, what Prometheus' own library writes.
func TestTheExpositionIsTheVendors(t *testing.T) {
	const help = "A help with a \\ and\na \"line\"."
	odd := []string{"plain", "", `a "quoted" one`, "a line\nand \\ another", "ünïcode ☃", "{,=}", "two  spaces "}
	numbers := []float64{0, 1, -1, 0.1, 1e21, 1e-9, 123456789, math.Pi, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64}
	values := &family{"z_values", help, []string{"zeta", "alpha"}}
	total := &family{"a_total", "Help.", nil}
	took := &family{"took_seconds", "Help.", []string{"who"}}
	pause := &family{"pause_seconds", "Help.", nil}
	desc := func(f *family) *prometheus.Desc { return prometheus.NewDesc(f.name, f.help, f.labels, nil) }
	e, lib := new(exposition), given{}
	for i, text := range odd {
		for j, v := range numbers {
			other := string(rune('a' + j))
			e.gauge(values, v, other, text)
			lib = append(lib, prometheus.MustNewConstMetric(desc(values), prometheus.GaugeValue, v, other, text))
		}
		e.histogram(took, []bound{{0.1, uint64(i)}, {2.5, uint64(i + 1)}, {60, 7}}, 12.5, 9, text)
		lib = append(lib, prometheus.MustNewConstHistogram(desc(took), 9, 12.5, map[float64]uint64{0.1: uint64(i), 2.5: uint64(i + 1), 60: 7}, text))
	}
	e.counter(total, 1e15)
	lib = append(lib, prometheus.MustNewConstMetric(desc(total), prometheus.CounterValue, 1e15))
	e.summary(pause, []quantile{{0, 0.001}, {0.5, 0.002}, {1, 3}}, 4.5, 6)
	lib = append(lib, prometheus.MustNewConstSummary(desc(pause), 6, 4.5, map[float64]float64{0: 0.001, 0.5: 0.002, 1: 3}))
	var b bytes.Buffer
	n, err := e.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Errorf("%d of %d bytes, %v", n, b.Len(), err)
	}
	ours, theirs := strings.Split(b.String(), "\n"), strings.Split(vendors(t, lib), "\n")
	if len(ours) != len(theirs) {
		t.Errorf("%d lines, want %d", len(ours), len(theirs))
	}
	for i := range min(len(ours), len(theirs)) {
		if ours[i] != theirs[i] {
			t.Fatalf("line %d is\n%s\nwant\n%s", i, ours[i], theirs[i])
		}
	}
	read(t, b.String())
}

// A name that is no UTF-8 must not spoil the page.
func TestABrokenNameSpoilsNoPage(t *testing.T) {
	e := new(exposition)
	e.gauge(&family{"x", "Help.", []string{"name"}}, 1, "a\xffb")
	var b bytes.Buffer
	if _, err := e.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.String())["x"].GetMetric()[0].GetLabel()[0].GetValue(); got != "a�b" {
		t.Errorf("%q", got)
	}
}

// What the runtime and the process tell has the names, kinds and values that the vendor's
// library gives them.
func TestRuntimeMetricsAreThoseOfTheVendor(t *testing.T) {
	e := new(exposition)
	exposeRuntime(e)
	exposeProcess(e)
	var b bytes.Buffer
	if _, err := e.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	ours := read(t, b.String())
	theirs := read(t, vendors(t, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	missing := map[string]bool{"process_network_receive_bytes_total": true, "process_network_transmit_bytes_total": true}
	if runtime.GOOS != "linux" {
		t.Log("what the process tells differs between systems")
	}
	for name, f := range theirs {
		mine := ours[name]
		switch {
		case mine == nil && (missing[name] || runtime.GOOS != "linux" && strings.HasPrefix(name, "process_")):
		case mine == nil:
			t.Errorf("%s is missing", name)
		case mine.GetType() != f.GetType() || len(mine.GetMetric()) != len(f.GetMetric()):
			t.Errorf("%s is a %v", name, mine.GetType())
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	value := func(all map[string]*dto.MetricFamily, name string) float64 {
		m := all[name].GetMetric()[0]
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	for name, slack := range map[string]float64{
		"process_max_fds": 0, "process_virtual_memory_max_bytes": 0, "process_start_time_seconds": 0.02, "process_open_fds": 20,
		"process_cpu_seconds_total": 5, "process_resident_memory_bytes": 256 << 20, "process_virtual_memory_bytes": 1 << 30,
		"go_gc_gogc_percent": 0, "go_gc_gomemlimit_bytes": 0, "go_sched_gomaxprocs_threads": 0, "go_info": 0,
	} {
		if a, b := value(ours, name), value(theirs, name); math.Abs(a-b) > slack {
			t.Errorf("%s is %v, want %v", name, a, b)
		}
	}
	if !proto.Equal(ours["go_info"].GetMetric()[0], theirs["go_info"].GetMetric()[0]) {
		t.Errorf("%v", ours["go_info"])
	}
}

// A process that is gone tells nothing, and that is no failure.
func TestAProcessThatTellsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only /proc can lack a process")
		return
	}
	p := unknownProcess
	p.read(1 << 30)
	if p.cpu != -1 || p.resident != -1 || p.virtual != -1 || p.open != -1 || p.start != -1 {
		t.Errorf("%+v", p)
	}
	p.read(os.Getpid())
	if p.cpu < 0 || p.resident <= 0 || p.virtual <= 0 || p.open <= 0 || p.start <= 0 {
		t.Errorf("%+v", p)
	}
}
