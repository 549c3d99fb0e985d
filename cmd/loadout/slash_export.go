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

// maxExported bounds what is written of the result of a call, in bytes.
const maxExported = 4000

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
	for _, e := range events {
		switch {
		case e.Message != nil && e.Message.Role == session.RoleUser:
			fmt.Fprintf(&b, "\n## You, %s\n\n%s\n", e.Time.Format("2006-01-02 15:04"), safe(e.Message.Text))
		case e.Message != nil:
			if e.Message.Text != "" {
				fmt.Fprintf(&b, "\n## %s\n\n%s\n", plain(e.Message.Model), safe(e.Message.Text))
			}
			for _, c := range e.Message.Calls {
				fmt.Fprintf(&b, "\nCalled %s:\n\n%s\n", literal(c.Name), fenced(c.Arguments))
			}
		case e.Result != nil:
			text := e.Result.Text
			if len(text) > maxExported {
				text = strings.ToValidUTF8(text[:maxExported], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
			}
			what := "It came to"
			if e.Result.Error {
				what = "It failed"
			}
			fmt.Fprintf(&b, "\n%s:\n\n%s\n", what, fenced(text))
		case e.Loaded != nil:
			fmt.Fprintf(&b, "\nThe skill %s was loaded.\n", literal(e.Loaded.Skill.Name))
		case e.Unloaded != nil:
			fmt.Fprintf(&b, "\nThe skill %s was unloaded: %s.\n", literal(e.Unloaded.Skill.Name), literal(e.Unloaded.Reason))
		}
	}
	return b.String()
}
