package proxy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy/internal/drill"
	"understudy/internal/stats"
)

const twoClients = `
clients:
  - {name: all, key: client-key-all-0123456789}
  - {name: some, key: client-key-some-0123456789, models: [vm, org/m]}
  - {name: pooled, key: client-key-pooled-0123456789, models: ["*"]}
`

// Section 12: a key is taken from any of its places, the right one passes and books
// the request under the client's name; a wrong or missing one is 401 in the dialect
// and calls nobody.
func TestClientKeys(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	t.Setenv("RIG_CLIENT", "client-key-env-0123456789")
	r := newRig(t, over(fmt.Sprintf("clients:\n  - {name: literal, key: client-key-literal-0123456789}\n  - {name: env, key_env: RIG_CLIENT}\n  - {name: hashed, key_sha256: %x}\n  - {name: missing, key_env: RIG_CLIENT_MISSING}",
		sha256.Sum256([]byte("client-key-hashed-0123456789"))), u.URL()))
	for _, name := range []string{"literal", "env", "hashed"} {
		key := "client-key-" + name + "-0123456789"
		for _, c := range []struct {
			query  string
			header []string
		}{
			{"", []string{"Authorization", "Bearer " + key}}, {"", []string{"authorization", "bearer  " + key}}, {"", []string{"x-api-key", key}}, {"", []string{"X-Goog-Api-Key", key}}, {"", []string{"Api-Key", key}},
			{"?key=" + key, nil}, {"?a=b&k%65y=" + strings.ReplaceAll(key, "-", "%2D"), nil}, {"", []string{"Authorization", "Bearer wrong", "X-Api-Key", key}},
		} {
			if got := r.post("/v1/chat/completions"+c.query, `{"model":"vm"}`, c.header...); got.Status != 200 {
				t.Errorf("%s %q %q: %d %s", name, c.query, c.header, got.Status, got.Body)
			}
			records := r.settle()
			if last := records[len(records)-1]; last.Client != name {
				t.Errorf("booked under %q, want %q", last.Client, name)
			}
		}
	}
	for _, q := range u.Requests() {
		if strings.Contains(string(q.Head), "client-key") || strings.Contains(string(q.Head), "client%2Dkey") {
			t.Errorf("a client key went on:\n%s", q.Head)
		}
	}
	calls := u.Count()
	for _, header := range [][]string{nil, {"Authorization", "Bearer client-key-literal-012345678"}, {"Authorization", "client-key-literal-0123456789"}, {"Authorization", "Basic client-key-literal-0123456789"},
		{"X-Api-Key", ""}, {"X-Api-Key", "Bearer client-key-literal-0123456789"}, {"X-Api-Key", strings.Repeat("\x00", 0)}, {"Cookie", "key=client-key-literal-0123456789"}} {
		for path, envelope := range map[string]string{
			"/v1/chat/completions": `"code":"invalid_api_key"`, "/v1/messages": `"type":"authentication_error"`, "/v1beta/models/vm:generateContent": `"status":"UNAUTHENTICATED"`, "/api/chat": `"error":"the client key`,
		} {
			got := r.post(path, `{"model":"vm"}`, header...)
			r.fails(got, 401, envelope)
			if got.Get("WWW-Authenticate") != "Bearer" || got.Get("X-Should-Retry") != "false" {
				t.Errorf("head %s", got.Head)
			}
		}
		r.fails(r.get("/v1/models", header...), 401)
		r.fails(r.get("/anything", header...), 401)
		if got := r.get("/healthz", header...); got.Status != 200 {
			t.Errorf("/healthz needs a key: %d", got.Status)
		}
	}
	for _, rec := range r.settle()[len(r.settle())-5:] {
		if rec.Ending != stats.Refused || rec.Client != "" {
			t.Errorf("booked as %v under %q", rec.Ending, rec.Client)
		}
	}
	if u.Count() != calls {
		t.Error("somebody was called")
	}
}

