package wire

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// form writes a form with the boundary B and CRLF. Each part is its header's
// lines, an empty line, and its content, which is left as it is.
func form(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		header, content, _ := strings.Cut(part, "\n\n")
		b.WriteString("--B\r\n" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\n\r\n" + content + "\r\n")
	}
	return b.String() + "--B--\r\n"
}

func field(name, value string) string {
	return `Content-Disposition: form-data; name="` + name + "\"\n\n" + value
}

// Case 27: the model behind a file that holds everything that could be mistaken
// for it.
func TestMultipartModelBehindAFile(t *testing.T) {
	noise := "\x00\r\n--\r\n--C\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwrong\r\n--BB\r\nname=\"model\"\r\n -- B\r\n\n--"
	file := noise + strings.Repeat("\x89PNG\r\n--\x00", 5<<20/9) + noise
	const head = "Content-Disposition: form-data; name=\"file\"; filename=\"a; name=model.wav\"\nContent-Type: audio/wav\n\n"
	for name, parts := range map[string][]string{
		"before": {field("model", "vm"), head + file, field("stream", "true")},
		"after":  {head + file, field("stream", "true"), field("model", "vm")},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(form(parts...))
			d, err := ScanMultipart(body, "B")
			if err != nil {
				t.Fatal(err)
			}
			if m, ok := d.Model(); m != "vm" || !ok || !d.IsObject() || !d.HasModel() {
				t.Errorf("Model() = %q, %v", m, ok)
			}
			if v, ok := d.Bool("stream"); !v || !ok {
				t.Error("stream was not seen")
			}
			if raw, ok := d.Raw("file"); !ok || string(raw) != file {
				t.Error("the file is not whole")
			}
			sent := bytes.Join(d.Segments("whisper-large"), nil)
			if want := strings.Replace(string(body), "\r\n\r\nvm\r\n", "\r\n\r\nwhisper-large\r\n", 1); string(sent) != want {
				t.Error("more than the model changed")
			}
			if d.Len("whisper-large") != int64(len(sent)) {
				t.Errorf("Len %d, sent %d", d.Len("whisper-large"), len(sent))
			}
		})
	}
}

func TestMultipart(t *testing.T) {
	for _, c := range []struct {
		name, body, boundary string
		want                 []string // the models
	}{
		{"plain", form(field("model", "a")), "B", []string{"a"}},
		{"no model", form(field("prompt", "x")), "B", nil},
		{"no part", "--B--", "B", nil},
		{"empty value", form(field("model", "")), "B", []string{""}},
		{"two models", form(field("model", "a"), field("file", "x"), field("model", "z")), "B", []string{"a", "z"}},
		{"preamble and epilogue", "This is a form.\r\n\r\n" + form(field("model", "a")) + "\r\nbye --B\r\n", "B", []string{"a"}},
		{"no line end at the end", strings.TrimSuffix(form(field("model", "a")), "\r\n"), "B", []string{"a"}},
		{"line feeds", "--B\nContent-Disposition: form-data; name=\"model\"\n\na\n--B--\n", "B", []string{"a"}},
		{"padding", strings.ReplaceAll(form(field("model", "a")), "--B\r\n", "--B \t\r\n"), "B", []string{"a"}},
		{"quotes and spaces in the boundary", strings.ReplaceAll(form(field("model", "a")), "--B", "--a b'()+_,-./:=?"), "a b'()+_,-./:=?", []string{"a"}},
		{"dashes in the boundary", strings.ReplaceAll(form(field("model", "a")), "--B", "------WebKit"), "----WebKit", []string{"a"}},
		{"unquoted name", form("Content-Disposition: form-data; name=model\n\na"), "B", []string{"a"}},
		{"spelling of the header", form("content-type: text/plain\nCONTENT-DISPOSITION:form-data;NAME = \"model\" ; x\n\na"), "B", []string{"a"}},
		{"folded header", form("Content-Disposition: form-data;\n\tname=\"model\"\n\na"), "B", []string{"a"}},
		{"extended name", form("Content-Disposition: form-data; name*=UTF-8''mod%65l\n\na"), "B", []string{"a"}},
		{"both names", form("Content-Disposition: form-data; name=model; name*=utf-8'en'model\n\na"), "B", []string{"a"}},
		{"escaped name", form("Content-Disposition: form-data; name=\"m\\odel\"\n\na"), "B", []string{"a"}},
		{"a file called model", form("Content-Disposition: form-data; filename=\"name=\\\"model\\\"\"; name=x\n\na"), "B", nil},
		{"name after a quoted semicolon", form("Content-Disposition: form-data; filename=\";\\\";\"; name=model\n\na"), "B", []string{"a"}},
		{"no disposition", form("Content-Type: text/plain\n\na"), "B", nil},
		{"no header", "--B\r\n\r\na\r\n--B--", "B", nil},
		{"value with line ends", form(field("model", "a\r\n\r\nb\n")), "B", []string{"a\r\n\r\nb\n"}},
		{"other case", form(field("Model", "a")), "B", []string{"a"}},
		{"utf-8", form(field("model", "渐🌍")), "B", []string{"渐🌍"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := ScanMultipart([]byte(c.body), c.boundary)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Models(); !slices.Equal(got, c.want) {
				t.Fatalf("Models() = %q", got)
			}
			sent := bytes.Join(d.Segments("new\r\n--B--"), nil)
			again, err := ScanMultipart(sent, c.boundary)
			if err != nil {
				t.Fatalf("sent as %q: %v", sent, err)
			}
			if got := again.Models(); len(c.want) > 0 && !slices.Equal(got, []string{"new--B--"}) {
				t.Errorf("sent as %q, models %q", sent, got)
			}
			if int64(len(sent)) != d.Len("new\r\n--B--") {
				t.Errorf("Len is wrong")
			}
		})
	}
}

