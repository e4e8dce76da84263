package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// What can be wrong with a coded body.
var (
	// ErrUnknownCoding is a content coding that this package cannot undo.
	ErrUnknownCoding = errors.New("unknown content coding")
	// ErrTooLarge is a body that decodes to more than was allowed, or that asks
	// for more memory than any honest encoder does.
	ErrTooLarge = errors.New("decoded body is too large")
	// ErrNoRoom is a body that there is no memory for now.
	ErrNoRoom = errors.New("no room for the decoded body")
	// ErrCorrupt is a body that is not what its coding says. Where it was merely
	// cut, the error is io.ErrUnexpectedEOF too.
	ErrCorrupt = errors.New("coded body is corrupt")
)

// MaxWindow is the most memory, in bytes, that undoing one coding of a stream takes:
// zstd's window is bounded by it (RFC 9659 lets HTTP senders use no more), brotli's
// by its format (16 MiB, which no server chooses).
const MaxWindow = 8 << 20

const (
	// maxWindow bounds what a whole zstd body may name as its window, since that is
	// no memory on top there; zstd -19 uses 8 MiB, --ultra 64.
	maxWindow = 64 << 20
	// maxCodings bounds how often a body may be coded. Nobody does it twice.
	maxCodings = 4
)

// NewDecoder returns a reader of what r holds in the given content coding: gzip,
// x-gzip, zstd, br, deflate (with zlib's wrapping or without), identity, or
// several with commas between them, as in Content-Encoding. Upper and lower case
// are the same. Any other coding is ErrUnknownCoding.
//
// It is made for streams: nothing is read before the first Read, and a Read never
// waits for more of r than it takes to return a byte. An empty body decodes to
// an empty one. An error of r comes back as it is; a broken coding is
// ErrCorrupt, or ErrTooLarge where a window beyond MaxWindow is asked for.
//
// Close releases the decoder's memory. It does not close r.
func NewDecoder(coding string, r io.Reader) (io.ReadCloser, error) {
	names, err := codingNames(coding)
	if err != nil {
		return nil, err
	}
	d := &decoder{r: r}
	for _, name := range names {
		stage, err := newCodingStage(name, d.r)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.stages = append(d.stages, stage)
		d.r = stage
	}
	return d, nil
}

// DecodeAll undoes content codings, the last one named first. body may be
// returned itself where there is nothing to undo. What would be longer than max
// bytes, at any stage, is ErrTooLarge; the other errors are NewDecoder's.
func DecodeAll(coding string, body []byte, max int64) ([]byte, error) {
	return DecodeWithin(coding, body, max, func(int64) bool { return true })
}

