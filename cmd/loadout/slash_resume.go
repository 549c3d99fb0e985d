package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// reopen ends a conversation, for another one.
type reopen struct{ id string }

func (r *reopen) Error() string { return "go on with conversation " + r.id }

// chatLog is a conversation in a file.
type chatLog struct {
	id   string
	last time.Time
}

// chats are the conversations that there are, the newest first.
func (a *app) chats() ([]chatLog, error) {
	dir, err := a.sessionsDir()
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []chatLog
	for _, e := range all {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		info, err := e.Info()
		if ok && err == nil && info.Mode().IsRegular() && sessionID().MatchString(id) && info.Size() > 0 {
			out = append(out, chatLog{id, info.ModTime()})
		}
	}
	slices.SortFunc(out, func(x, y chatLog) int { return y.last.Compare(x.last) })
	return out, nil
}

// maxFirst bounds how far the first words of a conversation are looked for, in bytes.
const maxFirst = 256 << 10

// firstWords are the first words of the person in a conversation.
func (a *app) firstWords(id string) string {
	dir, err := a.sessionsDir()
	if err != nil {
		return ""
	}
	f, err := os.Open(filepath.Join(dir, id+".jsonl"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxFirst))
	lines.Buffer(nil, maxFirst)
	for lines.Scan() {
		var e session.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Message != nil && e.Message.Role == session.RoleUser {
			return clip(e.Message.Text, 60)
		}
	}
	return ""
}

// isConversation fails where there is no such conversation, with those that are meant,
// or the newest.
func (a *app) isConversation(id string) error {
	all, err := a.chats()
	if err != nil || slices.ContainsFunc(all, func(k chatLog) bool { return k.id == id }) {
		return err
	}
	if !sessionID().MatchString(id) {
		return fail(exitUsage, "loadout chat, and then /resume, names those that there are", "%q names no conversation", id)
	}
	var like []string
	asked := near.Letters(id)
	for _, k := range all {
		if strings.Contains(k.id, id) || near.Distance(asked, near.Letters(k.id), 3) <= 3 {
			like = append(like, k.id)
		}
	}
	hint := "loadout chat begins one"
	switch {
	case len(like) > 0:
		hint = "did you mean " + strings.Join(like[:min(len(like), 3)], ", ") + "?"
	case len(all) > 0:
		hint = "the last one was " + all[0].id
	}
	return fail(exitNotFound, hint, "there is no conversation %s", id)
}

// resume names the last conversations, or goes on with one.
func (t *talk) resume(_ context.Context, id string) (string, error) {
	if id == t.id {
		return "This is conversation " + t.id + ".\n", nil
	}
	if id != "" {
		if err := t.app.isConversation(id); err != nil {
			return "", err
		}
		return "", &terminal.End{With: &reopen{id}}
	}
	all, err := t.app.chats()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("**Conversations**, the newest first\n\n")
	const most = 15
	for i, k := range all {
		if i == most {
			fmt.Fprintf(&b, "\nand %d older ones\n", len(all)-most)
			break
		}
		this := ""
		if k.id == t.id {
			this = " (this one)"
		}
		fmt.Fprintf(&b, "- %s%s, %s: %s\n", k.id, this, k.last.Format("2 Jan 15:04"), literal(t.app.firstWords(k.id)))
	}
	b.WriteString("\nTo go on with one: `/resume ID`\n")
	return b.String(), nil
}

// conversationNames are the conversations that begin with a text.
func (t *talk) conversationNames(prefix string) []terminal.Choice {
	all, err := t.app.chats()
	if err != nil {
		return nil
	}
	var out []terminal.Choice
	for _, k := range all {
		if strings.HasPrefix(k.id, prefix) && k.id != t.id && len(out) < 20 {
			out = append(out, terminal.Choice{Name: k.id, Help: t.app.firstWords(k.id)})
		}
	}
	return out
}
