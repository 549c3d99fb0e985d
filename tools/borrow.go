package tools

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// SettingsKey is the key in the _meta object of an MCP call under which a
// provider receives the tool's configuration, as declared by the skill. The
// value is a JSON object. It is sent only to [Options.Providers].
const SettingsKey = "loadout/config"

// borrowedTools holds tools that a skill declares but whose provider belongs to
// a skill that it depends on, or to the embedding program.
type borrowedTools struct {
	provider   string
	tools      []skill.Tool
	entry      *catalog.Entry // the skill that defines the provider; nil for the program's
	owner      *skill.Skill
	permission *permission      // permission to use that skill
	config     *upstream.Config // configuration of the program's server
}

// borrowTools finds the providers of the tools that a skill declares. Its own
// provider takes precedence, then those of its dependencies, then the
// program's. borrowTools returns the skill with only its own provider's tools,
// the borrowed tools, and the problems with tools that it skipped.
func (s *Set) borrowTools(ctx context.Context, e *catalog.Entry, sk *skill.Skill) (*skill.Skill, []borrowedTools, []string) {
	var loans []borrowedTools
	var problems []string
	own := *sk
	own.Tools = nil
	for _, t := range sk.Tools {
		if t.Provider == "" || sk.Provider != nil && t.Provider == sk.Name {
			own.Tools = append(own.Tools, t)
			continue
		}
		if i := slices.IndexFunc(loans, func(l borrowedTools) bool { return l.provider == t.Provider }); i >= 0 {
			loans[i].tools = append(loans[i].tools, t)
			continue
		}
		l := borrowedTools{provider: t.Provider, tools: []skill.Tool{t}}
		switch {
		case s.findProvider(ctx, e, &l):
			loans = append(loans, l)
		case sk.Provider != nil: // only the provider can resolve aliases
			own.Tools = append(own.Tools, t)
		default:
			problems = append(problems, fmt.Sprintf("tool %s skipped: provider %s not found; add the skill that has it to the dependencies", t.Name, t.Provider))
		}
	}
	if len(own.Tools) == 0 && len(sk.Tools) > 0 {
		own.Provider = nil // without a tool list, it would provide all its tools
	}
	return &own, loans, problems
}

// findProvider sets the skill or server in l that provides its tools, and
// reports whether there is one.
func (s *Set) findProvider(ctx context.Context, e *catalog.Entry, l *borrowedTools) bool {
	order, _ := s.rt.Catalog().LoadOrder(ctx, e) // the load reports errors
	for _, d := range order {
		if d.Entry != e && provider.Offers(d.Skill, l.provider) {
			l.entry, l.owner = d.Entry, d.Skill
			return true
		}
	}
	if s.opts.Providers[l.provider] == nil {
		return false
	}
	l.config = &upstream.Config{Name: l.provider, Type: upstream.Provider, URLs: []string{l.provider}}
	return true
}

// toolNames returns the names of the borrowed tools, without duplicates.
func (l *borrowedTools) toolNames() []string {
	var out []string
	for _, t := range l.tools {
		if !slices.Contains(out, t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

// borrowedConfig returns the server configuration for borrowed tools. A server
// of the program receives the settings with each call, because its process is
// not started for this skill.
func (s *Set) borrowedConfig(ctx context.Context, l *borrowedTools, to *skill.Skill) (c *upstream.Config, settings map[string]any, notes []string, err error) {
	if l.entry == nil {
		c := *l.config
		c.Include, c.Tools = l.toolNames(), l.toolNames()
		settings = map[string]any{}
		for _, t := range l.tools {
			if settings[t.Name], err = provider.Settings(to, t); err != nil {
				return nil, nil, nil, err
			}
		}
		return &c, settings, nil, nil
	}
	borrowed, err := provider.Lend(l.owner, to, l.tools)
	if err != nil {
		return nil, nil, nil, err
	}
	c, notes, err = s.access.provide(ctx, l.entry, borrowed)
	return c, nil, notes, err
}

// callMeta returns the _meta of a call: the fields of the caller's meta that
// may be forwarded to the server, and the tool's settings.
func (sv *server) callMeta(tool string, meta mcp.Meta) mcp.Meta {
	out := upstream.ForwardedMeta(meta, "elicitation")
	if settings, ok := sv.settings[tool]; ok {
		out[SettingsKey] = settings
	}
	return out
}
