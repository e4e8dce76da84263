package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func showStats(c *call) (string, error) {
	if err := c.want(0, 1); err != nil {
		return "", err
	}
	v := c.view()
	if len(c.args) == 0 {
		t := modelsTable(&v)
		return fmt.Sprintf("%s\n\n%s\n(latency and cache: the last %s)%s", totalsText(&v), t, left(int64(v.WindowSeconds)), legend(t)), nil
	}
	chain, err := c.chain(c.args[0])
	if err != nil {
		return "", err
	}
	for i := range v.Models {
		if m := &v.Models[i]; m.Name == c.name(chain.Model) {
			w, k := windowsTable(m), candidatesTable(m)
			return fmt.Sprintf("%s\n%s\n\n%s%s", m.Name, w, k, legend(w, k)), nil
		}
	}
	return "", c.unknownModel(c.args[0])
}

// legend explains the signs that stand in tables.
func legend(tables ...*table) string {
	var notes []string
	has := func(is func(cell string) bool) bool {
		return slices.ContainsFunc(tables, func(t *table) bool {
			return slices.ContainsFunc(t.rows, func(row []string) bool { return slices.ContainsFunc(row, is) })
		})
	}
	if has(func(cell string) bool { return cell == unknown }) {
		notes = append(notes, unknown+" = nobody reported it")
	}
	if has(func(cell string) bool {
		return strings.HasSuffix(cell, atLeast) && strings.Trim(cell, "0123456789") == atLeast
	}) {
		notes = append(notes, atLeast+" = at least, some did not report it")
	}
	if notes == nil {
		return ""
	}
	return "\n\n" + strings.Join(notes, "; ")
}

func totalsText(v *View) string {
	t := &v.Totals
	mode := "off"
	if v.TargetMode {
		mode = "on"
	}
	return fmt.Sprintf("%d requests: %d good, %d passed through, %d empty, %d exhausted, %d broken, %d whose client left\n%d in flight; besides %d ignored, %d refused; target mode %s%s",
		t.Requests, t.Successes, t.PassedThrough, t.Empty, t.Exhausted, t.Broken, t.ClientCancelled, t.InFlight, t.Ignored, t.Refused, mode, storeText(&v.Store))
}

func modelsTable(v *View) *table {
	t := newTable("vm", ">in flight", ">requests", ">ok", ">failed", ">empty", ">client left", ">rpm", ">tpm", ">latency", ">cache", ">tokens in", ">out", ">cached")
	for i := range v.Models {
		m := &v.Models[i]
		t.row(append([]string{m.Name, count(m.InFlight), count(m.Requests), count(m.Successes), count(m.Failures), count(m.Empty), count(m.Abandoned),
			count(m.RPM), known(m.TPM, m.TPMIncomplete), duration(m.AvgLatency), percent(m.CacheHit)}, tokenCells(&m.Tokens)...)...)
	}
	return t
}

func windowsTable(m *Model) *table {
	t := newTable("last", ">requests", ">ok", ">failed", ">empty", ">client left", ">success", ">latency", ">p50", ">p95", ">p99", ">first", ">cache", ">tokens in", ">out", ">cached")
	for i := range m.Windows {
		w := &m.Windows[i]
		t.row(append([]string{w.Span, count(w.Requests), count(w.Successes), count(w.Failures), count(w.Empty), count(w.Abandoned), percent(w.SuccessRate),
			duration(w.Latency.Avg), duration(w.Latency.P50), duration(w.Latency.P95), duration(w.Latency.P99), duration(w.FirstContent.Avg), percent(w.CacheHit)}, tokenCells(&w.Tokens)...)...)
	}
	return t
}

func candidatesTable(m *Model) *table {
	t := newTable(">#", "name", "state", ">in flight", ">attempts", ">ok", ">failed", ">empty", ">freezes", ">hedged", ">in a row", ">tokens in", ">out", ">cached", "last error")
	for i := range m.Candidates {
		k := &m.Candidates[i]
		cells := append([]string{strconv.Itoa(k.Index), k.Name, k.State, count(int64(k.InFlight)), count(k.Requests), count(k.Successes), count(k.Failures), count(k.Empty),
			count(k.Freezes), count(k.Hedged), count(k.ConsecutiveFailures)}, tokenCells(&k.Tokens)...)
		text := k.LastError
		if k.LastErrorAt != nil {
			text = k.LastErrorAt.Format("15:04:05 ") + text
		}
		t.row(append(cells, orDash(text))...)
	}
	return t
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// The signs of what was not reported.
const (
	unknown = "?"
	atLeast = "+"
)

// known is a sum with the signs of what is not known about it.
func known(n *int64, incomplete bool) string {
	switch {
	case n == nil:
		return unknown
	case incomplete:
		return count(*n) + atLeast
	}
	return count(*n)
}

func tokenCells(t *Tokens) []string {
	return []string{known(t.Input, t.Incomplete), known(t.Output, t.Incomplete), known(t.Cached, t.CachedIncomplete)}
}

// duration is milliseconds for people; "-" where there is none.
func duration(ms *float64) string {
	switch {
	case ms == nil:
		return "-"
	case *ms < 1000:
		return strconv.FormatFloat(*ms, 'f', 0, 64) + "ms"
	}
	return strconv.FormatFloat(*ms/1000, 'f', 1, 64) + "s"
}

func percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + "%"
}
