package hub_test

import (
	"testing"
)

// chosen are the skills that a conversation begins with, the preloaded ones with a star.
func chosen(t testing.TB, c caller, query string) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Name         string
			SkillID      string `json:"skill_id"`
			ForcePreload bool
		}
	}
	c.send(t, "GET", "/api/v1/defaults/choose"+query, nil).want(t, 200).into(t, &list)
	out := []string{}
	for _, i := range list.Items {
		if i.ForcePreload {
			i.Name += "*"
		}
		out = append(out, i.Name)
	}
	return out
}

// W10: defaults of a user, of a group and of all users, with exceptions and preloading.
// A skill that a user uploads privately becomes a default; others do not.
func TestW10Defaults(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		adaID, ada := n.newUser(t, root, "ada")
		_, bob := n.newUser(t, root, "bob")
		group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
		root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+adaID, map[string]string{"role": "developer"}).want(t, 204)

		own := ada.send(t, "POST", "/api/v1/skills", zipped(t, "own", "Do it.")).want(t, 201).text(t, "id")
		shared := ada.send(t, "POST", "/api/v1/skills?namespace=team", zipped(t, "shared", "Do it.")).want(t, 201).text(t, "id")
		public := root.send(t, "POST", "/api/v1/skills?namespace=public", zipped(t, "public-one", "Do it.")).want(t, 201).text(t, "id")
		wantEqual(t, chosen(t, ada, ""), []string{"own"})
		wantEqual(t, chosen(t, bob, ""), []string{})

		ada.send(t, "PUT", "/api/v1/defaults/"+shared+"?namespace=team", map[string]any{
			"forcePreload": true, "exceptions": []map[string]string{{"type": "mode", "value": "plan"}, {"type": "agent", "value": "writer"}, {"type": "project", "value": "x"}},
		}).want(t, 200)
		root.send(t, "PUT", "/api/v1/defaults/"+public+"?namespace=public", map[string]any{}).want(t, 200)
		wantEqual(t, chosen(t, ada, ""), []string{"own", "shared*", "public-one"})
		wantEqual(t, chosen(t, ada, "?mode=plan"), []string{"own", "public-one"})
		wantEqual(t, chosen(t, ada, "?agent=writer&mode=code"), []string{"own", "public-one"})
		wantEqual(t, chosen(t, ada, "?project=x"), []string{"own", "public-one"})
		wantEqual(t, chosen(t, bob, ""), []string{"public-one"})

		// The nearest counts: his own word about a skill of everybody's, also an exception.
		bob.send(t, "PUT", "/api/v1/defaults/"+public, map[string]any{"exceptions": []map[string]string{{"type": "mode", "value": "plan"}}}).want(t, 200)
		wantEqual(t, chosen(t, bob, "?mode=plan"), []string{})

		var list struct {
			Items []struct {
				Namespace, Name string
				ForcePreload    bool
				Exceptions      []struct{ Type, Value string }
			}
		}
		ada.send(t, "GET", "/api/v1/defaults?namespace=team", nil).want(t, 200).into(t, &list)
		if len(list.Items) != 1 || list.Items[0].Name != "shared" || list.Items[0].Namespace != "group:"+group || !list.Items[0].ForcePreload || len(list.Items[0].Exceptions) != 3 {
			t.Errorf("the defaults of the group are %+v", list)
		}
		ada.send(t, "DELETE", "/api/v1/defaults/"+own, nil).want(t, 204)
		ada.send(t, "DELETE", "/api/v1/defaults/"+own, nil).wantProblem(t, 404, "not_found")
		wantEqual(t, chosen(t, ada, ""), []string{"shared*", "public-one"})
	})
}

func TestRefusedDefaults(t *testing.T) {
	n := team(t)
	root := n.signIn(t, "root", secret)
	adaID, ada := n.newUser(t, root, "ada")
	root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201)
	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
	root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+adaID, map[string]string{"role": "reporter"}).want(t, 204)
	id := root.send(t, "POST", "/api/v1/skills?namespace=team", zipped(t, "pdf", "Do it.")).want(t, 201).text(t, "id")
	for _, tt := range []struct {
		name   string
		who    caller
		path   string
		body   string
		status int
		code   string
	}{
		{"an unknown kind of exception", root, id, `{"exceptions": [{"type": "mood", "value": "x"}]}`, 422, "invalid"},
		{"an exception for nothing", root, id, `{"exceptions": [{"type": "mode", "value": ""}]}`, 422, "invalid"},
		{"where the skill is not shown", root, id + "?namespace=web", `{}`, 422, "invalid"},
		{"no such skill", ada, "nothing", `{}`, 404, "not_found"},
		{"no such group", ada, id + "?namespace=nothing", `{}`, 404, "not_found"},
		{"for a group, by a reporter", ada, id + "?namespace=team", `{}`, 403, "forbidden"},
		{"for everybody, by a user", ada, id + "?namespace=public", `{}`, 403, "forbidden"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.who.send(t, "PUT", "/api/v1/defaults/"+tt.path, tt.body).wantProblem(t, tt.status, tt.code)
		})
	}
	var records struct {
		Items []struct{ Action, Decision string }
	}
	root.send(t, "GET", "/api/v1/audit?actor="+adaID+"&subject="+id, nil).want(t, 200).into(t, &records)
	denied := 0
	for _, r := range records.Items {
		if r.Action == "skill.upload" && r.Decision == "denied" {
			denied++
		}
	}
	if denied != 2 {
		t.Errorf("the refusals are %+v", records)
	}
}
