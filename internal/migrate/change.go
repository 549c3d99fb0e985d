package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Target is where a plan is applied: a user's setup on this machine, or a user of
// a hub.
type Target struct {
	ServersFile string // the user's servers file
	Secrets     *secrets.Store
	// Documents, if set, keeps the servers and the documents of the plan. Otherwise
	// the servers are added to ServersFile, and documents are only counted.
	Documents Documents
	Chats     Conversations
	// HasSkill reports whether the user has a skill with this name, or gets it
	// from the same source.
	HasSkill func(name string) bool
	// SkillName returns the name of the user's skill that the other system calls
	// name, or "" if there is none. It is called after OpenSession. Like HasSkill,
	// it is called once for each name.
	SkillName func(name string) string
	// IsInstalled reports whether the user's skills directory has this skill. The
	// error is a [*SkippedError] if the directory has, or gets from the same source,
	// a skill with this name and other content.
	IsInstalled func(context.Context, skill.Draft) (bool, error)
	// CreateSkill creates a skill in that directory.
	CreateSkill func(context.Context, skill.Draft) error
	// OpenSession opens a session for a conversation, with the user's skills and
	// settings. The caller closes it before the log.
	OpenSession func(ctx context.Context, log session.Log, id string) (*session.Session, error)
}

// Conversations keeps the conversations of a user.
type Conversations interface {
	// Contains reports whether the user has the conversation. It returns a
	// [*SkippedError] if it cannot be stored.
	Contains(ctx context.Context, c *PastConversation) (bool, error)
	// Import creates a conversation with the events that write appends to its log.
	// If it or write returns an error, no conversation is created.
	Import(ctx context.Context, c *PastConversation, write func(session.Log) error) error
}

// ChatDir is the directory with the conversations of the terminal chat.
type ChatDir chatlog.Dir

// Contains implements [Conversations].
func (d ChatDir) Contains(_ context.Context, c *PastConversation) (bool, error) {
	return chatlog.Dir(d).Contains(c.ID), nil
}

// Import implements [Conversations].
func (d ChatDir) Import(_ context.Context, c *PastConversation, write func(session.Log) error) error {
	return chatlog.Dir(d).Import(c.ID, write)
}

// Documents keeps servers and documents on a hub.
type Documents interface {
	// Compare reports each server and document of a plan. It writes nothing. unset
	// has the names of the secrets that the user must set.
	Compare(ctx context.Context, p *Plan) (items []Item, unset []string, err error)
	// Apply writes the new ones of the last Compare. It returns the names of the
	// documents that it wrote, and an error or problems for the others.
	Apply(ctx context.Context) (written, problems []string, err error)
}

// SkippedError is returned by a function of a [Target] for an item that cannot be
// stored if others may be. Reason is "" if another request has stored the item since
// the plan was compared.
type SkippedError struct{ Reason string }

// ErrNameTaken is returned by [Target.IsInstalled].
var ErrNameTaken = &SkippedError{"a skill with this name and other content exists"}

func (e *SkippedError) Error() string { return e.Reason }

// Change is the difference between a plan and a target. It is not safe for
// concurrent use.
type Change struct {
	// Items reports everything in the plan, in the order of their kinds.
	Items []Item
	// Unset lists the names of the secrets that the user must set.
	Unset []string
	Notes []string
	// Problems lists, after Apply, what could not be taken over completely.
	Problems []string

	target        Target
	skillName     func(string) string // Target.SkillName
	servers       *clientimport.Plan
	drafts        []Draft             // the new ones
	conversations []*PastConversation // the new ones
	documents     bool                // whether the target's Documents have new ones
	written       map[Kind][]string
}

