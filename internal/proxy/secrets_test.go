package proxy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/drill"
)

// secretOf is a secret of some kind, with all that needs an escape somewhere. What
// may be seen of it are its first six and last four characters; the kind stands in
// between.
func secretOf(kind string) string { return `sk-12/+%"<&>\ ` + "zq" + kind + "qz é 9876" }

// echoes are the forms in which an upstream may quote a text back.
func echoes(text string) []string {
	quoted, _ := json.Marshal(text)
	return []string{text, url.QueryEscape(text), url.PathEscape(text), string(quoted), strconv.Quote(text), strings.ReplaceAll(string(quoted), "/", `\/`)}
}

// tellTale answers in the way its path asks for, and tells in it every secret that
// there is.
func tellTale(secrets []string) drill.Script {
	return func(w *drill.Wire, r drill.Request, _ int) {
		_, form, _ := strings.Cut(r.Query(), "form=")
		form, turn, _ := strings.Cut(form, "-turn-")
		// Every kind comes to the front of the message in some request.
		n, _ := strconv.Atoi(turn)
		n %= len(secrets)
		told := ""
		for _, s := range slices.Concat(secrets[n:], secrets[:n])[:4] {
			told += strings.Join(echoes(s), " ") + "\n"
		}
		if n%2 == 0 {
			told = strings.ReplaceAll(string(r.Head), "\r", "") + told
		} else {
			told += string(r.Head)
		}
		status, kind, _ := strings.Cut(form, "-")
		code, _ := strconv.Atoi(status)
		message, _ := json.Marshal(told)
		body := fmt.Sprintf(`{"error":{"message":%s,"code":%s,"type":%s}}`, message, message, message)
		switch kind {
		case "json":
			w.JSON(code, []byte(body))
		case "text":
			w.Head(code, drill.Length(len(told)), "Content-Type", "text/plain")
			w.Chunk([]byte(told))
		case "html":
			w.Head(code, drill.Chunked, "Content-Type", "text/html")
			w.Chunk([]byte("<html><title>" + told + "</title>"))
			w.End()
		case "event":
			w.SSE([][]byte{[]byte("data: " + body + "\n\n")}, 0)
		case "late":
			w.SSE([][]byte{[]byte(said("a text that is long enough")), []byte("data: " + body + "\n\n")}, 0)
		case "reset":
			w.Reset()
		case "garbage":
			w.Raw([]byte(told))
			w.FIN()
		case "location":
			w.Head(code, drill.Length(0), "Location", "https://elsewhere.example/?key="+url.QueryEscape(secrets[0]), "Retry-After", "7")
		}
	}
}

