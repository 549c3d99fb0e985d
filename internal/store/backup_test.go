package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestBackupAndRestore(t *testing.T) {
	ctx := t.Context()
	db := storetest.Open(t, storetest.SQLite(t))
	skill := newSkill(t, db, store.Public, "pdf")
	newVersion(t, db, skill.ID, "text")
	must(db.Blobs.Put(ctx, noise(1<<20)))(t)
	path := filepath.Join(t.TempDir(), "backup.db")
	mustDo(t, db.Backup(ctx, path))
	wantError(t, db.Backup(ctx, path), fs.ErrExist)
	if info := must(os.Stat(path))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is readable by others: %v", info.Mode())
	}
	mustDo(t, db.Skills.Delete(ctx, skill.ID)) // afterwards

	report := must(store.CheckBackup(ctx, path))(t)
	wantEqual(t, report, store.Report{Skills: 1, Versions: 1, Files: 2, Bytes: 1<<20 + 4, Orphans: store.SweepResult{Files: 1, Bytes: 1 << 20}})
	if beside := must(filepath.Glob(path + "?*"))(t); len(beside) != 0 {
		t.Errorf("the check left %v", beside)
	}
	restored := storetest.Open(t, path)
	must(restored.Skills.Get(ctx, skill.ID))(t)
}

func TestBackupThatFailsLeavesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		dir := t.TempDir()
		missing := filepath.Join(dir, "not there", "b.db")
		if err := db.Backup(t.Context(), missing); err == nil {
			t.Error("a backup in no directory")
		}
		if db.Kind() == "PostgreSQL" {
			err := db.Backup(t.Context(), filepath.Join(dir, "b.db"))
			wantError(t, err, store.ErrUnsupported)
			if !strings.Contains(err.Error(), "pg_dump") {
				t.Errorf("it does not say how: %v", err)
			}
		}
		if left := must(os.ReadDir(dir))(t); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

func TestInvalidBackup(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	path := filepath.Join(dir, "hub.db")
	db := must(store.Open(ctx, path, nil))(t)
	must(db.Blobs.Put(ctx, noise(1<<20)))(t)
	mustDo(t, db.Close())
	whole := must(os.ReadFile(path))(t)
	for name, data := range map[string][]byte{
		"empty":    {},
		"text":     bytes.Repeat([]byte("text"), 2000),
		"cut":      whole[:len(whole)/2],
		"scribble": bytes.Replace(whole, noise(1 << 20)[5000:5100], make([]byte, 100), 1),
	} {
		bad := filepath.Join(dir, name)
		mustDo(t, os.WriteFile(bad, data, 0o600))
		report, err := store.CheckBackup(ctx, bad)
		if !errors.Is(err, store.ErrCorrupt) && (err != nil || len(report.Problems) != 1) {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	_, err := store.CheckBackup(ctx, filepath.Join(dir, "none"))
	wantError(t, err, fs.ErrNotExist)
}

func TestCheckDetectsInconsistencies(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "pdf")
		v := newVersion(t, db, skill.ID, "text")
		mustDo(t, db.Skills.SetCurrent(ctx, skill.ID, 1))
		hash := must(db.Versions.File(ctx, v.ID, "SKILL.md"))(t).SHA256
		part := must(db.Blobs.Put(ctx, noise(1<<20)))(t)[0]
		wantEqual(t, must(db.Check(ctx))(t).Problems, []string(nil))
		for _, query := range []string{
			"UPDATE skills SET current = 'none'",
			"DELETE FROM listings",
			"UPDATE versions SET files = 7",
			"UPDATE version_files SET size = 7",
			"INSERT INTO sessions (id, owner, title, agent, data, generation, created, updated) VALUES ('s', 'nobody', '', '', '', 1, 0, 0)",
			"UPDATE blob_parts SET data = '' WHERE sha256 = '" + hash + "'",
			"DELETE FROM blob_parts WHERE part = 1 AND sha256 = '" + part + "'",
		} {
			must(store.Exec(ctx, db, query))(t)
		}
		problems := must(db.Check(ctx))(t).Problems
		if len(problems) != 7 {
			t.Errorf("problems are %q", problems)
		}
		_, err := db.Blobs.Read(ctx, hash)
		if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a damaged file is read: %v", err)
		}
	})
}
