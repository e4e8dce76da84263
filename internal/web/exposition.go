package web

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A family is a metric with all its series: one for each combination of the values of
// its labels.
type family struct {
	name, help string
	labels     []string
}

// An exposition is a page of metrics in Prometheus' text format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats), which every scraper reads. The
// zero value is an empty one. Why not the vendor's library: docs/adr/0009.
type exposition struct {
	kinds  map[*family]string
	series map[*family][]series
}

// series is what one combination of labels has: a line, or those of a distribution.
type series struct{ labels, lines string }

func (e *exposition) gauge(f *family, v float64, values ...string) {
	labels := f.pairs(values)
	e.add(f, "gauge", labels, line(f.name, labels, "", v))
}

func (e *exposition) counter(f *family, v float64, values ...string) {
	labels := f.pairs(values)
	e.add(f, "counter", labels, line(f.name, labels, "", v))
}

// A bound is how many of a distribution were at most so large.
type bound struct {
	most  float64
	count uint64
}

// histogram gives a distribution by its bounds, of which the greatest need not be told.
func (e *exposition) histogram(f *family, bounds []bound, sum float64, count uint64, values ...string) {
	labels := f.pairs(values)
	var b strings.Builder
	for _, under := range bounds {
		b.WriteString(line(f.name+"_bucket", labels, `le="`+decimal(under.most)+`"`, float64(under.count)))
	}
	b.WriteString(line(f.name+"_bucket", labels, `le="+Inf"`, float64(count)))
	b.WriteString(line(f.name+"_sum", labels, "", sum))
	b.WriteString(line(f.name+"_count", labels, "", float64(count)))
	e.add(f, "histogram", labels, b.String())
}

// A quantile is how large so great a part of a distribution was at most.
type quantile struct{ part, most float64 }

// summary gives a distribution by its quantiles.
func (e *exposition) summary(f *family, quantiles []quantile, sum float64, count uint64) {
	var b strings.Builder
	for _, q := range quantiles {
		b.WriteString(line(f.name, "", `quantile="`+decimal(q.part)+`"`, q.most))
	}
	b.WriteString(line(f.name+"_sum", "", "", sum))
	b.WriteString(line(f.name+"_count", "", "", float64(count)))
	e.add(f, "summary", "", b.String())
}

func (e *exposition) add(f *family, kind, labels, lines string) {
	if e.kinds == nil {
		e.kinds, e.series = map[*family]string{}, map[*family][]series{}
	}
	e.kinds[f] = kind
	e.series[f] = append(e.series[f], series{labels, lines})
}

// WriteTo implements io.WriterTo: families and their series in order.
func (e *exposition) WriteTo(w io.Writer) (n int64, err error) {
	families := make([]*family, 0, len(e.series))
	for f := range e.series {
		families = append(families, f)
	}
	slices.SortFunc(families, func(x, y *family) int { return strings.Compare(x.name, y.name) })
	for _, f := range families {
		all := e.series[f]
		slices.SortStableFunc(all, func(x, y series) int { return cmp.Compare(x.labels, y.labels) })
		var b strings.Builder
		b.WriteString("# HELP " + f.name + " " + helpEscapes.Replace(f.help) + "\n# TYPE " + f.name + " " + e.kinds[f] + "\n")
		for _, s := range all {
			b.WriteString(s.lines)
		}
		m, err := io.WriteString(w, b.String())
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// What stands escaped in the text format.
var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// pairs are labels as they are written, in the order of their names.
func (f *family) pairs(values []string) string {
	all := make([]string, len(f.labels))
	for i, name := range f.labels {
		all[i] = name + `="` + valueEscapes.Replace(strings.ToValidUTF8(values[i], "�")) + `"`
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// line is one sample.
func line(name, labels, more string, v float64) string {
	if labels != "" && more != "" {
		labels += ","
	}
	if labels += more; labels != "" {
		labels = "{" + labels + "}"
	}
	return name + labels + " " + decimal(v) + "\n"
}

func decimal(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64) // "NaN" as it is wanted
}
