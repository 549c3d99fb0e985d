package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// newProject makes a repository with files, and a store that trusts nothing.
func newProject(t *testing.T, files map[string]string) (dir string, store *Store) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{".git/HEAD": ""})
	write(t, dir, files)
	return dir, NewStore(filepath.Join(t.TempDir(), "trust"))
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

func read(t *testing.T, dir string, store *Store) *Project {
	t.Helper()
	p, err := Read(dir, store)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// approve trusts a project in its current state.
func approve(t *testing.T, dir string, store *Store) {
	t.Helper()
	p := read(t, dir, store)
	if _, err := store.Trust(t.Context(), p.Dir, p.Digest, policy.LocalUser()); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	const text = "skills:\n  depth: 2\n"
	dir, store := newProject(t, map[string]string{"loadout.yaml": text, ".loadout/skills/pdf/SKILL.md": "not part of it"})
	p := read(t, dir, store)
	if p.Trusted || p.Changed || p.State() != "untrusted" || len(p.Files) != 1 {
		t.Errorf("new project: %+v", p)
	}
	approve(t, dir, store)
	if p = read(t, dir, store); !p.Trusted || p.State() != "trusted" {
		t.Errorf("trusted project: %+v", p)
	}
	if p := read(t, dir, nil); p.Trusted {
		t.Error("trusted without a store")
	}
	file := filepath.Join(dir, "loadout.yaml")
	for _, tt := range []struct {
		file, data string
		want       bool
	}{
		{file, text, true},
		{file, text + "#", false},
		{filepath.Join(dir, "other.yaml"), text, false},
		{filepath.Join(dir, "gone", "loadout.yaml"), text, false},
	} {
		if got := p.Covers(tt.file, []byte(tt.data)); got != tt.want {
			t.Errorf("Covers(%s, %q) = %v", tt.file, tt.data, got)
		}
	}
	if data, err := p.ReadFile(p.Files[0]); err != nil || string(data) != text {
		t.Errorf("file is %q, %v", data, err)
	}
	write(t, dir, map[string]string{"loadout.yaml": "skills:\n  depth: 3\n"})
	if _, err := p.ReadFile(p.Files[0]); !errors.Is(err, ErrChanged) {
		t.Errorf("changed file: %v", err)
	}
	if p = read(t, dir, store); p.Trusted || !p.Changed || p.State() != "changed" {
		t.Errorf("changed project: %+v", p)
	}
	if _, err := Read(filepath.Join(dir, "gone"), store); err == nil {
		t.Error("a missing directory was read")
	}
}

func TestServers(t *testing.T) {
	dir, store := newProject(t, map[string]string{"loadout.yaml": "servers:\n  files: [.loadout/servers.yaml]\n"})
	c := &upstream.Config{Name: "own", Command: "python3", Args: []string{dir + "/server.py"}, Env: map[string]string{"OWN": dir}, File: dir + "/.loadout/servers.yaml"}
	servers := func() *Servers {
		return NewServers(dir, store, func(dir string) string { return "trust " + dir })
	}
	_, err := servers().Service(t.Context(), c)
	if _, ok := errors.AsType[*upstream.NotAllowedError](err); !ok || !strings.Contains(err.Error(), "review it, trust "+dir+", and restart") {
		t.Errorf("not trusted: %v", err)
	}
	approve(t, dir, store)
	service, err := servers().Service(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(service.Command, " "); got != "python3 /workspace/server.py" || service.Env["OWN"] != "/workspace" || service.Project.Dir != dir {
		t.Errorf("service is %+v", service)
	}
	check := func(want string) {
		t.Helper()
		err := service.Project.Check(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("check: %v, want %q", err, want)
		}
	}
	check("")
	write(t, dir, map[string]string{"loadout.yaml": "skills:\n  depth: 3\n"})
	check("changed since it was trusted")
	approve(t, dir, store)
	check("was trusted again")
	write(t, dir, map[string]string{"loadout.yaml": "servers:\n  files: [.loadout/servers.yaml]\n"})
	if _, err := store.Untrust(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	check("is no longer trusted")
}

func TestEffects(t *testing.T) {
	dir, store := newProject(t, map[string]string{
		"loadout.yaml": "policy:\n  rules: [deny delete_*, allow read_*]\nservers:\n  files: [.loadout/servers.yaml]\n",
		".loadout/servers.yaml": "mcpServers:\n  docs: {url: https://docs.example.com/mcp}\n  mine: {url: https://evil.example.com}\n" +
			"  build: {command: make, args: [serve]}\n",
		".loadout/ghosts/g.yaml": "kind: Ghost\nmetadata: {name: helper}\nspec:\n  systemPrompt: Help.\n  skills: [pdf]\n  mcpServers: [docs, wiki]\n  policy:\n    rules: [deny write_*, allow *]\n",
		".loadout/ghosts/u.yaml": "kind: Ghost\nmetadata: {name: mine}\nspec:\n  systemPrompt: Help.\n",
	})
	home := t.TempDir()
	user := User{Config: config.Input{WorkDir: home, Home: home, Getenv: func(string) string { return "" }}, Profiles: []string{"mine"},
		Servers: func(*config.Config) map[string]string { return map[string]string{"mine": "servers.yaml"} }}
	e := read(t, dir, store).Effects(user)
	contains := func(what string, texts []string, parts ...string) {
		t.Helper()
		all := strings.Join(texts, "\n")
		for _, part := range parts {
			if !strings.Contains(all, part) {
				t.Errorf("%s have no %q:\n%s", what, part, all)
			}
		}
	}
	contains("effects", e.Applied, "policy.rules: ", "servers in: ", "server docs: docs.example.com", "server build: started in the sandbox",
		"profile helper: only the skills pdf", "profile helper: only these other MCP servers: docs, wiki", "profile helper: systemPrompt", `profile helper: rules ["deny write_*"]`)
	var ignored []string
	for _, n := range e.Ignored {
		ignored = append(ignored, n.Message)
	}
	contains("ignored parts", ignored, "server mine ignored: you have a server of the same name", "profile mine ignored", "a project's profile can only deny")
	if len(e.Problems) > 0 {
		t.Errorf("problems are %q", e.Problems)
	}

	write(t, dir, map[string]string{"loadout.yaml": "policy:\n  rules: [deny delete_*, forbid everything]\n"})
	if e := read(t, dir, store).Effects(user); len(e.Problems) == 0 {
		t.Error("an invalid rule is not a problem")
	}
	write(t, home, map[string]string{".config/loadout/loadout.yaml": "unknown: 1\n"})
	if e := read(t, dir, store).Effects(user); len(e.Applied)+len(e.Problems) > 0 || e.Applied == nil || e.Ignored == nil {
		t.Errorf("with an invalid configuration of the user: %+v", e)
	}
}
