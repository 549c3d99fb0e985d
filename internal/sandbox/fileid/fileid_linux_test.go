package fileid_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/fileid"
)

func idOf(t *testing.T, path string) fileid.ID {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := fileid.Of(info)
	if !ok {
		t.Fatal("a file without an ID")
	}
	return id
}

// Each change of a file alters its ID, even if the time of modification is
// restored.
func TestChangesAlterTheID(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"content": func(p string) error { return os.WriteFile(p, []byte("jello"), 0o600) },
		"size":    func(p string) error { return os.WriteFile(p, []byte("hello and more"), 0o600) },
		"mode":    func(p string) error { return os.Chmod(p, 0o640) },
		"replaced": func(p string) error {
			if err := os.WriteFile(p+".new", []byte("hello"), 0o600); err != nil {
				return err
			}
			return os.Rename(p+".new", p)
		},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := idOf(t, path)
		if again := idOf(t, path); again != before {
			t.Errorf("%s: the ID changed from %+v to %+v", name, before, again)
		}
		after := before
		for range 1_000_000 { // until the clock of the file system ticks
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(0, before.Modified)); err != nil {
				t.Fatal(err)
			}
			if after = idOf(t, path); after != before {
				break
			}
		}
		if after == before {
			t.Errorf("%s: the ID is still %+v", name, after)
		}
	}
}

func TestDetectsChangesSince(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for age, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Second: false, 3 * time.Second: false, 4 * time.Second: true, time.Hour: true} {
		if got := (fileid.ID{Changed: at.Add(-age).UnixNano()}).DetectsChangesSince(at); got != want {
			t.Errorf("a file changed %v ago: detects changes: %v", age, got)
		}
	}
}
