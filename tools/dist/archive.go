package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// An Entry is one file of an archive.
type Entry struct {
	Name string
	Mode fs.FileMode // permission bits
	Data []byte
}

// packTar writes entries, in their order, as a gzipped tar file that says nothing
// but their names, modes and bytes: the time is the given one, the owner root.
func packTar(entries []Entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Mode: int64(e.Mode.Perm()), Size: int64(len(e.Data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
		if _, err := w.Write(e.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// packZip writes entries, in their order, as a zip file, with the same care.
func packZip(entries []Entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestCompression) })
	for _, e := range entries {
		head := &zip.FileHeader{Name: e.Name, Method: zip.Deflate, Modified: at}
		head.SetMode(e.Mode.Perm())
		to, err := w.CreateHeader(head)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
		if _, err := to.Write(e.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
