package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// plan is a snapshot of a setup's contents, with all names resolved.
type plan struct {
	principal          account.Principal
	profile            *agents.Profile      // nil if there is no agent
	draft              *library.DraftSource // takes precedence over all other skills; may be nil
	refs               []ref                // named skills; no other skills may have their names
	withheld           []string             // names selected by the agent for which no skill may be used
	selected           []string             // names of the available skills; nil means all
	settingsNamespaces []store.Namespace
	servers            []agents.Server
	publishers         []agents.Server               // servers whose skills are used; their labels differ
	values             map[string]upstream.Variables // values of variables, by server name
	platform           agents.PlatformScope          // sources of platform values for skills
	platformStamp      string                        // changes with these values and their grants
	stamps             map[string]string             // fingerprints of sign-ins, by server name
	rules              policy.Rules
	preload            []string
	preloadReasons     map[string]string // reasons for preloading skills, by skill name
	problems           []string
}

// ref is a reference to a skill, with the namespace that owns the skill.
type ref struct {
	library.Ref
	home store.Namespace
}

// newPlan returns the plan for the requested setup.
func (k *Assembler) newPlan(ctx context.Context, w Request) (*plan, error) {
	p := &plan{principal: w.Principal, values: map[string]upstream.Variables{}, stamps: map[string]string{}, preloadReasons: map[string]string{}}
	if err := k.planAgent(ctx, p, w); err != nil {
		return nil, err
	}
	if err := k.planDefaults(ctx, p, w); err != nil {
		return nil, err
	}
	if w.Draft {
		var err error
		if p.draft, err = k.o.Library.DraftSource(ctx, w.Principal, w.Session); err != nil {
			return nil, err
		}
		if p.selected != nil && !slices.Contains(p.selected, p.draft.Name) {
			p.selected = append(p.selected, p.draft.Name)
		}
	}
	p.planPublishers()
	for _, s := range p.servers {
		if len(s.Variables()) == 0 {
			continue
		}
		values, err := k.o.Agents.Secrets().ServerVariables(ctx, p.principal, s, w.Session)
		switch {
		case err == nil:
			p.values[s.Name] = values
		case errors.Is(err, store.ErrNotFound), errors.Is(err, agents.ErrNoKey), account.IsDenied(err):
			p.problems = append(p.problems, err.Error())
		default:
			return nil, err
		}
	}
	if err := k.planPlatform(ctx, p, w); err != nil {
		return nil, err
	}
	return p, k.planSignIns(ctx, p)
}

// planPlatform adds the sources of platform values to the plan. Setups of
// conversations without values of their own have no conversation, because others
// may share them.
func (k *Assembler) planPlatform(ctx context.Context, p *plan, w Request) error {
	scope := agents.PlatformScope{Session: w.Session}
	if p.profile != nil {
		scope.Owners = p.profile.Owners
	}
	stamp, hasValues, err := k.o.Agents.Secrets().PlatformStamp(ctx, p.principal, scope)
	if !hasValues {
		scope.Session = ""
	}
	p.platform, p.platformStamp = scope, stamp
	return err
}

// planAgent adds the agent's profile to the plan, or the global servers if there
// is no agent.
func (k *Assembler) planAgent(ctx context.Context, p *plan, w Request) error {
	profile := w.profile
	var err error
	switch {
	case profile != nil:
	case w.Kind == "":
		var servers []agents.Server
		servers, p.problems, err = k.o.Agents.GlobalServers(ctx, w.Principal)
		p.servers = usableServers(servers)
		return err
	case w.Trial:
		documents, err := k.o.DB.TrialAgents.Documents(ctx, w.Session)
		if err != nil {
			return err
		}
		if profile, err = k.o.Agents.TrialProfile(ctx, w.Principal, documents, w.Kind, w.Namespace, w.Name); err != nil {
			return err
		}
	default:
		if profile, err = k.o.Agents.Profile(ctx, w.Principal, w.Kind, w.Namespace, w.Name); err != nil {
			return err
		}
	}
	p.profile, p.settingsNamespaces, p.rules, p.servers = profile, profile.SettingsNamespaces, profile.Rules, usableServers(profile.Servers)
	p.selected, p.problems = slices.Clone(profile.Filter.Select), slices.Clone(profile.Problems)
	for _, s := range profile.Skills {
		if s.Preload {
			p.preload = append(p.preload, s.Name)
			p.preloadReasons[s.Name] = fmt.Sprintf("preloaded by the %s %s", profile.Kind, profile.Name)
		}
		if s.ID != "" {
			p.refs = append(p.refs, ref{library.Ref{Name: s.Name, ID: s.ID, Digest: s.Digest}, s.In})
		}
	}
	// Bound sources resolve a reference at each listing, so a skill becomes available
	// when its version is approved.
	for _, s := range profile.Withheld {
		if s.ID == "" {
			p.withheld = append(p.withheld, s.Name)
			continue
		}
		p.refs = append(p.refs, ref{library.Ref{Name: s.Name, ID: s.ID, Digest: s.Digest}, s.In})
		p.selected = append(p.selected, s.Name)
	}
	return nil
}

