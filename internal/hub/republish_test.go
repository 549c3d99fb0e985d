package hub_test

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/serverskill/serverskilltest"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// restoreURIs replaces the URIs of a republished entry by those of its server.
func restoreURIs(entry map[string]any, label string) {
	restore := func(fields map[string]any) {
		if path, ok := strings.CutPrefix(fields["uri"].(string), "skill://"+label+"/"); ok {
			fields["uri"] = serverskill.URIOf(path)
		}
	}
	restore(entry)
	for _, r := range entry["resources"].([]any) {
		restore(r.(map[string]any))
	}
}

func urisOf(entries []map[string]any) (uris []string) {
	for _, e := range entries {
		uris = append(uris, e["uri"].(string))
	}
	return uris
}

// The endpoint of everything has the skills of servers below their labels, with equal
// files, digests, sizes and frontmatter. They can be read after their approval. A copy in
// the library is a separate skill.
func TestSkillsOfServersAreRepublished(t *testing.T) {
	s := serverskilltest.Start(t)
	files := map[string]string{
		"skill://acme/guide/SKILL.md":         serverskilltest.Text("guide", "See a.md.\n"),
		"skill://acme/guide/images/a%20b.bin": "\x00\x01\xff",
		"github://o/r/notes/SKILL.md":         serverskilltest.Text("notes", "Text.\n"),
	}
	for uri, text := range files {
		s.Put("", uri, text)
	}
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: localhost})
	n.follow(t)
	p, token := n.newcomer(t, "ada", account.AllScopes)
	_, eve := n.newcomer(t, "eve", account.ScopeMCP)
	n.publisherOf(t, s.URL, "skills: ask, label: docs", p)
	n.put(t, p, ownPlace(p), "guide", "A reviewed copy.")
	republished := []string{"skill://guide/SKILL.md", "skill://docs/github:/o/r/notes/SKILL.md", "skill://docs/acme/guide/SKILL.md"}
	for _, era := range []string{upstream.Modern, upstream.Legacy} {
		c := dial(t, n.URL+"/mcp", token, era)
		want, _ := listEntries(t, dial(t, s.URL, "", era))
		got, _ := listEntries(t, c)
		got = slices.DeleteFunc(got, func(e map[string]any) bool { return !slices.Contains(republished, e["uri"].(string)) }) // without bundled skills
		if uris := urisOf(got); !slices.Equal(uris, republished) {
			t.Fatalf("%s: listed %q", era, uris)
		}
		for i, e := range got[1:] {
			var one struct{ Skill map[string]any }
			decodeInto(t, must(c.GetSkill(t.Context(), e["uri"].(string)))(t), &one)
			if !reflect.DeepEqual(one.Skill, e) {
				t.Errorf("%s: skills/get returns %v, and skills/list %v", era, one.Skill, e)
			}
			delete(e, "_meta")
			if restoreURIs(e, "docs"); !reflect.DeepEqual(e, want[i]) {
				t.Errorf("%s: republished %v, want %v", era, e, want[i])
			}
		}
		if text := string(must(c.ReadSkillFile(t.Context(), "skill://guide/SKILL.md"))(t)); !strings.Contains(text, "A reviewed copy.") {
			t.Errorf("%s: the copy is %q", era, text)
		}
		if uris := urisOf(first(listEntries(t, dial(t, n.URL+"/mcp", eve, era)))); slices.ContainsFunc(uris, func(uri string) bool { return strings.HasPrefix(uri, "skill://docs/") }) {
			t.Errorf("%s: a stranger lists %q", era, uris)
		}
	}
	c := dial(t, n.URL+"/mcp", token, upstream.Modern)
	reads := func() int { return len(s.Requests("resources/read")) }
	before := reads()
	if _, err := c.ReadSkillFile(t.Context(), "skill://docs/acme/guide/SKILL.md"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "not approved") || reads() != before {
		t.Errorf("read without approval: %v, %d requests", err, reads()-before)
	}
	ada := n.wired(token)
	for _, path := range []string{"acme/guide", "github:/o/r/notes"} {
		var all struct {
			Skills []struct{ Path, Digest string }
		}
		ada.send(t, "GET", "/api/v1/published-skills/docs", nil).want(t, 200).into(t, &all)
		i := slices.IndexFunc(all.Skills, func(s struct{ Path, Digest string }) bool { return s.Path == path })
		ada.send(t, "POST", "/api/v1/published-skills/docs/approve", map[string]string{"path": path, "digest": all.Skills[i].Digest}).want(t, 204)
	}
	for uri, text := range files {
		if data, err := c.ReadSkillFile(t.Context(), "skill://docs/"+serverskill.PathOf(uri)); string(data) != text || err != nil {
			t.Errorf("%s is %q, %v", uri, data, err)
		}
	}
	s.Serve("", "skill://acme/guide/SKILL.md", "Other.")
	if data, err := c.ReadSkillFile(t.Context(), "skill://docs/acme/guide/SKILL.md"); err == nil {
		t.Errorf("read what was not approved: %q", data)
	}
	for _, uri := range []string{"skill://docs/none/SKILL.md", "skill://docs/", "skill://docs/skill:/acme/guide/SKILL.md"} {
		if _, err := c.ReadSkillFile(t.Context(), uri); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("read %s: %v", uri, err)
		}
	}
	// A skill of the library with the name of the label takes the URIs.
	n.put(t, p, ownPlace(p), "docs", "Our docs.")
	c = dial(t, n.URL+"/mcp", token, upstream.Modern)
	var uris []string
	eventually(t, func() bool {
		uris = urisOf(first(listEntries(t, c)))
		return slices.Contains(uris, "skill://docs/SKILL.md")
	})
	if slices.Contains(uris, "skill://docs/acme/guide/SKILL.md") {
		t.Errorf("listed %q", uris)
	}
}

func first[A, B any](a A, _ B) A { return a }
