package proxy

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/internal/config"
)

// encoders are the ways in which programs write bytes as text.
var encoders = map[string]func(string) string{
	"base64":              func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 for URLs":     func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 without ends": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"URLs without ends":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"hex":                 func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":                 func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
}

// leaks are the pieces of a coded secret from which more could be read than a mask
// shows.
func leaks(secret string) (pieces []string) {
	middle := secret[6 : len(secret)-4]
	for name, code := range encoders {
		for shift := range 3 {
			coded := code(strings.Repeat("x", shift) + middle)
			// The first group holds what stands before, the last what stands behind.
			if coded = strings.TrimRight(coded, "="); len(coded) > 12 {
				pieces = append(pieces, coded[4:len(coded)-4])
			} else {
				panic(name)
			}
		}
	}
	return pieces
}

// A secret is taken out of what an upstream has coded, wherever it stands to the groups
// of the coding, whatever stands around it, escaped on top of it or not; the rest stays.
func TestHideKnowsCodings(t *testing.T) {
	const secret = "sk-proj-0123?>~ÿ-abcdefghijklmn-4567"
	r := knowing(secret, "another-secret-9876543210")
	for coding, code := range encoders {
		for _, before := range []string{"", "u", "us", "use", "user:", `{"key":"`} {
			for _, behind := range []string{"", "e", "en", "end", `"}`} {
				for escape, write := range spelled {
					told := write(code(before + secret + behind))
					text := "bad header: Basic/" + told + " in request_0123456789abcdefghij"
					got := r.Hide(text)
					if !strings.HasPrefix(got, "bad header: Basic/") || !strings.HasSuffix(got, " in request_0123456789abcdefghij") || !strings.Contains(got, config.Mask(secret)) {
						t.Fatalf("%s, %s, %q…%q: %q is shown as %q", coding, escape, before, behind, text, got)
					}
					for _, piece := range leaks(secret) {
						if strings.Contains(got, piece) {
							t.Fatalf("%s, %s, %q…%q: %q still shows in %q", coding, escape, before, behind, piece, got)
						}
					}
				}
			}
		}
	}
	// The request's own, and what was cut off.
	own := &quoter{base: knowing("another-secret-9876543210"), secrets: []string{"Bearer " + secret}}
	for coding, code := range encoders {
		whole := code("user:" + secret)
		for _, text := range []string{"you sent " + whole, "you sent " + whole[:2*len(whole)/3] + "…"} {
			if got := own.Quote(text, 300); !strings.Contains(got, config.Mask(secret)) {
				t.Errorf("%s: %q is shown as %q", coding, text, got)
			}
		}
	}
	for _, harmless := range []string{
		"claude-sonnet-4-5-20250929", "/v1beta/models/gemini-2.5-pro:streamGenerateContent", strings.Repeat("QUJD", 1000), strings.Repeat("41", 1000),
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("sk-proj-", 30))), "sk-proj-",
	} {
		if got := own.Hide(harmless); got != harmless {
			t.Errorf("%q became %q", harmless, got)
		}
	}
}

// What is read out of a text is what a decoder reads out of it, and comes from where it
// is said to come from.
func TestDecodingsAgreeWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 20, 80).Draw(t, "bytes")
		name := rapid.SampledFrom([]string{"base64", "URLs without ends", "hex", "HEX"}).Draw(t, "coding")
		before := rapid.StringMatching(`[a-zA-Z0-9/_ -]{0,7}`).Draw(t, "before")
		text := before + encoders[name](string(bytes)) + " ."
		found := false
		for plain, c := range decodings(text, 16) {
			i := strings.Index(string(plain), string(bytes))
			if i < 0 {
				continue
			}
			found = true
			if from, to := c.origin(i, i+len(bytes)); from != len(before) || strings.TrimRight(text[to:], "= .") != "" {
				t.Fatalf("%q: it is said to be %q", text, text[from:to])
			}
		}
		if !found {
			t.Fatalf("%q is not read out of %q", bytes, text)
		}
	})
}

// However long a text is, what is shown of it costs no more than what is shown.
func TestQuotingLongTextsCostsLittle(t *testing.T) {
	for _, letter := range []string{"x", "%", "é", "/", "A1"} {
		q := &quoter{base: knowing("another-secret-9876543210"), secrets: []string{"Bearer sk-client-0123456789abcdefghij"}}
		short, long := strings.Repeat(letter, 100<<10), strings.Repeat(letter, 16<<20)
		cost := func(text string) float64 { return testing.AllocsPerRun(3, func() { q.Quote(text, 200) }) }
		if q.Quote(short, 200) != q.Quote(long, 200) {
			t.Errorf("%s: the quotes differ", letter)
		}
		if a, b := cost(short), cost(long); b > a {
			t.Errorf("%s: %v allocations instead of %v", letter, b, a)
		}
	}
}

// An upstream that tells what it was sent, coded, tells nobody else by way of us.
func TestCodedEchoesNeverShow(t *testing.T) {
	const key, clients = "sk-upstream-0123456789-secret-1", "client-key-0123456789-of-somebody"
	for name, code := range encoders {
		told := fmt.Sprintf("header Basic %s, token %s", code("user:"+key), code("Bearer "+clients))
		u := play(t, refusal(401, fmt.Sprintf(`{"error":{"message":%q,"code":%q}}`, told, told)))
		r := newRig(t, fmt.Sprintf("clients: [{name: me, key: %s}]\nrules: [{match: {status: 401}, action: freeze}]\nvirtual_models: {vm: [{base_url: %q, api_key: %s, model: m1}]}", clients, u.URL(), key))
		got := r.post("/v1/chat/completions", `{"model":"vm"}`, "Authorization", "Bearer "+clients)
		shown := fmt.Sprintf("%s%s%s%+v%+v", got.Head, got.Body, r.log, r.settle(), r.handler.Board().Export(time.Now()))
		for _, rec := range r.settle() {
			for _, try := range rec.Tries {
				shown += fmt.Sprintf("%+v", try.Failure)
			}
		}
		if got.Status != 502 || !strings.Contains(shown, config.Mask(key)) {
			t.Errorf("%s: client got %d, and nothing was quoted: %s", name, got.Status, shown)
		}
		for _, secret := range []string{key, clients} {
			for _, piece := range leaks(secret) {
				if i := strings.Index(shown, piece); i >= 0 {
					t.Errorf("%s: %q shows in …%s", name, piece, shown[max(0, i-60):min(len(shown), i+60)])
				}
			}
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, fmt.Sprintf("sk-proj-%d-0123456789abcdefghijklmnop", i))
	}
	base := knowing(secrets...)
	for name, text := range map[string]string{
		"a short name": "gpt-4o",
		"a long name":  "claude-sonnet-4-5-20250929",
		"a path":       "/v1/chat/completions",
		"an error":     `{"error":{"message":"Rate limit reached for gpt-4o in organization org-AbCdEfGhIjKlMnOpQrStUvWx on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","code":"rate_limit_exceeded"}}`,
		"a megabyte":   base64.StdEncoding.EncodeToString([]byte(strings.Repeat("any picture's bytes ", 40_000))),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := &quoter{base: base, secrets: []string{"Bearer sk-client-0123456789abcdefghij"}}
				if name == "a megabyte" {
					q.Hide(text)
				} else {
					q.Quote(text, 300)
				}
			}
		})
	}
}
