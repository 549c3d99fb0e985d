//go:build unix

package chat_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestPipesDoNotBlock(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	var e *chat.Engine
	var id string
	e = node(t, db, setupFixture{tools: func(talk *chat.ToolContext) []agent.Tool {
		pipe := tool("pipe", func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
			if _, err := talk.OpenFolder(ctx); err != nil {
				return nil, err
			}
			if err := syscall.Mkfifo(filepath.Join(talk.FolderPath, "note"), 0o600); err != nil {
				return nil, err
			}
			// The user acts while the turn runs.
			if err := e.WriteFile(ctx, ada, id, "note", []byte("mine")); err != nil {
				return nil, err
			}
			_, err := e.SendMessage(ctx, ada, id, chat.Message{Text: `call read {"path":"note"}`})
			return &agent.Outcome{Text: "made"}, err
		})
		return append(folderTools(talk), pipe)
	}})
	id = begin(t, e)
	first := say(t, e, id, "call pipe")
	end(t, e, id, first)
	all := until(t, e, id, 0, func(ev chat.Event) bool { return ev.Type == chat.TurnEnded && ev.Input > first })
	if last := all[len(all)-1]; last.Reason != chat.Done {
		t.Errorf("the next turn: %s %s", last.Reason, last.Text)
	}
	if got := transcript(t, e, id); !strings.HasSuffix(got, "assistant: result: mine") {
		t.Errorf("after a pipe:\n%s", got)
	}
}
