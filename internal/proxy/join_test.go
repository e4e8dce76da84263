package proxy

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// Case 28: base × client path × queries. The version that both bring stands once,
// "//" is folded at the joint and at the path's start only, and every escape and
// both queries stay as they were.
func TestJoinURL(t *testing.T) {
	bases := []string{"https://h", "https://h/", "https://h/v1", "https://h/v1/", "https://h/api/v4", "https://h/openai/deployments/d?api-version=2024-06-01"}
	for path, want := range map[string][]string{
		"/v1/chat/completions": {"/v1/chat/completions", "/v1/chat/completions", "/v1/chat/completions", "/v1/chat/completions", "/api/v4/chat/completions",
			"/openai/deployments/d/v1/chat/completions?api-version=2024-06-01"},
		"/v1/messages?beta=true": {"/v1/messages?beta=true", "/v1/messages?beta=true", "/v1/messages?beta=true", "/v1/messages?beta=true", "/api/v4/messages?beta=true",
			"/openai/deployments/d/v1/messages?api-version=2024-06-01&beta=true"},
		"/v1/chat/completions/": {"/v1/chat/completions/", "/v1/chat/completions/", "/v1/chat/completions/", "/v1/chat/completions/", "/api/v4/chat/completions/",
			"/openai/deployments/d/v1/chat/completions/?api-version=2024-06-01"},
		"//v1/messages": {"/v1/messages", "/v1/messages", "/v1/messages", "/v1/messages", "/api/v4/messages", "/openai/deployments/d/v1/messages?api-version=2024-06-01"},
		"/chat/completions": {"/chat/completions", "/chat/completions", "/v1/chat/completions", "/v1/chat/completions", "/api/v4/chat/completions",
			"/openai/deployments/d/chat/completions?api-version=2024-06-01"},
		"/":                        {"/", "/", "/v1/", "/v1/", "/api/v4/", "/openai/deployments/d/?api-version=2024-06-01"},
		"/v1":                      {"/v1", "/v1", "/v1", "/v1", "/api/v4", "/openai/deployments/d/v1?api-version=2024-06-01"},
		"/v1/":                     {"/v1/", "/v1/", "/v1/", "/v1/", "/api/v4/", "/openai/deployments/d/v1/?api-version=2024-06-01"},
		"/v1beta/models/g:x?a=%2F": {"/v1beta/models/g:x?a=%2F", "/v1beta/models/g:x?a=%2F", "/v1/models/g:x?a=%2F", "/v1/models/g:x?a=%2F", "/api/v4/models/g:x?a=%2F", "/openai/deployments/d/v1beta/models/g:x?api-version=2024-06-01&a=%2F"},
	} {
		for i, base := range bases {
			joins(t, base, path, false, want[i])
		}
	}
	for _, c := range []struct{ base, path, want string }{
		{"https://h/v1", "/v1/a%2Fb%20c+d/%C3%A9?q=a+b%2Fc&&x=;y&key", "/v1/a%2Fb%20c+d/%C3%A9?q=a+b%2Fc&&x=;y&key"},
		{"https://h/a%2Fb/v1", "/v1/x", "/a%2Fb/v1/x"},
		{"https://h/v1", "/v1/a//b", "/v1/a//b"},
		{"https://h/v1//", "///v1//x", "/v1/x"},
		{"https://h//gateway//v1", "/v1/x", "//gateway//v1/x"},
		{"https://h/v1beta", "/v1beta/models/x", "/v1beta/models/x"},
		{"https://h/v1", "/v2/x", "/v1/x"},
		{"https://h/v1alpha1", "/v1/x", "/v1alpha1/x"},
		{"https://h/vbeta", "/v1/x", "/vbeta/v1/x"},
		{"https://h/v", "/v1/x", "/v/v1/x"},
		{"https://h/v1x", "/v1/x", "/v1x/v1/x"},
		{"https://h/v1", "/v1x/x", "/v1/v1x/x"},
		{"https://h/v1", "/x/v1", "/v1/x/v1"},
		{"https://h/v1/openai", "/v1/x", "/v1/openai/v1/x"},
		{"https://h/V1", "/v1/x", "/V1/v1/x"},
		{"https://h?a=1&b=%2f", "/x?c=2", "/x?a=1&b=%2f&c=2"},
		{"https://h?", "/x?", "/x"},
		{"https://h/v1", "/v1/{id}\"|^`é", "/v1/{id}\"|^`é"},
	} {
		joins(t, c.base, c.path, false, c.want)
	}
	// join: plain folds no version.
	joins(t, "https://h/v1", "/v1/x?y", true, "/v1/v1/x?y")
	joins(t, "https://h/v1/", "//v1/x", true, "/v1/v1/x")
}

