package library

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxUpdated is the maximum number of skills per [Library.Update] call.
const maxUpdated = 1000

// UpdateSelection selects the skills to update.
type UpdateSelection struct {
	IDs []string // at most 1,000; empty selects all imported skills
	// Downgrade has the same meaning as in [ImportSelection].
	Downgrade bool
}

// Update updates imported skills of a namespace from their sources. The result
// lists each skill. Update skips pinned skills, skills missing from their source,
// skills whose source fails, and signed skills for which the source has an older
// version or another key, unless c.Downgrade is set.
func (l *Library) Update(ctx context.Context, p account.Principal, in Namespace, c UpdateSelection) (*ImportResult, error) {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, "update"); err != nil {
		return nil, err
	}
	if len(c.IDs) > maxUpdated {
		return nil, invalidf("too many skills (%d, limit %d)", len(c.IDs), maxUpdated)
	}
	out := newImported()
	skills, err := l.selectImported(ctx, p, in, c.IDs, out)
	if err != nil {
		return nil, err
	}
	for _, group := range groupBySource(skills) {
		if err := l.updateGroup(ctx, p, group, c.Downgrade, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// selectImported returns the skills to update. It adds other skills to out as
// skipped, with the reason.
func (l *Library) selectImported(ctx context.Context, p account.Principal, in Namespace, ids []string, out *ImportResult) ([]*Skill, error) {
	var skills []*Skill
	take := func(s *Skill) {
		switch {
		case s.Source == nil && len(ids) > 0:
			out.skip(s.ID, s.Name, "", skipf(SkipUploaded, "uploaded, not imported"))
		case s.Source == nil:
		case s.Source.Pinned:
			out.skip(s.ID, s.Name, s.Source.Dir, skipf(SkipPinned, "pinned"))
		case len(skills) >= maxUpdated:
			out.skip(s.ID, s.Name, s.Source.Dir, skipf(SkipTooMany, "too many skills (limit %d); update again", maxUpdated))
		default:
			skills = append(skills, s)
		}
	}
	for _, id := range ids {
		h, err := l.getSkill(ctx, &l.db.Tables, id)
		if err == nil && (h.Namespace != in || !h.isVisible(p)) {
			err = notFound(id)
		}
		if err != nil {
			return nil, err
		}
		take(newSkill(h.Skill, nil))
	}
	for page := (store.Page{Limit: store.MaxPage}); len(ids) == 0; {
		rows, next, err := l.db.Skills.List(ctx, store.SkillQuery{Namespaces: []Namespace{in}, Hidden: true, Page: page})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Namespace == in {
				take(newSkill(r, nil))
			}
		}
		if page.After = next; next == "" {
			break
		}
	}
	return skills, nil
}

// groupBySource groups skills by source and importing user, in the given order.
func groupBySource(skills []*Skill) [][]*Skill {
	type key struct {
		at remote.Location
		by string
	}
	var out [][]*Skill
	where := map[key]int{}
	for _, s := range skills {
		k := key{s.Source.location(), s.Source.By}
		i, ok := where[k]
		if !ok {
			i = len(out)
			where[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// updateGroup updates skills that have the same source.
func (l *Library) updateGroup(ctx context.Context, p account.Principal, skills []*Skill, downgrade bool, out *ImportResult) error {
	if l.isCurrent(ctx, p.User, skills) {
		for _, s := range skills {
			if err := l.skipUnchanged(ctx, s, out); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error // error not caused by the source
	err := l.openSource(ctx, p.User, skills[0].Source.location(), false, func(offer *remote.Collection) error {
		for _, s := range skills {
			if failed = l.updateOne(ctx, p, offer, s, downgrade, out); failed != nil {
				break
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		for _, s := range skills {
			out.skip(s.ID, s.Name, s.Source.Dir, skipf(SkipSource, "%v", err))
		}
		return nil
	}
	return errors.Join(err, failed)
}

// skipUnchanged records a skill whose source has no newer commit as skipped. The
// version of that commit may be awaiting review, or may have been rejected or
// withdrawn.
func (l *Library) skipUnchanged(ctx context.Context, s *Skill, out *ImportResult) error {
	change, why := ImportChange{ID: s.ID, Name: s.Name, Dir: s.Source.Dir}, errUnchanged
	newest, err := l.db.Versions.List(ctx, s.ID, 0, 1)
	if err != nil {
		return err
	}
	for _, v := range newest {
		from := readSource(v.Source)
		state := facts(v).State(s.Number)
		pending := v.Number > s.Number && state == skillstate.Pending
		if from == nil || !pending && from.Commit != s.Source.Commit {
			continue
		}
		change.Number, change.Pending, why = v.Number, pending, unchangedError(v, state, pending)
	}
	out.skipChange(change, why)
	return nil
}

// isCurrent reports whether all skills were imported from the newest commit of
// their source. It returns false if the newest commit is unknown, and if the checks of
// the source fail: an update then records the user, whose credentials may work.
func (l *Library) isCurrent(ctx context.Context, user account.UserID, skills []*Skill) bool {
	if last, err := l.db.SourceChecks.Get(ctx, skills[0].ID); err == nil && last.Error != "" {
		return false
	}
	commit, err := l.latestCommit(ctx, user, skills[0].Source)
	return err == nil && commit != "" && !slices.ContainsFunc(skills, func(s *Skill) bool { return s.Source.Commit != commit })
}

// latestCommit returns the newest commit of a source, or "" if the source has no
// commits.
func (l *Library) latestCommit(ctx context.Context, user account.UserID, from *Source) (string, error) {
	at := from.location()
	if at.Kind != remote.Git {
		return "", nil
	}
	if err := l.checkLocation(at); err != nil {
		return "", err
	}
	done, err := acquireSlot(ctx, l.sourceSlots)
	if err != nil {
		return "", err
	}
	defer done()
	r, err := l.newClient(user, latestTimeout, false, nil).Latest(ctx, at)
	if err != nil {
		return "", err
	}
	return r.Commit, nil
}

func (l *Library) updateOne(ctx context.Context, p account.Principal, offer *remote.Collection, s *Skill, downgrade bool, out *ImportResult) error {
	i := slices.IndexFunc(offer.Skills, func(o remote.Skill) bool { return o.Dir == s.Source.Dir })
	if i < 0 {
		out.skip(s.ID, s.Name, s.Source.Dir, skipf(SkipNotFound, "not found at its source"))
		return nil
	}
	change := ImportChange{ID: s.ID, Name: s.Name, Dir: s.Source.Dir}
	err := l.withOffered(ctx, offer, offer.Skills[i], func(c *content) (err error) {
		change.Number, change.Pending, err = l.updateFromSource(ctx, p, s.ID, c, newSource(p, s.Source.location(), offer, offer.Skills[i]), downgrade)
		return err
	})
	switch {
	case err == nil:
		out.Updated = append(out.Updated, change)
	case out.isSkipReason(err):
		out.skipChange(change, err)
	default:
		return err
	}
	return nil
}

// CheckChange returns an error if the skill does not exist or the principal must
// not change it.
func (l *Library) CheckChange(ctx context.Context, p account.Principal, id string) error {
	_, err := l.authorize(ctx, p, account.SkillChange, id)
	return err
}

// Pin sets whether an imported skill is excluded from updates.
func (l *Library) Pin(ctx context.Context, p account.Principal, id string, pinned bool) error {
	return l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		from := readSource(h.Source)
		if from == nil {
			return nil, invalidf("skill %q was uploaded, not imported", h.Name)
		}
		from.Pinned = pinned
		if err := tx.Skills.Update(ctx, id, from.origin(), from.encode()); err != nil {
			return nil, err
		}
		return pinDetails{h.Name, pinned}, dropFailure(ctx, tx, id)
	})
}

// pinDetails holds the details of the audit record for Pin.
type pinDetails struct {
	Name   string `json:"name"`
	Pinned bool   `json:"pinned"`
}

// UpdatePreview describes a possible update of a skill.
type UpdatePreview struct {
	Commit string          `json:"commit,omitempty"`
	Diff   *skilldiff.Diff `json:"diff"` // changes from the current version to the source
}

// PreviewUpdate compares a skill with the current state of its source. The
// principal must be allowed to change the skill.
func (l *Library) PreviewUpdate(ctx context.Context, p account.Principal, id string, o *skilldiff.Options) (*UpdatePreview, error) {
	h, err := l.authorize(ctx, p, account.SkillChange, id)
	if err != nil {
		return nil, err
	}
	from := readSource(h.Source)
	if from == nil {
		return nil, invalidf("skill %q was uploaded, not imported", h.Name)
	}
	v, err := l.getVersion(ctx, h, 0)
	if err != nil {
		return nil, err
	}
	old, err := l.bundle(ctx, h.Name, v)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	var out UpdatePreview
	err = l.openSource(ctx, p.User, from.location(), false, func(offer *remote.Collection) error {
		out.Commit = offer.Revision.Commit
		i := slices.IndexFunc(offer.Skills, func(s remote.Skill) bool { return s.Dir == from.Dir })
		if i < 0 {
			return wrapSourceError(&remote.NotFoundError{What: fmt.Sprintf("skill in %q at %s", from.Dir, from.location())})
		}
		return l.withOffered(ctx, offer, offer.Skills[i], func(c *content) (err error) {
			out.Diff, err = skilldiff.Compare(ctx, old.FS, c.fsys, diffOptions(o, h.Name))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
