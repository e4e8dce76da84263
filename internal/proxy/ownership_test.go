package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/health"
)

// responses is an upstream of the Responses API that gives out its own ids, and
// refuses those of others, as the vendors do.
func responses(account string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		id := fmt.Sprintf("resp_%s_%d", account, n)
		created := `{"type":"response.created","sequence_number":0,"response":{"id":"` + id + `","object":"response","status":"in_progress","error":null,"output":[]}}`
		text := `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Hello from ` + account + `"}`
		reasoning := `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"gAAAA` + account + `"}}`
		completed := `{"type":"response.completed","response":{"id":"` + id + `","object":"response","status":"completed","error":null,"output":[]}}`
		var events []string
		for _, data := range []string{created, reasoning, text, completed} {
			name := data[9 : 9+strings.IndexByte(data[9:], '"')]
			events = append(events, "event: "+name+"\ndata: "+data+"\n\n")
		}
		w.Header().Set("X-Codex-Turn-State", "turn-"+account)
		sse(w, events...)
	}
}

func ownersBed(t *testing.T, server string) *bed {
	b := newBed(t, server+`
virtual_models:
  vm:
    - any_of:
        - {name: a, base_url: "http://u1", api_key: sk-upstream-secret-1, model: m1}
        - {name: b, base_url: "http://u2", api_key: sk-upstream-secret-2, model: m2}
        - {name: c, base_url: "http://u3", api_key: sk-upstream-secret-3, model: m3}
  other:
    - {name: d, base_url: "http://u4", api_key: sk-upstream-secret-4, model: m4}
`)
	for i, account := range []string{"a", "b", "c", "d"} {
		b.upstream(fmt.Sprintf("u%d", i+1), responses(account))
	}
	return b
}

// turn asks for a response; more are further members of the body.
func (b *bed) turn(model, more string, headers ...string) reply {
	b.t.Helper()
	return b.ask("POST", "/v1/responses", `{"model":"`+model+`","stream":true,"input":"hi"`+more+`}`, headers...)
}

// Case 48: what refers to a stored response goes to the account that stored it,
// however the load stands.
func TestAStoredResponseGoesToItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownersBed(t, "")
		first := b.turn("vm", "", "session_id", "k1")
		owner := first.header.Get("X-Understudy-Candidate")
		id := "resp_" + owner + "_1"
		if first.status != 200 || !strings.Contains(first.body, id) {
			t.Fatalf("%d %s", first.status, first.body)
		}
		for i := range 12 {
			got := b.turn("vm", `,"previous_response_id":"`+id+`"`, "session_id", fmt.Sprint("other", i))
			if got.header.Get("X-Understudy-Candidate") != owner {
				t.Fatalf("turn %d went to %q, its owner is %q", i, got.header.Get("X-Understudy-Candidate"), owner)
			}
		}
		if got := b.ask("GET", "/v1/responses/"+id+"?stream=false", ""); got.header.Get("X-Understudy-Candidate") != owner {
			t.Errorf("GET without a model went to %q (%d %s)", got.header.Get("X-Understudy-Candidate"), got.status, got.body)
		}
	})
}

// While the owner is frozen nobody else is asked: 409 says who owns it, and until
// when it is away.
func TestAFrozenOwnerIsA409(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownersBed(t, "")
		first := b.turn("vm", "")
		owner := first.header.Get("X-Understudy-Candidate")
		b.freezeNamed(owner, 90*time.Second)
		got := b.turn("vm", `,"previous_response_id":"resp_`+owner+`_1"`)
		if got.status != 409 || got.header.Get("Retry-After") != "90" || got.header.Get("X-Should-Retry") != "false" {
			t.Fatalf("%d %v %s", got.status, got.header, got.body)
		}
		for _, want := range []string{`"owner_unavailable"`, "'" + owner + "'", "90 s left"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("the answer does not say %s: %s", want, got.body)
			}
		}
		if n := len(b.seen("u1")) + len(b.seen("u2")) + len(b.seen("u3")); n != 1 {
			t.Errorf("%d calls, want the first alone", n)
		}
		time.Sleep(91 * time.Second)
		if got := b.turn("vm", `,"previous_response_id":"resp_`+owner+`_1"`); got.header.Get("X-Understudy-Candidate") != owner {
			t.Errorf("after the thaw it went to %q", got.header.Get("X-Understudy-Candidate"))
		}
	})
}

// ownership: prefer tries the others all the same; off does not look.
func TestOwnershipCanBeLoosened(t *testing.T) {
	for mode, wantStatus := range map[string]int{"prefer": 200, "off": 200, "on": 409} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ownersBed(t, "server: {ownership: "+map[string]string{"prefer": "prefer", "off": `"off"`, "on": `"on"`}[mode]+"}")
				owner := b.turn("vm", "").header.Get("X-Understudy-Candidate")
				b.freezeNamed(owner, time.Minute)
				got := b.turn("vm", `,"previous_response_id":"resp_`+owner+`_1"`)
				if got.status != wantStatus {
					t.Fatalf("%d %s", got.status, got.body)
				}
			})
		})
	}
}

