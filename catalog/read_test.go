package catalog_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

func TestReadReturnsCurrentBytes(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
	age(t, root)
	c := open(t, dir(root))
	e := get(t, c.Snapshot(), "pdf")
	for _, body := range []string{"one\n", "two\n", strings.Repeat("long ", 20_000), strings.Repeat("longer ", 1_000_000), ""} {
		want := "---\nname: pdf\ndescription: d\n---\n" + body
		write(t, root, map[string]string{"pdf/SKILL.md": want})
		s, src, err := c.Read(t.Context(), e)
		must(t, err)
		if string(src) != want || s.Instructions != body {
			t.Errorf("got %d bytes and %d of instructions, want %d and %d", len(src), len(s.Instructions), len(want), len(body))
		}
	}
}

// The files of a skill are the same whatever they come in.
func TestDirectoryArchiveAndFSGiveSameSkill(t *testing.T) {
	for _, file := range []string{"SKILL.md", "skill.md", "Skill.MD"} {
		files := map[string]string{
			file: doc("pdf", "version: 1.0\n"), "references/a b.md": "text\n", "scripts/run.py": "print()\n", "assets/x/y.bin": "\x00\x01",
			"empty.txt": "", ".hidden": "h", "ünï.md": "u\n",
		}
		root := t.TempDir()
		packed, mem := map[string]string{}, fstest.MapFS{}
		for name, content := range files {
			write(t, root, map[string]string{"skills/pdf/" + name: content})
			packed["pdf/"+name] = content
			mem["pdf/"+name] = &fstest.MapFile{Data: []byte(content)}
		}
		write(t, root, map[string]string{"skills/pdf/__pycache__/run.pyc": "x", "skills/pdf/.git/config": "x", "pdf.zip": pack(t, packed), "packs/pdf.skill": pack(t, packed), "flat.zip": pack(t, files)})
		mem["pdf/.DS_Store"] = &fstest.MapFile{Data: []byte("x")}
		var first skill.Manifest
		for _, s := range []catalog.Source{
			catalog.NewDir("dir", catalog.User, filepath.Join(root, "skills"), nil),
			catalog.NewDir("itself", catalog.User, filepath.Join(root, "skills", "pdf"), nil),
			catalog.NewDir("packs", catalog.User, filepath.Join(root, "packs"), nil),
			catalog.NewArchive("zip", catalog.User, filepath.Join(root, "pdf.zip")),
			catalog.NewArchive("flat", catalog.User, filepath.Join(root, "flat.zip")),
			catalog.NewFS("fs", catalog.User, mem),
		} {
			c := open(t, s)
			e := get(t, c.Snapshot(), "pdf")
			m, err := c.Manifest(t.Context(), e)
			must(t, err)
			if first == nil {
				first = m
				if len(m) != len(files) {
					t.Errorf("%s: %d files, want %d", s.Origin(), len(m), len(files))
				}
			}
			if diff := cmp.Diff(first, m); diff != "" || m.Digest() != first.Digest() {
				t.Errorf("%s: the manifest differs (-first +this):\n%s", s.Origin(), diff)
			}
			listed, err := c.ListFiles(t.Context(), e)
			must(t, err)
			for i := range listed {
				listed[i].SHA256 = m[i].SHA256
			}
			if diff := cmp.Diff(m, listed); diff != "" {
				t.Errorf("%s: the listing differs from the manifest (-manifest +list):\n%s", s.Origin(), diff)
			}
			sk, src, err := c.Read(t.Context(), e)
			if err != nil || sk.Version != "1.0" || string(src) != files[file] {
				t.Errorf("%s: read: %v, %q", s.Origin(), err, src)
			}
			if got, err := c.Resolve(t.Context(), m.Digest()); err != nil || got != e {
				t.Errorf("%s: by digest: %v, %v", s.Origin(), got, err)
			}
			if loc := e.Location(); (loc != "") != (s.Origin() == "dir" || s.Origin() == "itself") {
				t.Errorf("%s: location %q", s.Origin(), loc)
			}
		}
	}
}

