package wire

import "strings"

// start is what choosing the format remembers between the first bytes of a body.
type start struct {
	text   bool  // see textDue
	due    bool  // see jsonDue
	bom    uint8 // bytes of a byte order mark so far
	indent bool  // blanks stand before the first other byte on its line
	magic  byte  // the first byte of a compressed format's mark
	markup []byte
}

// ByteOrderMark may stand at the very beginning of an answer, and nowhere else: who reads
// events takes it for a part of a field's name there.
const ByteOrderMark = "\xef\xbb\xbf"

// The first bytes of compressed bodies, as the vendors of HTTP codings define them:
// gzip (RFC 1952) and zstd (RFC 8878). Brotli and deflate have no mark.
const gzipMark, zstdMark = "\x1f\x8b", "\x28\xb5"

// htmlMarks begin an HTML page, in lower case.
var htmlMarks = [...]string{"<!doctype html", "<html", "<head", "<body", "<title", "<script", "<meta", "<center"}

// begin reads the first bytes of the body up to the one that tells the format, and
// returns how many it has read. r.format stays Unread until then. The byte that
// tells is not read, but belongs to the format, unless that has no use for it.
func (r *Reader) begin(p []byte) int {
	s := &r.start
	for i, c := range p {
		at := r.at + int64(i)
		switch {
		case s.markup != nil:
			if r.beginMarkup(c, at) {
				return i
			}
		case s.magic != 0:
			if s.magic == gzipMark[0] && c == gzipMark[1] || s.magic == zstdMark[0] && c == zstdMark[1] {
				r.format = Opaque
				r.fail("compressed bytes without their Content-Encoding", nil, false)
			} else {
				r.beginOther(s.magic, at)
			}
			return i
		case s.bom < 3 && at == int64(s.bom) && c == ByteOrderMark[s.bom]:
			s.bom++
		case s.bom > 0 && s.bom < 3: // it was none
			r.beginOther(ByteOrderMark[0], at)
			return i
		case c == '\n' || c == '\r':
			s.indent = false
		case blank(c):
			s.indent = true
		case s.due && (c == gzipMark[0] || c == zstdMark[0]):
			s.magic = c
		case c == '<' && s.due && !r.want.Judged:
			s.markup = append(make([]byte, 0, 16), c)
		default:
			r.choose(c, at)
			return i
		}
	}
	return len(p)
}

// choose picks the format by the first byte that is no blank, which stands at
// offset at.
func (r *Reader) choose(c byte, at int64) {
	w := &r.want
	stream := w.Stream || mediaType(w.ContentType) == "text/event-stream"
	switch {
	case !r.start.text && (!w.Judged || !strings.ContainsRune("{[<:deir", rune(c))):
		r.beginOther(c, at)
	case c == '<' && r.start.due:
		r.format = HTML
		r.fail("HTML where "+r.due()+" was due", nil, false)
	case c == '{' && (w.Stream && (w.Kind == OllamaChat || w.Kind == OllamaGenerate) || linesType(w.ContentType)):
		r.format, r.unasked = NDJSON, w.Judged && !w.Stream
	case c == '[' && w.Judged && w.Stream:
		r.format = Array
	case c == '{', c == '[':
		r.format = JSON
	case strings.IndexByte(":deir", c) >= 0 && (w.Judged || stream), w.Judged && w.Stream:
		r.format, r.unasked = SSE, w.Judged && !w.Stream
		if r.start.indent {
			r.sse.line, r.sse.begun = sseIgnored, true
		}
	default:
		r.beginOther(c, at)
	}
}

// beginOther begins a body whose first byte c is none that text formats begin with.
func (r *Reader) beginOther(c byte, at int64) {
	w := &r.want
	switch {
	case !w.Judged, !r.start.text:
		r.format = Opaque
		r.let(at + 1)
	case w.Stream:
		r.format = SSE
		r.sse.line, r.sse.begun = sseIgnored, true
	default:
		r.format = JSON
		r.doc.scalar = true
		if c == zstdMark[0] || c == gzipMark[0] || c == ByteOrderMark[0] {
			r.doc.body = append(r.doc.body, c) // it was read already
		}
	}
}

// beginMarkup reads c, one of the first bytes of what may be a page, and reports
// whether the format is known now.
func (r *Reader) beginMarkup(c byte, at int64) bool {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	s := &r.start
	s.markup = append(s.markup, c)
	for _, mark := range htmlMarks {
		if mark == string(s.markup) {
			r.format = HTML
			r.fail("HTML where JSON was due", nil, false)
			return true
		}
		if strings.HasPrefix(mark, string(s.markup)) {
			return false
		}
	}
	r.format = Opaque
	r.let(at + 1)
	return true
}

// endBegin is told that the body ended before its format was known.
func (r *Reader) endBegin() {
	if r.want.Judged && (r.start.magic != 0 || r.start.bom > 0 && r.start.bom < 3) {
		r.fail("plain text where "+r.due()+" was due", nil, false)
	}
}

// textDue says that JSON, or a stream of it, may come: the content type does not say
// that it is a file. It lies, but not so.
func textDue(w Want) bool {
	media := mediaType(w.ContentType)
	if media == "application/vnd.amazon.eventstream" || // Bedrock's binary frames
		strings.HasPrefix(media, "audio/") || strings.HasPrefix(media, "image/") || strings.HasPrefix(media, "video/") {
		return false
	}
	return w.Judged || media == "" || strings.HasPrefix(media, "text/") || strings.Contains(media, "json") ||
		strings.Contains(media, "html") || strings.Contains(media, "xml")
}

// jsonDue says that JSON, or a stream of it, must come, so that HTML or compressed
// bytes in its place are a failure. What a GET fetches may well be a page.
func jsonDue(w Want) bool {
	media := mediaType(w.ContentType)
	return textDue(w) && (w.Judged || w.ErrorIsFailure || strings.Contains(media, "json") || media == "text/event-stream")
}

func mediaType(contentType string) string {
	switch contentType {
	case "application/json", "text/event-stream": // which most are
		return contentType
	}
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// linesType says that a content type is one of those newline-delimited JSON has.
func linesType(contentType string) bool {
	switch mediaType(contentType) {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
		"application/jsonlines", "application/x-jsonlines", "application/json-lines", "application/stream+json":
		return true
	}
	return false
}
