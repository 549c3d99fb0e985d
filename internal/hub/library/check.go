package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/store"
)

// Swept is what was removed.
type Swept = store.Swept

// Sweep removes the files that no version has named for the time of [Options.Grace].
// It is the hub's own work: any node does it, now and then.
func (l *Library) Sweep(ctx context.Context) (Swept, error) {
	return l.db.Blobs.Sweep(ctx, l.opts.Grace)
}

// Report is what a check found. Problems is empty where all is well.
type Report = store.Report

// Check reads through all that is kept, every file too, and reports what does not fit
// together: what [store.DB.Check] does, and versions whose files are not those of their
// digest. Orphans are files that no version names; [Library.Sweep] removes them. It
// changes nothing, and takes as long as reading the database does.
func (l *Library) Check(ctx context.Context) (Report, error) {
	r, err := l.db.Check(ctx)
	if err != nil {
		return Report{}, err
	}
	for after := int64(0); ; {
		changes, err := l.db.Skills.Changes(ctx, after)
		if err != nil || len(changes) == 0 {
			return r, err
		}
		for _, c := range changes {
			after = c.Revision
			if c.Skill == nil {
				continue
			}
			if err := l.checkSkill(ctx, c.Skill, &r); err != nil {
				return Report{}, err
			}
		}
	}
}

func (l *Library) checkSkill(ctx context.Context, s *store.Skill, r *Report) error {
	if s.Number == 0 {
		problem(r, "skill %q has no version", s.ID)
	}
	for before := int64(0); ; {
		versions, err := l.db.Versions.List(ctx, s.ID, before, store.MaxPage)
		if err != nil || len(versions) == 0 {
			return err
		}
		for _, v := range versions {
			before = v.Number
			_, err := l.manifest(ctx, v)
			if errors.Is(err, store.ErrCorrupt) {
				if _, err := l.db.Versions.Get(ctx, s.ID, v.Number); isNotFound(err) {
					continue // it was deleted meanwhile
				}
				problem(r, "version %d of skill %q has other files than its digest says", v.Number, s.ID)
			} else if err != nil {
				return err
			}
		}
	}
}

// problem adds one, of many the first.
func problem(r *Report, format string, args ...any) {
	if len(r.Problems) < store.MaxPage {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}
