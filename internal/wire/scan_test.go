package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustScan(t testing.TB, body string) *Doc {
	t.Helper()
	d, err := Scan([]byte(body))
	if err != nil {
		t.Fatalf("Scan(%.80q): %v", body, err)
	}
	return d
}

func TestScanReadsTopLevelMembers(t *testing.T) {
	d := mustScan(t, ` { "messages":[{"model":"inner","stream":false}], "model" : "gpt-4o" ,"stream":true,
		"metadata":{"session_id":"s-1","user_id":"{\"session_id\":\"u\"}","n":1,"session_id":"s-2"},
		"conversation":{"id":"conv_1"},"prompt_cache_key":"k\u00e9","previous_response_id":null,"store":false,
		"temperature":1.0,"deep":{"a":{"b":"c"}},"stream_format":"sse","session_id":7 } `)
	if !d.IsObject() || !d.HasModel() {
		t.Error("no object, or no model")
	}
	if m, ok := d.Model(); m != "gpt-4o" || !ok {
		t.Errorf("Model() = %q, %v", m, ok)
	}
	for _, c := range []struct {
		path string
		want string
		ok   bool
	}{
		{"prompt_cache_key", "ké", true},
		{"metadata/session_id", "s-2", true},
		{"metadata/user_id", `{"session_id":"u"}`, true},
		{"metadata/n", "", false},
		{"metadata", "", false},
		{"metadata/absent", "", false},
		{"conversation/id", "conv_1", true},
		{"stream_format", "sse", true},
		{"session_id", "", false},
		{"conversation_id", "", false},
		{"previous_response_id", "", false},
		{"deep/a/b", "c", true},
		{"deep/a/b/c", "", false},
		{"temperature", "", false},
		{"", "", false},
	} {
		if got, ok := d.String(strings.Split(c.path, "/")...); got != c.want || ok != c.ok {
			t.Errorf("String(%s) = %q, %v", c.path, got, ok)
		}
	}
	if _, ok := d.String(); ok {
		t.Error("no path leads to a string")
	}
	for key, want := range map[string]string{"temperature": "1.0", "previous_response_id": "null", "conversation": `{"id":"conv_1"}`} {
		if got, ok := d.Raw(key); string(got) != want || !ok {
			t.Errorf("Raw(%s) = %q, %v", key, got, ok)
		}
	}
	for key, want := range map[string][2]bool{"stream": {true, true}, "store": {false, true}, "background": {}, "model": {}, "deep": {}} {
		if v, ok := d.Bool(key); v != want[0] || ok != want[1] {
			t.Errorf("Bool(%s) = %v, %v", key, v, ok)
		}
	}
}

