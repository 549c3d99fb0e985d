package installed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/installed"
)

// scene is a directory with skills, one of them put there by hand, before [update].
func scene(t testing.TB) *installed.Dir {
	t.Helper()
	dir := installed.Open(filepath.Join(t.TempDir(), "skills"))
	put(t, dir, "kept@1", "old@1", "gone@1")
	write(t, dir.Path(), "by-hand/SKILL.md", "mine")
	return dir
}

var (
	before = []string{"gone@1", "kept@1", "old@1"}
	after  = []string{"fresh@2", "kept@1", "old@2"}
)

// update is a change of every kind.
func update(ctx context.Context, c *installed.Change) error {
	for _, name := range []string{"old", "fresh"} {
		if _, err := c.Put(ctx, name, entry(), document(name, "2")); err != nil {
			return err
		}
	}
	return c.Remove(ctx, "gone")
}

// ways lists systems with and without an atomic exchange of directories.
var ways = map[string]string{"exchange": "", "rename": "exchange"}

// checkIntact fails if a reader sees an incomplete skill, or if a manually copied skill
// changed.
func checkIntact(t *testing.T, dir *installed.Dir) {
	t.Helper()
	files := tree(t, dir.Path())
	for _, name := range []string{"kept", "old", "gone", "fresh"} {
		path := filepath.Join(dir.Path(), name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if d := digest(t, os.DirFS(path)); d != digest(t, document(name, "1")) && d != digest(t, document(name, "2")) {
			t.Errorf("%s is neither the old nor the new one", name)
		}
	}
	if files["by-hand/SKILL.md"] != "mine" {
		t.Error("the skill that was put there by hand is not as it was")
	}
	versions(t, dir) // can be read
}

// settled fails unless the lock and the files are all of want.
func settled(t *testing.T, dir *installed.Dir, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, versions(t, dir)); diff != "" {
		t.Errorf("the lock is not as it should be (-want +got):\n%s", diff)
	}
	clean(t, dir)
	names := []string{"by-hand", installed.LockfileName}
	for _, ref := range want {
		name, _, _ := strings.Cut(ref, "@")
		names = append(names, name)
	}
	slices.Sort(names)
	entries, err := os.ReadDir(dir.Path())
	must(t, err)
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("the directory is not as it should be (-want +got):\n%s", diff)
	}
}

// open begins a change and ends it, which finishes what there is to finish.
func open(t *testing.T, dir *installed.Dir) {
	t.Helper()
	must(t, change(t.Context(), dir, func(context.Context, *installed.Change) error { return nil }))
}

// kill runs update in a child process that is killed before a step. It returns the name
// of that step, or "" if there are fewer steps.
func kill(t *testing.T, dir *installed.Dir, n int, without string) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helper+"="+dir.Path(), fmt.Sprintf("%s_STEP=%d", helper, n), helper+"_WITHOUT="+without)
	out, err := cmd.Output()
	step := strings.TrimSpace(string(out))
	if ee, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || step == "") {
		t.Fatalf("the process failed: %v %s", err, ee.Stderr)
	}
	return step
}

const point = "rename " + installed.Staging + "/journal.tmp" // from which on a change counts

func TestKilledChangeIsAtomic(t *testing.T) {
	for way, without := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			want, steps := before, 0
			for n := 1; ; n++ {
				dir := scene(t)
				step := kill(t, dir, n, without)
				if step == "" {
					settled(t, dir, after)
					break
				}
				steps++
				t.Run(step, func(t *testing.T) {
					checkIntact(t, dir)
					open(t, dir)
					settled(t, dir, want)
				})
				if step == point {
					want = after
				}
			}
			if steps < 20 || !slices.Equal(want, after) {
				t.Errorf("the change has %d steps, which are not all of them", steps)
			}
		})
	}
}

// What finishes a change may be stopped as well, at each of its steps in turn.
func TestRecoverySurvivesRepeatedInterruption(t *testing.T) {
	stop := errors.New("stopped")
	for way, without := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			want := before
			for n := 1; ; n++ {
				dir := scene(t)
				step := stopAt(t, dir, n, without)
				if step == "" {
					break
				}
				for m, left := 1, 0; left <= 0; m++ {
					left = m
					dir.At(func(s string) error {
						if left--; left == 0 {
							return stop
						}
						return unsupported(without, s)
					})
					c, err := dir.Begin(t.Context())
					if err == nil {
						err = c.Close()
					}
					if err != nil && !errors.Is(err, stop) {
						t.Fatalf("stopped at %s, then at step %d: %v", step, m, err)
					}
					checkIntact(t, dir)
				}
				dir.At(nil)
				open(t, dir)
				settled(t, dir, want)
				if step == point {
					want = after
				}
			}
			if !slices.Equal(want, after) {
				t.Error("the change never came to count")
			}
		})
	}
}

