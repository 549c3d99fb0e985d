package loadout_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/packages/packagestest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
)

// withPackages returns a shop with a skill that names the package greeting in
// SKILL.md. Its registry has that package and another, farewell. The first also has a
// module that would run in all Python code.
func withPackages(t *testing.T, commands ...string) *shop { return withSkills(t, nil, commands...) }

// withSkills returns the shop of withPackages with more files of skills.
func withSkills(t *testing.T, more files, commands ...string) *shop {
	t.Helper()
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	index := packagestest.NewIndex(t)
	index.Add("greeting", "1.2", map[string]string{"greeting/__init__.py": "text = 'hello'\n", "sitecustomize.py": "print('ran')\n"})
	index.Add("farewell", "1.0", map[string]string{"farewell/__init__.py": "text = 'bye'\n"})
	dir := filepath.Join(stagetest.OpenDir(t), "packages")
	tree := files{
		"greet/SKILL.md": "---\nname: greet\ndescription: Greets.\nrequirements: [\"greeting>=1\"]\n---\nGreet.\n",
		"greet/main.py":  "import greeting\nprint(greeting.text)\n", "greet/names.txt": "ann\n",
	}
	maps.Copy(tree, more)
	return newShop(t, tree, func(s *shop, _ *loadout.Options) {
		s.scripts.Getenv = os.Getenv
		s.scripts.PrivateNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		s.scripts.Packages = &loadout.Packages{Dir: dir, PythonIndex: index.URL, Commands: commands}
	})
}

// load approves skills and returns them as the active ones of a conversation.
func (s *shop) load(t *testing.T, names ...string) []session.ActiveSkill {
	t.Helper()
	conversation, err := s.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conversation.Close() })
	for _, name := range names {
		s.approve(t, name)
		if _, err := conversation.Load(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	return conversation.Active()
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

const bye = "import farewell; print(farewell.text)"

// A skill whose packages cannot be installed with the others leaves those.
func TestSkillDoesNotCostTheConfiguredPackages(t *testing.T) {
	const head = "---\nname: extra\ndescription: x\n---\n"
	for name, test := range map[string]struct {
		skill files
		want  string // note
	}{
		"hashes":          {files{"extra/requirements.txt": "greeting==1.2 --hash=sha256:" + strings.Repeat("0", 64) + "\n"}, "skill extra: some packages not installed: requirements.txt: requirements with hashes cannot be installed together with others"},
		"other version":   {files{"extra/requirements.txt": "farewell==9\n"}, "only the configured packages are installed"},
		"other Python":    {files{"extra/main.py": "# /// script\n# requires-python = \">=9\"\n# dependencies = [\"greeting\"]\n# ///\n"}, "packages not installed: python3 (>=9) is required to run Python code with packages but not installed; install it"},
		"invalid":         {files{"extra/requirements.txt": "./local\n"}, "packages not installed: skill extra: requirements.txt:1: "},
		"too many files":  {manyScripts("extra", 101), "skill extra: only 100 of 101 Python files are searched for packages"},
		"several sources": {files{"extra/requirements.txt": "greeting\n", "extra/tests/x.py": "", "extra/tests/requirements.txt": "missing==1 --hash=sha256:" + strings.Repeat("0", 64) + "\n"}, "skill extra: some packages not installed: tests/requirements.txt: "},
	} {
		t.Run(name, func(t *testing.T) {
			test.skill["extra/SKILL.md"] = head
			s := withSkills(t, test.skill, "farewell")
			res := s.commandOf(t, s.load(t, "extra"), bye)
			if notes := strings.Join(res.Notes, "\n"); res.Stdout != "bye\n" || !strings.Contains(notes, test.want) || strings.Contains(notes, "cannot be used") {
				t.Errorf("%s%s, notes %s", res.Stdout, res.Stderr, notes)
			}
		})
	}
}

// manyScripts returns empty Python files of a skill.
func manyScripts(skill string, n int) files {
	all := files{}
	for i := range n {
		all[fmt.Sprintf("%s/%d.py", skill, i)] = ""
	}
	return all
}

// Invalid requirements in the configuration are reported as such.
func TestInvalidConfiguredPackages(t *testing.T) {
	s := withPackages(t, "./local")
	res := s.commandOf(t, s.load(t, "greet"), "import greeting; print(greeting.text)")
	if notes := strings.Join(res.Notes, "\n"); res.Stdout != "hello\n" || !strings.HasPrefix(notes, `packages not installed: configured packages: "./local" is a URL or a path`) {
		t.Errorf("%s%s, notes %s", res.Stdout, res.Stderr, notes)
	}
}

// Python that another program starts can import packages that are installed.
func TestProgramOfCommandImportsPackages(t *testing.T) {
	s := withPackages(t, "farewell")
	indirect := func() *loadout.RunResult {
		t.Helper()
		res, err := s.Command(t.Context(), loadout.Command{Args: []string{"sh", "-c", `p=yth; exec "p${p}on3" -c "$0"`, bye}, Principal: robot})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := indirect(); res.ExitCode == 0 || !strings.Contains(strings.Join(res.Notes, "\n"), "packages not installed: only a command with the word") {
		t.Errorf("before the installation: %s, notes %q", res.Stdout, res.Notes)
	}
	if res := s.commandOf(t, nil, bye); res.Stdout != "bye\n" {
		t.Fatalf("%s, notes %q", res.Stderr, res.Notes)
	}
	if res := indirect(); res.Stdout != "bye\n" || len(res.Notes) > 0 {
		t.Errorf("%s%s, notes %q", res.Stdout, res.Stderr, res.Notes)
	}
}

// A failed installation is not attempted again by each command.
func TestFailedInstallationIsNotRepeated(t *testing.T) {
	s := withPackages(t, "missing")
	var requests atomic.Int32
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.NotFound(w, r)
	}))
	t.Cleanup(index.Close)
	s.scripts.Packages.PythonIndex = index.URL + "/simple"
	for _, code := range []string{"print(1)", "print(2)"} {
		if res := s.commandOf(t, nil, code); !strings.Contains(strings.Join(res.Notes, "\n"), "packages not installed: ") {
			t.Errorf("notes %q", res.Notes)
		}
		if n := requests.Swap(0); (n > 0) != (code == "print(1)") {
			t.Errorf("%s: %d requests", code, n)
		}
	}
}

