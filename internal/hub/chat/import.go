package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Importer stores the conversations of other systems as conversations of a user.
// The caller must close it. It is not safe for concurrent use.
type Importer struct {
	e     *Engine
	p     account.Principal
	setup *Setup
}

// OpenImporter returns an importer for the principal's own conversations. It opens
// a setup of the default agent, because the skills of imported conversations are
// loaded from it.
func (e *Engine) OpenImporter(ctx context.Context, p account.Principal) (*Importer, error) {
	if err := account.Check(p, account.SessionWrite, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	setup, err := e.opts.Setup(ctx, Request{Principal: p, Conversation: Conversation{ID: store.NewID(), Owner: p.User}})
	if err != nil {
		return nil, fmt.Errorf("open skills for imported conversations: %w", err)
	}
	return &Importer{e, p, setup}, nil
}

// Close releases the skills.
func (i *Importer) Close() error {
	if i.setup.Close == nil {
		return nil
	}
	return i.setup.Close()
}

// Skills returns the skills that the user can load.
func (i *Importer) Skills() *catalog.Snapshot { return i.setup.Runtime.Catalog().Snapshot() }

// Imported describes a conversation of another system.
type Imported struct {
	Key   string    // identifies it among the imported conversations of its user
	Title string    // of up to [MaxTitle] bytes
	Last  time.Time // time of the last message; zero if unknown
	// TitleSource is "message" if the title was taken from a message, so that a model may
	// be asked for a better one, and "model" if a model gave it. Otherwise it counts as
	// given by the user.
	TitleSource string
}

// titleSource returns the source of the title, as it is stored.
func (c Imported) titleSource(title string) string {
	if title != "" && (c.TitleSource == titleByMessage || c.TitleSource == titleByModel) {
		return c.TitleSource
	}
	return titleSourceOf(title)
}

// ID returns the ID that the conversation has, or would have, on this hub. It is
// the same at each import, so that a conversation is not imported twice.
func (i *Importer) ID(c Imported) string {
	return store.DeriveID(c.Last, fmt.Sprintf("%q %q", i.p.User, c.Key))
}

// Find returns the ID of the conversation if the user already has it, and otherwise
// "". It also finds the conversation if the time of its last message was unknown when
// it was imported.
func (i *Importer) Find(ctx context.Context, c Imported) (id string, err error) {
	for _, last := range []time.Time{c.Last, {}} {
		c.Last = last
		s, err := i.e.db.Sessions.Get(ctx, i.ID(c))
		switch {
		case err == nil && s.Owner == string(i.p.User):
			return s.ID, nil
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return "", err
		}
	}
	return "", nil
}

// CheckQuota returns a [*quota.ExceededError] if the user may not have n more
// conversations.
func (i *Importer) CheckQuota(ctx context.Context, n int) error {
	return i.checkQuota(ctx, &i.e.db.Tables, n)
}

func (i *Importer) checkQuota(ctx context.Context, t *store.Tables, n int) error {
	return i.e.opts.Quotas.Check(ctx, t, store.UserNamespace(string(i.p.User)), quota.Amounts{Sessions: int64(n)})
}

// OpenSession opens a session on a log, with the user's current skills. The caller
// must close it.
func (i *Importer) OpenSession(ctx context.Context, log session.Log, id string) (*session.Session, error) {
	if refresh := i.setup.Agent.BeforeCall; refresh != nil {
		if err := refresh(ctx); err != nil {
			return nil, err
		}
	}
	return i.setup.Runtime.NewSession(ctx, &session.Options{Log: log, ID: id, RetentionTurns: i.e.opts.Retention, Budget: i.e.opts.Budget})
}

// importDetails holds the details of the audit record for an imported conversation.
type importDetails struct {
	From string `json:"from"`
}

// Import stores a conversation with the events that write appends to its log. It
// fails with a [*quota.ExceededError] if the user may not store it, and with
// [store.ErrExists] if the user has it. If the user has as many conversations as the
// quota allows, it does not call write.
func (i *Importer) Import(ctx context.Context, imported Imported, write func(session.Log) error) error {
	title, err := checkTitle(imported.Title)
	if err != nil {
		return err
	}
	if err := i.CheckQuota(ctx, 1); err != nil {
		return fmt.Errorf("import conversation: %w", err)
	}
	log := &session.MemoryLog{}
	if err := write(log); err != nil {
		return err
	}
	events, err := log.Read(ctx, 0)
	if err != nil {
		return err
	}
	images := takeImages(events)
	rows, err := i.importRows(events)
	if err != nil {
		return err
	}
	id := i.ID(imported)
	err = i.e.update(ctx, id, func(c *conversationTx) error {
		if err := i.checkQuota(ctx, &c.Tables, 1); err != nil {
			return err
		}
		data, err := json.Marshal(state{Wanted: int64(len(rows.inbox)), Taken: int64(len(rows.inbox))})
		if err != nil {
			return err
		}
		if _, err := c.Sessions.Create(ctx, store.Session{ID: id, Owner: string(i.p.User), Title: title, TitleSource: imported.titleSource(title), Data: data, Created: imported.Last}); err != nil {
			return err
		}
		if err := indexTitle(ctx, &c.Tables, id, title); err != nil {
			return err
		}
		if err := c.changeFiles(ctx, func(f *fileChanges) error { return f.storeImages(ctx, images) }); err != nil {
			return err
		}
		for _, r := range slices.Concat(rows.transcript, rows.inbox, rows.events) {
			if err := c.reserve(ctx, int64(len(r.Data))); err != nil {
				return err
			}
		}
		c.queueEvents(id, 0, rows.transcript)
		if _, err := c.appendEvents(ctx, inboxStream(id), rows.inbox...); err != nil {
			return err
		}
		if _, err := c.appendEvents(ctx, eventStream(id), rows.events...); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(i.p.User, "session.begin", id, importDetails{imported.Key}))
	})
	if err != nil {
		return fmt.Errorf("import conversation: %w", err)
	}
	return nil
}

