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
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
)

// Profile is a snapshot of a Ghost, Bot or Team configuration for one principal,
// with all references resolved.
type Profile struct {
	Kind, Namespace, Name string
	ID                    string
	In                    store.Namespace
	Description           string

	SystemPrompt string
	// Skills lists the Ghost's skills, then the Bot's.
	Skills []SkillChoice
	// Withheld lists the skills whose reference does not resolve, and those whose
	// version the principal must not access. They are not in Skills, and no other skill
	// may take their names. Problems has the reasons.
	Withheld []SkillChoice
	// Servers is sorted by name. If a server is not [Server.Usable], it needs a
	// review and is mentioned in Problems.
	Servers []Server
	Model   *ModelChoice // nil selects the hub's default model
	Rules   policy.Rules
	Expose  string // meta, direct, or "" for the default

	// Members lists the members of a Team except its leader; the profile of a Team
	// is its leader's profile. HandOff is the tool with which the leader hands over
	// tasks, or nil if there are no other members. [Registry.MemberProfile] returns
	// a member's profile.
	Members []TeamMember
	HandOff *llm.Tool

	// SettingsNamespaces lists the namespaces whose skill settings apply: those of
	// the agent and its parts. See [Registry.WithKillSwitch].
	SettingsNamespaces []store.Namespace
	// Owners lists the owners of the platform values of the agent, in order of
	// increasing precedence: the namespaces of the Ghost and the Bot, then both.
	Owners []Owner
	// Filter selects the skills permitted by the agent and the skill settings.
	Filter catalog.Filter
	// Problems describes unavailable skills, members and servers.
	Problems []string
	trial    trialDocuments // of [Registry.TrialProfile]
	// Revision is the [store.KindsRevision] at which the profile was read.
	Revision int64
}

// SkillChoice is a skill selected by a profile.
type SkillChoice struct {
	Name    string          `json:"name"`
	ID      string          `json:"id,omitempty" doc:"Absent if it is bundled, or no skill of that name is available to you"`
	In      store.Namespace `json:"namespace,omitempty" doc:"Its own namespace: user:ID, group:ID, public, hub for the directories of the operator, or bundled"`
	Digest  string          `json:"content_hash,omitempty" doc:"Required digest"`
	Bundled bool            `json:"bundled,omitempty" doc:"Whether it is bundled with the hub"`
	Preload bool            `json:"preload" doc:"Whether it is active from the start"`
}

// chosenSkill is the result of resolving a reference to a skill.
type chosenSkill struct {
	SkillChoice
	problem string // why the skill is not available; "" if it is
	missing bool   // whether no skill with the name was found; another reference may still find one
}

// ModelChoice is the language model selected by a profile.
type ModelChoice struct {
	ID   string
	In   store.Namespace
	Name string // name of the Model resource
	Model
	// Digest identifies the model and its address. API keys are granted to it.
	Digest policy.Digest
	// Local reports whether the model's server may be on the hub's machine, without
	// the operator's permission: the hub has no accounts, so its only user is the
	// operator.
	Local bool
}

// ReportedName returns the name that the model reports; see [llm.Model].
func (m *ModelChoice) ReportedName() string {
	vendor, _ := vendors.Lookup(m.Vendor)
	return vendor.ReportedName(m.Model.Model, m.BaseURL)
}

// Profile returns the profile of a Ghost, Bot or Team that the principal may use.
// If namespace is empty, it uses the first namespace, in order of precedence, that
// has a resource with the given name. Missing skills, members and servers are
// listed in [Profile.Problems]; a missing Ghost or Model is an error. For an MCP
// endpoint, limit the principal's scopes to [account.ScopeMCP].
func (r *Registry) Profile(ctx context.Context, p account.Principal, kind, namespace, name string) (*Profile, error) {
	return r.readConsistent(ctx, func() (*Profile, error) {
		a := r.newActor(p)
		if err := a.requireSignIn(account.KindUse); err != nil {
			return nil, err
		}
		home := store.UserNamespace(string(p.User))
		k, err := a.findForUse(ctx, home, kind, namespace, name)
		if err != nil {
			return nil, err
		}
		switch kind {
		case GhostKind, BotKind:
			return r.buildProfile(ctx, a, k, "")
		case TeamKind:
			return r.teamProfile(ctx, a, k)
		}
		return nil, fmt.Errorf("%s %q: %w: want a Ghost, Bot or Team", shorten(kind), shorten(name), store.ErrInvalid)
	})
}