func TestSymlinkOutOfSkillIsRefused(t *testing.T) {
	root := tree(t, map[string]string{
		"secret.txt": "secret", "skills/pdf/SKILL.md": doc("pdf", ""), "skills/pdf/in.txt": "-> deep/real.txt", "skills/pdf/deep/real.txt": "inside",
		"skills/pdf/out.txt": "-> ../../secret.txt", "skills/pdf/outdir": "-> ../..", "skills/pdf/abs.txt": "-> /etc/passwd", "skills/pdf/lost": "-> nowhere",
	})
	c := open(t, dir(filepath.Join(root, "skills")))
	e := get(t, c.Snapshot(), "pdf")
	b, err := c.Open(t.Context(), e)
	must(t, err)
	defer b.Close()
	for _, p := range []string{"out.txt", "outdir/secret.txt", "abs.txt", "../../secret.txt", "/etc/passwd", "lost"} {
		if f, err := b.Open(p); err == nil {
			f.Close()
			t.Errorf("%s can be opened", p)
		}
	}
	f, err := b.Open("in.txt")
	must(t, err)
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "inside" {
		t.Errorf("a link inside the skill: %q, %v", got, err)
	}
	m, err := c.Manifest(t.Context(), e)
	must(t, err)
	listed, err := c.ListFiles(t.Context(), e)
	must(t, err)
	for _, list := range []skill.Manifest{m, listed} {
		var got []string
		for _, f := range list {
			got = append(got, f.Path)
		}
		if diff := cmp.Diff([]string{"SKILL.md", "deep/real.txt", "in.txt"}, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
}

func TestManifestDescribesCurrentFiles(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", ""), "pdf/a.txt": "a", "pdf/b.txt": "b"})
	age(t, root)
	c := open(t, dir(root))
	e := get(t, c.Snapshot(), "pdf")
	sum := func(path string) string {
		t.Helper()
		m, err := c.Manifest(t.Context(), e)
		must(t, err)
		f, _ := m.Find(path)
		return f.SHA256
	}
	before := sum("a.txt")
	write(t, root, map[string]string{"pdf/a.txt": "A"})
	if after := sum("a.txt"); after != skillfile.Hash([]byte("A")) || after == before {
		t.Errorf("after an edit: %s", after)
	}
	write(t, root, map[string]string{"pdf/new.txt": "n"})
	must(t, os.Remove(filepath.Join(root, "pdf", "b.txt")))
	if sum("new.txt") == "" || sum("b.txt") != "" {
		t.Error("a new file or one that is gone is not noticed")
	}
}

func TestManifestReadsOnlyChangedFiles(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	mem := fstest.MapFS{}
	for _, p := range []string{"a/SKILL.md", "a/x.txt", "a/y.txt"} {
		mem[p] = &fstest.MapFile{Data: []byte("one"), ModTime: old}
	}
	m := source("m", catalog.User, "a")
	reads := map[string]int{}
	m.files = counted{mem, reads}
	c := open(t, m)
	e := get(t, c.Snapshot(), "a")
	for _, want := range []map[string]int{{"SKILL.md": 1, "x.txt": 1, "y.txt": 1}, {}, {"x.txt": 1}, {}} {
		clear(reads)
		got, err := c.Manifest(t.Context(), e)
		must(t, err)
		if diff := cmp.Diff(want, reads); diff != "" {
			t.Errorf("files that were read (-want +got):\n%s", diff)
		}
		if f, _ := got.Find("x.txt"); f.SHA256 != skillfile.Hash(mem["a/x.txt"].Data) {
			t.Errorf("the hash of x.txt is not that of %s", mem["a/x.txt"].Data)
		}
		if len(want) == 0 {
			mem["a/x.txt"] = &fstest.MapFile{Data: []byte("two"), ModTime: old.Add(time.Second)}
		}
	}
}

// counted counts how often each file is read.
type counted struct {
	fs.FS
	reads map[string]int
}

func (c counted) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	return countedFile{f, c.reads, filepath.Base(name), new(bool)}, err
}

type countedFile struct {
	fs.File
	reads map[string]int
	name  string
	begun *bool
}

func (f countedFile) Read(p []byte) (int, error) {
	if !*f.begun {
		*f.begun = true
		f.reads[f.name]++
	}
	return f.File.Read(p)
}

func (f countedFile) ReadDir(n int) ([]fs.DirEntry, error) { return f.File.(fs.ReadDirFile).ReadDir(n) }

func TestSkillOfAnotherCatalogIsRefused(t *testing.T) {
	c := open(t, source("m", catalog.User, "a"))
	e := get(t, open(t, source("other", catalog.User, "b")).Snapshot(), "b")
	if _, err := c.Open(t.Context(), e); err == nil || !strings.Contains(err.Error(), "other is not in this catalog") {
		t.Errorf("open: %v", err)
	}
	if _, _, err := c.Read(t.Context(), e); err == nil {
		t.Error("read: no error")
	}
	if _, err := c.Manifest(t.Context(), e); err == nil {
		t.Error("manifest: no error")
	}
}

func TestCustomSourceServesItsOwnFiles(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", "") + "from the disk\n", "a/x.txt": "disk"})
	m := source("m", catalog.User, "a")
	m.entries[0].Path = filepath.Join(root, "a")
	m.files = fstest.MapFS{"a/skill.md": {Data: []byte(doc("a", "") + "from the program\n")}}
	c := open(t, m)
	e := get(t, c.Snapshot(), "a")
	if s, _, err := c.Read(t.Context(), e); err != nil || !strings.HasSuffix(s.Instructions, "from the program\n") {
		t.Errorf("read: %v, %v", s, err)
	}
	if files, err := c.ListFiles(t.Context(), e); err != nil || len(files) != 1 || files[0].Path != "skill.md" {
		t.Errorf("files: %v, %v", files, err)
	}
	m.files = fstest.MapFS{}
	if _, _, err := c.Read(t.Context(), e); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
}

func TestBrokenArchive(t *testing.T) {
	good := pack(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})
	for what, tt := range map[string]struct{ zip, code string }{
		"no ZIP":       {"hello", "not-a-zip"},
		"cut off":      {good[:len(good)/2], "not-a-zip"},
		"no SKILL.md":  {pack(t, map[string]string{"a/README.md": "x"}), "no-skill-md"},
		"two skills":   {pack(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/SKILL.md": doc("b", "")}), "several-folders"},
		"a path out":   {pack(t, map[string]string{"../SKILL.md": doc("a", "")}), ""},
		"bad SKILL.md": {pack(t, map[string]string{"a/SKILL.md": "---\n"}), "frontmatter-unclosed"},
	} {
		root := tree(t, map[string]string{"x/bad.skill": tt.zip, "x/good.skill": good})
		for _, s := range []catalog.Source{dir(root), catalog.NewArchive("zip", catalog.User, filepath.Join(root, "x", "bad.skill"))} {
			snap := open(t, s).Snapshot()
			problems := snap.Problems()
			if len(problems) == 0 || problems[0].Path != filepath.Join(root, "x", "bad.skill") || problems[0].Fix == "" || tt.code != "" && problems[0].Code != tt.code {
				t.Errorf("%s as %s: %v", what, s.Origin(), problems)
			}
			if _, err := snap.Get("pdf"); (err == nil) != (s.Origin() == "dir") {
				t.Errorf("%s as %s: the good one: %v", what, s.Origin(), err)
			}
		}
	}
}

func TestMissingOrLaterArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pdf.zip")
	a := catalog.NewArchive("zip", catalog.User, file)
	c := open(t, a)
	if p := c.Snapshot().Problems(); len(p) != 1 || p[0].Code != "not-found" || p[0].Path != file {
		t.Errorf("missing: %v", p)
	}
	must(t, os.WriteFile(file, []byte(pack(t, map[string]string{"pdf/SKILL.md": doc("pdf", "")})), 0o644))
	must(t, c.Reload(t.Context()))
	get(t, c.Snapshot(), "pdf")
	if at, ok := a.(interface{ Root() string }); !ok || at.Root() != file || a.Scope() != catalog.User {
		t.Errorf("source %v, scope %s", a, a.Scope())
	}
}

// parsed is a source that parses its texts again for each listing.
type parsed map[string]string

func (p parsed) Origin() string       { return "parsed" }
func (p parsed) Scope() catalog.Scope { return catalog.User }

func (p parsed) List(context.Context) (catalog.Listing, error) {
	var l catalog.Listing
	for name, text := range p {
		s, _ := skill.ParseBytes([]byte(text), skill.FileName, name)
		l.Entries = append(l.Entries, catalog.EntryOf(p, s, name))
	}
	return l, nil
}

func (p parsed) Open(_ context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	return skill.NewBundle(fstest.MapFS{skill.FileName: {Data: []byte(p[e.Dir])}}, e.Dir, nil), nil
}

func TestEqualEntriesAreNoChange(t *testing.T) {
	p := parsed{"a": doc("a", "") + "one\n", "b": doc("b", "")}
	c := open(t, p)
	a, b := get(t, c.Snapshot(), "a"), get(t, c.Snapshot(), "b")
	before := c.Snapshot().Version
	must(t, c.Reload(t.Context()))
	if now := c.Snapshot(); now.Version != before || get(t, now, "a") != a {
		t.Errorf("the same texts made version %d of %d", now.Version, before)
	}
	p["a"] = doc("a", "") + "two\n"
	must(t, c.Reload(t.Context()))
	if now := c.Snapshot(); now.Version != before+1 || get(t, now, "a") == a || get(t, now, "b") != b {
		t.Errorf("another text made version %d of %d", now.Version, before)
	}
}
