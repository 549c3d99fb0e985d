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

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// reopenError ends a conversation to continue another one.
type reopenError struct{ id string }

func (r *reopenError) Error() string { return "continue conversation " + r.id }

// chatLog is a saved conversation.
type chatLog struct {
	id   string
	last time.Time
}

// listChats returns the saved conversations, newest first.
func (a *app) listChats() ([]chatLog, error) {
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

// maxFirstMessageScan bounds the search for the first message, in bytes.
const maxFirstMessageScan = 256 << 10

// firstMessage returns the start of the user's first message in a conversation.
func (a *app) firstMessage(id string) string {
	dir, err := a.sessionsDir()
	if err != nil {
		return ""
	}
	f, err := os.Open(filepath.Join(dir, id+".jsonl"))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxFirstMessageScan))
	lines.Buffer(nil, maxFirstMessageScan)
	for lines.Scan() {
		var e session.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Message != nil && e.Message.Role == session.RoleUser {
			return clip(e.Message.Text, 60)
		}
	}
	return ""
}

// checkConversation returns an error if a conversation does not exist. The hint
// suggests similar names or the latest conversation.
func (a *app) checkConversation(id string) error {
	all, err := a.listChats()
	if err != nil || slices.ContainsFunc(all, func(k chatLog) bool { return k.id == id }) {
		return err
	}
	if !sessionID().MatchString(id) {
		return fail(exitUsage, "list the conversations: loadout chat, then /resume", "invalid conversation name %q", id)
	}
	var like []string
	asked := editdistance.Normalize(id)
	for _, k := range all {
		if strings.Contains(k.id, id) || editdistance.Distance(asked, editdistance.Normalize(k.id), 3) <= 3 {
			like = append(like, k.id)
		}
	}
	hint := "start one: loadout chat"
	switch {
	case len(like) > 0:
		hint = "did you mean " + strings.Join(like[:min(len(like), 3)], ", ") + "?"
	case len(all) > 0:
		hint = "the latest conversation is " + all[0].id
	}
	return fail(exitNotFound, hint, "conversation %s not found", id)
}

// resumeConversation lists the latest conversations, or continues one.
func (t *chatSession) resumeConversation(_ context.Context, id string) (string, error) {
	if id == t.id {
		return "This is conversation " + t.id + ".\n", nil
	}
	if id != "" {
		if err := t.app.checkConversation(id); err != nil {
			return "", err
		}
		return "", &terminal.End{With: &reopenError{id}}
	}
	all, err := t.app.listChats()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("**Conversations**, newest first\n\n")
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
		fmt.Fprintf(&b, "- %s%s, %s: %s\n", k.id, this, k.last.Format("2 Jan 15:04"), literal(t.app.firstMessage(k.id)))
	}
	b.WriteString("\nTo continue one: `/resume ID`\n")
	return b.String(), nil
}

// completeConversations returns the conversations whose names have a prefix.
func (t *chatSession) completeConversations(prefix string) []terminal.Choice {
	all, err := t.app.listChats()
	if err != nil {
		return nil
	}
	var out []terminal.Choice
	for _, k := range all {
		if strings.HasPrefix(k.id, prefix) && k.id != t.id && len(out) < 20 {
			out = append(out, terminal.Choice{Name: k.id, Help: t.app.firstMessage(k.id)})
		}
	}
	return out
}
