package movein

import (
	"strings"
	"testing"
)

// shape is a secret that no source has, long enough to be shown in part, and so strange
// that nothing else holds its middle.
const (
	shape  = "sk-shape-QQQQQQQQQQ-tail"
	middle = "QQQQQQQQQQ"
)

// A key need not have the shape that its place wants: whatever stands there instead, in
// the configuration without keys, in what people are shown and in an error it never shows.
func TestNoSecretIsShownInAnotherShape(t *testing.T) {
	shapes := map[string][]string{
		"yaml": {`"` + shape + `"`, `'` + shape + `'`, `[` + shape + `]`, `[[` + shape + `, "` + shape + `"]]`, `{a: ` + shape + `}`, `{` + shape + `: 1}`, `!!str ` + shape, `&anchor ` + shape, `"` + shape + `\n` + shape + `"`,
			`"Bearer ` + shape + `"`, `"x y ` + shape + `"`, `"${` + shape + `}"`, `os.environ/` + shape + `x y`, `"https://user:` + shape + `@host/v1"`, `"\u0073k-` + shape + `"`, `"` + shape, `*` + shape, `!!binary ` + shape, shape + `: ` + shape, `"` + strings.Repeat(shape, 200) + `"`},
		"json": {`["` + shape + `"]`, `{"a": "` + shape + `"}`, `{"` + shape + `": 1}`, `"` + shape + `\n"`, `"Bearer ` + shape + `"`, `"https://user:` + shape + `@host/v1"`, `"` + shape, shape, `"` + strings.Repeat(shape, 200) + `"`},
		"toml": {`["` + shape + `"]`, `{a = "` + shape + `"}`, `"""` + shape + `"""`, `'` + shape + `'`, `"Bearer ` + shape + `"`, `"https://user:` + shape + `@host/v1"`, `"` + shape, shape},
	}
	tried, refused := 0, 0
	for _, name := range sources(t) {
		in := source(t, name)
		kind := name[strings.LastIndexByte(name, '.')+1:]
		for _, secret := range secrets[name] {
			for _, form := range shapes[kind] {
				text, ok := reshaped(string(in.Bytes), secret, form)
				if !ok {
					continue
				}
				for _, keys := range []Keys{KeysEnv, KeysInline} {
					tried++
					res, err := Import([]Input{{Path: name, Bytes: []byte(text)}}, Options{Env: nowhere, Keys: keys})
					if err != nil {
						refused++
					}
					if shown := said(res, err); strings.Contains(shown, middle) {
						t.Errorf("%s: %.80s in the place of %s is shown: %.600s", name, form, secret, around(shown))
					}
					if keys == KeysEnv && strings.Contains(string(res.Bytes), middle) {
						t.Errorf("%s: %.80s in the place of %s is in the configuration: %.600s", name, form, secret, around(string(res.Bytes)))
					}
				}
			}
		}
	}
	if tried < 500 || refused == 0 || refused > tried*3/4 {
		t.Errorf("%d tried, %d refused", tried, refused)
	}
}

// reshaped puts another value into the place of the one that is, or holds, a secret.
func reshaped(text, secret, form string) (string, bool) {
	at := strings.Index(text, secret)
	if at < 0 {
		return "", false
	}
	begin, end := at, at+len(secret)
	for begin > 0 && !strings.ContainsRune(" \t\n,[{:=", rune(text[begin-1])) {
		begin--
	}
	for end < len(text) && !strings.ContainsRune(" \t\n,]}", rune(text[end])) {
		end++
	}
	return text[:begin] + form + text[end:], true
}

func around(text string) string {
	return text[max(0, strings.Index(text, middle)-200):]
}