// Section 12: a client with a list of models is refused any other, the pool where it
// is not listed, no model, and two models; it does not see the others in the lists.
func TestClientModels(t *testing.T) {
	u, p := play(t, drill.Healthy(drill.Answer{})), play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("server: {default_model: vm}\nvirtual_models:\n  vm: &c [{base_url: %q, api_key: sk-upstream-secret-1, model: m1}]\n  other: *c\n  org/m: *c%s%s", u.URL(), twoClients, pool("", p.URL())))
	ask := func(client, path, body string) drill.Reply {
		q := drill.Query{Path: path, Header: []string{"X-Api-Key", "client-key-" + client + "-0123456789"}}
		if body != "" {
			q.Body = []byte(body)
		}
		return r.send(q)
	}
	type want struct {
		path, body         string
		all, some, pooled_ int
	}
	for _, c := range []want{
		{"/v1/chat/completions", `{"model":"vm"}`, 200, 200, 403},
		{"/v1/chat/completions", `{"model":" vm "}`, 200, 200, 403},
		{"/v1/chat/completions", `{"model":"org/m"}`, 200, 200, 403},
		{"/v1/chat/completions", `{"model":"other"}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"gpt-9"}`, 200, 403, 200},
		{"/v1/chat/completions", `{"messages":[]}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":7}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"other","model":"vm"}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","Model":"other"}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","model":"vm"}`, 200, 200, 403},
		{"/v1/chat/completions", `{"model":"gpt-9","mod\u0065l":"gpt-8"}`, 200, 403, 403},
		{"/v1beta/models/vm:generateContent", `{}`, 200, 200, 403},
		{"/v1beta/models/other:generateContent", `{}`, 200, 403, 403},
		{"/v1beta/models/other:generateContent", `{"model":"vm"}`, 200, 403, 403},
		{"/openai/deployments/other/chat/completions", `{"model":"vm"}`, 200, 403, 403},
		{"/openai/deployments/vm/chat/completions", `{"model":"vm"}`, 200, 200, 403},
		// Where an upstream may look for a model, and we do not to serve one.
		{"/v1beta/models%2Fother:generateContent", `{"model":"vm"}`, 200, 403, 403},
		{"/v1beta%2fmodels%252fother%3Apredict", `{"model":"vm"}`, 200, 403, 403},
		{"/deployments/other/chat/completions", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/engines/other/completions", `{"model":"vm"}`, 200, 403, 403},
		{"/model/other/invoke", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/projects/p/locations/l/endpoints/77:predict", `{"model":"vm"}`, 200, 403, 403},
		{"/openai/Deployments/other/chat/completions", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/ENGINES/other/completions", `{"model":"vm"}`, 200, 403, 403},
		{"/MODEL/other/Invoke", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/models/org/other/predictions", `{"model":"vm"}`, 200, 403, 403},
		{"/models/org/other", `{"model":"vm"}`, 200, 403, 403},
		{"/client/v4/accounts/1/ai/run/@cf/meta/other", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/chat/completions?model=other", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/realtime/calls?a=b;Mod%65l=oth%65r", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/realtime/calls?model=vm", `{"model":"vm"}`, 200, 200, 403},
		{"/v1/chat/completions", `{"model":"vm","models":["other"]}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","fallback_model":"other"}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","context_window_fallbacks":[{"vm":["other"]}]}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","fallbacks":{"vm":["other"]}}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","context_window_fallback_dict":{"vm":"other"}}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","fallbacks":"other"}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","models":[["other"]]}`, 200, 403, 403},
		{"/v1/chat/completions", `{"model":"vm","models":["vm"],"fallbacks":[{"model":"vm","temperature":1}]}`, 200, 200, 403},
		{"/v1/messages/batches", `{"model":"vm","requests":[{"params":{"model":"vm","tools":[{"type":"advisor","model":"other"}]}}]}`, 200, 403, 403},
		{"/v1/responses", `{"model":"vm","tools":[{"type":"image_generation","model":"other"}]}`, 200, 403, 403},
		{"/v1/responses", `{"model":"vm","tools":[{"type":"function","parameters":{"properties":{"model":{"type":"string"}},"model":"no"}}]}`, 200, 200, 403},
		// What is nothing of a model's, whatever its body says.
		{"/v1/files", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/batches", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/organization/admin_api_keys", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/responses/resp_1/cancel", `{"model":"vm"}`, 200, 403, 403},
		{"/v1/messages/batches", `{"model":"vm","requests":[{"params":{"model":"other"}}]}`, 200, 403, 403},
		{"/v1/messages/batches", `{"model":"vm","requests":[{"params":{"model":"vm","messages":[{"model":"no"}]}}]}`, 200, 200, 403},
		{"/v1/realtime/client_secrets", `{"model":"vm","session":{"model":"other"}}`, 200, 403, 403},
		{"/v1/engines/vm/completions", `{"model":"vm"}`, 200, 200, 403},
		{"/v1beta/models/org%2Fm:generateContent", `{}`, 200, 200, 403},
		{"/models/chat/completions", `{"model":"vm"}`, 200, 200, 403},
		{"/v1/files", "", 200, 403, 403},
		{"/v1/models/vm", "", 200, 200, 403},
		{"/v1/models/other", "", 200, 403, 403},
	} {
		for client, status := range map[string]int{"all": c.all, "some": c.some, "pooled": c.pooled_} {
			before := u.Count() + p.Count()
			got := ask(client, c.path, c.body)
			if got.Status != status {
				t.Errorf("%s %s %s: %d %s, want %d", client, c.path, c.body, got.Status, brief(string(got.Body)), status)
			}
			if status == 403 && u.Count()+p.Count() != before {
				t.Errorf("%s %s %s: somebody was called", client, c.path, c.body)
			}
		}
	}
	for _, method := range []string{"GET", "DELETE", "PUT", "PATCH", "HEAD", "FOO"} {
		for _, path := range []string{"/v1/files/file-1", "/v1/chat/completions", "/v1/responses/resp_1"} {
			before := u.Count()
			got := r.send(drill.Query{Method: method, Path: path, Header: []string{"X-Api-Key", "client-key-some-0123456789"}, Body: []byte(`{"model":"vm"}`)})
			if got.Status != 403 || u.Count() != before {
				t.Errorf("%s %s: %d", method, path, got.Status)
			}
		}
	}
	if got := r.send(drill.Query{Method: "DELETE", Path: "/v1/models/vm", Header: []string{"X-Api-Key", "client-key-some-0123456789"}}); got.Status != 403 {
		t.Errorf("a model may be deleted: %d", got.Status)
	}
	r.fails(ask("some", "/v1/messages", `{"model":"other"}`), 403, `"type":"permission_error"`)
	r.fails(ask("some", "/v1beta/models/other:generateContent", `{}`), 403, `"status":"PERMISSION_DENIED"`)
	for client, names := range map[string]string{"all": `["vm","other","org/m"]`, "some": `["vm","org/m"]`, "pooled": `[]`} {
		got := ask(client, "/v1/models", "")
		for _, name := range []string{"vm", "other", "org/m"} {
			if listed := strings.Contains(string(got.Body), `"id":"`+name+`"`); listed != strings.Contains(names, `"`+name+`"`) {
				t.Errorf("%s sees %s", client, got.Body)
			}
		}
	}
}

// An unknown model's 404 tells a client only of its own models, and one without a
// pool is no way round the list.
func TestClientSeesOnlyItsOwnModelsInErrors(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models:\n  vm: &c [{base_url: %q, api_key: sk-upstream-secret-1, model: m1}]\n  other: *c%s", u.URL(), twoClients))
	r.fails(r.post("/v1/chat/completions", `{"model":"gpt-9"}`, "X-Api-Key", "client-key-some-0123456789"), 404, `"available_models":["vm"]`)
	r.fails(r.post("/v1/chat/completions", `{}`, "X-Api-Key", "client-key-some-0123456789"), 400, `"available_models":["vm"]`)
	uncalled(t, u)
}

// Two clients' sessions of one name are two sessions.
func TestSessionsBelongToTheirClient(t *testing.T) {
	var ups []*drill.Upstream
	var urls []string
	for range 4 {
		u := play(t, page("application/json", okChat))
		ups, urls = append(ups, u), append(urls, u.URL())
	}
	r := newRig(t, pool(twoClients, urls...))
	served := func(client, session string) (by []int) {
		for i, u := range ups {
			before := u.Count()
			defer func() {
				if u.Count() > before {
					by = append(by, i)
				}
			}()
		}
		r.post("/v1/chat/completions", `{"model":"x"}`, "X-Api-Key", "client-key-"+client+"-0123456789", "session_id", session)
		return nil
	}
	differ := 0
	for i := range 16 {
		session := fmt.Sprint("session ", i)
		a, b := served("all", session), served("pooled", session)
		if !slices.Equal(a, served("all", session)) || !slices.Equal(b, served("pooled", session)) {
			t.Errorf("%s does not stay", session)
		}
		if !slices.Equal(a, b) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("the clients' sessions are the same")
	}
}

// A body that two readers read as two things names one model to both, or nobody is called.
func TestClientModelsInBodiesOfTwoKinds(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, fmt.Sprintf("virtual_models:\n  vm: [{base_url: %q, api_key: sk-upstream-secret-1, model: m1}]\nclients: [{name: some, key: client-key-some-0123456789, models: [vm]}]", u.URL()))
	for _, c := range []struct {
		types  []string
		body   string
		status int
	}{
		{[]string{"application/x-www-form-urlencoded"}, `{"model":"vm","a":"&model=other&"}`, 403},
		{[]string{"Application/X-WWW-Form-Urlencoded; charset=utf-8"}, `{"model":"vm","a":"&Mod%65l=other&"}`, 403},
		{[]string{"application/x-www-form-urlencoded"}, `{"model":"vm","a":"&model=vm&"}`, 200},
		{[]string{"application/json"}, `{"model":"vm","a":"&model=other&"}`, 200},
		{[]string{"application/json", "application/x-www-form-urlencoded"}, `{"model":"vm"}`, 400},
		{[]string{"multipart/form-data; boundary=B", "multipart/form-data; boundary=C"}, "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nvm\r\n--B--\r\n", 400},
	} {
		before := u.Count()
		q := drill.Query{Path: "/v1/chat/completions", Header: []string{"X-Api-Key", "client-key-some-0123456789"}, Body: []byte(c.body)}
		for _, media := range c.types {
			q.Header = append(q.Header, "Content-Type", media)
		}
		if got := r.send(q); got.Status != c.status || c.status != 200 && u.Count() != before {
			t.Errorf("%q %s: %d %s, %d calls", c.types, c.body, got.Status, brief(string(got.Body)), u.Count()-before)
		}
	}
}
