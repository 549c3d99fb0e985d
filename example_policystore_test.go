package loadout_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"

	"github.com/loadout-dev/loadout/policy"
	_ "modernc.org/sqlite"
)

// grantTable holds grants in a table of a database.
type grantTable struct{ *sql.DB }

func (t grantTable) List(ctx context.Context, ids []string) (rows []policy.Row, err error) {
	list, _ := json.Marshal(ids) // "null" for all
	found, err := t.QueryContext(ctx, "SELECT id, data FROM grants WHERE ?1 = 'null' OR id IN (SELECT value FROM json_each(?1))", string(list))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var r policy.Row
		if err := found.Scan(&r.ID, &r.Data); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, found.Err()
}

func (t grantTable) Put(ctx context.Context, r policy.Row) error {
	_, err := t.ExecContext(ctx, "INSERT OR REPLACE INTO grants VALUES (?, ?)", r.ID, r.Data)
	return err
}

func (t grantTable) Delete(ctx context.Context, r policy.Row) (bool, error) {
	res, err := t.ExecContext(ctx, "DELETE FROM grants WHERE id = ? AND data = ?", r.ID, r.Data)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// This example keeps approvals in a database. A runtime uses the store if it is
// in [loadout.Scripts].
func Example_policyStore() {
	db, _ := sql.Open("sqlite", "file:grants?mode=memory&cache=shared") // fails for an unknown driver only
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE grants (id TEXT PRIMARY KEY, data BLOB)"); err != nil {
		log.Fatal(err)
	}
	grants, me := policy.NewStore(grantTable{db}), policy.LocalUser()
	g, err := grants.Put(context.Background(), policy.Grant{Principal: me, By: me, Scope: policy.Always, Name: "greet",
		Subject: policy.Digest(fmt.Sprintf("sha256:%064d", 1)), Permissions: policy.Permissions{Run: true}})
	fmt.Println(g.Name, g.Scope, err)
	// Output:
	// greet always <nil>
}