// importedRows are the rows of an imported conversation in its three streams.
type importedRows struct{ transcript, inbox, events []store.Event }

// importRows returns the rows of a conversation with the given transcript. Each
// message of the user starts a turn, which has ended. So does a branch that does not
// start with such a message.
func (i *Importer) importRows(transcript []session.Event) (importedRows, error) {
	var out importedRows
	var failed error
	add := func(rows *[]store.Event, kind string, at time.Time, v any) {
		data, err := json.Marshal(v)
		failed = errors.Join(failed, err)
		*rows = append(*rows, store.Event{Kind: kind, Data: data, Created: at})
	}
	publish := func(at time.Time, e eventRow) {
		e.Input = int64(len(out.inbox))
		add(&out.events, string(e.Type), at, e)
	}
	startTurn := func(last, at time.Time, e Event) {
		if len(out.inbox) > 0 {
			publish(last, eventRow{Event: Event{Type: TurnEnded, Reason: Done}})
		}
		add(&out.inbox, string(e.Kind), at, input{After: e.After})
		publish(at, eventRow{Event: e})
	}
	var last time.Time
	branch := false // whether the turn has started with a branch
	for n, e := range transcript {
		s := step{Event: e}
		switch {
		case e.Branched != nil:
			after := e.Branched.After
			start := Event{Type: MessageReceived, Kind: SwitchInput, After: &after}
			if next := n + 1; next < len(transcript) && isUserMessage(&transcript[next]) {
				start = messageReceived(&transcript[next])
				start.After, branch = &after, true
			}
			startTurn(last, e.Time, start)
		case isUserMessage(&e):
			if !branch {
				startTurn(last, e.Time, messageReceived(&e))
			}
			branch = false
			s.Input = int64(len(out.inbox))
		}
		if e.Loaded != nil && i.setup.SkillID != nil {
			s.SkillID = i.setup.SkillID(e.Loaded.Skill)
		}
		s.Turn = int64(len(out.inbox))
		add(&out.transcript, e.Type, e.Time, s)
		publish(e.Time, eventRow{Event: Event{Type: Step}, TranscriptSeq: e.Seq})
		last = e.Time
	}
	if len(out.inbox) > 0 {
		publish(last, eventRow{Event: Event{Type: TurnEnded, Reason: Done}})
	}
	return out, failed
}

func isUserMessage(e *session.Event) bool { return e.Message != nil && e.Message.Role == llm.User }

// messageReceived returns the event that starts the turn of a user's message.
func messageReceived(e *session.Event) Event {
	return Event{Type: MessageReceived, Kind: MessageInput, Text: e.Message.Text, Images: e.Message.Images}
}