// readConsistent calls get up to five times, until no document changes during a
// call. It sets the profile's revision.
func (r *Registry) readConsistent(ctx context.Context, get func() (*Profile, error)) (*Profile, error) {
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

// findForUse returns a resource that the actor may use. If namespace is empty, it
// searches the namespaces that a document in home can refer to.
func (a actor) findForUse(ctx context.Context, home store.Namespace, kind, namespace, name string) (store.Kind, error) {
	if namespace != "" {
		return a.getKind(ctx, account.KindUse, kind, namespace, name)
	}
	found, err := a.Kinds.Find(ctx, kind, name, a.lookupNamespaces(home))
	if err != nil {
		return store.Kind{}, err
	}
	if len(found) == 0 {
		return store.Kind{}, fmt.Errorf("%s %q: %w", shorten(kind), shorten(name), store.ErrNotFound)
	}
	k := found[0]
	return k, a.checkAccess(account.KindUse, accountResource(k.Namespace, k.CreatedBy), kind, name)
}

// buildProfile returns the profile of a Ghost or Bot. It appends extraPrompt to
// the system prompt.
func (r *Registry) buildProfile(ctx context.Context, a actor, k store.Kind, extraPrompt string) (*Profile, error) {
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	p := &Profile{Kind: k.Kind, Namespace: res.Namespace, Name: k.Name, ID: k.ID, In: k.Namespace, Description: res.Description}
	parts := []*Resource{res}
	if bot, ok := res.Spec.(*Bot); ok {
		ghost, err := a.findKind(ctx, account.KindUse, k.Namespace, GhostKind, bot.Ghost)
		if err != nil {
			return nil, fmt.Errorf("Bot %q: %w", k.Name, err)
		}
		one, err := a.decodeResource(ctx, ghost)
		if err != nil {
			return nil, err
		}
		parts = []*Resource{one, res}
		if bot.Model != nil {
			model, err := a.findKind(ctx, account.KindUse, k.Namespace, ModelKind, *bot.Model)
			if err == nil {
				p.Model, err = a.modelChoice(ctx, model)
			}
			if err != nil {
				return nil, fmt.Errorf("Bot %q: %w", k.Name, err)
			}
		}
	}
	ghost, ok := parts[0].Spec.(*Ghost)
	if !ok {
		return nil, fmt.Errorf("%s %q: %w: missing Ghost", k.Kind, k.Name, store.ErrInvalid)
	}
	p.SystemPrompt, p.Expose = paragraphs(ghost.SystemPrompt, extraPrompt), ghost.Expose
	rules, problems := policy.ParseRules(ghost.Policy)
	for _, problem := range problems { // invalid rules deny all calls
		p.addProblem("policy: %s", problem)
	}
	p.Rules = rules
	if err := r.addSkills(ctx, a, p, parts); err != nil {
		return nil, err
	}
	var resources []Owner
	for _, part := range parts {
		if err := r.addSettings(ctx, p, part.In); err != nil {
			return nil, err
		}
		p.Owners, resources = append(p.Owners, NamespaceOwner(part.In)), append(resources, ServerOwner(part.ID))
	}
	p.Owners = append(p.Owners, resources...)
	return p, r.addServers(ctx, a, p, parts)
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

func (p *Profile) addProblem(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

// addSkills resolves the skills of a Ghost and its Bot. The Bot's references take
// precedence.
func (r *Registry) addSkills(ctx context.Context, a actor, p *Profile, parts []*Resource) error {
	var all []chosenSkill
	position := map[string]int{}
	for _, part := range parts {
		s := findSelection(part.Spec)
		if s.Skills != nil && p.Filter.Select == nil {
			p.Filter.Select = []string{}
		}
		for _, name := range s.Skills {
			c, err := r.chooseSkill(ctx, a, part.In, name, s.SkillRefs[name])
			if err != nil {
				return err
			}
			c.Preload = slices.Contains(s.Preload, name)
			i, again := position[name]
			if !again {
				position[name] = len(all)
				all = append(all, c)
				continue
			}
			c.Preload = c.Preload || all[i].Preload
			if _, precise := s.SkillRefs[name]; !precise {
				preload := c.Preload
				c = all[i]
				c.Preload = preload
			}
			all[i] = c
		}
	}
	for _, c := range all {
		if c.problem != "" && !c.missing {
			p.Withheld = append(p.Withheld, c.SkillChoice)
		} else {
			p.Skills = append(p.Skills, c.SkillChoice)
			p.Filter.Select = append(p.Filter.Select, c.Name)
		}
		if c.problem != "" {
			p.addProblem("skill %s: %s", c.Name, c.problem)
		}
	}
	return nil
}

// chooseSkill resolves a skill reference from a document in the namespace home.
func (r *Registry) chooseSkill(ctx context.Context, a actor, home store.Namespace, name string, ref SkillRef) (chosenSkill, error) {
	c := chosenSkill{SkillChoice: SkillChoice{Name: name, Digest: ref.Digest}}
	found, err := a.findSkill(ctx, account.SkillUse, home, name, ref, func(string) bool { return true })
	if found != nil {
		c.ID, c.In = found.ID, found.Namespace
	}
	switch {
	case errors.Is(err, store.ErrNotFound) && r.isBundled(name, ref):
		c.Bundled = true
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		c.problem, c.missing = "not found or not permitted", ref == SkillRef{}
		if found != nil {
			c.problem = "it has no version with digest " + shorten(ref.Digest)
		}
	case err != nil:
		return c, err
	case r.opts.WithheldReason != nil:
		if c.problem, err = r.opts.WithheldReason(ctx, a.p, *found, ref.Digest); err != nil {
			return c, err
		}
	}
	return c, nil
}

// isBundled reports whether a reference names a bundled skill. A reference with a
// non-empty [SkillRef] always names a hub skill.
func (r *Registry) isBundled(name string, ref SkillRef) bool {
	return ref == SkillRef{} && slices.Contains(r.opts.Bundled, name)
}

// addSettings applies the skill settings of a namespace to a profile. Applying
// the same namespace again changes nothing.
func (r *Registry) addSettings(ctx context.Context, p *Profile, in store.Namespace) error {
	if !slices.Contains(p.SettingsNamespaces, in) {
		p.SettingsNamespaces = append(p.SettingsNamespaces, in)
	}
	f, err := r.Filter(ctx, p.SettingsNamespaces...)
	p.Filter.Disabled, p.Filter.Allow = f.Disabled, f.Allow
	return err
}

// addServers adds the Ghost's, the Bot's and the hub's servers to a profile.
func (r *Registry) addServers(ctx context.Context, a actor, p *Profile, parts []*Resource) error {
	var l ServerLayers
	var err error
	if l.Ghost, err = a.definedServers(ctx, parts[0]); err != nil {
		return err
	}
	names := slices.Clone(findSelection(parts[0].Spec).serverNames)
	if len(parts) > 1 {
		if l.Bot, err = a.definedServers(ctx, parts[1]); err != nil {
			return err
		}
		names = append(names, findSelection(parts[1].Spec).serverNames...)
	}
	global, problems, err := r.listGlobalServers(ctx, a, parts[0].In)
	if err != nil {
		return err
	}
	p.Problems = append(p.Problems, problems...)
	if len(parts) > 1 && parts[1].In != parts[0].In { // servers near the Bot take precedence
		near, problems, err := r.listGlobalServers(ctx, a, parts[1].In)
		if err != nil {
			return err
		}
		p.Problems = append(p.Problems, problems...)
		global = append(near, global...)
	}
	for _, name := range names {
		if !slices.ContainsFunc(global, func(s Server) bool { return s.Name == name }) {
			p.addProblem("MCP server %s: not found or not permitted", name)
		}
	}
	if len(names) > 0 { // limit to the named servers
		global = slices.DeleteFunc(global, func(s Server) bool { return !slices.Contains(names, s.Name) })
	}
	l.Global = global
	p.Servers, problems = ResolveServers(l)
	p.Problems = append(p.Problems, problems...)
	for _, s := range p.Servers {
		if !s.Usable() {
			p.addProblem("MCP server %s: not started: its command needs a review (state: %s)", s.Name, s.Review)
		}
	}
	return nil
}

// modelChoice converts a stored Model to a ModelChoice.
func (a actor) modelChoice(ctx context.Context, k store.Kind) (*ModelChoice, error) {
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	m, ok := res.Spec.(*Model)
	if !ok {
		return nil, fmt.Errorf("%s %q: %w: not a Model", k.Kind, k.Name, store.ErrInvalid)
	}
	identity := *m
	identity.Images, identity.Window = nil, 0 // a key is granted to the model and its address
	raw, err := plainjson.Line(&identity)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256([]byte(ModelKind + "\n" + k.ID + "\n" + string(raw)))
	return &ModelChoice{ID: k.ID, In: k.Namespace, Name: k.Name, Model: *m, Digest: policy.Digest("sha256:" + hex.EncodeToString(h[:]))}, nil
}