func joins(t *testing.T, base, target string, plain bool, want string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	if got := joinURL(u, path, query, plain); got.RequestURI() != want || got.Host != "h" || got.Scheme != "https" {
		t.Errorf("%s + %s = %s://%s%s, want %s", base, target, got.Scheme, got.Host, got.RequestURI(), want)
	}
}

// Case 28: the joined URL is what goes over the wire, byte for byte.
func TestTargetReachesTheUpstreamAsJoined(t *testing.T) {
	u := play(t, page("application/json", okChat))
	r := newRig(t, "virtual_models:\n"+
		"  a: [{base_url: \""+u.URL()+"/v1?tag=a%2Fb+c\", api_key: sk-upstream-secret-1, model: m1}]\n"+
		"  b: [{base_url: \""+u.URL()+"/v1\", api_key: sk-upstream-secret-2, model: m1, join: plain}]\n")
	for _, c := range [][3]string{
		{"a", "/v1/messages/%2F%20+é?beta=true&x=%2f+%20", "/v1/messages/%2F%20+é?tag=a%2Fb+c&beta=true&x=%2f+%20"},
		{"a", "//v1//chat/completions", "/v1/chat/completions?tag=a%2Fb+c"},
		{"b", "/v1/messages", "/v1/v1/messages"},
	} {
		before := u.Count()
		r.post(c[1], `{"model":"`+c[0]+`"}`)
		if got := u.Requests()[before].Target; got != c[2] {
			t.Errorf("%s went out as %s, want %s", c[1], got, c[2])
		}
	}
}

// Case 28: a redirect is never followed, whatever its status and wherever it
// points; a chain goes on by its rules, a pool passes it on as it came.
func TestRedirectsAreNotFollowed(t *testing.T) {
	trap := play(t, drill.Healthy(drill.Answer{}))
	for _, status := range []int{301, 302, 303, 307, 308, 300} {
		moved := play(t, refusal(status, `{"moved":true}`, "Location", trap.URL()+"/v1/chat/completions"))
		next := play(t, page("application/json", okChat))
		r := newRig(t, over("rules: []", moved.URL(), next.URL()))
		r.is(r.post("/v1/chat/completions", `{"model":"vm"}`), 200, okChat)
		if got := only(t, moved); got.Method != "POST" {
			t.Errorf("%d: upstream got %s", status, got.Method)
		}
		r = newRig(t, over("rules: []", moved.URL()))
		r.fails(r.post("/v1/chat/completions", `{"model":"vm"}`), 502, "upstream_all_failed")
		r = newRig(t, over(fmt.Sprintf("rules: [{match: {status: %d}, action: passthrough}]", status), moved.URL()))
		r.is(r.post("/v1/chat/completions", `{"model":"vm"}`), status, `{"moved":true}`)
		r = newRig(t, pool("", moved.URL()))
		got := r.post("/v1/chat/completions", `{"model":"vm"}`, "Authorization", "Bearer client-own-key")
		r.is(got, status, `{"moved":true}`)
		if got.Get("Location") != trap.URL()+"/v1/chat/completions" {
			t.Errorf("%d: Location %q", status, got.Get("Location"))
		}
	}
	uncalled(t, trap)
}
