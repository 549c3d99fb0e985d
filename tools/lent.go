package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/provider"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// SettingsKey is the member of a call's _meta in which a provider of the embedding
// program finds the configuration of the tool, as the skill declares it.
const SettingsKey = "loadout/config"

// loan is tools that a skill declares of a provider that is not its own: one of a
// skill that it needs, or of the embedding program.
type loan struct {
	provider string
	tools    []skill.Tool
	entry    *catalog.Entry // of the skill whose provider it is, nil for the program's
	owner    *skill.Skill
	leave    *Leave           // for that skill
	config   *upstream.Config // of the program's
}

// borrow finds the providers of the tools that a skill declares: its own comes
// first, then those of the skills that it needs, then those of the program. It
// returns the skill with the tools of its own provider alone, and what is skipped.
func (s *Set) borrow(ctx context.Context, e *catalog.Entry, sk *skill.Skill) (*skill.Skill, []loan, []string) {
	var loans []loan
	var problems []string
	own := *sk
	own.Tools = nil
	for _, t := range sk.Tools {
		if t.Provider == "" || sk.Provider != nil && t.Provider == sk.Name {
			own.Tools = append(own.Tools, t)
			continue
		}
		if i := slices.IndexFunc(loans, func(l loan) bool { return l.provider == t.Provider }); i >= 0 {
			loans[i].tools = append(loans[i].tools, t)
			continue
		}
		l := loan{provider: t.Provider, tools: []skill.Tool{t}}
		switch {
		case s.lender(ctx, e, &l):
			loans = append(loans, l)
		case sk.Provider != nil: // it says itself that it is not its name
			own.Tools = append(own.Tools, t)
		default:
			problems = append(problems, fmt.Sprintf("its tool %s is skipped: there is no provider %s; name the skill that has it in its dependencies", t.Name, t.Provider))
		}
	}
	if len(own.Tools) == 0 && len(sk.Tools) > 0 {
		own.Provider = nil // without a list it would make all that it can
	}
	return &own, loans, problems
}

// lender finds whose provider it is, and reports whether there is one.
func (s *Set) lender(ctx context.Context, e *catalog.Entry, l *loan) bool {
	order, _ := s.opts.Skills.Catalog().Snapshot().LoadOrder(e) // an error is the load's to tell
	for _, d := range order {
		if d == e || !d.Brings {
			continue
		}
		sk, _, err := s.opts.Skills.Catalog().Read(ctx, d)
		if err == nil && provider.Offers(sk, l.provider) {
			l.entry, l.owner = d, sk
			return true
		}
	}
	l.config = s.opts.Providers[l.provider]
	return l.config != nil
}

// names are those of the tools on loan, once each.
func (l *loan) names() []string {
	var out []string
	for _, t := range l.tools {
		if !slices.Contains(out, t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

// configured is the server of tools on loan, and the settings that go with their
// calls where its process is not started for them.
func (s *Set) configured(ctx context.Context, l *loan, to *skill.Skill) (c *upstream.Config, settings map[string]any, notes []string, err error) {
	if l.entry == nil {
		c := *l.config
		c.Include, c.Tools = l.names(), l.names()
		settings = map[string]any{}
		for _, t := range l.tools {
			if settings[t.Name], err = provider.Settings(to, t); err != nil {
				return nil, nil, nil, err
			}
		}
		return &c, settings, nil, nil
	}
	if s.opts.Provide == nil {
		return nil, nil, nil, fmt.Errorf("providers are not started here")
	}
	lent, err := provider.Lend(l.owner, to, l.tools)
	if err != nil {
		return nil, nil, nil, err
	}
	c, notes, err = s.opts.Provide(ctx, l.entry, lent)
	return c, nil, notes, err
}

// settingsFor is the _meta of a call with the settings of the tool in it.
func (sv *server) settingsFor(tool string, meta mcp.Meta) mcp.Meta {
	settings, ok := sv.settings[tool]
	if !ok {
		return meta
	}
	meta = maps.Clone(meta)
	if meta == nil {
		meta = mcp.Meta{}
	}
	meta[SettingsKey] = settings
	return meta
}

// Memory is the transport of servers that are part of this program. Servers are
// found by the URL of their configuration, which is their name in all; the
// transport is for [upstream.Dialer.Transports]. A connection ends with its client.
func Memory(all map[string]*mcp.Server) func(c *upstream.Config, url string) (mcp.Transport, error) {
	return func(_ *upstream.Config, url string) (mcp.Transport, error) {
		s := all[url]
		if s == nil {
			return nil, fmt.Errorf("this program has no server %q", url)
		}
		here, there := mcp.NewInMemoryTransports()
		if _, err := s.Connect(context.Background(), there, nil); err != nil {
			return nil, fmt.Errorf("server %q of this program: %w", url, err)
		}
		return here, nil
	}
}
