package quota_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestExceededErrorText(t *testing.T) {
	for want, e := range map[string]quota.ExceededError{
		"quota of the user exceeded (storage: 999.9 kB + 0.5 kB, limit 1.0 MB)":             {Namespace: "user:ada", Measure: quota.Bytes, Used: 999_949, Added: 500, Limit: 1_000_000},
		"quota of the group exceeded (skills: 2000 + 1, limit 2000)":                        {Namespace: "group:g", Measure: quota.Skills, Used: 2000, Added: 1, Limit: 2000},
		"quota of the public namespace exceeded (conversations: 0 + 1000000, limit 999999)": {Namespace: "public", Measure: quota.Sessions, Added: 1_000_000, Limit: 999_999},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Exactly the limit fits, and a limit does not depend on what is stored elsewhere.
func TestLimitsAreInclusive(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	q := quota.Quotas{Default: quota.Settings{User: quota.Amounts{Bytes: 100, Skills: 1, Sessions: 1}}}
	for add, fits := range map[quota.Amounts]bool{
		{Bytes: 100, Skills: 1, Sessions: 1}: true, {Bytes: 101}: false, {Skills: 2}: false, {Sessions: 2}: false, {Bytes: -5}: true, {}: true,
	} {
		if err := q.Check(t.Context(), &db.Tables, "user:ada", add); (err == nil) != fits {
			t.Errorf("adding %+v: %v", add, err)
		}
	}
	// With the lowest limit, what is stored counts too.
	talk, err := db.Sessions.Create(t.Context(), store.Session{Owner: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Attachments.Put(t.Context(), store.Attachment{Session: talk.ID, Path: "a", SHA256: strings.Repeat("0", 64)}, make([]byte, 300)); err != nil {
		t.Fatal(err)
	}
	left, err := (quota.Quotas{Default: quota.Settings{User: quota.Amounts{Bytes: 1}}}).Allowance(t.Context(), &db.Tables, "user:bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Add(1); err == nil {
		t.Error("beyond the lowest limit, a byte is added")
	}
	if err := left.Add(0); err != nil {
		t.Errorf("beyond the limit, nothing cannot be added: %v", err)
	}
	used, limits, err := q.Usage(t.Context(), &db.Tables, "user:ada")
	if err != nil || used != (quota.Amounts{}) || limits != q.Default.User {
		t.Errorf("usage %+v of %+v, %v", used, limits, err)
	}
	if _, err := db.Sessions.Create(t.Context(), store.Session{Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	if used, _, err := q.Usage(t.Context(), &db.Tables, "user:ada"); err != nil || used.Sessions != 1 {
		t.Errorf("usage %+v, %v", used, err)
	}
	if n := (quota.Settings{User: quota.Amounts{Skills: 1}, Group: quota.Amounts{Skills: 1}}).Limits("hub"); n != (quota.Amounts{}) {
		t.Errorf("the hub's own namespace has limits %+v", n)
	}
	s := quota.Settings{Overrides: []quota.Override{{Namespace: "user:ada"}}}
	if !s.HasOverride("user:ada") || s.HasOverride("user:bob") {
		t.Error("HasOverride")
	}
}

// Without readable settings or amounts nothing is added.
func TestUnreadableAmounts(t *testing.T) {
	q := quota.Quotas{Default: quota.Default()}
	all := func(t *testing.T, what string, db *store.DB, want error) {
		t.Helper()
		_, err := q.Allowance(t.Context(), &db.Tables, "user:ada")
		_, _, usage := q.Usage(t.Context(), &db.Tables, "user:ada")
		for name, err := range map[string]error{
			"Check": q.Check(t.Context(), &db.Tables, "user:ada", quota.Amounts{Skills: 1}), "Allowance": err, "Usage": usage,
		} {
			if err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
	db := storetest.Open(t, storetest.SQLite(t))
	generation := int64(0)
	set := func(value string) {
		t.Helper()
		var err error
		generation, err = db.Settings.Set(t.Context(), store.Setting{Scope: quota.SettingScope, Name: quota.SettingName, Value: json.RawMessage(value), Generation: generation})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(`{"user":"no object"}`)
	all(t, "damaged setting", db, store.ErrCorrupt)
	set(`{"user":{"bytes":1,"skills":1,"sessions":1}}`)
	if s, current, err := q.Settings(t.Context(), db.Settings); err != nil || current != generation || s.User.Bytes != 1 {
		t.Errorf("settings %+v, generation %d, %v", s, current, err)
	}
	for table, all := range map[string]bool{"settings": true, "skills": true, "sessions": false} { // bytes are those of skills too
		address := storetest.SQLite(t)
		db := storetest.Open(t, address)
		storetest.DropTable(t, address, table)
		_, allowance := q.Allowance(t.Context(), &db.Tables, "user:ada")
		_, _, usage := q.Usage(t.Context(), &db.Tables, "user:ada")
		add := quota.Amounts{Skills: 1, Sessions: 1}
		if check := q.Check(t.Context(), &db.Tables, "user:ada", add); check == nil || usage == nil || all && allowance == nil {
			t.Errorf("without the table %s: %v, %v, %v", table, check, usage, allowance)
		}
	}
}
