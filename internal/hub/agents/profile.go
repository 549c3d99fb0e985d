package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// Profile is what a conversation or an MCP endpoint of a Ghost, Bot or Team consists
// of, for one principal, as it was found at one moment.
type Profile struct {
	Kind, Namespace, Name string
	ID                    string
	In                    store.Namespace
	Description           string

	SystemPrompt string
	// Skills are those of the Ghost, then those of the Bot, in their order.
	Skills []SkillChoice
	// Servers are in order of their names. Those that are not [Server.Usable] wait for
	// a review, and Problems says so.
	Servers []Server
	Model   *ModelChoice // nil is the default of the hub
	Rules   policy.Rules
	Expose  string // meta, direct, or "" for the default

	// Members are those of a Team besides its leader, whose profile this is. HandOff is
	// the tool by which it hands a task to one of them, nil where there is none; who
	// holds the conversation runs [Registry.MemberProfile] for it.
	Members []TeamMember
	HandOff *llm.Tool

	// SettingsNamespaces are the namespaces whose settings count: of the thing itself and of what it
	// is made of. A turn is held for them: see [Registry.WithKillSwitch].
	SettingsNamespaces []store.Namespace
	// Filter lets through the skills that are chosen, all where nothing is said of them,
	// as far as the settings let them.
	Filter catalog.Filter
	// Problems are what is missing, and why.
	Problems []string
	// Revision is that of [store.KindsRevision] as of which all this is.
	Revision int64
}

// SkillChoice is one skill of a profile.
type SkillChoice struct {
	Name    string
	ID      string          // "" where there is none by now
	In      store.Namespace // in which it is at home
	Digest  string          // that it has to have, "" for its current version
	Bundled bool            // it comes with the program, and so has no ID
	Preload bool
}

// ModelChoice is the language model of a profile.
type ModelChoice struct {
	ID   string
	In   store.Namespace
	Name string // of the Model
	Model
	// Digest is what its key is granted to: another address is another one.
	Digest policy.Digest
}

// Profile returns what a Ghost, Bot or Team consists of for a principal who may use it.
// A namespace of "" looks in all that he sees, the nearest first. Of what it names,
// skills, members and servers that are gone, or not for him, are among the problems;
// without its Ghost or its Model there is no profile. An MCP endpoint asks for a
// principal who is limited to [account.ScopeMCP].
func (r *Registry) Profile(ctx context.Context, p account.Principal, kind, namespace, name string) (*Profile, error) {
	return r.settled(ctx, func() (*Profile, error) {
		a := r.actor(p)
		if err := a.signedIn(account.KindUse); err != nil {
			return nil, err
		}
		home := store.UserNamespace(string(p.User))
		k, err := a.lookUp(ctx, home, kind, namespace, name)
		if err != nil {
			return nil, err
		}
		switch kind {
		case GhostKind, BotKind:
			return r.assemble(ctx, a, k, "")
		case TeamKind:
			return r.team(ctx, a, k)
		}
		return nil, fmt.Errorf("%s %q: %w: no conversation is held with one", short(kind), short(name), store.ErrInvalid)
	})
}

// settled makes a profile while nothing that it is made of changes.
func (r *Registry) settled(ctx context.Context, get func() (*Profile, error)) (*Profile, error) {
	for try := 1; ; try++ {
		before, err := r.db.Revisions(ctx)
		if err != nil {
			return nil, err
		}
		out, failed := get()
		after, err := r.db.Revisions(ctx)
		if err != nil {
			return nil, err
		}
		if before[store.KindsRevision] != after[store.KindsRevision] {
			if try < 5 {
				continue
			}
			return nil, store.ErrBusy
		}
		if failed == nil {
			out.Revision = after[store.KindsRevision]
		}
		return out, failed
	}
}

// lookUp finds what somebody wants to use. With a namespace he may be told that he may
// not; without, it is as if it were not there.
func (a actor) lookUp(ctx context.Context, home store.Namespace, kind, namespace, name string) (store.Kind, error) {
	if namespace != "" {
		return a.named(ctx, account.KindUse, kind, namespace, name)
	}
	found, err := a.Kinds.Find(ctx, kind, name, a.around(home))
	if err != nil {
		return store.Kind{}, err
	}
	if len(found) == 0 {
		return store.Kind{}, fmt.Errorf("%s %q: %w", short(kind), short(name), store.ErrNotFound)
	}
	k := found[0]
	return k, a.check(account.KindUse, resource(k.Namespace, k.CreatedBy), kind, name)
}

