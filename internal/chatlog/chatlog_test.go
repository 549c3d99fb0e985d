package chatlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// save writes a conversation and returns its ID.
func save(t *testing.T, d chatlog.Dir, events ...*session.Event) string {
	t.Helper()
	log, id, err := d.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	return id
}

func message(role llm.Role, text string) *session.Event {
	return &session.Event{Message: &session.Message{Role: role, Text: text}}
}

func TestDir(t *testing.T) {
	d := chatlog.Dir(filepath.Join(t.TempDir(), "sessions"))
	if all, err := d.List(); err != nil || len(all) > 0 {
		t.Errorf("without a directory: %v, %v", all, err)
	}
	first := save(t, d, &session.Event{Start: &session.Start{Folder: "/work"}}, message(llm.Assistant, "hi"), message(llm.User, "what is in it?"), message(llm.User, "more"))
	second := save(t, d, message(llm.User, "other"))
	save(t, d) // empty
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(string(d), first+".jsonl"), old, old); err != nil {
		t.Fatal(err)
	}
	all, err := d.List()
	if err != nil || len(all) != 2 || all[0].ID != second || all[1].ID != first {
		t.Errorf("%v, %v; want %s, %s", all, err, second, first)
	}
	if got := d.FirstMessage(first); got != "what is in it?" {
		t.Errorf("first message %q", got)
	}
	if got := d.FirstMessage("none"); got != "" {
		t.Errorf("first message of none: %q", got)
	}
	log, id, err := d.Open(first)
	if err != nil || id != first {
		t.Fatalf("%q, %v", id, err)
	}
	defer log.Close()
	if folder, err := chatlog.Folder(t.Context(), log); err != nil || folder != "/work" {
		t.Errorf("folder %q, %v", folder, err)
	}
	if _, _, err := d.Open("none"); !errors.Is(err, chatlog.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, _, err := d.Open("../" + first); !errors.Is(err, chatlog.ErrName) {
		t.Errorf("%v", err)
	}
}

// A first message that is longer than what is read has its start as a title.
func TestFirstMessageIsLong(t *testing.T) {
	d := chatlog.Dir(filepath.Join(t.TempDir(), "sessions"))
	for _, part := range []string{"x", "é", "\n", "\x01", "😀", "\u2028\u2028<"} {
		id := save(t, d, &session.Event{Start: &session.Start{Folder: "/work"}}, message(llm.User, "Review @a.txt"+strings.Repeat(part, 400_000)))
		got := d.FirstMessage(id)
		if rest, ok := strings.CutPrefix(got, "Review @a.txt"+part); !ok || strings.Trim(rest, part) != "" {
			t.Errorf("%q: %.40q, ends in %q", part, got, got[max(len(got)-10, 0):])
		}
	}
	// A truncated log has no title.
	if err := os.WriteFile(filepath.Join(string(d), "cut.jsonl"), []byte(`{"seq":1,"begun":{"folder":"/wo`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := d.FirstMessage("cut"); got != "" {
		t.Errorf("first message %q", got)
	}
}

func TestSimilar(t *testing.T) {
	all := []chatlog.Entry{{ID: "20260101-101010-abcde"}, {ID: "20260202-202020-fghij"}}
	for id, want := range map[string][]string{"abcde": {all[0].ID}, "20260202-202021-fghij": {all[1].ID}, "other": nil} {
		if got := chatlog.Similar(all, id); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := chatlog.Markdown("x", []session.Event{*message(llm.User, "hello")})
	if !strings.HasPrefix(got, "# Conversation x\n") || !strings.Contains(got, "hello") {
		t.Errorf("%q", got)
	}
}
