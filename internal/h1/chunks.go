package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
)

// What may be wrong with chunks. The words are net/http's.
var (
	errChunk        = errors.New("malformed chunked encoding")
	errChunkLF      = errors.New("chunked line ends with bare LF")
	errChunkCR      = errors.New("invalid CR in chunked line")
	errChunkSize    = errors.New("invalid byte in chunk length")
	errChunkNoSize  = errors.New("empty hex number for chunk length")
	errChunkLarge   = errors.New("http chunk length too large")
	errChunkExcess  = errors.New("chunked encoding contains too much non-data")
	errTrailerEnd   = errors.New("http: unexpected EOF reading trailer")
	errTrailerLarge = errors.New("http: suspiciously long trailer after chunked body")
)

// maxExcess is how many bytes may come around the data of chunks without an end, see
// chunks.begin.
const maxExcess = 16 << 10

// chunks reads a body's chunks as net/http does (FuzzChunks holds them together), but
// looks at what lies in the read buffer where it lies.
type chunks struct {
	left   uint64 // bytes of the chunk that are still to come
	ending bool   // they have all come, and CR and LF are to follow
	excess int64  // bytes around the data, beyond what is usual
}

// read reads data. A read that has got some does not wait for another chunk. io.EOF says
// that the last chunk's line has come; the trailer comes after it.
func (c *chunks) read(in *bufio.Reader, p []byte) (n int, err error) {
	for {
		if c.ending {
			if n > 0 && in.Buffered() < 2 {
				return n, nil
			}
			end, err := in.Peek(2)
			if err != nil {
				return n, early(err)
			}
			if end[0] != '\r' || end[1] != '\n' {
				return n, errChunk
			}
			_, _ = in.Discard(2)
			c.ending = false
		}
		if c.left == 0 {
			if n > 0 && !lineBuffered(in) {
				return n, nil
			}
			if err := c.begin(in); err != nil {
				return n, err
			}
			continue
		}
		if len(p) == 0 {
			return n, nil
		}
		more, err := in.Read(p[:min(uint64(len(p)), c.left)])
		n, p = n+more, p[more:]
		c.left -= uint64(more)
		if err != nil {
			return n, early(err)
		}
		c.ending = c.left == 0
	}
}

// early is the error of a connection that has ended within a body.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lineBuffered says whether a whole line can be read without waiting.
func lineBuffered(in *bufio.Reader) bool {
	got, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(got, '\n') >= 0
}

// begin reads the line before a chunk. One byte for each chunk, with five around it, is
// a stream's good right; but whoever sends much around little, such as long extensions,
// is cut off: 16 bytes for each chunk and twice its data are free.
func (c *chunks) begin(in *bufio.Reader) error {
	if in.Buffered() == 0 {
		if _, err := in.Peek(1); err != nil {
			return early(err)
		}
	}
	size, length, ok := usualSize(in)
	if !ok {
		line, err := chunkLine(in)
		if err != nil {
			return err
		}
		if size, err = chunkSize(line); err != nil {
			return err
		}
		length = len(line)
	}
	c.left = size
	c.excess = max(c.excess+int64(length)+2-(16+2*int64(size)), 0)
	if size == 0 {
		return io.EOF
	}
	if c.excess > maxExcess {
		return errChunkExcess
	}
	return nil
}

// usualSize reads a line of nothing but digits that has come already, and says how many
// there were. It reads nothing if the line is any other.
func usualSize(in *bufio.Reader) (size uint64, digits int, ok bool) {
	line, _ := in.Peek(min(in.Buffered(), 16+2))
	for digits < len(line) && digits < 16 {
		v := hexDigit(line[digits])
		if v > 15 {
			break
		}
		size = size<<4 | uint64(v)
		digits++
	}
	if digits == 0 || len(line) < digits+2 || line[digits] != '\r' || line[digits+1] != '\n' {
		return 0, 0, false
	}
	_, _ = in.Discard(digits + 2)
	return size, digits, true
}

// chunkLine reads any line before a chunk, without its end.
func chunkLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull:
		return nil, http.ErrLineTooLong
	case err != nil:
		return nil, early(err)
	}
	switch cr := bytes.IndexByte(line, '\r'); {
	case cr < 0:
		return nil, errChunkLF // which ends no line here (RFC 9112, erratum 7633)
	case cr != len(line)-2:
		return nil, errChunkCR
	}
	return line[:len(line)-2], nil
}

// chunkSize is the number that a line says, whatever extensions it has.
func chunkSize(line []byte) (size uint64, err error) {
	line, _, _ = bytes.Cut(bytes.TrimRight(line, " \t"), []byte(";"))
	if len(line) == 0 {
		return 0, errChunkNoSize
	}
	for i, c := range line {
		v := hexDigit(c)
		if v > 15 {
			return 0, errChunkSize
		}
		if i == 16 {
			return 0, errChunkLarge
		}
		size = size<<4 | uint64(v)
	}
	return size, nil
}

// hexDigit is the value of a hexadecimal digit, and more than 15 for anything else.
func hexDigit(c byte) byte {
	switch {
	case digit(c):
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}

// readTrailer reads what comes after the last chunk, and returns io.EOF after a clean
// end. A trailer must fit into the read buffer.
func readTrailer(in *bufio.Reader, resp *http.Response) error {
	end, err := in.Peek(2)
	if len(end) == 2 && end[0] == '\r' && end[1] == '\n' {
		_, _ = in.Discard(2)
		return io.EOF
	}
	if len(end) < 2 {
		return errTrailerEnd
	}
	if err != nil {
		return err
	}
	for size := 4; ; size++ {
		got, err := in.Peek(size)
		if bytes.HasSuffix(got, []byte("\r\n\r\n")) {
			break
		}
		if err != nil {
			return errTrailerLarge
		}
	}
	header, err := textproto.NewReader(in).ReadMIMEHeader()
	if err == io.EOF {
		return errTrailerEnd
	}
	if err != nil {
		return err
	}
	resp.Trailer = http.Header(header)
	return io.EOF
}
