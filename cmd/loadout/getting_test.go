package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// getter is a user with a home directory who types commands.
type getter struct {
	*testing.T
	home, tmp string
	dir       string // where commands are typed, "" for the home directory
	env       []string
}

func newGetter(t *testing.T, env ...string) *getter {
	t.Helper()
	p := &getter{T: t, home: filepath.Join(t.TempDir(), "home"), tmp: t.TempDir()}
	if err := os.Mkdir(p.home, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append([]string{"HOME=" + p.home, "TMPDIR=" + p.tmp, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}, env...)
	return p
}

// printed is the output of a command.
type printed struct{ stdout, stderr string }

func (s printed) all() string { return s.stdout + s.stderr }

// types runs a command away from a terminal. It has to end with the code, and to leave
// nothing behind among temporary files.
func (p *getter) types(code int, args ...string) printed {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "loadout", args...)
	cmd.Dir, cmd.Env = cmp.Or(p.dir, p.home), p.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && !isType[*exec.ExitError](err) {
		p.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.Fatalf("loadout %s ends with %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
		p.Errorf("loadout %s leaves %v, %v", strings.Join(args, " "), left, err)
	}
	return printed{out.String(), errs.String()}
}

// ends runs a command and says how it ends.
func (p *getter) ends(args ...string) int {
	cmd := exec.CommandContext(p.Context(), "loadout", args...)
	cmd.Dir, cmd.Env = cmp.Or(p.dir, p.home), p.env
	_ = cmd.Run() // the code says it
	return cmd.ProcessState.ExitCode()
}

// reads runs a command with --json and decodes its output.
func (p *getter) reads(v any, code int, args ...string) {
	p.Helper()
	out := p.types(code, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out.stdout), v); err != nil {
		p.Fatalf("loadout %s prints no JSON: %v\n%s", strings.Join(args, " "), err, out.all())
	}
}

// has checks that a text has all of some parts.
func (p *getter) has(text string, parts ...string) {
	p.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

// installed returns the path of a file below the user's skills.
func (p *getter) installed(path string) string {
	return filepath.Join(p.home, ".loadout", "skills", filepath.FromSlash(path))
}

// file returns the content of an installed file, or "".
func (p *getter) file(path string) string {
	p.Helper()
	b, err := os.ReadFile(p.installed(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	return string(b)
}

// writes puts a file below the home directory.
func (p *getter) writes(path, text string) string {
	p.Helper()
	path = filepath.Join(p.home, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

// tree returns the contents of the files below a directory by path, or nothing if it
// does not exist.
func (p *getter) tree(dir string) map[string]string {
	p.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	return out
}

// skills returns the tree of the user's skills without lock files.
func (p *getter) skills() map[string]string {
	out := p.tree(p.installed("."))
	for path := range out {
		if strings.HasPrefix(path, ".") {
			delete(out, path)
		}
	}
	return out
}

// states returns the states that update reports, by skill.
func (p *getter) states(code int, args ...string) map[string]checkedSkill {
	p.Helper()
	var out updateOutput
	p.reads(&out, code, append([]string{"update"}, args...)...)
	states := map[string]checkedSkill{}
	for _, s := range out.Skills {
		states[s.Name] = s
	}
	return states
}

// plainSkill is a SKILL.md.
func plainSkill(name, body string) string {
	return "---\nname: " + name + "\ndescription: Does what " + name + " does.\n---\n" + body + "\n"
}

// regexpFind returns the match of an expression in a text.
func regexpFind(t *testing.T, expression, text string) string {
	t.Helper()
	m := regexp.MustCompile(expression).FindString(text)
	if m == "" {
		t.Fatalf("no %s in\n%s", expression, text)
	}
	return m
}

func replaceOne(t *testing.T, text, old, by string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is not once in\n%s", old, text)
	}
	return strings.Replace(text, old, by, 1)
}
