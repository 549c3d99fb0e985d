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

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/skill"
)

// step is one skill of a plan.
type step struct {
	addedSkill
	skillName string // name in its SKILL.md
	entry     installed.Entry
	files     *skill.Bundle
	manifest  skill.Manifest
	report    *scan.Report
	scanErr   error // why the scan failed
	signer    *publisher
}

// addedSkill is a skill in the output of add --json and update --json.
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
	Signer      string          `json:"signer,omitempty"` // fingerprint of the signing key
	Findings    []scan.Finding  `json:"findings"`
	Diff        *skilldiff.Diff `json:"diff,omitempty"` // changes from the installed version
}

// newStep reads the files of a skill. Close the step after use.
func newStep(ctx context.Context, offer *remote.Collection, s remote.Skill) (_ *step, err error) {
	files, err := offer.OpenSkill(ctx, s)
	if err != nil {
		return nil, wrapRemote(offer.Location, err)
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
		return nil, fail(exitFailure, found[i].Fix, "%s", found[i].String())
	}
	st := &step{skillName: parsed.Name, files: files, manifest: manifest}
	st.addedSkill = addedSkill{Name: installName(offer.Location, s), Description: parsed.Description, Version: parsed.Version, State: "new",
		From: skillLocation(offer.Location, s), Commit: offer.Revision.Commit, Digest: manifest.Digest(), Files: len(manifest), Bytes: manifest.Size(),
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

// skillLocation returns the location of a skill within a source. For a local
// directory it is the directory of the skill.
func skillLocation(at remote.Location, s remote.Skill) remote.Location {
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

// installName returns the directory name to install a skill as: its own name,
// if every system can store it.
func installName(at remote.Location, s remote.Skill) string {
	folder := path.Base(s.Dir)
	if s.Dir == "." && at.Kind == remote.Local {
		folder = filepath.Base(at.URL)
	}
	for _, n := range []string{s.Name, folder} {
		if isInstallName(n) {
			return n
		}
	}
	const nothing = "skill" // result of Slug without usable letters
	for _, n := range []string{s.Name, folder} {
		if slug := skill.Slug(n); slug != nothing && isInstallName(slug) {
			return slug
		}
	}
	return nothing + "-" + skill.Hash([]byte(s.Name))[:8] // unique for each name
}

// isInstallName reports whether skills can be installed into a directory with
// this name.
func isInstallName(name string) bool {
	_, why := skill.CheckPath(name)
	return skill.IsPortableName(name) && why == ""
}

// compareInstalled compares a skill with the installed skill of the same name,
// and sets its state.
func (p *plan) compareInstalled(ctx context.Context, st *step) error {
	have, locked := p.lock.Skills[st.Name]
	if !locked {
		there, err := p.to.Has(st.Name)
		if there && !p.force {
			return fail(exitFailure, "move it away, or replace it with --force", "%s exists in %s and was not installed by loadout add", st.Name, p.to.Path())
		}
		return err
	}
	edits, err := p.localEdits(ctx, st.Name)
	switch {
	case err != nil:
		return err
	case len(edits) == 0 && have.Digest == st.Digest && have.From == st.entry.From:
		st.State = "unchanged"
		return nil
	case !sameSource(have.From, st.entry.From) && !p.force:
		return fail(exitFailure, "keep it, or replace it with --force; to remove it: loadout remove "+shellQuote(st.Name)+p.to.flag(), "%s is already installed, from %s", st.Name, have.From)
	case have.From.Ref != "" && st.From.Ref == "" && !p.force:
		return fail(exitFailure, "choose a version with @, or install this one with --force", "%s is pinned to @%s", st.Name, have.From.Ref)
	case strings.HasPrefix(have.Ref, "refs/tags/") && have.From.Ref == st.From.Ref && have.Commit != st.Commit && !p.force:
		return fail(exitRefused, "find out why; to install it anyway: --force", "the tag %s moved after %s was installed (%s → %s)",
			have.From.Ref, st.Name, shortCommit(have.Commit), shortCommit(st.Commit))
	case hasEdits(edits) && !p.force:
		return fail(exitFailure, "see the differences: loadout verify "+shellQuote(st.Name)+p.to.flag()+"; to discard your edits: --force",
			"%w", &editedError{st.Name, edits, have.Digest == st.Digest})
	case !hasEdits(edits) && len(edits) > 0:
		return nil // only its directory is gone
	}
	st.State = "replaced"
	return p.diffInstalled(ctx, st)
}

// verifyInstalled compares the files of installed skills with the lockfile. It
// does so for all names at once because a lockfile can be long.
func (p *plan) verifyInstalled(ctx context.Context, names []string) error {
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

// localEdits returns the differences of an installed skill from the lockfile.
func (p *plan) localEdits(ctx context.Context, name string) ([]installed.Difference, error) {
	if _, known := p.edits[name]; !known {
		if err := p.verifyInstalled(ctx, []string{name}); err != nil {
			return nil, err
		}
	}
	return p.edits[name], nil
}

// editedError reports that the user edited an installed skill.
type editedError struct {
	name  string
	edits []installed.Difference
	same  bool // the source has not changed
}

func (e *editedError) Error() string {
	return fmt.Sprintf("you have edited %s (%s); your edits are kept", e.name, formatEdits(e.edits))
}

// diffInstalled compares a skill with its installed version.
func (p *plan) diffInstalled(ctx context.Context, st *step) error {
	old, err := skill.OpenDir(filepath.Join(p.to.Path(), st.Name))
	if err != nil {
		return nil // unreadable: nothing to compare with
	}
	defer old.Close()
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	st.Diff, err = skilldiff.Compare(ctx, old, st.files, &skilldiff.Options{Folder: st.Name, Texts: p.texts})
	if err != nil {
		return fmt.Errorf("compare with the installed version: %w", err)
	}
	st.report = &scan.Report{Name: st.Name, Findings: st.Diff.Findings.New, Truncated: st.Diff.Findings.Truncated}
	return nil
}

// sameSource reports whether two locations refer to the same skill, in any
// version.
func sameSource(a, b remote.Location) bool {
	a.Ref, b.Ref = "", ""
	return a == b
}

// hasEdits reports whether files of a skill differ, and are not just missing.
func hasEdits(edits []installed.Difference) bool {
	return slices.ContainsFunc(edits, func(d installed.Difference) bool { return d.Kind != installed.Absent })
}

// formatEdits names the files that differ.
func formatEdits(edits []installed.Difference) string {
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
			e.Path = string(e.Kind)
		}
		text += e.Path
	}
	return text
}

// scanStep scans a skill. Findings never block the installation. For a new
// version only new findings count.
func (p *plan) scanStep(ctx context.Context, st *step) {
	if st.report == nil {
		ctx, cancel := context.WithTimeout(ctx, scanTimeout)
		defer cancel()
		if st.report, st.scanErr = scan.Skill(ctx, st.files, st.Name); errors.Is(st.scanErr, context.DeadlineExceeded) {
			st.scanErr = fmt.Errorf("scan took longer than %v", scanTimeout)
		}
	}
	if st.scanErr == nil {
		st.Findings = append(st.Findings, st.report.Findings...)
	}
}
