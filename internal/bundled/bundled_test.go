package bundled_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/bundled"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/skill"
)

// bundledSkills are the directories of the skills.
func bundledSkills(t *testing.T) []string {
	t.Helper()
	entries, err := fs.ReadDir(bundled.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			t.Errorf("%s lies beside the skills", e.Name())
			continue
		}
		out = append(out, e.Name())
	}
	if len(out) < 5 {
		t.Fatalf("only %q", out)
	}
	return out
}

// texts are the Markdown files of a skill by path.
func texts(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(bundled.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) != ".md" {
			return err
		}
		b, err := fs.ReadFile(bundled.FS(), p)
		out[strings.TrimPrefix(p, dir+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEachSkillIsValidWithoutFindings(t *testing.T) {
	for _, name := range bundledSkills(t) {
		sub, err := fs.Sub(bundled.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		s, ds, err := skill.Parse(sub, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) > 0 || !ds.Valid() || !ds.Loads() {
			t.Errorf("%s: %v", name, ds)
		}
		if n := tokencount.Estimate(s.Instructions); n > 2500 {
			t.Errorf("%s: the instructions have about %d tokens, more than 2,500", name, n)
		}
		if s.License == "" || s.Version == "" || s.DisableModelInvocation {
			t.Errorf("%s: license %q, version %q, hidden from models %v", name, s.License, s.Version, s.DisableModelInvocation)
		}
		m, ds, err := skill.ReadManifest(sub)
		if err != nil || len(ds) > 0 {
			t.Errorf("%s: files: %v, %v", name, ds, err)
		}
		if len(m) > skillfile.PortableFiles || m.Size() > skillfile.PortableBytes/16 {
			t.Errorf("%s: %d files of %d bytes", name, len(m), m.Size())
		}
	}
}

func TestCatalogListsAllSkills(t *testing.T) {
	c, err := catalog.New([]catalog.Source{catalog.NewFS("bundled", catalog.Bundled, bundled.FS())}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Snapshot().Skills() {
		got = append(got, e.Name)
	}
	if want := bundledSkills(t); !slices.Equal(got, want) || len(c.Snapshot().Problems()) > 0 {
		t.Errorf("skills %q, want %q; problems %v", got, want, c.Snapshot().Problems())
	}
}

func TestOnlySkillFilesAreEmbedded(t *testing.T) {
	err := fs.WalkDir(bundled.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); p != "." && (strings.HasPrefix(name, ".") || skillpath.IsIgnored(name) || path.Ext(name) == ".pyc") {
			t.Errorf("%s is embedded; remove it, then build again", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var material = regexp.MustCompile(`\b(?:references|scripts|assets)/[A-Za-z0-9_./-]*[A-Za-z0-9_]`)

// Every path that a text names is there, and every file is named by a text.
func TestPathsInTextsExist(t *testing.T) {
	for _, name := range bundledSkills(t) {
		named, all := map[string]bool{}, ""
		for file, text := range texts(t, name) {
			all += text
			if strings.HasPrefix(file, "assets/") {
				continue // a template names files of the future skill
			}
			for _, p := range material.FindAllString(text, -1) {
				if _, err := fs.Stat(bundled.FS(), name+"/"+p); err != nil {
					t.Errorf("%s/%s names %s: %v", name, file, p, err)
				}
				named[p] = true
			}
			for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
				p := path.Join(path.Dir(file), m[1])
				if _, err := fs.Stat(bundled.FS(), name+"/"+p); err != nil {
					t.Errorf("%s/%s links to %s: %v", name, file, m[1], err)
				}
				named[p] = true
			}
		}
		sub, err := fs.Sub(bundled.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		files, _, err := skill.List(sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			base := path.Base(f.Path)
			if f.Path == skill.FileName || named[f.Path] || strings.Contains(all, base) {
				continue
			}
			t.Errorf("%s: no text names %s", name, f.Path)
		}
	}
}

// commands returns the existing commands and subcommands.
func commands(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "cmd", "loadout", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the command's source: %v", err)
	}
	out := map[string]bool{"help": true, "completion": true}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bUse:\s+"([a-z-]+)`).FindAllStringSubmatch(string(b), -1) {
			out[m[1]] = true
		}
	}
	return out
}

// A text must not send anybody to a command or a flag that does not exist.
func TestCommandsInTextsExist(t *testing.T) {
	known := commands(t)
	source := sourceOf(t, "..", "..", "cmd", "loadout")
	for _, name := range bundledSkills(t) {
		for file, text := range texts(t, name) {
			for _, m := range regexp.MustCompile("(?m)(?:`|^|\\$ )loadout ([a-z]+)(?: ([a-z]+))?([^`\n#]*)").FindAllStringSubmatch(text, -1) {
				if !known[m[1]] {
					t.Errorf("%s/%s: no command %q", name, file, strings.TrimSpace(m[0]))
				}
				if m[1] == "config" && m[2] != "" && !known[m[2]] {
					t.Errorf("%s/%s: no command %q", name, file, strings.TrimSpace(m[0]))
				}
				for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(m[3], -1) {
					if flag[1] != "help" && !strings.Contains(source, `"`+flag[1]+`"`) {
						t.Errorf("%s/%s: no flag in %q", name, file, strings.TrimSpace(m[0]))
					}
				}
			}
		}
	}
	guide := texts(t, "loadout-guide")["references/commands.md"]
	for c := range known {
		if c != "help" && c != "completion" && !strings.Contains(guide, c) {
			t.Errorf("the guide does not name the command %s", c)
		}
	}
	for _, flag := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)").FindAllStringSubmatch(guide, -1) {
		if !strings.Contains(source, `"`+flag[1]+`"`) {
			t.Errorf("the guide names a flag --%s, which there is not", flag[1])
		}
	}
}

// sourceOf is all Go source in a directory.
func sourceOf(t *testing.T, dir ...string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(append(dir, "*.go")...))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// What the guide says of the configuration is what there is.
func TestGuideDescribesConfiguration(t *testing.T) {
	guide := texts(t, "loadout-guide")
	keys := map[string]bool{}
	c, err := config.Load(config.Input{Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		keys[v.Key] = true
	}
	for file, text := range guide {
		for i, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			f := filepath.Join(t.TempDir(), "loadout.yaml")
			if err := os.WriteFile(f, []byte(block[1]), 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(config.Input{Getenv: func(string) string { return "" }, File: f})
			if err != nil {
				t.Errorf("%s: example %d: %v", file, i+1, err)
				continue
			}
			if _, err := catalog.New(nil, &catalog.Options{Filter: catalog.Filter{Allow: c.Skills.Allow}}); err != nil {
				t.Errorf("%s: example %d: %v", file, i+1, err)
			}
		}
		for _, key := range regexp.MustCompile("`((?:skills|mcp|sandbox)\\.[a-z_]+)`").FindAllStringSubmatch(text, -1) {
			if !keys[key[1]] {
				t.Errorf("%s: no key %s", file, key[1])
			}
		}
	}
	var missing []string
	for _, dir := range []string{"skills", ".loadout/skills", ".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills", ".cursor/skills", ".github/skills"} {
		if !strings.Contains(guide["SKILL.md"], "`"+dir+"`") {
			missing = append(missing, dir)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the guide leaves out %q", missing)
	}
	for _, scope := range []catalog.Scope{catalog.Project, catalog.User, catalog.Group, catalog.Public, catalog.Bundled} {
		if !strings.Contains(guide["SKILL.md"], fmt.Sprint(scope)) {
			t.Errorf("the guide leaves out the scope %s", scope)
		}
	}
}
