package hub_test

import (
	"context"
	"errors"
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

func TestSkillsAreAddedFromIndex(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		adaID, ada := n.newUser(t, root, "ada")
		group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
		root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+adaID, map[string]string{"role": "reporter"}).want(t, 204)
		upload := func(c caller, query, name, text string) {
			c.send(t, "POST", "/api/v1/skills"+query, zipped(t, name, text, "scripts/run.sh", "#!/bin/sh\n")).want(t, 201)
		}
		upload(ada, "", "own", "Mine.")
		upload(ada, "", "twice", "Mine.")
		upload(root, "?namespace=team", "twice", "The group's.")
		upload(root, "?namespace=team", "shared", "The group's.")
		upload(root, "?namespace=public", "everybodys", "Everybody's.")
		upload(root, "", "roots", "Of somebody else.")

		token := ada.send(t, "POST", "/api/v1/tokens", map[string]any{"name": "cli", "scopes": []string{"read"}}).want(t, 201).text(t, "token")
		for range 2 { // the second time the digests are known
			offer := must(hubIndex(t, n, token))(t)
			var got []string
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
			// Of everybody's skills packages are not given to everybody: W30.
			wantOutcome(t, got, []string{"own: Mine.", "shared: The group's.", "twice: Mine."})
			if err := offer.Close(); err != nil || len(offer.Problems) > 0 {
				t.Errorf("problems %v, error %v", offer.Problems, err)
			}
		}
	})
}

func TestIndexRequiresSignIn(t *testing.T) {
	n := team(t)
	_, err := hubIndex(t, n, "")
	if denied, ok := errors.AsType[*remote.DeniedError](err); !ok || denied.CredentialSent {
		t.Errorf("error %v, want that a credential is asked for", err)
	}
	_, err = hubIndex(t, n, "lo_wrong")
	if denied, ok := errors.AsType[*remote.DeniedError](err); !ok || !denied.CredentialSent {
		t.Errorf("error %v, want that the credential is refused", err)
	}
	r := n.anybody().send(t, http.MethodGet, "/.well-known/agent-skills/index.json", nil)
	r.wantProblem(t, 401, "sign_in")
}
