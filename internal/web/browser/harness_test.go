package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for something that must come. It is long because
// machines that run tests are busy; nothing is decided by it.
const patience = 30 * time.Second

// binaries are built once for all tests.
var binaries struct{ dir, stage, understudy string }

// chrome is the browser that all tests have tabs in.
var chrome context.Context

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "understudy-browser-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binaries.dir, binaries.stage, binaries.understudy = dir, filepath.Join(dir, "stage"), filepath.Join(dir, "understudy")
		for out, pkg := range map[string]string{binaries.stage: "./internal/web/stage", binaries.understudy: "./cmd/understudy"} {
			build := exec.Command("go", "build", "-o", out, pkg)
			build.Dir = "../../.." // the program's own module
			if text, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", pkg, err, text)
				return 1
			}
		}
		ctx, stop := openChrome(context.Background())
		defer stop()
		if err := chromedp.Do(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "chromium does not start:", err)
			return 1
		}
		chrome = ctx
		return m.Run()
	}())
}

// openChrome prepares a browser of its own, which asks nobody for anything.
func openChrome(ctx context.Context) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true))
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	ctx, close := chromedp.NewContext(ctx)
	return ctx, func() { close(); end() }
}

// A server is a running stage, or the program itself.
type server struct {
	t *testing.T
	// proxy and admin are "host:port"; config is the file's path.
	proxy, admin, config string

	cmd  *exec.Cmd
	stop func()
}

// stage starts the dashboard over fake upstreams, those for rehearsals too. It ends
// with the test.
func stage(t *testing.T, args ...string) *server {
	t.Helper()
	return raise(t, append([]string{"-rehearsal"}, args...)...)
}

func raise(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := exec.Command(binaries.stage, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, cmd: cmd}
	s.stop = sync.OnceFunc(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("stage: %v\n%s", err, &errs)
		}
	})
	t.Cleanup(s.stop)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var at struct{ Proxy, Admin, Config string }
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		t.Fatalf("the stage says %q: %v\n%s", line, err, &errs)
	}
	s.proxy, s.admin, s.config = at.Proxy, at.Admin, at.Config
	return s
}

func (s *server) url() string { return "http://" + s.admin + "/" }

// ask asks the admin listener and gives the JSON it answers.
func (s *server) ask(method, path string, body any) map[string]any {
	s.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	q, err := http.NewRequest(method, "http://"+s.admin+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(a.Body).Decode(&out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// command runs a line of the console, as somebody else would.
func (s *server) command(line string) {
	s.t.Helper()
	if out := s.ask("POST", "/api/command", map[string]string{"line": line}); out["ok"] != true {
		s.t.Fatalf("%s: %v", line, out)
	}
}

// call makes one request through the proxy and gives its status.
func (s *server) call(model string) int {
	s.t.Helper()
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`, model)
	a, err := http.Post("http://"+s.proxy+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

func (s *server) file() string {
	s.t.Helper()
	text, err := os.ReadFile(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// A tab is a page that a test looks at.
type tab struct {
	t     *testing.T
	ctx   context.Context
	close func() // a browser has no more than six streams for all its tabs

	mu       sync.Mutex
	requests []string // "METHOD path" of every request of the page
	trouble  []string // what the console complained about
}

// look is how a page is looked at.
type look struct {
	width, height int64
	dark, mobile  bool
}

var desktop = look{width: 1280, height: 900}

// open opens a page in a tab of its own.
func open(t *testing.T, url string, l look) *tab { return openIn(t, chrome, url, l) }

func openIn(t *testing.T, browser context.Context, url string, l look) *tab {
	t.Helper()
	ctx, close := chromedp.NewContext(browser)
	t.Cleanup(close)
	p := &tab{t: t, ctx: ctx, close: close}
	messages := chromedp.Console(ctx)
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok {
			p.mu.Lock()
			p.requests = append(p.requests, e.Request.Method+" "+e.Request.URL)
			p.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.mu.Lock()
			p.trouble = append(p.trouble, fmt.Sprint(m))
			p.mu.Unlock()
		}
	}()
	if err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	})); err != nil {
		t.Fatal(err)
	}
	p.look(l)
	p.do(chromedp.Navigate(url))
	return p
}

// look changes the window.
func (p *tab) look(l look) {
	p.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	options := []chromedp.EmulateViewportOption{}
	if l.mobile {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	p.do(chromedp.EmulateViewport(l.width, l.height, options...), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval gives the value of an expression.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && is {
			return
		}
		select {
		case <-ctx.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("it never came to: %s (%v)\nthe console: %v", expression, err, p.trouble)
		case <-tick.C:
		}
	}
}

// shows waits until an element is visible and holds a text.
func (p *tab) shows(css, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.textContent.includes(%q))`, css, text))
}

// gone waits until no such element is visible.
func (p *tab) gone(css string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`![...document.querySelectorAll(%q)].some((e) => e.checkVisibility())`, css))
}

// click clicks the middle of the first visible element that matches and holds a text.
func (p *tab) click(css, text string) {
	p.t.Helper()
	p.shows(css, text)
	at := eval[[]float64](p, fmt.Sprintf(`(async () => {
		// What moves is where it was: it is clicked when it has come to rest.
		await Promise.all(document.getAnimations().filter((a) => a.effect.getTiming().iterations !== Infinity).map((a) => a.finished.catch(() => {})));
		const e = [...document.querySelectorAll(%q)].find((e) => e.checkVisibility() && e.textContent.includes(%q));
		e.scrollIntoView({block: "center", inline: "nearest"});
		const r = e.getBoundingClientRect();
		return [r.left + r.width / 2, r.top + r.height / 2];
	})()`, css, text))
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// press sends keys to whatever has the focus.
func (p *tab) press(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys, options...))
}

// enter presses Enter as a keyboard does: whoever takes the key takes its character
// too, which press does not know.
func (p *tab) enter() {
	p.t.Helper()
	for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: typ, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// calm fails the test where the console complained or another host was asked.
func (p *tab) calm(origin string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.trouble) > 0 {
		p.t.Errorf("the console: %v", p.trouble)
	}
	for _, r := range p.requests {
		if _, url, _ := strings.Cut(r, " "); !strings.HasPrefix(url, origin) {
			p.t.Errorf("asks %s", url)
		}
	}
}

// asked counts the requests so far that begin so: "GET /api/state".
func (p *tab) asked(origin, what string) (n int) {
	method, path, _ := strings.Cut(what, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if strings.HasPrefix(r, method+" "+strings.TrimSuffix(origin, "/")+path) {
			n++
		}
	}
	return n
}
