package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/internal/files"
	"understudy/internal/health"
	"understudy/internal/owner"
)

// stateVersion is the layout of the state file. A file of another version is set
// aside like a damaged one.
const stateVersion = 1

// state is what survives a restart beside the archive: what decides who is called.
type state struct {
	Version int          `json:"version"`
	SavedAt time.Time    `json:"saved_at"`
	Health  health.State `json:"health"`
}

// statePath is the state file of one configuration file: several processes with
// configurations of their own share a state directory without sharing state.
func statePath(dir, config string) string {
	return filepath.Join(dir, "state-"+digest(config)+".json")
}

// ArchivePath is the archive of one configuration file in a state directory.
func ArchivePath(dir, config string) string {
	return filepath.Join(dir, "archive-"+digest(config)+".db")
}

// digest tells configuration files apart by where they are.
func digest(config string) string {
	if abs, err := filepath.Abs(config); err == nil {
		config = abs
	}
	sum := sha256.Sum256([]byte(config))
	return hex.EncodeToString(sum[:4])
}

// loadState reads a state file. No file is an empty state. A damaged one is set
// aside, and the warning says where; it is never a reason not to start.
func loadState(path string) (s state, warning error) {
	sweep(path)
	text, err := files.Read(path, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err == nil {
		if err = json.Unmarshal(text, &s); err == nil && s.Version != stateVersion {
			err = fmt.Errorf("version %d is not %d", s.Version, stateVersion)
		}
	}
	if err != nil {
		return state{}, setAside(path, err)
	}
	return s, nil
}

// maxStateFile bounds, in bytes, a file of this program's own.
const maxStateFile = 1 << 30

// setAside moves a file that cannot be read out of the way, for a person to look at.
func setAside(path string, why error) error {
	aside := path + ".damaged"
	if moved := os.Rename(path, aside); moved != nil {
		return fmt.Errorf("the state file %s cannot be read, and is left there: %w", path, errors.Join(why, moved))
	}
	return fmt.Errorf("the state file cannot be read, and is set aside as %s: %w", aside, why)
}

// saveState writes a state file.
func saveState(path string, s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	return replace(path, text)
}

// ownersPath is the file of owners beside a state file.
func ownersPath(statePath string) string {
	dir, file := filepath.Split(statePath)
	return filepath.Join(dir, "owners"+strings.TrimSuffix(strings.TrimPrefix(file, "state"), ".json")+".bin")
}

// loadOwners reads a file of owners. A damaged one is set aside like a state file.
func loadOwners(path string, book *owner.Book) (warning error) {
	sweep(path)
	data, err := files.Read(path, maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = book.Import(data)
	}
	if err != nil {
		return setAside(path, err)
	}
	return nil
}

// partial is how the names begin of what will become a file once it is whole.
func partial(path string) string { return "." + filepath.Base(path) + "-" }

// sweep removes what a process that was killed has left of writing a file.
func sweep(path string) {
	dir := filepath.Dir(path)
	list, _ := os.ReadDir(dir) // nothing to sweep where there is none
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), partial(path)) {
			os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// replace writes a file so that a crash at any moment leaves the former or the new
// one whole.
func replace(path string, data []byte) error {
	if err := files.MakePrivate(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), partial(path)+"*")
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	defer os.Remove(f.Name()) // gone already where the rename went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = files.Replace(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}
