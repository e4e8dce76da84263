package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// jsonSeeds are documents and near-documents that strict readers disagree over.
var jsonSeeds = []string{
	`{}`, `[]`, ` { } `, "\t[\r\n]\n", `null`, `true`, `false`, `"x"`, `0`, `-0`, `1e-7`, `1E+7`, `0.5`, `9007199254740993`, `-1.0e0`,
	`{"a":1,"a":2}`, `{"a":[{"b":{}},[],{}]}`, `[[[[]]]]`, `{"model":"x","stream":true}`, "\u2028\"\u2028\"", "\"\u2028\"",
	`"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\ude00"`, `"\ud83dA"`, `"\/\b\f\n\r\t\"\\"`, `"<>&\u003c"`, "\"\xff\xfe\"", "\"\x7f\"", `"\u0000"`,
	``, ` `, `{`, `}`, `[`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{"a":1 "b":2}`, `[1 2]`, `{a:1}`, `{'a':1}`, `{1:2}`,
	`nul`, `nulll`, `True`, `tru`, `falsey`, `NaN`, `Infinity`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1e`, `1e+`, `0x1`, `1_0`, `--1`,
	`"`, `"a`, `"\`, `"\"`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"", "\"abcdefg\x1f\"", "\"\t\"",
	`{} {}`, `{}x`, `1 2`, "\ufeff{}", "{}\x00", `{}//`, `/**/{}`, "\v{}", "\u00a0{}", `{"a":1}}`, `[1]]`,
}

func TestJSONValidAgreesWithEncodingJSON(t *testing.T) {
	for _, s := range jsonSeeds {
		if got, want := jsonValid([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("jsonValid(%q) = %v, encoding/json says %v", s, got, want)
		}
	}
	for _, depth := range []int{1, 63, 64, 65, 9_999, 10_000, 10_001, 200_000} {
		for _, s := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
			strings.Repeat(`[{"a":`, depth/2) + "{}" + strings.Repeat("}]", depth/2),
			strings.Repeat("[", depth),
		} {
			if got, want := jsonValid([]byte(s)), json.Valid([]byte(s)); got != want {
				t.Errorf("%.12s… %d deep: jsonValid %v, encoding/json %v", s, depth, got, want)
			}
		}
	}
}

// Every byte value at every place of the eight-byte window must be seen.
func TestJSONStringFindsEverySpecialByte(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			s := []byte(`"` + strings.Repeat("x", 20) + `"`)
			s[1+at] = byte(c)
			if got, want := jsonValid(s), json.Valid(s); got != want {
				t.Errorf("byte %#x at %d: jsonValid %v, encoding/json %v", c, at, got, want)
			}
		}
	}
}

func TestSyntaxErrorSaysWhereAndWhat(t *testing.T) {
	if _, err := Scan([]byte(`{"a":tru}`)); err == nil || err.Error() != "at byte 5: a value is due" {
		t.Errorf("%v", err)
	}
}

func TestJSONCursor(t *testing.T) {
	raw := []byte("{ \"a\" : [ 1 , {\"x\":\"]}\"} ,\"s\\\"\" ] ,\r\n\"b\\u0063\":-1.5e3,\"n\":null , \"o\":{\"a\":{}}\t}")
	var got []string
	for c := jsonIn(raw); c.next(); {
		got = append(got, string(c.key)+"="+string(c.value))
	}
	want := []string{`"a"=[ 1 , {"x":"]}"} ,"s\"" ]`, `"bc"=-1.5e3`, `"n"=null`, `"o"={"a":{}}`}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("members\n got %q\nwant %q", got, want)
	}
	list, _ := jsonField(raw, "a")
	got = got[:0]
	for c := jsonIn(list); c.next(); {
		if c.key != nil {
			t.Errorf("an element has the key %q", c.key)
		}
		got = append(got, string(c.value))
	}
	if strings.Join(got, "|") != `1|{"x":"]}"}|"s\""` {
		t.Errorf("elements %q", got)
	}
	if v, ok := jsonField(raw, "bc"); !ok || string(v) != "-1.5e3" {
		t.Errorf("escaped key: %q %v", v, ok)
	}
	if v, ok := jsonPath(raw, "o", "a"); !ok || string(v) != "{}" {
		t.Errorf("path: %q %v", v, ok)
	}
	if _, ok := jsonPath(raw, "o", "a", "x"); ok {
		t.Error("a path leads out of the document")
	}
	if _, ok := jsonPath(raw, "n", "a"); ok {
		t.Error("a path leads through null")
	}
	if v, _ := jsonField([]byte(`{"k":1,"k":2}`), "k"); string(v) != "2" {
		t.Errorf("of two members the last counts, got %q", v)
	}
	for _, scalar := range []string{``, `1`, `"{"`, `null`} {
		if c := jsonIn([]byte(scalar)); c.next() {
			t.Errorf("%q has members", scalar)
		}
	}
}

