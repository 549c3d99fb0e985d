package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sampleTree is a directory with everything an index holds.
func sampleTree(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"a/SKILL.md": "---\nname: a\ndescription: A.\nversion: 1.10\ntags: [x, y]\nbindShells: [Chat]\ndependencies: [b, 'c@^1']\n" +
			"displayName: Ah\nargument-hint: '[x]'\npreload: true\nuser-invocable: false\ndisable-model-invocation: yes\n---\nbody\n",
		"a/sub/b/SKILL.md":   "---\nname: b\ndescription: B: with a colon\n---\n",
		"a/scripts/x.py":     "pass\n",
		"c/skill.md":         "---\ndescription: no name\n---\n",
		"broken/SKILL.md":    "# nothing\n",
		"code/skill.py":      "SKILL_MANIFEST = {}\n",
		"empty/deep/er/x":    "",
		"group/one/SKILL.md": "---\nname: one\ndescription: 一\n---\n",
		"damaged.skill":      "PK",
	} {
		p := filepath.Join(root, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(content), 0o644))
	}
	f, err := os.Create(filepath.Join(root, "packed.skill"))
	must(t, err)
	_, _, err = skill.WriteZIP(f, os.DirFS(filepath.Join(root, "group", "one")), "one")
	must(t, err)
	must(t, f.Close())
	return root
}

func setTimes(t testing.TB, root string, at time.Time) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(p, at, at)
	}))
}

func list(t testing.TB, d Source) Listing {
	t.Helper()
	l, err := d.List(context.Background())
	must(t, err)
	return l
}

func indexed(root, index string) *dirSource {
	return NewDir("dir", User, root, &DirOptions{IndexFile: index}).(*dirSource)
}

// A directory that changed right before it was indexed is listed again until its
// stamp is reliable. Then the index is saved once more, and no process lists it again.
func TestIndexSettles(t *testing.T) {
	root, index := sampleTree(t), filepath.Join(t.TempDir(), "i.idx")
	synctest.Test(t, func(t *testing.T) {
		setTimes(t, root, time.Now().Add(-time.Hour))
		for _, dir := range []string{".", "a", "group", "group/one"} {
			must(t, os.Chtimes(filepath.Join(root, dir), time.Now(), time.Now()))
		}
		var saved [3][]byte
		for i := range saved {
			list(t, indexed(root, index))
			data, err := os.ReadFile(index)
			must(t, err)
			saved[i] = data
			racy := slices.ContainsFunc(nodesOf(readIndex(index, root, "dir", User)), func(n *node) bool { return n.stamp.racy(n.seen) })
			if want := i == 0; racy != want {
				t.Errorf("scan %d: directories to list again: %t, want %t", i+1, racy, want)
			}
			time.Sleep(time.Minute)
		}
		if !bytes.Equal(saved[1], saved[2]) {
			t.Error("the third scan saved the index again")
		}
	})
}

// nodesOf returns n and all nodes below it.
func nodesOf(n *node) []*node {
	out := []*node{n}
	for _, sub := range n.subs {
		out = append(out, nodesOf(sub)...)
	}
	return out
}

