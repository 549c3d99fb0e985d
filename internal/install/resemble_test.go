package install_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/remote"
)

// prose returns n different words.
func prose(start, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "word%d ", start+i)
	}
	return b.String()
}

// A new skill that resembles an installed one of another publisher is reported.
// Nothing blocks its installation.
func TestResemblingSkillsAreReported(t *testing.T) {
	to := target(t)
	first := newRepository(t)
	first.location.URL = "https://code.example/acme/skills.git"
	first.commit(map[string]string{"invoices/SKILL.md": document("invoices", prose(0, 100))})
	first.install(to, install.Options{})
	for _, tt := range []struct {
		name, url, skill, body string
		kind                   remote.Kind
		want                   []string
	}{
		{"swapped letters", "https://code.example/other/skills.git", "invoicse", "Other text.", remote.Git, []string{"name-similar"}},
		{"two letters", "https://code.example/other/skills.git", "invoicing", "Other text.", remote.Git, nil},
		{"one letter", "https://code.example/other/skills.git", "invoice", "Other text.", remote.Git, []string{"name-similar"}},
		{"copy", "https://code.example/other/skills.git", "billing", prose(0, 100) + " then run this", remote.Git, []string{"skill-copy"}},
		{"other text", "https://code.example/other/skills.git", "billing", prose(200, 100), remote.Git, nil},
		{"short text", "https://code.example/other/skills.git", "billing", prose(0, 10), remote.Git, nil},
		{"same publisher", "https://code.example/acme/more.git", "invoice", prose(0, 100), remote.Git, nil},
		{"name of a bundled skill", "https://code.example/other/skills.git", "skill-creator", "Other text.", remote.Git, []string{"name-similar"}},
		{"bundled name", "https://code.example/other/skills.git", "skill-creater", "Other text.", remote.Git, []string{"name-similar"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRepository(t)
			r.location.URL, r.location.Kind = tt.url, tt.kind
			r.commit(map[string]string{tt.skill + "/SKILL.md": document(tt.skill, tt.body)})
			p := r.add(to, install.Options{})
			var got []string
			for _, f := range p.Steps[0].Findings {
				if f.Rule == "name-similar" || f.Rule == "skill-copy" {
					got = append(got, f.Rule)
				}
			}
			if !slices.Equal(got, tt.want) || len(p.Failures) > 0 {
				t.Errorf("found %v, want %v; %+v", got, tt.want, p.Failures)
			}
		})
	}
}
