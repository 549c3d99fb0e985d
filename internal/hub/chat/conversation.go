package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Conversation describes a conversation.
type Conversation struct {
	ID      string         `json:"id"`
	Owner   account.UserID `json:"owner"`
	Title   string         `json:"title"`
	Agent   string         `json:"agent,omitempty"` // "" without an agent
	Draft   string         `json:"draft,omitempty"` // the name of the draft skill under test
	Busy    bool           `json:"busy"`            // a turn is running or waits for a node
	Created time.Time      `json:"created"`
	Updated time.Time      `json:"updated"` // when a turn last started or ended
}

// state is the stored state of a conversation.
//
// Every writer to the inbox updates it, and so does a node that finds the inbox
// empty and releases the lease. Of two concurrent transactions, one therefore
// sees the other's change. PostgreSQL would not detect a conflict from reading
// the lease alone.
type state struct {
	// Wanted is the number of the last input, and Taken that of the last input
	// processed.
	Wanted int64 `json:"wanted"`
	Taken  int64 `json:"taken"`
	// Running reports that a turn has not ended. Tries counts the nodes that
	// started it.
	Running bool `json:"running,omitempty"`
	Tries   int  `json:"tries,omitempty"`
	// Draft names the draft skill under test.
	Draft string `json:"draft,omitempty"`
}

func conversation(s store.Session) Conversation {
	var st state
	_ = json.Unmarshal(s.Data, &st) // damaged state fails where it is needed
	return Conversation{ID: s.ID, Owner: account.UserID(s.Owner), Title: s.Title, Agent: s.Agent, Draft: st.Draft, Busy: st.Running, Created: s.Created, Updated: s.Updated}
}

// Create creates a conversation of the principal with an agent, given as kind
// and name; "" is no agent.
func (e *Engine) Create(ctx context.Context, p account.Principal, agent, title string) (Conversation, error) {
	return e.create(ctx, p, agent, title, nil)
}

// Draft is a draft skill to test in a conversation.
type Draft struct {
	Name    string
	Digest  string // of its files
	Package []byte
}

// DraftLimitError reports that a user has too many drafts or that they are too
// large.
type DraftLimitError struct {
	Count, MaxCount int64
	Bytes, MaxBytes int64 // including the refused draft
}

func (e *DraftLimitError) Error() string {
	if e.Count > e.MaxCount {
		return fmt.Sprintf("too many conversations with a draft (%d, limit %d)", e.Count, e.MaxCount)
	}
	return fmt.Sprintf("the drafts of your conversations are too large (%d bytes, limit %d)", e.Bytes, e.MaxBytes)
}

// CreateWithDraft is like [Engine.Create] with a draft, which is stored as long
// as the conversation. It returns a [*DraftLimitError] if the drafts of the
// user exceed a limit.
func (e *Engine) CreateWithDraft(ctx context.Context, p account.Principal, agent, title string, d Draft) (Conversation, error) {
	return e.create(ctx, p, agent, title, &d)
}

// draftDetails are the audit details of a conversation with a draft.
type draftDetails struct {
	Draft  string `json:"draft"`
	Digest string `json:"digest"`
}

func (e *Engine) create(ctx context.Context, p account.Principal, agent, title string, d *Draft) (Conversation, error) {
	if err := account.Check(p, account.SessionWrite, account.OwnedBy(p.User)); err != nil {
		return Conversation{}, err
	}
	title, err := checkTitle(title)
	if err != nil {
		return Conversation{}, err
	}
	var first state
	var details any
	if d != nil {
		first.Draft, details = d.Name, draftDetails{d.Name, d.Digest}
	}
	data, err := json.Marshal(first)
	if err != nil {
		return Conversation{}, err
	}
	var made store.Session
	err = e.db.Tx(ctx, func(tx *store.Tx) error {
		if made, err = tx.Sessions.Create(ctx, store.Session{Owner: string(p.User), Title: title, Agent: agent, Data: data}); err != nil {
			return err
		}
		if d != nil {
			if err := e.checkDraftLimits(ctx, tx, p.User, int64(len(d.Package))); err != nil {
				return err
			}
			if err := tx.Drafts.Add(ctx, store.Draft{Session: made.ID, Name: d.Name, Digest: d.Digest}, d.Package); err != nil {
				return err
			}
		}
		return tx.Audit.Append(ctx, auditRecord(p.User, "session.begin", made.ID, details))
	})
	if err != nil {
		return Conversation{}, fmt.Errorf("create conversation: %w", err)
	}
	return conversation(made), nil
}

// checkDraftLimits returns a [*DraftLimitError] if another draft would exceed
// the user's limits.
func (e *Engine) checkDraftLimits(ctx context.Context, tx *store.Tx, user account.UserID, bytes int64) error {
	has, err := tx.Drafts.Total(ctx, string(user))
	if err != nil {
		return err
	}
	with := &DraftLimitError{has.Count + 1, e.opts.Drafts, has.Bytes + bytes, e.opts.DraftBytes}
	if with.Count > with.MaxCount || with.Bytes > with.MaxBytes {
		return with
	}
	return nil
}

