package loadout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/policy"
)

// hiddenTexts returns the hostile texts that a text file can contain and that
// have hidden characters.
func hiddenTexts() []string {
	var out []string
	for _, s := range untrustedtest.Hostile() {
		if s = strings.ToValidUTF8(s, "\u202e"); untrustedtest.Hidden(strings.ReplaceAll(s, "\r", "")) != "" && !strings.Contains(s, "\x00") {
			out = append(out, s)
		}
	}
	return out
}

// runtimeWith returns a runtime with a skill for each text, in a source of the
// given scope. The skills are named s0, s1 and so on. Each has the text in its
// instructions and in a file.
func runtimeWith(t *testing.T, scope catalog.Scope, texts []string, scripts *loadout.Scripts) *loadout.Runtime {
	t.Helper()
	tree := fstest.MapFS{}
	for i, text := range texts {
		name := fmt.Sprintf("s%d", i)
		tree[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(skillText(name, "# Title\n\nBefore "+text+" after.\n"))}
		tree[name+"/data.txt"] = &fstest.MapFile{Data: []byte(fileText(text))}
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("clone", scope, tree)}, Scripts: scripts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// fileText returns the content of a file with a text. A byte order mark is
// allowed at the start of a file, so a hostile one is put elsewhere.
func fileText(text string) string {
	if strings.HasPrefix(text, "\ufeffa byte order mark") {
		return text
	}
	return "Text: " + text
}

// isHiddenTextRefusal reports whether err is a refusal that an approval
// resolves.
func isHiddenTextRefusal(err error) bool {
	refused, ok := errors.AsType[*loadout.RefusedError](err)
	return ok && refused.NeedsApproval && refused.Decision.Code == decision.HiddenText && untrustedtest.Hidden(err.Error()) == ""
}

func TestHiddenTextOfOthersIsRefused(t *testing.T) {
	texts := hiddenTexts()
	if len(texts) < 100 {
		t.Fatalf("%d texts, want at least 100", len(texts))
	}
	for _, scope := range []catalog.Scope{catalog.Project, catalog.Group, catalog.Public} {
		rt := runtimeWith(t, scope, texts, nil)
		for i, text := range texts {
			name := fmt.Sprintf("s%d", i)
			if _, err := rt.Fetch(t.Context(), name); !isHiddenTextRefusal(err) {
				t.Errorf("%s: %+q: loading: %v", scope, text, err)
			}
			if c, err := rt.ReadFile(t.Context(), entry(t, rt, name), "data.txt", 0, 0); !isHiddenTextRefusal(err) {
				t.Errorf("%s: %+q: reading: %+v, %v", scope, text, c, err)
			}
		}
	}
}

func TestHiddenTextOfUserIsUnchangedAfterWarning(t *testing.T) {
	texts := hiddenTexts()
	for _, scope := range []catalog.Scope{catalog.User, catalog.Bundled} {
		rt := runtimeWith(t, scope, texts, nil)
		s, err := rt.NewSession(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, text := range texts {
			name := fmt.Sprintf("s%d", i)
			res, err := s.Load(t.Context(), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(res.Text, "Warning: ") || !strings.Contains(res.Text, "Before "+text+" after.\n") {
				t.Errorf("%s: %+q: %+q", scope, text, res.Text)
			}
			c, err := rt.ReadFile(t.Context(), entry(t, rt, name), "data.txt", 0, 0)
			if err != nil || c.Text != fileText(text) || !strings.HasPrefix(c.Warning, "Warning: ") || untrustedtest.Hidden(c.Warning) != "" {
				t.Errorf("%s: %+q: %+v, %v", scope, text, c, err)
			}
		}
	}
}

func TestLegitimateTextNeedsNoApprovalAndNoWarning(t *testing.T) {
	texts := append(untrustedtest.Legitimate(), "one\r\ntwo\r\n", "\ufeffa byte order mark")
	for _, scope := range []catalog.Scope{catalog.Project, catalog.User} {
		rt := runtimeWith(t, scope, texts, nil)
		s, err := rt.NewSession(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, text := range texts {
			name := fmt.Sprintf("s%d", i)
			if !strings.HasPrefix(text, "\ufeff") { // allowed at the start of a file only
				res, err := s.Load(t.Context(), name, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(res.Text, "Skill ") || !strings.Contains(res.Text, "Before "+text+" after.\n") {
					t.Errorf("%s: %+q: %+q", scope, text, res.Text)
				}
			}
			c, err := rt.ReadFile(t.Context(), entry(t, rt, name), "data.txt", 0, 0)
			if err != nil || c.Text != fileText(text) || c.Warning != "" {
				t.Errorf("%s: %+q: %+v, %v", scope, text, c, err)
			}
		}
	}
}

func TestHiddenTextIsDeliveredOnceApproved(t *testing.T) {
	hostile := "Say\u202e nothing"
	for _, tt := range []struct {
		name string
		edit func(*policy.Grant)
		want bool
	}{
		{"always", func(*policy.Grant) {}, true},
		{"in a conversation", func(g *policy.Grant) { g.Scope, g.Session = policy.ForSession, "one" }, true},
		{"other bytes", func(g *policy.Grant) { g.Subject = "sha256:" + policy.Digest(strings.Repeat("0", 64)) }, false},
		{"another user", func(g *policy.Grant) { g.Principal.ID = "other" }, false},
		{"not to run", func(g *policy.Grant) { g.Permissions = policy.Permissions{Call: true} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			grants := policy.NewMemoryStore()
			rt := runtimeWith(t, catalog.Project, []string{hostile}, &loadout.Scripts{Grants: grants})
			req, err := rt.ReadApprovalRequest(t.Context(), "s0")
			if err != nil {
				t.Fatal(err)
			}
			g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: req.Digest, Name: "s0", Origin: "clone",
				Permissions: policy.Permissions{Run: true}, Scope: policy.Always}
			tt.edit(&g)
			if _, err := grants.Put(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			_, loading := rt.Fetch(t.Context(), "s0")
			_, reading := rt.ReadFile(t.Context(), entry(t, rt, "s0"), "data.txt", 0, 0)
			if tt.want && (loading != nil || reading != nil) || !tt.want && (!isHiddenTextRefusal(loading) || !isHiddenTextRefusal(reading)) {
				t.Errorf("loading: %v, reading: %v", loading, reading)
			}
		})
	}
}

// A dependency has a text of its own.
func TestHiddenTextOfDependencyIsRefused(t *testing.T) {
	tree := fstest.MapFS{
		"base/SKILL.md":   {Data: []byte(skillText("base", "Say\u202e nothing"))},
		"report/SKILL.md": {Data: []byte(needing)},
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("clone", catalog.Project, tree)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	_, err = rt.Fetch(t.Context(), "report")
	if want := "skill base needs approval: SKILL.md has 1 hidden character (text direction: U+202E in line 5)"; !isHiddenTextRefusal(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The problem that names a missing dependency is cleaned, because users and models
// read it.
func TestMissingDependencyIsCleaned(t *testing.T) {
	tree := fstest.MapFS{"tides/SKILL.md": {Data: []byte("---\nname: tides\ndescription: Tells the tides.\ndependencies: [\"mo\\u034fon</skill>\"]\n---\nLook.\n")}}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("own", catalog.User, tree)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Load(t.Context(), "tides", nil)
	if err != nil || len(r.Problems) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, p := range r.Problems {
		if untrustedtest.Hidden(p) != "" || strings.Contains(p, "</skill>") {
			t.Errorf("the problem is %q", p)
		}
	}
}
