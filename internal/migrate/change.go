package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Target is a user's setup on this machine, to which a plan is applied.
type Target struct {
	ServersFile string // the user's servers file
	Secrets     *secrets.Store
	Chats       chatlog.Dir // conversations of the terminal chat
	// HasSkill reports whether the user has a skill with this name, or gets it
	// from the same source.
	HasSkill func(name string) bool
	// SkillName returns the name of the user's skill that the other system calls
	// name, or name if there is none. It is called after OpenSession.
	SkillName func(name string) string
	// IsInstalled reports whether the user's skills directory has a skill with
	// this name, or gets it from the same source.
	IsInstalled func(name string) (bool, error)
	// CreateSkill creates a skill in that directory.
	CreateSkill func(context.Context, skill.Draft) error
	// OpenSession opens a session for a conversation, with the user's skills and
	// settings. The caller closes it before the log.
	OpenSession func(ctx context.Context, log session.Log, id string) (*session.Session, error)
}

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
	servers       *clientimport.Plan
	drafts        []Draft             // the new ones
	conversations []*PastConversation // the new ones
	written       map[Kind][]string
}

// Compare compares a plan with a target. It writes nothing. The target must not
// change before the result is applied.
func (p *Plan) Compare(t Target) (*Change, error) {
	c := &Change{target: t, written: map[Kind][]string{}}
	if err := c.compareDrafts(p, t); err != nil {
		return nil, err
	}
	if err := c.compareServers(p, t); err != nil {
		return nil, err
	}
	for _, f := range p.Resources {
		c.Items = append(c.Items, f.item())
	}
	for _, past := range p.Conversations {
		item := Item{Kind: Conversation, Name: past.Title, From: past.From, Outcome: Kept, New: !t.Chats.Contains(past.ID)}
		if len(past.Lost) > 0 {
			item.Outcome, item.Details = Changed, []string{"without " + strings.Join(past.Lost, ", ")}
		}
		if missing := past.missingSkills(t.HasSkill); item.New && len(missing) > 0 {
			item.Outcome = Changed
			item.Details = append(item.Details, fmt.Sprintf("it used %s that you do not have: %s; install them, and write /NAME in the conversation to load one", pluralize(len(missing), "skill"), strings.Join(missing, ", ")))
		}
		if item.New {
			item.Details = append(item.Details, fmt.Sprintf("%s, named %s", pluralize(len(past.events()), "message"), past.ID))
			c.conversations = append(c.conversations, past)
		}
		c.Items = append(c.Items, item)
	}
	c.Items = append(c.Items, p.Lost...)
	for i := range c.Items {
		c.Items[i].clip()
	}
	return c, nil
}

// IsEmpty reports whether applying the change would write nothing.
func (c *Change) IsEmpty() bool {
	return c.servers.Action == clientimport.None && len(c.conversations) == 0 && len(c.drafts) == 0
}

// Apply writes the change. After an error, call [Plan.Compare] and Apply again to
// write the rest. A conversation whose skills cannot all be loaded is written
// without them and added to Problems.
func (c *Change) Apply(ctx context.Context) error {
	for _, d := range c.drafts {
		if err := c.target.CreateSkill(ctx, d.Draft); err != nil {
			return err
		}
		c.written[Skill] = append(c.written[Skill], d.Name)
	}
	if c.servers.Action != clientimport.None {
		if err := c.servers.Apply(ctx); err != nil {
			return err
		}
		c.written[Server] = c.servers.ChangedServers()
	}
	for _, past := range c.conversations {
		if err := c.importConversation(ctx, past); err != nil {
			return fmt.Errorf("import conversation %s: %w", past.ID, err)
		}
		c.written[Conversation] = append(c.written[Conversation], past.ID)
	}
	return nil
}

// importConversation stores a conversation and loads the skills that would
// still be active in it. It adds a problem if not all of them can be loaded.
func (c *Change) importConversation(ctx context.Context, past *PastConversation) error {
	return c.target.Chats.Import(past.ID, func(log session.Log) error {
		watched := &watchedLog{Log: log}
		s, err := c.target.OpenSession(ctx, watched, past.ID)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Append(ctx, past.events()...); err != nil {
			return err
		}
		err = s.Restore(ctx, past.history(c.target.SkillName), nil)
		if err == nil || watched.failed || ctx.Err() != nil {
			return err
		}
		c.Problems = append(c.Problems, clip(fmt.Sprintf("conversation %s continues without some of its skills: %v", past.ID, err)))
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
func (c *Change) compareServers(p *Plan, t Target) error {
	var all []clientimport.Definition
	for _, s := range p.Servers {
		all = append(all, s.Definition)
	}
	plan, err := clientimport.PlanDefinitions(t.ServersFile, t.Secrets, string(p.System), all)
	if err != nil {
		return err
	}
	c.servers, c.Unset, c.Notes = plan, plan.Unset, plan.Notes
	for i, s := range plan.Servers { // in the order of the definitions
		item := Item{Kind: Server, Name: s.Name, From: p.Servers[i].From, Outcome: Kept, New: s.State == clientimport.Added, Details: s.Problems}
		if item.New {
			item.Does = s.Does
		}
		if s.State == clientimport.Skipped {
			item.Outcome = Lost
		} else if s.As != s.Name {
			item.Details = append(item.Details, "named "+s.As+", because another server has its name")
		}
		for _, m := range s.Secrets {
			if text := m.Where + " is now the secret " + m.Secret; !slices.Contains(item.Details, text) {
				item.Details = append(item.Details, text)
			}
		}
		if item.Outcome == Kept && len(item.Details) > 0 {
			item.Outcome = Changed
		}
		c.Items = append(c.Items, item)
	}
	return nil
}

// Written returns the names of the converted skills, the servers or the
// conversations that Apply wrote, even if it then returned an error.
func (c *Change) Written(k Kind) []string { return c.written[k] }
