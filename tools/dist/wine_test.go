//go:build verify

package main

import (
	"bytes"
	"encoding/binary"
)

// Wine 8, Debian 12's, lacks one library that every Go program of today needs for its
// random numbers, bcryptprimitives.dll, and in it one function, ProcessPrng. It has
// the same function under an older name in another library. forwarder is a library
// that holds nothing but the name of the one and where to find the other.
func forwarder(library, function, target string) []byte {
	const (
		base, section, offset = 0x6a000000, 0x1000, 0x400 // where it is loaded, and where its only section is there and in the file
		headers               = 0x400
	)
	var data bytes.Buffer // the section
	le := binary.LittleEndian
	const directory = 40
	functions, names, ordinals := uint32(section+directory), uint32(section+directory+4), uint32(section+directory+8)
	texts := uint32(section + directory + 12)
	libraryAt, functionAt := texts, texts+uint32(len(library))+1
	targetAt := functionAt + uint32(len(function)) + 1
	size := targetAt + uint32(len(target)) + 1 - section
	for _, v := range []uint32{0, 0, 0, libraryAt, 1, 1, 1, functions, names, ordinals} { // IMAGE_EXPORT_DIRECTORY
		_ = binary.Write(&data, le, v)
	}
	_ = binary.Write(&data, le, targetAt) // inside the directory: a forward, not code
	_ = binary.Write(&data, le, functionAt)
	_ = binary.Write(&data, le, uint32(0)) // the ordinal, and room
	data.WriteString(library + "\x00" + function + "\x00" + target + "\x00")

	var out bytes.Buffer
	dos := make([]byte, 0x40)
	copy(dos, "MZ")
	le.PutUint32(dos[0x3c:], 0x40)
	out.Write(dos)
	out.WriteString("PE\x00\x00")
	for _, v := range []any{
		// COFF header: AMD64, one section, size of the optional header; executable, large addresses, DLL
		uint16(0x8664), uint16(1), uint32(0), uint32(0), uint32(0), uint16(240), uint16(0x2022),
		// optional header: PE32+
		uint16(0x20b), uint8(14), uint8(0), uint32(0), uint32(0x200), uint32(0), uint32(0), uint32(section),
		uint64(base), uint32(0x1000), uint32(0x200), uint16(6), uint16(0), uint16(0), uint16(0), uint16(6), uint16(0), uint32(0),
		uint32(0x2000), uint32(headers), uint32(0), uint16(3), uint16(0x100),
		uint64(0x100000), uint64(0x1000), uint64(0x100000), uint64(0x1000), uint32(0), uint32(16),
		// data directories: the exports, and fifteen empty ones
		uint32(section), size, [15]uint64{},
		// section header
		[8]byte{'.', 'e', 'd', 'a', 't', 'a'}, size, uint32(section), uint32(0x200), uint32(offset), uint32(0), uint32(0), uint16(0), uint16(0), uint32(0x40000040),
	} {
		_ = binary.Write(&out, le, v)
	}
	out.Write(make([]byte, offset-out.Len()))
	out.Write(data.Bytes())
	out.Write(make([]byte, 0x200-data.Len()))
	return out.Bytes()
}
