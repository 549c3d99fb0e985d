package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/trust"
	"github.com/loadout-dev/loadout/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var robot = policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}

// digestOf returns a digest whose hexadecimal digits repeat s.
func digestOf(s string) policy.Digest { return policy.Digest("sha256:" + strings.Repeat(s, 64)) }

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// project makes a directory with files, a path and a text each.
func project(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		put(t, dir, files[i], files[i+1])
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	try(t, os.MkdirAll(filepath.Dir(p), 0o755))
	try(t, os.WriteFile(p, []byte(text), 0o644))
}

func digest(t *testing.T, dir string) (policy.Digest, []trust.File) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	try(t, err)
	defer root.Close()
	d, files, err := trust.ConfigDigest(root)
	try(t, err)
	return d, files
}

func TestProjectDigestCoversConfiguration(t *testing.T) {
	dir := project(t, "loadout.yaml", "a", ".mcp.json", "{}", ".loadout/ghosts/g.yaml", "g", ".loadout/skills/s/SKILL.md", "s", "main.go", "m")
	first, files := digest(t, dir)
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	if want := []string{".loadout/ghosts/g.yaml", ".mcp.json", "loadout.yaml"}; !slices.Equal(names, want) {
		t.Errorf("it is of %q, want %q", names, want)
	}
	if !trust.ContainsFile(files, "loadout.yaml", []byte("a")) || trust.ContainsFile(files, "loadout.yaml", []byte("b")) || trust.ContainsFile(files, "main.go", []byte("m")) {
		t.Error("Covers is wrong")
	}
	put(t, dir, "main.go", "n")
	put(t, dir, ".loadout/skills/s/SKILL.md", "t")
	if d, _ := digest(t, dir); d != first {
		t.Error("code and skills are approved elsewhere")
	}
	seen := map[policy.Digest]string{first: "at first"}
	for _, change := range []struct{ name, text string }{
		{"loadout.yaml", "b"}, {".mcp.json", "{} "}, {".loadout/ghosts/g.yaml", "h"}, {".loadout/ghosts/new", ""}, {".loadout/servers.json", "{}"},
	} {
		put(t, dir, change.name, change.text)
		d, _ := digest(t, dir)
		if seen[d] != "" {
			t.Errorf("after %s it is as %s", change.name, seen[d])
		}
		seen[d] = change.name
	}
	if d, files := digest(t, t.TempDir()); len(files) != 0 || d == first {
		t.Errorf("of nothing: %v %v", d, files)
	}
}

func TestProjectDigestRefusesUncoveredFiles(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		make       func(dir string) error
	}{
		{"a link", "not a regular file: .mcp.json", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, ".mcp.json")) }},
		{"a linked directory", "not a regular file: .loadout", func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, ".loadout")) }},
		{"many files", "too many files (limit 1000)", func(dir string) error {
			for i := range 1100 {
				put(t, dir, ".loadout/f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+string(rune(0x4e00+i)), "")
			}
			return nil
		}},
		{"large files", "limit 16777216 bytes", func(dir string) error {
			put(t, dir, ".loadout/a", strings.Repeat("a", 9<<20))
			put(t, dir, ".loadout/b", strings.Repeat("a", 9<<20))
			return nil
		}},
		{"many levels", "too many directory levels (limit 16)", func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".loadout", strings.Repeat("a/", 40)), 0o755)
		}},
		{"a name that is no text", "is not valid UTF-8", func(dir string) error { put(t, dir, ".loadout/a\xff", ""); return nil }},
	} {
		dir := t.TempDir()
		if err := tt.make(dir); err != nil {
			t.Skip(err)
		}
		root, err := os.OpenRoot(dir)
		try(t, err)
		if d, _, err := trust.ConfigDigest(root); err == nil || d != "" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v %v", tt.name, d, err)
		}
		root.Close()
	}
}

func TestProjectDigestCoversConfigurationAtTheLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(dir string)
	}{
		{"1000 files", func(dir string) {
			for i := range 998 { // the directories .loadout and f count, too
				put(t, dir, ".loadout/f/"+strconv.Itoa(i), "")
			}
		}},
		{"16 MiB", func(dir string) {
			put(t, dir, ".loadout/a", strings.Repeat("a", 10<<20))
			put(t, dir, ".loadout/b", strings.Repeat("a", 6<<20))
		}},
		{"16 levels", func(dir string) { put(t, dir, ".loadout/"+strings.Repeat("a/", 15)+"b", "") }},
	} {
		dir := t.TempDir()
		tt.make(dir)
		if d, files := digest(t, dir); d == "" || len(files) == 0 {
			t.Errorf("%s: got %q for %d files", tt.name, d, len(files))
		}
	}
}

