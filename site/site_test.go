//go:build site

// Package site is the pages of docs/ as a site. Its test builds it with Hugo, so it runs
// only where that is (make site).
package site

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// A built page: what it links to, what it loads, and the places in it.
type built struct {
	links, loads []string
	ids, code    map[string]bool
}

func read(t *testing.T, file string) built {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	b := built{ids: map[string]bool{}, code: map[string]bool{}}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "code" && n.FirstChild != nil {
			b.code[n.FirstChild.Data] = true
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" && b.ids[a.Val]:
				t.Errorf("%s: two things have the id %s", file, a.Val)
			case a.Key == "id":
				b.ids[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				b.links = append(b.links, a.Val)
			case a.Key == "href", a.Key == "src", a.Key == "srcset":
				b.loads = append(b.loads, a.Val)
			}
		}
	}
	return b
}

// Every page is there; every link leads to a page, a place in it or a file; nothing is
// loaded from elsewhere; the search knows every page; and the reference of the
// configuration has every key of the schema.
func TestTheSite(t *testing.T) {
	out := t.TempDir()
	if said, err := exec.Command("hugo", "--panicOnWarning", "--destination", out).CombinedOutput(); err != nil {
		t.Fatalf("hugo: %v\n%s", err, said)
	}
	pages := map[string]built{}
	err := filepath.WalkDir(out, func(file string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".html") {
			name, rel := filepath.Rel(out, file)
			pages[filepath.ToSlash(name)], err = read(t, file), rel
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			name := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../"), ".md")) + ".html"
			if name == "docs/readme.html" {
				name = "docs.html"
			}
			if _, ok := pages[name]; !ok {
				t.Errorf("the site has no %s", name)
			}
		}
	}

	for name, page := range pages {
		for _, link := range append(page.links, page.loads...) {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				continue
			}
			to := name
			if u.Path != "" {
				to = path.Join(path.Dir(name), u.Path)
			}
			info, err := os.Stat(filepath.Join(out, to))
			if err != nil || info.IsDir() {
				t.Errorf("%s: %q leads nowhere", name, link)
			} else if u.Fragment != "" && !pages[to].ids[u.Fragment] {
				t.Errorf("%s: %q: there is no such place", name, link)
			}
		}
		for _, load := range page.loads {
			if strings.Contains(load, "//") {
				t.Errorf("%s loads %s from elsewhere", name, load)
			}
		}
	}
	for _, name := range []string{"site.css", "site.js", "icon.svg"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""); strings.Contains(s, "http") || strings.Contains(s, "@import") || strings.Contains(s, "url(") {
			t.Errorf("%s loads something", name)
		}
	}

	search(t, out, pages)

	schema, err := os.ReadFile("../docs/understudy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(schema, &v); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	properties(v, keys)
	if len(keys) < 80 {
		t.Errorf("the schema has %d keys", len(keys))
	}
	for key := range keys {
		if !pages["docs/configuration.html"].code[key] {
			t.Errorf("the reference has no %s", key)
		}
	}
}

// search checks the index of the search: it leads to places that are there, and to every
// page.
func search(t *testing.T, out string, pages map[string]built) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ P, A, T, H, B string }
	if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(text)), "pages("), ");")), &parts); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range parts {
		known[p.P] = true
		if !pages[p.P].ids[p.A] || p.T == "" || p.H == "" {
			t.Errorf("the search leads to %q in %q, %q: %q", p.A, p.P, p.T, p.H)
		}
	}
	for name := range pages {
		if !known[name] {
			t.Errorf("the search does not know %s", name)
		}
	}
}

// properties collects the keys that a schema allows.
func properties(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, one := range v {
			if all, is := one.(map[string]any); is && name == "properties" {
				for key := range all {
					keys[key] = true
				}
			}
			properties(one, keys)
		}
	case []any:
		for _, one := range v {
			properties(one, keys)
		}
	}
}
