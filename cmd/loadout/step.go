package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/skilldiff"
)

// step is one skill of a plan.
type step struct {
	addedSkill
	called   string // by its SKILL.md
	entry    installed.Entry
	files    *skill.Bundle
	manifest skill.Manifest
	report   *scan.Report
	scans    error // why it could not be scanned
	signed   *publisher
}

// addedSkill is a skill in add --json and update --json.
type addedSkill struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Version     string          `json:"version"`
	State       string          `json:"state"` // new, replaced or unchanged
	From        remote.Location `json:"from"`
	Commit      string          `json:"commit,omitempty"`
	Digest      string          `json:"digest"`
	Files       int             `json:"files"`
	Bytes       int64           `json:"bytes"`
	Scripts     []string        `json:"scripts"`
	Signer      string          `json:"signer,omitempty"` // the fingerprint of the key it is signed with
	Findings    []scan.Finding  `json:"findings"`
	Diff        *skilldiff.Diff `json:"diff,omitempty"` // from what is there
}

// newStep reads the files of a skill. Close the step.
func newStep(ctx context.Context, offer *remote.Offer, s remote.Skill) (_ *step, err error) {
	files, err := offer.Open(ctx, s)
	if err != nil {
		return nil, away(offer.Location, err)
	}
	defer func() {
		if err != nil {
			_ = files.Close()
		}
	}()
	manifest, _, err := skill.ReadManifest(files)
	if err != nil {
		return nil, err
	}
	parsed, found, err := skill.Parse(files, files.Folder)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(found, func(d skill.Diagnostic) bool { return d.Severity == skill.Error }); i >= 0 && !found.Loads() {
		return nil, fail(exitFound, found[i].Fix, "%s", found[i].String())
	}
	st := &step{called: parsed.Name, files: files, manifest: manifest}
	st.addedSkill = addedSkill{Name: dirName(offer.Location, s), Description: parsed.Description, Version: parsed.Version, State: "new",
		From: locationOf(offer.Location, s), Commit: offer.Revision.Commit, Digest: manifest.Digest(), Files: len(manifest), Bytes: manifest.Size(),
		Scripts: []string{}, Findings: []scan.Finding{}}
	for _, f := range manifest {
		if f.Script {
			st.Scripts = append(st.Scripts, f.Path)
		}
	}
	st.entry = installed.Entry{From: st.From, Ref: offer.Revision.Ref, Commit: st.Commit, Version: st.Version, Digest: st.Digest}
	return st, nil
}

func (st *step) close() {
	if st.files != nil {
		_ = st.files.Close()
	}
}

// locationOf is where one skill of a place is. That of a folder here is its own.
func locationOf(at remote.Location, s remote.Skill) remote.Location {
	if at.Dir = s.Dir; at.Dir == "." {
		at.Dir = ""
	}
	if at.Kind != remote.Local {
		return at
	}
	if info, err := os.Stat(at.URL); err == nil && info.IsDir() {
		at.URL, at.Dir = filepath.Join(at.URL, filepath.FromSlash(at.Dir)), ""
	}
	return at
}

// dirName is the name of the directory that a skill of a place is installed into: its own,
// where every system can store it.
func dirName(at remote.Location, s remote.Skill) string {
	folder := path.Base(s.Dir)
	if s.Dir == "." && at.Kind == remote.Local {
		folder = filepath.Base(at.URL)
	}
	for _, n := range []string{s.Name, folder} {
		if canBeDir(n) {
			return n
		}
	}
	const nothing = "skill" // what Slug makes of a name without a letter that it knows
	for _, n := range []string{s.Name, folder} {
		if slug := skill.Slug(n); slug != nothing && canBeDir(slug) {
			return slug
		}
	}
	return nothing + "-" + skill.Hash([]byte(s.Name))[:8] // each name its own
}

// canBeDir reports whether skills are installed into directories of that name.
func canBeDir(name string) bool {
	_, why := skill.CheckPath(name)
	return skill.PortableName(name) && why == ""
}

