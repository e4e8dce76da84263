package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// atOnce is nothing here: what would wait is not found by a path of this kind.
const atOnce = 0

// patience is how long Replace waits for those who have the file open: virus
// scanners, editors and backups let go of a file within moments.
const patience = 2 * time.Second

// Replace renames a file to a name that may be taken. Windows refuses that while
// somebody has the former file open without sharing its deletion, as most programs
// do; so it is tried again for up to two seconds before the refusal is returned.
func Replace(from, to string) error {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || !held(err) || time.Now().Add(wait).After(deadline) {
			return err
		}
		time.Sleep(wait)
	}
}

// held tells that somebody has a file open from other refusals. A file that is open
// and one that may not be written give the same code.
func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// MakePrivate makes a directory that only its owner, administrators and the system
// can enter, and those above it that are missing. Everything made in it later
// inherits that. One that is there already stays as it is.
func MakePrivate(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return protect(dir, windows.SUB_CONTAINERS_AND_OBJECTS_INHERIT)
}

// ClosePrivate keeps a file to its owner, administrators and the system, whatever
// the directory it is in passes on.
func ClosePrivate(path string) error { return protect(path, windows.NO_INHERITANCE) }

// protect replaces the access list of a file or directory, what it inherits
// included, by full access for the current user, administrators and the system.
func protect(path string, inheritance uint32) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("whose process this is: %w", err)
	}
	sids := []*windows.SID{user.User.Sid}
	for _, known := range []windows.WELL_KNOWN_SID_TYPE{windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid} {
		sid, err := windows.CreateWellKnownSid(known)
		if err != nil {
			return fmt.Errorf("a well-known account: %w", err)
		}
		sids = append(sids, sid)
	}
	var entries []windows.EXPLICIT_ACCESS
	for _, sid := range sids {
		entries = append(entries, windows.EXPLICIT_ACCESS{AccessPermissions: windows.GENERIC_ALL, AccessMode: windows.GRANT_ACCESS, Inheritance: inheritance,
			Trustee: windows.TRUSTEE{TrusteeForm: windows.TRUSTEE_IS_SID, TrusteeType: windows.TRUSTEE_IS_UNKNOWN, TrusteeValue: windows.TrusteeValueFromSID(sid)}})
	}
	list, err := windows.ACLFromEntries(entries, nil)
	if err != nil {
		return fmt.Errorf("access list of %s: %w", path, err)
	}
	if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil); err != nil {
		return fmt.Errorf("access list of %s: %w", path, err)
	}
	return nil
}
