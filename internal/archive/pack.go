package archive

import "understudy/internal/stats"

// Pack encodes records as the file has them, for another process to read.
func Pack(entries []*stats.Sequenced) []byte {
	e := newEncoder()
	for _, entry := range entries {
		e.add(entry)
	}
	return e.bytes()
}

// Unpack decodes what Pack gave. Records that cannot be read are left out, with an
// error; their numbers are the other process's.
func Unpack(block []byte) ([]stats.Sequenced, error) { return decodeAll(block) }
