package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// published are skills as a site has them, with a body.
func published(body string) fstest.MapFS {
	return fstest.MapFS{
		"pdf/SKILL.md":       {Data: []byte(plainSkill("pdf", body))},
		"pdf/scripts/run.py": {Data: []byte("print('" + body + "')\n")},
		"tides/SKILL.md":     {Data: []byte(plainSkill("tides", "Look it up."))},
	}
}

// What a site publishes is got, kept new and checked, in the current form of an index and
// the older one.
func TestB11SiteSources(t *testing.T) {
	for name, older := range map[string]bool{"current": false, "older": true} {
		t.Run(name, func(t *testing.T) {
			x := remotetest.NewIndex(t, published("One."))
			if older {
				x.Older()
			}
			p := newGetter(t)
			p.has(p.types(2, "add", x.URL).all(), "pdf    Does what pdf does.", "has 2 skills")
			p.has(p.types(0, "add", x.URL, "--all").stdout, "Added 2 skills", "scripts/run.py")
			p.has(p.file("loadout.lock"), `"kind": "index"`)
			p.has(p.types(0, "update").stdout, "2 skills are up to date.")
			x.Publish(published("Two."))
			if got := p.states(1, "--check"); got["pdf"].State != "newer" || got["tides"].State != "current" {
				t.Errorf("newer are %+v", got)
			}
			lock := p.file("loadout.lock")
			frozen := newGetter(t)
			frozen.writes(".loadout/skills/loadout.lock", lock)
			frozen.has(frozen.types(3, "add", "--frozen").stderr, "digest mismatch of pdf: want sha256:", ", got sha256:")
			if got := frozen.skills(); len(got) != 1 {
				t.Errorf("of other bytes there is %v", got)
			}
			p.has(p.types(0, "update").stdout, "changed scripts/run.py script", "+Two.")
			p.has(p.file("pdf/SKILL.md"), "Two.")
			x.Publish(fstest.MapFS{"pdf/SKILL.md": published("Two.")["pdf/SKILL.md"], "pdf/scripts/run.py": published("Two.")["pdf/scripts/run.py"]})
			if got := p.states(1)["tides"]; got.State != "gone" || p.file("tides/SKILL.md") == "" {
				t.Errorf("for one that is not a longer published got %+v", got)
			}
		})
	}
}

// Members install skills of their hub with its token, which goes to no other host. An
// update says that a skill is no longer listed for them, or that the token was refused.
// The token is not sent for archives on the hub's host.
func TestHubToken(t *testing.T) {
	x := remotetest.NewIndex(t, published("One."))
	x.Private("lo_right")
	none := newGetter(t)
	none.has(none.types(3, "add", x.URL, "--all").stderr, "requires a credential", "LOADOUT_HUB_TOKEN")
	other := newGetter(t, "LOADOUT_HUB=https://hub.example.com", "LOADOUT_HUB_TOKEN=lo_right")
	other.has(other.types(3, "add", x.URL, "--all").stderr, "requires a credential")

	archive := newGetter(t, "LOADOUT_HUB="+x.URL, "LOADOUT_HUB_TOKEN=lo_right")
	archive.has(archive.types(3, "add", x.URL+"/pdf.zip", "--all").stderr, "requires a credential")

	p := newGetter(t, "LOADOUT_HUB="+x.URL, "LOADOUT_HUB_TOKEN=lo_right")
	p.has(p.types(0, "add", x.URL, "--all").stdout, "Added 2 skills")
	p.has(p.types(0, "update").stdout, "2 skills are up to date.")
	all := published("Two.")
	delete(all, "tides/SKILL.md")
	x.Publish(all)
	got := p.states(1, "--check")
	if got["pdf"].State != "newer" || got["tides"].State != "gone" || !strings.Contains(got["tides"].Reason, "you may no longer use it") {
		t.Errorf("of a skill that is no longer listed: %+v", got)
	}
	x.Private("lo_other") // the token is revoked
	got = p.states(1)
	if got["pdf"].State != "unknown" || !strings.Contains(got["pdf"].Reason, "rejected the credential") || !strings.Contains(got["pdf"].Fix, "LOADOUT_HUB_TOKEN") {
		t.Errorf("with a revoked token: %+v", got)
	}
	if len(p.skills()) != 4 || strings.Contains(p.file("pdf/SKILL.md"), "Two.") {
		t.Errorf("the copies are %v", p.skills())
	}
}

