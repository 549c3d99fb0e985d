package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestSearchConversations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		begin := func(owner string, words map[string]int64, title ...string) string {
			s := must(db.Sessions.Create(ctx, store.Session{Owner: owner}))(t)
			mustDo(t, db.ConversationWords.SetTitle(ctx, s.ID, title))
			mustDo(t, db.ConversationWords.Add(ctx, s.ID, words))
			return s.ID
		}
		one := begin("ada", map[string]int64{"tide": 2, "tables": 3, "潮汐": 3}, "harbour")
		two := begin("ada", map[string]int64{"tides": 5, "moon": 7})
		begin("bob", map[string]int64{"tide": 2, "tables": 2})
		find := func(words ...string) string {
			t.Helper()
			found := every(t, func(p store.Page) ([]store.SessionMatch, string, error) {
				return db.ConversationWords.Search(ctx, "ada", words, p)
			})
			return strings.Join(names(found, func(m store.SessionMatch) string {
				return fmt.Sprint(map[string]string{one: "one", two: "two"}[m.ID], m.Steps)
			}), " ")
		}
		for _, tt := range []struct {
			query, want string
		}{
			{"tide", "two[5] one[2]"},
			{"tides", "two[5]"},
			{"ide", ""}, // only the start of a word
			{"tide tables", "one[2 3]"},
			{"tide moon tables", ""},
			{"harbour", "one[0]"},
			{"harb tab", "one[0 3]"},
			{"潮", "one[3]"},
			{"3", ""}, // a number of a step
			{"%", ""},
			{"_oon", ""},
		} {
			if got := find(strings.Fields(tt.query)...); got != tt.want {
				t.Errorf("%q finds %s, want %s", tt.query, got, tt.want)
			}
		}
		if got := find(); got != "" {
			t.Errorf("no words find %s", got)
		}

		mustDo(t, db.ConversationWords.Add(ctx, two, map[string]int64{"moon": 9, "sun": 9}))
		wantEqual(t, find("moon"), "two[9]")
		mustDo(t, db.ConversationWords.SetTitle(ctx, one, []string{"quay"}))
		wantEqual(t, find("harbour")+find("quay"), "one[0]")
		wantError(t, db.ConversationWords.Add(ctx, "none", map[string]int64{"a": 1}), store.ErrNotFound)
		wantError(t, db.ConversationWords.SetTitle(ctx, "none", []string{"a"}), store.ErrNotFound)
		_, _, err := db.ConversationWords.Search(ctx, "ada", []string{"tide"}, store.Page{After: "x"})
		wantError(t, err, store.ErrInvalid)
		mustDo(t, db.Sessions.Delete(ctx, two))
		wantEqual(t, find("moon")+find("tides"), "")
	})
}

// Many words that are added at once are stored in several parts, too.
func TestManyConversationWords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		words := map[string]int64{}
		for i := range 10_000 {
			words[fmt.Sprintf("word%dx", i)] = int64(1 + i/5000)
		}
		mustDo(t, db.ConversationWords.Add(ctx, s.ID, words))
		mustDo(t, db.ConversationWords.Add(ctx, s.ID, map[string]int64{"word3x": 3, "new": 3}))
		for _, size := range must(store.QueryInts(ctx, db, "SELECT octet_length(words) FROM conversation_words"))(t) {
			if size > 17<<10 {
				t.Errorf("a part has %d bytes", size)
			}
		}
		for word, want := range map[string]int64{"word3x": 3, "word4x": 1, "word9999x": 2, "new": 3} {
			found, _, err := db.ConversationWords.Search(ctx, "ada", []string{word}, store.Page{})
			mustDo(t, err)
			if len(found) != 1 || found[0].Steps[0] != want {
				t.Errorf("%s is in %+v, want step %d", word, found, want)
			}
		}
	})
}

// A long conversation has several parts. Adding to it rewrites only the last one.
func TestConversationWordsHaveParts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		for step := range int64(60) {
			words := map[string]int64{"again": step + 1}
			for i := range 100 {
				words[fmt.Sprintf("word%dof%dx", i, step)] = step + 1
			}
			mustDo(t, db.ConversationWords.Add(ctx, s.ID, words))
		}
		sizes := must(store.QueryInts(ctx, db, "SELECT octet_length(words) FROM conversation_words ORDER BY step"))(t)
		if len(sizes) < 4 {
			t.Errorf("the sizes of the parts are %d", sizes)
		}
		for _, size := range sizes {
			if size > 20<<10 {
				t.Errorf("a part has %d bytes", size)
			}
		}
		for word, want := range map[string]int64{"again": 60, "word7of3x": 4, "word7of59x": 60} {
			found, _, err := db.ConversationWords.Search(ctx, "ada", []string{word}, store.Page{})
			mustDo(t, err)
			if len(found) != 1 || found[0].Steps[0] != want {
				t.Errorf("%s is in %+v, want step %d", word, found, want)
			}
		}
	})
}

// The migration queues the conversations of older programs.
func TestMigrationQueuesConversations(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		db := must(store.OpenAt(ctx, address, 22))(t)
		must(store.Exec(ctx, db, "INSERT INTO sessions (id, owner, title, agent, data, generation, created, updated) VALUES ('old', 'ada', '', '', '{}', 1, 1, 1)"))(t)
		mustDo(t, db.Close())
		db = must(store.Open(ctx, address, nil))(t)
		defer db.Close()
		wantEqual(t, must(db.ConversationWords.ListUnindexed(ctx, "", 10))(t), []string{"old"})
	})
}

func TestUnindexedConversations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		one := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t).ID
		two := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t).ID
		list := func() []string { return must(db.ConversationWords.ListUnindexed(ctx, "", 10))(t) }
		if got := list(); len(got) > 0 {
			t.Errorf("new conversations %s are not indexed", got)
		}
		must(store.Exec(ctx, db, "INSERT INTO unindexed_sessions (session) SELECT id FROM sessions"))(t)
		wantEqual(t, list(), []string{two, one})
		wantEqual(t, must(db.ConversationWords.ListUnindexed(ctx, two, 10))(t), []string{one})
		mustDo(t, db.ConversationWords.SetIndexed(ctx, two))
		wantEqual(t, list(), []string{one})
		mustDo(t, db.Sessions.Delete(ctx, one))
		wantEqual(t, len(list()), 0)
	})
}
