package assembly

import (
	"context"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// visibleSkills is a [catalog.ServerSource] without the skills that the settings
// of its group hide.
type visibleSkills struct {
	*filteredSource
	source *serverskill.Source
}

var _ catalog.ServerSource = (*visibleSkills)(nil)

// List implements [catalog.Source].
func (s *visibleSkills) List(ctx context.Context) (catalog.Listing, error) {
	l, err := s.source.List(ctx)
	if err != nil {
		return catalog.Listing{}, err
	}
	var shown []*catalog.Entry
	for _, e := range l.Entries {
		if s.hiddenReason(e) == "" {
			shown = append(shown, e)
		}
	}
	l.Entries = shown
	return l, nil
}

// Server implements [catalog.ServerSource].
func (s *visibleSkills) Server() string { return s.source.Server() }

// CheckApproval implements [catalog.ServerSource].
func (s *visibleSkills) CheckApproval(ctx context.Context, e *catalog.Entry, session string, a catalog.Approvals) error {
	if why := s.hiddenReason(e); why != "" {
		return &catalog.NotFoundError{Ref: e.Name, Reason: why}
	}
	return s.source.CheckApproval(ctx, e, session, a)
}

// Head implements [catalog.ServerSource].
func (s *visibleSkills) Head(e *catalog.Entry) (*skill.Skill, error) {
	if why := s.hiddenReason(e); why != "" {
		return nil, &catalog.NotFoundError{Ref: e.Name, Reason: why}
	}
	return s.source.Head(e)
}

// Find implements [catalog.ServerSource].
func (s *visibleSkills) Find(ctx context.Context, ref string) error { return s.source.Find(ctx, ref) }

// PublishedSkill describes a skill of a server to the setup's user.
type PublishedSkill struct {
	Entry       *serverskill.Entry
	Name        string // in the catalog
	Path        string // in the source
	Description string
	Digest      policy.Digest // of the files; "" if the server generates them
	State       ApprovalState
	Approved    *policy.Grant        // nil if there is none
	Changes     []serverskill.Change // since the approval; only in the state Changed
}

// PublishedSkills lists the skills of a server, as far as the settings do not hide
// them.
type PublishedSkills struct {
	*serverskill.Listing
	Skills []PublishedSkill
}

// ServerError is a failure of a server. Its text is safe to show to the setup's user.
type ServerError struct{ Err error }

func (e *ServerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// ListSkills lists the skills of the server, with the state of each. If they were never
// listed for this user, or if fresh is set, it asks the server.
func (p *Publisher) ListSkills(ctx context.Context, fresh bool) (*PublishedSkills, error) {
	l, err := p.source.Skills(ctx, fresh)
	if err != nil {
		return nil, &ServerError{err}
	}
	approvals, err := p.ReadApprovals(ctx)
	if err != nil {
		return nil, err
	}
	out := &PublishedSkills{Listing: l}
	manifests := map[int]skill.Manifest{} // of changed skills, by index
	var changed []string
	for _, e := range l.Entries {
		c := p.source.CatalogEntry(e)
		if c == nil || p.HiddenReason(e) != "" {
			continue
		}
		one := PublishedSkill{Entry: e, Name: c.Name, Path: c.Dir, Description: c.Description}
		one.State, one.Approved = approvals.State(e)
		if m, err := e.Manifest(); err == nil {
			one.Digest = policy.Digest(m.Digest())
			if one.State == Changed {
				manifests[len(out.Skills)] = m
				changed = append(changed, c.Name)
			}
		}
		out.Skills = append(out.Skills, one)
	}
	files, err := p.readApprovedFiles(ctx, changed...)
	if err != nil {
		return nil, err
	}
	for i, m := range manifests {
		if old, ok := files[out.Skills[i].Name]; ok {
			out.Skills[i].Changes = old.compare(m)
		}
	}
	return out, nil
}
