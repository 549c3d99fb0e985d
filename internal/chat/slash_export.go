package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// exportConversation writes the conversation to a new Markdown file. It never
// overwrites a file.
func (t *dialog) exportConversation(_ context.Context, path string) (string, error) {
	if path == "" {
		path = "conversation-" + t.id + ".md"
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = t.host.Home() + "/" + rest
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", exit.Errorf(exit.Failure, "name another file: /export FILE", "%s already exists", path)
	case errors.Is(err, fs.ErrNotExist):
		return "", exit.Errorf(exit.NotFound, "name a file in an existing directory", "write %s: %w", path, fileerror.Cause(err))
	case err != nil:
		return "", exit.Errorf(exit.Failure, "name another file: /export FILE", "write %s: %w", path, fileerror.Cause(err))
	}
	_, err = f.WriteString(terminal.Safe(chatlog.Markdown(t.id, t.session.Events(0))))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return "Exported to " + literal(path) + ".\n", nil
}
