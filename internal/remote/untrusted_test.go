package remote_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// An untrusted location may not name what only a user may name: files of this machine,
// ssh addresses and private addresses. It is never used with credentials.
func TestUntrustedLocations(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"SKILL.md": "---\nname: x\ndescription: X.\n---\n"})
	asked := false
	c := remote.New(&remote.Options{Untrusted: true, TempDir: t.TempDir(), Private: func(string) bool { return true }})
	for _, l := range []remote.Location{
		{Kind: remote.Local, URL: t.TempDir()},
		{Kind: remote.Git, URL: "file://" + filepath.ToSlash(g.Dir)},
		{Kind: remote.Git, URL: "ssh://git@example.com/x.git"},
		{Kind: remote.Git, URL: "git@example.com:x.git"},
	} {
		_, err := c.Open(t.Context(), l)
		if _, ok := errors.AsType[*remote.UntrustedError](err); !ok {
			t.Errorf("open %s: %v", l, err)
		}
		if l.Kind != remote.Git {
			continue
		}
		_, err = c.Latest(t.Context(), l)
		if _, ok := errors.AsType[*remote.UntrustedError](err); !ok {
			t.Errorf("latest of %s: %v", l, err)
		}
	}
	for _, l := range []remote.Location{
		{Kind: remote.Git, URL: g.URL},
		{Kind: remote.Archive, URL: g.Path("/admin/delete?all=1&x=a.zip")},
		{Kind: remote.Index, URL: strings.Replace(g.Path("/"), "127.0.0.1", "localhost", 1)},
	} {
		_, err := c.Open(t.Context(), l)
		if _, ok := errors.AsType[*remote.AddressError](err); !ok {
			t.Errorf("open %s: %v", l, err)
		}
	}
	if got := g.Requests(); len(got) > 0 {
		t.Errorf("requests were made: %q", got)
	}
	g.Private("secret")
	mine := remote.New(&remote.Options{TempDir: t.TempDir(), Credential: func(context.Context, string) (*remote.Credential, error) { asked = true; return nil, nil }})
	if _, err := mine.Open(t.Context(), remote.Location{Kind: remote.Git, URL: g.URL}); err == nil || !asked {
		t.Errorf("a user's own: asked %v: %v", asked, err)
	}
}

// One place has one name, however it is spelled.
func TestLocation(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Anthropics/Skills", "https://github.com/anthropics/skills"},
		{"https://GitHub.com/anthropics/skills.git", "https://github.com/anthropics/skills"},
		{"https://github.com/anthropics/skills/tree/main/skills/pdf", "https://github.com/anthropics/skills"},
		{"https://git.example.com:443/Team/skills.git/", "https://git.example.com/team/skills"},
		{"https://git.example.com/Team/skills", "https://git.example.com/team/skills"},
		{"https://git.example.com/team/skills", "https://git.example.com/team/skills"},
		{"git@git.example.com:team/skills.git", "https://git.example.com/team/skills"},
		{"ssh://git@git.example.com:22/team/skills", "https://git.example.com/team/skills"},
		{"ssh://me@git.example.com:2222/Team/Skills.git", "https://git.example.com/team/skills"},
		{"git@github.com:Anthropics/skills.git", "https://github.com/anthropics/skills"},
		{"ssh://git@ssh.github.com:443/anthropics/skills.git", "https://github.com/anthropics/skills"},
		{"https://git.example.com:8443/team/skills", "https://git.example.com:8443/team/skills"},
		{"http://localhost:3000/team/skills", "http://localhost:3000/team/skills"},
		{"file:///srv/Skills.git", "file:///srv/Skills"},
		{"https://example.com", "https://example.com"},
	} {
		l, err := remote.Parse(tt.text, "/")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.CanonicalURL(); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.text, got, tt.want)
		}
		if again := remote.Identity(l.CanonicalURL()); again != tt.want {
			t.Errorf("the identity of %s is %s", tt.want, again)
		}
	}
}
