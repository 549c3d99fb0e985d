package hub_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

type notice struct {
	ID, Kind, Name, Commit, Review string
	SkillID                        string `json:"skill_id"`
	Number, From                   int
	Seen                           *string
}

func notices(t testing.TB, c caller, query string) []notice {
	t.Helper()
	var list struct{ Items []notice }
	c.send(t, "GET", "/api/v1/notices"+query, nil).want(t, 200).into(t, &list)
	return list.Items
}

// Users of a skill are notified of another version, and maintainers of an imported skill
// of a newer commit, each once. A pinned skill stays unchanged.
func TestNotifications(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		_, bob := n.newUser(t, root, "bob")
		g := remotetest.NewGit(t)
		g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One."), "docx/SKILL.md": skillText("docx", "One.")})
		done := importResult(t, ada, "/api/v1/skills/import", map[string]string{"source": g.URL})
		docx, pdf := done.Created[0].ID, done.Created[1].ID
		ada.send(t, "PATCH", "/api/v1/skills/"+docx, map[string]bool{"pinned": true}).want(t, 200)

		commit := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "Two."), "docx/SKILL.md": skillText("docx", "Two.")})
		for range 2 {
			if _, err := n.Library().CheckSources(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := notices(t, ada, "?unseen=true")
		if len(got) != 1 || got[0].Kind != "skill.upstream" || got[0].SkillID != pdf || got[0].Commit != commit {
			t.Fatalf("the notices are %+v", got)
		}
		bob.send(t, "POST", "/api/v1/notices/"+got[0].ID+"/seen", nil).wantProblem(t, 404, "not_found")
		if of := notices(t, ada, "?skill="+pdf); len(of) != 1 || of[0].ID != got[0].ID {
			t.Errorf("for the skill got %+v", of)
		}
		if of := notices(t, ada, "?skill="+docx); len(of) != 0 {
			t.Errorf("for the pinned skill got %+v", of)
		}
		ada.send(t, "POST", "/api/v1/notices/"+got[0].ID+"/seen", nil).want(t, 204)
		if left := notices(t, ada, "?unseen=true"); len(left) != 0 {
			t.Errorf("what was seen is %+v", left)
		}
		if all := notices(t, ada, ""); len(all) != 1 || all[0].Seen == nil {
			t.Errorf("all are %+v", all)
		}
		wantEqual(t, importResult(t, ada, "/api/v1/skills/update", map[string]string{}).texts(),
			map[string][]string{"updated": {"pdf"}, "skipped": {"docx: pinned"}})

		shared := root.send(t, "POST", "/api/v1/skills?namespace=public", zipped(t, "xlsx", "One.")).want(t, 201).text(t, "id")
		bob.send(t, "PUT", "/api/v1/defaults/"+shared, map[string]any{}).want(t, 200)
		root.send(t, "POST", "/api/v1/skills/"+shared+"/versions", zipped(t, "xlsx", "Two.")).want(t, 201)
		got = notices(t, bob, "")
		if len(got) != 1 || got[0].Kind != "skill.version" || got[0].Name != "xlsx" || got[0].From != 1 || got[0].Number != 2 {
			t.Errorf("the notices are %+v", got)
		}
	})
}
