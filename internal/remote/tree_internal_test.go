package remote

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

func doc(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + " things.\n---\n\n# " + name + "\n"
}

func file(path, content string) entry { return memoryEntry(path, []byte(content)) }

func entriesOf(files map[string]string) []entry {
	var out []entry
	for p, content := range files {
		out = append(out, file(p, content))
	}
	return out
}

func mustTree(t testing.TB, entries []entry) *tree {
	t.Helper()
	tr, err := newTree(entries)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTreeImplementsFS(t *testing.T) {
	tr := mustTree(t, entriesOf(map[string]string{"a": "1", "b/c": "22", "b/d/e": "333", "b.txt": "", "b0": "x", "é/SKILL.md": "y"}))
	if err := fstest.TestFS(tr, "a", "b/c", "b/d/e", "b.txt", "b0", "é/SKILL.md"); err != nil {
		t.Error(err)
	}
	if got := len(tr.entriesBelow("b")); got != 2 {
		t.Errorf("%d entries below b, want 2", got)
	}
}

func TestTreeRefusesEscapingPaths(t *testing.T) {
	for _, p := range []string{"/a", "../a", "a/../../b", "a/..", "..", `..\a`, `a\..\b`, `\a`, "C:/a", `c:\a`} {
		_, err := newTree([]entry{file("SKILL.md", doc("a")), file(p, "x")})
		if _, refused := errors.AsType[*skill.RefusedError](err); !refused {
			t.Errorf("%q: %v, want it to be refused", p, err)
		}
	}
}

func TestTreeOmitsOddPaths(t *testing.T) {
	tr := mustTree(t, []entry{
		file("s/SKILL.md", doc("s")), file("s//x", ""), file("s/./y", ""), file("s/\xff", ""), file("s/", ""),
		file("s/SKILL.md/z", ""), file("s/SKILL.md", "another"), file("t", ""), file("t/u", ""),
	})
	var seen []string
	err := fs.WalkDir(tr, ".", func(p string, _ fs.DirEntry, err error) error { seen = append(seen, p); return err })
	if diff := cmp.Diff([]string{".", "s", "s/SKILL.md", "t"}, seen); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got := len(tr.entriesBelow("s")); got != 7 {
		t.Errorf("%d entries below s, want 7", got)
	}
}

func TestTreeLimits(t *testing.T) {
	deep := strings.Repeat("d/", 1000)
	var entries []entry
	for i := range 200 {
		entries = append(entries, file(strings.Repeat("x", i%20+1)+string(rune('a'+i/20))+"/"+deep+"f", ""))
	}
	if _, err := newTree(entries); err == nil || !strings.Contains(err.Error(), "directories") {
		t.Errorf("200,000 directories: %v", err)
	}
	entries = nil
	long := strings.Repeat("a", 1<<20)
	for range 65 {
		entries = append(entries, file(long, ""))
	}
	if _, err := newTree(entries); err == nil || !strings.Contains(err.Error(), "paths") {
		t.Errorf("65 MiB of paths: %v", err)
	}
}

func TestFilesHaveListedSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		size  int64
		wrong string
	}{"right": {5, ""}, "more": {4, "more"}, "none": {0, "more"}, "less": {6, "fewer"}} {
		t.Run(name, func(t *testing.T) {
			e := file("f", "12345")
			e.size = tt.size
			got, err := fs.ReadFile(mustTree(t, []entry{e}), "f")
			if tt.wrong == "" {
				if err != nil || string(got) != "12345" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wrong+" than") || int64(len(got)) > tt.size {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	for kind, want := range map[entryKind]string{linkEntry: "link", submoduleEntry: "submodule", specialEntry: "device"} {
		e := entry{path: "f", kind: kind, open: func() (io.ReadCloser, error) { return nil, errors.New("opened") }}
		tr := mustTree(t, []entry{e})
		if _, err := tr.Open("f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open %s: %v", want, err)
		}
		if fi, err := fs.Stat(tr, "f"); err != nil || fi.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", want, fi, err)
		}
	}
}

// codes returns the codes of the reasons for refusing a skill.
func codes(t testing.TB, err error) []string {
	t.Helper()
	refused, ok := errors.AsType[*skill.RefusedError](err)
	if !ok {
		t.Fatalf("not refused with a reason: %v", err)
	}
	var out []string
	for _, r := range refused.Refusals {
		out = append(out, r.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestCheckReportsAllProblems(t *testing.T) {
	tr := mustTree(t, []entry{
		file("good/SKILL.md", doc("good")),
		file("bad/SKILL.md", doc("bad")),
		file("bad/skill.MD", doc("bad")),
		{path: "bad/link", kind: linkEntry},
		{path: "bad/module", kind: submoduleEntry},
		{path: "bad/pipe", kind: specialEntry},
		file("bad/model.bin", pointer),
		file("bad/.GIT/config", ""),
		file("bad/NUL.txt", ""),
		file("bad/\xff", ""),
		file("bad/.git/config", ""),
		file("bad/.DS_Store", ""),
	})
	c := New(nil)
	o, err := c.collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r"}, Revision{}, tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := o.OpenSkill(t.Context(), Skill{Dir: "good"}); err != nil {
		t.Error(err)
	} else if err := b.Close(); err != nil {
		t.Error(err)
	}
	_, err = o.OpenSkill(t.Context(), Skill{Dir: "bad"})
	want := []string{"collision", "git-lfs", "link", "name-encoding", "name-git", "name-reserved", "special-file", "submodule"}
	if diff := cmp.Diff(want, codes(t, err)); diff != "" {
		t.Error(diff)
	}
	if msg := err.Error(); !strings.HasPrefix(msg, "open skill bad: skill refused: ") {
		t.Errorf("%q", msg)
	}
}

func TestCheckEnforcesLimits(t *testing.T) {
	files := []entry{file("SKILL.md", doc("a")), file("a", "12345"), file("b", "12345")}
	for code, limits := range map[string]skill.Limits{
		"too-many-entries":           {Entries: 2},
		"file-too-large":             {FileBytes: 4},
		"archive-unpacked-too-large": {UnpackedBytes: 55},
	} {
		c := New(&Options{Limits: Limits{Skill: limits}})
		_, err := c.openSkill(t.Context(), mustTree(t, slices.Clone(files)), ".")
		if got := codes(t, err); !slices.Contains(got, code) {
			t.Errorf("%v, want %s", got, code)
		}
	}
}

func TestOfferFindsSkillsBelowDirectory(t *testing.T) {
	files := map[string]string{
		"README.md":                  "hello",
		"skills/pdf/SKILL.md":        doc("pdf"),
		"skills/pdf/forms/SKILL.md":  doc("forms"),
		"skills/pdf/assets/SKILL.md": doc("a-template"),
		"skills/docx/skill.md":       doc("docx"),
		"skills/plain/SKILL.md":      "---\ndescription: It has no name.\n---\n",
		"other/SKILL.md":             doc("other"),
		"node_modules/x/SKILL.md":    doc("x"),
	}
	for dir, want := range map[string][]string{
		"":                     {"docx skills/docx", "forms skills/pdf/forms", "other other", "pdf skills/pdf", "plain skills/plain"},
		"skills":               {"docx skills/docx", "forms skills/pdf/forms", "pdf skills/pdf", "plain skills/plain"},
		"skills/pdf":           {"forms skills/pdf/forms", "pdf skills/pdf"},
		"skills/plain":         {"plain skills/plain"},
		"skills/docx/skill.md": {"docx skills/docx"},
		"other/":               {"other other"},
	} {
		t.Run(dir, func(t *testing.T) {
			o, err := New(nil).collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r", Dir: dir}, Revision{}, mustTree(t, entriesOf(files)), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range o.Skills {
				got = append(got, s.Name+" "+s.Dir)
				b, err := o.OpenSkill(t.Context(), s)
				if err != nil {
					t.Errorf("open %s: %v", s.Dir, err)
					continue
				}
				if _, err := skillfile.Find(b.FS); err != nil {
					t.Error(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOfferOfOneSkill(t *testing.T) {
	o, err := New(nil).collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r"}, Revision{}, mustTree(t, []entry{file("SKILL.md", doc("pdf"))}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Skill{{Name: "pdf", Description: "Does pdf things.", Dir: "."}}, o.Skills); diff != "" {
		t.Error(diff)
	}
}

func TestOfferReportsNamesDifferingInCase(t *testing.T) {
	tr := mustTree(t, entriesOf(map[string]string{"skills/pdf/SKILL.md": doc("pdf"), "docs/x": ""}))
	closed := 0
	_, err := New(nil).collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r", Dir: "skill"}, Revision{}, tr, func() error { closed++; return nil })
	notFound, ok := errors.AsType[*NotFoundError](err)
	if !ok || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff([]string{"skills"}, notFound.Suggestions); diff != "" {
		t.Error(diff)
	}
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
	if _, err := tr.startDir("../x"); err == nil {
		t.Error("a directory outside was found")
	}
}

// A listing of many skills reads their SKILL.md files alone, however many other
// files there are.
func TestListingReadsOnlySkillFiles(t *testing.T) {
	var entries []entry
	for i := range 400 {
		dir := "skills/s" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		entries = append(entries, file(dir+"/SKILL.md", doc(dir[7:])))
		entries = append(entries, entry{path: dir + "/data", size: 1, open: func() (io.ReadCloser, error) {
			t.Error("read a file that is no SKILL.md")
			return nil, fs.ErrInvalid
		}})
	}
	o, err := New(nil).collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r"}, Revision{}, mustTree(t, entries), nil)
	if err != nil || len(o.Skills) != 400 {
		t.Errorf("%d skills, %v", len(o.Skills), err)
	}
}

// What is wrong with one skill is a problem of the offer, and the others are there.
func TestBrokenSkillIsAProblem(t *testing.T) {
	tr := mustTree(t, []entry{
		file("good/SKILL.md", doc("good")), file("bad/SKILL.md", "no frontmatter"), {path: "linked/SKILL.md", kind: linkEntry},
	})
	o, err := New(nil).collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r"}, Revision{}, tr, nil)
	if err != nil || len(o.Skills) != 1 {
		t.Fatalf("%v, %v", o, err)
	}
	places := map[string]bool{}
	for _, p := range o.Problems {
		places[p.Path] = true
	}
	if !places["bad"] || !places["linked"] || len(places) != 2 {
		t.Errorf("problems %v", o.Problems)
	}
}

func TestTooManySkillsAreRefused(t *testing.T) {
	c := New(&Options{Limits: Limits{Skills: 1}})
	tr := mustTree(t, entriesOf(map[string]string{"a/SKILL.md": doc("a"), "b/SKILL.md": doc("b")}))
	if _, err := c.collect(t.Context(), Location{Kind: Git, URL: "https://example.com/r"}, Revision{}, tr, nil); err == nil {
		t.Error("offered")
	}
}
