package chatlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Only files of conversations are listed.
func TestListSkipsOtherFiles(t *testing.T) {
	d := chatlog.Dir(t.TempDir())
	id := save(t, d, message(llm.User, "hello"))
	for _, name := range []string{"notes.txt", id, ".hidden.jsonl", "-x.jsonl", strings.Repeat("a", 65) + ".jsonl"} {
		if err := os.WriteFile(filepath.Join(string(d), name), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(string(d), "dir.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(d), "one.jsonl"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := d.List()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v; want %s and one", all, err, id)
	}
	if err := os.WriteFile(filepath.Join(string(d), "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := chatlog.Dir(filepath.Join(string(d), "f")).List(); err == nil && runtime.GOOS != "windows" {
		t.Error("a file is listed as a directory")
	}
}

func TestOpenTwice(t *testing.T) {
	d := chatlog.Dir(t.TempDir())
	log, id, err := d.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if !chatlog.ValidID(id) {
		t.Errorf("the new conversation has the ID %q", id)
	}
	if _, _, err := d.Open(id); !errors.Is(err, session.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if folder, err := chatlog.Folder(t.Context(), log); err != nil || folder != "" {
		t.Errorf("a conversation without a start has the folder %q, %v", folder, err)
	}
	if _, err := chatlog.Folder(t.Context(), unreadable{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the error of an unreadable log is %v", err)
	}
}

type unreadable struct{ session.Log }

func (unreadable) Read(context.Context, int64) ([]session.Event, error) {
	return nil, os.ErrPermission
}

// A message of many lines is found, but not beyond the part that is searched.
func TestFirstMessageLimit(t *testing.T) {
	d := chatlog.Dir(t.TempDir())
	long := strings.Repeat("x", 100<<10)
	if id := save(t, d, message(llm.Assistant, long), message(llm.User, long+"!")); d.FirstMessage(id) != long+"!" {
		t.Error("a long message is not found")
	}
	if id := save(t, d, message(llm.Assistant, long), message(llm.Assistant, long), message(llm.Assistant, long), message(llm.User, "late")); d.FirstMessage(id) != "" {
		t.Error("the whole conversation is read")
	}
}

func TestSimilarDistance(t *testing.T) {
	all := []chatlog.Entry{{ID: "abcdefgh"}}
	for id, want := range map[string]int{"abcdexyz": 1, "abcdwxyz": 0, "cde": 1, "ABCDEFGH": 1} {
		if got := chatlog.Similar(all, id); len(got) != want {
			t.Errorf("%s: %q, want %d", id, got, want)
		}
	}
}
