package hub_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store"
)

// titles returns the titles of a list of conversations.
func (c caller) titles(t *testing.T, query string) string {
	t.Helper()
	var out struct{ Items []struct{ Title string } }
	c.send(t, "GET", "/api/v1/sessions?"+query, nil).want(t, 200).into(t, &out)
	var all []string
	for _, s := range out.Items {
		all = append(all, s.Title)
	}
	return strings.Join(all, " ")
}

// change changes a conversation.
func (c caller) change(t *testing.T, session string, body map[string]any) reply {
	t.Helper()
	return c.send(t, "PATCH", "/api/v1/sessions/"+session, body)
}

func TestOrganizeConversations(t *testing.T) {
	n, root, ada := rootAndAda(t, hub.Options{})
	talker(t, n)
	ids := map[string]string{}
	for _, title := range []string{"tides", "ships", "moon"} {
		ids[title] = ada.send(t, "POST", "/api/v1/sessions", map[string]string{"title": title}).want(t, 201).text(t, "id")
	}
	work := ada.send(t, "POST", "/api/v1/folders", map[string]string{"name": " Work\n2 "}).want(t, 201)
	if name := work.text(t, "name"); name != "Work 2" {
		t.Errorf("name %q", name)
	}
	folder := work.text(t, "id")
	ada.send(t, "POST", "/api/v1/folders", map[string]string{"name": "Work 2"}).wantProblem(t, 409, "exists")
	for _, name := range []string{"", " \n", strings.Repeat("x", 61)} {
		if r := ada.send(t, "POST", "/api/v1/folders", map[string]string{"name": name}); r.status != 422 {
			t.Errorf("folder %q: %d %s", name, r.status, r.body)
		}
	}
	ada.send(t, "POST", "/api/v1/folders", map[string]string{"name": strings.Repeat("潮", 60)}).want(t, 201)

	// A folder, a pin and the archive do not depend on each other.
	r := ada.change(t, ids["tides"], map[string]any{"folder": folder, "pinned": true}).want(t, 200)
	if r.text(t, "folder") != folder || !strings.Contains(r.body, `"pinned":true`) {
		t.Errorf("conversation %s", r.body)
	}
	ada.change(t, ids["ships"], map[string]any{"folder": folder}).want(t, 200)
	for query, want := range map[string]string{"": "tides moon ships", "folder=none": "tides moon", "folder=" + folder: "tides ships", "archived=true": ""} {
		if got := ada.titles(t, query); got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	var list struct {
		Items []struct {
			ID, Name         string
			Sessions, Pinned int
		}
	}
	ada.send(t, "GET", "/api/v1/folders", nil).want(t, 200).into(t, &list)
	if f := list.Items[0]; f.ID != folder || f.Sessions != 2 || f.Pinned != 1 {
		t.Errorf("folders %+v", list.Items)
	}
	ada.change(t, ids["tides"], map[string]any{"pinned": false}).want(t, 200)
	ada.change(t, ids["ships"], map[string]any{"folder": ""}).want(t, 200)

	// An archived conversation is found, and a message to it ends this.
	ada.change(t, ids["ships"], map[string]any{"archived": true}).want(t, 200)
	if got := ada.titles(t, "") + "|" + ada.titles(t, "archived=true"); got != "moon tides|ships" {
		t.Errorf("lists %q", got)
	}
	if r := ada.send(t, "GET", "/api/v1/sessions/search?q=ships", nil).want(t, 200); !strings.Contains(r.body, `"archived":true`) {
		t.Errorf("search finds %s", r.body)
	}
	ada.change(t, ids["ships"], map[string]any{"title": "Ships"}).want(t, 200)
	ada.send(t, "POST", "/api/v1/sessions/"+ids["ships"]+"/compact", nil).want(t, 202)
	if got := ada.titles(t, "archived=true"); got != "Ships" {
		t.Errorf("archived after a change of the title and a command: %q", got)
	}
	ada.talk(t, "/api/v1/sessions/"+ids["ships"], "hello")
	if got := ada.titles(t, "archived=true"); got != "" {
		t.Errorf("archived after a message: %q", got)
	}

	// Folders are their owner's.
	_, bob := n.newUser(t, root, "bob")
	other := bob.send(t, "POST", "/api/v1/folders", map[string]string{"name": "Work 2"}).want(t, 201).text(t, "id")
	for _, id := range []string{other, "none", "nothing"} {
		ada.change(t, ids["moon"], map[string]any{"folder": id, "title": "changed"}).wantProblem(t, 422, "no_folder")
	}
	ada.send(t, "PATCH", "/api/v1/folders/"+other, map[string]string{"name": "Mine"}).want(t, 404)
	ada.send(t, "DELETE", "/api/v1/folders/"+other, nil).want(t, 404)
	ada.send(t, "PATCH", "/api/v1/folders/"+folder, map[string]string{"name": "Sea"}).want(t, 204)
	ada.send(t, "DELETE", "/api/v1/folders/"+folder, nil).want(t, 204)
	if got := ada.titles(t, "folder=none"); got != "Ships moon tides" {
		t.Errorf("after the folder is deleted: %q", got)
	}
	me := ada.send(t, "GET", "/api/v1/users/me", nil).want(t, 200).text(t, "id")
	for i := range store.MaxFolders - 1 {
		if _, err := n.DB().Folders.Create(t.Context(), store.Folder{Owner: me, Name: strings.Repeat("x", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	ada.send(t, "POST", "/api/v1/folders", map[string]string{"name": "one more"}).wantProblem(t, 409, "too_many")
}
