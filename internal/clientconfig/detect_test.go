package clientconfig_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

// A directory in which another program installed skills does not show that a
// client is installed.
func TestSkillsAreNoClient(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".config/opencode", ".config/goose", ".config/crush", ".config/zed", ".codeium/windsurf",
		".gemini/antigravity", ".gemini/antigravity-cli", ".kiro", ".cline", ".cursor", ".codex", ".copilot", ".junie"} {
		skill := filepath.Join(home, dir, "skills", "x")
		if err := os.MkdirAll(skill, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(skill, "SKILL.md"), []byte("x"))
	}
	for _, c := range clientconfig.All() {
		if path, ok := c.Installed(clientconfig.Environment{OS: "linux", Home: home, Dir: home}); ok {
			t.Errorf("%s: found %s", c.Name, path)
		}
	}
}

// Connecting and undoing leaves nothing, so the client is not found afterwards.
func TestUndoRemovesDirectories(t *testing.T) {
	for _, c := range clientconfig.All() {
		home := t.TempDir()
		place := clientconfig.Environment{OS: "linux", Home: home, Dir: home}
		for _, scope := range c.Scopes {
			target := clientconfig.Target{Client: c, Scope: scope, Environment: place}
			connect(t, target, plainEntry)
			if undo(t, target).Action != clientconfig.Delete {
				t.Errorf("%s, %s: not deleted", c.Name, scope)
			}
		}
		if path, ok := c.Installed(place); ok {
			t.Errorf("%s: found %s", c.Name, path)
		}
		if left, _ := os.ReadDir(home); len(left) > 0 {
			t.Errorf("%s: left %v", c.Name, left)
		}
	}

	// A directory that someone else made stays.
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o755); err != nil {
		t.Fatal(err)
	}
	target := clientconfig.Target{Client: lookup(t, "cursor"), Environment: clientconfig.Environment{OS: "linux", Home: home}}
	connect(t, target, plainEntry)
	undo(t, target)
	if _, err := os.Stat(filepath.Join(home, ".cursor")); err != nil {
		t.Error(err)
	}
}
