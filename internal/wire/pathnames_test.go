package wire

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesInPath(t *testing.T) {
	for request, want := range map[string]string{
		"POST /v1/chat/completions":                                    "",
		"POST /v1/rerank":                                              "",
		"POST /models/chat/completions":                                "",
		"POST /v1internal:generateContent":                             "",
		"POST /v1beta/models/g:generateContent":                        "g",
		"POST /v1beta/models/a%2Fb:generateContent":                    "a/b",
		"POST /v1beta/models/a/b:generateContent":                      "a/b",
		"POST /v1beta/models%2Fg:generateContent":                      "g models/g", // a name too many does no harm
		"POST /v1beta/models%2fg%3AgenerateContent":                    "g models/g",
		"POST /v1beta%2Fmodels%252Fg%253AgenerateContent":              "g models/g",
		"POST /v1beta%2fmodels%2fg:generateContent":                    "g v1beta/models/g",
		"GET /v1/models/g":                                             "g",
		"DELETE /v1/models/g":                                          "g",
		"DELETE /v1/models%2fg":                                        "g",
		"PATCH /v1beta/tunedModels/g":                                  "",
		"PUT /v1/models/ft:gpt-4o:acme::abc":                           "ft:gpt-4o:acme::abc",
		"POST /openai/deployments/g/chat/completions":                  "g",
		"POST /deployments/g/chat/completions":                         "g",
		"POST /openai%2Fdeployments%2Fg%2Fchat/completions":            "g",
		"POST /v1/engines/g/completions":                               "g",
		"POST /model/g/invoke":                                         "g",
		"POST /model/anthropic.claude%3A0/invoke-with-response-stream": "anthropic.claude:0",
		"POST /model%2Fg%2Fconverse":                                   "g",
		"POST /model/g/other":                                          "",
		"POST /v1/projects/p/locations/l/endpoints/77:generateContent": "77",
		"POST /77:predict":                                             "77",
		"POST /v1/files/x%zz":                                          "",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := strings.Join(NamesInPath(method, path), " "); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

// What ParseEndpoint finds is among the names, whatever the path.
func TestNamesInPathMissNoModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.StringMatching(`(/(v1|v1beta|models|openai|deployments|model|engines|m%2Fn|%6dodels|a:generateContent|invoke|x%3Apredict|%25|%zz|:)){0,6}`).Draw(t, "path")
		method := rapid.SampledFrom([]string{"GET", "POST", "HEAD"}).Draw(t, "method")
		if e := ParseEndpoint(method, path, ""); e.Model != "" && !slices.Contains(NamesInPath(method, path), e.Model) {
			t.Fatalf("%s %s: %q is missing in %q", method, path, e.Model, NamesInPath(method, path))
		}
	})
}