func TestMultipartRefusesWhatReadersDisagreeOver(t *testing.T) {
	model := field("model", "a")
	for name, body := range map[string]string{
		"nothing":                        "",
		"no boundary":                    "a=1&b=2",
		"cut in the boundary":            "--B",
		"cut in the header":              "--B\r\nContent-Disposition: form-data",
		"cut in the value":               "--B\r\nContent-Disposition: form-data; name=model\r\n\r\na",
		"not closed":                     strings.TrimSuffix(form(model), "--\r\n") + "\r\n",
		"part without header's end":      "--B\r\nX: y\r\n--B--",
		"blank line of the boundary":     "--B\r\nContent-Disposition: form-data; name=model\r\n\r\n--B--",
		"part without anything":          "--B\r\n--B--",
		"line feed boundary inside":      form(field("file", "x\n--B\r\nContent-Disposition: form-data; name=model\r\n\r\na")),
		"return boundary inside":         form(field("file", "x\r--B\r\nContent-Disposition: form-data; name=model\r\n\r\na")),
		"boundary with a line feed":      form(field("file", "x\r\n--B\nContent-Disposition: form-data; name=model\n\na")),
		"boundary with rubbish":          form(field("file", "x\r\n--B x\r\n")),
		"half closing boundary":          form(field("file", "x\r\n--B-\r\n")),
		"closing boundary with more":     form(field("file", "x\r\n--B--x\r\n")),
		"CRLF before in an LF form":      "--B\nContent-Disposition: form-data; name=model\n\na\r\n--B--\n",
		"part behind the end":            form(model) + form(model),
		"part with LF behind the end":    form(model) + "\n--B\nContent-Disposition: form-data; name=model\n\nz\n--B--",
		"part behind the end of nothing": "--B--\r\n" + form(model),
		"mixed line ends in a header":    strings.Replace(form("X: y\n"+model), "y\r\n", "y\n", 1),
		"return in a header":             form("X: \ry\n" + model),
		"space before a colon":           form("Content-Disposition : form-data; name=model\n\na"),
		"zero in a header":               form("X: \x00\n" + model),
		"folded first line":              form(" X: y\n" + model),
		"line without colon":             form("X\n" + model),
		"two dispositions":               form("Content-Disposition: form-data; name=x\n" + model),
		"two names":                      form("Content-Disposition: form-data; name=x; name=model\n\na"),
		"two names that differ":          form("Content-Disposition: form-data; name=x; name*=utf-8''model\n\na"),
		"name in pieces":                 form("Content-Disposition: form-data; name*0=mo; name*1=del\n\na"),
		"line feed before the preface":   "x\n" + form(model),
	} {
		_, err := ScanMultipart([]byte(body), "B")
		if flaw, ok := errors.AsType[*SyntaxError](err); !ok || flaw.Offset > len(body) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, boundary := range []string{"", "B\r\n", "B\n--B"} {
		if _, err := ScanMultipart([]byte(form(model)), boundary); err == nil {
			t.Errorf("boundary %q", boundary)
		}
	}
	many := strings.Repeat("--B\r\nContent-Disposition: form-data; name=model\r\n\r\na\r\n", maxModels+1) + "--B--"
	if _, err := ScanMultipart([]byte(many), "B"); err == nil {
		t.Error("more models than anybody sends")
	}
}

func TestMultipartMembers(t *testing.T) {
	d, err := ScanMultipart([]byte(form(field("stream", "True"), field("store", "0"), field("background", "maybe"),
		field("language", "en"), field("language", "de"), field("stream_format", "sse"), field("metadata", `{"session_id":"x"}`))), "B")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]bool{"stream": {true, true}, "store": {false, true}, "background": {}, "absent": {}} {
		if v, ok := d.Bool(key); v != want[0] || ok != want[1] {
			t.Errorf("Bool(%s) = %v, %v", key, v, ok)
		}
	}
	if s, ok := d.String("language"); s != "de" || !ok {
		t.Errorf("the last of two parts counts, got %q, %v", s, ok)
	}
	if s, ok := d.String("stream_format"); s != "sse" || !ok {
		t.Errorf("stream_format %q, %v", s, ok)
	}
	if _, ok := d.String("metadata", "session_id"); ok {
		t.Error("a form has only one level")
	}
	if _, ok := d.Model(); ok || d.HasModel() {
		t.Error("there is no model")
	}
}

