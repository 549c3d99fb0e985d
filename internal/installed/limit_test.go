//go:build unix

package installed_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// Whichever step fails, a change fails as a whole, and the directory has what the
// lockfile says. A check that fails never looks like one without differences.
func TestStepsThatFail(t *testing.T) {
	for name, each := range map[string]func(t *testing.T, f func(context.Context) error){
		"cancelled": func(t *testing.T, f func(context.Context) error) { limittest.CancelAtEach(t, f) },
		"too many open files": func(t *testing.T, f func(context.Context) error) {
			limittest.EachOpen(t, func() error { return f(t.Context()) }, func(error) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "skills")
			dir := installed.Open(path)
			want := func(all ...string) {
				t.Helper()
				if got := versions(t, dir); !slices.Equal(got, all) {
					t.Errorf("installed %v, want %v", got, all)
				}
				clean(t, dir)
			}
			each(t, func(ctx context.Context) error {
				return change(ctx, installed.Open(path), func(ctx context.Context, c *installed.Change) error {
					for _, name := range []string{"a", "b"} {
						if _, err := c.Put(ctx, name, entry(), document(name, "1")); err != nil {
							return err
						}
					}
					return nil
				})
			})
			want("a@1", "b@1")
			each(t, func(ctx context.Context) error {
				return change(ctx, installed.Open(path), func(ctx context.Context, c *installed.Change) error {
					if _, err := c.Put(ctx, "a", entry(), document("a", "2")); err != nil {
						return err
					}
					if _, ok := c.Lockfile().Skills["b"]; !ok {
						return nil // only the clean-up after the change failed
					}
					return c.Remove(ctx, "b")
				})
			})
			want("a@2")
			write(t, path, "a/more.txt", "more")
			write(t, path, "own/SKILL.md", "mine")
			each(t, func(ctx context.Context) error {
				all, err := installed.Open(path).Verify(ctx)
				if err == nil && !slices.Equal(texts(all), texts(verified(t, dir))) {
					t.Errorf("differences %v", texts(all))
				}
				return err
			})
			each(t, func(ctx context.Context) error {
				all, err := installed.Open(path).Untracked(ctx)
				if err == nil && !slices.Equal(all, []string{"own"}) {
					t.Errorf("untracked %v", all)
				}
				return err
			})
			each(t, func(ctx context.Context) error {
				lock, err := installed.Open(path).Lockfile()
				if err == nil && len(lock.Skills) != 1 {
					t.Errorf("locked %v", lock.Skills)
				}
				return err
			})
			each(t, func(ctx context.Context) error {
				has, err := installed.Open(path).Has("a")
				if err == nil && !has {
					t.Error("a is not there, without an error")
				}
				return err
			})
			each(t, func(ctx context.Context) error {
				return change(ctx, installed.Open(path), func(ctx context.Context, c *installed.Change) error {
					if _, ok := c.Lockfile().Skills["a"]; !ok {
						return nil
					}
					return c.ForceRemove(ctx, "a")
				})
			})
			if got := versions(t, dir); len(got) > 0 {
				t.Errorf("left %v", got)
			}
		})
	}
}

// verified returns the differences of a directory that can be read.
func verified(t *testing.T, dir *installed.Dir) []installed.Difference {
	t.Helper()
	all, err := dir.Verify(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}