// Members install what they may use from their hub: their own skills, those of their
// groups and public ones. They do not see the others.
func TestMembersAddSkillsOfTheirHub(t *testing.T) {
	s := newHubScene(t, nil)
	signIn := func(name string) *http.Cookie {
		return s.post("/login", map[string]any{"name": name, "password": hubPassword}, nil, nil)
	}
	var ada, team, token struct{ ID, Token string }
	root := signIn("root")
	s.post("/users", map[string]any{"name": "ada", "password": hubPassword}, root, &ada)
	s.post("/groups", map[string]any{"name": "team"}, root, &team)
	s.post("/groups", map[string]any{"name": "others"}, root, nil)
	member := "/groups/" + team.ID + "/members/" + ada.ID
	s.send("PUT", member, map[string]any{"role": "reporter"}, root, nil)
	put := func(by *http.Cookie, in, name string) {
		s.post("/apply", map[string]any{"kind": "Skill", "metadata": map[string]any{"name": name, "namespace": in}, "spec": map[string]any{"description": "Writes.", "prompt": "Text of " + name + "."}}, by, nil)
	}
	cookie := signIn("ada")
	put(cookie, "default", "own")
	put(root, "team", "shared")
	put(root, "public", "everybodys")
	put(root, "others", "secret")
	put(root, "default", "private")
	s.post("/tokens", map[string]any{"name": "cli", "scopes": []string{"read"}}, cookie, &token)

	p := newGetter(t, "LOADOUT_HUB="+s.url, "LOADOUT_HUB_TOKEN="+token.Token)
	out := p.types(2, "add", s.url).all()
	p.has(out, "own", "shared", "everybodys", "has 3 skills")
	if strings.Contains(out, "secret") || strings.Contains(out, "private") {
		t.Errorf("a member sees other skills:\n%s", out)
	}
	p.types(4, "add", s.url, "--skill", "secret")
	p.has(p.types(0, "add", s.url, "--all").stdout, "Added 3 skills")
	installed := slices.Sorted(maps.Keys(p.skills()))
	if want := []string{"everybodys/SKILL.md", "loadout.lock", "own/SKILL.md", "shared/SKILL.md"}; !slices.Equal(installed, want) || !strings.Contains(p.file("shared/SKILL.md"), "Text of shared.") {
		t.Errorf("installed are %v, want %v", installed, want)
	}
	s.send("DELETE", member, nil, root, nil)
	if got := p.states(1, "--check"); got["shared"].State != "gone" || got["own"].State != "current" || got["everybodys"].State != "current" {
		t.Errorf("after leaving the group: %+v", got)
	}
}

// A skill whose files do not match the index, or with an invalid name, is not installed.
// Other skills of the index are.
func TestMaliciousIndex(t *testing.T) {
	x := remotetest.NewIndex(t, published("One."))
	x.Lie("pdf")
	for _, name := range []string{"../../evil", "/etc/evil", "evil/..", `evil\x`, ".", "", "evil\x1b[31m"} {
		x.Add(remotetest.IndexEntry{"name": name, "description": "x", "type": "skill-md", "url": "tides/SKILL.md", "digest": "sha256:" + strings.Repeat("0", 64)})
	}
	p := newGetter(t)
	out := p.types(3, "add", x.URL, "--skill", "pdf")
	p.has(out.stderr, "sha256:")
	out = p.types(1, "add", x.URL, "--all")
	p.has(out.all(), "Added 1 skill", "sha256:", "the publisher of the index")
	if strings.Contains(out.all(), "\x1b") {
		t.Errorf("a name drives the terminal: %q", out.all())
	}
	if got := p.skills(); len(got) != 2 || got["tides/SKILL.md"] == "" {
		t.Errorf("there is %v", got)
	}
	for path := range p.tree(p.home) {
		if strings.Contains(path, "evil") {
			t.Errorf("there is %s", path)
		}
	}
	x.Publish(published("Two."))
	before := p.skills()
	p.types(3, "add", x.URL, "--skill", "pdf")
	x.Document([]byte("{"))
	p.types(1, "add", x.URL, "--all")
	if got := p.states(1)["tides"]; got.State != "unknown" {
		t.Errorf("for a broken index got %+v", got)
	}
	if diff := cmp.Diff(before, p.skills()); diff != "" {
		t.Errorf("it is another:\n%s", diff)
	}
}

// A site cannot redirect to a private address, nor to the metadata service of a cloud.
func TestSiteRedirectsElsewhere(t *testing.T) {
	inside := remotetest.NewIndex(t, published("Inside."))
	x := remotetest.NewIndex(t, published("One."))
	p := newGetter(t)
	for to, why := range map[string]string{"https://169.254.169.254/latest/meta-data": "this address is never allowed", strings.Replace(inside.URL, "127.0.0.1", "localhost", 1) + "/x": "sources.private"} {
		x.Redirect("/.well-known/agent-skills/pdf.tar.gz", to)
		out := p.types(3, "add", x.URL, "--skill", "pdf")
		p.has(out.stderr, why)
	}
	if got := inside.Requests(); len(got) > 0 {
		t.Errorf("it was led to %v", got)
	}
	x.Redirect("/.well-known/agent-skills/pdf.tar.gz", "/.well-known/agent-skills/pdf.tar.gz")
	p.types(1, "add", x.URL, "--skill", "pdf")
}

// Skills of sites and repositories are searched together and labelled with their
// sources. Nothing is installed, and an unreachable source does not hide the others.
func TestSearchIndexes(t *testing.T) {
	x := remotetest.NewIndex(t, published("One."))
	g, _ := newTeam(t)
	p := newGetter(t)
	var out searchOutput
	p.reads(&out, 0, "search", "--index", x.URL, "--index", g.URL, "tides")
	origins := map[string]string{}
	for _, h := range out.Hits {
		origins[h.Origin] = h.Source
	}
	if want := map[string]string{x.Host(): x.URL + "/", g.Host() + "/repo.git": g.URL}; !cmp.Equal(origins, want) {
		t.Errorf("found at %v, want %v", origins, want)
	}
	text := p.types(0, "search", "--index", x.URL, "what", "pdf")
	p.has(text.all(), "pdf  "+x.Host(), "These skills are not installed.", "loadout add "+x.URL+"/ --skill pdf")
	text = p.types(0, "search", "--index", x.URL, "turn", "the", "pdf", "projector", "upside", "down")
	p.has(text.all(), "(weak) ", "No skill clearly fits")
	p.types(1, "search", "--index", x.URL, "--index", g.URL+"x", "tides")
	p.types(4, "search", "--index", g.URL+"x", "tides")
	p.types(4, "show", "tides")
	if got := p.skills(); len(got) > 0 {
		t.Errorf("a search provided %v", got)
	}
	p.types(0, "add", x.URL, "--skill", "pdf")
	p.types(0, "show", "pdf")
}
