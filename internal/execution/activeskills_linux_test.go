package execution_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/landlock"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// active returns a skill as a conversation that loaded it now.
func (m *machine) active(t *testing.T, name string) execution.ActiveSkill {
	t.Helper()
	e, err := m.catalog.Snapshot().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := m.catalog.Digest(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return execution.ActiveSkill{Name: e.Name, Key: e.Key(), Digest: digest}
}

// command runs a shell command while skills are active, and returns what it
// printed and the notes.
func (m *machine) command(t *testing.T, text string, active ...execution.ActiveSkill) (out, notes string) {
	t.Helper()
	res, err := m.RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-c", text}, Skills: active})
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Stdout) + string(res.Stderr), strings.Join(res.Notes, "\n")
}

func TestCommandReadsActiveSkillsOnly(t *testing.T) {
	m := newMachine(t)
	const list = "cd /needs && find . -type f | sort"
	if out, _ := m.command(t, list); strings.Contains(out, "SKILL.md") {
		t.Errorf("without active skills it sees %q", out)
	}
	out, notes := m.command(t, list, m.active(t, "tides"))
	if out != "./tides/SKILL.md\n./tides/notes.txt\n" {
		t.Errorf("of a skill that is not approved it sees %q", out)
	}
	if !strings.Contains(notes, "skill tides is not approved, so only its documents and data in plain text are in /needs/tides") {
		t.Errorf("notes %q", notes)
	}
	if _, notes = m.command(t, "true", m.active(t, "tides")); notes != "" {
		t.Errorf("another command gets the notes %q", notes)
	}
	if _, notes = m.command(t, `echo "ModuleNotFoundError: No module named 'tide'"`, m.active(t, "tides")); !strings.Contains(notes, "skill tides is not approved") {
		t.Errorf("a command whose output has the error of Python gets the notes %q", notes)
	}
	if got := m.decisions(); got != "" {
		t.Errorf("recorded %s", got)
	}
	m.approve(t)
	out, notes = m.command(t, list, m.active(t, "tides"))
	if out != "./clock/SKILL.md\n./clock/time.txt\n./tides/SKILL.md\n./tides/do.sh\n./tides/notes.txt\n" || notes != "" {
		t.Errorf("of an approved skill it sees %q, notes %q", out, notes)
	}
	if got := m.decisions(); !strings.HasPrefix(got, "run allow ") || strings.Contains(got, ";") {
		t.Errorf("recorded %s", got)
	}
}

// A command can run the scripts of an approved skill, but gets none of its secrets
// and cannot change its files.
func TestCommandHasNoSecretsOfSkills(t *testing.T) {
	m := newMachine(t)
	m.approve(t)
	out, _ := m.command(t, `sh /needs/tides/do.sh "echo ran"; ls /run/secrets; echo "secrets: $LOADOUT_SECRETS"; echo x > /needs/tides/notes.txt; cat /needs/tides/notes.txt`, m.active(t, "tides"))
	if !strings.HasPrefix(out, "ran\n") || strings.Contains(out, "KEY") || !strings.Contains(out, "secrets: \n") || !strings.Contains(out, "\nnotes\n") {
		t.Errorf("it printed %q", out)
	}
}

// The bytes are those that were loaded or approved.
func TestCommandSeesLoadedOrApprovedVersion(t *testing.T) {
	m := newMachine(t)
	before := m.active(t, "clock")
	const show = "cat /needs/clock/time.txt"
	if out, _ := m.command(t, show, before); out != "noon\n" {
		t.Errorf("it sees %q", out)
	}
	m.files["clock/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: clock\ndescription: Tells the time.\n---\nAnew.\n")}
	if err := m.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, notes := m.command(t, show, before)
	if strings.Contains(out, "noon") || !strings.Contains(notes, "skill clock is not in /needs: it changed after it was loaded; load it again") {
		t.Errorf("after a change it sees %q, notes %q", out, notes)
	}
	if out, _ := m.command(t, show, m.active(t, "clock")); out != "noon\n" {
		t.Errorf("after another load it sees %q", out)
	}
	m.approve(t)
	if out, _ := m.command(t, show, before, m.active(t, "tides")); out != "noon\n" {
		t.Errorf("of a dependency of an approved skill it sees %q", out)
	}
}