func TestIndexGivesSameCatalog(t *testing.T) {
	for _, aged := range []bool{true, false} {
		root, index := sampleTree(t), filepath.Join(t.TempDir(), "sub", "i.idx")
		if aged {
			setTimes(t, root, time.Now().Add(-time.Hour))
		}
		first := list(t, indexed(root, index))
		if len(first.Entries) != 5 || len(first.Problems) < 5 {
			t.Fatalf("the test has it wrong: %v", first)
		}
		before, err := os.ReadFile(index)
		must(t, err)
		second := list(t, indexed(root, index))
		if !reflect.DeepEqual(first, second) {
			t.Errorf("aged %v: after a restart (-first +second):\n%s", aged, cmp.Diff(first, second, cmp.AllowUnexported(Entry{}, fileID{})))
		}
		after, err := os.ReadFile(index)
		must(t, err)
		if aged && !bytes.Equal(before, after) {
			t.Error("the index was written again although nothing changed")
		}
		fi, err := os.Stat(index)
		must(t, err)
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read the index: %v", fi.Mode())
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(index), ".index-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// The label and the scope of a source are those it has now.
func TestIndexOmitsLabelAndScope(t *testing.T) {
	root, index := sampleTree(t), filepath.Join(t.TempDir(), "i.idx")
	setTimes(t, root, time.Now().Add(-time.Hour))
	list(t, indexed(root, index))
	l := list(t, NewDir("other", Project, root, &DirOptions{IndexFile: index}))
	for _, e := range l.Entries {
		if e.Origin != "other" || e.Scope != Project {
			t.Errorf("%s is of %s, scope %s", e.Name, e.Origin, e.Scope)
		}
	}
	for _, p := range l.Problems {
		if p.Origin != "other" {
			t.Errorf("%s is of %s", p.Path, p.Origin)
		}
	}
}

func TestChangesSinceIndexAreDetected(t *testing.T) {
	write := func(t *testing.T, p, content string) { t.Helper(); must(t, os.WriteFile(p, []byte(content), 0o644)) }
	head := func(name string) string { return "---\nname: " + name + "\ndescription: d\n---\n" }
	for _, tt := range []struct {
		what   string
		change func(t *testing.T, root string)
		want   string
	}{
		{"nothing", func(*testing.T, string) {}, "aa bb cc"},
		{"another size", func(t *testing.T, root string) { write(t, filepath.Join(root, "a", "SKILL.md"), head("longer")) }, "bb cc longer"},
		{"the same size", func(t *testing.T, root string) { write(t, filepath.Join(root, "a", "SKILL.md"), head("xx")) }, "bb cc xx"},
		{"another file under the name", func(t *testing.T, root string) {
			p := filepath.Join(root, "a", "SKILL.md")
			fi, err := os.Stat(p)
			must(t, err)
			write(t, p+"~", head("xx"))
			must(t, os.Chtimes(p+"~", fi.ModTime(), fi.ModTime()))
			must(t, os.Rename(p+"~", p))
		}, "bb cc xx"},
		{"a new skill", func(t *testing.T, root string) {
			must(t, os.Mkdir(filepath.Join(root, "n"), 0o755))
			write(t, filepath.Join(root, "n", "SKILL.md"), head("n"))
		}, "aa bb cc n"},
		{"a new skill in an old directory", func(t *testing.T, root string) { write(t, filepath.Join(root, "g", "SKILL.md"), head("g")) }, "aa bb cc g"},
		{"one is gone", func(t *testing.T, root string) { must(t, os.Remove(filepath.Join(root, "a", "SKILL.md"))) }, "bb cc"},
		{"a directory is gone", func(t *testing.T, root string) { must(t, os.RemoveAll(filepath.Join(root, "g"))) }, "aa bb"},
		{"two change places", func(t *testing.T, root string) {
			a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
			must(t, os.Rename(a, a+"x"))
			must(t, os.Rename(b, a))
			must(t, os.Rename(a+"x", b))
		}, "aa bb cc"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			root, index := t.TempDir(), filepath.Join(t.TempDir(), "i.idx")
			for _, d := range []string{"a", "b", "g/c"} {
				must(t, os.MkdirAll(filepath.Join(root, filepath.FromSlash(d)), 0o755))
				write(t, filepath.Join(root, filepath.FromSlash(d), "SKILL.md"), head(strings.Repeat(filepath.Base(d), 2)))
			}
			setTimes(t, root, time.Now().Add(-time.Hour))
			list(t, indexed(root, index))
			tt.change(t, root)
			l := list(t, indexed(root, index))
			fresh := list(t, indexed(root, ""))
			if !reflect.DeepEqual(l, fresh) {
				t.Errorf("with the index (+) it is not as without (-):\n%s", cmp.Diff(fresh, l, cmp.AllowUnexported(Entry{}, fileID{})))
			}
			var got []string
			for _, e := range l.Entries {
				got = append(got, e.Name)
			}
			if s := strings.Join(sorted(got), " "); s != tt.want {
				t.Errorf("skills %s, want %s", s, tt.want)
			}
		})
	}
}

func sorted(ss []string) []string {
	out := append([]string(nil), ss...)
	for i := range out {
		for j := i; j > 0 && out[j] < out[j-1]; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// A file that was written right before it was read may be written again
// without any trace in its size and times.
func TestChangeWithinOneClockTickIsDetected(t *testing.T) {
	root, index := t.TempDir(), filepath.Join(t.TempDir(), "i.idx")
	p := filepath.Join(root, "a", "SKILL.md")
	must(t, os.Mkdir(filepath.Dir(p), 0o755))
	now := time.Now()
	put := func(name string) {
		must(t, os.WriteFile(p, []byte("---\nname: "+name+"\ndescription: d\n---\n"), 0o644))
		must(t, os.Chtimes(p, now, now))
		must(t, os.Chtimes(filepath.Dir(p), now, now))
	}
	put("xx")
	d := indexed(root, index)
	list(t, d)
	put("yy")
	for _, d := range []*dirSource{d, indexed(root, index)} {
		if l := list(t, d); l.Entries[0].Name != "yy" {
			t.Errorf("it is still %s", l.Entries[0].Name)
		}
	}
	// The same applies to an archive.
	pack := func(name string) {
		var b bytes.Buffer
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: d\n---\n"), 0o644))
		_, _, err := skill.WriteZIP(&b, os.DirFS(dir), name)
		must(t, err)
		f := filepath.Join(root, "p.skill")
		must(t, os.WriteFile(f, b.Bytes(), 0o644))
		must(t, os.Chtimes(f, now, now))
	}
	pack("pp")
	list(t, d)
	pack("qq")
	if l := list(t, d); l.Entries[1].Name != "qq" {
		t.Errorf("the archive is still %s", l.Entries[1].Name)
	}
}

func TestInvalidIndexIsIgnored(t *testing.T) {
	root := sampleTree(t)
	setTimes(t, root, time.Now().Add(-time.Hour))
	want := list(t, indexed(root, ""))
	file := filepath.Join(t.TempDir(), "i.idx")
	list(t, indexed(root, file))
	good, err := os.ReadFile(file)
	must(t, err)
	for what, b := range map[string][]byte{
		"empty": {}, "of another version": bytes.Replace(bytes.Clone(good), []byte("loadout index "), []byte("loadout index 0"), 1),
		"of another directory": bytes.Replace(bytes.Clone(good), []byte(root), []byte("/"+strings.Repeat("x", len(root)-1)), 1),
		"too long":             append(bytes.Clone(good), 0), "text": []byte("hello\n"), "only its beginning": good[:len(indexMagic())],
		"huge numbers": append([]byte(indexMagic()), bytes.Repeat([]byte{0xff}, 100)...),
	} {
		must(t, os.WriteFile(file, b, 0o600))
		if got := list(t, indexed(root, file)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: not as without an index", what)
		}
	}
	for n := range len(good) {
		if _, err := decodeIndex(bytes.NewReader(good[:n]), int64(n), root, "dir", User); err == nil {
			t.Errorf("cut to %d of %d bytes it is accepted", n, len(good))
		}
	}
	for range 2000 { // a flipped bit may go unnoticed, but harms nothing
		b := bytes.Clone(good)
		b[rand.IntN(len(b))] ^= 1 << rand.IntN(8)
		_, _ = decodeIndex(bytes.NewReader(b), int64(len(b)), root, "dir", User)
	}
}

func TestUnsavableIndexIsOnlyAProblem(t *testing.T) {
	root := sampleTree(t)
	want := list(t, indexed(root, ""))
	places := map[string]string{}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	places["a file where a directory must be"] = filepath.Join(file, "i.idx")
	dir := filepath.Join(t.TempDir(), "dir.idx")
	must(t, os.MkdirAll(filepath.Join(dir, "x"), 0o755))
	places["a directory where the file must be"] = dir
	if os.Geteuid() != 0 {
		shut := t.TempDir()
		must(t, os.Chmod(shut, 0o555))
		places["a directory that may not be written"] = filepath.Join(shut, "i.idx")
	}
	for what, location := range places {
		l := list(t, indexed(root, location))
		if !reflect.DeepEqual(l.Entries, want.Entries) {
			t.Errorf("%s: other skills", what)
		}
		var reported []Problem
		for _, p := range l.Problems {
			if p.Code == "index-not-saved" {
				reported = append(reported, p)
			}
		}
		if len(reported) != 1 || len(l.Problems) != len(want.Problems)+1 || reported[0].Path != location || reported[0].Severity != skill.Warning || !strings.Contains(reported[0].Fix, "LOADOUT_CACHE") {
			t.Errorf("%s: problems %v", what, l.Problems)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(location), ".index-*")); len(left) > 0 {
			t.Errorf("%s: left behind %v", what, left)
		}
	}
}

func TestPersistentProblemDoesNotRewriteIndex(t *testing.T) {
	root, index := t.TempDir(), filepath.Join(t.TempDir(), "i.idx")
	must(t, os.MkdirAll(filepath.Join(root, "a"), 0o755))
	must(t, os.Symlink("nowhere", filepath.Join(root, "a", "SKILL.md")))
	must(t, os.Symlink("nowhere", filepath.Join(root, "b.skill")))
	setOld := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(root, "a"), setOld, setOld))
	must(t, os.Chtimes(root, setOld, setOld))
	d := indexed(root, index)
	if l := list(t, d); len(l.Problems) != 2 {
		t.Fatalf("problems %v", l.Problems)
	}
	must(t, os.Remove(index))
	for _, d := range []*dirSource{d, d} {
		list(t, d)
	}
	if _, err := os.Stat(index); err == nil {
		t.Error("it was written again")
	}
}