// Soft state puts its owner first inside the tier, and the plan goes on from there.
func TestSoftStatePutsItsOwnerFirst(t *testing.T) {
	for name, carry := range map[string]func(owner string) (string, []string){
		"encrypted reasoning": func(o string) (string, []string) {
			return `,"include":[{"type":"reasoning","encrypted_content":"gAAAA` + o + `"}]`, nil
		},
		"turn state": func(o string) (string, []string) { return "", []string{"X-Codex-Turn-State", "turn-" + o} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ownersBed(t, "")
				owner := b.turn("vm", "", "session_id", "k1").header.Get("X-Understudy-Candidate")
				body, headers := carry(owner)
				for i := range 8 {
					got := b.turn("vm", body, append(headers, "session_id", fmt.Sprint("s", i))...)
					if got.header.Get("X-Understudy-Candidate") != owner {
						t.Fatalf("went to %q, its owner is %q", got.header.Get("X-Understudy-Candidate"), owner)
					}
				}
				b.freezeNamed(owner, time.Minute)
				if got := b.turn("vm", body, headers...); got.status != 200 || got.header.Get("X-Understudy-Candidate") == owner {
					t.Errorf("with the owner frozen: %d from %q", got.status, got.header.Get("X-Understudy-Candidate"))
				}
			})
		})
	}
}

// An owner counts only inside the request's own chain.
func TestOwnersOfOtherChainsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownersBed(t, "")
		b.turn("other", "")
		if got := b.turn("vm", `,"previous_response_id":"resp_d_1"`); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// What a failed attempt named is nobody's: the client never saw it.
func TestIdentifiersOfFailedAttemptsAreNotLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, chain(2, ""))
		b.upstream("u1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			sse(w, "event: response.created\ndata: "+`{"type":"response.created","response":{"id":"resp_lost","status":"in_progress","output":[]}}`+"\n\n")
		})
		b.upstream("u2", responses("b"))
		if got := b.turn("vm", ""); got.status != 200 {
			t.Fatal(got.status, got.body)
		}
		if _, ok := b.handler.Owners().Owner("", "resp_lost", time.Now()); ok {
			t.Error("an id that was never released is owned")
		}
		if _, ok := b.handler.Owners().Owner("", "resp_b_1", time.Now()); !ok {
			t.Error("the released id is not owned")
		}
	})
}

// Uploads and batches are owned by the account that took them, and what a finished
// batch names later as well.
func TestFilesAndBatchesAreOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, `
virtual_models:
  vm:
    - any_of:
        - {name: a, base_url: "http://u1", api_key: sk-upstream-secret-1, model: m1}
        - {name: b, base_url: "http://u2", api_key: sk-upstream-secret-2, model: m2}
server: {default_model: vm}
`)
		for i, account := range []string{"a", "b"} {
			b.upstream(fmt.Sprintf("u%d", i+1), func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/v1/files":
					fmt.Fprintf(w, `{"object":"file","id":"file-%s%d","bytes":3}`, account, n)
				case r.Method == "POST":
					fmt.Fprintf(w, `{"object":"batch","id":"batch_%s","status":"in_progress","output_file_id":null}`, account)
				default:
					fmt.Fprintf(w, `{"object":"batch","id":"batch_%s","status":"completed","output_file_id":"file-out-%s","error":null}`, account, account)
				}
			})
		}
		owner := b.ask("POST", "/v1/files", `{"purpose":"batch"}`).header.Get("X-Understudy-Candidate")
		for step, path := range []string{"/v1/batches", "/v1/batches/batch_" + owner, "/v1/files/file-out-" + owner + "/content"} {
			method, body := "GET", ""
			if step == 0 {
				method, body = "POST", `{"input_file_id":"file-`+owner+`1","endpoint":"/v1/responses"}`
			}
			for range 4 {
				if got := b.ask(method, path, body); got.header.Get("X-Understudy-Candidate") != owner {
					t.Fatalf("%s went to %q, its owner is %q (%d %s)", path, got.header.Get("X-Understudy-Candidate"), owner, got.status, got.body)
				}
			}
		}
	})
}

// freezeNamed freezes the candidate of that name, as a rule would.
func (b *bed) freezeNamed(name string, d time.Duration) {
	b.t.Helper()
	for _, chain := range b.handler.Snapshot().Routes.Chains() {
		for _, tier := range chain.Tiers {
			for _, c := range tier {
				if c.Name == name {
					b.handler.Board().Freeze(key(c.ID), health.Freeze{Length: d, Reason: "429"}, time.Now())
					return
				}
			}
		}
	}
	b.t.Fatalf("no candidate %q", name)
}

// What one client has learned of owners says nothing to another: an id that is somebody
// else's routes nobody, and tells nobody that there is such an id.
func TestOwnersBelongToTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ownersBed(t, "clients: [{name: ann, key: client-key-of-ann-0123}, {name: bob, key: client-key-of-bob-0123}]")
		ann, bob := []string{"X-Api-Key", "client-key-of-ann-0123"}, []string{"X-Api-Key", "client-key-of-bob-0123"}
		owner := b.turn("vm", "", ann...).header.Get("X-Understudy-Candidate")
		b.freezeNamed(owner, time.Minute)
		carried := `,"previous_response_id":"resp_` + owner + `_1"`
		if got := b.turn("vm", carried, ann...); got.status != 409 {
			t.Errorf("ann got %d %s", got.status, got.body)
		}
		unknown := b.turn("vm", `,"previous_response_id":"resp_of_nobody"`, bob...)
		got := b.turn("vm", carried, bob...)
		if got.status != 200 || got.header.Get("X-Understudy-Candidate") != unknown.header.Get("X-Understudy-Candidate") || strings.Contains(got.body, owner+"'") {
			t.Errorf("bob got %d from %q: %s", got.status, got.header.Get("X-Understudy-Candidate"), got.body)
		}
		if got := b.ask("GET", "/v1/responses/resp_"+owner+"_1", "", bob...); got.status == 409 {
			t.Errorf("bob learns that ann's id is there: %s", got.body)
		}
	})
}
