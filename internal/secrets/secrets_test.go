package secrets_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/secrets"
)

const value = "s3cr3t \"value\"\n<é>"

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "secrets")
	s := secrets.New(path)
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if _, err := s.Get("A"); !errors.Is(err, secrets.ErrNotSet) {
		t.Error(err)
	}
	for _, name := range []string{"B", "A", "B"} {
		if err := s.Set(t.Context(), name, value+name); err != nil {
			t.Fatal(err)
		}
	}
	again := secrets.New(path)
	if got, err := again.Get("A"); got != value+"A" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	list, err := again.List()
	if err != nil || len(list) != 2 || list[0].Name != "A" || list[1].Name != "B" || list[0].ChangedAt.IsZero() {
		t.Errorf("%v %v", list, err)
	}
	if b, _ := json.Marshal(list); strings.Contains(string(b), "s3cr3t") {
		t.Errorf("the list shows %s", b)
	}
	if err := s.Remove(t.Context(), "A"); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), "A"); !errors.Is(err, secrets.ErrNotSet) {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestInvalidSecretsAreRefusedAndNotQuoted(t *testing.T) {
	s := secrets.New(filepath.Join(t.TempDir(), "secrets"))
	for _, bad := range [][2]string{{"", "x"}, {"1A", "x"}, {"A-B", "x"}, {"A B", "x"}, {"A", ""}, {"A", "s3cr3t\x00"}, {"A", "s3cr3t\xff"}, {"A", strings.Repeat("s3cr3t", 20_000)}} {
		err := s.SetAll(t.Context(), map[string]string{bad[0]: bad[1], "GOOD": "x"})
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %.200v", bad[0], err)
		}
	}
	if list, err := s.List(); len(list) > 0 || err != nil {
		t.Errorf("%v %v: all or none", list, err)
	}
}

func TestUnsafeFileGivesNoSecrets(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	for name, spoil := range map[string]func(path string) error{
		"readable":  func(p string) error { return os.Chmod(p, 0o640) },
		"writable":  func(p string) error { return os.Chmod(p, 0o602) },
		"directory": func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) },
		"link": func(p string) error {
			return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p))
		},
		"half": func(p string) error {
			return os.WriteFile(p, []byte(`{"version":1,"secrets":{"A":{"value":"s3cr3t`), 0o600)
		},
		"newer": func(p string) error {
			return os.WriteFile(p, []byte(`{"version":2,"secrets":{"A":{"value":"s3cr3t"}}}`), 0o600)
		},
		"no map": func(p string) error { return os.WriteFile(p, []byte(`{"version":1}`), 0o600) },
		"no name": func(p string) error {
			return os.WriteFile(p, []byte(`{"version":1,"secrets":{"a b":{"value":"s3cr3t"}}}`), 0o600)
		},
		"endless": func(p string) error { return os.WriteFile(p, make([]byte, 9<<20), 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "state", "secrets")
		s := secrets.New(path)
		if err := s.Set(t.Context(), "A", "s3cr3t"); err != nil {
			t.Fatal(err)
		}
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get("A")
		if got != "" || err == nil || errors.Is(err, secrets.ErrNotSet) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if err := s.Set(t.Context(), "B", "x"); err == nil {
			t.Errorf("%s: it was written over", name)
		}
		_, unsafe := errors.AsType[*privatefile.UnsafeError](err)
		if want := name == "readable" || name == "writable" || name == "directory" || name == "link" || name == "endless"; unsafe != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConcurrentChangesAreAllStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := secrets.New(path).Set(t.Context(), fmt.Sprintf("N%d", i), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := secrets.New(path).List(); len(list) != 20 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}

// Whatever the file holds, no error shows it.
func FuzzStore(f *testing.F) {
	f.Add(`{"version":1,"secrets":{"A":{"value":"x","changed":"2026-01-02T03:04:05Z"}}}`)
	f.Add(`{"version":1,"secrets":{"A":{"value":3}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		const mark = "Zq7Zq7Zq7"
		path := filepath.Join(t.TempDir(), "secrets")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "x", mark)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := secrets.New(path).List()
		if err != nil && strings.Contains(err.Error(), mark) {
			t.Errorf("the error shows it: %v", err)
		}
	})
}
