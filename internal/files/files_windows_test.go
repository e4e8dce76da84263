package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// private fails where the access list inherits, or lets in anybody but the current
// user, administrators and the system.
func private(t *testing.T, path string) {
	t.Helper()
	security, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := security.DACL()
	if err != nil || list == nil {
		t.Fatalf("%s: no access list: %v", path, err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &entry); err != nil {
			t.Fatal(err)
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		if !sid.Equals(user.User.Sid) && !sid.IsWellKnown(windows.WinLocalSystemSid) && !sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
			t.Errorf("%s lets in %s", path, sid)
		}
	}
}

// TestReplaceGivesUp: a file that stays open without sharing its deletion makes
// Replace fail in the end, and both files stay.
func TestReplaceGivesUp(t *testing.T) {
	dir := t.TempDir()
	from, to := written(t, dir, "new", "new"), written(t, dir, "file", "old")
	name, err := windows.UTF16PtrFromString(to)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ, windows.FILE_SHARE_READ, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	err = Replace(from, to)
	if err == nil || !held(err) || time.Since(begun) > 2*patience {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	if err := windows.CloseHandle(handle); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{from: "new", to: "old"} {
		if text, _ := os.ReadFile(path); string(text) != want {
			t.Errorf("%s holds %q", filepath.Base(path), text)
		}
	}
	if err := Replace(from, to); err != nil {
		t.Errorf("with the file closed: %v", err)
	}
}
