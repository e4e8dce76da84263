package probe

import (
	"fmt"
	"io"
	"os"
)

// A spool keeps the bytes of an answer until it may go out: in memory, and from a
// size on in a temporary file that has no name any more, so that nothing stays
// behind whatever happens.
type spool struct {
	memory int64 // bytes kept in memory
	mem    []byte
	file   *os.File
	inFile int64
	name   string // of the file where it could not be unlinked while open
	failed bool   // the disk takes no more
	tail   []byte // what came after that
}

// len is how many bytes are kept.
func (s *spool) len() int64 { return int64(len(s.mem)) + s.inFile + int64(len(s.tail)) }

// add keeps b. An error, which comes once, says that the disk takes no more; b and
// what is added from then on is kept in memory, so that nothing is lost.
func (s *spool) add(b []byte) error {
	switch {
	case s.failed:
		s.tail = append(s.tail, b...)
		return nil
	case s.file == nil && (s.memory <= 0 || int64(len(s.mem)+len(b)) <= s.memory):
		s.mem = append(s.mem, b...)
		return nil
	}
	n, err := s.spill(b)
	s.inFile += int64(n)
	if err != nil {
		s.failed, s.tail = true, append(s.tail, b[n:]...)
		return fmt.Errorf("hold an answer on disk: %w", err)
	}
	return nil
}

// spill writes b behind what is in the file, and returns how much of it is there.
func (s *spool) spill(b []byte) (int, error) {
	if s.file == nil {
		f, err := os.CreateTemp("", "understudy-held-*")
		if err != nil {
			return 0, err
		}
		s.file = f
		if os.Remove(f.Name()) != nil {
			s.name = f.Name() // Windows keeps the name of an open file
		}
	}
	return s.file.WriteAt(b, s.inFile)
}

// send gives everything kept, in order.
func (s *spool) send(to func([]byte) error) error {
	if len(s.mem) > 0 {
		if err := to(s.mem); err != nil {
			return err
		}
	}
	if s.inFile > 0 {
		if err := s.sendFile(to); err != nil {
			return err
		}
	}
	if len(s.tail) > 0 {
		return to(s.tail)
	}
	return nil
}

func (s *spool) sendFile(to func([]byte) error) error {
	buf := make([]byte, 64<<10)
	r := io.NewSectionReader(s.file, 0, s.inFile)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := to(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a held answer: %w", err)
		}
	}
}

// drop forgets everything and gives the file back.
func (s *spool) drop() {
	s.mem, s.tail = nil, nil
	if s.file != nil {
		s.file.Close()
		s.file, s.inFile = nil, 0
		if s.name != "" {
			os.Remove(s.name)
		}
	}
}
