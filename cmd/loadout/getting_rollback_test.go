package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// Whoever restores an old signed version at its source is refused; the user can
// accept it.
func TestUpdateRefusesDowngrade(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	one := p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One."), "run.py": "print(1)\n"})
	g.Commit(one)
	p.has(p.types(0, "add", g.URL).stdout, "signed by example.com", "version 1 of 20")
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"run.py": "print(2)\n"}))
	p.has(p.types(0, "update").stdout, "version 2 of 20")
	p.has(p.file("loadout.lock"), `"version": 2`, `"counter": 2`, `"highestCounter": 2`)

	g.Commit(one)
	out := p.types(3, "update")
	p.has(out.all(), "pdf  refused", "downgrade of pdf: the source has counter 1 of 20", "counter 2", "--downgrade")
	if strings.Contains(out.all(), "Updated") {
		t.Errorf("update says\n%s", out.all())
	}
	p.types(3, "update", "--check")
	p.types(3, "update", "--force")
	p.has(p.file("pdf/run.py"), "print(2)")
	p.types(0, "verify")
	p.types(0, "remove", "pdf")
	p.has(p.types(3, "add", g.URL).all(), "downgrade of pdf")
	p.types(0, "add", g.URL, "--downgrade")
	p.has(p.file("pdf/run.py"), "print(1)")
	p.has(p.file("loadout.lock"), `"counter": 1`, `"highestCounter": 2`)
	p.types(0, "verify")
	p.types(0, "update")
	p.has(p.types(0, "doctor").stdout, "pdf: version 1, older than version 2")
	p.has(p.types(0, "list", "--json").stdout, `"signature": "version 1, older than version 2`)
}

// The counter in SKILL.sig increases by one when the files changed.
func TestSignCounts(t *testing.T) {
	p := newGetter(t)
	p.types(0, "sign", "--new-key", "example.com", "--key", "one.key")
	p.writes("pdf/SKILL.md", plainSkill("pdf", "One."))
	sign := func(want uint64, args ...string) {
		t.Helper()
		var out signOutput
		p.reads(&out, 0, append([]string{"sign", "pdf", "--key", "one.key"}, args...)...)
		if len(out.Signed) != 1 || out.Signed[0].Counter != want {
			t.Errorf("signed as %+v, want %d", out.Signed, want)
		}
	}
	sign(1)
	sign(1) // nothing has changed
	p.writes("pdf/SKILL.md", plainSkill("pdf", "Two."))
	sign(2)
	sign(7, "--counter", "7")
	p.has(p.types(2, "sign", "pdf", "--key", "one.key", "--counter", "7").stderr, "use 8 or more")
	p.types(2, "sign", "pdf", "--key", "one.key", "--counter", "0")
	p.types(2, "sign", "pdf", "pdf", "--key", "one.key", "--counter", "9")
	p.types(0, "sign", "--new-key", "example.com", "--key", "two.key")
	p.writes("pdf/SKILL.md", plainSkill("pdf", "Three."))
	p.types(0, "sign", "pdf", "--key", "two.key")
	sign(9) // after the version of another key
}

// A publisher replaces a key with the old one; users need no new consent.
func TestSignReplacesKey(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One.")}))
	p.has(p.types(0, "add", g.URL).stdout, "key expires on 20")
	p.has(p.types(0, "sign", "--new-key", "example.com", "--key", "two.key", "--replaces", "one.key", "--expires", "2199-12-31").stdout, "It expires on 2199-12-31")
	g.Commit(p.publishes("two.key", "pdf", map[string]string{"run.py": "print(2)\n"}))
	p.has(p.types(0, "update").stdout, "the owner of the remembered key", "replaced it with this one")
	p.types(0, "verify")
	p.has(p.file("pdf/SKILL.sig"), "counter 2\n", "key-expires 2199-12-31T00:00:00Z\n", "key-replaces example.com+")

	p.types(0, "sign", "--new-key", "example.com", "--key", "three.key", "--expires", "never")
	g.Commit(p.publishes("three.key", "pdf", map[string]string{"run.py": "print(3)\n"}))
	p.has(p.types(3, "update").all(), "key of ", "changed")
	p.types(2, "sign", "--new-key", "example.com", "--key", "four.key", "--expires", "2001-01-01")
	p.types(2, "sign", "pdf", "--key", "one.key", "--expires", "never")
	p.types(4, "sign", "--new-key", "example.com", "--key", "four.key", "--replaces", "none.key")
	p.types(1, "sign", "--new-key", "example.com", "--key", "two.key", "--replaces", "one.key")
}

// After the key of a publisher expired, list and doctor say that there are no updates,
// and an update refuses a new version.
func TestExpiredKeyIsShown(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One.")}))
	p.types(0, "add", g.URL)
	path := filepath.Join(p.home, ".local/state/loadout/publishers.json")
	pins, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	expired := regexp.MustCompile(`"expires": "[^"]*"`).ReplaceAll(pins, []byte(`"expires": "2026-01-02T00:00:00Z"`))
	if bytes.Equal(expired, pins) {
		t.Fatalf("no expiry in %s", pins)
	}
	if err := os.WriteFile(path, expired, 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "key expired on 2026-01-02, so there are no updates until its owner replaces it"
	p.has(p.types(0, "list").stderr, "pdf: "+text)
	p.has(p.types(0, "list", "--json").stdout, `"signature": "`+text)
	p.has(strings.Join(strings.Fields(p.types(0, "doctor").stdout), " "), "pdf: "+text)
	p.has(p.types(0, "show", "pdf").stdout, "One.") // it stays available
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "Two.")}))
	p.has(p.types(3, "update").all(), "expired on 2026-01-02")
}

