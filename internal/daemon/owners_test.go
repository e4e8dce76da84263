package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/owner"
)

func TestOwnersSurviveARestart(t *testing.T) {
	path := ownersPath(filepath.Join(t.TempDir(), "state-12345678.json"))
	if filepath.Base(path) != "owners-12345678.bin" {
		t.Fatal(path)
	}
	book := owner.NewBook(0)
	book.Learn("", "resp_1", owner.Owner{Identity: "00000000000000aa", Model: "vm", At: time.Now()})
	if err := replace(path, book.Export()); err != nil {
		t.Fatal(err)
	}
	again := owner.NewBook(0)
	if err := loadOwners(path, again); err != nil {
		t.Fatal(err)
	}
	if o, ok := again.Owner("", "resp_1", time.Now()); !ok || o.Identity != "00000000000000aa" || o.Model != "vm" {
		t.Errorf("%+v %v", o, ok)
	}
}

func TestADamagedFileOfOwnersIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "owners.bin")
	if err := os.WriteFile(path, []byte("not one of ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	book := owner.NewBook(0)
	if loadOwners(path, book) == nil || book.Len() != 0 {
		t.Error("a damaged file was taken")
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
	if err := loadOwners(path, book); err != nil {
		t.Errorf("no file: %v", err)
	}
}
