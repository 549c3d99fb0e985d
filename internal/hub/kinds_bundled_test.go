package hub_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
)

func TestGhostWithBundledSkills(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true})
	_, token := n.newcomer(t, "ada", account.AllScopes)
	ada := n.wired(token)
	const ghost = "kind: Ghost\nmetadata: {name: x}\nspec: {skills: [csv-analysis, loadout-guide, none], preload_skills: [loadout-guide]}\n"
	if got := ada.apply(t, "", ghost).want(t, 200); strings.Count(got.body, "skill-missing") != 1 || !strings.Contains(got.body, `\"none\"`) {
		t.Errorf("applied got %s", got.body)
	}
	var is struct {
		Skills []struct {
			Name, ID         string
			Bundled, Preload bool
		}
		Problems []string
	}
	ada.send(t, "GET", "/api/v1/kinds/Ghost/default/x/profile", nil).want(t, 200).into(t, &is)
	wantEqual(t, is.Problems, []string{"skill none: not found or not permitted"})
	if s := is.Skills; len(s) != 3 || !s[0].Bundled || s[0].Preload || !s[1].Bundled || !s[1].Preload || s[2].Bundled {
		t.Errorf("its skills are %+v", s)
	}
	for _, era := range eras {
		cs := connectMCP(t, n.URL+"/mcp/p/x", token, era, nil)
		if res := callMCP(t, cs, "load_skill", args{"name": "csv-analysis"}); res.IsError {
			t.Errorf("%s: it is not loaded: %s", era, textOfResult(res))
		}
	}
	// One that is named precisely is one of the hub.
	precise := strings.Replace(ghost, "skills:", "skill_refs: {csv-analysis: {is_public: true}}, skills:", 1)
	if got := ada.apply(t, "", precise); got.status != 422 || !strings.Contains(got.body, "skill-ref") {
		t.Errorf("a public one is %d %s", got.status, got.body)
	}
}
