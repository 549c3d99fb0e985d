package loadout

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
)

// Fetch resolves a reference, as described for [catalog.Catalog.Resolve], and
// returns the current version of the skill and its dependencies. Dependencies
// precede the skills that need them. Missing ones are listed in
// [session.Skill.Problems]. If Fetch fails because of a skill, the error is a
// [*catalog.NotFoundError], [*catalog.DependencyError] or
// [*catalog.BrokenError], or a [*RefusedError] because of hidden characters
// (see [Runtime.CheckText]) or because the skill comes from an MCP server and
// needs approval.
func (r *Runtime) Fetch(ctx context.Context, ref string) ([]*session.Skill, error) {
	return r.fetch(ctx, ref, "")
}

// fetch is like Fetch for a session, whose approvals count too.
func (r *Runtime) fetch(ctx context.Context, ref, sessionID string) ([]*session.Skill, error) {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	held, err := r.servedManifest(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := r.catalog.CheckApproval(ctx, e, sessionID, servedApprovals{r, true, held}); err != nil {
		return nil, err
	}
	order, err := r.catalog.LoadWithFiles(ctx, e)
	if err != nil {
		return nil, err
	}
	out := make([]*session.Skill, len(order))
	for i, l := range order {
		sum := digest(l.Source)
		facts := r.bodies.read(sum, l)
		if err := r.checkReport(ctx, l.Entry, l.Entry.File(), facts.hidden, l.Source); err != nil {
			return nil, err
		}
		if l.Entry.Server != "" { // it identifies all files, which are held while the skill is loaded
			sum = held.Digest()
		}
		out[i] = r.newSkill(l, sum)
		if l.Entry.Server != "" {
			out[i].AllowedTools = r.grantedTools(ctx, l.Entry, sum, sessionID)
		}
		if err := r.checkHeld(ctx, l, held); err != nil {
			return nil, err
		}
		out[i].Tokens, out[i].Warning = facts.tokens, withNotice(l.Entry, skilltext.HiddenWarning(l.Entry.File(), facts.hidden))
	}
	return out, nil
}

func (r *Runtime) newSkill(l *catalog.Loaded, digest string) *session.Skill {
	e, s := l.Entry, l.Skill
	m := &session.Skill{
		ID:           session.ID{Name: e.Name, Origin: e.Origin, Dir: e.Dir},
		Title:        untrusted.New(cmp.Or(s.DisplayName, s.Name)).ForTerminal(),
		Description:  untrusted.New(s.Description).ForPage(),
		Version:      untrusted.New(s.Version).ForTerminal(),
		Digest:       digest,
		Instructions: s.Instructions,
		Location:     e.Location(),
		Hidden:       e.DisableModelInvocation || s.DisableModelInvocation, // the source may have omitted this field
		ArgumentHint: e.ArgumentHint,
		AllowedTools: s.AllowedTools,
		Model:        s.Model,
		UsesTools:    len(s.MCPServers.Names) > 0 || s.MCPServers.Configs != nil || s.Provider != nil || len(s.Tools) > 0,
		Needs:        l.Needs,
	}
	for _, ref := range l.Missing {
		m.Problems = append(m.Problems, fmt.Sprintf("needs skill %q, which is not available", untrusted.New(ref).ForModel()))
	}
	for _, r := range r.catalog.Snapshot().Pending() {
		if r.Entry.Name == e.Name {
			m.Problems = append(m.Problems, fmt.Sprintf("%s has the same name and is %s", r.Entry.Key(), r.Reason))
		}
	}
	if strings.TrimSpace(s.Instructions) == "" {
		m.Problems = append(m.Problems, "no instructions: SKILL.md is empty after its frontmatter")
	}
	if l.FilesError != nil {
		m.Problems = append(m.Problems, "cannot list files: "+l.FilesError.Error())
	}
	m.Files = l.Files
	return m
}

// digest returns "sha256:" and the hex SHA-256 of b.
func digest(b []byte) string {
	return "sha256:" + skillfile.Hash(b)
}

// bodyFacts holds facts about a skill's instructions that are needed to load
// the skill.
type bodyFacts struct {
	tokens int
	hidden untrusted.Report // report on hidden characters, with their lines in SKILL.md
}

// bodyCache caches facts about instructions by digest, because computing them
// is slower than reading the file.
type bodyCache struct {
	mu sync.Mutex
	m  map[string]bodyFacts
}

func (c *bodyCache) read(digest string, l *catalog.Loaded) bodyFacts {
	c.mu.Lock()
	facts, ok := c.m[digest]
	c.mu.Unlock()
	if ok {
		return facts
	}
	text := l.Skill.Instructions
	facts = bodyFacts{tokencount.Estimate(text), untrusted.Inspect(text)}
	if before, ok := bytes.CutSuffix(l.Source, []byte(text)); ok && !facts.hidden.Clean() {
		facts.hidden.Line += bytes.Count(before, []byte("\n"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= 4096 {
		c.m = map[string]bodyFacts{}
	}
	c.m[digest] = facts
	return facts
}
