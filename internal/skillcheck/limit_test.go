//go:build unix

package skillcheck_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/skill"
)

// eachFailure calls f with too few open files and with contexts that are cancelled,
// until f succeeds.
func eachFailure(t *testing.T, f func(context.Context) error) {
	limittest.CancelAtEach(t, f)
	limittest.EachOpen(t, func() error { return f(t.Context()) }, func(error) {})
}

// A check that cannot read a file or is cancelled does not look complete.
func TestIncompleteChecksFail(t *testing.T) {
	dir := tree(t)
	for _, p := range []string{dir, filepath.Join(dir, "pdf"), filepath.Join(dir, "packed.skill"), filepath.Join(dir, "linked")} {
		scanned, err := skillcheck.ScanPath(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		eachFailure(t, func(ctx context.Context) error {
			got, err := skillcheck.ScanPath(ctx, p)
			for _, g := range got {
				if slices.ContainsFunc(g.Findings, func(f scan.Finding) bool { return f.Rule == "unreadable" }) {
					err = errors.Join(err, errors.New("unreadable"))
				}
			}
			if diff := cmp.Diff(scanned, got); err == nil && diff != "" {
				t.Errorf("scan of %s: %s", p, diff)
			}
			return err
		})
		valid, err := skillcheck.Validate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		eachFailure(t, func(ctx context.Context) error {
			got, err := skillcheck.Validate(ctx, p)
			for _, v := range got {
				if i := slices.IndexFunc(v.Diagnostics, func(d skill.Diagnostic) bool { return d.Code == "unreadable" }); i >= 0 {
					if v.Valid || v.Loads {
						t.Errorf("%s is unreadable and valid", v.Path)
					}
					err = errors.Join(err, errors.New(v.Diagnostics[i].Message))
				}
			}
			if diff := cmp.Diff(valid, got); err == nil && diff != "" {
				t.Errorf("validation of %s: %s", p, diff)
			}
			return err
		})
	}
}

// A symbolic link to a directory of skills is followed at the start, and a directory
// in it is shown below the link.
func TestStartAtLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "start")
	if err := os.Symlink(tree(t), dir); err != nil {
		t.Skip(err)
	}
	scanned, err := skillcheck.ScanPath(t.Context(), dir)
	if err != nil || len(scanned) != 4 || scanned[0].Path != filepath.Join(dir, "linked") {
		t.Errorf("scanned %+v, %v", scanned, err)
	}
	valid, err := skillcheck.Validate(t.Context(), dir)
	if err != nil || len(valid) != 5 || valid[0].Path != filepath.Join(dir, "linked") {
		t.Errorf("validated %+v, %v", valid, err)
	}
}

// A directory named like a skill file or an archive is none, and neither is a link to
// other files.
func TestNoSkills(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"pdf/SKILL.md": document("pdf"), "a/SKILL.md/x": "", "b.skill/x": "", "other/notes.txt": "", "node_modules/x/SKILL.md": document("x")})
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	scanned, err := skillcheck.ScanPath(t.Context(), dir)
	if err != nil || len(scanned) != 1 || scanned[0].Path != filepath.Join(dir, "pdf") {
		t.Errorf("scanned %+v, %v", scanned, err)
	}
	valid, err := skillcheck.Validate(t.Context(), dir)
	if err != nil || len(valid) != 1 || valid[0].Name != "pdf" || !valid[0].Loads {
		t.Errorf("validated %+v, %v", valid, err)
	}
	for _, p := range []string{"a/SKILL.md", "b.skill"} { // directories without skills
		if scanned, err := skillcheck.ScanPath(t.Context(), filepath.Join(dir, p)); err != nil || len(scanned) != 1 {
			t.Errorf("%s: %+v, %v", p, scanned, err)
		}
	}
}

// A skill whose files break the rules is reported with each reason.
func TestInvalidSkills(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"none/SKILL.md": "No frontmatter.\n", "con/SKILL.md": document("con")})
	all, err := skillcheck.Validate(t.Context(), dir)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, v := range all {
		if bad := filepath.Base(v.Path) == "none"; v.Valid == bad || v.Loads == bad || (len(v.Diagnostics) > 0) != bad {
			t.Errorf("%+v", v)
		}
	}
	file := filepath.Join(dir, "bad.zip")
	pack(t, file, "bad", "No frontmatter.\n")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, _ := f.Stat()
	a, err := skillcheck.InspectArchive(f, fi.Size(), file, false)
	if err != nil || a.Skill != nil || a.Manifest != nil || len(a.Problems) == 0 {
		t.Errorf("an archive without frontmatter: %+v, %v", a, err)
	}
	if got, err := skillcheck.Validate(t.Context(), file); err != nil || len(got) != 1 || got[0].Loads || len(got[0].Diagnostics) == 0 {
		t.Errorf("validated %+v, %v", got, err)
	}
}

// The path of a skill that cannot be scanned is part of the error, unless the caller
// gave up.
func TestScanErrorHasPath(t *testing.T) {
	broken := errors.New("broken")
	b := skill.NewBundle(failing{broken}, "pdf", nil)
	_, err := skillcheck.ScanBundle(t.Context(), b, "shown")
	if e, ok := errors.AsType[*skillcheck.ScanError](err); !ok || !e.Opened || e.Path != "shown" || !errors.Is(err, broken) {
		t.Errorf("broken files: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDone)
	b = skill.NewBundle(os.DirFS(filepath.Join(tree(t), "pdf")), "pdf", nil)
	if _, err := skillcheck.ScanBundle(ctx, b, "shown"); err != errDone {
		t.Errorf("cancelled: %v", err)
	}
	if got := skillcheck.CountFindings(&scan.Report{}); len(got) != 4 || !strings.Contains(scan.High.String(), "high") {
		t.Errorf("counts %v", got)
	}
}

var errDone = errors.New("done")

// failing is a file system of which nothing can be read.
type failing struct{ err error }

func (f failing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
}