// Get returns a conversation.
func (e *Engine) Get(ctx context.Context, p account.Principal, id string) (Conversation, error) {
	s, err := e.authorize(ctx, p, account.SessionRead, id)
	if err != nil {
		return Conversation{}, err
	}
	return conversation(s), nil
}

// List returns a page of a user's conversations, newest first, and the cursor
// of the next page, "" at the end.
func (e *Engine) List(ctx context.Context, p account.Principal, owner account.UserID, page store.Page) ([]Conversation, string, error) {
	if err := account.Check(p, account.SessionRead, account.OwnedBy(owner)); err != nil {
		return nil, "", err
	}
	found, next, err := e.db.Sessions.List(ctx, string(owner), page)
	if err != nil {
		return nil, "", err
	}
	out := make([]Conversation, len(found))
	for i, s := range found {
		out[i] = conversation(s)
	}
	return out, next, nil
}

// Rename changes the title of a conversation.
func (e *Engine) Rename(ctx context.Context, p account.Principal, id, title string) error {
	title, err := checkTitle(title)
	if err != nil {
		return err
	}
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.update(ctx, id, func(c *conversationTx) error {
		s, err := c.Sessions.Get(ctx, id)
		if err != nil {
			return err
		}
		s.Title = title
		if _, err := c.Sessions.Update(ctx, s); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session.rename", id, nil))
	})
}

// Delete removes a conversation with its transcript, approval requests and
// files. It stops a running turn and ends all watchers.
func (e *Engine) Delete(ctx context.Context, p account.Principal, id string) error {
	if _, err := e.authorize(ctx, p, account.SessionDelete, id); err != nil {
		return err
	}
	err := e.update(ctx, id, func(c *conversationTx) error {
		for _, stream := range []string{inboxStream(id), eventStream(id)} {
			if err := c.Events.Delete(ctx, stream); err != nil {
				return err
			}
			c.appended[stream] = math.MaxInt64 // wakes watchers, who then see the deletion
		}
		if err := c.Sessions.Delete(ctx, id); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session.delete", id, nil))
	})
	if err != nil {
		return fmt.Errorf("delete conversation %q: %w", id, err)
	}
	return nil
}

// authorize checks whether a principal may perform an action on a conversation,
// and returns the conversation. A refusal is recorded in the audit log.
func (e *Engine) authorize(ctx context.Context, p account.Principal, a account.Action, id string) (store.Session, error) {
	if p.Anonymous() { // reveals nothing to anonymous callers
		return store.Session{}, account.Check(p, a, account.OwnedBy(p.User))
	}
	s, err := e.db.Sessions.Get(ctx, id)
	if err != nil {
		return store.Session{}, err
	}
	err = account.Check(p, a, account.OwnedBy(account.UserID(s.Owner)))
	if err == nil {
		return s, nil
	}
	r := auditRecord(p.User, string(a), id, nil)
	r.Decision = "denied"
	if failed := e.db.Audit.Append(ctx, r); failed != nil {
		return store.Session{}, failed
	}
	if denied, ok := errors.AsType[*account.DeniedError](err); ok && denied.Hidden {
		err = fmt.Errorf("session %q: %w", id, store.ErrNotFound)
	}
	return store.Session{}, err
}

// auditRecord returns the audit record of a change to a conversation. It never
// contains messages.
func auditRecord(by account.UserID, action, id string, details any) store.AuditRecord {
	r := store.AuditRecord{Actor: string(by), Action: action, Namespace: store.UserNamespace(string(by)), Subject: "session/" + id, Decision: "allowed"}
	if details != nil {
		r.Details, _ = json.Marshal(details) // strings and numbers only, which cannot fail
	}
	return r
}

// checkTitle returns the title on one line.
func checkTitle(title string) (string, error) {
	title = strings.TrimSpace(skill.OneLine(title))
	if len(title) > MaxTitle || !utf8.ValidString(title) {
		return "", fmt.Errorf("title: %w: %d bytes (limit %d), or not UTF-8", ErrInvalid, len(title), MaxTitle)
	}
	return title, nil
}

// state reads the conversation and its state.
func (c *conversationTx) state(ctx context.Context) (store.Session, state, error) {
	s, err := c.Sessions.Get(ctx, c.id)
	if err != nil {
		return s, state{}, err
	}
	var st state
	if err := json.Unmarshal(s.Data, &st); err != nil {
		return s, st, fmt.Errorf("state of conversation %q: %w", c.id, store.ErrCorrupt)
	}
	return s, st, nil
}

// setState stores the state.
func (c *conversationTx) setState(ctx context.Context, s store.Session, st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	s.Data = data
	_, err = c.Sessions.Update(ctx, s)
	return err
}
