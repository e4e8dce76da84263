package main

import "regexp"

// relative finds links and pictures of a Markdown text that lead to files beside it.
var relative = regexp.MustCompile(`(!?\[[^\]]*\]\()((?:docs|examples|e2e|tools|bench)/[^)\s]*|[A-Z][A-Za-z]*(?:\.md)?)\)`)

// absoluteLinks makes the README's links lead to the repository, since the files
// they name are not in the archives.
func absoluteLinks(text []byte, r Release) []byte {
	return relative.ReplaceAll(text, []byte("${1}"+r.Repository+"/blob/"+r.Tag()+"/${2})"))
}