// DecodeWithin is DecodeAll for memory that has to be asked for: grow is called with
// the bytes that are needed next, and where it is false the error is ErrNoRoom.
func DecodeWithin(coding string, body []byte, max int64, grow func(int64) bool) ([]byte, error) {
	names, err := codingNames(coding)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && int64(len(body)) > max {
		return nil, ErrTooLarge
	}
	for _, name := range names {
		if name == "zstd" {
			body, err = unzstd(body, max, grow)
		} else {
			body, err = decodeStage(name, body, max, grow)
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// codingNames reads a Content-Encoding header: the codings to undo, in the order
// to undo them.
func codingNames(header string) (names []string, err error) {
	for name := range strings.SplitSeq(header, ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity":
		case "gzip", "x-gzip", "deflate", "br", "zstd":
			names = append(names, name)
		default:
			return nil, fmt.Errorf("%w %q", ErrUnknownCoding, name)
		}
	}
	if len(names) > maxCodings {
		return nil, fmt.Errorf("%w: %d in a row", ErrUnknownCoding, len(names))
	}
	slices.Reverse(names)
	return names, nil
}

func decodeStage(name string, body []byte, max int64, grow func(int64) bool) ([]byte, error) {
	stage, err := newCodingStage(name, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	// Text shrinks to about a quarter. What is more grows as it comes, so that a
	// small body cannot claim much memory.
	first := min(int64(len(body))*4+512, max+1)
	if !grow(first) {
		return nil, ErrNoRoom
	}
	out := make([]byte, 0, first)
	for {
		n, err := stage.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case int64(len(out)) > max:
			return nil, ErrTooLarge
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		case len(out) == cap(out):
			more := min(int64(cap(out)), max+1-int64(cap(out)))
			if !grow(more) {
				return nil, ErrNoRoom
			}
			out = append(make([]byte, 0, int64(cap(out))+more), out...)
		}
	}
}

// zstdDecoders are for whole bodies. Other than a stream's, they need no window
// of their own: the output is the window.
var zstdDecoders sync.Pool

func unzstd(body []byte, limit int64, grow func(int64) bool) ([]byte, error) {
	if len(body) == 0 {
		return body, nil
	}
	z, ok := zstdDecoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		if z, err = newZstd(nil, maxWindow); err != nil {
			return nil, err
		}
	}
	defer zstdDecoders.Put(z)
	var header zstd.Header
	if err := header.Decode(body); err != nil {
		return nil, codingError("zstd", err)
	}
	// Only a frame that says how long it is can be given all it needs at once.
	need := int64(header.FrameContentSize)
	if !header.HasFCS || need > limit || need < 0 {
		return decodeStage("zstd", body, limit, grow)
	}
	if !grow(need) {
		return nil, ErrNoRoom
	}
	// The library takes the bound on memory for one on the window too, and a small
	// body may well name a window larger than itself.
	bound := max(uint64(need), header.WindowSize, 1)
	if err := z.ResetWithOptions(nil, zstd.WithDecoderMaxMemory(bound)); err != nil {
		return nil, fmt.Errorf("decode zstd: %w", err)
	}
	out, err := z.DecodeAll(body, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), err == nil && int64(len(out)) > need:
		return decodeStage("zstd", body, limit, grow) // there are more frames
	case err != nil:
		return nil, codingError("zstd", err)
	case int64(len(out)) > limit:
		return nil, ErrTooLarge
	}
	return out, nil
}

func newZstd(r io.Reader, window uint64) (*zstd.Decoder, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, fmt.Errorf("decode zstd: %w", err)
	}
	return z, nil
}

// decoder undoes a list of codings.
type decoder struct {
	r      io.Reader
	stages []*codingStage
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (int, error) { return d.r.Read(p) }

// Close implements io.Closer. It never fails.
func (d *decoder) Close() error {
	for _, stage := range d.stages {
		if stage.close != nil {
			stage.close()
			stage.close = nil
		}
		stage.err = errClosed
	}
	return nil
}

var errClosed = errors.New("decoder is closed")

// codingStage undoes one coding and tells its own errors from its source's.
type codingStage struct {
	name   string
	source codingSource
	r      io.Reader
	close  func()
	err    error // the first; it stays
}

func newCodingStage(name string, r io.Reader) (*codingStage, error) {
	s := &codingStage{name: name, source: codingSource{r: r}}
	switch name {
	case "gzip", "x-gzip":
		s.r = newInflater(&s.source, gzipFrame)
	case "deflate":
		s.r = newInflater(&s.source, zlibFrame)
	case "br":
		s.r = brotli.NewReader(&s.source)
	case "zstd":
		z, err := newZstd(&s.source, MaxWindow)
		if err != nil {
			return nil, err
		}
		s.r, s.close = z, z.Close
	}
	return s, nil
}

func (s *codingStage) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.r.Read(p)
	for again := 0; n == 0 && err == nil; again++ { // brotli gives this at the end
		if again == 100 {
			return 0, io.ErrNoProgress
		}
		n, err = s.r.Read(p)
	}
	switch {
	case err == nil:
		return n, nil
	case s.source.err != nil:
		err = s.source.err
	case err == io.EOF, s.source.n == 0:
		err = io.EOF
	default:
		err = codingError(s.name, err)
	}
	s.err = err
	return n, err
}

// codingError says in this package's words what a library found wrong.
func codingError(name string, err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return fmt.Errorf("decode %s: %w", name, ErrTooLarge)
	}
	return fmt.Errorf("decode %s: %w: %w", name, ErrCorrupt, err)
}

// codingSource is what a stage reads from. It keeps the error that is not the
// coding's fault.
type codingSource struct {
	r   io.Reader
	n   int64 // bytes read
	err error // of r, unless io.EOF
}

func (s *codingSource) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
