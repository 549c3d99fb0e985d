package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wordTree is a directory of skills whose files are old enough to be trusted.
type wordTree struct {
	t    *testing.T
	root string
	at   time.Time
}

func newWordTree(t *testing.T, skills int) *wordTree {
	w := &wordTree{t, t.TempDir(), time.Now().Add(-time.Hour)}
	for i := range skills {
		w.write(i, "common words")
	}
	return w
}

func (w *wordTree) dir(i int) string { return filepath.Join(w.root, fmt.Sprintf("skill%04d", i)) }

func (w *wordTree) write(i int, body string) {
	w.t.Helper()
	dir := w.dir(i)
	must(w.t, os.MkdirAll(dir, 0o755))
	text := fmt.Sprintf("---\nname: skill-%d\ndescription: Handles documents of kind %d and %s.\n---\n%s number%d\n", i, i%7, strings.Repeat("word ", i%5), body, i)
	p := filepath.Join(dir, "SKILL.md")
	must(w.t, os.WriteFile(p, []byte(text), 0o644))
	w.age(p)
	w.age(dir)
}

// age sets the time of a file to a new time in the past.
func (w *wordTree) age(p string) {
	w.at = w.at.Add(time.Second)
	must(w.t, os.Chtimes(p, w.at, w.at))
}

// start returns a catalog as a new process has it. index may be empty.
func (w *wordTree) start(index string, more ...Source) *Catalog {
	w.t.Helper()
	c, err := New(append([]Source{indexed(w.root, index)}, more...), nil)
	must(w.t, err)
	must(w.t, c.Reload(w.t.Context()))
	return c
}

// hits returns the names and scores of the hits of several queries.
func hits(t *testing.T, c *Catalog, more ...string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, q := range append(more, "documents", "common words", "skill", "skill-3", "number5 kind 2", "special", "rare word", "numbr12") {
		found, err := c.Search(t.Context(), q, SearchOptions{Limit: 40})
		must(t, err)
		for _, h := range found {
			out[q] = append(out[q], fmt.Sprint(h.Key(), " ", h.Score))
		}
	}
	return out
}

func checkHits(t *testing.T, what string, got, want *Catalog) {
	t.Helper()
	if diff := cmp.Diff(hits(t, want), hits(t, got)); diff != "" {
		t.Fatalf("%s (-without saved files +with them):\n%s", what, diff)
	}
}

func readIfExists(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	return b
}

// TestSavedSearchGivesSameHits changes skills at random. One catalog lives on, as
// in a server, and others start with what is saved, with and without saving what
// they read.
func TestSavedSearchGivesSameHits(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newWordTree(t, 40+r.IntN(40))
		other := newWordTree(t, 25)
		index, next := filepath.Join(t.TempDir(), "i.idx"), 100
		lasting := w.start(index, indexedAs("other", other.root, index+"2"))
		for round := range 12 {
			what := fmt.Sprintf("seed %d, round %d", seed, round)
			fresh := w.start("", indexedAs("other", other.root, ""))
			must(t, lasting.Reload(t.Context()))
			checkHits(t, what+", the lasting catalog", lasting, fresh)
			if round%2 == 0 {
				must(t, lasting.Warm(t.Context()))
				checkHits(t, what+", the lasting catalog after saving", lasting, fresh)
			}
			started := w.start(index, indexedAs("other", other.root, index+"2"))
			checkHits(t, what+", a new process", started, fresh)
			if round%3 == 0 {
				must(t, started.Warm(t.Context()))
				checkHits(t, what+", a new process after saving", started, fresh)
			}
			for range []int{1, 3, 20, 60}[r.IntN(4)] {
				switch i := r.IntN(80); r.IntN(5) {
				case 0:
					must(t, os.RemoveAll(w.dir(i)))
				case 1:
					w.write(next, "special words")
					next++
				case 2:
					other.write(i, "rare words elsewhere") // may shadow or be shadowed
				default:
					w.write(i, fmt.Sprint("rare words ", r.IntN(4)))
				}
			}
			w.age(w.root)
			other.age(other.root)
		}
	}
}

func indexedAs(origin, root, index string) Source {
	return NewDir(origin, User, root, &DirOptions{IndexFile: index})
}

// TestSavedSkillsAreNotReadAgain changes a file without changing its stamp, so
// that a search finds the previous words only if it does not read the file.
func TestSavedSkillsAreNotReadAgain(t *testing.T) {
	w := newWordTree(t, 20)
	index := filepath.Join(t.TempDir(), "sub", "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	file := filepath.Join(w.dir(3), "SKILL.md")
	b, err := os.ReadFile(file)
	must(t, err)
	fi, err := os.Stat(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.Replace(b, []byte("common"), []byte("secret"), 1), 0o644))
	must(t, os.Chtimes(file, fi.ModTime(), fi.ModTime()))
	if got := hits(t, w.start(index), "secret")["secret"]; len(got) > 0 {
		t.Errorf("the file was read again: %q", got)
	}
	if got := hits(t, w.start(""), "secret")["secret"]; len(got) != 1 {
		t.Errorf("the test has it wrong: %q", got)
	}
	for _, suffix := range []string{largeSuffix, largeSuffix + ".lock"} {
		if fi, err := os.Stat(index + suffix); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", suffix, fi, err)
		}
	}
}

// A file that was written right before it was read may be written again without
// any trace in its stamp.
func TestRecentlyWrittenSkillIsNotSaved(t *testing.T) {
	w := newWordTree(t, 30)
	now := time.Now()
	for i := range 30 {
		must(t, os.Chtimes(filepath.Join(w.dir(i), "SKILL.md"), now, now))
	}
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	if b := readIfExists(t, index+largeSuffix); b != nil {
		t.Errorf("%d bytes were saved", len(b))
	}
}

