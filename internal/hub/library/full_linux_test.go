package library_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// small returns a directory on a disk with this many bytes. Only root can create one.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("a small disk cannot be made:", err)
	}
	t.Cleanup(func() { mustDo(t, syscall.Unmount(dir, 0)) })
	return dir
}

// noise returns incompressible data.
func noise(n int) string {
	out := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return string(out)
}

func TestFullDiskLeavesNoPartialUpload(t *testing.T) {
	pkg := func() library.Package { return upload(t, "pdf", "body", "noise.bin", noise(3<<20)) }
	t.Run("of the database", func(t *testing.T) {
		dir := small(t, "2m")
		w := newFixture(t, storetest.Open(t, "sqlite:"+filepath.Join(dir, "hub.db")), &library.Options{CacheDir: t.TempDir(), TempDir: t.TempDir()})
		_, err := w.lib.Upload(w.ctx, w.ada, ownNamespace(w.ada), pkg())
		wantError(t, err, library.ErrFull)
		if r := must(w.lib.Check(w.ctx))(t); r.Skills != 0 || r.Versions != 0 || len(r.Problems) > 0 {
			t.Errorf("the report is %+v", r)
		}
		w.upload(w.ada, ownNamespace(w.ada), "pdf", "small")
	})
	t.Run("of temporary files", func(t *testing.T) {
		dir := small(t, "1m")
		w := sqlite(t, &library.Options{TempDir: dir})
		_, err := w.lib.Upload(w.ctx, w.ada, ownNamespace(w.ada), pkg())
		wantError(t, err, library.ErrFull)
		if left := must(os.ReadDir(dir))(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("of the cache", func(t *testing.T) {
		dir := small(t, "1m")
		w := sqlite(t, &library.Options{CacheDir: dir})
		s := must(w.lib.Upload(w.ctx, w.ada, ownNamespace(w.ada), pkg()))(t)
		b := must(w.lib.Open(w.ctx, w.ada, s.ID, 0))(t)
		defer b.Close()
		if n := len(must(b.FS.(interface{ ReadFile(string) ([]byte, error) }).ReadFile("noise.bin"))(t)); n != 3<<20 {
			t.Errorf("%d bytes are read", n)
		}
		if left := must(os.ReadDir(dir))(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}
