package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// hubIndex looks at the index of a hub, as a program does that adds skills.
func hubIndex(t testing.TB, n *node, token string) (*remote.Collection, error) {
	t.Helper()
	c := remote.New(&remote.Options{
		TempDir: t.TempDir(), Private: func(host string) bool { return host == "127.0.0.1" },
		Credential: func(context.Context, string) (*remote.Credential, error) {
			if token == "" {
				return nil, nil
			}
			return &remote.Credential{Password: token}, nil
		},
	})
	return c.Open(t.Context(), must(remote.Parse(n.URL, ""))(t))
}

// offered returns the name and the instructions of each skill in a user's index.
func offered(t testing.TB, n *node, token string) []string {
	t.Helper()
	offer := must(hubIndex(t, n, token))(t)
	got := []string{}
	for _, s := range offer.Skills {
		b := must(offer.OpenSkill(t.Context(), s))(t)
		parsed, _, err := skill.Parse(b.FS, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Name+": "+strings.TrimSpace(parsed.Instructions))
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := offer.Close(); err != nil || len(offer.Problems) > 0 {
		t.Errorf("problems %v, error %v", offer.Problems, err)
	}
	return got
}

// Members install the skills that they may use: their own, those of their groups and
// public ones, but not those that are hidden or whose code is awaiting review.
func TestMembersInstallWhatTheyMayUse(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		adaID, ada := n.newUser(t, root, "ada")
		_, bob := n.newUser(t, root, "bob")
		group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
		member := "/api/v1/groups/" + group + "/members/" + adaID
		root.send(t, "PUT", member, map[string]string{"role": "reporter"}).want(t, 204)
		upload := func(c caller, query, name, text string) string {
			return c.send(t, "POST", "/api/v1/skills"+query, zipped(t, name, text, "scripts/run.sh", "#!/bin/sh\n")).want(t, 201).text(t, "id")
		}
		approve := func(id string, number int) {
			at := fmt.Sprintf("/api/v1/skills/%s/versions/%d", id, number)
			digest := root.send(t, "GET", at, nil).want(t, 200).text(t, "digest")
			root.send(t, "PUT", at+"/review", map[string]string{"decision": "approved", "digest": digest}).want(t, 204)
		}
		upload(ada, "", "own", "Mine.")
		upload(ada, "", "twice", "Mine.")
		approve(upload(root, "?namespace=team", "twice", "The group's."), 1)
		shared := upload(root, "?namespace=team", "shared", "The group's.")
		everybodys := upload(root, "?namespace=public", "everybodys", "Everybody's.")
		upload(root, "", "roots", "Of somebody else.")
		token := func(c caller) (id, text string) {
			r := c.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "cli", "scopes": []string{"read"}}).want(t, 201)
			return r.text(t, "id"), r.text(t, "token")
		}
		adaToken, adas := token(ada)
		_, bobs := token(bob)
		wantEqual(t, offered(t, n, adas), []string{"own: Mine.", "twice: Mine."}) // the others are awaiting review
		approve(shared, 1)
		approve(everybodys, 1)
		for range 2 { // the second time the digests are known
			wantEqual(t, offered(t, n, adas), []string{"everybodys: Everybody's.", "own: Mine.", "shared: The group's.", "twice: Mine."})
			wantEqual(t, offered(t, n, bobs), []string{"everybodys: Everybody's."})
		}
		bob.send(t, "GET", "/api/v1/skills/"+shared+"/versions/1/package", nil).wantProblem(t, 404, "not_found")

		second := root.send(t, "POST", "/api/v1/skills/"+shared+"/versions", zipped(t, "shared", "Pending.", "scripts/run.sh", "#!/bin/sh\necho\n")).want(t, 201)
		ada.send(t, "GET", "/api/v1/skills/"+shared+"/versions/2/package", nil).wantProblem(t, 403, "not_reviewed")
		root.send(t, "PATCH", "/api/v1/skills/"+everybodys, map[string]bool{"hidden": true}).want(t, 200)
		wantEqual(t, offered(t, n, adas), []string{"own: Mine.", "shared: The group's.", "twice: Mine."})
		ada.send(t, "GET", "/api/v1/skills/"+everybodys+"/versions/1/package", nil).wantProblem(t, 404, "not_found")
		root.send(t, "PUT", "/api/v1/skills/"+shared+"/versions/2/review", map[string]string{"decision": "approved", "digest": second.text(t, "digest")}).want(t, 204)
		wantEqual(t, offered(t, n, adas), []string{"own: Mine.", "shared: Pending.", "twice: Mine."})

		approve(upload(root, "?namespace=public", "shared", "Everybody's."), 1)
		upload(root, "?namespace=team", "other", "The group's.") // is awaiting review
		approve(upload(root, "?namespace=public", "other", "Everybody's."), 1)
		wantEqual(t, offered(t, n, adas), []string{"other: Everybody's.", "own: Mine.", "shared: Pending.", "twice: Mine."})

		root.send(t, "DELETE", member, nil).want(t, 204)
		wantEqual(t, offered(t, n, adas), []string{"other: Everybody's.", "own: Mine.", "shared: Everybody's.", "twice: Mine."})
		ada.send(t, "DELETE", "/api/v1/tokens/"+adaToken, nil).want(t, 204)
		if _, err := hubIndex(t, n, adas); !isDeniedWith(err, true) {
			t.Errorf("with a revoked token: %v", err)
		}
	})
}

// isDeniedWith reports whether err says that the hub refused access, with or without a
// credential.
func isDeniedWith(err error, sent bool) bool {
	denied, ok := errors.AsType[*remote.DeniedError](err)
	return ok && denied.CredentialSent == sent
}

func TestIndexRequiresSignIn(t *testing.T) {
	n := team(t)
	_, err := hubIndex(t, n, "")
	if !isDeniedWith(err, false) {
		t.Errorf("error %v, want that a credential is asked for", err)
	}
	_, err = hubIndex(t, n, "lo_wrong")
	if !isDeniedWith(err, true) {
		t.Errorf("error %v, want that the credential is refused", err)
	}
	r := n.anybody().send(t, http.MethodGet, "/.well-known/agent-skills/index.json", nil)
	r.wantProblem(t, 401, "sign_in")
}
