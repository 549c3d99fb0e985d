package users_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestInvalidRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		good := account.GroupRule{Claimed: strings.Repeat("x", 255), Group: web, Role: account.Reporter}
		many := func(n int) []account.GroupRule {
			rules := make([]account.GroupRule, n)
			for i := range rules {
				rules[i] = good
			}
			return rules
		}
		for _, tt := range []struct {
			rules []account.GroupRule
			field string
		}{
			{[]account.GroupRule{good, {Claimed: " ", Admin: true}}, "rules[1].claimed"},
			{[]account.GroupRule{{Claimed: strings.Repeat("x", 256), Admin: true}}, "rules[0].claimed"},
			{[]account.GroupRule{{Claimed: "a"}}, "rules[0]"},
			{[]account.GroupRule{{Claimed: "a", Group: web}}, "rules[0].role"},
			{[]account.GroupRule{{Claimed: "a", Group: "missing", Role: account.Owner}}, "rules"},
			{many(users.MaxRules + 1), "rules"},
		} {
			_, err := p.SignIns.SetRules(ctx, boss, users.Rules{Rules: tt.rules})
			wantInvalid(t, err, tt.field)
		}
		if got := must(p.SignIns.Rules(ctx, boss))(t); len(got.Rules) != 0 || got.Rules == nil || got.Generation != 0 {
			t.Errorf("rules are %+v", got)
		}
		set := must(p.SignIns.SetRules(ctx, boss, users.Rules{Rules: many(users.MaxRules)}))(t)
		if got := must(p.SignIns.Rules(ctx, boss))(t); len(got.Rules) != users.MaxRules || got.Rules[0] != good || got.Generation != set.Generation {
			t.Errorf("%d rules of generation %d, want %d", len(got.Rules), got.Generation, set.Generation)
		}
		ann := newMember(t, p, "ann", web, account.Owner)
		_, err := p.SignIns.Rules(ctx, ann)
		wantDenied(t, err)
		_, err = p.SignIns.SetRules(ctx, ann, users.Rules{})
		wantDenied(t, err)
	})
}

// A setting that cannot be read is reported, not replaced by the default.
func TestDamagedSettings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		for _, name := range []string{"sign_in", "audit"} {
			if _, err := db.Settings.Set(ctx, store.Setting{Scope: "hub", Name: name, Value: []byte(`"text"`)}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := p.SignIns.Rules(ctx, boss)
		wantError(t, err, store.ErrCorrupt)
		_, err = p.SignIns.ByProvider(ctx, &account.Identity{Issuer: "https://id.example.com", Subject: "1", Name: "ann"}, true)
		wantError(t, err, store.ErrCorrupt)
		_, err = p.Audit.Retention(ctx, boss)
		wantError(t, err, store.ErrCorrupt)
		_, err = p.Audit.Prune(ctx)
		wantError(t, err, store.ErrCorrupt)
	})
	db := storetest.Open(t, storetest.SQLite(t))
	p := core(t, db)
	mustDo(t, db.Close())
	if _, err := p.Audit.Retention(t.Context(), boss); err == nil {
		t.Error("a closed database has the default retention")
	}
}

func TestAuditRetention(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		for _, days := range []int{-1, 36501} {
			_, err := p.Audit.SetRetention(ctx, boss, users.Retention{Days: days})
			wantInvalid(t, err, "days")
		}
		at := func(days int) time.Time { return time.Now().AddDate(0, 0, -days) }
		for _, days := range []int{40000, 20, 1} {
			mustDo(t, db.Audit.Append(ctx, store.AuditRecord{Actor: "ann", Action: "old", Decision: "allowed", At: at(days)}))
		}
		r := users.Retention{}
		for _, tt := range []struct{ days, deleted int }{{0, 0}, {36500, 1}, {10, 1}, {10, 0}} {
			r.Days = tt.days
			r = must(p.Audit.SetRetention(ctx, boss, r))(t)
			if n, err := p.Audit.Prune(ctx); err != nil || n != int64(tt.deleted) {
				t.Errorf("%d days: deleted %d %v, want %d", tt.days, n, err, tt.deleted)
			}
		}
	})
}

