package browser

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// find puts the caret behind a text of the editor, and selects so many characters
// before it.
func (p *tab) find(text string, selected int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(".code-area")?.value.includes(%q)`, text))
	eval[any](p, fmt.Sprintf(`(() => { const a = document.querySelector(".code-area"); const i = a.value.indexOf(%q); a.focus(); a.setSelectionRange(i + %d, i + %d); })()`, text, len(text)-selected, len(text)))
}

// field is what the editor holds.
func (p *tab) field() string {
	p.t.Helper()
	return eval[string](p, `document.querySelector(".code-area").value`)
}

func TestTheFileIsEditedInPlace(t *testing.T) {
	s := stage(t, "-bare")
	before := s.file()
	p := open(t, s.url()+"#/config", desktop)
	p.shows(".config-head .chip", "in force")
	p.shows(".code-paint", "auto_hedge_threshold")
	p.shows(".tok-mask", "sk-ant***wAAA")
	if text := eval[string](p, `document.documentElement.outerHTML + document.querySelector(".code-area").value`); strings.Contains(text, "QmVja2V0dCBTYW11ZWw") || strings.Contains(text, "tm-primary-7c6b") {
		t.Error("a secret is in the page")
	}
	disabled := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".config-actions button")].find((b) => b.textContent === %q).disabled`, name)
	}
	p.until(disabled("Apply"))

	// A mistake is marked where it is, and cannot be applied.
	p.find("auto_hedge_threshold: 5", 1)
	p.press("five")
	p.shows(".config-head .chip", "1 mistake")
	p.shows(".problem", "Line 7")
	p.until(`document.querySelectorAll(".code-line")[6].dataset.mark === "error" && document.querySelectorAll(".code-gutter span")[6].dataset.mark === "error"`)
	p.until(disabled("Apply"))
	p.press("s", chromedp.KeyModifiers(chromedp.ModifierCtrl)) // nor by its key
	p.click(".problem", "Line 7")
	p.until(`(() => { const a = document.querySelector(".code-area"); return document.activeElement === a && a.value.slice(0, a.selectionStart).split("\n").length === 7; })()`)
	if s.file() != before {
		t.Fatal("a file with a mistake was written")
	}

	// Mended, it can be; the difference can be looked at first.
	p.find("auto_hedge_threshold: five", 4)
	p.press("4")
	p.shows(".config-head .chip", "edited, +1 −1 lines")
	p.shows(".calm", "No mistakes.")
	p.click(".config-actions button", "Review")
	p.shows(".diff-out", "auto_hedge_threshold: 5")
	p.shows(".diff-in", "auto_hedge_threshold: 4")
	p.press(kb.Escape)
	p.gone("dialog.box")
	p.find("# our prompts are short", 0)
	p.press(" here")
	p.click(".config-actions button", "Apply")
	p.shows(".toast", "Applied.")
	p.shows(".config-head .chip", "in force")
	want := strings.Replace(strings.Replace(before, "auto_hedge_threshold: 5", "auto_hedge_threshold: 4", 1), "# our prompts are short", "# our prompts are short here", 1)
	if got := s.file(); got != want {
		t.Errorf("the file is\n%s\nnot\n%s", got, want)
	}
	p.until(disabled("Apply"))
	// It is in force: what it says is what is done.
	p.find("cooldown_seconds: 45", 2)
	p.press("50")
	p.shows(".config-head .chip", "edited")
	p.press("s", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.shows(".config-head .chip", "in force")
	if !strings.Contains(s.file(), "cooldown_seconds: 50") {
		t.Error("Ctrl+S applies nothing")
	}
	p.calm(s.url())
}

func TestSecretsAreChangedAndMoved(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url()+"#/config", desktop)
	p.find("sk-or-***0718", 13)
	p.press("sk-or-v1-new-key-of-openrouter-9999")
	p.shows(".config-head .chip", "edited")
	p.click(".config-actions button", "Apply")
	p.shows(".tok-mask", "sk-or-***9999") // covered as soon as it is applied
	if file := s.file(); !strings.Contains(file, "api_key: sk-or-v1-new-key-of-openrouter-9999\n") || !strings.Contains(file, "rk-live-4f9c2a7788d1e0b35566") {
		t.Error("the new key is not in the file, or another is not any more")
	}
	// Half a mask is refused.
	p.find("rk-liv***5566", 4)
	p.press(kb.Backspace)
	p.shows(".problem", "a mask")
	p.until(`document.querySelector(".config-actions .primary").disabled`)
	p.click(".config-actions button", "Discard")
	p.shows(".config-head .chip", "in force")
	if !strings.Contains(p.field(), "rk-liv***5566") {
		t.Error("Discard does not")
	}
	p.calm(s.url())
}