// Compare compares a plan with a target. It writes nothing. The target must not
// change before the result is applied.
func (p *Plan) Compare(ctx context.Context, t Target) (*Change, error) {
	c := &Change{target: t, skillName: remember(t.SkillName), written: map[Kind][]string{}}
	if err := c.compareDrafts(ctx, p, t); err != nil {
		return nil, err
	}
	compare := c.compareServers
	if t.Documents != nil {
		compare = c.compareDocuments
	}
	if err := compare(ctx, p, t); err != nil {
		return nil, err
	}
	if err := c.compareConversations(ctx, p, t); err != nil {
		return nil, err
	}
	c.Items = append(c.Items, p.Lost...)
	for i := range c.Items {
		c.Items[i].Clip()
	}
	return c, nil
}

// remember returns a function that calls f once for each name.
func remember[T any](f func(name string) T) func(name string) T {
	known := map[string]T{}
	return func(name string) T {
		v, ok := known[name]
		if !ok {
			v = f(name)
			known[name] = v
		}
		return v
	}
}

// compareConversations plans the conversations to import.
func (c *Change) compareConversations(ctx context.Context, p *Plan, t Target) error {
	has := remember(t.HasSkill)
	for _, past := range p.Conversations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		exists, err := t.Chats.Contains(ctx, past)
		if skipped, ok := errors.AsType[*SkippedError](err); ok {
			c.Items = append(c.Items, Item{Kind: Conversation, Name: past.Title, From: past.From, ID: past.ID, Outcome: Lost, Details: []string{skipped.Reason}})
			continue
		}
		if err != nil {
			return err
		}
		item := Item{Kind: Conversation, Name: past.Title, From: past.From, ID: past.ID, Outcome: Kept, New: !exists}
		onHub := t.Documents != nil
		messages, others, images := past.count(onHub)
		lost := slices.Clip(past.Lost)
		if others > 0 {
			lost = append(lost, pluralize(others, "message")+" on other branches")
		}
		if images > 0 {
			lost = append(lost, pluralize(images, "image"))
		}
		if len(lost) > 0 {
			item.Outcome, item.Details = Changed, []string{"without " + strings.Join(lost, ", ")}
		}
		if item.New {
			if missing := past.missingSkills(has); len(missing) > 0 {
				item.Outcome = Changed
				item.Details = append(item.Details, fmt.Sprintf("it used %s that you do not have: %s; after you add a skill, type /NAME in the conversation to load it", pluralize(len(missing), "skill"), firstNames(missing)))
			}
			size := pluralize(messages, "message")
			if !onHub { // a hub shows the title
				size += ", named " + past.ID
			}
			item.Details = append(item.Details, size)
			c.conversations = append(c.conversations, past)
		}
		c.Items = append(c.Items, item)
	}
	return nil
}

// compareDocuments plans the servers and documents to add to a hub.
func (c *Change) compareDocuments(ctx context.Context, p *Plan, t Target) error {
	items, unset, err := t.Documents.Compare(ctx, p)
	if err != nil {
		return err
	}
	c.servers = &clientimport.Plan{Action: clientimport.None}
	c.Items, c.Unset = append(c.Items, items...), unset
	c.documents = slices.ContainsFunc(items, func(i Item) bool { return i.New })
	return nil
}

// IsEmpty reports whether applying the change would write nothing.
func (c *Change) IsEmpty() bool {
	return c.servers.Action == clientimport.None && len(c.conversations) == 0 && len(c.drafts) == 0 && !c.documents
}

// Apply writes the change. After an error, call [Plan.Compare] and Apply again to
// write the rest. A conversation whose skills cannot all be loaded is written
// without them and added to Problems.
func (c *Change) Apply(ctx context.Context) error {
	for _, d := range c.drafts {
		if err := c.target.CreateSkill(ctx, d.Draft); err != nil {
			if !c.skip("skill "+d.Name, err) {
				return err
			}
			continue
		}
		c.written[Skill] = append(c.written[Skill], d.Name)
	}
	if c.servers.Action != clientimport.None {
		if err := c.servers.Apply(ctx); err != nil {
			return err
		}
		c.written[Server] = c.servers.ChangedServers()
	}
	if c.documents {
		written, problems, err := c.target.Documents.Apply(ctx)
		c.written[Resources], c.Problems = written, append(c.Problems, problems...)
		if err != nil {
			return err
		}
	}
	for _, past := range c.conversations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.importConversation(ctx, past); err != nil {
			if !c.skip("conversation "+past.quotedTitle(), err) {
				return fmt.Errorf("import conversation %s: %w", past.ID, err)
			}
			continue
		}
		c.written[Conversation] = append(c.written[Conversation], past.ID)
	}
	return nil
}

