package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/store"
)

// SweepResult counts the files that [Library.Sweep] deleted.
type SweepResult = store.SweepResult

// Sweep deletes the files that no version has referenced for [Options.Grace].
// Each hub node calls it regularly.
func (l *Library) Sweep(ctx context.Context) (SweepResult, error) {
	return l.db.Blobs.Sweep(ctx, l.opts.Grace)
}

// Report is the result of [Library.Check].
type Report = store.Report

// Check verifies the whole database, including every file. In addition to
// [store.DB.Check], it compares each version's files with its digest. Check
// changes nothing. It reads the whole database, which can take a long time.
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
		addProblem(r, "skill %q has no version", s.ID)
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
					continue // deleted since it was listed
				}
				addProblem(r, "version %d of skill %q: files do not match the digest", v.Number, s.ID)
			} else if err != nil {
				return err
			}
		}
	}
}

// addProblem adds a problem to a report unless the report is full.
func addProblem(r *Report, format string, args ...any) {
	if len(r.Problems) < store.MaxPage {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}