// The standard library's writer is understood, whatever the content.
func TestMultipartReadsWhatTheStandardLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if boundary := rapid.StringMatching(`[A-Za-z0-9'()+_,./:=?-]{1,40}`).Draw(t, "boundary"); w.SetBoundary(boundary) != nil {
			return // no boundary: nothing to compare
		}
		content := rapid.SliceOf(rapid.SampledFrom([]string{"\r\n", "\n", "--", "x", "\x00", "\xff", "name=\"model\"", "--\r\n", "B", " "}))
		want := map[string]string{}
		var models []string
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			name := rapid.SampledFrom([]string{"model", "stream", "file", "a\"b\\c", "渐", "x\ny"}).Draw(t, "name")
			value := strings.Join(content.Draw(t, "content"), "")
			if strings.Contains("\r\n"+value, "\n--"+w.Boundary()) || strings.Contains("\r"+value, "\r--"+w.Boundary()) {
				return // the boundary happens to be in the content
			}
			var part io.Writer
			if rapid.Bool().Draw(t, "file") {
				part, _ = w.CreateFormFile(name, "a;b=\"c\".wav")
			} else {
				part, _ = w.CreateFormField(name)
			}
			io.WriteString(part, value)
			want[name] = value
			if name == "model" && !slices.Contains(models, value) {
				models = append(models, value)
			}
		}
		w.Close()
		d, err := ScanMultipart(b.Bytes(), w.Boundary())
		if err != nil {
			t.Fatalf("%q: %v", b.Bytes(), err)
		}
		for _, name := range []string{"model", "stream", "file", "a\"b\\c", "渐"} {
			value, there := want[name]
			if got, ok := d.String(name); got != value || ok != there {
				t.Fatalf("%q: part %q is %q, %v", b.Bytes(), name, got, ok)
			}
		}
		if got := d.Models(); !slices.Equal(got, models) {
			t.Fatalf("%q: models %q, want %q", b.Bytes(), got, models)
		}
		checkForm(t, b.Bytes(), w.Boundary())
	})
}

// checkForm checks that a form which ScanMultipart accepts is read by
// mime/multipart with the same models, before and after they are replaced.
func checkForm(t interface{ Fatalf(string, ...any) }, body []byte, boundary string) {
	d, err := ScanMultipart(body, boundary)
	if err != nil {
		return
	}
	read := func(body []byte) (names, values []string, err error) {
		for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
			part, err := r.NextRawPart()
			if err != nil {
				return names, values, err
			}
			_, params, _ := mime.ParseMediaType("x; " + strings.TrimPrefix(part.Header.Get("Content-Disposition"), "form-data;"))
			value, err := io.ReadAll(part)
			if err != nil {
				return names, values, err
			}
			names, values = append(names, params["name"]), append(values, string(value))
		}
	}
	names, values, err := read(body)
	if err != io.EOF {
		return // what mime/multipart refuses need not be read in the same way
	}
	sent := bytes.Join(d.Segments("new"), nil)
	newNames, newValues, err := read(sent)
	if err != io.EOF {
		t.Fatalf("%q became %q, boundary %q: %v", body, sent, boundary, err)
	}
	if !slices.Equal(names, newNames) {
		t.Fatalf("%q became %q", body, sent)
	}
	found := d.Models()
	for i, name := range names {
		switch {
		case strings.EqualFold(name, "model"):
			if newValues[i] != "new" || !slices.Contains(found, values[i]) {
				t.Fatalf("%q became %q: the model is %q", body, sent, newValues[i])
			}
		case values[i] != newValues[i] && newValues[i] != "new": // a name only we take for model may change
			t.Fatalf("%q became %q: part %q changed", body, sent, name)
		}
	}
}

func FuzzScanMultipart(f *testing.F) {
	f.Add([]byte(form(field("model", "a"), field("file", "\x00\r\n--"))), "B")
	f.Add([]byte("x\r\n"+form("Content-Disposition: form-data; name*=utf-8''model; filename=\"a\\\"b\"\n\na")+"bye"), "B")
	f.Add([]byte("--B\nContent-Disposition: form-data;\n name=model\n\na\n--B--"), "B")
	f.Add([]byte("--B \r\nContent-Disposition: form-data; name=model\r\n\r\n--B--\t\r\n\r\n--B"), "B")
	f.Add([]byte("-----\r\n\r\n-----\r\n\r\n-------\r\n"), "---")
	f.Add([]byte(form(field("file", "\n--B\r\n"))+"\r\n--B\r\n"), "B")
	f.Fuzz(func(t *testing.T, body []byte, boundary string) { checkForm(t, body, boundary) })
}

func BenchmarkScanMultipart(b *testing.B) {
	body := []byte(form(field("model", "a"), field("file", strings.Repeat("\x00\r\n--RIFF....", 5<<20/13))))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ScanMultipart(body, "B"); err != nil {
			b.Fatal(err)
		}
	}
}
