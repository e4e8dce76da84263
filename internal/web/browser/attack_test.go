package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// program is the real thing, over one upstream that counts what it is asked.
type program struct {
	proxy, admin string // "host:port"
	calls        *atomic.Int64
}

const adminToken = "a-token-of-the-stage-door-1"

// run starts the program; more stands in the server section.
func run(t *testing.T, more string) *program {
	t.Helper()
	p := &program{calls: new(atomic.Int64)}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req-of-the-upstream")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"paid for by you"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	path := filepath.Join(dir, "understudy.yaml")
	text := fmt.Sprintf("server: {port: 0, admin: \"127.0.0.1:0\", state_dir: %q%s}\nvirtual_models:\n  auto: [{name: One, base_url: %q, api_key: sk-upstream-secret-0123, model: m}]\n", filepath.Join(dir, "state"), more, upstream.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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
	for lines := bufio.NewScanner(out); p.admin == "" && lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "proxy  http://"); ok {
			p.proxy = url
		}
		_, p.admin, _ = strings.Cut(lines.Text(), "admin  http://")
	}
	if p.proxy == "" || p.admin == "" {
		t.Fatal("it does not say where it listens")
	}
	return p
}

// frozen says whether the program's one candidate is frozen: what an attacker at the
// admin listener would do.
func (p *program) frozen(t *testing.T) bool {
	t.Helper()
	q, err := http.NewRequest("GET", "http://"+p.admin+"/api/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+adminToken)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != 200 {
		t.Fatalf("%d %s %v", a.StatusCode, text, err)
	}
	return strings.Contains(string(text), `"state":"frozen"`) || !strings.Contains(string(text), `"state":"ready"`)
}

// site is a web page of somebody else's, on this machine.
func site(t *testing.T) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>evil</title><h1>evil</h1>")
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// tries runs JavaScript in a page that attacks a base URL, and gives what it read, "" if
// nothing. Every way is waited for.
func (p *tab) tries(base string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`(async () => {
		const base = %q, got = [];
		const chat = JSON.stringify({model: "auto", messages: []}), line = JSON.stringify({line: "freeze add auto 1 600"});
		const read = async (what, url, init) => {
			try {
				const a = await fetch(url, init), text = await a.text();
				if (a.ok || text.includes("paid for") || text.includes("sk-")) got.push(what + ": " + a.status + " " + text);
			} catch {}
		};
		for (const mode of ["cors", "no-cors"]) {
			for (const credentials of ["include", "omit"]) {
				const plain = {method: "POST", mode, credentials, headers: {"Content-Type": "text/plain"}};
				await read("chat", base + "/v1/chat/completions", {...plain, body: chat});
				await read("command", base + "/api/command", {...plain, body: line});
				await read("models", base + "/v1/models", {mode, credentials});
				await read("state", base + "/api/state", {mode, credentials});
				await read("config", base + "/api/config", {mode, credentials});
				await read("metrics", base + "/metrics", {mode, credentials});
			}
		}
		const json = {method: "POST", headers: {"Content-Type": "application/json", "Authorization": "Bearer x"}};
		await read("chat, JSON", base + "/v1/chat/completions", {...json, body: chat});
		await read("command, JSON", base + "/api/command", {...json, body: line});
		await read("config, JSON", base + "/api/config", {...json, method: "PUT", body: "{}"});
		navigator.sendBeacon(base + "/v1/chat/completions", chat);
		navigator.sendBeacon(base + "/api/command", line);
		const settled = (e, ...names) => new Promise((done) => names.forEach((n) => e.addEventListener(n, () => done(n))));
		for (const path of ["/v1/models", "/api/state", "/v1/chat/completions?key=x"]) {
			const i = new Image(), s = document.createElement("script");
			const image = settled(i, "load", "error"), script = settled(s, "load", "error");
			i.src = s.src = base + path;
			document.head.append(s);
			if (await image === "load") got.push("image: " + path);
			if (await script === "load") got.push("script: " + path);
		}
		for (const path of ["/api/events", "/v1/responses"]) {
			const e = new EventSource(base + path);
			if (await settled(e, "open", "error") === "open") got.push("events: " + path);
			e.close();
			const w = new WebSocket(base.replace("http", "ws") + path);
			if (await settled(w, "open", "error") === "open") got.push("socket: " + path);
			w.close();
		}
		const frame = document.createElement("iframe");
		frame.name = "frame";
		frame.src = base + "/login";
		const framed = settled(frame, "load");
		document.body.append(frame);
		await framed;
		for (const [path, name, value] of [["/v1/chat/completions", '{"model":"auto","messages":[],"x":"', '"}'], ["/api/command", '{"line":"freeze add auto 1 600","x":"', '"}'], ["/logout", "a", "b"]]) {
			const form = document.createElement("form"), input = document.createElement("input");
			Object.assign(form, {method: "POST", action: base + path, target: "frame", enctype: "text/plain"});
			Object.assign(input, {name, value});
			form.append(input);
			document.body.append(form);
			const answered = settled(frame, "load");
			form.submit();
			await answered;
		}
		try { got.push("frame: " + frame.contentDocument.body.textContent); } catch {}
		frame.remove();
		return got.join("\n").replace(/frame: $/, "");
	})()`, base))
}

