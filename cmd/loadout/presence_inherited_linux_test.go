package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/exit"
)

// inheritedCommands are commands that give permissions.
var inheritedCommands = []string{
	"approve task --skills skills",
	"approve task --skills skills --json",
	"run task task.sh --skills skills",
	"trust project",
	"import cursor",
	"secret grant KEY --skill task --skills skills",
}

// A program that inherits the user's terminal does not answer for the user, even
// if no sign of an agent is left. The question is on the terminal.
func TestInheritedTerminalIsAsked(t *testing.T) {
	needsUser(t)
	for _, command := range inheritedCommands {
		for _, redirect := range []string{"</dev/null >out 2>&1", "2>out >&2"} {
			t.Run(command+" "+redirect, func(t *testing.T) {
				d := newCallerFixture(t)
				for answer, want := range map[string]string{"n\n": "", "\x04": "", "yes\n": "Agree only if you started it."} {
					out, code := d.inTerminal(nil, nil, "loadout-detecting "+command+" "+redirect, answer)
					text, _ := os.ReadFile(filepath.Join(d.home, "out"))
					if (code == exit.Refused) != (want == "") || !strings.Contains(out, want) {
						t.Errorf("answer %q: exit code %d:\n%s\n%s", answer, code, out, text)
					}
					if want == "" && len(d.grants()) > 0 {
						t.Errorf("answer %q: granted %+v", answer, d.grants())
					}
					if shown := strings.HasPrefix(command, "approve"); want != "" && shown && (!strings.Contains(out, "task.sh") || len(d.grants()) != 1) {
						t.Errorf("%d grants, and the terminal shows\n%s", len(d.grants()), out)
					}
					d = newCallerFixture(t)
				}
			})
		}
	}
}

// --yes does not answer for a program whose input is no terminal, unless it
// states the digest.
func TestYesNeedsTerminalOrDigest(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	for _, command := range []string{"approve task --skills skills --yes", "trust project --yes", "import cursor --yes"} {
		out, code := d.inTerminal(nil, nil, "loadout-detecting "+command+" </dev/null", "")
		if code != exit.Refused || !strings.Contains(out, "--yes needs a terminal on standard input") {
			t.Errorf("%s: exit code %d:\n%s", command, code, out)
		}
	}
	out, code := d.inTerminal(nil, nil, "loadout-detecting approve task --skills skills --yes --digest "+d.digest("task")+" </dev/null", "")
	if g := d.grants(); code != exit.OK || len(g) != 1 || g[0].Presence != digestGiven {
		t.Errorf("exit code %d, %+v:\n%s", code, g, out)
	}
	if out, code := d.inTerminal(nil, nil, "loadout-detecting trust project --yes", ""); code != exit.OK {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// An approval that nobody can confirm is refused before packages are installed.
func TestRefusedApprovalInstallsNothing(t *testing.T) {
	needsUser(t)
	d := newCallerFixture(t)
	file := filepath.Join(d.home, "skills", "served", "SKILL.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := skillText("served", "Has a server. Use for tests.", "mcpServers: {x: {command: npx, args: [-y, loadout-does-not-exist@1.0.0]}}\n", "Call its tools.")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, code := d.inTerminal(nil, nil, "loadout-detecting approve served --skills skills --yes </dev/null", "")
	if code != exit.Refused || !strings.Contains(out, "--yes needs a terminal on standard input") || strings.Contains(out, "install") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
