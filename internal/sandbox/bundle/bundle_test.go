package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

func tree(files map[string]string) *sandbox.Tree {
	m := fstest.MapFS{}
	t := &sandbox.Tree{Path: mountpoint.Skill, FS: m}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		m[p] = &fstest.MapFile{Data: []byte(files[p]), Mode: 0o644}
		sum := sha256.Sum256([]byte(files[p]))
		t.Files = append(t.Files, sandbox.File{Path: p, Size: int64(len(files[p])), SHA256: hex.EncodeToString(sum[:]), Exec: filepath.Ext(p) == ".sh"})
	}
	return t
}

func open(t *testing.T, cache string, tr *sandbox.Tree) *Bundle {
	t.Helper()
	b, err := Open(cache, tr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// cacheDir is a directory that can be removed though bundles are protected.
func cacheDir(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() { remove(dir) })
	return dir
}

func content(t *testing.T, b *Bundle, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOpenCopies(t *testing.T) {
	tr := tree(map[string]string{"SKILL.md": "hello", "scripts/run.sh": "#!/bin/sh\n", "a/b/c": ""})
	b := open(t, cacheDir(t), tr)
	if got := content(t, b, "SKILL.md"); got != "hello" {
		t.Errorf("SKILL.md has %q", got)
	}
	for path, want := range map[string]os.FileMode{".": 0o555 | os.ModeDir, "SKILL.md": 0o444, "scripts": 0o555 | os.ModeDir, "scripts/run.sh": 0o555, "a/b/c": 0o444} {
		fi, err := os.Stat(filepath.Join(b.Dir, path))
		if err != nil || fi.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, fi.Mode(), err, want)
		}
	}
}

func TestOpenRebuildsChangedBundle(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"same size": func(d string) error { return rewrite(d, "SKILL.md", "jello") },
		"longer":    func(d string) error { return rewrite(d, "SKILL.md", "hello and more") },
		"missing":   func(d string) error { return os.Remove(filepath.Join(d, "SKILL.md")) },
		"added":     func(d string) error { return os.WriteFile(filepath.Join(d, "json.py"), nil, 0o444) },
		"directory": func(d string) error { return os.Mkdir(filepath.Join(d, "json"), 0o555) },
		"mode":      func(d string) error { return os.Chmod(filepath.Join(d, "SKILL.md"), 0o644) },
		"link": func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "SKILL.md")), os.Symlink("/etc/passwd", filepath.Join(d, "SKILL.md")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache, tr := cacheDir(t), tree(map[string]string{"SKILL.md": "hello"})
			b := open(t, cache, tr)
			if err := errors.Join(os.Chmod(b.Dir, 0o755), harm(b.Dir), os.Chmod(b.Dir, 0o555)); err != nil {
				t.Fatal(err)
			}
			b = open(t, cache, tr)
			entries, _ := os.ReadDir(b.Dir)
			if got := content(t, b, "SKILL.md"); got != "hello" || len(entries) != 1 {
				t.Errorf("SKILL.md has %q, of %d entries", got, len(entries))
			}
		})
	}
}

func rewrite(dir, name, data string) error {
	p := filepath.Join(dir, name)
	return errors.Join(os.Chmod(p, 0o644), os.WriteFile(p, []byte(data), 0o644), os.Chmod(p, 0o444))
}

func TestOpenRefusesChangedTree(t *testing.T) {
	cache := cacheDir(t)
	for i, data := range []string{"hello", "jello", "hello there", "hell"} {
		tr := tree(map[string]string{"SKILL.md": "hello"})
		tr.FS.(fstest.MapFS)["SKILL.md"].Data = []byte(data)
		b, err := Open(cache, tr)
		if i == 0 {
			if err != nil {
				t.Fatal(err)
			}
			b.Close()
			continue
		}
		if ce, ok := errors.AsType[*sandbox.ChangedError](err); !ok || ce.Path != "SKILL.md" || ce.Tree != mountpoint.Skill {
			t.Errorf("with %q: %v", data, err)
		}
	}
	left, _ := filepath.Glob(cache + "/bundles/.*")
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestConcurrentOpen(t *testing.T) {
	cache := cacheDir(t)
	tr := tree(map[string]string{"a": string(bytes.Repeat([]byte("x"), 1<<20)), "b/c": "d"})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			b, err := Open(cache, tr)
			if err != nil {
				t.Error(err)
				return
			}
			b.Close()
		})
	}
	all.Wait()
	entries, _ := os.ReadDir(cache + "/bundles")
	if len(entries) != 1 {
		t.Errorf("there are %d entries", len(entries))
	}
}

func TestSweep(t *testing.T) {
	cache := cacheDir(t)
	used := open(t, cache, tree(map[string]string{"a": "used"}))
	unused := open(t, cache, tree(map[string]string{"a": "unused"}))
	unused.Close()
	old := time.Now().Add(-2 * maxAge)
	for _, d := range []string{used.Dir, unused.Dir} {
		if err := os.Chtimes(d, old, old); err != nil {
			t.Fatal(err)
		}
	}
	open(t, cache, tree(map[string]string{"a": "new"}))
	if !isDir(used.Dir) || isDir(unused.Dir) {
		t.Errorf("used is there: %v, unused is there: %v", isDir(used.Dir), isDir(unused.Dir))
	}
}

func TestProgram(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, b, err := Program(cacheDir(t), exe)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	fi, err := os.Stat(p)
	if err != nil || fi.Mode() != 0o555 {
		t.Errorf("%v, %v", fi, err)
	}
}
