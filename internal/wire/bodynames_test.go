package wire

import (
	"strings"
	"testing"
)

func TestNamesInBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"a"}`: "a",
		`{"model":"a","messages":[{"role":"user","content":[{"type":"tool_use","input":{"model":"car"}}]}]}`:        "a",
		`{"model":"a","tools":[{"function":{"parameters":{"properties":{"model":{"type":"string"}}}}}]}`:            "a",
		`{"model":"a","models":["b","c"],"route":"fallback"}`:                                                       "a b c",
		`{"model":"a","fallbacks":[{"model":"b","messages":[{"model":"no"}]},"c"]}`:                                 "a b c",
		`{"model":"a","requests":[{"custom_id":"1","params":{"model":"b"}},{"params":{"mod\u0065l":"c"}}]}`:         "a b c",
		`{"model":"a","session":{"type":"realtime","model":"b","audio":{"input":{"transcription":{"model":"c"}}}}}`: "a b c",
		`{"Model":"b","x":[[{"MODEL":"c"}]],"model":7,"y":{"model":["no"]}}`:                                        "b c",
		`["model"]`: "",
		`{}`:        "",
	} {
		d, err := Scan([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.NamesInBody(), " "); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\na\r\n--b\r\nContent-Disposition: form-data; name=\"session\"\r\n\r\n {\"model\":\"b\"}\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n{\"model\":\"no\"}\r\n--b--\r\n"
	d, err := ScanMultipart([]byte(form), "b")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(d.NamesInBody(), " "); got != "b" {
		t.Errorf("form: %q", got)
	}
	for name, value := range map[string]string{"fallback_model": "b", "Fallbacks": "b", "models[]": " b ", "fallbacks": `["b"]`, "context_window_fallback_dict": `{"a":"b"}`} {
		form := "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\na\r\n--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n--b--\r\n"
		d, err := ScanMultipart([]byte(form), "b")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.NamesInBody(), " "); got != "b" {
			t.Errorf("a form's %s: %q", name, got)
		}
	}
}
