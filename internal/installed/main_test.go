package installed_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// helper is the variable that makes the test binary perform a change for a test.
const helper = "LOADOUT_TEST_INSTALLED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helper); dir != "" {
		if err := help(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// help installs the skill named by the variable, or performs the change of [scene] and
// kills itself before one of its steps.
func help(path string) error {
	dir := installed.Open(path)
	if name := os.Getenv(helper + "_PUT"); name != "" {
		return change(context.Background(), dir, func(ctx context.Context, c *installed.Change) error {
			_, err := c.Put(ctx, name, entry(), document(name, "1"))
			return err
		})
	}
	last, err := strconv.Atoi(os.Getenv(helper + "_STEP"))
	if err != nil {
		return err
	}
	dir.At(func(step string) error {
		if last--; last == 0 {
			fmt.Println(step)
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				return err
			}
			select {}
		}
		return unsupported(os.Getenv(helper+"_WITHOUT"), step)
	})
	return change(context.Background(), dir, update)
}

// unsupported fails, as on a system that has no such step.
func unsupported(what, step string) error {
	if what != "" && strings.HasPrefix(step, what) {
		return fmt.Errorf("here: %w", errors.ErrUnsupported)
	}
	return nil
}

// change begins, does, commits and closes.
func change(ctx context.Context, dir *installed.Dir, do func(context.Context, *installed.Change) error) error {
	c, err := dir.Begin(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := do(ctx, c); err != nil {
		return err
	}
	if err := c.Commit(ctx); err != nil {
		return err
	}
	return c.Close()
}

func entry() installed.Entry {
	return installed.Entry{From: remote.Location{Kind: remote.Git, URL: "https://example.com/skills", Dir: "skills/a", Ref: "main"},
		Ref: "refs/heads/main", Commit: strings.Repeat("a1", 20), Version: "1.2"}
}

// document is a skill of two files.
func document(name, version string) fstest.MapFS {
	return fstest.MapFS{
		"SKILL.md":       {Data: []byte("---\nname: " + name + "\ndescription: Does " + name + " things.\nversion: " + version + "\n---\n\n# " + name + "\n")},
		"scripts/run.sh": {Data: []byte("#!/bin/sh\necho " + version + "\n"), Mode: 0o755},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put installs documents, by "name" or "name@version".
func put(t testing.TB, dir *installed.Dir, refs ...string) {
	t.Helper()
	must(t, change(t.Context(), dir, func(ctx context.Context, c *installed.Change) error {
		for _, ref := range refs {
			name, version, _ := strings.Cut(ref, "@")
			if _, err := c.Put(ctx, name, entry(), document(name, version)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// write makes a file below a directory.
func write(t testing.TB, dir, name, content string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(t, os.WriteFile(p, []byte(content), 0o644))
}

// tree returns all files below a directory with their contents. Empty directories are
// listed with a slash, and executable files with a star.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		switch info, err := d.Info(); {
		case err != nil:
			return err
		case d.Type()&fs.ModeSymlink != 0:
			out[rel], err = os.Readlink(p)
			return err
		case d.IsDir():
			out[rel+"/"] = ""
			return nil
		case info.Mode()&0o111 != 0:
			rel += "*"
		}
		data, err := os.ReadFile(p)
		out[rel] = string(data)
		return err
	}))
	return out
}

func digest(t testing.TB, fsys fs.FS) string {
	t.Helper()
	m, _, err := skill.ReadManifest(fsys)
	must(t, err)
	return m.Digest()
}

// versions returns the installed skills as "name@version", according to their files.
func versions(t testing.TB, dir *installed.Dir) []string {
	t.Helper()
	lock, err := dir.Lockfile()
	must(t, err)
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(lock.Skills)) {
		found := "other"
		for _, v := range []string{"1", "2", "3"} {
			if digest(t, document(name, v)) == lock.Skills[name].Digest {
				found = v
			}
		}
		out = append(out, name+"@"+found)
	}
	return out
}

func texts(ds []installed.Difference) []string {
	out := []string{}
	for _, d := range ds {
		out = append(out, d.Name+" "+d.String())
	}
	return out
}

// clean fails if the files differ from the lockfile, or if a change left something
// behind.
func clean(t testing.TB, dir *installed.Dir) {
	t.Helper()
	ds, err := dir.Verify(t.Context())
	must(t, err)
	if len(ds) > 0 {
		t.Errorf("differs from the lock: %q", texts(ds))
	}
	if _, err := os.Lstat(filepath.Join(dir.Path(), installed.Staging)); err == nil {
		t.Errorf("%s is left: %q", installed.Staging, slices.Sorted(maps.Keys(tree(t, filepath.Join(dir.Path(), installed.Staging)))))
	}
}
