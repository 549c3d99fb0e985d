package hub_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
)

func TestSkillSettingsOverHTTP(t *testing.T) {
	_, root, ada := rootAndAda(t, hub.Options{})
	const path = "/api/v1/settings/skills"
	wantEqual(t, root.send(t, "GET", path, nil).want(t, 200).body, `{"enabled":true,"allow":[],"generation":0}`+"\n")
	ada.apply(t, "", "kind: Ghost\nmetadata: {name: g}\n").want(t, 200)

	off := map[string]any{"enabled": false, "allow": []string{"pdf", "team-*@>=1.0.0"}, "generation": 0}
	ada.send(t, "PUT", path, off).wantProblem(t, 403, "forbidden")
	wantEqual(t, root.send(t, "PUT", path, off).want(t, 200).body, root.send(t, "GET", path, nil).body)
	if ada.profile(t, "Ghost/default/g").Enabled {
		t.Error("skills are on")
	}
	root.send(t, "PUT", path, off).wantProblem(t, 409, "changed")
	on := map[string]any{"enabled": true, "allow": []string{}, "generation": 1}
	root.send(t, "PUT", path, on).want(t, 200)
	if !ada.profile(t, "Ghost/default/g").Enabled {
		t.Error("skills are off")
	}

	group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "web"}).want(t, 201).text(t, "id")
	var me struct{ User struct{ ID string } }
	ada.send(t, "GET", "/api/v1/me", nil).want(t, 200).into(t, &me)
	root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+me.User.ID, map[string]string{"role": "owner"}).want(t, 204)
	ada.send(t, "PUT", path+"?scope=web", map[string]any{"enabled": true, "allow": []string{"pdf"}, "generation": 0}).want(t, 200)
	wantEqual(t, ada.send(t, "GET", path+"?scope=group:"+group, nil).want(t, 200).body, `{"enabled":true,"allow":["pdf"],"generation":1}`+"\n")
	ada.send(t, "PUT", path+"?scope=web", map[string]any{"enabled": true, "allow": []string{"[a"}, "generation": 1}).wantProblem(t, 422, "invalid")
	ada.send(t, "PUT", path+"?scope=default", on).wantProblem(t, 422, "invalid")
	ada.send(t, "GET", path+"?scope=none", nil).wantProblem(t, 404, "not_found")

	log := root.send(t, "GET", "/api/v1/audit?action=settings.write", nil).want(t, 200).body
	if strings.Count(log, `"decision":"allowed"`) != 3 || strings.Count(log, `"decision":"denied"`) != 1 || !strings.Contains(log, `"disabled":true`) {
		t.Error(log)
	}
}
