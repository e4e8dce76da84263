package archive

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lock takes the file for itself until the function is called, as a person with a
// shell for SQLite can.
func lock(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := open(path, url.Values{"mode": {"rw"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALockedFileIsWaitedFor(t *testing.T) {
	path := at(t)
	newRig(t, path, plenty).close()
	first := newRig(t, path, plenty)
	first.book(10)
	first.write()
	first.close()
	release := lock(t, path)
	// It is locked when the process begins, and for a while after that.
	r := newRig(t, path, plenty)
	r.n = 10
	r.book(10)
	for range 3 {
		r.turn(t.Context())
	}
	s := r.Status()
	if s.State != Waiting || !strings.Contains(s.Problem, "another process has locked the file") || s.Since.IsZero() || s.SetAside != "" {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(r.log.String(), "level=ERROR"); n != 1 {
		t.Errorf("it was said %d times: %s", n, r.log)
	}
	equal(t, "pause", r.pause, 4*time.Second)
	equal(t, "requests", r.ledger.Totals().Requests, 10)
	release()
	r.write()
	if !strings.Contains(r.log.String(), "written again") {
		t.Errorf("%s", r.log)
	}
	// What was in the file has come late, but once, and nothing is missing.
	equal(t, "requests", r.ledger.Totals().Requests, 20)
	equal(t, "read", r.kept(), 20)
	r.book(1)
	r.write()
	r.die()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 21)
}

// While the file cannot be written the queue takes what it can and then drops; no
// offer ever waits.
func TestNothingBlocksWhileTheFileIsLocked(t *testing.T) {
	path := at(t)
	r := newRig(t, path, plenty)
	r.book(1)
	r.write()
	r.shut()
	release := lock(t, path)
	for i := range 2*maxQueued + 1000 {
		r.book(1) // would never return if it waited for the file
		if i%3000 == 0 {
			r.turn(t.Context())
		}
	}
	equal(t, "dropped", r.Status().Dropped, 1000)
	release()
	r.write()
	r.write()
	equal(t, "read", r.kept(), 2*maxQueued+1)
	r.die()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 2*maxQueued+1001)
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	healthy := func(t *testing.T, path string) {
		r := newRig(t, path, plenty)
		for range 20 {
			r.book(50)
			r.save()
		}
		r.close()
	}
	change := func(do func([]byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			healthy(t, path)
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, do(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	statement := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			healthy(t, path)
			db, err := open(path, url.Values{"mode": {"rw"}})
			if err == nil {
				_, err = db.Exec(text)
			}
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
		}
	}
	for name, prepare := range map[string]func(t *testing.T, path string){
		"no database": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is no database. ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten at the start": change(func(b []byte) []byte { return append([]byte(strings.Repeat("x", 100)), b[100:]...) }),
		"overwritten beyond it":    change(func(b []byte) []byte { return append(b[:100:100], []byte(strings.Repeat("\xff", len(b)-100))...) }),
		"cut short":                change(func(b []byte) []byte { return b[:len(b)/2] }),
		"of a later version":       statement("PRAGMA user_version = 7"),
		"a block of nonsense":      statement("INSERT INTO block SELECT n + 1, (SELECT boot FROM books), 1, total + 1, 0, 0, 0, x'01ffffff' FROM block ORDER BY n DESC LIMIT 1"),
	} {
		t.Run(name, func(t *testing.T) {
			path := at(t)
			prepare(t, path)
			r := newRig(t, path, plenty)
			r.book(5)
			r.write()
			aside := path + ".damaged"
			if s := r.Status(); s.SetAside != aside || s.Dropped != 0 {
				t.Errorf("%+v", s)
			}
			if log := r.log.String(); !strings.Contains(log, "set aside") || !strings.Contains(log, aside) {
				t.Errorf("%s", log)
			}
			if _, err := os.Stat(aside); err != nil {
				t.Error(err)
			}
			equal(t, "read", r.kept(), 5)
			totals := r.ledger.Totals().Requests
			r.die()
			equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, totals)
		})
	}
}

// A file that goes bad while it is in use costs what was in it, not what the
// process has counted.
func TestDamageWhileItRuns(t *testing.T) {
	path := at(t)
	r := newRig(t, path, plenty)
	for range 20 {
		r.book(50)
		r.save()
	}
	if _, err := r.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text[:4096:4096], []byte(strings.Repeat("\x00", len(text)-4096))...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Others have it in their cache: only who opens it anew sees.
	r.shut()
	r.book(5)
	r.write()
	if s := r.Status(); s.SetAside == "" {
		t.Errorf("%+v", s)
	}
	equal(t, "read", r.kept(), 5)
	r.die()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 1005)
}

// Saved totals that make no sense are no reason to lose the log.
func TestBooksThatMakeNoSense(t *testing.T) {
	path := at(t)
	r := newRig(t, path, plenty)
	r.book(5)
	r.write()
	if _, err := r.db.Exec(`UPDATE books SET state = '{"version":1,"totals":{"requests":-1}}'`); err != nil {
		t.Fatal(err)
	}
	r.die()
	r = newRig(t, path, plenty)
	equal(t, "requests", r.ledger.Totals().Requests, 0)
	equal(t, "read", r.kept(), 5)
	if log := r.log.String(); !strings.Contains(log, "begin anew") {
		t.Errorf("%s", log)
	}
	r.n = 5
	r.book(2)
	r.write()
	r.die()
	equal(t, "requests", newRig(t, path, plenty).ledger.Totals().Requests, 2)
}

func TestAFileThatCannotBeMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "occupied")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, filepath.Join(dir, "archive.db"), plenty)
	r.book(1)
	r.turn(t.Context())
	if s := r.Status(); s.State != Waiting || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	r.write()
	equal(t, "read", r.kept(), 1)
}

