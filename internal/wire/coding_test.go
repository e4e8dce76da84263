package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// coder is a compressor whose output can be cut into pieces that stand alone.
type coder interface {
	io.WriteCloser
	Flush() error
}

var coders = map[string]func(io.Writer) coder{
	"gzip":    func(w io.Writer) coder { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) coder { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) coder { return zlib.NewWriter(w) },
	"deflate without its header": func(w io.Writer) coder {
		f, _ := flate.NewWriter(w, flate.DefaultCompression)
		return f
	},
	"br": func(w io.Writer) coder { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) coder {
		z, _ := zstd.NewWriter(w, zstd.WithWindowSize(128<<10))
		return z
	},
}

// codingName is what the header says for a coder.
func codingName(coder string) string {
	name, _, _ := strings.Cut(coder, " ")
	return name
}

func encode(coder string, plain []byte) []byte {
	var b bytes.Buffer
	w := coders[coder](&b)
	w.Write(plain)
	w.Close()
	return b.Bytes()
}

// Case 24.
func TestDecodeAll(t *testing.T) {
	plain := requestBody(100_000)
	for name := range coders {
		coding := codingName(name)
		for _, header := range []string{coding, " " + strings.ToUpper(coding) + " ", "identity, " + coding, coding + ","} {
			got, err := DecodeAll(header, encode(name, plain), int64(len(plain)))
			if err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s as %q: %d bytes, %v", name, header, len(got), err)
			}
		}
		if _, err := DecodeAll(coding, encode(name, plain), int64(len(plain)-1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, one byte too long: %v", name, err)
		}
		if got, err := DecodeAll(coding, nil, 10); err != nil || len(got) != 0 {
			t.Errorf("%s of nothing: %q, %v", name, got, err)
		}
		if got, err := DecodeAll(coding, encode(name, nil), 0); err != nil || len(got) != 0 {
			t.Errorf("%s of an empty body: %q, %v", name, got, err)
		}
	}
	for _, header := range []string{"", "identity", " Identity ,"} {
		if got, err := DecodeAll(header, plain, int64(len(plain))); err != nil || &got[0] != &plain[0] {
			t.Errorf("%q: %v", header, err)
		}
		if _, err := DecodeAll(header, plain, 10); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%q, too long: %v", header, err)
		}
	}
	for _, header := range []string{"foo", "gzip, foo", "compress", "*", "gzip;q=1", "gzip,gzip,gzip,gzip,gzip"} {
		if _, err := DecodeAll(header, plain, 1<<20); !errors.Is(err, ErrUnknownCoding) {
			t.Errorf("%q: %v", header, err)
		}
		if _, err := NewDecoder(header, bytes.NewReader(plain)); !errors.Is(err, ErrUnknownCoding) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestDecodeAllUndoesTheLastCodingFirst(t *testing.T) {
	plain := requestBody(10_000)
	twice := encode("zstd", encode("gzip", plain))
	if got, err := DecodeAll("gzip, zstd", twice, int64(len(plain))); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := DecodeAll("zstd, gzip", twice, 1<<20); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the wrong way round: %v", err)
	}
}

func TestDecodeAllTellsWhatIsBroken(t *testing.T) {
	plain := requestBody(3_000)
	for name := range coders {
		coding, coded := codingName(name), encode(name, plain)
		for cut := 1; cut < len(coded); cut++ {
			got, err := DecodeAll(coding, coded[:cut], 1<<20)
			if !errors.Is(err, ErrCorrupt) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut after %d of %d bytes: %d bytes, %v", name, cut, len(coded), len(got), err)
			}
		}
		if _, err := DecodeAll(coding, append(bytes.Clone(coded), "rubbish"...), 1<<20); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s with rubbish behind it: %v", name, err)
		}
		if _, err := DecodeAll(coding, []byte(`{"model":"x"}`), 1<<20); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s that is plain: %v", name, err)
		}
		if name == "br" || strings.Contains(name, "without") {
			continue // they have no checksum
		}
		for at := range coded {
			broken := bytes.Clone(coded)
			broken[at] ^= 0x10
			if got, err := DecodeAll(coding, broken, 1<<20); err == nil && !bytes.Equal(got, plain) {
				t.Errorf("%s with byte %d of %d changed decodes to something else", name, at, len(coded))
			}
		}
	}
	dictionary := []byte{0x78, 0x20, 0, 0, 0, 0, 0}
	dictionary[1] |= byte(31 - (int(dictionary[0])<<8|int(dictionary[1]))%31)
	if _, err := DecodeAll("deflate", dictionary, 10); !errors.Is(err, ErrCorrupt) {
		t.Errorf("deflate with a dictionary: %v", err)
	}
}

// A small body must not decode to a gigabyte, nor claim its memory.
func TestDecodeAllBoundsBombs(t *testing.T) {
	const limit = 64 << 10
	zeros := make([]byte, 16<<20)
	for name := range coders {
		bomb := encode(name, zeros)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := DecodeAll(codingName(name), bomb, limit); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s: %d bytes for a limit of %d", name, used, limit)
		}
	}
	// What is inside may be as small as it likes: a stage on the way counts too.
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 16, 0}, make([]byte, 1<<20)...)
	if _, err := DecodeAll("zstd, gzip", encode("gzip", skippable), limit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large stage with a small result: %v", err)
	}

	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithWindowSize(128<<20))
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte("a"))
	z.Flush()
	z.Write([]byte("b"))
	z.Close()
	if _, err := DecodeAll("zstd", b.Bytes(), limit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a window of 128 MiB: %v", err)
	}
}

