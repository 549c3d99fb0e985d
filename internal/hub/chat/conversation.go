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

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Conversation is one as it is listed.
type Conversation struct {
	ID      string         `json:"id"`
	Owner   account.UserID `json:"owner"`
	Title   string         `json:"title"`
	Agent   string         `json:"agent,omitempty"` // who is spoken to; "" is nobody in particular
	Draft   string         `json:"draft,omitempty"` // the name of the skill that is tried in it
	Busy    bool           `json:"busy"`            // a turn is under way, or waits for a node
	Created time.Time      `json:"created"`
	Updated time.Time      `json:"updated"` // when a turn began or ended for the last time
}

// state is what is kept with a conversation.
//
// Whoever puts something into the inbox changes it, and so does the node that finds
// nothing left there and gives the lease back: of two that do so at the same time, one
// sees what the other did. That a lease was found to be held is nothing that
// PostgreSQL would hold against the other one.
type state struct {
	// Wanted is the number of the last input, and Taken of the last that was taken.
	Wanted int64 `json:"wanted"`
	Taken  int64 `json:"taken"`
	// Running says that its turn is not over, and Tries how many nodes began it.
	Running bool `json:"running,omitempty"`
	Tries   int  `json:"tries,omitempty"`
	// Draft is the name of the skill that is tried in it.
	Draft string `json:"draft,omitempty"`
}

func conversation(s store.Session) Conversation {
	var st state
	_ = json.Unmarshal(s.Data, &st) // one that is damaged fails where it matters
	return Conversation{ID: s.ID, Owner: account.UserID(s.Owner), Title: s.Title, Agent: s.Agent, Draft: st.Draft, Busy: st.Running, Created: s.Created, Updated: s.Updated}
}

// Begin begins a conversation of one's own with an agent, as its kind and name say it;
// "" is with nobody in particular.
func (e *Engine) Begin(ctx context.Context, p account.Principal, agent, title string) (Conversation, error) {
	return e.begin(ctx, p, agent, title, nil)
}

// Draft is a skill that is tried in a conversation.
type Draft struct {
	Name    string
	Digest  string // of its files
	Package []byte
}

// DraftsError says that so much is kept of drafts of a person that no more may be.
type DraftsError struct {
	Count, MostCount int64
	Bytes, MostBytes int64 // with the one that is refused
}

func (e *DraftsError) Error() string {
	if e.Count > e.MostCount {
		return fmt.Sprintf("%d of your conversations try a draft, which is as many as may", e.Count-1)
	}
	return fmt.Sprintf("the drafts that your conversations try would have %d bytes, more than %d", e.Bytes, e.MostBytes)
}

// Try is [Engine.Begin] with a draft, which is kept as long as the conversation. Where
// there are too many of the person it fails with a [*DraftsError].
func (e *Engine) Try(ctx context.Context, p account.Principal, agent, title string, d Draft) (Conversation, error) {
	return e.begin(ctx, p, agent, title, &d)
}

// begun is what the audit log says of a conversation with a draft.
type begun struct {
	Draft  string `json:"draft"`
	Digest string `json:"digest"`
}

func (e *Engine) begin(ctx context.Context, p account.Principal, agent, title string, d *Draft) (Conversation, error) {
	if err := account.Check(p, account.SessionWrite, account.Of(p.User)); err != nil {
		return Conversation{}, err
	}
	title, err := checkTitle(title)
	if err != nil {
		return Conversation{}, err
	}
	var first state
	var details any
	if d != nil {
		first.Draft, details = d.Name, begun{d.Name, d.Digest}
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
			if err := e.roomFor(ctx, tx, p.User, int64(len(d.Package))); err != nil {
				return err
			}
			if err := tx.Drafts.Add(ctx, store.Draft{Session: made.ID, Name: d.Name, Digest: d.Digest}, d.Package); err != nil {
				return err
			}
		}
		return tx.Audit.Append(ctx, record(p.User, "session.begin", made.ID, details))
	})
	if err != nil {
		return Conversation{}, fmt.Errorf("begin a conversation: %w", err)
	}
	return conversation(made), nil
}

// roomFor fails where a person has as many drafts as may be kept of one.
func (e *Engine) roomFor(ctx context.Context, tx *store.Tx, user account.UserID, bytes int64) error {
	has, err := tx.Drafts.Of(ctx, string(user))
	if err != nil {
		return err
	}
	with := &DraftsError{has.Count + 1, e.opts.Drafts, has.Bytes + bytes, e.opts.DraftBytes}
	if with.Count > with.MostCount || with.Bytes > with.MostBytes {
		return with
	}
	return nil
}

