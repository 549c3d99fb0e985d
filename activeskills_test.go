package loadout_test

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/packages/packagestest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/session"
)

// withPackages returns a shop with a skill that names the package greeting in
// SKILL.md. Its registry has that package and another, farewell. The first also has a
// module that would run in all Python code.
func withPackages(t *testing.T, commands ...string) *shop {
	t.Helper()
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	index := packagestest.NewIndex(t)
	index.Add("greeting", "1.2", map[string]string{"greeting/__init__.py": "text = 'hello'\n", "sitecustomize.py": "print('ran')\n"})
	index.Add("farewell", "1.0", map[string]string{"farewell/__init__.py": "text = 'bye'\n"})
	dir := filepath.Join(stagetest.OpenDir(t), "packages")
	return newShop(t, files{
		"greet/SKILL.md": "---\nname: greet\ndescription: Greets.\nrequirements: [\"greeting>=1\"]\n---\nGreet.\n",
		"greet/main.py":  "import greeting\nprint(greeting.text)\n", "greet/names.txt": "ann\n",
	}, func(s *shop, _ *loadout.Options) {
		s.scripts.Getenv = os.Getenv
		s.scripts.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		s.scripts.Packages = &loadout.Packages{Dir: dir, PythonIndex: index.URL, Commands: commands}
	})
}

// commandOf runs Python code while the skills of a session are active.
func (s *shop) commandOf(t *testing.T, active []session.ActiveSkill, code string) *loadout.RunResult {
	t.Helper()
	res, err := s.Command(t.Context(), loadout.Command{Args: []string{"python3", "-c", code}, Skills: active, Principal: robot})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRequirementsInSkillAreInstalled(t *testing.T) {
	s := withPackages(t)
	s.approve(t, "greet")
	if got := s.says(t, loadout.Run{Skill: "greet", Script: "main.py"}); got != "hello\n" {
		t.Errorf("it prints %q", got)
	}
}

// The agent's own code sees an active skill and, once it is approved, its packages.
func TestCommandImportsPackagesOfActiveSkill(t *testing.T) {
	s := withPackages(t)
	conversation, err := s.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conversation.Close()
	if _, err := conversation.Load(t.Context(), "greet", nil); err != nil {
		t.Fatal(err)
	}
	const code = "import greeting; print(greeting.text, open('/needs/greet/names.txt').read())"
	res := s.commandOf(t, conversation.Active(), code)
	if notes := strings.Join(res.Notes, "\n"); res.ExitCode == 0 || !strings.Contains(res.Stderr, "No module named 'greeting'") || !strings.Contains(notes, "skill greet is not approved") {
		t.Errorf("before the approval: %s%s, notes %s", res.Stdout, res.Stderr, notes)
	}
	s.approve(t, "greet")
	res = s.commandOf(t, conversation.Active(), code)
	if res.Stdout != "hello ann\n\n" || len(res.Notes) > 0 {
		t.Errorf("after the approval: %s%s, notes %q", res.Stdout, res.Stderr, res.Notes)
	}
	if res = s.commandOf(t, nil, code); res.ExitCode == 0 {
		t.Errorf("without the skill: %s", res.Stdout)
	}
}

func TestCommandImportsConfiguredPackages(t *testing.T) {
	s := withPackages(t, "farewell==1.0")
	if res := s.commandOf(t, nil, "import farewell; print(farewell.text)"); res.Stdout != "bye\n" {
		t.Errorf("%s%s, notes %q", res.Stdout, res.Stderr, res.Notes)
	}
	res := withPackages(t, "missing").commandOf(t, nil, "print(1)")
	if notes := strings.Join(res.Notes, "\n"); res.Stdout != "1\n" || !strings.Contains(notes, "packages not installed: ") {
		t.Errorf("without the package: %s%s, notes %q", res.Stdout, res.Stderr, notes)
	}
}
