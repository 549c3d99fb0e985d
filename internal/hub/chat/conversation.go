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
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
)

// Conversation describes a conversation, without its messages.
type Conversation struct {
	ID       string         `json:"id"`
	Owner    account.UserID `json:"owner" doc:"The id of a user"`
	Title    string         `json:"title"`
	Agent    string         `json:"agent,omitempty" doc:"Bot/NAMESPACE/NAME; absent for the default agent"`
	Draft    string         `json:"draft,omitempty" doc:"Name of the draft skill that is tried"`
	Trial    bool           `json:"trial,omitempty" doc:"Whether its agent is not saved. It is then not listed, and is deleted a day after its last change"`
	Model    string         `json:"model,omitempty" doc:"ID of the Model for the next message; absent for that of the agent"`
	Folder   string         `json:"folder,omitempty" doc:"ID of the folder that contains it; absent without one"`
	Pinned   bool           `json:"pinned,omitempty" doc:"Whether lists start with it"`
	Archived bool           `json:"archived,omitempty" doc:"Whether it is in the list of archived conversations only. A message to it ends this"`
	Busy     bool           `json:"busy" doc:"Whether a turn is running or waiting"`
	Last     time.Time      `json:"last_message" doc:"Time of the last message of the user, or of the creation if there is none. Lists are sorted by it"`
	Created  time.Time      `json:"created"`
	Updated  time.Time      `json:"updated" doc:"Time of the last change, such as the start or end of a turn, or another title or folder"`
}

// state is the stored state of a conversation.
//
// It is updated by every transaction that adds to the inbox, and by every
// transaction that finds the inbox empty and releases the lease. If two such
// transactions run at the same time, they conflict, and the second one sees the
// first one's change. If they only read the lease, PostgreSQL would not detect a
// conflict.
type state struct {
	// Wanted is the number of the last input in the inbox. Taken is the number
	// of the last input that a node has started to process.
	Wanted int64 `json:"wanted"`
	Taken  int64 `json:"taken"`
	// Running is set from the start of a turn until it ends. Tries counts the nodes
	// that have started the turn.
	Running bool `json:"running,omitempty"`
	Tries   int  `json:"tries,omitempty"`
	// Draft names the draft skill under test.
	Draft string `json:"draft,omitempty"`
	// Trial is set if the documents of the agent are in [store.TrialAgents].
	Trial bool `json:"trial,omitempty"`
	// Model is the ID of the Model that the user chose for further inputs; "" if none
	// was chosen.
	Model string `json:"model,omitempty"`
}

// ended returns the number of the last input that has been processed.
func (st state) ended() int64 {
	if st.Running {
		return st.Taken - 1
	}
	return st.Taken
}

func conversation(s store.Session) Conversation {
	var st state
	_ = json.Unmarshal(s.Data, &st) // the state method reports damage
	return Conversation{ID: s.ID, Owner: account.UserID(s.Owner), Title: s.Title, Agent: s.Agent, Draft: st.Draft, Trial: st.Trial, Model: st.Model,
		Folder: s.Folder, Pinned: s.Pinned, Archived: s.Archived, Busy: st.Running, Last: s.LastMessage, Created: s.Created, Updated: s.Updated}
}

// Create creates a conversation for the principal with an agent, or without one
// if agent is "". agent has the form KIND/NAMESPACE/NAME. Create fails with a
// [*quota.ExceededError] if the user may not store another conversation.
func (e *Engine) Create(ctx context.Context, p account.Principal, agent, title string) (Conversation, error) {
	return e.create(ctx, p, agent, title, nil, nil)
}

// Draft is an unpublished skill to test in a conversation.
type Draft struct {
	Name    string
	Digest  string // digest of the draft's files
	Package []byte
}

// DraftLimitError reports that another draft would exceed one of the user's
// limits.
type DraftLimitError struct {
	Count, MaxCount int64
	Bytes, MaxBytes int64 // Bytes includes the refused draft
}

func (e *DraftLimitError) Error() string {
	if e.Count > e.MaxCount {
		return fmt.Sprintf("too many conversations with a draft (%d, limit %d)", e.Count, e.MaxCount)
	}
	return fmt.Sprintf("drafts of conversations too large (%d bytes in total, limit %d)", e.Bytes, e.MaxBytes)
}

// CreateWithDraft is like [Engine.Create], and stores a draft with the
// conversation. It fails with a [*DraftLimitError] if the draft would exceed one
// of the user's limits.
func (e *Engine) CreateWithDraft(ctx context.Context, p account.Principal, agent, title string, d Draft) (Conversation, error) {
	return e.create(ctx, p, agent, title, &d, nil)
}