// Get returns a conversation.
func (e *Engine) Get(ctx context.Context, p account.Principal, id string) (Conversation, error) {
	s, err := e.may(ctx, p, account.SessionRead, id)
	if err != nil {
		return Conversation{}, err
	}
	return conversation(s), nil
}

// List returns the conversations of a user, those begun last first, and how to ask for
// more, "" where there are none.
func (e *Engine) List(ctx context.Context, p account.Principal, owner account.UserID, page store.Page) ([]Conversation, string, error) {
	if err := account.Check(p, account.SessionRead, account.Of(owner)); err != nil {
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

// Rename gives a conversation another title.
func (e *Engine) Rename(ctx context.Context, p account.Principal, id, title string) error {
	title, err := checkTitle(title)
	if err != nil {
		return err
	}
	if _, err := e.may(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.change(ctx, id, func(c *change) error {
		s, err := c.Sessions.Get(ctx, id)
		if err != nil {
			return err
		}
		s.Title = title
		if _, err := c.Sessions.Update(ctx, s); err != nil {
			return err
		}
		return c.Audit.Append(ctx, record(p.User, "session.rename", id, nil))
	})
}

// Delete removes a conversation with all that was said, its questions and its files.
// What runs in it is broken off, and those who watch are told that it is gone.
func (e *Engine) Delete(ctx context.Context, p account.Principal, id string) error {
	if _, err := e.may(ctx, p, account.SessionDelete, id); err != nil {
		return err
	}
	err := e.change(ctx, id, func(c *change) error {
		for _, stream := range []string{inboxOf(id), toldOf(id)} {
			if err := c.Events.Delete(ctx, stream); err != nil {
				return err
			}
			c.grown[stream] = math.MaxInt64 // there is something to see: that it is gone
		}
		if err := c.Sessions.Delete(ctx, id); err != nil {
			return err
		}
		return c.Audit.Append(ctx, record(p.User, "session.delete", id, nil))
	})
	if err != nil {
		return fmt.Errorf("delete conversation %q: %w", id, err)
	}
	return nil
}

// may decides whether somebody may do something with a conversation, at the one place
// where that is decided, and returns it. A refusal is recorded.
func (e *Engine) may(ctx context.Context, p account.Principal, a account.Action, id string) (store.Session, error) {
	if p.Anonymous() { // who learns nothing of what there is
		return store.Session{}, account.Check(p, a, account.Of(p.User))
	}
	s, err := e.db.Sessions.Get(ctx, id)
	if err != nil {
		return store.Session{}, err
	}
	err = account.Check(p, a, account.Of(account.UserID(s.Owner)))
	if err == nil {
		return s, nil
	}
	r := record(p.User, string(a), id, nil)
	r.Decision = "denied"
	if failed := e.db.Audit.Append(ctx, r); failed != nil {
		return store.Session{}, failed
	}
	if denied, ok := errors.AsType[*account.DeniedError](err); ok && denied.Unseen {
		err = fmt.Errorf("session %q: %w", id, store.ErrNotFound)
	}
	return store.Session{}, err
}

// record is what the audit log keeps of a change of a conversation: never what was
// said.
func record(by account.UserID, action, id string, details any) store.Record {
	r := store.Record{Actor: string(by), Action: action, Namespace: store.UserNamespace(string(by)), Subject: "session/" + id, Decision: "allowed"}
	if details != nil {
		r.Details, _ = json.Marshal(details) // of texts and numbers, which cannot fail
	}
	return r
}

// checkTitle is a title on one line.
func checkTitle(title string) (string, error) {
	title = strings.TrimSpace(skill.OneLine(title))
	if len(title) > MaxTitle || !utf8.ValidString(title) {
		return "", fmt.Errorf("title: %w: it has %d bytes, more than %d, or is no text", ErrInvalid, len(title), MaxTitle)
	}
	return title, nil
}

// state reads what is kept with a conversation, in a transaction.
func (c *change) state(ctx context.Context) (store.Session, state, error) {
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

// setState keeps it.
func (c *change) setState(ctx context.Context, s store.Session, st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	s.Data = data
	_, err = c.Sessions.Update(ctx, s)
	return err
}
