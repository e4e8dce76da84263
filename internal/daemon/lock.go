package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"understudy/internal/files"
)

// ErrInUse is wrapped by the refusal to serve a configuration whose state another
// process keeps: each would overwrite what the other has saved.
var ErrInUse = errors.New("the state is in use")

// errHeld is why a lock could not be had: somebody else has it.
var errHeld = errors.New("held by another process")

// A lock is one process's right to the state of one configuration. The system gives
// it up with the process, however that ends, so that none is ever left behind; the
// file stays, and says whose it was last. An upgrade passes the open file on, and
// the lock with it.
type lock struct{ file *os.File }

// lockPath is the lock's file beside a state file.
func lockPath(statePath string) string {
	dir, file := filepath.Split(statePath)
	return filepath.Join(dir, "lock"+strings.TrimSuffix(strings.TrimPrefix(file, "state"), ".json"))
}

// takeLock locks a configuration's state. Where another process has it the error
// wraps ErrInUse; any other one is of a file system that cannot lock, or not be
// written.
func takeLock(path string) (*lock, error) {
	if err := files.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state: %w", err)
	}
	if err := lockFile(f); err != nil {
		owner := make([]byte, 20)
		n, _ := f.ReadAt(owner, 0) // without it the message names nobody
		f.Close()
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("%w: %s serves this configuration already, and keeps its state in %s: end that one, or run this one from a copy of the file with a state_dir of its own",
				ErrInUse, processOf(string(owner[:n])), filepath.Dir(path))
		}
		return nil, fmt.Errorf("lock the state: %w", err)
	}
	l := &lock{f}
	return l, l.sign()
}

// processOf names the process that a lock's file says it belongs to.
func processOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

// sign writes whose the lock is, for the message to whoever is refused. A full disk
// takes the message its number, not the lock.
func (l *lock) sign() error {
	if l == nil {
		return nil
	}
	text := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if _, err := l.file.WriteAt(text, 0); err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	if err := l.file.Truncate(int64(len(text))); err != nil {
		return fmt.Errorf("sign the lock: %w", err)
	}
	return nil
}

// release gives the lock up, unless another process has its file open too: it is
// that one's then. A nil lock, or one that was given up, is none.
func (l *lock) release() {
	if l != nil {
		_ = l.file.Close() // nothing in it needs to be on disk
	}
}