// The approval of a version ends that of the older one, also if its source
// restores the older one and it is installed again.
func TestApprovalSupersedesOlder(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	version := func(n string) {
		g.Commit(map[string]string{"tides/SKILL.md": plainSkill("tides", "Version "+n+"."), "tides/high.sh": "echo high-" + n + "\n"})
	}
	state := func(want string) {
		t.Helper()
		p.has(p.types(0, "show", "tides", "--json").stdout, `"state": "`+want+`"`)
		if out := p.types(0, "show", "tides").stdout; strings.Contains(out, "\nstate         "+want) != (want != "approved") {
			t.Errorf("a skill that is %s is shown as\n%s", want, out)
		}
	}
	version("1")
	p.types(0, "add", g.URL)
	state("pending")
	p.types(0, "approve", "tides", "--yes")
	state("approved")
	version("2")
	p.types(0, "update")
	state("pending")
	p.types(0, "approve", "tides", "--yes")
	version("1")
	p.types(0, "update")
	state("superseded")
	c := p.connects()
	script := map[string]any{"skill": "tides", "script": "high.sh"}
	text, _ := c.calls("run_skill_script", script)
	p.has(text, "superseded")
	if strings.Contains(text, "high-1") {
		t.Errorf("the old version runs: %s", text)
	}
	p.has(p.types(0, "approve", "--list").stdout, "superseded")
	p.types(0, "approve", "tides", "--yes")
	text, _ = c.calls("run_skill_script", script)
	if strings.Contains(text, "superseded") {
		t.Errorf("after a new approval: %s", text)
	}
	if hasSandbox() == nil {
		p.has(text, "high-1")
	}
}

// A version that the user installs from a tag counts as approved again. An agent
// that installs it changes nothing.
func TestChosenVersionIsApprovedAgain(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	version := func(n string) {
		g.Tag("v"+n, g.Commit(map[string]string{"tides/SKILL.md": plainSkill("tides", "Version "+n+"."), "tides/high.sh": "echo high-" + n + "\n"}))
		p.types(0, "add", g.URL+"@v"+n, "--force")
		p.types(0, "approve", "tides", "--yes")
	}
	version("1")
	version("2")
	refused := func(what string, want bool) {
		t.Helper()
		text, _ := p.connects().calls("run_skill_script", map[string]any{"skill": "tides", "script": "high.sh"})
		if got := strings.Contains(text, "superseded"); got != want {
			t.Errorf("%s: %s", what, text)
		}
	}
	refused("the new version", false)
	agent := exec.Command("loadout-detecting", "add", g.URL+"@v1", "--force")
	agent.Dir, agent.Env = p.home, append(slices.Clone(p.env), "CLAUDECODE=1")
	if out, err := agent.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	refused("installed by an agent", true)
	p.has(p.types(0, "add", g.URL+"@v1", "--force").stderr, "your earlier approval of this version of tides is valid again")
	refused("installed by the user", false)
	p.types(0, "add", g.URL+"@v2", "--force")
	refused("and back", false)
}

// A lockfile chooses no version: whatever it says, an old version that is restored
// with it stays superseded.
func TestLockfileRevivesNoApproval(t *testing.T) {
	p := newGetter(t)
	version := func(n string) {
		p.writes("source/SKILL.md", plainSkill("tides", "Version "+n+"."))
		p.writes("source/high.sh", "echo high-"+n+"\n")
	}
	version("1")
	p.types(0, "add", "./source")
	p.types(0, "approve", "tides", "--yes")
	old := p.skills()
	version("2")
	p.types(0, "update")
	p.types(0, "approve", "tides", "--yes")

	for _, forged := range []map[string]any{
		{},
		{"ref": "refs/tags/v1"},
		{"highestCounter": 9},
		{"ref": "", "from": map[string]any{"kind": "git", "url": "https://example.com/repo.git", "ref": "v1"}},
	} {
		if err := os.RemoveAll(p.installed("tides")); err != nil {
			t.Fatal(err)
		}
		for path, text := range old {
			p.writes(".loadout/skills/"+path, text)
		}
		var lock map[string]any
		if err := json.Unmarshal([]byte(p.file("loadout.lock")), &lock); err != nil {
			t.Fatal(err)
		}
		lock["version"] = 2
		for key, value := range forged {
			lock["skills"].(map[string]any)["tides"].(map[string]any)[key] = value
		}
		p.writes(".loadout/skills/loadout.lock", jsonOf(lock))
		for _, args := range [][]string{{"add", "--frozen"}, {"add", "--frozen", "--downgrade"}} {
			if out := p.types(0, args...); strings.Contains(out.all(), "is valid again") {
				t.Errorf("%v with %v says\n%s", args, forged, out.all())
			}
			text, _ := p.connects().calls("run_skill_script", map[string]any{"skill": "tides", "script": "high.sh"})
			if !strings.Contains(text, "superseded") || strings.Contains(text, "high-1") {
				t.Errorf("%v with %v: the old version runs: %s", args, forged, text)
			}
		}
	}
}