// skip adds a problem if err is a [*SkippedError] with a reason. It reports whether
// err is a [*SkippedError].
func (c *Change) skip(what string, err error) bool {
	skipped, ok := errors.AsType[*SkippedError](err)
	if ok && skipped.Reason != "" {
		c.Problems = append(c.Problems, clip(what+" was not added: "+skipped.Reason))
	}
	return ok
}

// importConversation stores a conversation and loads the skills that would
// still be active in it. It adds a problem if not all of them can be loaded.
func (c *Change) importConversation(ctx context.Context, past *PastConversation) error {
	return c.target.Chats.Import(ctx, past, func(log session.Log) error {
		watched := &watchedLog{Log: log}
		events := past.events(c.target.Documents != nil)
		for _, e := range events {
			if e.SetType(); e.Time.IsZero() {
				e.Time = time.Now().UTC()
			}
		}
		if err := watched.Append(ctx, events...); err != nil { // a session accepts no branches
			return err
		}
		s, err := c.target.OpenSession(ctx, watched, past.ID)
		if err != nil {
			return err
		}
		defer s.Close()
		err = s.Restore(ctx, past.history(c.skillName), nil)
		if err == nil || watched.failed || ctx.Err() != nil {
			return err
		}
		c.Problems = append(c.Problems, clip(fmt.Sprintf("conversation %s continues without some of its skills: %v", past.quotedTitle(), err)))
		return nil
	})
}

// watchedLog is a log that remembers whether it failed.
type watchedLog struct {
	session.Log
	failed bool
}

func (l *watchedLog) Append(ctx context.Context, events ...*session.Event) error {
	err := l.Log.Append(ctx, events...)
	l.failed = l.failed || err != nil
	return err
}

// compareServers plans the servers to add to the user's servers file.
func (c *Change) compareServers(ctx context.Context, p *Plan, t Target) error {
	var all []clientimport.Definition
	for _, s := range p.Servers {
		all = append(all, s.Definition)
	}
	plan, err := clientimport.PlanDefinitions(ctx, t.ServersFile, t.Secrets, string(p.System), all)
	if err != nil {
		return err
	}
	c.servers, c.Unset, c.Notes = plan, plan.Unset, plan.Notes
	for i, s := range plan.Servers { // in the order of the definitions
		c.Items = append(c.Items, ServerItem(s, p.Servers[i].From))
	}
	for _, f := range p.Resources {
		c.Items = append(c.Items, f.item())
	}
	return nil
}

// ServerItem returns the item for a planned server. from is the file that defines it.
func ServerItem(s clientimport.Server, from string) Item {
	item := Item{Kind: Server, Name: s.Name, From: from, Outcome: Kept, New: s.State == clientimport.Added, Details: s.Problems}
	if item.New {
		item.Does = s.Does
	}
	if s.State == clientimport.Skipped {
		item.Outcome = Lost
	} else if s.As != s.Name {
		item.Details = append(item.Details, "named "+s.As+", because another server has its name")
	}
	seen := map[string]bool{}
	for _, m := range s.Secrets {
		text := m.Where + " is now the secret " + m.Secret
		if !seen[text] {
			item.Details = append(item.Details, text)
		}
		seen[text] = true
	}
	if item.Outcome == Kept && len(item.Details) > 0 {
		item.Outcome = Changed
	}
	return item
}

// Written returns the names of the converted skills, the servers, the documents or
// the conversations that Apply wrote, even if it then returned an error.
func (c *Change) Written(k Kind) []string { return c.written[k] }
