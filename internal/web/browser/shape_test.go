package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// A scene is one state of the dashboard that is looked at as a whole.
type scene struct {
	name string
	hash string
	make func(p *tab)
}

var scenes = []scene{
	{"overview", "#/", func(p *tab) {
		p.until(`document.querySelectorAll(".chart canvas").length === 4`)
		p.click(".as-table summary", "")
		p.until(`document.querySelectorAll(".as-table tbody tr").length > 30`)
	}},
	{"candidate", "#/", func(p *tab) { p.click(".candidate-name", "Workstation"); p.shows("dialog.sheet .facts", "Key") }},
	{"model", "#/", func(p *tab) { p.click(".model-name", "auto-strong"); p.shows("dialog.sheet .rules", "freeze") }},
	{"freeze", "#/", func(p *tab) { p.click(`[aria-label="Freeze OpenRouter"]`, ""); p.shows("dialog.box", "Freeze") }},
	{"requests", "#/requests", func(p *tab) { p.until(rows + " > 10") }},
	{"nothing found", "#/requests", func(p *tab) { p.click(".search input", ""); p.press("zzz"); p.shows(".empty", "No such request") }},
	{"trail", "#/requests?model=rehearsal", func(p *tab) {
		p.click(".requests tbody tr", "Stand-in")
		p.click(".attempt summary", "What it said")
		p.shows(".attempt pre", "error")
	}},
	{"exhausted", "#/requests?model=tragedy", func(p *tab) {
		p.click(".requests tbody tr", "exhausted")
		p.shows("dialog.sheet h2", "Nobody was left")
	}},
	{"configuration", "#/config", func(p *tab) { p.shows(".tok-mask", "sk-ant") }},
	{"mistakes", "#/config", func(p *tab) {
		p.find("auto_hedge_threshold: 5", 1)
		p.press("five")
		p.shows(".problem", "Line 7")
	}},
	{"difference", "#/config", func(p *tab) {
		p.find("auto_hedge_threshold: 5", 1)
		p.press("9")
		p.shows(".config-head .chip", "edited")
		p.click(".config-actions button", "Review")
		p.shows(".diff-in", "9")
	}},
	{"keyboard", "#/", func(p *tab) { p.shows("#verdict", "."); p.press("?"); p.shows("dialog.box", "Keyboard") }},
}

// gallery is a stage with something of everything.
func gallery(t *testing.T) *server {
	s := stage(t, "-quiet")
	for range 2 {
		s.call("rehearsal")
	}
	s.call("tragedy")
	s.call("patience")
	s.command(`freeze add auto-strong 1 540 "429 Too Many Requests: you exceeded your current quota, please check your plan and billing details"`)
	return s
}

// TestEveryViewFitsAndCanBeRead looks at every scene narrow and wide, in the light
// and in the dark: nothing is wider than the window, and axe finds nothing that WCAG 2.2
// AA forbids, contrast of all texts included.
func TestEveryViewFitsAndCanBeRead(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	s := gallery(t)
	for _, l := range []look{{380, 800, false, true}, {380, 800, true, true}, {900, 700, true, false}, {1280, 900, false, false}, {1280, 900, true, false}} {
		for _, scene := range scenes {
			t.Run(fmt.Sprintf("%s %d dark %v", scene.name, l.width, l.dark), func(t *testing.T) {
				p := open(t, s.url()+scene.hash, l)
				scene.make(p)
				eval[any](p, `document.fonts.ready.then(() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {})))).then(() => null)`)
				if wide := eval[int](p, `Math.max(document.scrollingElement.scrollWidth, ...[...document.querySelectorAll("dialog[open], .sheet-body")].map((e) => e.scrollWidth))`); wide > int(l.width) {
					t.Errorf("it is %d wide: %v", wide, eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > %d && !e.closest(".scroll, .code, .diff, .tabs")).slice(0, 8).map((e) => e.tagName + "." + e.className)`, l.width)))
				}
				eval[any](p, string(axe)+"; null")
				found := eval[[]string](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]})
					.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.split("\n").slice(1).join(" "))))`)
				for _, text := range found {
					t.Error(text)
				}
			})
		}
	}
}

// TestNothingJumps watches the page while it is fed: what is there stays where it is.
func TestNothingJumps(t *testing.T) {
	s := stage(t, "-pace", "8")
	for _, l := range []look{desktop, {380, 800, false, true}} {
		p := open(t, s.url(), l)
		p.until(`document.querySelectorAll(".chart canvas").length === 4`)
		eval[any](p, `(() => { window.moved = 0; window.views = 0; window.movers = [];
			new PerformanceObserver((l) => { for (const e of l.getEntries()) { window.moved += e.value; window.movers.push(...e.sources.map((s) => s.node?.className || s.node?.nodeName)); } }).observe({type: "layout-shift", buffered: false});
			new MutationObserver(() => window.views++).observe(document.querySelector(".figures"), {subtree: true, childList: true, characterData: true}); })()`)
		p.until("window.views > 12")
		if moved := eval[float64](p, "window.moved"); moved > 0.05 {
			t.Errorf("at %d px it moved by %.3f: %v", l.width, moved, eval[[]string](p, "window.movers"))
		}
		// Digits are of one width.
		if w := eval[[]float64](p, `["1111", "8888", "0000"].map((t) => { const e = document.createElement("span"); e.className = "figure-value"; e.textContent = t; e.style.position = "absolute"; document.body.append(e); const w = e.getBoundingClientRect().width; e.remove(); return w; })`); w[0] != w[1] || w[1] != w[2] {
			t.Errorf("digits are %v wide", w)
		}
	}
}

func TestThemesAndMotion(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url(), desktop)
	p.shows("#verdict", ".")
	paper := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](p, paper)
	p.look(look{1280, 900, true, false}) // the system's
	p.until(fmt.Sprintf("%s !== %q", paper, light))
	p.click(`[aria-label="Theme: auto"]`, "")
	p.until(fmt.Sprintf("%s === %q", paper, light)) // one's own
	p.click(`[aria-label="Theme: light"]`, "")
	p.until(fmt.Sprintf("%s !== %q", paper, light))
	again := open(t, s.url(), desktop)
	again.shows("#verdict", ".")
	if now := eval[string](again, paper); now == light {
		t.Error("the theme is forgotten")
	}
	again.click(`[aria-label="Theme: dark"]`, "")
	again.press(kb.Tab)
	if css := eval[string](p, `[...document.styleSheets].flatMap((s) => [...s.cssRules]).map((r) => r.cssText).join("\n")`); !strings.Contains(css, "prefers-reduced-motion: reduce") {
		t.Error("motion is not reduced where it is not wanted")
	}
}
