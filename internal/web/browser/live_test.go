package browser

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// hide tells the page that nobody looks at it, or that somebody does again.
func (p *tab) hide(hidden bool) {
	p.t.Helper()
	eval[any](p, fmt.Sprintf(`(() => { Object.defineProperty(document, "visibilityState", {configurable: true, get: () => %q}); document.dispatchEvent(new Event("visibilitychange")); })()`, map[bool]string{true: "hidden", false: "visible"}[hidden]))
}

func TestATabThatNobodySeesAsksForNothing(t *testing.T) {
	s := stage(t, "-quiet")
	p := open(t, s.url(), desktop)
	p.until(`document.querySelectorAll(".chart canvas").length === 4`)
	p.hide(true)
	s.command("freeze clear")
	s.call("rehearsal")
	before := p.asked(s.url(), "GET /api/")
	// A tab that looks sees the news, and then the hidden one has had its chance.
	other := open(t, s.url(), desktop)
	other.shows(".calm", "Nobody is frozen.")
	s.command("freeze add auto-strong 1 600")
	other.shows(".freeze", "Anthropic direct")
	if after := p.asked(s.url(), "GET /api/"); after != before {
		t.Errorf("%d requests while nobody looked", after-before)
	}
	p.hide(false)
	p.shows(".freeze", "Anthropic direct")
	p.calm(s.url())
}

// slowest calls the proxy so often and gives the 99th percentile.
func (s *server) slowest(calls int) time.Duration {
	s.t.Helper()
	var took []time.Duration
	for range calls {
		start := time.Now()
		if status := s.call("calm"); status != 200 {
			s.t.Fatalf("status %d", status)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// TestASleepingBrowserHoldsUpNobody stops every process of a browser in the middle of
// a stream of events. It reads nothing any more, as a laptop that was closed.
func TestASleepingBrowserHoldsUpNobody(t *testing.T) {
	s := stage(t, "-bare")
	alone := s.slowest(400)
	browser, end := openChrome(context.Background())
	defer end()
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	p := openIn(t, browser, s.url(), desktop)
	p.shows("#verdict", ".")
	processes := family(t, chromedp.FromContext(browser).Browser.Process().Pid)
	for _, pid := range processes {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	asleep := s.slowest(400)
	s.command("freeze add auto-strong 1 600") // and the admin listener answers
	start := time.Now()
	s.ask("GET", "/api/state", nil)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the state takes %v", took)
	}
	for _, pid := range slices.Backward(processes) {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	p.shows(".freeze", "Anthropic direct") // it catches up
	t.Logf("p99 %v alone, %v beside a browser that sleeps", alone, asleep)
	if limit := 3*alone + 20*time.Millisecond; asleep > limit {
		t.Errorf("p99 is %v beside a browser that sleeps, %v without", asleep, alone)
	}
}

// family lists a process and all that come from it, parents first.
func family(t *testing.T, root int) []int {
	t.Helper()
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in brackets, may hold blanks.
		var pid, parent int
		var state string
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(text[strings.LastIndexByte(string(text), ')')+1:]), &state, &parent); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	list := []int{root}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

func TestALostServerIsToldAndFoundAgain(t *testing.T) {
	first := stage(t, "-bare")
	p := open(t, first.url(), desktop)
	p.shows("#verdict", "Ready when you are.")
	p.until(`document.querySelector(".pulse").dataset.state === "live"`)
	first.stop()
	p.shows(".strip", "No connection to understudy. What you see is from")
	p.until(`document.querySelector(".pulse").dataset.state === "lost"`)
	p.shows(".cast", "Anthropic direct") // what was known is still there
	p.click("[role=switch]", "")
	p.shows(".toast.bad", "")
	second := stage(t, "-bare", "-admin", first.admin)
	second.command("freeze add auto-strong 1 600")
	p.until(`document.querySelector(".pulse").dataset.state === "live"`)
	p.gone(".strip")
	p.shows(".freeze", "Anthropic direct")
}

// TestTheProgramItself runs the program as people do, behind a token.
func TestTheProgramItself(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	const token = "a-token-of-the-stage-door-1"
	const text = `# Mine.
server:
  port: 0
  admin: 127.0.0.1:0
  state_dir: ` + "STATE" + `
  admin_token: ` + token + ` # nobody's business
virtual_models:
  auto: # the only one
    - {name: One, base_url: "http://127.0.0.1:9", api_key: sk-proj-0123456789abcdefghij, model: m}
`
	if err := os.WriteFile(path, []byte(strings.Replace(text, "STATE", filepath.Join(dir, "state"), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binaries.understudy, "serve", "-c", path, "--no-repl")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	admin := ""
	for lines := bufio.NewScanner(out); admin == "" && lines.Scan(); {
		_, admin, _ = strings.Cut(lines.Text(), "admin  ")
	}
	p := open(t, admin+"/", desktop)
	p.shows("h1", "Stage door")
	p.until(`document.activeElement.id === "token"`)
	p.press("wrong" + kb.Enter)
	p.shows(".door-wrong", "This is not the admin token.")
	p.until(`document.activeElement.id === "token"`)
	p.press(token + kb.Enter)
	p.shows("#verdict", "Ready when you are.")
	if answer, err := http.Get(admin + "/api/config"); err != nil || answer.StatusCode != 401 {
		t.Errorf("without the cookie: %v %v", answer, err)
	}
	p.click(`[aria-label="Freeze One"]`, "")
	p.press(kb.Enter)
	p.shows("#verdict", "Nobody is left for auto.")
	p.shows(".points", "One is the first to be back")
	p.click(`[aria-label="Lift the freeze of One"]`, "Lift")
	p.shows(".calm", "Nobody is frozen.")
	p.press("3")
	p.find("name: One", 3)
	p.press("Uno")
	p.shows(".config-head .chip", "edited")
	p.press("s", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.shows(".toast", "Applied.")
	file, err := os.ReadFile(path)
	if want := strings.Replace(strings.Replace(text, "STATE", filepath.Join(dir, "state"), 1), "name: One", "name: Uno", 1); err != nil || string(file) != want {
		t.Errorf("the file is\n%s", file)
	}
	eval[any](p, `document.activeElement.blur()`)
	p.press("1" + kb.Escape)
	p.shows(".candidate-name", "Uno")
	p.click(".foot button", "Log out")
	p.shows("h1", "Stage door")
}