// No secret, configured or the request's own, appears in a log, in an error, on the
// board or in a record, whatever an upstream quotes back in whatever form.
func TestSecretsNeverShow(t *testing.T) {
	kinds := []string{"literal", "env", "file", "header", "headerenv", "user", "password", "urlkey", "proxypassword", "clientkey", "admin",
		"bearer", "xapikey", "goog", "apikey", "cookie", "basicpassword", "query", "protocol"}
	own := map[string]string{}
	var all []string
	for _, kind := range kinds {
		own[kind] = secretOf(kind)
		all = append(all, own[kind])
	}
	t.Setenv("RIG_SECRET", own["env"])
	t.Setenv("RIG_SECRET_HEADER", own["headerenv"])
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(own["file"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u := play(t, tellTale(all))
	user := url.UserPassword(own["user"], own["password"]).String()
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	tail := strings.TrimPrefix(u.URL(), "http://")
	candidates := strings.Join([]string{
		fmt.Sprintf("{name: a, base_url: %q, model: m, api_key: %s}", u.URL(), quoted(own["literal"])),
		fmt.Sprintf("{name: b, base_url: %q, model: m, api_key_env: RIG_SECRET}", u.URL()),
		fmt.Sprintf("{name: c, base_url: %q, model: m, api_key_file: %q, auth_style: x-api-key}", u.URL(), file),
		fmt.Sprintf("{name: d, base_url: %q, model: m, auth_style: none, headers: {Authorization: %s}}", u.URL(), quoted("Bearer "+own["header"])),
		fmt.Sprintf("{name: e, base_url: %q, model: m, auth_style: none, header_env: {x-tenant: RIG_SECRET_HEADER}}", u.URL()),
		fmt.Sprintf("{name: f, base_url: %q, model: m, auth_style: none}", "http://"+user+"@"+tail),
		fmt.Sprintf("{name: g, base_url: %q, model: m, auth_style: none}", u.URL()+"?api_key="+url.QueryEscape(own["urlkey"])),
		fmt.Sprintf("{name: h, base_url: %q, model: m, auth_style: none}", "http://"+user+"@127.0.0.1:1"),
		fmt.Sprintf("{name: j, base_url: %q, model: m, auth_style: none, proxy: %q}", u.URL(), "http://"+url.UserPassword("u", own["proxypassword"]).String()+"@127.0.0.1:1"),
		`{name: m, base_url: "http://127.0.0.1:1", model: m, api_key_env: RIG_SECRET_MISSING}`,
	}, "\n    - ")
	// These take until connect_timeout.
	mute := strings.Join([]string{
		fmt.Sprintf("{name: i, base_url: %q, model: m, auth_style: none}", "https://"+user+"@"+tail+"?key="+url.QueryEscape(own["urlkey"])),
		fmt.Sprintf("{name: k, base_url: %q, model: m, auth_style: none, proxy: %q}", u.URL(), "socks5://"+url.UserPassword("u", own["proxypassword"]).String()+"@"+tail),
	}, "\n    - ")
	cfg := fmt.Sprintf("server: {admin_token: %s, auto_hedge_threshold: 2, connect_timeout: 0.1}\nclients: [{name: me, key: %s}]\nrules:\n  - {match: {status: [401, 503]}, action: freeze}\nvirtual_models:\n  vm:\n    - %s\n  mute:\n    - %s\n",
		quoted(own["admin"]), quoted(own["clientkey"]), candidates, mute)
	r := newRig(t, cfg)

	var shown strings.Builder
	look := func(got drill.Reply) { fmt.Fprintf(&shown, "%s%s%v\n", got.Head, got.Body, got.Err) }
	header := []string{
		"Authorization", "Bearer " + own["bearer"], "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+own["basicpassword"])),
		"X-Api-Key", own["xapikey"], "X-Api-Key", own["clientkey"], "X-Goog-Api-Key", own["goog"], "Api-Key", own["apikey"],
		"Cookie", "theme=dark; session=" + own["cookie"], "Sec-WebSocket-Protocol", "x, openai-insecure-api-key." + own["protocol"],
	}
	query := "key=" + url.QueryEscape(own["query"])
	forms := []string{"401-json", "402-json", "403-html", "404-json", "404-text", "418-json", "429-json", "429-text", "500-json", "500-html", "503-json", "529-text", "302-location",
		"200-json", "200-text", "200-html", "200-event", "200-late", "0-reset", "0-garbage"}
	for i, form := range slices.Concat(forms, forms) {
		got := r.post(fmt.Sprintf("/v1/chat/completions?%s&form=%s-turn-%d", query, form, i), fmt.Sprintf(`{"model":"vm","stream":%v}`, i < len(forms)), header...)
		if got.Get("X-Understudy-Candidate") != "" {
			got.Body = nil // an upstream's own bytes, which pass as they came
		}
		look(got)
		r.handler.Board().ThawAll(time.Now())
	}
	for range 3 {
		look(r.post("/v1/chat/completions?"+query, `{"model":"mute"}`, header...))
	}
	// Refusals quote what the client sent.
	for _, bad := range []drill.Query{
		{Path: "/v1/" + url.PathEscape(own["bearer"]) + "/..?x=1&" + query, Header: header},
		{Path: "/v1/" + url.PathEscape(own["query"]) + "?x=1&" + query, Header: header},
		{Path: "/v1/chat/completions?x&" + query, Body: []byte(`{"model":` + quoted(own["xapikey"]) + `}`), Header: header},
		{Path: "/v1/chat/completions?x&" + query, Body: []byte(`{"model":` + quoted(own["literal"]) + `}`), Header: header},
		{Path: "/v1/chat/completions", Body: []byte(`{`), Header: append([]string{"Content-Encoding", own["goog"]}, header...)},
		{Path: "/v1/chat/completions", Header: []string{"Authorization", "Bearer " + own["bearer"]}},
		{Path: "/v1/chat/completions", Header: append([]string{"Origin", "https://x/" + own["env"]}, header...)},
		{Path: "/v1/models", Header: header}, {Path: "/healthz", Header: header},
	} {
		look(r.send(bad))
	}
	for _, rec := range r.settle() {
		fmt.Fprintf(&shown, "%+v\n", rec)
		for _, try := range rec.Tries {
			if try.Failure != nil {
				fmt.Fprintf(&shown, "%+v\n", *try.Failure)
			}
		}
	}
	fmt.Fprintf(&shown, "%+v\n", r.handler.Board().Export(time.Now()))
	fmt.Fprintf(&shown, "%v %+v %#v\n", r.handler.Snapshot().Config, r.handler.Snapshot().Config.Models, r.handler.Snapshot().Config.Server)
	shown.WriteString(r.log.String())

	text := shown.String()
	if strings.Count(text, "sk-12/***9876") < 100 {
		t.Errorf("the upstream's words were not quoted at all: %d masks", strings.Count(text, "sk-12/***9876"))
	}
	for _, kind := range kinds {
		// Some forms break the kind's neighbourhood, none the kind itself.
		if i := strings.Index(text, "zq"+kind+"qz"); i >= 0 {
			t.Errorf("the %s secret shows: …%q…", kind, text[max(0, i-300):min(len(text), i+60)])
		}
		for _, coded := range []string{base64.StdEncoding.EncodeToString([]byte(own[kind]))[8:24]} {
			if i := strings.Index(text, coded); i >= 0 {
				t.Errorf("the %s secret shows in base64: …%q…", kind, text[max(0, i-100):min(len(text), i+60)])
			}
		}
	}
}
