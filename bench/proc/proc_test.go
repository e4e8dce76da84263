package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestStatOfAProgramWithAStrangeName(t *testing.T) {
	line := "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 7 9 20 0 5 0 100 1 2 3"
	if got, want := parseStat([]byte(line)), 3*time.Second; got != want {
		t.Errorf("CPU time = %v, want %v", got, want)
	}
	if got := parseStat([]byte("42 (x) Z")); got != 0 {
		t.Errorf("CPU time of half a line = %v", got)
	}
}

func TestMemoryLines(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	if got := kilobytes(status, "VmRSS:"); got != 1<<20 {
		t.Errorf("VmRSS = %d", got)
	}
	if got := kilobytes(status, "Pss:"); got != 0 {
		t.Errorf("a line that is not there = %d", got)
	}
}

// TestAChildIsSeen starts a process and finds it in this one's tree, with its memory.
func TestAChildIsSeen(t *testing.T) {
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cat := exec.Command("cat")
	cat.Stdin = in
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	found := false
	for _, p := range Tree(os.Getpid()) {
		found = found || p == cat.Process.Pid
	}
	if !found {
		t.Errorf("%d is not in %v", cat.Process.Pid, Tree(os.Getpid()))
	}
	if m := ReadMemory(cat.Process.Pid); m.Now <= 0 || m.Peak < m.Now {
		t.Errorf("memory = %+v", m)
	}
	if open, limit := Descriptors(cat.Process.Pid); open < 3 || limit < open {
		t.Errorf("descriptors = %d of %d", open, limit)
	}
	hold.Close()
	if err := cat.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAMeterCountsWorkOfItsProcess(t *testing.T) {
	m := Start(os.Getpid())
	x := 0
	for began := Own(); Own()-began < 60*time.Millisecond; {
		x++
	}
	r := m.Stop()
	if r.CPU < 40*time.Millisecond || r.Span < 40*time.Millisecond {
		t.Errorf("reading = %+v after 60 ms of work", r)
	}
}