// draftDetails holds the audit record details for a conversation with a draft.
type draftDetails struct {
	Draft  string `json:"draft"`
	Digest string `json:"digest"`
}

func (e *Engine) create(ctx context.Context, p account.Principal, agent, title string, d *Draft, documents []byte) (Conversation, error) {
	if err := account.Check(p, account.SessionWrite, account.OwnedBy(p.User)); err != nil {
		return Conversation{}, err
	}
	title, err := checkTitle(title)
	if err != nil {
		return Conversation{}, err
	}
	first := state{Trial: documents != nil}
	var details any
	if documents != nil {
		details = map[string]bool{"trial": true}
	}
	if d != nil {
		first.Draft, details = d.Name, draftDetails{d.Name, d.Digest}
	}
	data, err := json.Marshal(first)
	if err != nil {
		return Conversation{}, err
	}
	var made store.Session
	err = e.db.Tx(ctx, func(tx *store.Tx) error {
		add := quota.Amounts{Sessions: 1}
		if d != nil {
			add.Bytes = int64(len(d.Package))
		}
		if err := e.opts.Quotas.Check(ctx, &tx.Tables, store.UserNamespace(string(p.User)), add); err != nil {
			return err
		}
		if made, err = tx.Sessions.Create(ctx, store.Session{Owner: string(p.User), Title: title, TitleSource: titleSourceOf(title), Agent: agent, Data: data}); err != nil {
			return err
		}
		if err := indexTitle(ctx, &tx.Tables, made.ID, title); err != nil {
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
		if documents != nil {
			if err := tx.TrialAgents.Add(ctx, made.ID, documents); err != nil {
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

// checkDraftLimits fails with a [*DraftLimitError] if another draft of the given
// size would exceed the user's limits.
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

// Get returns a conversation. It fails with [store.ErrNotFound] if the principal
// may not see it.
func (e *Engine) Get(ctx context.Context, p account.Principal, id string) (Conversation, error) {
	s, err := e.authorize(ctx, p, account.SessionRead, id)
	if err != nil {
		return Conversation{}, err
	}
	return conversation(s), nil
}

// ListOptions selects conversations for [Engine.List].
type ListOptions struct {
	Archived bool   // whether to list the archived conversations instead of the others
	Folder   string // ID of the folder to list, or [Unfiled]; "" lists all
	store.Page
}

// Unfiled, as [ListOptions.Folder], lists the pinned conversations and those that
// have no folder.
const Unfiled = "none"

// List returns a page of a user's conversations, the pinned ones first and then those
// with the latest messages, and the cursor of the next page.
func (e *Engine) List(ctx context.Context, p account.Principal, owner account.UserID, o ListOptions) ([]Conversation, string, error) {
	if err := account.Check(p, account.SessionRead, account.OwnedBy(owner)); err != nil {
		return nil, "", err
	}
	q := store.SessionQuery{Owner: string(owner), Archived: o.Archived, Folder: o.Folder, Page: o.Page}
	if o.Folder == Unfiled {
		q.Folder, q.Unfiled = "", true
	}
	found, next, err := e.db.Sessions.List(ctx, q)
	if err != nil {
		return nil, "", err
	}
	out := make([]Conversation, len(found))
	for i, s := range found {
		out[i] = conversation(s)
	}
	return out, next, nil
}

// Change is a change of how a conversation is listed. Fields that are nil remain
// unchanged.
type Change struct {
	Title            *string
	Folder           *string // ID of a folder of the owner, or ""
	Pinned, Archived *bool
}

// Rename changes the title of a conversation.
func (e *Engine) Rename(ctx context.Context, p account.Principal, id, title string) error {
	return e.Change(ctx, p, id, Change{Title: &title})
}

// Change changes how a conversation is listed. It fails with [ErrNoFolder] if the
// owner has no such folder.
func (e *Engine) Change(ctx context.Context, p account.Principal, id string, change Change) error {
	if change.Title != nil {
		title, err := checkTitle(*change.Title)
		if err != nil {
			return err
		}
		change.Title = &title
	}
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.update(ctx, id, func(c *conversationTx) error {
		s, err := c.Sessions.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := c.organize(ctx, p, &s, change); err != nil {
			return err
		}
		if change.Title != nil {
			s.Title, s.TitleSource = *change.Title, titleSourceOf(*change.Title)
			if err := indexTitle(ctx, &c.Tables, id, s.Title); err != nil {
				return err
			}
			if err := c.Audit.Append(ctx, auditRecord(p.User, "session.rename", id, nil)); err != nil {
				return err
			}
			if err := c.publish(ctx, eventRow{Event: Event{Type: TitleChanged, Text: s.Title}}); err != nil {
				return err
			}
		}
		_, err = c.Sessions.Update(ctx, s)
		return err
	})
}

// organize applies a change of the folder, the pin and the archive to a session row,
// and records it in the audit log.
func (c *conversationTx) organize(ctx context.Context, p account.Principal, s *store.Session, change Change) error {
	details := map[string]any{}
	if f := change.Folder; f != nil {
		if *f != "" {
			switch err := checkFolder(ctx, &c.Tables, s.Owner, *f); {
			case errors.Is(err, store.ErrNotFound):
				return fmt.Errorf("%w: %.64q", ErrNoFolder, *f)
			case err != nil:
				return err
			}
		}
		s.Folder, details["folder"] = *f, *f
	}
	if change.Pinned != nil {
		s.Pinned, details["pinned"] = *change.Pinned, *change.Pinned
	}
	if change.Archived != nil {
		s.Archived, details["archived"] = *change.Archived, *change.Archived
	}
	if len(details) == 0 {
		return nil
	}
	return c.Audit.Append(ctx, auditRecord(p.User, "session.organize", c.id, details))
}

// SetModel selects the Model for messages that are sent from now on, by its ID; ""
// selects that of the agent. The caller must check that the principal may use it;
// [Options.Setup] checks it again for each turn.
func (e *Engine) SetModel(ctx context.Context, p account.Principal, id, model string) error {
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.update(ctx, id, func(c *conversationTx) error {
		s, st, err := c.state(ctx)
		if err != nil {
			return err
		}
		st.Model = model
		if err := c.setState(ctx, s, st); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session.model", id, map[string]any{"model": model}))
	})
}

// Delete deletes a conversation with its transcript, approval requests and files.
// It stops a running turn and ends all calls to [Engine.Watch].
func (e *Engine) Delete(ctx context.Context, p account.Principal, id string) error {
	s, err := e.authorize(ctx, p, account.SessionDelete, id)
	if err != nil {
		return err
	}
	return e.remove(ctx, s, p.User)
}

// remove deletes a conversation on behalf of a user, or of the hub if by is "".
func (e *Engine) remove(ctx context.Context, s store.Session, by account.UserID) error {
	id := s.ID
	err := e.update(ctx, id, func(c *conversationTx) error {
		for _, stream := range []string{inboxStream(id), eventStream(id)} {
			if err := c.Events.Delete(ctx, stream); err != nil {
				return err
			}
			c.appended[stream] = math.MaxInt64 // wakes watchers, which then notice the deletion
		}
		if err := c.Sessions.Delete(ctx, id); err != nil {
			return err
		}
		r := auditRecord(by, "session.delete", id, nil)
		r.Namespace = store.UserNamespace(s.Owner)
		return c.Audit.Append(ctx, r)
	})
	if err != nil {
		return fmt.Errorf("delete conversation %q: %w", id, err)
	}
	e.snapshots.take(id)
	return nil
}

// authorize returns a conversation if the principal may perform an action on it.
// Otherwise it records the denial in the audit log.
func (e *Engine) authorize(ctx context.Context, p account.Principal, a account.Action, id string) (store.Session, error) {
	if p.Anonymous() { // anonymous callers must not learn whether it exists
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

// auditRecord returns the audit record for an action on a conversation. details
// must not contain messages.
func auditRecord(by account.UserID, action, id string, details any) store.AuditRecord {
	r := store.AuditRecord{Actor: string(by), Action: action, Namespace: store.UserNamespace(string(by)), Subject: "session/" + id, Decision: "allowed"}
	if details != nil {
		r.Details, _ = json.Marshal(details) // strings and numbers only, which cannot fail
	}
	return r
}

// checkTitle returns the title as a single line. It returns an error if the
// title is too long or not UTF-8.
func checkTitle(title string) (string, error) {
	title = strings.TrimSpace(printable.OneLine(title))
	if len(title) > MaxTitle || !utf8.ValidString(title) {
		return "", fmt.Errorf("title: %w: must be UTF-8 of at most %d bytes, got %d bytes", ErrInvalid, MaxTitle, len(title))
	}
	return title, nil
}

// state returns the session row and the decoded state of the conversation.
func (c *conversationTx) state(ctx context.Context) (store.Session, state, error) {
	s, err := c.Sessions.Get(ctx, c.id)
	if err != nil {
		return s, state{}, err
	}
	st, err := readState(s)
	return s, st, err
}

func readState(s store.Session) (state, error) {
	var st state
	if err := json.Unmarshal(s.Data, &st); err != nil {
		return st, fmt.Errorf("read state of conversation %q: %w", s.ID, store.ErrCorrupt)
	}
	return st, nil
}

// setState stores the state in the session row.
func (c *conversationTx) setState(ctx context.Context, s store.Session, st state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	s.Data = data
	_, err = c.Sessions.Update(ctx, s)
	return err
}
