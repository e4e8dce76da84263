package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// rows counts the requests that are listed.
const rows = `document.querySelectorAll(".requests tbody tr").length`

func TestTheListOfRequestsIsLive(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url()+"#/requests", desktop)
	p.shows(".empty", "No request yet")
	if status := s.call("local-draft"); status != 200 && status != 502 {
		t.Fatal(status)
	}
	p.until(rows + " === 1")
	s.call("rehearsal")
	p.until(rows + " === 2")
	p.shows(".requests tr:first-child", "rehearsal") // the newest first
	p.shows(".requests tr:first-child", "Stand-in")
	p.shows(".requests tr:first-child", "saved")
	s.call("tragedy")
	p.until(rows + " === 3")
	p.shows(".requests tr:first-child", "exhausted")
	p.shows(".tally-line", "3 requests, 2 saved after a failure")

	// Paused, it stays as it is, and counts.
	p.click("button", "Pause")
	s.call("rehearsal")
	p.shows("button", "1 new one")
	if n := eval[int](p, rows); n != 3 {
		t.Errorf("%d rows while it is paused", n)
	}
	p.click("button", "1 new one")
	p.until(rows + " === 4")

	// Filters.
	p.click(".filters .segments button", "Failed")
	p.until(rows + " === 1")
	p.shows(".requests tr", "tragedy")
	p.until(`location.hash === "#/requests?only=failed"`)
	p.click(".filters .segments button", "Saved")
	p.until(rows + " === 3")
	p.click(".filters .segments button", "All")
	eval[any](p, `(() => { const s = document.querySelector(".filters select"); s.value = "tragedy"; s.dispatchEvent(new Event("change")); })()`)
	p.until(rows + " === 1")
	eval[any](p, `(() => { const s = document.querySelector(".filters select"); s.value = ""; s.dispatchEvent(new Event("change")); })()`)
	p.until(rows + " === 4")
	p.click(".search input", "")
	p.press("stand-in")
	p.until(rows + " === 2")
	p.press("no such thing")
	p.shows(".empty", "No such request")
	p.calm(s.url())
}

func TestATrailIsATimeline(t *testing.T) {
	s := stage(t, "-bare")
	s.call("rehearsal")
	p := open(t, s.url()+"#/requests", desktop)
	p.click(".requests tbody tr", "Stand-in")
	p.shows("dialog.sheet h2", "Stand-in answered, after one failure.")
	p.shows(".plan", "Lead")
	p.shows(".tl-release", "released")
	p.shows(".attempt", "bad_stream")
	p.shows(".attempt", "built-in")
	p.shows(".attempt", "error event")
	p.shows(".attempt", "healthy")
	lanes := eval[[]map[string]float64](p, `[...document.querySelectorAll(".tl-track")].map((t) => { const r = [...t.querySelectorAll(".tl-piece")].map((x) => x.getBoundingClientRect()); return {left: Math.min(...r.map((x) => x.left)), right: Math.max(...r.map((x) => x.right))}; })`)
	if len(lanes) != 2 || lanes[1]["left"] < lanes[0]["left"] || lanes[1]["right"] <= lanes[0]["right"] {
		t.Errorf("lanes %v", lanes)
	}
	if label := eval[string](p, `document.querySelector(".timeline").getAttribute("aria-label")`); !strings.Contains(label, "Lead: failed") || !strings.Contains(label, "Stand-in: ok") || !strings.Contains(label, "Released after") {
		t.Errorf("the timeline reads %q", label)
	}
	// What it said is there for those who want it.
	p.click(".attempt summary", "What it said")
	p.shows(".attempt pre", "server_error")
	// The address leads here again.
	hash := eval[string](p, "location.hash")
	if !strings.HasPrefix(hash, "#/requests/req_") {
		t.Fatal(hash)
	}
	p.press(kb.Escape)
	p.gone("dialog.sheet")
	p.until(`location.hash === "#/requests"`)
	again := open(t, s.url()+hash, desktop)
	again.shows("dialog.sheet h2", "Stand-in answered, after one failure.")
	gone := open(t, s.url()+"#/requests/req_nobody", desktop)
	gone.shows("dialog.sheet .empty", "It cannot be shown")
	p.calm(s.url())
}

func TestWaitsStandInTheTimeline(t *testing.T) {
	s := stage(t, "-bare")
	s.call("patience")
	p := open(t, s.url()+"#/requests", desktop)
	p.click(".requests tbody tr", "Calm")
	p.shows("dialog.sheet h2", "Calm answered, after")
	p.until(`document.querySelectorAll(".tl-track").length >= 3`)
	p.until(`document.querySelectorAll(".tl-track .tl-wait").length >= 1`)
	p.shows(".attempt-then", "retry")
	p.shows(".attempt-then", "waited")
}

