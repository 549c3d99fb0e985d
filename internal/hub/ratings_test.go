package hub_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/library"
)

func TestRatings(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		adaID, ada := n.newUser(t, root, "ada")
		_, bob := n.newUser(t, root, "bob")
		id := root.send(t, "POST", "/api/v1/skills?namespace=public", zipped(t, "pdf", "Do it.")).want(t, 201).text(t, "id")
		path := "/api/v1/skills/" + id
		ada.send(t, "PUT", path+"/rating", map[string]any{"stars": 2, "words": "Slow."}).want(t, 204)
		ada.send(t, "PUT", path+"/rating", map[string]any{"stars": 4}).want(t, 204)
		bob.send(t, "PUT", path+"/rating", map[string]any{"stars": 5, "words": "Good."}).want(t, 204)

		var list struct {
			Items []struct {
				User, Words string
				Stars       int
			}
			Next string
		}
		bob.send(t, "GET", path+"/ratings", nil).want(t, 200).into(t, &list)
		sum := 0
		for _, r := range list.Items {
			sum += r.Stars
			if r.User == adaID && (r.Stars != 4 || r.Words != "") {
				t.Errorf("what was said before is still there: %+v", r)
			}
		}
		if len(list.Items) != 2 || sum != 9 {
			t.Errorf("the ratings are %+v", list)
		}
		bob.send(t, "GET", path+"/ratings?limit=1", nil).want(t, 200).into(t, &list)
		if len(list.Items) != 1 || list.Next == "" {
			t.Errorf("the first page is %+v", list)
		}

		bob.send(t, "DELETE", path+"/rating", nil).want(t, 204)
		bob.send(t, "DELETE", path+"/rating", nil).wantProblem(t, 404, "not_found")
		for _, body := range []string{`{"stars": 0}`, `{"stars": 6}`, `{}`} {
			bob.send(t, "PUT", path+"/rating", body).wantProblem(t, 422, "invalid")
		}
	})
}

func TestUsage(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		used := ada.send(t, "POST", "/api/v1/skills", zipped(t, "used", "Do it.")).want(t, 201).text(t, "id")
		ada.send(t, "POST", "/api/v1/skills", zipped(t, "young", "Do it.")).want(t, 201)
		now := time.Now()
		for _, u := range []library.Usage{
			{SkillID: used, Loads: 1, Tokens: 10, LastUsed: now.AddDate(0, 0, -5)},
			{SkillID: used, Loads: 2, Calls: 3, Errors: 1, Tokens: 20, LastUsed: now},
		} {
			if err := n.DB().Usage.Add(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
		type use struct {
			Name, Date                   string
			Loads, Calls, Errors, Tokens int
		}
		list := func(path string) []use {
			var out struct {
				Items []struct {
					use
					Used *time.Time
				}
			}
			ada.send(t, "GET", path, nil).want(t, 200).into(t, &out)
			all := []use{}
			for _, i := range out.Items {
				all = append(all, i.use)
			}
			return all
		}
		today, before := now.UTC().Format(time.DateOnly), now.AddDate(0, 0, -5).UTC().Format(time.DateOnly)
		last := use{Date: today, Loads: 2, Calls: 3, Errors: 1, Tokens: 20}
		wantEqual(t, list("/api/v1/skills/"+used+"/usage?days=7"), []use{{Date: before, Loads: 1, Tokens: 10}, last})
		wantEqual(t, list("/api/v1/skills/"+used+"/usage?days=1"), []use{last})
		wantEqual(t, list("/api/v1/usage?days=7"), []use{{Name: "used", Loads: 3, Calls: 3, Errors: 1, Tokens: 30}, {Name: "young"}})
		wantEqual(t, list("/api/v1/usage?days=1&namespace=default"), []use{{Name: "used", Loads: 2, Calls: 3, Errors: 1, Tokens: 20}, {Name: "young"}})
		wantEqual(t, list("/api/v1/usage/unused?days=1"), []use{}) // the other skill is too new to be unused
		ada.send(t, "GET", "/api/v1/usage?days=0", nil).wantProblem(t, 422, "invalid")
	})
}
