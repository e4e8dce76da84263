package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"understudy/bench/load"
	"understudy/bench/proc"
)

// A sample is what understudy used at one time, and what had become of the requests.
type sample struct {
	Minutes     float64 `json:"minutes"`
	Resident    float64 `json:"resident_mib"`
	Anonymous   float64 `json:"anonymous_mib"` // of it heap and stacks
	Heap        float64 `json:"heap_in_use_mib"`
	HeapGoal    float64 `json:"heap_goal_mib"` // at which the collector begins: what lived last time, and a headroom
	Goroutines  int     `json:"goroutines"`
	Descriptors int     `json:"descriptors"`
	Disk        float64 `json:"state_dir_mib"`
	CPU         float64 `json:"cpu_seconds"`
	Cores       float64 `json:"cores"`       // of understudy, since the last sample
	Others      float64 `json:"other_cores"` // of what has no part in this
	Done        int     `json:"done"`
	Failed      int     `json:"failed"`
	InFlight    int     `json:"in_flight"`
	Reloads     int     `json:"reloads"`
	P50         float64 `json:"p50_ms"` // of answers that are no streams, since the last sample
	P99         float64 `json:"p99_ms"`

	held, under, dropped float64 // as its metrics say
}

// client reads pages of the admin listener.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Proxy: nil}}

// page reads a page of the admin listener.
func (s *soaking) page(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.admin+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = load.StatusError(resp.StatusCode)
	}
	return text, err
}

// metrics reads the values of a page of metrics; those with labels stand under their
// whole names.
func metrics(page []byte) map[string]float64 {
	all := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			all[line[:at]] = v
		}
	}
	return all
}

// look takes a sample. What a page does not say, or says wrong, is a fault.
func (s *soaking) look(ctx context.Context, m *proc.Meter) sample {
	memory := proc.ReadMemory(s.p.pid())
	o := sample{Minutes: time.Since(s.began).Minutes(), Resident: mib(memory.Now), Anonymous: mib(memory.Anon), CPU: proc.CPU(s.p.pid()).Seconds(), Disk: mib(sizeOf(s.state))}
	o.Descriptors, _ = proc.Descriptors(s.p.pid())
	if m != nil {
		r := m.Stop()
		o.Cores, o.Others = r.CPU.Seconds()/r.Span.Seconds(), r.Others
	}
	if text, err := s.page(ctx, "/metrics"); err != nil {
		s.fault("/metrics: %v", err)
	} else {
		all := metrics(text)
		o.Heap, o.Goroutines = all["go_memstats_heap_inuse_bytes"]/(1<<20), int(all["go_goroutines"])
		o.HeapGoal = all["go_memstats_next_gc_bytes"] / (1 << 20)
		o.held, o.under, o.dropped = all["understudy_held_bytes"], all["understudy_requests_in_flight"], all[`understudy_archive_dropped_total{kind="requests"}`]
		if all["understudy_config_last_reload_successful"] != 1 {
			s.fault("the last reload went wrong")
		}
		if o.dropped > 0 {
			s.fault("the request log dropped %.0f requests", o.dropped)
		}
	}
	var state struct {
		Config struct {
			LoadedAt string `json:"loaded_at"`
			Error    string `json:"error"`
		} `json:"config"`
	}
	if text, err := s.page(ctx, "/api/state"); err != nil {
		s.fault("/api/state: %v", err)
	} else if err := json.Unmarshal(text, &state); err != nil || state.Config.Error != "" {
		s.fault("/api/state: %v %s", err, state.Config.Error)
	}
	s.loaded[state.Config.LoadedAt] = true
	o.Reloads = len(s.loaded) - 1
	if s.flow != nil {
		seen := s.flow.Seen()
		o.Done, o.Failed, o.InFlight = seen.Good+seen.Bad, seen.Bad, seen.InFlight
		o.P50, o.P99 = milliseconds(load.Quantile(seen.Times, .5)), milliseconds(load.Quantile(seen.Times, .99))
	}
	return o
}

// watch takes samples and writes the configuration anew until ctx is done.
func (s *soaking) watch(ctx context.Context, sizes soakSizes) (samples []sample) {
	look, reload := time.NewTicker(sizes.sample), time.NewTicker(sizes.reload)
	defer look.Stop()
	defer reload.Stop()
	meter, generation := s.meter(), 0
	for {
		select {
		case <-ctx.Done():
			return samples
		case <-look.C:
			o := s.look(context.WithoutCancel(ctx), meter)
			meter = s.meter()
			samples = append(samples, o)
			if !s.p.lives() {
				s.fault("understudy has ended")
				return samples
			}
			if len(samples)%30 == 0 {
				fmt.Fprintf(os.Stderr, "%5.1f min  %.1f MiB  %d done, %d failed, %d in flight  %d descriptors  %.2f cores, others %.2f\n", o.Minutes, o.Resident, o.Done, o.Failed, o.InFlight, o.Descriptors, o.Cores, o.Others)
			}
		case <-reload.C:
			generation++
			if err := s.write(generation); err != nil {
				s.fault("%v", err)
			}
		}
	}
}

// meter begins to measure understudy; the upstreams take part.
func (s *soaking) meter() *proc.Meter {
	var helpers []int
	for _, p := range s.mocks {
		helpers = append(helpers, p.pid())
	}
	return proc.Start(s.p.pid(), helpers...)
}

// drain waits until understudy has given everything back, and says what it has not.
func (s *soaking) drain(ctx context.Context, before sample) (last sample, left string) {
	for end := time.Now().Add(drained); ; {
		last = s.look(ctx, nil)
		left = ""
		if last.under != 0 {
			left += fmt.Sprintf("%.0f requests in flight, ", last.under)
		}
		if last.held != 0 {
			left += fmt.Sprintf("%.0f bytes held, ", last.held)
		}
		if last.Goroutines > before.Goroutines+goroutinesLeft {
			left += fmt.Sprintf("%d goroutines where there were %d, ", last.Goroutines, before.Goroutines)
		}
		left = strings.TrimSuffix(left, ", ")
		if left == "" || time.Now().After(end) || ctx.Err() != nil {
			return last, left
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// sizeOf is how many bytes the files below a directory have.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was just replaced
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
