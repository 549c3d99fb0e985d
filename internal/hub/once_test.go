package hub_test

import (
	"database/sql"
	"maps"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A client repeats every request on another node: nothing is created twice, and it
// gets the same responses.
func TestRequestsAreRepeatedOnAnotherNode(t *testing.T) {
	address := storetest.Postgres(t)
	keys := []encryption.Key{encryption.NewKey()}
	var nodes []caller
	for range 2 {
		n := start(t, hub.Options{Database: address, Keys: keys, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}})
		nodes = append(nodes, n.signIn(t, "root", secret))
	}
	db := must(sql.Open("pgx", address))(t)
	defer db.Close()
	rows := func() map[string]int64 {
		out := map[string]int64{}
		for _, table := range []string{"users", "groups", "tokens", "sessions", "requests"} {
			var n int64
			if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			out[table] = n
		}
		return out
	}
	for i, c := range []struct {
		path string
		body map[string]any
	}{
		{"/api/v1/users", map[string]any{"name": "ada", "password": secret}},
		{"/api/v1/groups", map[string]any{"name": "crew"}},
		{"/api/v1/tokens", map[string]any{"name": "t", "scopes": []string{"read"}}},
		{"/api/v1/sessions", map[string]any{"title": "Tides", "message": "Hello."}},
	} {
		key := strings.Repeat("k", i+1)
		first := nodes[0].with("Idempotency-Key", key).send(t, "POST", c.path, c.body).want(t, 201)
		before := rows()
		again := nodes[1].with("Idempotency-Key", `"`+key+`"`).send(t, "POST", c.path, c.body).want(t, 201)
		if again.body != first.body || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%s: %s, then %s", c.path, first.body, again.body)
		}
		if after := rows(); !maps.Equal(after, before) {
			t.Errorf("%s: rows %v, then %v", c.path, before, after)
		}
		nodes[1].with("Idempotency-Key", key).send(t, "POST", c.path, map[string]any{"other": true}).wantProblem(t, 422, "key_used")
	}
}

// A user who has lost a permission since, or cannot read the result any more, does
// not get the recorded response, and the request is not executed again.
func TestRepetitionNeedsPermission(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			n := start(t, hub.Options{Database: address(t), Keys: []encryption.Key{encryption.NewKey()}, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}})
			root := n.signIn(t, "root", secret)
			id, ann := n.newUser(t, root, "ann")
			setAdmin := func(admin bool) {
				t.Helper()
				root.send(t, "PATCH", "/api/v1/users/"+id, map[string]any{"admin": admin}).want(t, 200)
			}
			setAdmin(true)
			user := map[string]any{"name": "eve", "password": secret}
			token := map[string]any{"name": "t", "scopes": []string{"read"}}
			post := func(key, path string, body any) reply {
				t.Helper()
				return ann.with("Idempotency-Key", key).send(t, "POST", path, body)
			}
			post("user", "/api/v1/users", user).want(t, 201)
			post("token", "/api/v1/tokens", token).want(t, 201)
			session := post("session", "/api/v1/sessions", map[string]any{"title": "Tides"}).want(t, 201).header.Get("Location")
			post("cancel", session+"/cancel", nil).want(t, 204)

			post("user", "/api/v1/users", user).want(t, 201)
			post("cancel", session+"/cancel", nil).want(t, 204)
			setAdmin(false)
			post("user", "/api/v1/users", user).wantProblem(t, 409, "key_hidden")
			post("token", "/api/v1/tokens", token).wantProblem(t, 409, "key_hidden")
			setAdmin(true)
			post("token", "/api/v1/tokens", token).want(t, 201)
			post("session", "/api/v1/sessions", map[string]any{"title": "Tides"}).want(t, 201)
			ann.send(t, "DELETE", session, nil).want(t, 204)
			post("session", "/api/v1/sessions", map[string]any{"title": "Tides"}).wantProblem(t, 409, "key_hidden")
			post("cancel", session+"/cancel", nil).wantProblem(t, 409, "key_hidden")
		})
	}
}

// A token that may not read what it created still gets the recorded response.
func TestRepetitionWithoutReadScope(t *testing.T) {
	n := start(t, hub.Options{Database: storetest.SQLite(t), Keys: []encryption.Key{encryption.NewKey()}, Accounts: true, FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}})
	root := n.signIn(t, "root", secret)
	for scope, c := range map[string]struct {
		path string
		body map[string]any
	}{
		"admin": {"/api/v1/users", map[string]any{"name": "eve", "password": secret}},
		"chat":  {"/api/v1/sessions", map[string]any{"title": "Tides"}},
	} {
		program := caller{node: n, token: root.send(t, "POST", "/api/v1/tokens", map[string]any{"name": scope, "scopes": []string{scope}}).want(t, 201).text(t, "token")}
		for range 2 {
			program.with("Idempotency-Key", "k"+scope).send(t, "POST", c.path, c.body).want(t, 201)
		}
	}
}