func TestScanModel(t *testing.T) {
	for _, c := range []struct {
		body   string
		model  string
		ok     bool
		has    bool
		models []string
		sent   string // with the model replaced by a "b"\
	}{
		{body: `{}`, sent: `{}`},
		{body: `{"model":"a"}`, model: "a", ok: true, has: true, models: []string{"a"}, sent: `{"model":"a \"b\"\\"}`},
		{body: `{"model":"a","x":1,"model":"z"}`, model: "z", ok: true, has: true, models: []string{"a", "z"},
			sent: `{"model":"a \"b\"\\","x":1,"model":"a \"b\"\\"}`},
		{body: `{"mod\u0065l":"a"}`, model: "a", ok: true, has: true, models: []string{"a"}, sent: `{"mod\u0065l":"a \"b\"\\"}`},
		{body: `{"model":"a","\u006d\u006f\u0064\u0065\u006C" : "z"}`, model: "z", ok: true, has: true, models: []string{"a", "z"},
			sent: `{"model":"a \"b\"\\","\u006d\u006f\u0064\u0065\u006C" : "a \"b\"\\"}`},
		{body: `{"model":null}`, has: true, sent: `{"model":"a \"b\"\\"}`},
		{body: `{"model":"a","model":{"model":"x"}}`, has: true, models: []string{"a"}, sent: `{"model":"a \"b\"\\","model":"a \"b\"\\"}`},
		{body: `{"model":7,"model":"a","model":"a"}`, model: "a", ok: true, has: true, models: []string{"a"},
			sent: `{"model":"a \"b\"\\","model":"a \"b\"\\","model":"a \"b\"\\"}`},
		// Go and .NET servers read these as the model, so they must not differ from it.
		{body: `{"Model":"x","model":"a","MODE\u004c":"y"}`, model: "a", ok: true, has: true, models: []string{"x", "a", "y"},
			sent: `{"Model":"a \"b\"\\","model":"a \"b\"\\","MODE\u004c":"a \"b\"\\"}`},
		{body: `{"Model":"x"}`, models: []string{"x"}, sent: `{"Model":"a \"b\"\\"}`},
		{body: `{"models":"x","mode":"y","model ":"z","messages":[{"model":"a"}]}`, sent: `{"models":"x","mode":"y","model ":"z","messages":[{"model":"a"}]}`},
		{body: `["model","a"]`, sent: `["model","a"]`},
		{body: `"model"`, sent: `"model"`},
		{body: ` null `, sent: ` null `},
		{body: `[{"model":"a"}]`, sent: `[{"model":"a"}]`},
	} {
		d := mustScan(t, c.body)
		if m, ok := d.Model(); m != c.model || ok != c.ok {
			t.Errorf("%s: Model() = %q, %v", c.body, m, ok)
		}
		if d.HasModel() != c.has {
			t.Errorf("%s: HasModel() = %v", c.body, d.HasModel())
		}
		if got := d.Models(); !slices.Equal(got, c.models) {
			t.Errorf("%s: Models() = %q", c.body, got)
		}
		if got := string(bytes.Join(d.Segments(`a "b"\`), nil)); got != c.sent {
			t.Errorf("%s is sent as\n%s, want\n%s", c.body, got, c.sent)
		}
		if d.IsObject() != (strings.TrimSpace(c.body)[0] == '{') {
			t.Errorf("%s: IsObject() = %v", c.body, d.IsObject())
		}
	}
}

// Case 22: what a client wrote reaches the upstream as it was written.
func TestSegmentsChangeNothingElse(t *testing.T) {
	before := "{\n  \"z\" : 1,\t\"seed\":9007199254740993,\"temperature\":1.0,\"p\":1e-7,\"n\":-0,\"s\":\"a <b> & c \u2028 \\ud83d \\/ \\u003c \xff\",\"model\"   :   "
	after := " , \"a\":[ ],\"messages\":\"" + strings.Repeat("渐🌍", 100_000) + "\"\r\n}\n"
	body := []byte(before + `"vm"` + after)
	d := mustScan(t, string(body))
	pieces := d.Segments("m-1")
	if got := string(bytes.Join(pieces, nil)); got != before+`"m-1"`+after {
		t.Error("more than the model changed")
	}
	if len(pieces) != 3 {
		t.Fatalf("%d pieces", len(pieces))
	}
	scanned, _ := Scan(body)
	pieces = scanned.Segments("m-1")
	if &pieces[0][0] != &body[0] || &pieces[2][0] != &body[len(before)+4] {
		t.Error("the rest of the body was copied")
	}
}

func TestSegmentsEscapeOnlyWhatMustBe(t *testing.T) {
	d := mustScan(t, `{"model":1}`)
	for model, want := range map[string]string{
		"":              `""`,
		"org/m:8b <&>":  `"org/m:8b <&>"`,
		"渐🌍\u2028":      "\"渐🌍\u2028\"",
		"a\"b\\c":       `"a\"b\\c"`,
		"\x00\n\t\x1f":  `"\u0000\u000a\u0009\u001f"`,
		"\x7f":          "\"\x7f\"",
		"broken \xff !": "\"broken \ufffd !\"",
	} {
		got := string(bytes.Join(d.Segments(model), nil))
		if got != `{"model":`+want+`}` {
			t.Errorf("%q is written as %s", model, got)
		}
		if d.Len(model) != int64(len(got)) {
			t.Errorf("Len(%q) = %d, the pieces have %d", model, d.Len(model), len(got))
		}
	}
}

func TestScanAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range jsonSeeds {
		_, err := Scan([]byte(s))
		if want := json.Valid([]byte(s)); (err == nil) != want {
			t.Errorf("Scan(%q): %v, encoding/json says %v", s, err, want)
		}
		if err == nil {
			continue
		}
		flaw, ok := errors.AsType[*SyntaxError](err)
		if !ok || flaw.Offset < 0 || flaw.Offset > len(s) || flaw.What == "" {
			t.Errorf("Scan(%q): %#v", s, err)
		}
	}
}

func TestScanSaysWhereTheBodyBreaks(t *testing.T) {
	for _, c := range []struct {
		body string
		want SyntaxError
	}{
		{``, SyntaxError{0, jsonCut}},
		{`{"a":1`, SyntaxError{6, jsonCut}},
		{`{"a":1} x`, SyntaxError{8, jsonTrailing}},
		{`{"a":1}{"a":1}`, SyntaxError{7, jsonTrailing}},
		{"\ufeff{}", SyntaxError{0, jsonNoValue}},
		{`{"a":01}`, SyntaxError{6, jsonNoComma}},
		{`{"a":1.}`, SyntaxError{7, jsonBadNumber}},
		{`{"a" 1}`, SyntaxError{5, jsonNoColon}},
		{`{a:1}`, SyntaxError{1, jsonNoKey}},
		{`{"a":1,}`, SyntaxError{7, jsonNoKey}},
		{"{\"a\":\"x\ny\"}", SyntaxError{7, jsonControl}},
		{`{"a":"\x"}`, SyntaxError{6, jsonBadEscape}},
		{`{"a":"x`, SyntaxError{7, jsonOpenString}},
		{`{"a":[1}`, SyntaxError{7, jsonNoComma}},
		{strings.Repeat(`{"a":`, 10_001), SyntaxError{50_000, jsonTooDeep}},
	} {
		_, err := Scan([]byte(c.body))
		if flaw, ok := errors.AsType[*SyntaxError](err); !ok || *flaw != c.want {
			t.Errorf("Scan(%.20q): %v, want %v", c.body, err, &c.want)
		}
	}
}

func TestScanDepthIsBounded(t *testing.T) {
	for depth, ok := range map[int]bool{9_999: true, 10_000: false, 2_000_000: false} {
		body := []byte(`{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
		if _, err := Scan(body); (err == nil) != ok || json.Valid(body) != ok {
			t.Errorf("%d lists in an object: %v", depth, err)
		}
	}
}

func TestScanBoundsMemory(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"model":"a"`)
	for i := range 500_000 {
		fmt.Fprintf(&b, `,"k%d":{},"stream":true`, i)
	}
	b.WriteString(`}`)
	body := b.Bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Scan(body); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
		t.Errorf("a million members cost %d bytes", allocated)
	}

	models := func(n int) []byte { return []byte("{" + strings.Repeat(`"model":1,`, n-1) + `"model":1}`) }
	if _, err := Scan(models(maxModels)); err != nil {
		t.Error(err)
	}
	_, err := Scan(models(maxModels + 1))
	if flaw, ok := errors.AsType[*SyntaxError](err); !ok || flaw.What != jsonTooManyModel {
		t.Errorf("more model keys than anybody sends: %v", err)
	}
}

// jsonDocument draws a JSON object as text, written in every way the grammar
// allows.
func jsonDocument(t *rapid.T) string {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "})
	key := rapid.SampledFrom([]string{`"model"`, `"model"`, `"mod\u0065l"`, `"\u006Dodel"`, `"Model"`, `"models"`, `"mode"`, `"a"`, `""`,
		`"stream"`, `"metadata"`, `"session_id"`, `"\ud83d"`, "\"\xff\"", `"x\ny"`, `"<"`})
	scalar := rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "9007199254740993", "1e-7", "1.0E+2", "123456789012345678901234567890",
		`""`, `"gpt-4o"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\u003cb\u003e"`, `"a\\\"b\/"`, "\"\u2028渐🌍\"", "\"raw \xff byte\"", `"{\"model\":\"x\"}"`, `"model"`})
	var value func(depth int) string
	members := func(depth, most int) string {
		var b strings.Builder
		b.WriteString("{" + space.Draw(t, "space"))
		for i := range rapid.IntRange(0, most).Draw(t, "members") {
			if i > 0 {
				b.WriteString("," + space.Draw(t, "space"))
			}
			b.WriteString(key.Draw(t, "key") + space.Draw(t, "space") + ":" + space.Draw(t, "space") + value(depth+1) + space.Draw(t, "space"))
		}
		return b.String() + "}"
	}
	value = func(depth int) string {
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0 && depth < 4:
			return members(depth, 3)
		case kind == 1 && depth < 4:
			var b strings.Builder
			b.WriteString("[" + space.Draw(t, "space"))
			for i := range rapid.IntRange(0, 3).Draw(t, "elements") {
				if i > 0 {
					b.WriteString("," + space.Draw(t, "space"))
				}
				b.WriteString(value(depth+1) + space.Draw(t, "space"))
			}
			return b.String() + "]"
		}
		return scalar.Draw(t, "scalar")
	}
	return space.Draw(t, "space") + members(0, 6) + space.Draw(t, "space")
}

func TestScanAndSegmentsOfRandomDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := jsonDocument(t)
		model := rapid.SampledFrom([]string{"m", "", `q"\`, "渐", "a\x01b", "gpt-4o"}).Draw(t, "model")
		checkScan(t, []byte(text), model)
	})
}

func TestScanOfBrokenRandomDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(jsonDocument(t))
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			text = text[:at]
		case 1:
			text = slices.Delete(text, at, at+1)
		case 2:
			text = slices.Insert(text, at, rapid.SampledFrom([]byte("{}[],:\"\\0-.eE tn\x00\xff")).Draw(t, "byte"))
		case 3:
			text[at] = rapid.Byte().Draw(t, "byte")
		}
		checkScan(t, text, "m")
	})
}

// checkScan compares Scan with encoding/json, and the body that is sent on with
// the one that came.
func checkScan(t interface {
	Helper()
	Fatalf(string, ...any)
}, body []byte, model string) {
	t.Helper()
	original := bytes.Clone(body)
	d, err := Scan(body)
	if valid := json.Valid(body); valid != (err == nil) {
		t.Fatalf("Scan(%q): %v, encoding/json says %v", body, err, valid)
	}
	if err != nil {
		return
	}
	var members map[string]json.RawMessage
	isObject := json.Unmarshal(body, &members) == nil && members != nil
	if d.IsObject() != isObject {
		t.Fatalf("%q: IsObject() = %v", body, d.IsObject())
	}
	for _, name := range append(docNames[:], "a", "", "models") {
		raw, ok := d.Raw(name)
		if want, there := members[name]; ok != there || string(raw) != string(want) {
			t.Fatalf("%q: Raw(%q) = %q, %v; want %q", body, name, raw, ok, want)
		}
		text, ok := d.String(name)
		var want any
		_ = json.Unmarshal(members[name], &want)
		if s, there := want.(string); ok != there || text != s {
			t.Fatalf("%q: String(%q) = %q, %v; want %q", body, name, text, ok, s)
		}
	}

	pieces := d.Segments(model)
	sent := bytes.Join(pieces, nil)
	if int64(len(sent)) != d.Len(model) {
		t.Fatalf("%q: Len %d, sent %d", body, d.Len(model), len(sent))
	}
	if !bytes.Equal(body, original) {
		t.Fatalf("%q was changed", original)
	}
	// The values of model are replaced and nothing else, by what encoding/json's
	// own tokens say where they are.
	var want []byte
	at := 0
	for _, m := range topLevel(t, body) {
		if strings.EqualFold(m.name, "model") {
			want = append(append(want, body[at:m.Start]...), pieces[1]...)
			at = m.End
		}
	}
	if want = append(want, body[at:]...); !bytes.Equal(sent, want) {
		t.Fatalf("%q became %q, want %q", body, sent, want)
	}
	for _, m := range topLevel(t, sent) {
		var got string
		if strings.EqualFold(m.name, "model") && (json.Unmarshal(sent[m.Start:m.End], &got) != nil || got != model) {
			t.Fatalf("%q became %q, where the model is %q", body, sent, sent[m.Start:m.End])
		}
	}
	if isObject {
		var loose struct{ Model any }
		if json.Unmarshal(sent, &loose) == nil && len(pieces) > 1 && loose.Model != model {
			t.Fatalf("%q became %q, where a lax reader finds the model %q", body, sent, loose.Model)
		}
	}
}

type member struct {
	name string
	Span // of the value
}

// topLevel finds the members of an object by encoding/json alone.
func topLevel(t interface{ Fatalf(string, ...any) }, body []byte) (members []member) {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		end := int(d.InputOffset())
		members = append(members, member{name.(string), Span{end - len(value), end}})
	}
	return members
}

func FuzzScan(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s), "m")
	}
	f.Add([]byte(`{"mod\u0065l":"a","Model":[{"model":1}],"model":null,"metadata":{"session_id":"x"}}`), "a\"\\\n\xff")
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		checkScan(t, body, strings.ToValidUTF8(model, "\ufffd"))
	})
}

// requestBody returns a chat request of about n bytes, like those of coding
// agents: mostly text with line breaks and quotes in it.
func requestBody(n int) []byte {
	line := `{"role":"user","content":"func main() {\n\tfmt.Println(\"hello, world\")\n}\n渐 and some more words of prose that go on for a while."},`
	var b bytes.Buffer
	b.WriteString(`{"model":"auto-strong","stream":true,"prompt_cache_key":"0198c0de-0000-7000-8000-000000000000","messages":[`)
	for b.Len() < n-len(line) {
		b.WriteString(line)
	}
	b.WriteString(`{"role":"user","content":"go on"}],"temperature":0.7,"max_tokens":4096}`)
	return b.Bytes()
}

func BenchmarkScan(b *testing.B) {
	image := []byte(`{"model":"vm","input":"` + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 2<<20/24) + `"}`)
	for name, body := range map[string][]byte{"1KB": requestBody(1 << 10), "2MB": requestBody(2 << 20), "2MBImage": image} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSegments(b *testing.B) {
	d := mustScan(b, string(requestBody(2<<20)))
	b.ReportAllocs()
	for b.Loop() {
		if len(d.Segments("gpt-4o-2024-08-06")) != 3 {
			b.Fatal("not three pieces")
		}
	}
}
