package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"understudy/internal/files"
)

// ErrChanged is returned by Write when the file on disk is no longer the one
// that was read: somebody else has edited it.
var ErrChanged = errors.New("the file has changed since it was read")

// ErrFormat is returned for a file whose ending names no known spelling.
var ErrFormat = errors.New("a configuration ends in .yaml, .yml or .toml")

// FormatOf tells the spelling of a file by its ending.
func FormatOf(path string) (Format, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return YAML, nil
	case ".toml":
		return TOML, nil
	}
	return YAML, fmt.Errorf("%s: %w", path, ErrFormat)
}

// Read reads a file whole. The Source remembers what it was, for Write.
func Read(path string) (Source, error) {
	format, err := FormatOf(path)
	if err != nil {
		return Source{}, err
	}
	f, info, err := files.Open(path)
	if err != nil {
		return Source{}, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	// One byte more than Parse takes, so that it can say so.
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return Source{}, fmt.Errorf("read configuration: %w", err)
	}
	return Source{Path: path, Format: format, Bytes: text, Hash: sha256.Sum256(text), Mode: info.Mode()}, nil
}

// Write puts Bytes in the place of the file that was read, in one step: a
// reader sees the old file or the new one, and a crash leaves one of them. The
// permission bits stay; where Path is a symbolic link, the link stays and the
// file it points to is replaced. It returns [ErrChanged] and writes nothing
// where the file on disk is not the one that was read.
func (s Source) Write() (err error) {
	path, err := filepath.EvalSymlinks(s.Path)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	info, err := s.unchanged(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write configuration: %w", errors.Join(err, os.Remove(temp.Name())))
		}
	}()
	_, err = temp.Write(s.Bytes)
	// The temporary file was made readable by its owner alone; it gets the
	// owner and the bits of the old one before anybody can see it under its
	// name.
	if err == nil && runtime.GOOS != "windows" {
		keepOwner(temp, info)
		err = temp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	// Once more, right before the point of no return.
	if _, err = s.unchanged(path); err != nil {
		return err
	}
	if err = files.Replace(temp.Name(), path); err != nil {
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// unchanged compares the file on disk with the one that was read.
func (s Source) unchanged(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	if info.Size() > maxFileBytes+1 {
		return nil, ErrChanged
	}
	text, err := files.Read(path, maxFileBytes+1)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	if sha256.Sum256(text) != s.Hash {
		return nil, ErrChanged
	}
	return info, nil
}

// syncDir makes a rename last. Not every system lets a directory be synced, and
// the file itself is safe already, so a failure is no error.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// Written returns the Source as it stands on disk after Write: the same bytes,
// with their own hash.
func (s Source) Written() Source {
	s.Hash = sha256.Sum256(s.Bytes)
	return s
}