// against compares a skill with what is installed under its name.
func (p *plan) against(ctx context.Context, st *step) error {
	have, locked := p.lock.Skills[st.Name]
	if !locked {
		there, err := p.to.Has(st.Name)
		if there && !p.force {
			return fail(exitFound, "move it away, or replace it with --force", "there is already a %s in %s that loadout add did not bring", st.Name, p.to.Path())
		}
		return err
	}
	edits, err := p.editsOf(ctx, st.Name)
	switch {
	case err != nil:
		return err
	case len(edits) == 0 && have.Digest == st.Digest && have.From == st.entry.From:
		st.State = "unchanged"
		return nil
	case !sameHome(have.From, st.entry.From) && !p.force:
		return fail(exitFound, "keep it, or replace it with --force; to remove it: loadout remove "+quoted(st.Name)+p.to.flag(), "there is already a %s, from %s", st.Name, have.From)
	case have.From.Ref != "" && st.From.Ref == "" && !p.force:
		return fail(exitFound, "name the one that you want with @, or take this one with --force", "%s was got at @%s, and stays", st.Name, have.From.Ref)
	case strings.HasPrefix(have.Ref, "refs/tags/") && have.From.Ref == st.From.Ref && have.Commit != st.Commit && !p.force:
		return fail(exitRefused, "find out why; to take it all the same: --force", "the tag %s names another commit than it did when %s was got (%s → %s)",
			have.From.Ref, st.Name, shortCommit(have.Commit), shortCommit(st.Commit))
	case edited(edits) && !p.force:
		return fail(exitFound, "see what differs: loadout verify "+quoted(st.Name)+p.to.flag()+"; to lose your changes: --force",
			"%w", &editedError{st.Name, edits, have.Digest == st.Digest})
	case !edited(edits) && len(edits) > 0:
		return nil // its directory is gone: it is new
	}
	st.State = "replaced"
	return p.compare(ctx, st)
}

// verify reads the files of installed skills, of all at once, as a lock is long.
func (p *plan) verify(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := p.lock.Skills[n]; return !ok })
	if len(names) == 0 {
		return nil
	}
	found, err := p.to.Verify(ctx, names...)
	if err != nil {
		return err
	}
	for _, n := range names {
		p.edits[n] = nil
	}
	for _, d := range found {
		p.edits[d.Name] = append(p.edits[d.Name], d)
	}
	return nil
}

// editsOf is how an installed skill differs from the lock.
func (p *plan) editsOf(ctx context.Context, name string) ([]installed.Difference, error) {
	if _, known := p.edits[name]; !known {
		if err := p.verify(ctx, []string{name}); err != nil {
			return nil, err
		}
	}
	return p.edits[name], nil
}

// editedError says that a person has changed an installed skill.
type editedError struct {
	name  string
	edits []installed.Difference
	same  bool // what was got is still what is there elsewhere
}

func (e *editedError) Error() string {
	return fmt.Sprintf("you have edited %s (%s), and it is kept", e.name, editsText(e.edits))
}

// compare says what differs from what is there.
func (p *plan) compare(ctx context.Context, st *step) error {
	old, err := skill.OpenDir(filepath.Join(p.to.Path(), st.Name))
	if err != nil {
		return nil // it cannot be read, and there is nothing to compare with
	}
	defer old.Close()
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	st.Diff, err = skilldiff.Compare(ctx, old, st.files, &skilldiff.Options{Folder: st.Name, Texts: p.texts})
	if err != nil {
		return fmt.Errorf("compare it with what is there: %w", err)
	}
	st.report = &scan.Report{Name: st.Name, Findings: st.Diff.Findings.New, Truncated: st.Diff.Findings.Truncated}
	return nil
}

// sameHome reports whether two locations are one skill, in whatever version.
func sameHome(a, b remote.Location) bool {
	a.Ref, b.Ref = "", ""
	return a == b
}

// edited says whether a skill is there and differs, not merely gone.
func edited(edits []installed.Difference) bool {
	return slices.ContainsFunc(edits, func(d installed.Difference) bool { return d.What != installed.Absent })
}

// editsText names the files that differ.
func editsText(edits []installed.Difference) string {
	const most = 3
	text := ""
	for i, e := range edits {
		switch {
		case i == most:
			return text + fmt.Sprintf(" and %d more", len(edits)-most)
		case i > 0:
			text += ", "
		}
		if e.Path == "" {
			e.Path = string(e.What)
		}
		text += e.Path
	}
	return text
}

// scan looks for what is dangerous or hidden. It advises: what it says stops nothing. Of
// a newer version it is what was not found in the one before.
func (p *plan) scan(ctx context.Context, st *step) {
	if st.report == nil {
		ctx, cancel := context.WithTimeout(ctx, scanTime)
		defer cancel()
		if st.report, st.scans = scan.Skill(ctx, st.files, st.Name); errors.Is(st.scans, context.DeadlineExceeded) {
			st.scans = fmt.Errorf("it took longer than %v", scanTime)
		}
	}
	if st.scans == nil {
		st.Findings = append(st.Findings, st.report.Findings...)
	}
}
