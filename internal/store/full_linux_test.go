package store_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A full disk causes a clear error. Existing data stays, and nothing needs repair once
// there is space again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("a small disk takes root:", err)
	}
	t.Cleanup(func() { mustDo(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	ctx := t.Context()
	db := storetest.Open(t, filepath.Join(dir, "hub.db"))
	ada := newUser(t, db, "ada")
	var err error
	for i := 0; err == nil; i++ {
		_, err = db.Blobs.Put(ctx, noise(50_000+i))
	}
	wantError(t, err, store.ErrFull)
	wantEqual(t, must(db.Users.Get(ctx, ada.ID))(t), ada)
	for err = nil; err == nil; {
		err = db.Audit.Append(ctx, store.AuditRecord{Subject: "the last of the room"})
	}
	wantError(t, err, store.ErrFull)
	if err := db.Backup(ctx, filepath.Join(dir, "backup.db")); !errors.Is(err, store.ErrFull) {
		t.Errorf("a backup without room: %v", err)
	}

	mustDo(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"))
	must(db.Blobs.Put(ctx, noise(500_000)))(t)
	wantEqual(t, must(db.Check(ctx))(t).Problems, []string(nil))
}