// If the files of a skill change after the approval was checked, the command runs
// without that skill.
func TestCommandRunsWithoutSkillThatChanges(t *testing.T) {
	m := newMachine(t)
	m.put(t, "other", "other")
	m.approve(t)
	m.audited = func() { m.files["tides/notes.txt"] = &fstest.MapFile{Data: []byte("later\n")} }
	out, notes := m.command(t, "ls /needs; cat /needs/clock/time.txt", m.active(t, "tides"), m.active(t, "other"))
	if out != "clock\nother\nnoon\n" || notes != "skill tides is not in /needs: its file notes.txt changed; run the command again" {
		t.Errorf("it printed %q, notes %q", out, notes)
	}
}

// A skill that is not approved gives a command only what read_skill_file would give the
// model as text.
func TestCommandSeesOnlyTextOfUnapprovedSkill(t *testing.T) {
	for scope, want := range map[catalog.Scope]string{catalog.Public: "LICENSE.txt\nNOTICE\nSKILL.md\na.yaml\ndata.csv\n", catalog.User: "LICENSE.txt\nNOTICE\nSKILL.md\na.yaml\ndata.csv\nhidden.md\n"} {
		m := newMachine(t)
		files := fstest.MapFS{"pdf/SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Reads.\n---\n")}, "pdf/data.csv": {Data: []byte("a,b\n")},
			"pdf/hidden.md": {Data: []byte("Read.\U000e0041\U000e0042\n")}, "pdf/tool": {Data: []byte("#!/bin/sh\n")}, "pdf/tool.pyz": {Data: []byte("PK\x03\x04\x00")}}
		for _, name := range []string{"LICENSE.txt", "NOTICE", "a.yaml", "Makefile", "analysis.R", "build.mts", "lib.pm", "run.zsh", "setup.lua", "win.pyw", "x.awk", "conftest.unknown"} {
			files["pdf/"+name] = &fstest.MapFile{Data: []byte("true\n")}
		}
		var err error
		if m.catalog, err = catalog.New([]catalog.Source{catalog.NewFS("others", scope, files)}, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.catalog.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.Runner = execution.New(execution.Options{Catalog: m.catalog, Sandbox: newBackend(t), Grants: m.grants, Principal: robot,
			Services: func(*catalog.Entry, *skill.Skill) (execution.ServiceNeeds, error) {
				return execution.ServiceNeeds{}, nil
			}})
		out, notes := m.command(t, "LC_ALL=C ls /needs/pdf", m.active(t, "pdf"))
		if out != want || !strings.Contains(notes, "only its documents and data in plain text are in /needs/pdf") {
			t.Errorf("%s: it sees %q, notes %q", scope, out, notes)
		}
	}
}

// In a sandbox without a view of its own, the paths are different. The note says where
// the files are.
func TestCommandFindsSkillsWithoutOwnView(t *testing.T) {
	m := newMachine(t)
	b := landlock.New(&landlock.Options{Cache: stagetest.OpenDir(t)})
	m.Runner = execution.New(execution.Options{Catalog: m.catalog, Sandbox: b, Grants: m.grants, Principal: robot,
		Services: func(*catalog.Entry, *skill.Skill) (execution.ServiceNeeds, error) {
			return execution.ServiceNeeds{}, nil
		}})
	if _, err := m.RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/true"}}); err != nil {
		t.Skip(err)
	}
	const note = "$LOADOUT_SKILL_NAME is the path of a skill"
	if _, notes := m.command(t, "cat /needs/tides/notes.txt", m.active(t, "tides")); !strings.Contains(notes, note) {
		t.Errorf("notes %q", notes)
	}
	if out, notes := m.command(t, "cat $LOADOUT_SKILL_TIDES/notes.txt", m.active(t, "tides")); out != "notes\n" || notes != "" {
		t.Errorf("it sees %q, notes %q", out, notes)
	}
}