// An index is decoded in parts, at whose ends numbers may be cut.
func TestLargeIndexIsDecoded(t *testing.T) {
	tree := &node{}
	for i := range int64(20_000) {
		tree.subs = append(tree.subs, &node{name: fmt.Sprint(i), stamp: stamp{i, 1 << (i % 62), fileID{1, uint64(i)}}, seen: -i})
	}
	b := slices.Concat(encodeIndex("", tree)...)
	got, err := decodeIndex(bytes.NewReader(b), int64(len(b)), "", "", Bundled)
	if err != nil || !reflect.DeepEqual(got, tree) {
		t.Errorf("%d bytes: %v; the tree is equal: %t", len(b), err, reflect.DeepEqual(got, tree))
	}
}

func FuzzIndex(f *testing.F) {
	prefix := append([]byte(indexMagic()), binary.AppendVarint(nil, 0)...) // of the directory ""
	st := stamp{1, 2, fileID{3, 4}}
	flaw := []Problem{{Path: "p", Diagnostic: skill.Diagnostic{Severity: skill.Warning, Code: "c", Message: "m", Fix: "f", Line: 1, Column: 2, Rule: 3}}}
	entry := &Entry{Name: "n", DisplayName: "N", Description: "d", Version: "1", ArgumentHint: "h", Dir: "n", Path: "/n", file: "SKILL.md", id: st.id,
		Tags: []string{"t", "u"}, BindShells: []string{"b"}, Dependencies: []string{"x@1"}, Preload: true, HasOwnName: true, Warnings: 1}
	packed := &Entry{Name: "q", Dir: "q.skill", Path: "/q.skill", archive: true, id: st.id}
	entry.change, packed.change = st.hash(time.Now().UnixNano()), st.hash(time.Now().UnixNano())
	tree := &node{name: "r", stamp: st, seen: 5, more: &nodeMore{other: flaw, packs: []*found{{file: "q.skill", stamp: st, seen: 6, entry: packed}}},
		subs: []*node{{name: "n", stamp: st, skill: &found{file: "SKILL.md", stamp: st, entry: entry, problems: flaw}}, {name: "z"}}}
	for _, n := range []*node{{}, tree, tree.subs[0]} {
		b := slices.Concat(encodeIndex("", n)...)
		f.Add(b[len(prefix):])
		if got, err := decodeIndex(bytes.NewReader(b), int64(len(b)), "", "", Bundled); err != nil || !reflect.DeepEqual(got, n) {
			f.Fatalf("%v: got %+v, want %+v", err, got, n)
		}
	}
	f.Add([]byte{})
	long := slices.Concat(encodeIndex("", &node{})...)[len(prefix):]
	long[7]++                                              // one more byte of numbers
	f.Add(slices.Concat(long[:8], []byte{0x80}, long[8:])) // a number in more bytes than it needs
	f.Fuzz(func(t *testing.T, rest []byte) {
		if len(rest) > 1<<16 {
			t.Skip("longer than needed")
		}
		all := slices.Concat(prefix, rest)
		tree, err := decodeIndex(bytes.NewReader(all), int64(len(all)), "", "dir", User)
		if err != nil {
			return
		}
		if b := slices.Concat(encodeIndex("", tree)...); !bytes.Equal(b[len(prefix):], rest) {
			t.Errorf("it was written as\n%x\nand is now\n%x", rest, b[len(prefix):])
		}
	})
}

// A file may vanish between the listing of its directory and its turn to be
// read.
func TestFileVanishesDuringScan(t *testing.T) {
	root := t.TempDir()
	d, err := openDir(root)
	must(t, err)
	defer d.close()
	s := &scan{ctx: t.Context(), opts: &DirOptions{}, origin: "dir", head: make([]byte, fullHead), visited: map[fileID]bool{}}
	f := s.read(location{d, ""}, &found{file: skill.FileName}, "gone", fileID{})
	if f.entry != nil || f.seen != 0 || len(f.problems) != 1 || f.problems[0].Code != "not-found" || f.problems[0].Path != filepath.Join(root, skill.FileName) {
		t.Errorf("a SKILL.md: %+v", f)
	}
	p := s.readPack(d, &found{file: "gone.skill"}, ".")
	if p.entry != nil || p.seen != 0 || len(p.problems) != 1 || p.problems[0].Code != "not-found" {
		t.Errorf("an archive: %+v", p)
	}
	if _, err := s.descendInto(d, &node{name: "gone"}, "gone", level{depth: 1}); err == nil {
		t.Error("a directory: no error")
	}
}
