package skillcheck_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/skill"
)

func document(name string) string {
	return "---\nname: " + name + "\ndescription: What it does.\n---\nText.\n"
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pack writes an archive with one file.
func pack(t *testing.T, file, name, text string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := skill.WriteZIP(f, fstest.MapFS{"SKILL.md": {Data: []byte(text)}}, name); err != nil {
		t.Fatal(err)
	}
}

// tree makes a directory with skills in all forms, and returns it.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"pdf/SKILL.md":          document("pdf"),
		"pdf/inner/SKILL.md":    document("inner"),
		"other/SKILL.md":        document("docx"), // differs from its directory
		"node_modules/SKILL.md": document("ignored"),
		".git/SKILL.md":         document("ignored"),
		"notes.zip":             "only .skill is certainly a skill",
	})
	pack(t, filepath.Join(dir, "packed.skill"), "packed", document("packed"))
	outside := filepath.Join(t.TempDir(), "linked")
	write(t, outside, map[string]string{"SKILL.md": document("linked")})
	if err := os.Symlink(outside, filepath.Join(dir, "linked")); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	return dir
}

func TestValidate(t *testing.T) {
	dir := tree(t)
	results := func(p string) map[string]string {
		t.Helper()
		all, err := skillcheck.Validate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, v := range all {
			rel, _ := filepath.Rel(dir, v.Path)
			state := "does not load"
			switch {
			case v.Valid:
				state = "valid"
			case v.Loads:
				state = "loads"
			}
			out[filepath.ToSlash(rel)] = v.Name + " " + state
		}
		return out
	}
	want := map[string]string{"pdf": "pdf valid", "pdf/inner": "inner valid", "other": "docx loads", "packed.skill": "packed valid", "linked": "linked valid"}
	if diff := cmp.Diff(want, results(dir)); diff != "" {
		t.Error(diff)
	}
	for p, want := range map[string]map[string]string{
		"pdf":          {"pdf": "pdf valid"},
		"pdf/SKILL.md": {"pdf/SKILL.md": "pdf valid"},
		"packed.skill": {"packed.skill": "packed valid"},
		"notes.zip":    {"notes.zip": " does not load"},
		"node_modules": {"node_modules": "ignored loads"},
	} {
		if diff := cmp.Diff(want, results(filepath.Join(dir, p))); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
	}
}

func TestValidateWithoutSkills(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"notes.txt": "text"})
	all, err := skillcheck.Validate(t.Context(), dir)
	if err != nil || len(all) != 1 || all[0].Path != dir || all[0].Loads || all[0].Diagnostics[0].Code != "no-skill-md" {
		t.Errorf("empty directory: %+v, %v", all, err)
	}
	if _, err := skillcheck.Validate(t.Context(), filepath.Join(dir, "notes.txt")); !errors.Is(err, skillcheck.ErrNotSkill) {
		t.Errorf("text file: %v", err)
	}
	if _, err := skillcheck.Validate(t.Context(), filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing path: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := skillcheck.Validate(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestScanPath(t *testing.T) {
	dir := tree(t)
	paths := func(p string) string {
		t.Helper()
		all, err := skillcheck.ScanPath(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range all {
			rel, _ := filepath.Rel(dir, s.Path)
			if out = append(out, filepath.ToSlash(rel)); s.Report == nil {
				t.Errorf("%s has no report", rel)
			}
		}
		return strings.Join(out, " ")
	}
	for p, want := range map[string]string{
		".":            "linked other packed.skill pdf", // pdf/inner belongs to pdf
		"pdf":          "pdf",
		"pdf/SKILL.md": "pdf",
		"packed.skill": "packed.skill",
		"node_modules": "node_modules",
	} {
		if got := paths(filepath.Join(dir, p)); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
	empty := t.TempDir()
	write(t, empty, map[string]string{"sub/notes.txt": "text"})
	if all, err := skillcheck.ScanPath(t.Context(), empty); err != nil || len(all) != 1 || all[0].Path != empty {
		t.Errorf("a directory without skills: %v, %v", all, err)
	}
}

func TestScanErrors(t *testing.T) {
	dir := tree(t)
	_, err := skillcheck.ScanPath(t.Context(), filepath.Join(dir, "notes.zip"))
	e, ok := errors.AsType[*skillcheck.ScanError](err)
	if _, refused := errors.AsType[*skill.RefusedError](err); !ok || !refused || e.Opened || filepath.Base(e.Path) != "notes.zip" {
		t.Errorf("refused archive: %v", err)
	}
	_, err = skillcheck.ScanPath(t.Context(), filepath.Join(dir, "gone"))
	if e, ok := errors.AsType[*skillcheck.ScanError](err); !ok || !errors.Is(err, fs.ErrNotExist) || e.Opened || strings.Count(err.Error(), "gone") != 1 {
		t.Errorf("missing path: %v", err)
	}
	write(t, dir, map[string]string{"notes.txt": "text"})
	if _, err := skillcheck.ScanPath(t.Context(), filepath.Join(dir, "notes.txt")); !errors.Is(err, skillcheck.ErrNotSkill) {
		t.Errorf("text file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := skillcheck.ScanPath(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// slow is a file system that answers after the time limit.
type slow struct{ fs.FS }

func (s slow) Open(name string) (fs.File, error) {
	time.Sleep(20 * time.Millisecond)
	return s.FS.Open(name)
}

func TestScanTimeout(t *testing.T) {
	files := slow{fstest.MapFS{"SKILL.md": {Data: []byte(document("pdf"))}}}
	_, err := skillcheck.Scan(t.Context(), files, "pdf", time.Millisecond)
	if e, ok := errors.AsType[*skillcheck.TimeoutError](err); !ok || e.Error() != "scan timed out after 1ms" {
		t.Errorf("error is %v", err)
	}
	if _, err := skillcheck.Scan(t.Context(), files, "pdf", time.Minute); err != nil {
		t.Error(err)
	}
}

func TestCountFindings(t *testing.T) {
	high, low := scan.Finding{Severity: scan.High}, scan.Finding{Severity: scan.Low}
	got := skillcheck.CountFindings(&scan.Report{Findings: []scan.Finding{high, low}}, &scan.Report{Findings: []scan.Finding{high}})
	if diff := cmp.Diff(map[string]int{"high": 2, "medium": 0, "low": 1, "info": 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestInspectArchive(t *testing.T) {
	dir := t.TempDir()
	inspect := func(folder, text string, anyFolder bool) *skillcheck.Archive {
		t.Helper()
		file := filepath.Join(dir, "pdf.zip")
		pack(t, file, folder, text)
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		a, err := skillcheck.InspectArchive(f, fi.Size(), file, anyFolder)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := inspect("pdf", document("pdf"), false); a.Skill == nil || a.Skill.Name != "pdf" || len(a.Manifest) != 1 || len(a.Problems) > 0 {
		t.Errorf("valid archive: %+v", a)
	}
	if a := inspect("other", document("other"), false); a.Skill != nil || len(a.Problems) == 0 {
		t.Errorf("other folder: %+v", a)
	}
	if a := inspect("other", document("other"), true); a.Skill == nil || len(a.Problems) > 0 {
		t.Errorf("any folder: %+v", a)
	}
	if a := inspect("pdf", "no frontmatter\n", false); a.Skill != nil || len(a.Problems) == 0 {
		t.Errorf("does not load: %+v", a)
	}
}