func TestDecodeAllManyMembersCostLittle(t *testing.T) {
	empty := encode("gzip", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := DecodeAll("gzip", bytes.Repeat(empty, 50_000), 1<<20)
	if err != nil || len(got) != 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes", used)
	}
}

// handed gives the pieces of a body one at a time, as they come from a network.
// A read that would have to wait is an error, so a decoder that asks for more
// than it needs is found out.
type handed struct {
	now []byte
	end bool
}

var errWouldWait = errors.New("nothing more has come yet")

func (h *handed) Read(p []byte) (int, error) {
	if len(h.now) == 0 {
		if h.end {
			return 0, io.EOF
		}
		return 0, errWouldWait
	}
	n := copy(p, h.now)
	h.now = h.now[n:]
	return n, nil
}

func TestDecoderYieldsEachEventAsItComes(t *testing.T) {
	events := []string{"data: {\"a\":1}\n\n", ": ping\n\n", "data: " + strings.Repeat("渐 and more ", 20_000) + "\n\n", "data: [DONE]\n\n"}
	for name, newCoder := range coders {
		for _, apart := range []bool{false, true} { // each event a stream of its own
			if apart && codingName(name) != "gzip" && name != "zstd" {
				continue
			}
			source := &handed{}
			d, err := NewDecoder(codingName(name), source)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			w := newCoder(&b)
			buf := make([]byte, 1000)
			for i, event := range events {
				b.Reset()
				w.Write([]byte(event))
				switch {
				case apart:
					w.Close()
					w = newCoder(&b)
				default:
					w.Flush()
				}
				source.now = bytes.Clone(b.Bytes())
				for got := ""; len(got) < len(event); {
					n, err := d.Read(buf)
					if got += string(buf[:n]); err != nil || !strings.HasPrefix(event, got) {
						t.Fatalf("%s, apart %v, event %d: %d of %d bytes, %v", name, apart, i, len(got), len(event), err)
					}
				}
			}
			if b.Reset(); !apart {
				w.Close()
			}
			source.now, source.end = b.Bytes(), true
			if n, err := d.Read(buf); n != 0 || err != io.EOF {
				t.Errorf("%s, apart %v: the end is %d bytes, %v", name, apart, n, err)
			}
			if n, err := d.Read(buf); n != 0 || err != io.EOF {
				t.Errorf("%s, apart %v: after the end: %d bytes, %v", name, apart, n, err)
			}
			d.Close()
			if _, err := d.Read(buf); err == nil {
				t.Errorf("%s: a closed decoder goes on", name)
			}
		}
	}
}

// However the bytes are cut, they decode to the same, and the last byte of the
// content does not wait for the checksum.
func TestDecoderReadsAnySplit(t *testing.T) {
	plain := requestBody(20_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for name := range coders {
		coded := encode(name, plain)
		for range 20 {
			d, err := NewDecoder(codingName(name), &pieces{rest: coded, most: 1 + rnd.IntN(300), rnd: rnd})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(d)
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s: %d bytes, %v", name, len(got), err)
			}
			d.Close()
		}
	}
	for name, tail := range map[string]int{"gzip": 8, "deflate": 4} {
		coded := encode(name, plain)
		d, _ := NewDecoder(name, &handed{now: coded[:len(coded)-tail]})
		if _, err := io.ReadFull(d, make([]byte, len(plain))); err != nil {
			t.Errorf("%s waits for its checksum: %v", name, err)
		}
	}
}

// pieces gives a body in random pieces.
type pieces struct {
	rest []byte
	most int
	rnd  *rand.Rand
}

func (s *pieces) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(len(s.rest), 1+s.rnd.IntN(s.most))])
	s.rest = s.rest[n:]
	return n, nil
}

func TestDecoderPassesItsSourcesErrorOn(t *testing.T) {
	for name := range coders {
		coded := encode(name, requestBody(3_000))
		d, _ := NewDecoder(codingName(name), &handed{now: coded[:len(coded)/2]})
		_, err := io.ReadAll(d)
		if !errors.Is(err, errWouldWait) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecoderReadsEveryGzipHeader(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "a name", "a comment", []byte("extra")
	w.Write([]byte("one "))
	w.Close()
	w.Reset(&b)
	w.Write([]byte("two"))
	w.Close()
	if got, err := DecodeAll("gzip", b.Bytes(), 100); err != nil || string(got) != "one two" {
		t.Errorf("%q, %v", got, err)
	}
	checked := []byte{0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 3, 0xff, 0xff}
	if got, err := DecodeAll("gzip", append(checked, encode("gzip", []byte("x"))[10:]...), 100); err != nil || string(got) != "x" {
		t.Errorf("with a checksum of the header: %q, %v", got, err)
	}
}

func FuzzDecodeAll(f *testing.F) {
	for name := range coders {
		f.Add(codingName(name), encode(name, []byte(`{"model":"x"}`)))
	}
	f.Add("gzip, br", encode("br", encode("gzip", []byte("x"))))
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		const limit = 1 << 16
		got, err := DecodeAll(coding, body, limit)
		if err == nil && len(got) > limit {
			t.Fatalf("%d bytes", len(got))
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrUnknownCoding) {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecodeAll(b *testing.B) {
	plain := requestBody(200_000)
	for _, name := range []string{"gzip", "zstd", "br"} {
		coded := encode(name, plain)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeAll(name, coded, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
