package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// reopenError is returned to end a conversation and then continue another or
// start a new one.
type reopenError struct {
	id     string // "" for a new conversation
	folder string // working directory of a new conversation, if the user named one
	left   string // conversation to which the user can return, or ""
	clear  bool   // whether the screen is cleared
}

func (r *reopenError) Error() string {
	if r.id == "" {
		return "start a new conversation"
	}
	return "continue conversation " + r.id
}

// startConversation returns a command that starts a new conversation in the
// same directory. If clear is set, it clears the screen first.
func (t *dialog) startConversation(clear bool) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) {
		next := &reopenError{folder: t.flags.Workspace, left: t.flags.left, clear: clear}
		if t.hasMessages() {
			next.left = t.id
		}
		return "", &terminal.End{With: next}
	}
}

// hasMessages reports whether there is a message in the conversation.
func (t *dialog) hasMessages() bool {
	return slices.ContainsFunc(t.session.Events(0), func(e session.Event) bool { return e.Message != nil })
}

// formatLeft returns a line that explains how to return to the conversation
// that the user left, or "" if there is none.
func (t *dialog) formatLeft() string {
	if t.flags.left == "" {
		return ""
	}
	return "The previous conversation is saved. To return: `/resume " + t.flags.left + "`\n"
}

// maxFirstMessage is the maximum width of a first message in a list, in
// columns.
const maxFirstMessage = 60

// checkConversation returns an error if a conversation does not exist. The hint
// of the error suggests similar names or the latest conversation.
func (h *Host) checkConversation(id string) error {
	dir, err := h.chats()
	if err != nil {
		return err
	}
	all, err := dir.List()
	if err != nil || slices.ContainsFunc(all, func(e chatlog.Entry) bool { return e.ID == id }) {
		return err
	}
	if !chatlog.ValidID(id) {
		return exit.Errorf(exit.Usage, "list the conversations: loadout chat, then /resume", "invalid conversation name %q", id)
	}
	hint := "start one: loadout chat"
	if like := chatlog.Similar(all, id); len(like) > 0 {
		hint = "did you mean " + strings.Join(like[:min(len(like), 3)], ", ") + "?"
	} else if len(all) > 0 {
		hint = "the latest conversation is " + all[0].ID
	}
	return exit.Errorf(exit.NotFound, hint, "conversation %s not found", id)
}

// resumeConversation lists the latest conversations or continues one.
func (t *dialog) resumeConversation(_ context.Context, id string) (string, error) {
	if id == t.id {
		return "This is conversation " + t.id + ".\n", nil
	}
	if id != "" {
		if err := t.host.checkConversation(id); err != nil {
			return "", err
		}
		return "", &terminal.End{With: &reopenError{id: id}}
	}
	dir, err := t.host.chats()
	if err != nil {
		return "", err
	}
	all, err := dir.List()
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
		if k.ID == t.id {
			this = " (this one)"
		}
		fmt.Fprintf(&b, "- %s%s, %s: %s\n", k.ID, this, k.Last.Format("2 Jan 15:04"), literal(terminal.Clip(dir.FirstMessage(k.ID), maxFirstMessage)))
	}
	b.WriteString("\nTo continue one: `/resume ID`\n")
	return b.String(), nil
}

// completeConversations returns the newest conversations whose names start with
// a prefix.
func (t *dialog) completeConversations(prefix string) []terminal.Choice {
	out, _ := t.listConversations(prefix, 20)
	return out
}

// maxPickedConversations is the maximum number of conversations that /resume
// lists.
const maxPickedConversations = 2000

// pickConversations returns the newest conversations other than the open one,
// and a note if there are none or if older ones are omitted.
func (t *dialog) pickConversations() ([]terminal.Choice, string) {
	out, n := t.listConversations("", maxPickedConversations)
	switch {
	case n == 0:
		return nil, "No other conversations yet"
	case n > len(out):
		return out, fmt.Sprintf("latest %d of %d; /resume ID opens older ones", len(out), n)
	}
	return out, ""
}

// listConversations returns up to limit conversations whose names have the
// given prefix, except the open one, newest first. Each has its first message
// and the time of its last message. n is the number of all such conversations.
func (t *dialog) listConversations(prefix string, limit int) (out []terminal.Choice, n int) {
	dir, err := t.host.chats()
	if err != nil {
		return nil, 0
	}
	all, err := dir.List()
	if err != nil {
		return nil, 0
	}
	for _, k := range all {
		if !strings.HasPrefix(k.ID, prefix) || k.ID == t.id {
			continue
		}
		if n++; n <= limit {
			out = append(out, terminal.Choice{Name: k.ID, Help: k.Last.Format("2 Jan 15:04") + "  " + terminal.Clip(dir.FirstMessage(k.ID), maxFirstMessage)})
		}
	}
	return out, n
}
