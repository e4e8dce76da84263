package load

import "strings"

var prose = strings.Repeat("You are a careful assistant; answer briefly and cite what you used. ", 20)

// pixels is a piece of base64, as images in requests are.
const pixels = "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAIAAADwf7zUAAAAA3NCSVQICAjb4U"

// Body is a chat request of about 1 KB.
func Body(model string, stream bool) []byte {
	more := ""
	if stream {
		more = `"stream":true,"stream_options":{"include_usage":true},`
	}
	return []byte(`{"model":"` + model + `",` + more + `"messages":[{"role":"system","content":"` + prose[:800] + `"},{"role":"user","content":"Say something about foxes."}],"temperature":0.7,"max_tokens":256}`)
}

// ImageBody is a chat request of about size bytes, nearly all of it one image.
func ImageBody(model string, size int) []byte {
	head := `{"model":"` + model + `","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	tail := `"}}]}],"max_tokens":256}`
	n := max(0, size-len(head)-len(tail))
	var b strings.Builder
	b.Grow(len(head) + n + len(pixels) + len(tail))
	b.WriteString(head)
	for range n/len(pixels) + 1 {
		b.WriteString(pixels)
	}
	b.WriteString(tail)
	return []byte(b.String())
}