// assemble is the profile of a Ghost or a Bot, with something more to be said to it.
func (r *Registry) assemble(ctx context.Context, a actor, k store.Kind, more string) (*Profile, error) {
	res, err := a.read(ctx, k)
	if err != nil {
		return nil, err
	}
	p := &Profile{Kind: k.Kind, Namespace: res.Namespace, Name: k.Name, ID: k.ID, In: k.Namespace, Description: res.Description}
	parts := []*Resource{res}
	if bot, ok := res.Spec.(*Bot); ok {
		ghost, err := a.find(ctx, account.KindUse, k.Namespace, GhostKind, bot.Ghost)
		if err != nil {
			return nil, fmt.Errorf("Bot %q: %w", k.Name, err)
		}
		one, err := a.read(ctx, ghost)
		if err != nil {
			return nil, err
		}
		parts = []*Resource{one, res}
		if bot.Model != nil {
			model, err := a.find(ctx, account.KindUse, k.Namespace, ModelKind, *bot.Model)
			if err == nil {
				p.Model, err = a.model(ctx, model)
			}
			if err != nil {
				return nil, fmt.Errorf("Bot %q: %w", k.Name, err)
			}
		}
	}
	ghost, ok := parts[0].Spec.(*Ghost)
	if !ok {
		return nil, fmt.Errorf("%s %q: %w: it has no Ghost", k.Kind, k.Name, store.ErrInvalid)
	}
	p.SystemPrompt, p.Expose = paragraphs(ghost.SystemPrompt, more), ghost.Expose
	rules, problems := policy.ParseRules(ghost.Policy)
	for _, problem := range problems { // with which no tool is called
		p.problem("policy: %s", problem)
	}
	p.Rules = rules
	if err := r.skills(ctx, a, p, parts); err != nil {
		return nil, err
	}
	for _, part := range parts {
		if err := r.settle(ctx, p, part.In); err != nil {
			return nil, err
		}
	}
	return p, r.servers(ctx, a, p, parts)
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

func (p *Profile) problem(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

// skills finds the skills of a Ghost and a Bot. What a Bot says of a skill of its Ghost
// counts.
func (r *Registry) skills(ctx context.Context, a actor, p *Profile, parts []*Resource) error {
	place := map[string]int{}
	for _, part := range parts {
		s := selected(part.Spec)
		if s.Skills != nil && p.Filter.Select == nil {
			p.Filter.Select = []string{}
		}
		for _, name := range s.Skills {
			c := SkillChoice{Name: name, Digest: s.SkillRefs[name].Digest, Preload: slices.Contains(s.Preload, name)}
			found, err := a.findSkill(ctx, account.SkillUse, part.In, name, s.SkillRefs[name], func(string) bool { return true })
			switch {
			case errors.Is(err, store.ErrNotFound) && r.comes(name, s.SkillRefs[name]):
				c.Bundled = true
			case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
				p.problem("skill %s: there is none that you may use", name)
			case err != nil:
				return err
			default:
				c.ID, c.In = found.ID, found.Namespace
			}
			if i, again := place[name]; again {
				c.Preload = c.Preload || p.Skills[i].Preload
				if _, precise := s.SkillRefs[name]; !precise {
					c.ID, c.In, c.Digest, c.Bundled = p.Skills[i].ID, p.Skills[i].In, p.Skills[i].Digest, p.Skills[i].Bundled
				}
				p.Skills[i] = c
				continue
			}
			place[name] = len(p.Skills)
			p.Skills = append(p.Skills, c)
			p.Filter.Select = append(p.Filter.Select, name)
		}
	}
	return nil
}

// comes reports whether a skill that is named comes with the program. One that is named
// precisely is of the hub.
func (r *Registry) comes(name string, ref SkillRef) bool {
	return ref == SkillRef{} && slices.Contains(r.opts.Bundled, name)
}

// settle has the settings of a namespace, and of those before, count for a profile.
func (r *Registry) settle(ctx context.Context, p *Profile, in store.Namespace) error {
	if !slices.Contains(p.SettingsNamespaces, in) {
		p.SettingsNamespaces = append(p.SettingsNamespaces, in)
	}
	f, err := r.Filter(ctx, p.SettingsNamespaces...)
	p.Filter.Disabled, p.Filter.Allow = f.Disabled, f.Allow
	return err
}

// servers puts the servers of a Ghost, a Bot and the hub together.
func (r *Registry) servers(ctx context.Context, a actor, p *Profile, parts []*Resource) error {
	var l ServerLayers
	var err error
	if l.Ghost, err = a.defined(ctx, parts[0]); err != nil {
		return err
	}
	names := slices.Clone(selected(parts[0].Spec).names)
	if len(parts) > 1 {
		if l.Bot, err = a.defined(ctx, parts[1]); err != nil {
			return err
		}
		names = append(names, selected(parts[1].Spec).names...)
	}
	global, problems, err := r.global(ctx, a, parts[0].In)
	if err != nil {
		return err
	}
	p.Problems = append(p.Problems, problems...)
	if len(parts) > 1 && parts[1].In != parts[0].In { // what is around the Bot is nearer
		near, problems, err := r.global(ctx, a, parts[1].In)
		if err != nil {
			return err
		}
		p.Problems = append(p.Problems, problems...)
		global = append(near, global...)
	}
	for _, name := range names {
		if !slices.ContainsFunc(global, func(s Server) bool { return s.Name == name }) {
			p.problem("MCP server %s: there is none that you may use", name)
		}
	}
	if len(names) > 0 { // of those that are there, the ones that it names
		global = slices.DeleteFunc(global, func(s Server) bool { return !slices.Contains(names, s.Name) })
	}
	l.Global = global
	p.Servers, problems = ResolveServers(l)
	p.Problems = append(p.Problems, problems...)
	for _, s := range p.Servers {
		if !s.Usable() {
			p.problem("MCP server %s: its command is not run: somebody has to review it first (it is %s)", s.Name, s.Review)
		}
	}
	return nil
}

// model is a row of a Model.
func (a actor) model(ctx context.Context, k store.Kind) (*ModelChoice, error) {
	res, err := a.read(ctx, k)
	if err != nil {
		return nil, err
	}
	m, ok := res.Spec.(*Model)
	if !ok {
		return nil, fmt.Errorf("%s %q: %w: it is no Model", k.Kind, k.Name, store.ErrInvalid)
	}
	raw, err := encode(m)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256([]byte(ModelKind + "\n" + k.ID + "\n" + string(raw)))
	return &ModelChoice{ID: k.ID, In: k.Namespace, Name: k.Name, Model: *m, Digest: policy.Digest("sha256:" + hex.EncodeToString(h[:]))}, nil
}