// A key is given as it stands unless its escapes are needless.
func TestJSONCursorUndoesNeedlessEscapes(t *testing.T) {
	for raw, want := range map[string]string{`"\u0065rror"`: `"error"`, `"a\/b"`: `"a/b"`, `"\""`: `"\""`, `"\\u0065rror"`: `"\\u0065rror"`, `"\u0022"`: `"\u0022"`, `"\n\u0061"`: `"\n\u0061"`, `"\u00e9"`: `"é"`, `""`: `""`} {
		c := jsonIn([]byte("{" + raw + ":1}"))
		if !c.next() || string(c.key) != want {
			t.Errorf("the key %s is %s, want %s", raw, c.key, want)
		}
	}
}

func TestJSONStrings(t *testing.T) {
	for _, raw := range []string{
		`""`, `"plain"`, `"渐🌍"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\u0041"`,
		`"a\n\t\"\\\/\b\f\r\u00e9\u0000z"`, "\"\xff\"", "\"a\xe2\x82\"", "\"\xe2\x82\\n\"", `"\u2028"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := jsonText([]byte(raw)); !ok || got != want {
			t.Errorf("jsonText(%s) = %q, %v; want %q", raw, got, ok, want)
		}
		if got := jsonRunes([]byte(raw)); got != utf8.RuneCountInString(want) {
			t.Errorf("jsonRunes(%s) = %d, want %d", raw, got, utf8.RuneCountInString(want))
		}
		if !jsonIs([]byte(raw), want) || jsonIs([]byte(raw), want+"x") || jsonIs([]byte(raw), "x"+want) {
			t.Errorf("jsonIs(%s) does not tell %q from others", raw, want)
		}
	}
	for _, raw := range []string{``, `1`, `null`, `{"a":1}`, `["x"]`} {
		if text, ok := jsonText([]byte(raw)); ok || text != "" || jsonIs([]byte(raw), "") || jsonRunes([]byte(raw)) != 0 {
			t.Errorf("%q passes for a string", raw)
		}
	}
}

func TestJSONInt(t *testing.T) {
	for raw, want := range map[string]int64{"0": 0, "-3": -3, "12.0": 12, "1e3": 1000, "2.9": 2, "9007199254740993": 9007199254740993} {
		if got, ok := jsonInt([]byte(raw)); !ok || got != want {
			t.Errorf("jsonInt(%s) = %d, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{``, `"1"`, `null`, `1e400`, `1e30`, `[]`} {
		if n, ok := jsonInt([]byte(raw)); ok {
			t.Errorf("jsonInt(%s) = %d", raw, n)
		}
	}
}

func TestJSONCursorAllocatesNothing(t *testing.T) {
	raw := []byte(`{"id":"x","choices":[{"index":0,"delta":{"content":"caf\u00e9"}}],"usage":{"total_tokens":7}}`)
	runes := 0
	if n := testing.AllocsPerRun(100, func() {
		for c := jsonIn(raw); c.next(); {
			if !jsonIs(c.key, "choices") {
				continue
			}
			for e := jsonIn(c.value); e.next(); {
				text, _ := jsonPath(e.value, "delta", "content")
				runes += jsonRunes(text)
			}
		}
		if v, _ := jsonPath(raw, "usage", "total_tokens"); len(v) == 1 {
			n, _ := jsonInt(v)
			runes += int(n)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if runes == 0 {
		t.Error("nothing read")
	}
}

func FuzzJSONCursor(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		valid := jsonValid(b)
		if valid != json.Valid(b) {
			t.Fatalf("jsonValid %v", valid)
		}
		n := 0
		var keys []string
		for c := jsonIn(b); c.next(); n++ {
			if valid && !json.Valid(c.value) {
				t.Fatalf("value %q", c.value)
			}
			if valid && c.object {
				key, ok := jsonText(c.key)
				if !ok || !jsonIs(c.key, key) {
					t.Fatalf("key %q", c.key)
				}
				keys = append(keys, key)
			}
			if n > len(b) {
				t.Fatal("the cursor does not end")
			}
		}
		if !valid {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(b, &object) == nil {
			for _, key := range keys {
				if v, ok := jsonField(b, key); !ok || string(v) != string(object[key]) {
					t.Fatalf("field %q: %q, want %q", key, v, object[key])
				}
			}
		}
	})
}
