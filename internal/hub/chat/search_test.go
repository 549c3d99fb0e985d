package chat_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// search returns the conversations that a query finds: the step, and the excerpt with
// the matches in brackets.
func search(t *testing.T, e *chat.Engine, p account.Principal, query string) string {
	t.Helper()
	found, next, err := e.Search(t.Context(), p, query, store.Page{})
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	var out []string
	for _, f := range found {
		text := f.Title
		for i, part := range f.Excerpt {
			if i == 0 {
				text += fmt.Sprintf(" %s: ", f.Role)
			}
			if part.Match {
				part.Text = "[" + part.Text + "]"
			}
			text += part.Text
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "\n")
}

func TestSearch(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func() *store.DB) {
		db := open()
		e := node(t, db, setupFixture{})
		tides, err := e.Create(t.Context(), ada, "", "High water")
		if err != nil {
			t.Fatal(err)
		}
		end(t, e, tides.ID, say(t, e, tides.ID, "When is the tide at Cuxhaven,\n\n  and what of the moon?"))
		send(t, e, tides.ID, chat.Message{Text: "Look at the 潮汐表 instead"}, 0)
		other := begin(t, e)
		end(t, e, other, say(t, e, other, "Ships of the harbour"))
		for _, tt := range []struct {
			query, want string
		}{
			{"cuxhaven", "High water assistant: you said: When is the tide at [Cuxhaven], and what of the moon?"}, // on another branch
			{"MOON tid", "High water assistant: you said: When is the [tide] at Cuxhaven, and what of the [moon]?"},
			{"潮汐", "High water assistant: you said: Look at the [潮汐]表 instead"},
			{"潮汐表", "High water assistant: you said: Look at the [潮汐表] instead"},
			{"汐", "High water assistant: you said: Look at the 潮[汐表] instead"},
			{"high", "High water"},
			{"water look", "High water assistant: you said: [Look] at the 潮汐表 instead"},
			{"the", "assistant: you said: Ships of [the] harbour\nHigh water assistant: you said: Look at [the] 潮汐表 instead"},
			{"tide harbour", ""},
			{"!?", ""},
		} {
			if got := search(t, e, ada, tt.query); got != tt.want {
				t.Errorf("%q finds\n%s\nwant\n%s", tt.query, got, tt.want)
			}
			if got := search(t, e, bob, tt.query); got != "" {
				t.Errorf("another user finds %s", got)
			}
			if got := search(t, e, admin, tt.query); got != "" {
				t.Errorf("an administrator finds %s", got)
			}
		}
		if err := e.Rename(t.Context(), ada, tides.ID, "Low water"); err != nil {
			t.Fatal(err)
		}
		if got := search(t, e, ada, "high") + search(t, e, ada, "low"); got != "Low water" {
			t.Errorf("after a change of the title: %s", got)
		}
		if err := e.Delete(t.Context(), ada, tides.ID); err != nil {
			t.Fatal(err)
		}
		if got := search(t, e, ada, "low") + search(t, e, ada, "cuxhaven"); got != "" {
			t.Errorf("after a deletion: %s", got)
		}
		if _, _, err := e.Search(t.Context(), ada, strings.Repeat("x", chat.MaxQuery+1), store.Page{}); !errors.Is(err, chat.ErrInvalid) {
			t.Errorf("error for a long query: %v", err)
		}
	})
}

// The message with all words is found, even if later ones have some of them.
func TestSearchFindsMessageWithAllWords(t *testing.T) {
	e := node(t, openAt(t, databases["SQLite"](t)), setupFixture{})
	id := begin(t, e)
	for _, text := range []string{"tide tables", "tide", "tables"} {
		end(t, e, id, say(t, e, id, text))
	}
	for query, want := range map[string]string{
		"tide tables": "assistant: you said: [tide] [tables]",
		"tide":        "assistant: you said: [tide]",
		"tide said":   "assistant: you [said]: [tide]",
	} {
		if got := search(t, e, ada, query); got != want {
			t.Errorf("%q finds %s, want %s", query, got, want)
		}
	}
}