// stopAt is like kill, but stops the change within this process.
func stopAt(t *testing.T, dir *installed.Dir, n int, without string) (at string) {
	t.Helper()
	type stopped struct{}
	c, err := dir.Begin(t.Context())
	must(t, err)
	dir.At(func(step string) error {
		if n--; n == 0 {
			at = step
			panic(stopped{})
		}
		return unsupported(without, step)
	})
	defer dir.At(nil)
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
			c.Abandon()
		}
	}()
	must(t, update(t.Context(), c))
	must(t, c.Commit(t.Context()))
	must(t, c.Close())
	return ""
}

func TestFailedStepIsAtomic(t *testing.T) {
	broken := errors.New("the disk is broken")
	for way, without := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			failed := map[string]bool{}
			for n := 1; ; n++ {
				dir := scene(t)
				left, at := n, ""
				c, err := dir.Begin(t.Context())
				must(t, err)
				dir.At(func(step string) error {
					if left--; left == 0 {
						at = step
						return broken
					}
					return unsupported(without, step)
				})
				if err = update(t.Context(), c); err == nil {
					err = c.Commit(t.Context())
				}
				closed := c.Close()
				dir.At(nil)
				if at == "" {
					break
				}
				if err != nil && !errors.Is(err, broken) || closed != nil && !errors.Is(closed, broken) {
					t.Fatalf("%s failed: %v, %v", at, err, closed)
				}
				want := after
				if err != nil {
					want, failed[strings.TrimPrefix(at, installed.Staging)] = before, true
				}
				if diff := cmp.Diff(want, versions(t, dir)); diff != "" {
					t.Errorf("%s failed, the commit said %v (-want +got):\n%s", at, err, diff)
				}
				checkIntact(t, dir)
				open(t, dir)
				settled(t, dir, want)
			}
			for _, step := range []string{"copy SKILL.md", "settle", point, "rename " + installed.Staging + "/loadout.lock"} {
				if !failed[step] {
					t.Errorf("that %q failed was not seen; seen were %q", step, slices.Sorted(maps.Keys(failed)))
				}
			}
		})
	}
}

// A commit that fails is reverted and reported, even if the disk never works again.
func TestFailedCommitOnABrokenDisk(t *testing.T) {
	broken := errors.New("the disk is broken")
	for n := 1; ; n++ {
		dir := scene(t)
		steps, begun := 0, ""
		c, err := dir.Begin(t.Context())
		must(t, err)
		must(t, update(t.Context(), c))
		dir.At(func(step string) error {
			if steps++; steps < n {
				return nil
			}
			if begun == "" {
				begun = step
			}
			return broken
		})
		err = c.Commit(t.Context())
		c.Close()
		dir.At(nil)
		if begun == "" {
			return
		}
		want := after
		if err != nil {
			want = before
		}
		if err != nil && !errors.Is(err, broken) {
			t.Errorf("broken at %s: %v", begun, err)
		}
		if diff := cmp.Diff(want, versions(t, dir)); diff != "" {
			t.Errorf("broken at %s, the commit said %v (-want +got):\n%s", begun, err, diff)
		}
		checkIntact(t, dir)
		open(t, dir)
		settled(t, dir, want)
	}
}

func TestRecoveryKeepsLaterChanges(t *testing.T) {
	dir := scene(t)
	for n := 1; stopAt(t, dir, n, "") != "rename "+installed.Staging+"/loadout.lock"; n++ {
		open(t, dir)
		dir = scene(t)
	}
	write(t, dir.Path(), "gone/SKILL.md", "mine")
	open(t, dir)
	clean(t, dir)
	if diff := cmp.Diff(after, versions(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := tree(t, dir.Path())["gone/SKILL.md"]; got != "mine" {
		t.Errorf("what the user put there is now %q", got)
	}
}
