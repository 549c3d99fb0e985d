package chat

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
)

// Only a conversation that exists can be resumed. An error suggests another one.
func TestCheckConversation(t *testing.T) {
	state := t.TempDir()
	h := &Host{Setup: setup.Setup{Console: console.Console{Getenv: func(name string) string { return map[string]string{"LOADOUT_STATE": state}[name] }}}}
	check := func(id string, code int, hint string) {
		t.Helper()
		err := h.checkConversation(id)
		e, failed := errors.AsType[*exit.Error](err)
		if failed != (hint != "") || failed && (e.Code != code || e.Hint != hint) {
			t.Errorf("%s: %v %+v, want %q", id, err, e, hint)
		}
	}
	check("20260101-101010-abcde", exit.NotFound, "start one: loadout chat")
	if err := os.MkdirAll(filepath.Join(state, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "sessions", "20260101-101010-abcde.jsonl"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("20260101-101010-abcde", 0, "")
	check("20260101-101010-abcdx", exit.NotFound, "did you mean 20260101-101010-abcde?")
	check("other", exit.NotFound, "the latest conversation is 20260101-101010-abcde")
	check("../x", exit.Usage, "list the conversations: loadout chat, then /resume")
}
