package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPictures takes the pictures of the documentation: every view at two widths, in
// the light and in the dark. They are kept where PICTURES says, and looked at by
// people; without it this only sees to it that they can be taken.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	s := raise(t, "-quiet", "-show")
	shots := []struct {
		name string
		hash string
		make func(p *tab)
	}{
		{"overview", "#/", func(p *tab) { p.until(`document.querySelectorAll(".chart canvas").length === 4`) }},
		{"requests", "#/requests", func(p *tab) { p.until(rows + " > 30") }},
		{"trail", "#/requests/req_5d1c0e77b2a94f6c8d3e21aa", func(p *tab) { p.shows(".tl-release", "released") }},
		{"configuration", "#/config", func(p *tab) {
			p.find("auto_hedge_minutes: 10", 2)
			p.press("ten")
			p.shows(".problem", "Line 8")
			eval[any](p, `document.activeElement.blur()`)
			eval[any](p, `document.querySelector(".editor").scrollTo(0, 0)`)
		}},
	}
	for _, l := range []look{{1280, 860, false, false}, {1280, 860, true, false}, {380, 800, false, true}, {380, 800, true, true}} {
		for _, shot := range shots {
			p := open(t, s.url()+shot.hash, l)
			p.until(`document.fonts.status === "loaded" && document.fonts.check("520 38px Fraunces") && document.fonts.check("14px Geist")`)
			shot.make(p)
			eval[any](p, `Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {}))).then(() => null)`)
			picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			p.close()
			name := shot.name + map[bool]string{true: "-narrow"}[l.mobile] + map[bool]string{true: "-dark", false: "-light"}[l.dark] + ".png"
			if dir == "" {
				continue
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
