package install

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skillcheck"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/skill"
)

// compareInstalled compares a step's skill with the installed skill of the same
// name and sets the step's state.
func (p *Plan) compareInstalled(ctx context.Context, st *Step) error {
	have, locked := p.lock.Skills[st.Name]
	if !locked {
		there, err := p.dir.Has(st.Name)
		if there && !p.options.Force {
			return &SkillError{Reason: NotInstalled, Name: st.Name, Message: fmt.Sprintf("%s exists in %s and was not installed by loadout add", st.Name, p.dir.Path())}
		}
		return err
	}
	edits, err := p.localEdits(ctx, st.Name)
	if err != nil {
		return err
	}
	if len(edits) == 0 && have.Digest == st.Digest && have.From == st.Entry.From {
		st.State = StateUnchanged
		return nil
	}
	if !p.options.Force {
		if err := checkReplaceable(have, st, edits); err != nil {
			return err
		}
	}
	if !hasEdits(edits) && len(edits) > 0 {
		return nil // only the directory is missing
	}
	st.State = StateReplaced
	return p.diffInstalled(ctx, st)
}

// checkReplaceable returns a [*SkillError] if the installed skill must not be
// replaced without force.
func checkReplaceable(have installed.Entry, st *Step, edits []installed.Difference) error {
	switch {
	case !sameSource(have.From, st.Entry.From):
		return &SkillError{Reason: OtherSource, Name: st.Name, Message: fmt.Sprintf("%s is already installed, from %s", st.Name, have.From)}
	case have.From.Ref != "" && st.From.Ref == "":
		return &SkillError{Reason: Pinned, Name: st.Name, Message: fmt.Sprintf("%s is pinned to @%s", st.Name, have.From.Ref)}
	case strings.HasPrefix(have.Ref, "refs/tags/") && have.From.Ref == st.From.Ref && have.Commit != st.Commit:
		return &SkillError{Reason: TagMoved, Name: st.Name, Message: fmt.Sprintf("the tag %s moved after %s was installed (%s → %s)",
			have.From.Ref, st.Name, shortCommit(have.Commit), shortCommit(st.Commit))}
	case hasEdits(edits):
		return editedError(st.Name, edits, have.Digest == st.Digest)
	}
	return nil
}

// verifyInstalled compares the files of installed skills with the lockfile. It
// checks all names at once, because a lockfile can be long.
func (p *Plan) verifyInstalled(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := p.lock.Skills[n]; return !ok })
	if len(names) == 0 {
		return nil
	}
	found, err := p.dir.Verify(ctx, names...)
	if err != nil {
		return err
	}
	for _, n := range names {
		p.editsByName[n] = nil
	}
	for _, d := range found {
		p.editsByName[d.Name] = append(p.editsByName[d.Name], d)
	}
	return nil
}

// localEdits returns the differences between an installed skill's files and the
// lockfile.
func (p *Plan) localEdits(ctx context.Context, name string) ([]installed.Difference, error) {
	if _, known := p.editsByName[name]; !known {
		if err := p.verifyInstalled(ctx, []string{name}); err != nil {
			return nil, err
		}
	}
	return p.editsByName[name], nil
}

// diffInstalled sets the step's diff from the installed version.
func (p *Plan) diffInstalled(ctx context.Context, st *Step) error {
	old, err := skill.OpenDir(filepath.Join(p.dir.Path(), st.Name))
	if err != nil {
		return nil // unreadable, so it cannot be compared
	}
	defer old.Close()
	ctx, cancel := context.WithTimeout(ctx, skillcheck.ScanTimeout)
	defer cancel()
	st.Diff, err = skilldiff.Compare(ctx, old, st.files, &skilldiff.Options{Folder: st.Name, Texts: p.options.FullDiff})
	if err != nil {
		return fmt.Errorf("compare with installed version: %w", err)
	}
	st.Report = &scan.Report{Name: st.Name, Findings: st.Diff.Findings.New, Truncated: st.Diff.Findings.Truncated}
	return nil
}

// scan scans a skill for risks. Findings never block the installation. If the
// skill is already installed, scan reports only findings that are new in this
// version.
func (p *Plan) scan(ctx context.Context, st *Step) {
	if st.Report == nil {
		st.Report, st.ScanErr = skillcheck.Scan(ctx, st.files, st.Name, skillcheck.ScanTimeout)
	}
	if st.ScanErr == nil {
		p.addResemblances(st)
		st.Findings = append(st.Findings, st.Report.Findings...)
	}
}

// sameSource reports whether two locations refer to the same skill, in any
// version.
func sameSource(a, b remote.Location) bool {
	return a.Kind == b.Kind && a.Dir == b.Dir && a.CanonicalURL() == b.CanonicalURL()
}

// hasEdits reports whether files were modified or added, not just removed.
func hasEdits(edits []installed.Difference) bool {
	return slices.ContainsFunc(edits, func(d installed.Difference) bool { return d.Kind != installed.Absent })
}

func shortCommit(c string) string { return c[:min(12, len(c))] }
