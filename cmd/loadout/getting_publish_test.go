package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// What publish writes is an index from which add installs, with the publisher's key, and
// which changes only if the skills do.
func TestPublishedSiteIsInstalled(t *testing.T) {
	p := newGetter(t)
	p.types(0, "sign", "--new-key", "example.com", "--key", "one.key")
	p.writes("src/pdf/SKILL.md", plainSkill("pdf", "One."))
	p.writes("src/pdf/run.py", "print(1)\n")
	p.writes("src/more/tides/SKILL.md", plainSkill("tides", "One."))
	p.has(p.types(0, "publish", "src", "-o", "site", "--key", "one.key").stdout, "pdf ", "tides ", "index.json: 2 skills", "loadout add https://YOUR-SITE")
	before := p.tree(filepath.Join(p.home, "site"))
	if len(before) != 3 || !strings.Contains(before[".well-known/agent-skills/index.json"], `"url": "pdf.zip"`) {
		t.Fatalf("wrote %v", before)
	}
	site := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(p.home, "site"))))
	defer site.Close()
	p.has(p.types(0, "add", site.URL, "--all").stdout, "Added 2 skills", "signed by example.com")
	p.has(p.file("pdf/SKILL.md"), "One.")
	p.types(0, "verify")

	p.types(0, "publish", "src", "-o", "site", "--key", "one.key", "--json")
	for path, text := range p.tree(filepath.Join(p.home, "site")) {
		if text != before[path] {
			t.Errorf("%s changed without a change of the skills", path)
		}
	}
	p.writes("src/pdf/SKILL.md", plainSkill("pdf", "Two."))
	p.types(0, "publish", "src", "-o", "site", "--key", "one.key")
	p.types(0, "update")
	p.has(p.file("pdf/SKILL.md"), "Two.")
}

// An archive that differs from the index is refused, and so is a skill that is signed with
// another key. The installed version stays.
func TestPublishedSiteIsVerified(t *testing.T) {
	p := newGetter(t)
	p.types(0, "sign", "--new-key", "example.com", "--key", "one.key")
	p.types(0, "sign", "--new-key", "example.com", "--key", "two.key")
	p.writes("src/pdf/SKILL.md", plainSkill("pdf", "One."))
	p.types(0, "publish", "src", "-o", "site", "--key", "one.key")
	site := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(p.home, "site"))))
	defer site.Close()
	p.types(0, "add", site.URL)

	const archive = "site/.well-known/agent-skills/pdf.zip"
	p.writes(archive, p.tree(filepath.Join(p.home, "site"))[".well-known/agent-skills/pdf.zip"]+"x")
	p.has(p.types(3, "add", site.URL, "--force").stderr, "digest")

	p.writes("src/pdf/SKILL.md", plainSkill("pdf", "Two."))
	p.types(0, "publish", "src", "-o", "site", "--key", "two.key")
	p.has(p.types(3, "update").all(), "pdf", "refused", "changed")
	p.has(p.file("pdf/SKILL.md"), "One.")
	p.types(0, "verify")
}

func TestPublishRefuses(t *testing.T) {
	p := newGetter(t)
	p.writes("src/pdf/SKILL.md", plainSkill("pdf", "One."))
	p.writes("twice/a/pdf/SKILL.md", plainSkill("pdf", "One."))
	p.writes("twice/b/pdf/SKILL.md", plainSkill("pdf", "Two."))
	p.writes("bad/x/SKILL.md", "---\nname: [\n")
	p.writes("wide/发布/SKILL.md", plainSkill("发布", "One."))
	for _, tt := range []struct {
		code int
		args []string
		want string
	}{
		{2, []string{"src"}, "no -o SITE given"},
		{2, []string{"src", "-o", "src/site"}, "inside of src"},
		{4, []string{"none", "-o", "site"}, "does not exist"},
		{1, []string{"twice", "-o", "site"}, "two skills have the name pdf"},
		{1, []string{"bad", "-o", "site"}, "does not load"},
		{1, []string{"wide", "-o", "site"}, "an index allows only names of lower-case letters"},
		{4, []string{"src", "-o", "site", "--key", "none"}, "no such file"},
		{1, []string{"src", "-o", "twice/a/pdf/SKILL.md/site"}, "write twice"},
	} {
		got := p.types(tt.code, append([]string{"publish"}, tt.args...)...)
		p.has(got.stderr, tt.want)
		if files := p.tree(filepath.Join(p.home, "site")); len(files) > 0 {
			t.Errorf("%v wrote %v", tt.args, files)
		}
	}
}
