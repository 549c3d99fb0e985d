package catalog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

func TestK2EachLookupChecksKillSwitchAndAllowList(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "version: 1.0.0\n"), "csv/SKILL.md": doc("csv", ""), "x.skill": pack(t, map[string]string{"x/SKILL.md": doc("x", "")})})
	digest := ""
	{
		c := open(t, dir(root))
		m, err := c.Manifest(t.Context(), get(t, c.Snapshot(), "pdf"))
		must(t, err)
		digest = m.Digest()
	}
	for _, tt := range []struct {
		what   string
		filter catalog.Filter
		reason string
	}{
		{"switched off", catalog.Filter{Disabled: true}, "switched off"},
		{"switched off, though on the list", catalog.Filter{Disabled: true, Allow: []string{"pdf"}}, "switched off"},
		{"not on the list", catalog.Filter{Allow: []string{"csv"}}, "allowlist"},
		{"chosen, and not on the list", catalog.Filter{Allow: []string{"csv"}, Select: []string{"pdf"}}, "allowlist"},
		{"not chosen", catalog.Filter{Select: []string{"csv"}}, "profile"},
		{"nothing is chosen", catalog.Filter{Select: []string{}}, "profile"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			c := filtered(t, tt.filter, dir(root))
			s := c.Snapshot()
			for _, ref := range []string{"pdf", "pdf@^1", "dir/pdf", digest} {
				_, err := c.Resolve(t.Context(), ref)
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("resolve %s: %v", ref, err)
				} else if ref != digest && !strings.Contains(err.Error(), tt.reason) {
					t.Errorf("resolve %s: %v, want the reason: %s", ref, err, tt.reason)
				}
			}
			lists := map[string][]string{"Skills": names(s.Skills()), "All": names(slices.Collect(s.All())), "Offered": names(s.ForModel())}
			for _, query := range []string{"", "pdf", "does pdf things"} {
				hits, err := c.Search(t.Context(), query, catalog.SearchOptions{})
				must(t, err)
				for _, h := range hits {
					lists["Search "+query] = append(lists["Search "+query], h.Name)
				}
			}
			lists["Text"] = strings.Fields(catalog.Format(s.ForModel(), catalog.FormatOptions{}))
			for what, got := range lists {
				if slices.Contains(got, "pdf") || slices.Contains(got, "pdf:") || tt.filter.Disabled && len(got) > 0 {
					t.Errorf("%s has %q", what, got)
				}
			}
			for _, x := range s.Explain("pdf") {
				if x.Chosen || !strings.Contains(x.Reason, tt.reason) {
					t.Errorf("explain returned %+v", x)
				}
			}
		})
	}
}

