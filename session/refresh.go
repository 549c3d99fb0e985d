package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// UpdateMode determines what happens when the SKILL.md of an active skill
// changes. In every mode, files, scripts and tools are those of the current
// version, and code runs only if that version is approved.
type UpdateMode string

// Update modes.
const (
	// UpdateNotify tells the model to load the skill again. Until then, the
	// conversation keeps the text that was loaded. "" means the same.
	UpdateNotify UpdateMode = "notify"
	// UpdateReload loads the new version if neither it nor its dependencies
	// have scripts or tools, or if it is approved. Otherwise, if the load fails,
	// or if the model loaded the skill and only the user may load the new
	// version, it is like UpdateNotify; that version is not loaded later,
	// even if it is approved then. A version is
	// approved if the [Skills] have a method IsApproved(ctx context.Context, id
	// ID, digest string) bool that says so, as those of a runtime do. digest is
	// that of the SKILL.md to load. A new version of a skill of an MCP server is
	// never loaded by itself.
	UpdateReload UpdateMode = "reload"
	// UpdatePin ignores the change: loading the skill again does not change the
	// text either, unless the user loads it. After the skill has been unloaded,
	// a load returns the new version.
	UpdatePin UpdateMode = "pin"
)

// Refresh checks whether the SKILL.md of any active skill has changed, and
// handles each change according to [Options.Updates]. For each skill that
// changed since the last check, it appends a [SkillUpdate] or, if it loaded the
// new version, a notice and a [SkillLoad]. It returns these changes. A skill
// whose digest cannot be read stays active and unchanged, because its text is
// already in the conversation. If ctx is done or the log cannot be written,
// Refresh returns the changes so far and an error.
func (s *Session) Refresh(ctx context.Context) ([]SkillUpdate, error) {
	if s.updates == UpdatePin || s.skills == nil {
		return nil, nil
	}
	var updated []SkillUpdate
	for _, a := range s.Active() {
		now, err := s.skills.Digest(ctx, a.Skill)
		if ctx.Err() != nil {
			return updated, context.Cause(ctx)
		}
		if err != nil || now == a.Current {
			continue
		}
		u, err := s.update(ctx, a, now)
		if err != nil {
			return updated, err
		}
		if u != nil {
			updated = append(updated, *u)
		}
	}
	return updated, nil
}

// update handles the change of a skill to the given digest. It returns nil if
// the change is already recorded or the skill is no longer active.
func (s *Session) update(ctx context.Context, a ActiveSkill, now string) (*SkillUpdate, error) {
	// Nothing of a skill of an MCP server is fetched, and the user is not asked,
	// before somebody loads the new version.
	served := skillname.IsServed(a.Skill.Name, a.Skill.Origin)
	if !served && s.updates == UpdateReload && now != a.Digest && s.staysActive(a) {
		r, err := s.Load(ctx, a.Skill.Key(), &LoadOptions{Direct: true, Retention: a.Retention, update: true})
		if err != nil {
			return nil, err
		}
		if r.State == StateLoaded || r.State == StateDegraded {
			return &SkillUpdate{Skill: a.Skill, Old: a.Current, Digest: r.Skill.Digest}, nil
		}
	}
	u := SkillUpdate{Skill: a.Skill, Digest: now}
	if !served {
		if all, err := s.skills.Fetch(ctx, a.Skill.Key()); err == nil && len(all) > 0 {
			u.UserOnly = all[len(all)-1].Hidden
		}
	}
	return s.recordUpdate(ctx, u)
}

// staysActive reports whether a skill stays active in the next turn, even if
// neither it nor any other skill is used.
func (s *Session) staysActive(a ActiveSkill) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.expirations(), func(e Event) bool { return e.Unloaded.Skill == a.Skill })
}

// recordUpdate records the new digest of a skill. It returns nil if that digest
// is already recorded or the skill is no longer active.
func (s *Session) recordUpdate(ctx context.Context, u SkillUpdate) (*SkillUpdate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.find(u.Skill)
	if !ok || a.Current == u.Digest {
		return nil, nil
	}
	u.Old, u.Restored = a.Current, u.Digest == a.Digest
	if err := s.append(ctx, Event{Updated: &u}); err != nil {
		return nil, err
	}
	return &u, nil
}

var errNotApproved = errors.New("new version is not approved")

// checkUpdate returns an error if an update must not load the skills, which are
// in load order.
func (s *Session) checkUpdate(ctx context.Context, all []*Skill) error {
	main := all[len(all)-1]
	a, active := s.find(main.ID)
	switch {
	case !active: // another skill has the key now, or it was unloaded
		return fmt.Errorf("skill %s: %w", main.ID.Name, ErrNotLoaded)
	case main.Hidden && a.By == ByModel:
		return errUserOnly(main)
	}
	if !slices.ContainsFunc(all, (*Skill).hasCode) {
		return nil
	}
	if k, ok := s.skills.(interface {
		IsApproved(context.Context, ID, string) bool
	}); !ok || !k.IsApproved(ctx, main.ID, main.Digest) {
		return fmt.Errorf("skill %s: %w", main.ID.Name, errNotApproved)
	}
	return nil
}

// find returns the active skill with the given ID. active is false if there is
// none.
func (s *Session) find(id ID) (a ActiveSkill, active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.find(id)
}

// hasCode reports whether the skill may have scripts, MCP servers or a provider.
func (m *Skill) hasCode() bool {
	return m.UsesTools || len(m.Files) == 0 || slices.ContainsFunc(m.Files, func(f skill.File) bool { return f.Script })
}

// updateText returns the notice that precedes the new version of a skill.
func updateText(id ID) string {
	return fmt.Sprintf("The skill %s has changed. Its new instructions follow and replace the earlier ones.", untrusted.New(id.Name).ForModel())
}