// A conversation that cannot be indexed does not keep older ones from the index. Of one
// with a damaged step, the title is found.
func TestIndexContinuesAfterFailure(t *testing.T) {
	ctx := t.Context()
	address := databases["SQLite"](t)
	e := node(t, openAt(t, address), setupFixture{})
	var ids []string
	for _, title := range []string{"oldest", "damaged", "refused"} {
		c, err := e.Create(ctx, ada, "", title)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
		end(t, e, c.ID, say(t, e, c.ID, "question"))
	}
	raw, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, query := range []string{
		"DELETE FROM conversation_words", "INSERT INTO unindexed_sessions (session) SELECT id FROM sessions",
		"UPDATE events SET data = '[]' WHERE kind = 'message' AND stream = '" + ids[1] + "'",
		"CREATE TRIGGER refuse BEFORE INSERT ON conversation_words WHEN NEW.session = '" + ids[2] + "' BEGIN SELECT RAISE(ABORT, 'refused'); END",
	} {
		if _, err := raw.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	for last := ""; ; {
		if last, err = e.IndexOlder(ctx, last); err != nil {
			t.Fatal(err)
		}
		if last == "" {
			break
		}
	}
	if got, want := search(t, e, ada, "question"), "oldest assistant: you said: [question]"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	if got := search(t, e, ada, "damaged"); got != "damaged" {
		t.Errorf("found %s", got)
	}
}

// Results of tools are not searched.
func TestSearchOmitsToolResults(t *testing.T) {
	db := openAt(t, databases["SQLite"](t))
	e := node(t, db, setupFixture{})
	id := begin(t, e)
	log, err := chat.Journal(t.Context(), e, id)
	if err != nil {
		t.Fatal(err)
	}
	err = log.Append(t.Context(), &session.Event{Message: &session.Message{Role: llm.User, Text: "question"}},
		&session.Event{Result: &session.CallResult{Call: "c", Text: "classified"}}, &session.Event{Notice: &session.Notice{Text: "notice"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := search(t, e, ada, "classified") + search(t, e, ada, "notice") + search(t, e, ada, "quest"); got != "user: [question]" {
		t.Errorf("found %s", got)
	}
}

// Conversations of older programs are indexed later, one after another, and imported
// ones at once.
func TestIndexOlderConversations(t *testing.T) {
	for name, address := range databases {
		t.Run(name, func(t *testing.T) {
			testIndexOlder(t, map[string]string{"SQLite": "sqlite", "PostgreSQL": "pgx"}[name], address(t))
		})
	}
}

func testIndexOlder(t *testing.T, driver, address string) {
	e := node(t, openAt(t, address), setupFixture{})
	for i := range 3 {
		id := begin(t, e)
		end(t, e, id, say(t, e, id, fmt.Sprint("question ", i)))
	}
	raw, err := sql.Open(driver, strings.TrimPrefix(address, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, query := range []string{"DELETE FROM conversation_words", "INSERT INTO unindexed_sessions (session) SELECT id FROM sessions"} {
		if _, err := raw.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	if got := search(t, e, ada, "question"); got != "" {
		t.Errorf("before: %s", got)
	}
	last := ""
	for i := 3; i >= 0; i-- {
		if last, err = e.IndexOlder(t.Context(), last); err != nil || (last != "") != (i > 0) {
			t.Fatalf("with %d left: %q, %v", i, last, err)
		}
	}
	if got := strings.Count(search(t, e, ada, "question"), "[question]"); got != 3 {
		t.Errorf("found %d conversations, want 3", got)
	}

	i, err := e.OpenImporter(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	err = i.Import(t.Context(), chat.Imported{Key: "x", Title: "Imported"}, func(log session.Log) error {
		return log.Append(t.Context(), &session.Event{Type: "message", Message: &session.Message{Role: llm.User, Text: "lighthouse"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := search(t, e, ada, "imp light"); got != "Imported user: [lighthouse]" {
		t.Errorf("found %s", got)
	}
}
