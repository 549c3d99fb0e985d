package assembly_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A list that is too long begins with the skills that the user used before today. It
// is the same on all nodes, and shows nothing of other users.
func TestSkillOrderFollowsOwnUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		w := newFixture(t, db)
		must(t, w.chat.Close(t.Context())) // only this test merges uses
		ids := map[string]string{}
		for i := range 60 {
			name := fmt.Sprintf("skill-%02d", i)
			ids[name] = w.upload(w.root, store.Public, name, tree(name, "", strings.Repeat("It helps. ", 5))).ID
		}
		hidden := w.upload(w.root, store.Public, "for-users", tree("for-users", "description: For users.\ndisable-model-invocation: true", "Text."))
		now := time.Now()
		use := func(p account.Principal, skill string, n int, daysAgo int) {
			t.Helper()
			must(t, db.Usage.Add(t.Context(), store.SkillUsage{SkillID: skill, Owner: string(p.User), Loads: int64(n), LastUsed: now}))
			must(t, db.MergeUsage(t.Context(), now.AddDate(0, 0, -daysAgo)))
		}
		const days = 3 // before today, whatever the time of day is
		use(w.ada, ids["skill-40"], 5, days)
		use(w.ada, ids["skill-50"], 6, days)
		use(w.ada, ids["skill-30"], 50, days+2*30+1) // weighs a quarter
		use(w.ada, ids["skill-20"], 100, 95)         // too long ago
		use(w.ada, hidden.ID, 100, days)
		use(w.bob, ids["skill-55"], 9, days)

		first := func(p account.Principal, after ...string) []string {
			k, err := w.kits.Open(t.Context(), assembly.Request{Principal: p})
			must(t, err)
			defer k.Close()
			text := k.Runtime.Catalog().Snapshot().Text(catalog.FormatOptions{Characters: 400, First: func() []string { keys, _ := k.FirstSkills(t.Context()); return keys }})
			var out []string
			for line := range strings.Lines(text) {
				name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ":")
				out = append(out, name)
			}
			return out[:4]
		}
		want := []string{"skill-30", "skill-50", "skill-40", "skill-00"}
		if got := first(w.ada); !slices.Equal(got, want) {
			t.Errorf("ada's list begins with %v, want %v", got, want)
		}
		if got := first(w.bob); !slices.Equal(got, []string{"skill-55", "skill-00", "skill-01", "skill-02"}) {
			t.Errorf("bob's list begins with %v", got)
		}
		if got := first(w.eve); !slices.Equal(got, []string{"skill-00", "skill-01", "skill-02", "skill-03"}) {
			t.Errorf("the list of a user who used none begins with %v", got)
		}
		use(w.ada, ids["skill-59"], 1000, 0)
		other := assembly.New(assembly.Options{DB: db, Library: w.lib, Agents: w.kinds, Dir: t.TempDir()})
		t.Cleanup(func() { must(t, other.Close()) })
		k, err := other.Open(t.Context(), assembly.Request{Principal: w.ada})
		must(t, err)
		defer k.Close()
		var names []string
		keys, ok := k.FirstSkills(t.Context())
		if !ok {
			t.Error("the order cannot be read")
		}
		for _, key := range keys {
			e, err := k.Runtime.Catalog().Snapshot().Get(key)
			must(t, err)
			names = append(names, e.Name)
		}
		if !slices.Equal(names, want[:3]) {
			t.Errorf("after a use today, another node orders %v", names)
		}
	})
}

// A node whose clock is ahead may have stored uses of a later day.
func TestSkillOrderWithLaterUses(t *testing.T) {
	w := sqlite(t)
	must(t, w.chat.Close(t.Context())) // only this test merges uses
	id := w.upload(w.root, store.Public, "tides", tree("tides", "", "Text.")).ID
	for _, days := range []int{400, 402} {
		must(t, w.db.Usage.Add(t.Context(), store.SkillUsage{SkillID: id, Owner: string(w.ada.User), Loads: 1, LastUsed: time.Now()}))
		must(t, w.db.MergeUsage(t.Context(), time.Now().AddDate(0, 0, days)))
	}
	k, err := w.kits.Open(t.Context(), assembly.Request{Principal: w.ada})
	must(t, err)
	defer k.Close()
	if keys, ok := k.FirstSkills(t.Context()); len(keys) != 1 || !ok {
		t.Errorf("first skills %v, %t", keys, ok)
	}
}

// A failure of the database does not fix the unordered text for the day, nor does
// each request wait for the database.
func TestSkillOrderAfterFailure(t *testing.T) {
	address := storetest.SQLite(t)
	w := newFixture(t, storetest.Open(t, address))
	must(t, w.chat.Close(t.Context())) // only this test merges uses
	long := strings.Repeat("It reads, writes and converts many kinds of documents. ", 8)
	var last string
	for i := range 150 {
		name := fmt.Sprintf("skill-%03d", i)
		last = w.upload(w.root, store.Public, name, tree(name, "description: "+long, "Text.")).ID
	}
	must(t, w.db.Usage.Add(t.Context(), store.SkillUsage{SkillID: last, Owner: string(w.ada.User), Loads: 1, LastUsed: time.Now()}))
	must(t, w.db.MergeUsage(t.Context(), time.Now().AddDate(0, 0, -3)))
	k, err := w.kits.Open(t.Context(), assembly.Request{Principal: w.ada})
	must(t, err)
	defer k.Close()
	check := func(when string, ctx context.Context, want bool) {
		t.Helper()
		if keys, ok := k.FirstSkills(ctx); ok != want || (len(keys) == 1) != want {
			t.Errorf("%s: first skills %v, %t", when, keys, ok)
		}
		if text := k.CatalogText(ctx); strings.HasPrefix(text, "- skill-149") != want || !strings.Contains(text, "skill-000") {
			t.Errorf("%s: the list begins with %.100q", when, text)
		}
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:"))
	must(t, err)
	defer db.Close()
	rename := func(from, to string) {
		t.Helper()
		_, err := db.Exec("ALTER TABLE " + from + " RENAME TO " + to)
		must(t, err)
	}
	rename("own_usage", "gone")
	check("while the database fails", t.Context(), false)
	rename("gone", "own_usage")
	check("shortly after the failure", t.Context(), false)
	k.EndOrderRetry()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	check("for a request that has ended", gone, false)
	check("later", t.Context(), true)
	rename("own_usage", "gone")
	check("on the same day", t.Context(), true)
}

// The instructions of a conversation on the page have the same order.
func TestConversationListsOwnSkillsFirst(t *testing.T) {
	address := storetest.SQLite(t)
	w := newFixture(t, storetest.Open(t, address))
	long := strings.Repeat("It reads, writes and converts many kinds of documents. ", 8)
	var last string
	for i := range 150 {
		name := fmt.Sprintf("skill-%03d", i)
		last = w.upload(w.root, store.Public, name, tree(name, "description: "+long, "Text.")).ID
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:")+"?_pragma=busy_timeout(10000)")
	must(t, err)
	defer db.Close()
	_, err = db.Exec("INSERT INTO own_usage (owner, skill_id, day, uses, earlier_day, earlier_uses) VALUES (?, ?, ?, 3, 0, 0)",
		string(w.ada.User), last, time.Now().Unix()/(24*60*60)-3)
	must(t, err)
	w.say(w.ada, w.begin(w.ada, ""), "hello")
	_, list, ok := strings.Cut(w.model.last().Instructions, "\nSkills:\n")
	if !ok || !strings.HasPrefix(list, "- skill-149: ") {
		t.Errorf("the list begins with %.100q", list)
	}
}