// put stores a skill without scripts.
func (m *machine) put(t *testing.T, dir, name string) {
	t.Helper()
	m.files[dir+"/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: Does.\n---\nIn " + dir + ".\n")}
	if err := m.catalog.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The name of a skill does not make a command fail, or show it another skill than the
// model expects.
func TestNamesOfActiveSkills(t *testing.T) {
	m := newMachine(t)
	m.put(t, "one", "pdf")
	m.put(t, "two", "pdf")
	m.put(t, "long", strings.Repeat("文", 90))
	one, two := m.active(t, "mine/one"), m.active(t, "mine/two")
	for _, order := range [][]execution.ActiveSkill{{one, two}, {two, one}} {
		first, second := order[0].Key, order[1].Key
		out, notes := m.command(t, "tail -n 1 /needs/pdf/SKILL.md", order...)
		if out != "In "+strings.TrimPrefix(first, "mine/")+".\n" || notes != "skill "+second+" is not in /needs: the files in /needs/pdf are those of skill "+first {
			t.Errorf("of %s and %s it sees %q, notes %q", first, second, out, notes)
		}
	}
	if out, notes := m.command(t, "ls /needs", m.active(t, "mine/long"), one); out != "pdf\n" || !strings.HasSuffix(notes, "its name is not a directory name") {
		t.Errorf("with a long name it sees %q, notes %q", out, notes)
	}
	m.put(t, "hidden", ".python")
	if out, notes := m.command(t, `echo /needs/*; env | grep ^LOADOUT_SKILL`, m.active(t, "mine/hidden")); out != "/needs/_python\nLOADOUT_SKILL__PYTHON=/needs/_python\n" || notes != "" {
		t.Errorf("of a name with a dot it sees %q, notes %q", out, notes)
	}
	gone := m.active(t, "clock")
	delete(m.files, "clock/SKILL.md")
	m.put(t, "other", "clock")
	other, err := m.catalog.Snapshot().Get("clock")
	if err != nil {
		t.Fatal(err)
	}
	files, err := m.catalog.CompleteManifest(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.grants.Put(t.Context(), policy.Grant{Principal: robot, By: ann, Subject: policy.Digest(files.Digest()), Name: "clock", Scope: policy.Always, Permissions: policy.Permissions{Run: true}}); err != nil {
		t.Fatal(err)
	}
	if out, notes := m.command(t, "ls /needs 2>/dev/null", gone); out != "" || !strings.Contains(notes, "no longer available") {
		t.Errorf("instead of a removed skill it sees %q, notes %q", out, notes)
	}
}

// An approval for one run is for a script that the user knows, not for a command.
func TestCommandUsesNoApprovalForOneRun(t *testing.T) {
	m := newMachine(t)
	g := m.approve(t)
	if _, err := m.grants.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	g.ID, g.Scope = "", policy.Once
	if _, err := m.grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if out, _ := m.command(t, "ls /needs/tides", m.active(t, "tides")); strings.Contains(out, "do.sh") {
		t.Errorf("it sees %q", out)
	}
	if res, err := m.Run(t.Context(), do("echo ran")); err != nil || string(res.Stdout) != "ran\n" {
		t.Errorf("the approval is used up: %v", err)
	}
}

// The command ends with the approval of a skill that it can run.
func TestRevokedApprovalKillsCommand(t *testing.T) {
	m := newMachine(t)
	g := m.approve(t)
	started := writerFunc(func() {
		if _, err := m.grants.Revoke(context.WithoutCancel(t.Context()), g.ID); err != nil && !errors.Is(err, policy.ErrNotGranted) {
			t.Error(err)
		}
	})
	res, err := m.RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-c", "echo started; exec sleep 60"}, Skills: []execution.ActiveSkill{m.active(t, "tides")},
		Streams: execution.Streams{Stdout: started}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != sandbox.Disabled {
		t.Errorf("it ended as %s", res.Reason)
	}
}

// writerFunc calls a function at each write.
type writerFunc func()

func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}