func TestChangesAreSavedInSmallFile(t *testing.T) {
	w := newWordTree(t, 300)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	large := readIfExists(t, index+largeSuffix)
	for _, step := range []struct {
		changes      int
		large, small bool // whether the file is written
	}{
		{0, false, false},
		{minSaved - 1, false, false},
		{minSaved, false, true},
		{minSaved / 2, false, false},
		{100, true, false},
	} {
		small := readIfExists(t, index+smallSuffix)
		for i := range step.changes {
			w.write(i, "changed words")
		}
		w.age(w.root)
		c := w.start(index)
		must(t, c.Warm(t.Context()))
		checkHits(t, fmt.Sprint("after ", step.changes), c, w.start(""))
		after := readIfExists(t, index+largeSuffix)
		if written := !bytes.Equal(large, after); written != step.large {
			t.Errorf("%d changes: large file written: %v", step.changes, written)
		}
		afterSmall := readIfExists(t, index+smallSuffix)
		if written := !bytes.Equal(small, afterSmall) && afterSmall != nil; written != step.small {
			t.Errorf("%d changes: small file written: %v", step.changes, written)
		}
		large = after
	}
	if b := readIfExists(t, index+smallSuffix); b != nil {
		t.Errorf("the small file remains after it was merged")
	}
	fresh := filepath.Join(t.TempDir(), "fresh.idx")
	must(t, w.start(fresh).Warm(t.Context()))
	if !bytes.Equal(readIfExists(t, fresh+largeSuffix), large) {
		t.Error("merged files have other bytes than new ones")
	}
}

func TestRemovedSkillsLeaveSavedFile(t *testing.T) {
	w := newWordTree(t, 200)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	before := readIfExists(t, index+largeSuffix)
	for i := range 150 {
		must(t, os.RemoveAll(w.dir(i)))
	}
	w.age(w.root)
	c := w.start(index)
	must(t, c.Warm(t.Context()))
	checkHits(t, "after removal", c, w.start(""))
	if after := readIfExists(t, index+largeSuffix); len(after) >= len(before)/2 {
		t.Errorf("%d bytes, %d before", len(after), len(before))
	}
}

// A catalog that hides skills keeps their words for others.
func TestHiddenSkillsStaySaved(t *testing.T) {
	w := newWordTree(t, 200)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	before := readIfExists(t, index+largeSuffix)
	c, err := New([]Source{indexed(w.root, index)}, &Options{Filter: Filter{Allow: []string{"skill-1"}}})
	must(t, err)
	must(t, c.Reload(t.Context()))
	must(t, c.Warm(t.Context()))
	if !bytes.Equal(readIfExists(t, index+largeSuffix), before) {
		t.Error("the file was written again")
	}
}

func TestDamagedSearchFileIsReplaced(t *testing.T) {
	w := newWordTree(t, 60)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	file := index + largeSuffix
	good := readIfExists(t, file)
	fresh := w.start("")
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		bad := bytes.Clone(good)
		switch at := r.IntN(len(good)); i % 3 {
		case 0:
			bad[at] ^= 1 << r.IntN(8)
		case 1:
			bad = bad[:at]
		default:
			clear(bad[at:min(at+300, len(bad))])
		}
		must(t, os.WriteFile(file, bad, 0o600))
		c := w.start(index)
		checkHits(t, fmt.Sprint("damage ", i), c, fresh)
		must(t, c.Warm(t.Context()))
		checkHits(t, fmt.Sprint("damage ", i, ", after saving"), c, fresh)
	}
	must(t, os.WriteFile(file, make([]byte, len(good)), 0o600))
	must(t, w.start(index).Warm(t.Context()))
	if !bytes.Equal(readIfExists(t, file), good) {
		t.Error("the damaged file was not replaced")
	}
}

// A search finds the damage of a part that it reads, even while it uses the file.
func TestSearchSurvivesDamageWhileFileIsOpen(t *testing.T) {
	w := newWordTree(t, 60)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, w.start(index).Warm(t.Context()))
	c := w.start(index)
	want := hits(t, w.start(""))
	if diff := cmp.Diff(want, hits(t, c)); diff != "" {
		t.Fatal(diff)
	}
	must(t, os.Truncate(index+largeSuffix, 100))
	if diff := cmp.Diff(want, hits(t, c)); diff != "" {
		t.Error(diff)
	}
	must(t, c.Warm(t.Context()))
	checkHits(t, "after saving", w.start(index), w.start(""))
}

func TestUnsavableSearchFileHarmsNothing(t *testing.T) {
	w := newWordTree(t, 40)
	index := filepath.Join(t.TempDir(), "i.idx")
	must(t, os.MkdirAll(index+largeSuffix, 0o700)) // a directory where the file must be
	c := w.start(index)
	must(t, c.Warm(t.Context()))
	checkHits(t, "unsavable", c, w.start(""))
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(index), ".loadout-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProcessesSaveConcurrently(t *testing.T) {
	w := newWordTree(t, 100)
	index := filepath.Join(t.TempDir(), "i.idx")
	want := hits(t, w.start(""))
	catalogs := make([]*Catalog, 4)
	for i := range catalogs {
		catalogs[i] = w.start(index)
	}
	var wg sync.WaitGroup
	for _, c := range catalogs {
		wg.Go(func() {
			if err := c.Warm(t.Context()); err != nil {
				t.Error(err)
			}
			if got := hits(t, c); !reflect.DeepEqual(got, want) {
				t.Errorf("hits of one of them:\n%s", cmp.Diff(want, got))
			}
		})
	}
	wg.Wait()
	checkHits(t, "afterwards", w.start(index), w.start(""))
}
