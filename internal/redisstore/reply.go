package redisstore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// mostElements bounds what one reply may announce: room is made for what has come,
	// but who says gigabytes is none of ours.
	mostElements = 1 << 20
	// mostBytes bounds one string of a reply.
	mostBytes = 64 << 20
	// deepest is how far arrays may stand in each other: further than any of ours does.
	deepest = 8
	// longestLine bounds a line, an error's text above all.
	longestLine = 16 << 10
)

var (
	// errAnnounced is a reply that announces more than any of ours has.
	errAnnounced = errors.New("the store announces more than it can have")
	// errProtocol is what is no reply at all.
	errProtocol = errors.New("what answers is no Redis server")
)

// A refusal is an error that the server itself gave, as an answer: its code, and words.
type refusal string

func (r refusal) Error() string { return string(r) }

// code is the first word, which is for programs: "NOSCRIPT", "ERR".
func (r refusal) code() string {
	code, _, _ := strings.Cut(string(r), " ")
	return code
}

// A replyReader reads replies in RESP, version 2 (redis.io, "Redis serialization
// protocol specification"), as a server speaks it to who does not ask for more.
type replyReader struct {
	from *bufio.Reader
	left int // elements that the reply may still announce
}

func newReplyReader(r io.Reader) *replyReader {
	return &replyReader{from: bufio.NewReaderSize(r, longestLine)}
}

// next reads one reply: a string, an int64, nil, a refusal, or a []any of these. An error
// says that nothing more can be read.
func (r *replyReader) next() (any, error) {
	r.left = mostElements
	return r.value(0)
}

func (r *replyReader) value(depth int) (any, error) {
	line, err := r.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, errAnnounced
	} else if err != nil {
		return nil, cut(err)
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(text) == 0 {
		return nil, errProtocol
	}
	switch kind, rest := text[0], string(text[1:]); kind {
	case '+':
		return rest, nil
	case '-':
		return refusal(rest), nil
	case ':':
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return nil, errProtocol
		}
		return n, nil
	case '$', '*':
		n, err := strconv.ParseInt(rest, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, errAnnounced
		case err != nil || n < -1:
			return nil, errProtocol
		case n == -1:
			return nil, nil
		case kind == '$':
			return r.text(n)
		}
		return r.list(n, depth+1)
	}
	return nil, errProtocol
}

// text reads a string of n bytes. Room is made as they come.
func (r *replyReader) text(n int64) (any, error) {
	if n > mostBytes {
		return nil, errAnnounced
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r.from, n+2); err != nil {
		return nil, cut(err)
	}
	text, ok := bytes.CutSuffix(b.Bytes(), []byte("\r\n"))
	if !ok {
		return nil, errProtocol
	}
	return string(text), nil
}

// list reads an array of n elements.
func (r *replyReader) list(n int64, depth int) (any, error) {
	if n > int64(r.left) || depth > deepest {
		return nil, errAnnounced
	}
	r.left -= int(n)
	list := make([]any, 0, min(n, 64))
	for range n {
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// cut is what a connection ended with, or was not read for, in the middle of a reply.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read a reply: %w", err)
}

// appendCommand appends a command as a server reads it: an array of strings.
func appendCommand(b []byte, words ...any) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		text, ok := w.(string)
		if !ok {
			text = fmt.Sprint(w) // a number
		}
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b
}
