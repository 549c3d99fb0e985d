//go:build unix

package hub_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// A node that cannot reach its database says so, and answers requests with an error. A
// client repeats them on another node, and later on the first one: each is executed
// once, and gets the same answer.
func TestRequestsOfDisconnectedNodeAreRepeated(t *testing.T) {
	for state, name := range map[relayState]string{lost: "lost packets", reset: "reset connections"} {
		t.Run(name, func(t *testing.T) { testRepeatedRequests(t, state) })
	}
}

func testRepeatedRequests(t *testing.T, state relayState) {
	h, m, l := onPostgres(t), newModel(t, time.Millisecond), newLedger(t)
	r := newRelay(t, h.database)
	one, two := h.start("--database", r.url), h.start()
	one.hire(m, l)
	session := one.begin()
	w := two.watch(session, "")
	db := must(sql.Open("pgx", h.database))(t)
	defer db.Close()

	requests := []struct {
		path string
		body any
	}{
		{"/api/v1/sessions", map[string]string{"title": "Tides"}},
		{"/api/v1/groups", map[string]string{"name": "crew"}},
		{"/api/v1/users", map[string]string{"name": "ada", "password": secret}},
		{session + "/messages", map[string]string{"text": "do: " + calls("write", "once")}},
	}
	send := func(n *node) []reply {
		t.Helper()
		replies, errs := make([]reply, len(requests)), make([]error, len(requests))
		var sending sync.WaitGroup
		for i, q := range requests {
			sending.Go(func() {
				replies[i], errs[i] = n.askOnce(h.token, fmt.Sprint("key-", i), "POST", q.path, q.body)
			})
		}
		sending.Wait()
		for i := range requests {
			must(replies[i], errs[i])(t)
		}
		return replies
	}

	r.set(state)
	for i, a := range send(one) {
		if a.status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("%s without a database: %d %v %s", requests[i].path, a.status, a.header, a.body)
		}
	}
	if ok, status := one.ready(); ok || !strings.Contains(status, "database") {
		t.Errorf("without a database, it is ready: %s", status)
	}
	first := send(two)
	if end := two.until(w, isType(chat.TurnEnded)); end.Reason != chat.Done {
		t.Errorf("the turn ended as %+v", end)
	}
	before := countRows(t, db)
	r.set(forwarding)
	one.eventually("it is ready again", func() bool { ok, _ := one.ready(); return ok })
	for i, a := range send(one) {
		if want := first[i]; a.status/100 != 2 || a.status != want.status || a.body != want.body {
			t.Errorf("%s: %d %s, then %d %s", requests[i].path, want.status, want.body, a.status, a.body)
		}
	}
	if d := cmp.Diff(before, countRows(t, db)); d != "" {
		t.Errorf("rows before and after the repetition (-,+):\n%s", d)
	}
	if n := l.all()["once"]; n != 1 {
		t.Errorf("it was done %d times", n)
	}
}

// background lists the tables that nodes change without requests.
var background = map[string]bool{"leases": true, "meter": true, "meter_pending": true, "own_usage": true, "snapshots": true, "usage": true, "usage_pending": true}

// countRows returns the number of rows of each table that only requests change.
func countRows(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	out := map[string]int{}
	rows := must(db.Query("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"))(t)
	defer rows.Close()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		if !background[table] {
			out[table] = 0
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for table := range out {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		out[table] = n
	}
	return out
}