// A web page that a person looks at, whatever origin it comes from, cannot spend a key,
// read an answer, or change anything by way of that person's browser, logged in at the
// dashboard or not; a page of the person's own origin list can, with all of CORS.
func TestAWebPageCannotSpendTheKeys(t *testing.T) {
	own := site(t)
	s := run(t, ", admin_token: "+adminToken+", cors_origins: [\"http://localhost:"+own+"\"], websocket: true")
	// Somebody is logged in, in this very browser.
	login := open(t, "http://"+s.admin+"/", desktop)
	login.shows("h1", "Stage door")
	login.until(`document.activeElement.id === "token"`)
	login.press(adminToken + kb.Enter)
	login.shows("#verdict", "Ready when you are.")
	evil := site(t)
	for _, host := range []string{"127.0.0.1", "localhost"} { // another port, and another site
		page := open(t, "http://"+host+":"+evil+"/", desktop)
		for _, base := range []string{"http://" + s.proxy, "http://" + s.admin, "http://localhost:" + s.proxy[strings.LastIndexByte(s.proxy, ':')+1:]} {
			if got := page.tries(base); got != "" {
				t.Errorf("a page of %s reads at %s:\n%s", host, base, got)
			}
		}
		page.close()
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
	if s.frozen(t) {
		t.Error("a page has changed something")
	}
	login.do(chromedp.Navigate("http://" + s.admin + "/"))
	login.shows("#verdict", "Ready when you are.") // nobody was logged out either

	page := open(t, "http://localhost:"+own+"/", desktop)
	got := eval[string](page, fmt.Sprintf(`(async () => {
		const a = await fetch(%q, {method: "POST", headers: {"Content-Type": "application/json", "Authorization": "Bearer x", "X-Stainless-OS": "web"}, body: JSON.stringify({model: "auto", messages: []})});
		return a.status + " " + a.headers.get("x-understudy-candidate") + " " + a.headers.get("x-request-id") + " " + await a.text();
	})()`, "http://"+s.proxy+"/v1/chat/completions"))
	if !strings.HasPrefix(got, "200 One req-of-the-upstream ") || !strings.Contains(got, "paid for by you") || s.calls.Load() != 1 {
		t.Errorf("a listed page got %s, by %d calls", got, s.calls.Load())
	}
}

// A domain that comes to stand for this machine (DNS rebinding) makes a page of it the
// listener's own as the browser sees it; the name gives it away.
func TestARebindingPageGetsNothing(t *testing.T) {
	s := run(t, "")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP rebind.example 127.0.0.1"))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	browser, closing := chromedp.NewContext(allocator)
	defer closing()
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	for _, listener := range []string{s.proxy, s.admin} {
		name := "rebind.example:" + listener[strings.LastIndexByte(listener, ':')+1:]
		// The page has come from there: whatever it asks is of its own origin.
		page := openIn(t, browser, "http://"+name+"/", desktop)
		page.until(`document.body.textContent.includes("allowed_hosts")`)
		origin := eval[string](page, `location.origin`)
		if origin != "http://"+name {
			t.Fatalf("the page is of %s", origin)
		}
		got := eval[string](page, `(async () => {
			const got = [];
			for (const [method, path, body] of [
				["GET", "/v1/models"], ["POST", "/v1/chat/completions", {model: "auto", messages: []}], ["GET", "/healthz"], ["GET", "/api/state"], ["GET", "/api/config"],
				["POST", "/api/command", {line: "freeze add auto 1 600"}], ["GET", "/metrics"], ["GET", "/login"], ["GET", "/"],
			]) {
				const a = await fetch(path, {method, body: body && JSON.stringify(body), headers: body ? {"Content-Type": "application/json"} : {}});
				const text = await a.text();
				if (a.status !== 403) got.push(path + ": " + a.status + " " + text);
			}
			return got.join("\n");
		})()`)
		// Whoever watches over the process asks the admin listener by any name, and
		// learns nothing but that it is there.
		if listener == s.admin {
			got = strings.Replace(strings.TrimSpace(got), `/healthz: 200 {"status":"ok"}`, "", 1)
		}
		if strings.TrimSpace(got) != "" {
			t.Errorf("a page of %s gets %s", name, got)
		}
	}
	if n := s.calls.Load(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(deadline, "GET", "http://"+s.admin+"/api/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if text, err := io.ReadAll(a.Body); err != nil || !strings.Contains(string(text), `"state":"ready"`) {
		t.Errorf("a page has changed something: %s %v", text, err)
	}
}
