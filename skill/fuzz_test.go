package skill_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/skill"
)

// FuzzParse checks that a loaded skill has a name and a description, that its
// instructions are the unchanged end of the file, and that parsing is deterministic.
func FuzzParse(f *testing.F) {
	for _, tt := range malformations {
		f.Add([]byte(tt.src), tt.folder)
	}
	f.Add([]byte(doc(ok+laughs(4)+"b: {<<: *l1}\nmcpServers: {a: *l2}\nconfig: {a: *l3}\n")), "pdf")
	f.Add([]byte(doc(ok+"tools:\n  - name: a\n    config: {b: !!int ''}\nprovider: {command: [a]}\n")), "pdf")
	f.Fuzz(func(t *testing.T, src []byte, folder string) {
		before := bytes.Clone(src)
		s, ds := skill.ParseBytes(src, skill.FileName, folder)
		again, ds2 := skill.ParseBytes(src, skill.FileName, folder)
		if diff := cmp.Diff(s, again, cmpopts.IgnoreUnexported(skill.Skill{})) + cmp.Diff(ds, ds2); diff != "" {
			t.Fatalf("two answers for one file:\n%s", diff)
		}
		if !bytes.Equal(before, src) {
			t.Fatal("the file was changed")
		}
		for _, d := range ds {
			if d.Code == "" || d.Message == "" || d.Line < 0 || d.Column < 0 || d.Severity != skill.Info && d.Fix == "" || strings.ContainsAny(d.Message, "\n\x1b") {
				t.Errorf("unfinished diagnostic %+v", d)
			}
		}
		if s == nil {
			if ds.Loads() {
				t.Error("no skill, and nothing says why")
			}
			return
		}
		if ds.Loads() && (s.Name == "" || s.Description == "") {
			t.Errorf("loads without a name or a description: %+v", s)
		}
		if !strings.HasSuffix(string(src), s.Instructions) || !bytes.Contains(src, s.Frontmatter) {
			t.Error("instructions or frontmatter are not those of the file")
		}
		// A valid skill that does not load is one of the oddities that Valid
		// tells of; with one fence line after the other they do not arise.
		if ds.Valid() && !ds.Loads() && bytes.Count(src, []byte("---")) == 2 && s.Instructions != "" && !strings.Contains(strings.ToLower(string(s.Frontmatter)), "null") && !bytes.ContainsRune(s.Frontmatter, '~') {
			t.Errorf("valid, and does not load: %v", ds)
		}
		if js, err := s.FrontmatterJSON(); err == nil && !json.Valid(js) {
			t.Errorf("not JSON: %s", js)
		}
		head, hds, more := skill.ParseHead(src, true, skill.FileName, folder)
		if more || !same(s, level1(ds), head, level1(hds)) {
			t.Errorf("of the head: %+v %v %v", head, hds, more)
		}
	})
}

// What is accepted has plain local paths, and unpacks within the limits.
func FuzzOpenZIP(f *testing.F) {
	f.Add(archive(f, skillMD))
	f.Add(archive(f, skillMD, entry{name: "pdf/a/"}, entry{name: "pdf/a/b", content: "x"}, entry{name: "__MACOSX/x"}))
	f.Add(archive(f, entry{name: "SKILL.md", content: doc(ok)}, entry{name: "../x"}))
	f.Add(archive(f, entry{name: "pdf/SKILL.md", content: long(1000)}, entry{name: "pdf/l", content: "x", mode: fs.ModeSymlink}))
	whole := archive(f, skillMD)
	f.Add(whole[bytes.LastIndex(whole, []byte("PK\x01\x02")):]) // the directory without the files
	f.Fuzz(func(t *testing.T, src []byte) {
		limits := skill.Limits{FileBytes: 1 << 20, UnpackedBytes: 2 << 20, Entries: 20}
		b, err := openZIP(src, "pdf.zip", limits)
		if err != nil {
			if refusals, ok := refusalsOf(err); !ok || len(refusals) == 0 || refusals[0].Code == "" || err.Error() == "" {
				t.Errorf("refused without a reason: %v", err)
			}
			return
		}
		var total int64
		files, _, err := skill.List(b)
		if err != nil {
			t.Fatalf("accepted, and cannot be listed: %v", err)
		}
		if len(files) == 0 || len(files) > limits.Entries {
			t.Errorf("%d files", len(files))
		}
		for _, file := range files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) || !fs.ValidPath(file.Path) || strings.ContainsAny(file.Path, "\\:\x00") {
				t.Errorf("path %q", file.Path)
			}
			r, err := b.Open(file.Path)
			if err != nil {
				continue
			}
			n, _ := io.Copy(io.Discard, r)
			r.Close()
			if total += n; n > file.Size || n > limits.FileBytes || total > limits.UnpackedBytes {
				t.Errorf("%s has %d bytes, declared %d", file.Path, n, file.Size)
			}
		}
	})
}

// Items are never empty, and a list of them is read as the same items.
func FuzzSplitTools(f *testing.F) {
	for _, s := range []string{"Read, Write", "Bash(git add:*, git commit:*) Read", "a) b", "a(b", "é\u2028b", "\xff,a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items := skill.SplitTools(s)
		for _, item := range items {
			if item == "" || strings.TrimSpace(item) != item {
				t.Errorf("item %q", item)
			}
		}
		for _, sep := range []string{" ", ",", ", "} {
			if again := skill.SplitTools(strings.Join(items, sep)); !slices.Equal(items, again) {
				t.Errorf("%q, joined by %q: %q", items, sep, again)
			}
		}
	})
}
