package library

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxUpdated bounds the skills of one update.
const maxUpdated = 1000

// Update takes the newest state of imported skills from their places: of those that are
// named, or of all of a namespace that were imported, where none is. Pinned ones are
// skipped, as are those that are no longer at their place. The result says what became
// of each; what is wrong with a place is why its skills were skipped.
func (l *Library) Update(ctx context.Context, p account.Principal, in Namespace, ids ...string) (*ImportResult, error) {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, "update"); err != nil {
		return nil, err
	}
	if len(ids) > maxUpdated {
		return nil, invalidf("%d skills, more than %d", len(ids), maxUpdated)
	}
	out := newImported()
	skills, err := l.selectImported(ctx, p, in, ids, out)
	if err != nil {
		return nil, err
	}
	for _, group := range groupBySource(skills) {
		if err := l.updateGroup(ctx, p, group, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// selectImported are the skills to update; those that are not are skipped with the reason.
func (l *Library) selectImported(ctx context.Context, p account.Principal, in Namespace, ids []string, out *ImportResult) ([]*Skill, error) {
	var skills []*Skill
	take := func(s *Skill) {
		switch {
		case s.Source == nil && len(ids) > 0:
			out.skip(s.ID, s.Name, "", "it was uploaded, not imported")
		case s.Source == nil:
		case s.Source.Pinned:
			out.skip(s.ID, s.Name, s.Source.Dir, "it is pinned")
		case len(skills) >= maxUpdated:
			out.skip(s.ID, s.Name, s.Source.Dir, fmt.Sprintf("there are more than %d; update again", maxUpdated))
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

// groupBySource groups skills by the place that they are from, and who imported them, in the
// order of the first.
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

// updateGroup updates the skills of one place.
func (l *Library) updateGroup(ctx context.Context, p account.Principal, skills []*Skill, out *ImportResult) error {
	if l.isCurrent(ctx, p.User, skills) {
		for _, s := range skills {
			out.skip(s.ID, s.Name, s.Source.Dir, errUnchanged.Error())
		}
		return nil
	}
	var failed error // of the hub, not of the place
	err := l.openSource(ctx, p.User, skills[0].Source.location(), func(offer *remote.Collection) error {
		for _, s := range skills {
			if failed = l.updateOne(ctx, p, offer, s, out); failed != nil {
				break
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		for _, s := range skills {
			out.skip(s.ID, s.Name, s.Source.Dir, err.Error())
		}
		return nil
	}
	return errors.Join(err, failed)
}

// isCurrent reports whether a repository still names the commit that all of some skills
// were taken from. Where that cannot be told it is not.
func (l *Library) isCurrent(ctx context.Context, user account.UserID, skills []*Skill) bool {
	commit, err := l.latestCommit(ctx, user, skills[0].Source)
	return err == nil && commit != "" && !slices.ContainsFunc(skills, func(s *Skill) bool { return s.Source.Commit != commit })
}

// latestCommit is the commit that the place of a skill has now, "" where it has none.
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
	r, err := l.newClient(user, latestTimeout).Latest(ctx, at)
	if err != nil {
		return "", err
	}
	return r.Commit, nil
}

func (l *Library) updateOne(ctx context.Context, p account.Principal, offer *remote.Collection, s *Skill, out *ImportResult) error {
	i := slices.IndexFunc(offer.Skills, func(o remote.Skill) bool { return o.Dir == s.Source.Dir })
	if i < 0 {
		out.skip(s.ID, s.Name, s.Source.Dir, "it is not there any more")
		return nil
	}
	change := ImportChange{ID: s.ID, Name: s.Name, Dir: s.Source.Dir}
	err := l.withOffered(ctx, offer, offer.Skills[i], func(c *content) (err error) {
		change.Number, err = l.updateFromSource(ctx, p, s.ID, c, newSource(p, s.Source.location(), offer, offer.Skills[i]))
		return err
	})
	switch {
	case err == nil:
		out.Updated = append(out.Updated, change)
	case isSkillError(err):
		out.skip(s.ID, s.Name, s.Source.Dir, err.Error())
	default:
		return err
	}
	return nil
}

// Pin keeps an imported skill as it is when others are updated, or lets it go on.
func (l *Library) Pin(ctx context.Context, p account.Principal, id string, pinned bool) error {
	return l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		from := readSource(h.Source)
		if from == nil {
			return nil, invalidf("skill %q was uploaded, not imported", h.Name)
		}
		from.Pinned = pinned
		return pinDetails{h.Name, pinned}, tx.Skills.Update(ctx, id, from.origin(), from.json())
	})
}

type pinDetails struct {
	Name   string `json:"name"`
	Pinned bool   `json:"pinned"`
}

// UpdatePreview is what an update of a skill would bring.
type UpdatePreview struct {
	Commit string          `json:"commit,omitempty"`
	Diff   *skilldiff.Diff `json:"diff"` // of the current version and what the place has
}

// PreviewUpdate compares a skill with what its place has now. The principal may change it.
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
	err = l.openSource(ctx, p.User, from.location(), func(offer *remote.Collection) error {
		out.Commit = offer.Revision.Commit
		i := slices.IndexFunc(offer.Skills, func(s remote.Skill) bool { return s.Dir == from.Dir })
		if i < 0 {
			return wrapSourceError(&remote.NotFoundError{What: fmt.Sprintf("skill in %q at %s any more", from.Dir, from.location())})
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

// SourceCheck is what [Library.CheckSources] found.
type SourceCheck struct {
	Sources  int // that were asked
	Outdated int // skills that their places have a newer state for
	// Failed are places that could not be asked, and why.
	Failed map[string]error
}

// CheckSources asks the repositories of all imported skills for their newest commits, and tells
// those who look after a skill of another one than it was taken from, each once. It is
// the hub's own work, of one node at a time, and takes as long as the places do. An
// error is of the database; a place that does not answer is in the result.
func (l *Library) CheckSources(ctx context.Context) (*SourceCheck, error) {
	out := &SourceCheck{Failed: map[string]error{}}
	for after := int64(0); ; {
		changes, err := l.db.Skills.Changes(ctx, after)
		if err != nil || len(changes) == 0 {
			return out, err
		}
		var skills []*Skill
		for _, c := range changes {
			after = c.Revision
			if c.Skill == nil {
				continue
			}
			if s := newSkill(*c.Skill, nil); s.Source != nil && !s.Source.Pinned && s.Source.Kind == string(remote.Git) {
				skills = append(skills, s)
			}
		}
		for _, group := range groupBySource(skills) {
			if err := l.checkSource(ctx, group, out); err != nil {
				return out, err
			}
		}
	}
}

// checkSource asks the place of some skills, as the one who imported the first of them.
func (l *Library) checkSource(ctx context.Context, skills []*Skill, out *SourceCheck) error {
	from := skills[0].Source
	out.Sources++
	commit, err := l.latestCommit(ctx, account.UserID(from.By), from)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		out.Failed[from.location().String()] = err
		return nil
	}
	for _, s := range skills {
		if commit == "" || commit == s.Source.Commit {
			continue
		}
		out.Outdated++
		err := l.db.Tx(ctx, func(tx *store.Tx) error {
			to := recipients{}
			if err := l.addMembers(ctx, tx, to, s.Namespace, store.Maintainer); err != nil {
				return err
			}
			return l.notify(ctx, tx, to, "", SourceChanged, s.ID+"@"+commit, NotificationDetails{SkillID: s.ID, Name: s.Name, Commit: commit})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