// A command gets none of the permissions that were granted to an active skill.
func TestCommandHasNoPermissionsOfSkills(t *testing.T) {
	for _, host := range []bool{false, true} {
		b := &spy{tier: sandbox.Isolated}
		s := anyShop(t, ask("{network: [a.example], secrets: [KEY], workspace_write: true}"), func(s *shop, o *loadout.Options) {
			o.Scripts.Sandbox, o.Scripts.Bounds = b, policy.Bounds{Network: []string{"*"}, Secrets: []string{"*"}, WorkspaceWrite: true}
			o.Scripts.Secret = func(context.Context, string) (string, error) { return "value", nil }
		})
		active := s.load(t, "sh")
		s.approve(t, "sh", func(g *policy.Grant) { g.Permissions.HostNetwork = host })
		has := func() (network, secret, writes bool) {
			n := b.spec.Network
			return n.Host || len(n.Allow) > 0, len(b.spec.Secrets) > 0, slices.ContainsFunc(b.spec.Mounts, func(m sandbox.Mount) bool { return m.Path == "/workspace" && (m.Writable || m.Overlay) })
		}
		dir := t.TempDir()
		run := do("true")
		run.Workspace = dir
		if _, err := s.try(t, run); !errors.Is(err, errSpied) {
			t.Fatal(err)
		}
		if network, secret, writes := has(); !network || !secret || !writes || b.spec.Network.Host != host {
			t.Errorf("the script has not what was granted: %+v", b.spec)
		}
		if _, err := s.Command(t.Context(), loadout.Command{Args: []string{"sh", "/needs/sh/do.sh"}, Folder: dir, Skills: active, Principal: robot}); !errors.Is(err, errSpied) {
			t.Fatal(err)
		}
		if network, secret, writes := has(); network || secret || writes || len(b.spec.Trees) != 1 {
			t.Errorf("the command has permissions of the skill: %+v", b.spec)
		}
	}
}
