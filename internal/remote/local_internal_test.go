package remote

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

// onDisk creates files in a new directory.
func onDisk(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestB11LocalLocations(t *testing.T) {
	root := onDisk(t, map[string]string{"skills/pdf/SKILL.md": doc("pdf"), "skills/pdf/a": "x", "skills/docx/SKILL.md": doc("docx"), ".git/config": "x",
		"plain/SKILL.md": "---\ndescription: It has no name.\n---\n", "plain/forms/SKILL.md": doc("forms")})
	write := func(name string, src []byte) {
		if err := os.WriteFile(filepath.Join(root, name), src, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("pdf.skill", zipOf(t, packed{name: "pdf/SKILL.md", content: doc("pdf")}, packed{name: "pdf/a", content: "x"}))
	write("all.tar.gz", gzipped(tarOf(t, packed{name: "pdf/SKILL.md", content: doc("pdf")}, packed{name: "docx/SKILL.md", content: doc("docx")})))
	for p, want := range map[string][]string{
		"plain":               {"forms forms", "plain ."},
		"":                    {"docx skills/docx", "forms plain/forms", "pdf skills/pdf", "plain plain"},
		"skills":              {"docx docx", "pdf pdf"},
		"skills/pdf":          {"pdf ."},
		"skills/pdf/SKILL.md": {"pdf ."},
		"pdf.skill":           {"pdf ."},
		"all.tar.gz":          {"docx docx", "pdf pdf"},
	} {
		c := New(&Options{TempDir: t.TempDir()})
		o, err := c.Open(t.Context(), Location{Kind: Local, URL: filepath.Join(root, filepath.FromSlash(p))})
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		var got []string
		for _, s := range o.Skills {
			got = append(got, s.Name+" "+s.Dir)
			b, err := o.OpenSkill(t.Context(), s)
			if err != nil {
				t.Errorf("%s: %v", p, err)
				continue
			}
			if _, ds, err := skill.ReadManifest(b.FS); err != nil || len(ds) > 0 {
				t.Errorf("%s: %v, %v", p, ds, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(root, "pdf.skill")); err != nil {
			t.Error("the archive of the user was removed")
		}
	}
}

func TestInvalidLocalLocations(t *testing.T) {
	root := onDisk(t, map[string]string{"text.txt": "hello"})
	c := New(nil)
	if _, err := c.Open(t.Context(), Location{Kind: Local, URL: filepath.Join(root, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := c.Open(t.Context(), Location{Kind: Local, URL: filepath.Join(root, "text.txt")}); !isA[*skill.RefusedError](err) {
		t.Errorf("%v", err)
	}
	c = New(&Options{Limits: Limits{Entries: 1}})
	many := onDisk(t, map[string]string{"a": "", "b": ""})
	if _, err := c.Open(t.Context(), Location{Kind: Local, URL: many}); err == nil || !strings.Contains(err.Error(), "limit 1") {
		t.Errorf("%v", err)
	}
}

func TestSymlinksInDirectoryAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making a link takes a right there")
	}
	root := onDisk(t, map[string]string{"out/secret": "x", "skills/good/SKILL.md": doc("good"), "skills/bad/SKILL.md": doc("bad"), "skills/bad/a": "x"})
	in := func(p string) string { return filepath.Join(root, filepath.FromSlash(p)) }
	if err := errors.Join(os.Symlink(in("out/secret"), in("skills/bad/l")), os.Symlink("a", in("skills/bad/m")), os.Symlink(in("out"), in("skills/bad/d")),
		os.Symlink(in("skills/good"), in("skills/linked")), os.Symlink("skills", in("link"))); err != nil {
		t.Fatal(err)
	}
	o, err := New(nil).Open(t.Context(), Location{Kind: Local, URL: in("link")})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if len(o.Skills) != 2 {
		t.Errorf("%v", o.Skills)
	}
	_, err = o.OpenSkill(t.Context(), o.Skills[0])
	if refused, ok := errors.AsType[*skill.RefusedError](err); !ok || len(refused.Refusals) != 3 || !slices.Equal(codes(t, err), []string{"link"}) {
		t.Errorf("%v", err)
	}
	if b, err := o.OpenSkill(t.Context(), o.Skills[1]); err != nil {
		t.Error(err)
	} else if err := os.Remove(in("skills/good/SKILL.md")); err != nil {
		t.Error(err)
	} else if err := os.Symlink(in("out/secret"), in("skills/good/SKILL.md")); err != nil {
		t.Error(err)
	} else if data, err := fs.ReadFile(b.FS, "SKILL.md"); err == nil {
		t.Errorf("a file that became a link was read: %q", data)
	}
}

// A file that grows or shrinks while it is read is an error, not another content.
func TestFileThatChangesWhileItIsRead(t *testing.T) {
	root := onDisk(t, map[string]string{"SKILL.md": doc("pdf"), "a": "12345"})
	o, err := New(nil).Open(t.Context(), Location{Kind: Local, URL: root})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	b, err := o.OpenSkill(t.Context(), o.Skills[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"1234", "123456"} {
		if err := os.WriteFile(filepath.Join(root, "a"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if data, err := fs.ReadFile(b.FS, "a"); err == nil {
			t.Errorf("read %q", data)
		}
	}
}
