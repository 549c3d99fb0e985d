package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// ignoreRequests removes what a skill of an MCP server requests from the host:
// permissions, bounds of its sandbox, packages, servers, code that provides tools,
// another model, and other skills. The server could otherwise grant itself
// permissions on this machine. It removes the source of the frontmatter, too,
// because the bounds are read from it.
func ignoreRequests(s *skill.Skill) {
	s.AllowedTools, s.Model, s.Preload = nil, "", false
	s.MCPServers, s.Provider, s.Tools, s.Dependencies = skill.Servers{}, nil, nil, nil
	s.Requirements, s.Frontmatter = nil, nil
}

// serverSource returns the source of a skill of an MCP server, or nil for any
// other skill.
func (c *Catalog) serverSource(e *Entry) ServerSource {
	if e.Server == "" {
		return nil
	}
	src, err := c.source(e)
	if err != nil {
		return nil
	}
	s, _ := src.(ServerSource)
	return s
}

// CheckApproval returns an error unless a model may read a skill. Only skills of MCP
// servers may need approval; see [ServerSource.CheckApproval].
func (c *Catalog) CheckApproval(ctx context.Context, e *Entry, session string, a Approvals) error {
	if e.Server == "" {
		return nil
	}
	s := c.serverSource(e)
	if s == nil {
		return &NotFoundError{Ref: e.Name, Reason: "its MCP server is no longer configured"}
	}
	return s.CheckApproval(ctx, e, session, a)
}

// Head returns a skill of an MCP server without its instructions, as the server
// lists it; see [ServerSource.Head]. For any other skill, it returns an error.
func (c *Catalog) Head(e *Entry) (*skill.Skill, error) {
	src := c.serverSource(e)
	if src == nil {
		return nil, errors.New("skill " + e.Name + " is not a skill of an MCP server")
	}
	s, err := src.Head(e)
	if err == nil {
		ignoreRequests(s)
	}
	return s, err
}

// RequestedTools returns the allowed-tools of a skill of an MCP server, as the server
// lists them. They are a request: unlike those of other skills, they count only
// after the user approved them. RequestedTools returns nil for any other skill.
func (c *Catalog) RequestedTools(e *Entry) []string {
	src := c.serverSource(e)
	if src == nil {
		return nil
	}
	s, err := src.Head(e)
	if err != nil {
		return nil
	}
	return s.AllowedTools
}

// findOnServer asks the MCP server that ref names for a skill. If that fails, it
// returns err, or the error of the server.
func (c *Catalog) findOnServer(ctx context.Context, ref string, err error) (*Entry, error) {
	for _, s := range c.sources.Load().all {
		src, ok := s.source.(ServerSource)
		rest, isHere := strings.CutPrefix(ref, s.source.Origin()+"/")
		if !ok || !isHere || rest == "" || c.Snapshot().IsHidden(ref) {
			continue
		}
		switch found := src.Find(ctx, rest); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(found, fs.ErrNotExist):
			return nil, err
		case found != nil:
			return nil, &NotFoundError{Ref: ref, Reason: untrusted.New(found.Error()).ForModel()}
		}
		if err := c.refresh(ctx, []*sourceState{s}); err != nil {
			return nil, err
		}
		for e := range c.Snapshot().All() {
			if e.Origin == src.Origin() && (e.Name == ref || e.Path == rest) {
				return e, nil
			}
		}
	}
	return nil, err
}

// label returns the name in the frontmatter of the skill. For a skill of an MCP
// server, it is the end of its path, and not unique.
func (e *Entry) label() string {
	if e.Server != "" {
		return path.Base(e.Dir)
	}
	return e.Name
}

// served yields the visible skills of MCP servers, in order of precedence.
func (s *Snapshot) served() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, l := range s.layers {
			if l.entries[0].Server == "" {
				continue
			}
			for e := range l.All() {
				if s.hidden(e) == "" && !yield(e) {
					return
				}
			}
		}
	}
}

// sameNames returns a problem for each skill of an MCP server whose label is that
// of another skill. Nothing is shadowed, because its full name differs, but a user
// might mistake one for the other.
func (s *Snapshot) sameNames() []Problem {
	var out []Problem
	first := map[string]*Entry{} // skills of servers by label
	for e := range s.served() {
		other := s.ByName(e.label())
		if other == nil {
			other = first[e.label()]
		}
		if first[e.label()] == nil {
			first[e.label()] = e
		}
		if other == nil {
			continue
		}
		out = append(out, Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{Severity: skill.Info, Code: "same-name",
			Message: fmt.Sprintf("%s has the name of %s", e.Name, other.Key()), Fix: "use its full name: " + e.Name}})
	}
	return out
}
