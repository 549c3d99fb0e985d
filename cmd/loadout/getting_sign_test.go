package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// publishes signs a skill with a key, which is created if it is missing, and returns its
// files.
func (p *getter) publishes(key, dir string, files map[string]string) map[string]string {
	p.Helper()
	if got := p.tree(filepath.Join(p.home, key)); len(got) == 0 {
		p.types(0, "sign", "--new-key", "example.com", "--key", key)
	}
	for path, text := range files {
		p.writes(filepath.Join("publisher", dir, path), text)
	}
	p.types(0, "sign", filepath.Join("publisher", dir), "--key", key)
	out := map[string]string{}
	for path, text := range p.tree(filepath.Join(p.home, "publisher", dir)) {
		out[dir+"/"+path] = text
	}
	return out
}

// The key of a publisher is pinned at first use. Another key, a missing signature, and
// files that do not match the signature are refused, and the installed version stays.
func TestSignedSkills(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One."), "run.py": "print(1)\n"}))
	p.has(p.types(0, "add", g.URL, "--dry-run").stdout, "signed by example.com, key ", "first key of this source")
	p.has(p.types(0, "add", g.URL).stdout, "signed by example.com")
	p.has(p.file("loadout.lock"), `"key": "example.com+`)
	var ok verifyOutput
	p.reads(&ok, 0, "verify")
	if len(ok.Skills) != 1 || ok.Skills[0].Signer == "" {
		t.Errorf("verify returned %+v", ok)
	}

	// A newer version, and another skill, by the same key.
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"run.py": "print(2)\n"}))
	g.Commit(p.publishes("one.key", "tides", map[string]string{"SKILL.md": plainSkill("tides", "One.")}))
	p.types(0, "update")
	p.types(0, "add", g.URL, "--skill", "tides")
	good := p.skills()
	unchanged := func(what string) {
		t.Helper()
		if diff := cmp.Diff(good, p.skills()); diff != "" {
			t.Errorf("after %s it is another:\n%s", what, diff)
		}
		p.types(0, "verify")
	}

	g.Commit(map[string]string{"pdf/run.py": "print('evil')\n"})
	out := p.types(3, "update")
	p.has(out.all(), "pdf  refused", "run.py", "its publisher")
	p.has(p.types(3, "add", g.URL, "--skill", "pdf", "--force").stderr, "run.py")
	unchanged("a tampered file")

	g.Commit(p.publishes("two.key", "pdf", map[string]string{"run.py": "print(3)\n"}))
	p.has(p.types(3, "update").all(), "pdf  refused", "changed", "through another channel", "loadout verify --forget "+strings.TrimSuffix(g.URL, ".git"))
	p.types(3, "update", "--check")
	p.types(3, "add", g.URL, "--skill", "pdf")
	unchanged("another key")

	g.Push(remotetest.Change{Remove: []string{"pdf/SKILL.sig", "tides/SKILL.sig"}, Files: map[string]string{"pdf/run.py": "print(4)\n", "extra/SKILL.md": plainSkill("extra", "Not signed.")}})
	p.has(p.types(3, "update").all(), "pdf    refused", "no longer signed")
	p.has(p.types(3, "add", g.URL, "--skill", "extra").stderr, "no longer signed")
	p.types(3, "add", g.URL, "--skill", "tides")
	unchanged("no signature")

	// Who has asked the publisher, takes the new key.
	g.Commit(p.publishes("two.key", "pdf", map[string]string{"run.py": "print(5)\n"}))
	g.Commit(p.publishes("two.key", "tides", map[string]string{"SKILL.md": plainSkill("tides", "Two.")}))
	p.types(3, "update", "pdf")
	p.types(0, "verify", "--forget", g.URL)
	p.types(4, "verify", "--forget", g.URL)
	p.types(3, "update", "pdf") // the lock still has the other
	p.types(0, "remove", "pdf", "tides")
	p.types(0, "add", g.URL, "--skill", "pdf", "--skill", "tides")
	p.has(p.file("pdf/run.py"), "print(5)")
}

func TestSourceWithAndWithoutSignatures(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"a/SKILL.md": plainSkill("a", "One."), "z/SKILL.md": plainSkill("z", "One.")})
	g.Commit(p.publishes("one.key", "b", map[string]string{"SKILL.md": plainSkill("b", "One.")}))
	g.Commit(p.publishes("two.key", "c", map[string]string{"SKILL.md": plainSkill("c", "One.")}))
	p.has(p.types(1, "add", g.URL, "--all").all(), "Added 3 skills", "c: error", "through another channel")
	g.Commit(map[string]string{"a/SKILL.md": plainSkill("a", "Two."), "z/SKILL.md": plainSkill("z", "Two.")})
	p.types(0, "update")
	p.has(p.file("a/SKILL.md")+p.file("z/SKILL.md"), "Two.")
	p.types(0, "verify")
}

// Who changes the files of a signed skill and the lock with them, cannot sign.
func TestVerifyDetectsForgedLockfile(t *testing.T) {
	p := newGetter(t)
	g := remotetest.NewGit(t)
	g.Commit(p.publishes("one.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One.")}))
	p.types(0, "add", g.URL)
	signed := p.file("loadout.lock")

	// The same skill of another place, not signed, is as its lock says; under the entry of
	// the signed one it is not.
	forged := newGetter(t)
	other := remotetest.NewGit(t)
	other.Commit(map[string]string{"pdf/SKILL.md": plainSkill("pdf", "Evil.")})
	forged.types(0, "add", other.URL)
	key := regexpFind(t, `"key": "[^"]+"`, signed)
	lock := forged.file("loadout.lock")
	digest := regexpFind(t, `"digest": "[^"]+"`, lock)
	forged.writes(".loadout/skills/loadout.lock", replaceOne(t, lock, digest, digest+",\n      "+key))
	out := forged.types(1, "verify")
	forged.has(out.all(), "pdf  signature  skill is not signed", "A skill and its loadout.lock entry were changed")
	var v verifyOutput
	forged.reads(&v, 1, "verify")
	if v.OK || len(v.Differences) != 1 || v.Differences[0].Kind != "signature" {
		t.Errorf("verify returned %+v", v)
	}

	// A key that differs from the pinned one.
	p.types(0, "verify")
	g.Commit(p.publishes("two.key", "pdf", map[string]string{"SKILL.md": plainSkill("pdf", "One.")}))
	q := newGetter(t)
	q.types(0, "add", g.URL)
	p.writes(".loadout/skills/loadout.lock", q.file("loadout.lock"))
	p.writes(".loadout/skills/pdf/SKILL.sig", q.file("pdf/SKILL.sig"))
	p.has(p.types(1, "verify").stdout, "pdf  signature  key of ")
}
