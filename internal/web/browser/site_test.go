//go:build site

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTheSiteIsReadAndSearched looks at the pages of docs/ as tools/site.sh has built them
// in the folder that SITE names: from a disk, narrow and wide, in the light and in the dark.
// With PICTURES they are kept there.
func TestTheSiteIsReadAndSearched(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(os.Getenv("SITE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []look{{1280, 900, false, false}, {1280, 900, true, false}, {380, 800, false, true}, {380, 800, true, true}} {
		for _, page := range []struct {
			name string
			once bool // not at every look
			make func(p *tab)
		}{
			{"index.html", true, func(p *tab) {}},
			{"docs/configuration.html", false, func(p *tab) {}},
			{"docs/dashboard.html", true, func(p *tab) {}},
			{"docs/affinity.html", false, func(p *tab) { // the search, from a page in a folder
				p.click("#search", "")
				p.press("stall_timeout")
				p.shows("#found li", "Configuration: Server")
			}},
		} {
			if page.once && l.dark != l.mobile {
				continue
			}
			name := fmt.Sprintf("%s %d dark %v", page.name, l.width, l.dark)
			t.Run(name, func(t *testing.T) {
				p := open(t, "file://"+filepath.Join(folder, page.name), l)
				defer p.close()
				page.make(p)
				if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > int(l.width) {
					t.Errorf("it is %d wide", wide)
				}
				if l.dark == l.mobile && page.name != "docs/configuration.html" { // which is long, and nothing else
					eval[any](p, string(axe)+"; null")
					for _, text := range eval[[]string](p, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]})
						.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary.split("\n").slice(1).join(" "))))`) {
						t.Error(text)
					}
				}
				if dir := os.Getenv("PICTURES"); dir != "" {
					picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(name)+".png"), picture, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				for _, r := range p.requests {
					if !strings.HasPrefix(r, "GET file://"+folder) && !strings.HasPrefix(r, "GET data:") {
						t.Errorf("it asks for %s", r)
					}
				}
			})
		}
	}

	p := open(t, "file://"+filepath.Join(folder, "docs/cli.html"), desktop)
	p.click("#search", "")
	p.press("who is frozen")
	p.until(`document.querySelectorAll("#found li").length > 2`)
	p.press(kb.ArrowDown + kb.ArrowDown)
	p.until(`document.activeElement === document.querySelectorAll("#found a")[1]`)
	p.press("\r")
	p.until(`!location.pathname.endsWith("cli.html") && document.getElementById(decodeURIComponent(location.hash.slice(1)))`)

	p = open(t, "file://"+filepath.Join(folder, "docs/cli.html"), look{380, 800, false, true})
	p.gone("#pages")
	p.click("#menu", "Pages")
	p.click("#pages a", "Hedging")
	p.until(`location.pathname.endsWith("hedging.html")`)
}