func TestNobodysChangeIsOverwritten(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url()+"#/config", desktop)
	p.find("auto_hedge_minutes: 10", 2)
	p.press("11")
	p.shows(".config-head .chip", "edited")

	// Somebody else edits another place.
	theirs := strings.Replace(s.file(), "cooldown_seconds: 45", "cooldown_seconds: 60 # theirs", 1)
	if err := os.WriteFile(s.config, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command("reload")
	p.shows(".banner", "The file has changed on disk since you began.")
	p.shows(".config-head .chip", "changed on disk")
	p.click(".banner button", "Show what changed")
	p.shows(".diff-in", "cooldown_seconds: 60 # theirs")
	p.press(kb.Escape)
	p.gone("dialog.box")
	if s.file() != theirs {
		t.Fatal("it was overwritten")
	}
	p.click(".banner button", "Put my edit onto it")
	p.shows(".config-head .chip", "edited, +1 −1 lines")
	p.click(".config-actions button", "Apply")
	p.shows(".toast", "Applied.")
	if want := strings.Replace(theirs, "auto_hedge_minutes: 10", "auto_hedge_minutes: 11", 1); s.file() != want {
		t.Errorf("the file is\n%s", s.file())
	}

	// The same place cannot be put together; and a page that knows of nothing is
	// refused by the server.
	p.find("auto_hedge_minutes: 11", 2)
	p.press("12")
	p.shows(".config-head .chip", "edited")
	theirs = strings.Replace(s.file(), "auto_hedge_minutes: 11", "auto_hedge_minutes: 13", 1)
	if err := os.WriteFile(s.config, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	p.press("s", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.shows(".banner", "The file has changed")
	if s.file() != theirs {
		t.Fatal("it was overwritten")
	}
	if eval[bool](p, `[...document.querySelectorAll(".banner button")].some((b) => b.textContent.includes("onto it"))`) {
		t.Error("two edits of one line can be put together")
	}
	p.click(".banner button", "Take it, drop my edit")
	p.gone(".banner")
	if !strings.Contains(p.field(), "auto_hedge_minutes: 13") {
		t.Error("theirs is not taken")
	}
}

func TestABrokenFileIsShownAndMended(t *testing.T) {
	s := stage(t, "-bare")
	good := s.file()
	p := open(t, s.url(), desktop)
	p.shows("#verdict", ".")
	if err := os.WriteFile(s.config, []byte(strings.Replace(good, "weight: 2\n", "weight: [2\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.shows(".strip", "The configuration file has errors; the former one is in force.")
	p.shows("#verdict", "The configuration file has errors.")
	p.click(".strip a", "Show it")
	p.shows(".problem", "Line")
	p.shows(".config-head .chip", "mistake")
	if strings.Contains(p.field(), "tm-primary-7c6b") {
		t.Error("a broken file shows a secret")
	}
	p.find("weight: [2", 2)
	p.press("2")
	p.shows(".config-head .chip", "edited")
	p.click(".config-actions button", "Apply")
	p.shows(".toast", "Applied.")
	if s.file() != good {
		t.Errorf("the file is\n%s", s.file())
	}
	p.gone(".strip")
}

func TestAnEditIsKeptWhileOneLooksElsewhere(t *testing.T) {
	s := stage(t, "-bare")
	p := open(t, s.url()+"#/config", desktop)
	p.find("auto_hedge_minutes: 10", 2)
	p.press("15" + kb.End)
	p.enter()
	p.press("# indented as the line above")
	p.until(`document.querySelector('.tabs [data-view="config"]').hasAttribute("data-dirty")`)
	p.click(".tabs a", "Requests")
	p.shows(".view-title", "Requests")
	p.click(".tabs a", "Configuration")
	p.shows(".view-title", "Configuration")
	if !strings.Contains(p.field(), "auto_hedge_minutes: 15\n  # indented") {
		t.Errorf("the edit is gone:\n%s", p.field())
	}
}
