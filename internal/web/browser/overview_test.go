package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

func TestTheFirstScreenSaysItAllWithinASecond(t *testing.T) {
	s := stage(t, "-quiet")
	s.call("rehearsal") // so that somebody has failed
	p := open(t, s.url(), desktop)
	p.shows("#verdict", "An understudy is on.")
	// On a machine that has other work an empty page takes long, too.
	blank := open(t, "http://127.0.0.1:"+site(t)+"/", desktop)
	at, least := p.painted(), blank.painted()
	blank.close()
	if at > max(1000, 8*least) {
		t.Errorf("something is seen after %.0f ms, of a page with a word after %.0f", at, least)
	}
	for css, text := range map[string]string{
		".points":      "Laptop stands in for Workstation in local-draft: frozen.",
		".stage":       "auto-strong",
		".stage-who":   "Laptop",
		".freeze":      "Workstation",
		".freeze .why": "By a person: switched off for the night",
		".last":        "Lead",
		".last-text":   "server_error",
		".figures":     "Answered",
		".cast":        "Anthropic direct",
	} {
		p.shows(css, text)
	}
	// All of it stands above the fold.
	for _, css := range []string{"#verdict", ".stage", ".figures", ".freeze", ".last"} {
		if bottom := eval[float64](p, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().bottom`, css)); bottom > 900 {
			t.Errorf("%s ends at %.0f", css, bottom)
		}
	}
	p.until(`/^1:\d\d:\d\d$/.test(document.querySelector(".freeze .countdown").textContent)`)
	left := eval[string](p, `document.querySelector(".freeze .countdown").textContent`)
	p.until(fmt.Sprintf(`document.querySelector(".freeze .countdown").textContent !== %q`, left))
	p.calm(s.url())
}

// painted is after how many milliseconds something of a page was seen.
func (p *tab) painted() float64 {
	p.t.Helper()
	const first = `performance.getEntriesByType("paint").find((e) => e.name === "first-contentful-paint")`
	p.until(first + ` !== undefined`)
	return eval[float64](p, first+`.startTime`)
}

func TestAFreezeAppearsAndVanishesLive(t *testing.T) {
	s := stage(t, "-quiet")
	p := open(t, s.url(), desktop)
	p.shows(".freeze", "Workstation")
	s.command(`freeze add auto-strong 1 600 "somebody else's doing"`)
	p.shows(".freeze", "Anthropic direct")
	p.shows(".freeze", "somebody else's doing")
	p.shows(".candidate-row .chip", "frozen")
	p.shows("#verdict", "Understudies are on.")
	p.shows(".points", "Bedrock relay stands in for Anthropic direct in auto-strong: frozen.")
	s.command("freeze rm auto-strong 1")
	p.until(`![...document.querySelectorAll(".freeze")].some((e) => e.textContent.includes("Anthropic direct"))`)
	p.shows("#verdict", "An understudy is on.")

	// By a person who looks at the page: freeze, with a reason, and lift.
	p.until(`document.querySelector('[aria-label="Freeze Bedrock relay"]')`)
	p.click(`[aria-label="Freeze Bedrock relay"]`, "")
	p.shows("dialog.box", "Freeze Bedrock relay")
	p.click(".choice", "1 hour")
	p.click(".stack .field", "")
	p.press(`a "quoted" \ reason`)
	p.click("dialog.box .primary", "Freeze")
	p.shows(".toast", "Bedrock relay is frozen.")
	p.shows(".freeze", `a "quoted" \ reason`)
	freezes := s.ask("GET", "/api/state", nil)["freezes"].([]any)
	if len(freezes) != 2 {
		t.Fatalf("%v", freezes)
	}
	if f := freezes[0].(map[string]any); f["candidate"] != "Bedrock relay" || f["by"] != "person" || f["seconds_left"].(float64) < 3500 {
		t.Errorf("%v", f)
	}
	p.click(`[aria-label="Lift the freeze of Bedrock relay"]`, "Lift")
	p.shows(".toast", "Bedrock relay is back.")
	p.until(`!document.querySelector('[aria-label="Lift the freeze of Bedrock relay"]')`)
	p.click(`[aria-label="Lift the freeze of Workstation"]`, "Lift")
	p.shows(".calm", "Nobody is frozen.")
	p.shows("#verdict", "All is well.")
	p.calm(s.url())
}

func TestOtherLengthsOfAFreeze(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url(), desktop)
	p.click(`[aria-label="Freeze OpenRouter"]`, "")
	p.click(".choice.free .field", "")
	p.press("0")
	p.click("dialog.box .primary", "Freeze")
	p.shows("dialog.box", "Freeze OpenRouter") // no minutes are no freeze
	p.press(kb.Backspace + "90" + kb.Enter)
	p.shows(".freeze", "OpenRouter")
	p.until(`/^1:29:\d\d$/.test(document.querySelector(".freeze .countdown").textContent)`)
	p.click(`[aria-label="Freeze Groq"]`, "")
	p.press(kb.Escape)
	p.gone("dialog.box")
	if n := len(s.ask("GET", "/api/state", nil)["freezes"].([]any)); n != 1 {
		t.Errorf("%d freezes", n)
	}
}

func TestTheTargetSwitch(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url(), desktop)
	p.until(`document.querySelector("[role=switch]").getAttribute("aria-checked") === "false"`)
	p.click("[role=switch]", "")
	p.until(`document.querySelector("[role=switch]").getAttribute("aria-checked") === "true"`)
	p.shows(".toast", "target mode is on")
	if on := s.ask("GET", "/api/state", nil)["target_mode"]; on != true {
		t.Error("the switch switches nothing")
	}
	s.command("target off") // somebody else
	p.until(`document.querySelector("[role=switch]").getAttribute("aria-checked") === "false"`)
}

func TestWindowsAndSheets(t *testing.T) {
	s := stage(t, "-quiet")
	p := open(t, s.url(), desktop)
	p.shows(".cast", "Anthropic direct")
	answered := `[...document.querySelectorAll(".candidate-row")].find((e) => e.textContent.includes("Anthropic direct")).querySelector("[data-name=Answered]").textContent`
	recent := eval[string](p, answered)
	p.click(".cast-section .segments button", "all")
	p.until(fmt.Sprintf(`%s !== %q`, answered, recent))
	p.until(`document.querySelector('.cast-section [aria-pressed="true"]').textContent === "all"`)

	// One candidate.
	p.click(".candidate-name", "Anthropic direct")
	p.shows("dialog.sheet h2", "Anthropic direct")
	p.shows("dialog.sheet .plain", "p99")
	p.shows("dialog.sheet .facts", "sk-ant***wAAA")
	p.shows("dialog.sheet .last-text", "2 characters")
	if n := eval[int](p, `document.querySelectorAll("dialog.sheet .plain tbody tr").length`); n < 12 {
		t.Errorf("%d rows", n)
	}
	p.press(kb.Escape)
	p.gone("dialog.sheet")
	if name := eval[string](p, `document.activeElement.textContent`); name != "Anthropic direct" {
		t.Errorf("the focus is on %q", name)
	}
	// A virtual model, with its rules.
	p.click(".model-name", "auto-strong")
	p.shows("dialog.sheet .rules", "fault quota → freeze")
	p.click("dialog.sheet [aria-label=Close]", "")
	p.gone("dialog.sheet")
	p.calm(s.url())
}

func TestCharts(t *testing.T) {
	s := stage(t, "-quiet")
	p := open(t, s.url(), desktop)
	p.until(`document.querySelectorAll(".chart canvas").length === 4`)
	p.shows(".chart", "Requests")
	good := `document.querySelector(".chart .legend-value").textContent`
	p.until(good + ` !== "" && ` + good + ` !== "–"`)
	hour := eval[string](p, good)
	p.click(".charts-section .segments button", "24 h")
	p.until(fmt.Sprintf(`%s !== %q`, good, hour))
	all := eval[string](p, good)
	p.until(`document.querySelectorAll(".charts-section option").length > 4`)
	// The list of a native select is the system's: its choice is told as it tells it.
	eval[any](p, `(() => { const s = document.querySelector(".charts-section select"); s.value = "local-draft"; s.dispatchEvent(new Event("change")); })()`)
	p.until(fmt.Sprintf(`%s !== %q`, good, all))
	p.click(".as-table summary", "")
	p.until(`document.querySelectorAll(".as-table tbody tr").length === 144`)
	if text := eval[string](p, `document.querySelector(".chart .offscreen").textContent`); !strings.HasPrefix(text, "Requests: good ") {
		t.Errorf("a chart reads %q", text)
	}
	p.calm(s.url())
}