// A full disk: nothing is lost while the queue has room, what does not fit in it is
// counted, and everything goes on when there is room again.
func TestAFullDisk(t *testing.T) {
	disk := newDisk(t, 2<<20)
	r := newRig(t, filepath.Join(disk.dir, "archive.db"), plenty)
	r.book(100)
	r.write()
	disk.fill(r)
	for range 2*maxQueued + 500 {
		r.book(1) // would never return if it waited for the disk
		if r.n%2000 == 0 {
			r.turn(t.Context())
		}
	}
	s := r.Status()
	if s.State != Waiting || !strings.Contains(s.Problem, "full") || s.SetAside != "" {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(r.log.String(), "level=ERROR"); n != 1 {
		t.Errorf("it was said %d times: %s", n, r.log)
	}
	if s.Dropped < 500-100 || s.Dropped > 500 {
		t.Errorf("%d were dropped", s.Dropped)
	}
	disk.clear(r)
	r.write()
	r.write()
	equal(t, "read", r.kept(), 100+2*maxQueued+500-int(s.Dropped))
	requests := r.ledger.Totals().Requests
	equal(t, "requests", requests, 100+2*maxQueued+500)
	r.die()
	equal(t, "requests", newRig(t, r.path, plenty).ledger.Totals().Requests, requests)
}

func TestADiskThatIsFullFromTheStart(t *testing.T) {
	disk := newDisk(t, 2<<20)
	r := newRig(t, filepath.Join(disk.dir, "state", "archive.db"), plenty)
	disk.fill(r)
	r.book(10)
	r.turn(t.Context())
	if s := r.Status(); s.State != Waiting || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	disk.clear(r)
	r.write()
	equal(t, "read", r.kept(), 10)
}

// A disk is a small file system that can be filled; where none can be mounted it is
// a limit on the file.
type disk struct {
	t    *testing.T
	dir  string
	real bool
}

func newDisk(t *testing.T, size int) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir()}
	if mountTmpfs(d.dir, size) == nil {
		d.real = true
		t.Cleanup(func() {
			if err := unmount(d.dir); err != nil {
				t.Error(err)
			}
		})
	}
	return d
}

// fill takes all the room there is.
func (d *disk) fill(r *rig) {
	d.t.Helper()
	if !d.real {
		r.shut()
		r.pragmas = []string{"max_page_count(1)"} // SQLite takes what there is for the least
		return
	}
	f, err := os.OpenFile(filepath.Join(d.dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// clear gives the room back.
func (d *disk) clear(r *rig) {
	d.t.Helper()
	if !d.real {
		r.pragmas = nil
		return
	}
	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		d.t.Fatal(err)
	}
}