func TestK2EditedSkillIsFilteredAgain(t *testing.T) {
	root := tree(t, map[string]string{"pdf/SKILL.md": doc("pdf", "version: 1.0.0\n")})
	c := filtered(t, catalog.Filter{Allow: []string{"pdf@^1"}, Shell: "Chat"}, dir(root))
	e := get(t, c.Snapshot(), "pdf")
	for _, tt := range []struct{ content, want string }{
		{doc("pdf", "version: 1.9.0\n"), ""},
		{doc("pdf", "version: 2.0.0\n"), `skill "pdf" is not available: changed, and now not on the allowlist (skills.allow)`},
		{doc("pdf", ""), `skill "pdf" is not available: changed, and now not on the allowlist (skills.allow)`},
		{doc("other", "version: 1.0.0\n"), `skill "pdf" is not available: changed, and now not on the allowlist (skills.allow)`},
		{doc("pdf", "version: 1.0.0\nbindShells: [Code]\n"), `skill "pdf" is not available: changed, and now bound to Code (bindShells), but this is Chat`},
	} {
		write(t, root, map[string]string{"pdf/SKILL.md": tt.content})
		_, _, err := c.Read(t.Context(), e)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestAllowList(t *testing.T) {
	skills := source("m", catalog.User, "pdf@1.5.0", "pdf-forms@2.0.0-beta.1", "docs-write", "docs-read@0.9", "数据", "CSV")
	for _, tt := range []struct {
		allow []string
		want  []string
	}{
		{nil, []string{"CSV", "docs-read", "docs-write", "pdf", "pdf-forms", "数据"}},
		{[]string{}, []string{"CSV", "docs-read", "docs-write", "pdf", "pdf-forms", "数据"}},
		{[]string{"pdf"}, []string{"pdf"}},
		{[]string{" pdf "}, []string{"pdf"}},
		{[]string{"csv"}, []string{}}, // names are case-sensitive
		{[]string{"docs-*"}, []string{"docs-read", "docs-write"}},
		{[]string{"docs-?ead", "p[a-d]f"}, []string{"docs-read", "pdf"}},
		{[]string{"*"}, []string{"CSV", "docs-read", "docs-write", "pdf", "pdf-forms", "数据"}},
		{[]string{"数*"}, []string{"数据"}},
		{[]string{"ＣＳＶ"}, []string{"CSV"}}, // but normalized to NFKC
		{[]string{"pdf@>=1.2"}, []string{"pdf"}},
		{[]string{"pdf@>=1.6"}, []string{}},
		{[]string{"pdf@>=1.2 <1.4 || ^1.5"}, []string{"pdf"}},
		{[]string{"*@>=0.1"}, []string{"docs-read", "pdf"}}, // without a version nothing is satisfied
		{[]string{"pdf*@>=1.0.0-0"}, []string{"pdf", "pdf-forms"}},
		{[]string{"nothing"}, []string{}},
	} {
		if diff := cmp.Diff(tt.want, names(filtered(t, catalog.Filter{Allow: tt.allow}, skills).Snapshot().Skills())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.allow, diff)
		}
	}
}

// A pattern that cannot be read must not let more through than was meant.
func TestK2InvalidAllowListIsAnError(t *testing.T) {
	for _, pattern := range []string{"", "  ", "@1", "pdf@", "pdf@ ", "pdf@latest", "a[", "[]a]", "[-]", `\`, "a*[", "[a-]", "docs-*@>>1"} {
		c, err := catalog.New(nil, &catalog.Options{Filter: catalog.Filter{Allow: []string{"pdf", pattern}}})
		if err == nil || c != nil {
			t.Errorf("%q is accepted", pattern)
		} else if !strings.HasPrefix(err.Error(), "allowlist: ") || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v; want an error that says what is accepted", pattern, err)
		}
	}
}

func TestForbiddenSkillShadowsNothing(t *testing.T) {
	p, u := source("p", catalog.Project, "pdf@2.0.0"), source("u", catalog.User, "pdf@1.0.0")
	s := filtered(t, catalog.Filter{Allow: []string{"pdf@<2"}}, p, u).Snapshot()
	if e := get(t, s, "pdf"); e.Key() != "u/pdf" {
		t.Errorf("got %s", e.Key())
	}
	if len(s.Shadowed()) > 0 {
		t.Errorf("shadowed: %v", s.Shadowed())
	}
	if _, err := s.Get("p/pdf"); err == nil || !strings.Contains(err.Error(), "allowlist") {
		t.Errorf("p/pdf: %v", err)
	}
}

func TestBindShells(t *testing.T) {
	root := tree(t, map[string]string{
		"any/SKILL.md": doc("any", ""), "chat/SKILL.md": doc("chat", "bindShells: [Chat]\n"), "both/SKILL.md": doc("both", "bindShells: [chat, ClaudeCode]\n"),
		"code/SKILL.md": doc("code", "metadata:\n  bindShells: ClaudeCode\n"),
	})
	for shell, want := range map[string][]string{
		"":           {"any", "both", "chat", "code"},
		"Chat":       {"any", "both", "chat"},
		"claudecode": {"any", "both", "code"},
		"Dify":       {"any"},
	} {
		s := filtered(t, catalog.Filter{Shell: shell}, dir(root)).Snapshot()
		if diff := cmp.Diff(want, names(s.Skills())); diff != "" {
			t.Errorf("for %q (-want +got):\n%s", shell, diff)
		}
	}
	s := filtered(t, catalog.Filter{Shell: "Chat"}, dir(root)).Snapshot()
	got := s.Explain("code")
	if len(got) != 1 || got[0].Chosen || got[0].Reason != "bound to ClaudeCode (bindShells), but this is Chat" || got[0].Path != filepath.Join(root, "code") {
		t.Errorf("explain: %+v", got)
	}
}

// A source may list skills of origins with slashes, such as repositories of an
// organization.
func TestOriginsMayContainSlashes(t *testing.T) {
	m := source("hub", catalog.Public, "pdf", "csv")
	for _, e := range m.entries {
		e.Origin = "acme/tools"
	}
	m.entries[1].Dir = "data/csv"
	s := filtered(t, catalog.Filter{Select: []string{"acme/tools/pdf", "acme/tools/csv", "acme/pdf"}}, m).Snapshot()
	if got := names(s.Skills()); !slices.Equal(got, []string{"csv", "pdf"}) {
		t.Errorf("skills %q, want those selected", got)
	}
	for ref, want := range map[string]string{"acme/tools/pdf": "pdf", "acme/tools/csv": "csv", "acme/tools/data/csv": "csv"} {
		if e, err := s.Get(ref); err != nil || e.Name != want {
			t.Errorf("%s: %v, %v", ref, e, err)
		}
	}
	for _, ref := range []string{"acme/pdf", "tools/pdf", "acme/tools/data", "acme/toolspdf"} {
		if e, err := s.Get(ref); err == nil {
			t.Errorf("%s is %s", ref, e.Key())
		}
	}
}
