package remote

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSweep checks that exactly the unused directories are removed.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	used, err := newGitDir(t.Context(), temp)
	if err != nil {
		t.Fatal(err)
	}
	defer used.remove()
	day := time.Now().Add(-24 * time.Hour)
	make := func(name, lock string, files map[string]string, at time.Time) {
		t.Helper()
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "repo"), 0o700); err != nil {
			t.Fatal(err)
		}
		if lock != "none" {
			files[dirLock] = lock
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	make(dirPrefix+"killed", "in use\n", map[string]string{"repo/pack": "x"}, time.Now())
	make(dirPrefix+"made-now", "", map[string]string{}, time.Now())
	make(dirPrefix+"made-then", "", map[string]string{}, day)
	make(dirPrefix+"another-now", "none", map[string]string{"x": ""}, time.Now())
	make(dirPrefix+"another-then", "none", map[string]string{"x": ""}, day)
	make("somebodys", "in use\n", map[string]string{}, day)
	if err := os.WriteFile(filepath.Join(temp, dirPrefix+"file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(used.path), dirPrefix + "made-now", dirPrefix + "another-now", "somebodys", dirPrefix + "file"}
	if os.Symlink(filepath.Join(temp, "somebodys"), filepath.Join(temp, dirPrefix+"link")) == nil {
		want = append(want, dirPrefix+"link")
	}
	slices.Sort(want)
	for range 2 {
		sweep(temp)
		entries, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("left are %q, want %q", got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(temp, "somebodys", dirLock)); err != nil {
		t.Error(err)
	}
	sweep(filepath.Join(temp, "none")) // not an error
}

// Whoever sweeps while others begin takes nothing from them.
func TestSweepDuringNewFetches(t *testing.T) {
	temp := t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			sweep(temp)
		}
	}()
	for going := true; going; {
		d, err := newGitDir(t.Context(), temp)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(d.path, "home"), 0o700); err != nil {
			t.Error(err)
		}
		if err := d.remove(); err != nil {
			t.Error(err)
		}
		select {
		case <-done:
			going = false
		default:
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