func TestTheKeyboardDoesItAll(t *testing.T) {
	s := stage(t, "-bare")
	for range 3 {
		s.call("rehearsal")
	}
	p := open(t, s.url(), desktop)
	p.shows("#verdict", ".")
	p.press("2")
	p.until(rows + " === 3")
	p.press("j")
	p.press("j")
	p.until(`[...document.querySelectorAll(".requests tbody tr")].findIndex((r) => r.classList.contains("marked")) === 1`)
	p.press("k")
	p.until(`[...document.querySelectorAll(".requests tbody tr")].findIndex((r) => r.classList.contains("marked")) === 0`)
	p.press(kb.Enter)
	p.shows("dialog.sheet h2", "Stand-in answered")
	p.press(kb.Escape)
	p.gone("dialog.sheet")
	p.press("p")
	p.shows("button", "Paused")
	p.press("/")
	p.until(`document.activeElement.type === "search"`)
	eval[any](p, `document.activeElement.value = ""`) // a real keyboard types no / there, see enter
	p.press("2p")                                     // text now, and no shortcuts
	p.until(`document.activeElement.value === "2p" && location.hash === "#/requests"`)
	p.press(kb.Escape)
	eval[any](p, `document.activeElement.blur()`)
	p.press("?")
	p.shows("dialog.box", "Keyboard")
	p.press(kb.Escape)
	p.gone("dialog.box")
	p.press("3")
	p.shows(".view-title", "Configuration")
	p.press("1")
	p.shows("#verdict", ".")

	// By Tab alone: first to the content, then through the bar, always to be seen.
	eval[any](p, `document.activeElement.blur()`)
	p.press(kb.Tab)
	if first := eval[string](p, `document.activeElement.textContent`); first != "Skip to the content" {
		t.Errorf("Tab leads to %q first", first)
	}
	seen := map[string]bool{}
	for range 60 {
		p.press(kb.Tab)
		at := eval[map[string]any](p, `(() => { const e = document.activeElement; const s = getComputedStyle(e); const r = e.getBoundingClientRect();
			return {name: (e.getAttribute("aria-label") ?? e.textContent).trim().slice(0, 40), outline: s.outlineStyle + " " + s.outlineWidth, wide: r.width, body: e === document.body}; })()`)
		if at["body"] == true {
			break
		}
		name := at["name"].(string)
		seen[name] = true
		if at["outline"] == "none 0px" || strings.HasPrefix(at["outline"].(string), "none") || at["wide"].(float64) < 1 {
			t.Errorf("%q has the focus, and nobody sees it: %v", name, at)
		}
	}
	for _, name := range []string{"Overview", "Requests", "Configuration", "Target mode", "Keyboard shortcuts", "10 min", "Anthropic direct", "Freeze Anthropic direct"} {
		found := false
		for have := range seen {
			found = found || strings.Contains(have, name)
		}
		if !found {
			t.Errorf("Tab never comes to %q", name)
		}
	}
}

func TestHostileNamesAndWordsStayText(t *testing.T) {
	s := stage(t, "-bare")
	s.call("<img src=x onerror=alert(1)>")
	p := open(t, s.url(), desktop)
	p.shows(".model-name", "<img src=x onerror=alert(1)>")
	p.shows(".candidate-name", `<b>bold</b> & "quoted"`)
	p.shows(".candidate-cell .under", "<script>alert(2)</script>")
	p.shows(".last-text", `<img src=x onerror="document.title='owned'"><script>alert(3)</script>`)
	p.click(".candidate-name", "<b>bold</b>")
	p.shows("dialog.sheet h2", "<b>bold</b>")
	p.press(kb.Escape)
	p.click(".model-name", "<img")
	p.shows("dialog.sheet h2", "<img")
	p.click("dialog.sheet a", "Its requests")
	p.until(rows + " === 1")
	p.click(".requests tbody tr", "<img")
	p.shows(".attempt-text", "<script>alert(3)</script>")
	p.click(".attempt summary", "What it said")
	p.shows(".attempt pre", `\u202e`) // not the character
	p.press(kb.Escape)
	p.press("3")
	p.shows(".code-paint", "<script>alert(2)</script>")
	for _, css := range []string{"img", "b b", "i i", "main script", "[onerror]"} {
		if n := eval[int](p, fmt.Sprintf(`document.querySelectorAll(%q).length`, css)); n != 0 {
			t.Errorf("%d of %s", n, css)
		}
	}
	if text := eval[string](p, `document.documentElement.textContent`); strings.ContainsAny(text, "\u202e\x1b") {
		t.Error("a character that turns or colours text is in the page")
	}
	if title := eval[string](p, "document.title"); title == "owned" {
		t.Error("it ran")
	}
	p.calm(s.url())
}
