package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// codingFrame is what stands around deflated data.
type codingFrame uint8

const (
	gzipFrame codingFrame = iota // RFC 1952, one member or several
	zlibFrame                    // RFC 1950, or nothing at all: senders of "deflate" differ
	rawFrame
)

var (
	errHeader   = errors.New("not the header that was due")
	errChecksum = errors.New("checksum is wrong")
	errTrailing = errors.New("something follows the end")
)

// inflater undoes gzip and deflate for streams. The standard library's readers
// do not serve: they wait for the header in their constructors, hold the last
// bytes back until the checksum has come, and those of a gzip member until the
// next member begins, which may be an event later.
type inflater struct {
	in    *bufio.Reader
	frame codingFrame
	step  func(*inflater, []byte) (int, error)
	data  io.ReadCloser
	sum   hash.Hash32
	size  uint32
}

func newInflater(r io.Reader, frame codingFrame) *inflater {
	return &inflater{in: bufio.NewReader(r), frame: frame, step: (*inflater).header}
}

// Read implements io.Reader. A step that has nothing to return gives 0, nil and
// names the next.
func (f *inflater) Read(p []byte) (int, error) {
	for {
		if n, err := f.step(f, p); n > 0 || err != nil {
			return n, err
		}
	}
}

func (f *inflater) header([]byte) (int, error) {
	switch f.frame {
	case gzipFrame:
		if err := f.gzipHeader(); err != nil {
			return 0, cutShort(err)
		}
		f.sum = crc32.NewIEEE()
	case zlibFrame:
		head, err := f.in.Peek(2)
		if err != nil {
			return 0, cutShort(err)
		}
		// Method 8, a window of at most 32 KiB, and a check that makes it a
		// multiple of 31. No compressor begins raw data so.
		if head[0]&0x0f != 8 || head[0]>>4 > 7 || binary.BigEndian.Uint16(head)%31 != 0 {
			f.frame = rawFrame
			break
		}
		if head[1]&0x20 != 0 { // wants a dictionary that nobody sent
			return 0, errHeader
		}
		f.in.Discard(2)
		f.sum = adler32.New()
	}
	f.size = 0
	if f.data == nil {
		// Also what was flushed without a marker comes out, block by block.
		f.data = flate.NewReaderOpts(f.in, flate.WithPartialBlock())
	} else if err := f.data.(flate.Resetter).Reset(f.in, nil); err != nil {
		// Reset forgets the option, but a member is an event's size at most, and a
		// new reader for each of a million empty members would be an attack's means.
		return 0, err
	}
	f.step = (*inflater).inflate
	return 0, nil
}

func (f *inflater) gzipHeader() error {
	const checksum, extra, name, comment = 1 << 1, 1 << 2, 1 << 3, 1 << 4
	var head [10]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return err
	}
	if head[0] != 0x1f || head[1] != 0x8b || head[2] != 8 {
		return errHeader
	}
	flags := head[3]
	if flags&extra != 0 {
		if _, err := io.ReadFull(f.in, head[:2]); err != nil {
			return err
		}
		if _, err := f.in.Discard(int(binary.LittleEndian.Uint16(head[:2]))); err != nil {
			return err
		}
	}
	for _, flag := range [...]byte{name, comment} {
		for flags&flag != 0 {
			c, err := f.in.ReadByte()
			if err != nil {
				return err
			}
			if c == 0 {
				break
			}
		}
	}
	if flags&checksum != 0 {
		if _, err := f.in.Discard(2); err != nil {
			return err
		}
	}
	return nil
}

func (f *inflater) inflate(p []byte) (int, error) {
	n, err := f.data.Read(p)
	if f.sum != nil {
		f.sum.Write(p[:n])
		f.size += uint32(n)
	}
	if err == io.EOF {
		f.step, err = (*inflater).trailer, nil
	}
	return n, err
}

func (f *inflater) trailer([]byte) (int, error) {
	var tail [8]byte
	switch f.frame {
	case gzipFrame:
		if _, err := io.ReadFull(f.in, tail[:]); err != nil {
			return 0, cutShort(err)
		}
		if binary.LittleEndian.Uint32(tail[:]) != f.sum.Sum32() || binary.LittleEndian.Uint32(tail[4:]) != f.size {
			return 0, errChecksum
		}
	case zlibFrame:
		if _, err := io.ReadFull(f.in, tail[:4]); err != nil {
			return 0, cutShort(err)
		}
		if binary.BigEndian.Uint32(tail[:]) != f.sum.Sum32() {
			return 0, errChecksum
		}
	}
	f.step = (*inflater).following
	return 0, nil
}

// following looks behind the end: a gzip stream may go on with another member.
func (f *inflater) following([]byte) (int, error) {
	if _, err := f.in.Peek(1); err != nil {
		return 0, err // io.EOF, as it should be
	}
	if f.frame != gzipFrame {
		return 0, errTrailing
	}
	f.step = (*inflater).header
	return 0, nil
}

// cutShort makes the end of the input an error, where it comes too early.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