func TestAuditRecordsAreVisibleToOwners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		ann := newMember(t, p, "ann", web, account.Owner)
		bob := newMember(t, p, "bob", web, account.Maintainer)
		of := func(u account.UserID) store.AuditQuery {
			return store.AuditQuery{Namespace: store.UserNamespace(string(u))}
		}
		group := store.AuditQuery{Namespace: store.GroupNamespace(string(web))}
		for _, tt := range []struct {
			by    account.Principal
			query store.AuditQuery
			ok    bool
		}{
			{ann, of(ann.User), true}, {ann, of(bob.User), false}, {ann, group, true}, {bob, group, false}, {boss, group, true}, {boss, of(ann.User), true},
			{ann, store.AuditQuery{Actor: string(ann.User)}, true}, {ann, store.AuditQuery{Actor: string(bob.User)}, false},
			{ann, store.AuditQuery{}, false}, {boss, store.AuditQuery{}, true},
			{ann, store.AuditQuery{Actor: string(ann.User), Namespace: store.UserNamespace(string(bob.User))}, false},
		} {
			if _, err := p.Audit.List(ctx, tt.by, tt.query); tt.ok && err != nil {
				t.Errorf("%s reads %+v: %v", tt.by.Name, tt.query, err)
			} else if !tt.ok {
				wantDenied(t, err)
			}
		}
	})
}

func TestInvalidQuotas(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := store.GroupNamespace(string(must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID))
		override := func(n store.Namespace, bytes int64) quota.Override {
			return quota.Override{Namespace: n, Limits: quota.Amounts{Bytes: bytes}}
		}
		for _, tt := range []struct {
			s     quota.Settings
			field string
		}{
			{quota.Settings{User: quota.Amounts{Bytes: -1}}, "user"},
			{quota.Settings{Group: quota.Amounts{Skills: -1}}, "group"},
			{quota.Settings{User: quota.Amounts{Sessions: -1}}, "user"},
			{quota.Settings{Overrides: []quota.Override{override(web, -1)}}, "overrides[0].limits"},
			{quota.Settings{Overrides: []quota.Override{override(web, 1), override(web, 1)}}, "overrides[1].namespace"},
			{quota.Settings{Overrides: []quota.Override{override(store.Public, 1), override("user:missing", 1)}}, "overrides[1].namespace"},
			{quota.Settings{Overrides: []quota.Override{override("group:missing", 1)}}, "overrides[0].namespace"},
			{quota.Settings{Overrides: []quota.Override{override("", 1)}}, "overrides[0].namespace"},
			{quota.Settings{Overrides: make([]quota.Override, quota.MaxOverrides+1)}, "overrides"},
		} {
			_, err := p.Quotas.SetSettings(ctx, boss, users.QuotaSettings{Settings: tt.s})
			wantInvalid(t, err, tt.field)
		}
		want := quota.Settings{User: quota.Amounts{Bytes: 7}, Overrides: []quota.Override{override("user:boss", 0), override(web, 5), override(store.Public, 6)}}
		set := must(p.Quotas.SetSettings(ctx, boss, users.QuotaSettings{Settings: want}))(t)
		got := must(p.Quotas.Settings(ctx, boss))(t)
		if got.Generation != set.Generation || got.User != want.User || len(got.Overrides) != 3 {
			t.Errorf("the settings are %+v", got)
		}
		_, err := p.Quotas.SetSettings(ctx, boss, users.QuotaSettings{})
		wantError(t, err, store.ErrConflict)
	})
}

func TestStorageUseIsVisibleToItsOwners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		id := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		web := store.GroupNamespace(string(id))
		ann := newMember(t, p, "ann", id, account.Reporter)
		bob := newMember(t, p, "bob", id, account.Outsider)
		must(p.Quotas.SetSettings(ctx, boss, users.QuotaSettings{Settings: quota.Settings{
			User: quota.Amounts{Skills: 3}, Group: quota.Amounts{Skills: 4}, Overrides: []quota.Override{{Namespace: store.UserNamespace(string(ann.User)), Limits: quota.Amounts{Skills: 5}}},
		}}))(t)
		for _, tt := range []struct {
			by    account.Principal
			of    store.Namespace
			limit int64 // 0 if denied
		}{
			{ann, store.UserNamespace(string(ann.User)), 5}, {ann, web, 4}, {ann, store.UserNamespace(string(bob.User)), 0}, {ann, store.Public, 0},
			{bob, store.UserNamespace(string(bob.User)), 3}, {bob, web, 0}, {boss, web, 4}, {boss, store.Public, 4},
		} {
			use, err := p.Quotas.Usage(ctx, tt.by, tt.of)
			if tt.limit == 0 {
				wantDenied(t, err)
			} else if err != nil || use.Limits.Skills != tt.limit || use.Namespace != tt.of {
				t.Errorf("%s sees %+v of %s, %v", tt.by.Name, use, tt.of, err)
			}
		}
		_, err := p.Quotas.Settings(ctx, ann)
		wantDenied(t, err)
		if _, err := p.Quotas.SetSettings(ctx, ann, users.QuotaSettings{}); errors.Is(err, store.ErrConflict) {
			t.Error(err)
		} else {
			wantDenied(t, err)
		}
	})
}
