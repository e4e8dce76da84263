package proxy

import (
	"fmt"
	"testing"

	"understudy/internal/drill"
)

// Who may use certain models only changes nothing about them: not by a custom method that
// asks no model, and not by a request that servers take for one of another method or path.
// Who may use every model is not held to that, and what asks the model goes through.
func TestAKeyForCertainModelsManagesNothing(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models:\n  vm: [{base_url: %q, api_key: sk-upstream-secret-1, model: m1}]\nclients: [{name: some, key: client-key-some-0123456789, models: [vm]}, {name: all, key: client-key-all-0123456789}]", u.URL()))
	const generate, multipart = "/v1beta/models/vm:generateContent", "multipart/form-data; boundary=B"
	for _, c := range []struct {
		method, path, body string
		header             []string
		some               int
	}{
		{"POST", "/v1beta/tunedModels/vm:transferOwnership", `{"emailAddress":"thief@example.com"}`, nil, 403},
		{"POST", "/v1beta/models/vm:delete", `{}`, nil, 403},
		{"POST", "/v1beta/models/vm%3Adelete", `{"model":"vm"}`, nil, 403},
		{"POST", "/v1/projects/p/locations/l/models/vm:export", `{}`, nil, 403},
		{"POST", "/v1/projects/p/locations/l/endpoints/vm:undeployModel", `{"model":"vm"}`, nil, 403},
		{"POST", "/v2/repository/models/vm/unload", `{"model":"vm"}`, nil, 403},
		{"POST", "/v1/models/vm", `{"model":"vm"}`, []string{"X-HTTP-Method-Override", "DELETE"}, 403},
		{"POST", generate, `{}`, []string{"X-HTTP-Method", "PATCH"}, 403},
		{"POST", generate, `{}`, []string{"X-Method-Override", ""}, 403},
		{"POST", generate, `{}`, []string{"X_HTTP_Method_Override", "DELETE"}, 403},
		{"POST", generate, `{}`, []string{"X-Original-URL", "/v1/files"}, 403},
		{"POST", generate + "?$httpMethod=DELETE", `{}`, nil, 403},
		{"POST", generate + "?a=b&%24httpmethod=DELETE", `{}`, nil, 403},
		{"POST", generate + "?a=b;_method=DELETE", `{}`, nil, 403},
		{"POST", "/v1/models/vm?_HttpMethod=DELETE", `{"model":"vm"}`, nil, 403},
		{"POST", "/v1/models/vm?X-HTTP-Method-Override", `{"model":"vm"}`, nil, 403},
		{"POST", "/v1/chat/completions", `{"model":"vm","a":"&_method=DELETE&"}`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 403},
		{"POST", "/v1/chat/completions", `{"model":"vm","_method":"DELETE"}`, nil, 403},
		{"POST", "/v1/audio/transcriptions", "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nvm\r\n--B\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--B--\r\n", []string{"Content-Type", multipart}, 403},
		{"POST", "/v1/audio/transcriptions", "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nvm\r\n--B--\r\n", []string{"Content-Type", multipart}, 200},
		{"POST", generate + "?alt=json&method=x", `{}`, []string{"X-Method", "x"}, 200},
		{"POST", "/v1/chat/completions", `{"model":"vm","a":"&_method=DELETE&"}`, nil, 200},
		{"POST", "/v1beta/tunedModels/vm:generateContent", `{}`, nil, 200},
		{"POST", "/v1beta/models/vm:countTokens", `{}`, nil, 200},
		{"POST", "/v1beta/models/vm:batchEmbedContents", `{}`, nil, 200},
		{"POST", "/v1beta/models/vm:predictLongRunning", `{}`, nil, 200},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/vm:rawPredict", `{}`, nil, 200},
	} {
		for client, status := range map[string]int{"some": c.some, "all": 200} {
			before := u.Count()
			q := drill.Query{Method: c.method, Path: c.path, Header: append([]string{"X-Api-Key", "client-key-" + client + "-0123456789"}, c.header...)}
			if c.body != "" {
				q.Body = []byte(c.body)
			}
			got := r.send(q)
			if client == "all" && got.Status == 400 {
				got.Status = 200 // it names no model that we know of
			}
			if got.Status != status || status == 403 && u.Count() != before {
				t.Errorf("%s: %s %s %q: %d %s, and %d calls", client, c.method, c.path, c.header, got.Status, brief(string(got.Body)), u.Count()-before)
			}
		}
	}
}
