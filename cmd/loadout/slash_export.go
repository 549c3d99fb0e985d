package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/session"
)

// export writes the conversation to a file that is not there yet.
func (t *talk) export(_ context.Context, path string) (string, error) {
	if path == "" {
		path = "conversation-" + t.id + ".md"
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = t.app.home() + "/" + rest
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fail(exitFound, "name another one: /export FILE", "%s is there already", path)
	case errors.Is(err, fs.ErrNotExist):
		return "", fail(exitNotFound, "name a file in a directory that there is", "write %s: %w", path, reason(err))
	case err != nil:
		return "", fail(exitFound, "name another one: /export FILE", "write %s: %w", path, reason(err))
	}
	_, err = f.WriteString(exported(t.id, t.session.Events(0)))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return "Written to " + literal(path) + ".\n", nil
}

// exported is a conversation as Markdown: what was said, and what was called.
func exported(id string, events []session.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Conversation %s\n", id)
	for i := range events {
		b.WriteString(safe(session.Markdown(&events[i])))
	}
	return b.String()
}