// usableServers returns the servers to which the hub may connect.
func usableServers(servers []agents.Server) []agents.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s agents.Server) bool { return !s.Usable() })
}

// planDefaults adds the default skills to the plan. Skills named by the agent
// take precedence.
func (k *Assembler) planDefaults(ctx context.Context, p *plan, w Request) error {
	info := library.ConversationInfo{Mode: "mcp"}
	if w.Session != "" {
		info.Mode = "chat"
	}
	if p.profile != nil {
		info.Agent = AgentName(p.profile.Kind, p.profile.Namespace, p.profile.Name)
	}
	defaults, err := k.o.Library.DefaultSkills(ctx, w.Principal, info)
	if err != nil {
		return err
	}
	for _, d := range defaults {
		if slices.Contains(p.boundNames(), d.Name) {
			continue
		}
		home, err := k.skillNamespace(ctx, d.ID)
		if err != nil {
			return err
		}
		p.refs = append(p.refs, ref{d.Ref, home})
		if p.selected != nil && !slices.Contains(p.selected, d.Name) {
			p.selected = append(p.selected, d.Name)
		}
		if d.Preload && !slices.Contains(p.preload, d.Name) {
			p.preload = append(p.preload, d.Name)
			p.preloadReasons[d.Name] = defaultReason(d.Namespace)
		}
	}
	return nil
}

// defaultReason returns the reason for preloading a default skill, according to
// the namespace that owns the default.
func defaultReason(in store.Namespace) string {
	switch {
	case in.User() != "":
		return "default of the user"
	case in.Group() != "":
		return "default of a group"
	}
	return "default of all users"
}

// skillNamespace returns the namespace that owns a skill, or "" if the skill does
// not exist.
func (k *Assembler) skillNamespace(ctx context.Context, id string) (store.Namespace, error) {
	s, err := k.o.DB.Skills.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return s.Namespace, err
}

// AgentName returns the name of an agent in conversations and in exceptions to
// defaults.
func AgentName(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// boundNames returns the names that are reserved for the referenced skills,
// including those of missing skills.
func (p *plan) boundNames() []string {
	names := slices.Clone(p.withheld)
	for _, r := range p.refs {
		names = append(names, r.Name)
	}
	return names
}

// withSelection restricts a filter to the selected skills.
func (p *plan) withSelection(f catalog.Filter) catalog.Filter {
	f.Select = p.selected
	return f
}

// key returns a hash of everything that a base depends on. Plans with equal keys
// share a base.
func (p *plan) key() (string, error) {
	groups := []string{}
	for _, g := range slices.Sorted(maps.Keys(p.principal.Groups)) {
		groups = append(groups, string(g)+" "+p.principal.Groups[g].String())
	}
	var servers, refs []any
	for _, s := range p.servers {
		full, unset := s.Resolve(p.values[s.Name]) // the key depends on secrets
		servers = append(servers, []any{s.Name, s.Digest(), s.Description, s.Owner, full, unset, p.stamps[s.Name], s.Skills, s.Label, s.SkillLimits})
	}
	for _, r := range p.refs {
		refs = append(refs, []any{r.Ref, r.home})
	}
	var draft []string
	if p.draft != nil {
		draft = []string{p.draft.Session(), p.draft.Digest}
	}
	bad := p.rules.Decide(policy.ToolCall{}).Code == decision.InvalidRules
	all, err := json.Marshal([]any{p.principal.User, p.principal.Name, p.principal.Admin, groups, p.principal.Scopes,
		refs, p.withheld, p.selected == nil, p.selected, p.settingsNamespaces, servers, p.rules.List(), bad, draft, p.platform, p.platformStamp})
	if err != nil {
		return "", fmt.Errorf("encode plan: %w", err)
	}
	sum := sha256.Sum256(all) // all includes secrets
	return hex.EncodeToString(sum[:]), nil
}
