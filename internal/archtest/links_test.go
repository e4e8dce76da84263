package archtest

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are all Markdown files of the repository that people read, by their path from
// its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "e2e/*.md", "e2e/*/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			list[filepath.ToSlash(name)] = string(text)
		}
	}
	return list
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```[ \t]*$")
	spanned = regexp.MustCompile("`[^`\n]+`")
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	linked  = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	// What is left of a heading in its anchor: letters, digits, blanks, - and _.
	unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the places in a page that a link can name, as GitHub makes them of its
// headings.
func anchors(text string) map[string]bool {
	list := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list[strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(m[1], "")), ""), " ", "-")] = true
	}
	return list
}

// Every link in a page leads somewhere: a file of the repository, a heading in one, or,
// as far as can be said without asking the network, an address elsewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	links := 0
	for name, text := range all {
		for _, m := range linked.FindAllStringSubmatch(spanned.ReplaceAllString(fenced.ReplaceAllString(text, ""), "``"), -1) {
			links++
			u, err := url.Parse(m[1])
			switch {
			case err != nil || m[1] == "":
				t.Errorf("%s: %q is no link", name, m[1])
				continue
			case u.Scheme == "https" && strings.Contains(u.Host, "."), u.Scheme == "mailto":
				continue
			case u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/"):
				t.Errorf("%s: %q is neither https nor relative", name, m[1])
				continue
			}
			target := name
			if u.Path != "" {
				target = path.Join(path.Dir(name), u.Path)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil || strings.HasPrefix(target, "..") {
				t.Errorf("%s: %q leads nowhere", name, m[1])
			} else if u.Fragment != "" && !anchors(all[target])[u.Fragment] {
				t.Errorf("%s: %q: there is no such heading", name, m[1])
			}
		}
	}
	if links < 60 {
		t.Errorf("%d links", links)
	}
}

// Every page is in docs/README.md, which the site's navigation is made of.
func TestEveryPageIsInTheIndex(t *testing.T) {
	all := pages(t)
	const index = "docs/README.md"
	listed := map[string]bool{index: true}
	for _, m := range linked.FindAllStringSubmatch(all[index], -1) {
		listed[path.Join("docs", m[1])] = true
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !listed[name] {
			t.Errorf("%s does not lead to %s", index, name)
		}
	}
}