// isTrusted reports whether dir is trusted with this digest.
func isTrusted(s *trust.Store, dir string, digest policy.Digest) (bool, error) {
	r, err := s.Find(dir)
	if errors.Is(err, trust.ErrNotTrusted) {
		return false, nil
	}
	return err == nil && r.Digest == digest, err
}

func TestTrust(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state", "trust")
	s := trust.NewStore(state)
	dir, other := t.TempDir(), t.TempDir()
	a, b := digestOf("a"), digestOf("b")
	is := func(dir string, d policy.Digest, want bool) {
		t.Helper()
		if got, err := isTrusted(trust.NewStore(state), dir, d); got != want || err != nil {
			t.Errorf("it is %v %v, want %v", got, err, want)
		}
	}
	is(dir, a, false)
	if _, err := s.Untrust(t.Context(), dir); !errors.Is(err, trust.ErrNotTrusted) {
		t.Error(err)
	}
	kept, err := s.Trust(t.Context(), dir, a, policy.LocalUser())
	try(t, err)
	is(dir, a, true)
	is(dir+string(filepath.Separator), a, true)
	is(dir, b, false)
	is(other, a, false)
	link := filepath.Join(t.TempDir(), "link")
	if os.Symlink(dir, link) == nil {
		is(link, a, true)
	}
	if list, problems, err := s.List(); err != nil || len(problems) > 0 || len(list) != 1 || list[0] != kept {
		t.Errorf("%+v %v %v", list, problems, err)
	}
	_, err = s.Trust(t.Context(), dir, b, policy.LocalUser())
	try(t, err)
	is(dir, a, false)
	is(dir, b, true)
	try(t, os.Remove(dir))
	gone, err := s.Untrust(t.Context(), kept.Dir)
	if err != nil || gone.Digest != b {
		t.Errorf("%+v %v", gone, err)
	}
	if list, _, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	for _, bad := range []struct {
		digest policy.Digest
		by     policy.Principal
	}{{"", policy.LocalUser()}, {a, robot}, {a, policy.Principal{}}} {
		if _, err := s.Trust(t.Context(), other, bad.digest, bad.by); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if _, err := s.Trust(t.Context(), filepath.Join(other, "none"), a, policy.LocalUser()); err == nil {
		t.Error("a directory that is missing is trusted")
	}
}

func TestTrustFailsClosed(t *testing.T) {
	for name, spoil := range map[string]func(text string) string{
		"empty":           func(string) string { return "" },
		"half":            func(s string) string { return s[:len(s)/2] },
		"another digest":  func(s string) string { return strings.Replace(s, `"digest"`, `"Digest"`, 1) },
		"an unknown key":  func(s string) string { return strings.Replace(s, "{", `{"only": "today",`, 1) },
		"a newer version": func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"a program":       func(s string) string { return strings.Replace(s, `"person"`, `"agent"`, 1) },
		"endless":         func(s string) string { return s + strings.Repeat(" ", 1<<20) },
	} {
		state, dir := filepath.Join(t.TempDir(), "trust"), t.TempDir()
		s := trust.NewStore(state)
		_, err := s.Trust(t.Context(), dir, digestOf("a"), policy.LocalUser())
		try(t, err)
		files, _ := filepath.Glob(filepath.Join(state, "*.json"))
		if len(files) != 1 {
			t.Fatal(files)
		}
		text, err := os.ReadFile(files[0])
		try(t, err)
		try(t, os.WriteFile(files[0], []byte(spoil(string(text))), 0o600))
		if ok, err := isTrusted(s, dir, digestOf("a")); ok || err == nil {
			t.Errorf("%s: it is trusted, %v", name, err)
		}
		if list, problems, err := s.List(); len(list) > 0 || len(problems) != 1 || err != nil {
			t.Errorf("%s: %v %v %v", name, list, problems, err)
		}
		if _, err := s.Untrust(t.Context(), dir); err != nil {
			t.Errorf("%s: it cannot be removed: %v", name, err)
		}
	}
	if os.PathSeparator == '\\' {
		return
	}
	state, dir := filepath.Join(t.TempDir(), "trust"), t.TempDir()
	s := trust.NewStore(state)
	_, err := s.Trust(t.Context(), dir, digestOf("a"), policy.LocalUser())
	try(t, err)
	files, _ := filepath.Glob(filepath.Join(state, "*.json"))
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v %v", info.Mode(), err)
	}
	try(t, os.Chmod(files[0], 0o666))
	if ok, err := isTrusted(s, dir, digestOf("a")); ok || err == nil {
		t.Errorf("a file that anybody writes: %v %v", ok, err)
	}
	try(t, os.Chmod(files[0], 0o600))
	try(t, os.Chmod(state, 0o777))
	if ok, err := isTrusted(s, dir, digestOf("a")); ok || err == nil {
		t.Errorf("a directory that anybody writes: %v %v", ok, err)
	}
}
