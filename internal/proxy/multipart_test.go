package proxy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/drill"
)

// A form is a multipart body before its model is put in: the model's part comes
// after a file of 5 MiB that holds what could be mistaken for parts.
type form struct {
	boundary, contentType string
	file                  []byte
}

// awkward is the file: zero bytes, line breaks before dashes, words of a part's
// header, and the boundary itself without its line.
func awkward(boundary string) []byte {
	piece := "RIFF\x00\x01\xff\r\n--\r\n--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nvm\r\n-" + boundary + " --" + boundary + "z\n--"
	return bytes.Repeat([]byte(piece), (5<<20)/len(piece))
}

// body is the whole form with the given model.
func (f form) body(model string) string {
	return "--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\nContent-Type: audio/wav\r\n\r\n" + string(f.file) +
		"\r\n--" + f.boundary + "\r\nContent-Disposition: form-data; name=\"response_format\"\r\n\r\njson\r\n--" + f.boundary +
		"\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n--" + f.boundary + "--\r\n"
}

// Case 27: of a form only the model part's value changes, its boundary and its
// file stay, it routes, and failover sends it again.
func TestFormIsForwardedButForItsModel(t *testing.T) {
	for name, f := range map[string]form{
		"plain boundary":  {boundary: "----WebKitFormBoundary7MA4YWxk", contentType: `multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk`},
		"quoted boundary": {boundary: "b:1 'x'/(y)", contentType: `Multipart/Form-Data; charset=utf-8; boundary="b:1 'x'/(y)"`},
	} {
		f.file = awkward(f.boundary)
		for _, path := range []string{"/v1/audio/transcriptions", "/v1/images/edits"} {
			for _, chunked := range []bool{false, true} {
				if chunked == (path == "/v1/images/edits") {
					continue // half of the combinations say as much as all
				}
				t.Run(fmt.Sprintf("%s, %s, chunked %v", name, path, chunked), func(t *testing.T) {
					u1, u2 := play(t, refusal(500, `{"error":{"message":"oops"}}`)), play(t, drill.Healthy(drill.Answer{}))
					r := newRig(t, over("rules: []", u1.URL(), u2.URL()))
					got := r.send(drill.Query{Path: path, Body: []byte(f.body("vm")), Header: []string{"Content-Type", f.contentType}, Chunked: chunked, Piece: 30_001})
					if got.Status != 200 || !got.Clean || got.Get("X-Understudy-Candidate") != "u2" {
						t.Fatalf("client got %d %s from %q\n%s", got.Status, got.Body, got.Get("X-Understudy-Candidate"), r.log)
					}
					for i, u := range []*drill.Upstream{u1, u2} {
						q := only(t, u)
						sameBytes(t, fmt.Sprintf("u%d", i+1), q.Body, f.body(fmt.Sprintf("m%d", i+1)))
						if q.Get("Content-Type") != f.contentType || q.Get("Content-Length") != strconv.Itoa(len(q.Body)) {
							t.Errorf("u%d got %q, length %q", i+1, q.Get("Content-Type"), q.Get("Content-Length"))
						}
						if sum := fileSum(t, q); sum != sha256.Sum256(f.file) {
							t.Errorf("u%d got another file", i+1)
						}
					}
				})
			}
		}
	}
}

// fileSum reads a form as a server would and sums its file.
func fileSum(t *testing.T, q drill.Request) (sum [sha256.Size]byte) {
	t.Helper()
	_, params, err := mime.ParseMediaType(q.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(bytes.NewReader(q.Body), params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatalf("no file in the form: %v", err)
		}
		if p.FormName() == "file" {
			data, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			return sha256.Sum256(data)
		}
	}
}

// A model part whose candidate's name is of another length, that comes first, or
// twice, or with a content type of its own.
func TestFormModelIsReplacedWhereverItStands(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, "virtual_models: {vm: [{base_url: \""+u.URL()+"\", api_key: sk-upstream-secret-1, model: \"a-much-longer/name é\"}]}")
	part := func(header, value string) string {
		return "--B\r\nContent-Disposition: form-data; name=" + header + "\r\n\r\n" + value + "\r\n"
	}
	const file = "--B\r\nContent-Disposition: form-data; name=file; filename=x\r\n\r\nxyz\r\n"
	for name, form := range map[string]string{
		"first":             part("model", "%s") + file + "--B--",
		"quoted name":       part(`"model"`, "%s") + file + "--B--\r\n",
		"twice":             part("model", "%s") + file + part(`"model"`, "%s") + "--B--\r\n",
		"its own type":      file + part("model\r\nContent-Type: text/plain; charset=utf-8", "%s") + "--B--\r\nepilogue",
		"a preamble":        "preamble\r\n" + part("model", "%s") + "--B--\r\n",
		"with stream asked": part("stream", "true") + part("model", "%s") + "--B--\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			before := u.Count()
			sent := strings.ReplaceAll(form, "%s", "vm")
			if got := r.post("/v1/audio/transcriptions", sent, "Content-Type", "multipart/form-data; boundary=B"); got.Status != 200 {
				t.Fatalf("client got %d %s", got.Status, got.Body)
			}
			if got, want := string(u.Requests()[before].Body), strings.ReplaceAll(form, "%s", "a-much-longer/name é"); got != want {
				t.Errorf("upstream got\n%q, want\n%q", got, want)
			}
		})
	}
}

// A form without a model, or that no reader is sure of, is refused where a model
// must be replaced.
func TestFormWithoutAModelIsRefused(t *testing.T) {
	u := play(t, drill.Healthy(drill.Answer{}))
	r := newRig(t, over("", u.URL()))
	for name, form := range map[string]string{
		"no model":     "--B\r\nContent-Disposition: form-data; name=file; filename=x\r\n\r\nmodel\r\n--B--\r\n",
		"cut":          "--B\r\nContent-Disposition: form-data; name=model\r\n\r\nvm\r\n",
		"two readings": "--B\r\nContent-Disposition: form-data; name=model\r\n\r\nvm\r\n--B--\r\n--B\r\nContent-Disposition: form-data; name=model\r\n\r\nother\r\n--B--\r\n",
	} {
		got := r.post("/v1/audio/transcriptions", form, "Content-Type", "multipart/form-data; boundary=B")
		if got.Status != 400 {
			t.Errorf("%s: client got %d %s", name, got.Status, got.Body)
		}
	}
	uncalled(t, u)
}
