package installed_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/installed"
)

func TestAnySequenceOfChanges(t *testing.T) {
	top := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		path, err := os.MkdirTemp(top, "")
		must(t, err)
		dir := installed.Open(filepath.Join(path, "skills"))
		want := map[string]string{} // version by name
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			next := maps.Clone(want)
			stop, without := rapid.IntRange(0, 40).Draw(rt, "stopped before"), rapid.SampledFrom([]string{"", "exchange"}).Draw(rt, "without")
			counts := interrupted(rt, dir, stop, without, func(c *installed.Change) error {
				for range rapid.IntRange(0, 4).Draw(rt, "steps") {
					name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
					if rapid.Bool().Draw(rt, "remove") {
						err := c.Remove(rt.Context(), name)
						if _, has := next[name]; has && err != nil || !has && !isNotInstalled(err) {
							return fmt.Errorf("remove %s: %w", name, err)
						}
						delete(next, name)
						continue
					}
					version := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "version")
					if _, err := c.Put(rt.Context(), name, entry(), document(name, version)); err != nil {
						return err
					}
					next[name] = version
				}
				return nil
			})
			if counts {
				want = next
			}
			if c, err := dir.Begin(rt.Context()); err != nil {
				rt.Fatal(err)
			} else if err := c.Close(); err != nil {
				rt.Fatal(err)
			}
			refs := []string{}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				refs = append(refs, name+"@"+want[name])
			}
			if got := versions(t, dir); !slices.Equal(got, refs) {
				rt.Fatalf("the lock has %q, want %q", got, refs)
			}
			if ds, err := dir.Verify(rt.Context()); err != nil || len(ds) > 0 {
				rt.Fatalf("the files differ from the lock: %q, %v", texts(ds), err)
			}
			if left, err := dir.Untracked(rt.Context()); err != nil || len(left) > 0 {
				rt.Fatalf("skills that no lock has are left: %q, %v", left, err)
			}
		}
	})
}

// interrupted makes a change that ends before a step of it as if its process was
// killed, and reports whether it counts.
func interrupted(rt *rapid.T, dir *installed.Dir, stop int, without string, do func(*installed.Change) error) (counts bool) {
	killed := errors.New("killed")
	c, err := dir.Begin(rt.Context())
	if err != nil {
		rt.Fatal(err)
	}
	dir.At(func(step string) error {
		if stop--; stop == 0 {
			panic(killed)
		}
		counts = counts || step == "sync "+installed.Staging // right after the point
		return unsupported(without, step)
	})
	defer dir.At(nil)
	defer func() {
		if r := recover(); r == killed {
			c.Abandon()
			if _, err := os.Lstat(filepath.Join(dir.Path(), installed.Staging, "journal.json")); err == nil {
				counts = true
			}
		} else if r != nil {
			panic(r)
		}
	}()
	if err := do(c); err != nil {
		rt.Fatal(err)
	}
	if err := c.Commit(rt.Context()); err != nil {
		rt.Fatal(err)
	}
	counts = true
	if err := c.Close(); err != nil {
		rt.Fatal(err)
	}
	return counts
}
