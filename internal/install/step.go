package install

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

// States of a [Skill] in a plan.
const (
	StateNew       = "new"
	StateReplaced  = "replaced"
	StateUnchanged = "unchanged"
)

// Skill describes a skill to install.
type Skill struct {
	Name        string          `json:"name"` // directory name
	Description string          `json:"description"`
	Version     string          `json:"version"`
	State       string          `json:"state"` // StateNew, StateReplaced or StateUnchanged
	From        remote.Location `json:"from"`
	Commit      string          `json:"commit,omitempty"`
	Digest      string          `json:"digest"`
	Files       int             `json:"files"`
	Bytes       int64           `json:"bytes"`
	Scripts     []string        `json:"scripts"`
	Signer      string          `json:"signer,omitempty"`  // fingerprint of the signing key
	Counter     uint64          `json:"counter,omitempty"` // counter in the signature; 0 if it has none
	Findings    []scan.Finding  `json:"findings"`
	Diff        *skilldiff.Diff `json:"diff,omitempty"` // changes from the installed version
}

// Step is one skill of a [Plan] with the results of its checks.
type Step struct {
	Skill
	SkillName string // name in SKILL.md
	Entry     installed.Entry
	Publisher *Publisher   // nil if the skill is not signed
	Report    *scan.Report // if the skill is already installed, only new findings
	ScanErr   error        // why the scan failed

	named    bool // the user named the source now; it is not from the lockfile
	files    *skill.Bundle
	manifest skill.Manifest
}

// newStep reads a skill's files. The caller must close the step.
func newStep(ctx context.Context, c *remote.Collection, s remote.Skill) (_ *Step, err error) {
	files, err := c.OpenSkill(ctx, s)
	if err != nil {
		return nil, WrapSource(c.Location, err)
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
		return nil, &SkillError{Reason: Invalid, Message: found[i].String(), Fix: found[i].Fix}
	}
	st := &Step{SkillName: parsed.Name, files: files, manifest: manifest}
	st.Skill = Skill{Name: Name(c.Location, s), Description: parsed.Description, Version: parsed.Version, State: StateNew,
		From: skillLocation(c.Location, s), Commit: c.Revision.Commit, Digest: manifest.Digest(), Files: len(manifest), Bytes: manifest.Size(),
		Scripts: []string{}, Findings: []scan.Finding{}}
	for _, f := range manifest {
		if f.Script {
			st.Scripts = append(st.Scripts, f.Path)
		}
	}
	st.Entry = installed.Entry{From: st.From, Ref: c.Revision.Ref, Commit: st.Commit, Version: st.Version, Digest: st.Digest}
	return st, nil
}

func (st *Step) close() {
	if st.files != nil {
		_ = st.files.Close()
	}
}

// skillLocation returns the location of a skill within a source. For a local
// source, this is the skill's own directory.
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

// Name returns the directory name for installing a skill. It is the skill's own
// name if that is a valid directory name on every system.
func Name(at remote.Location, s remote.Skill) string {
	folder := path.Base(s.Dir)
	if s.Dir == "." && at.Kind == remote.Local {
		folder = filepath.Base(at.URL)
	}
	for _, n := range []string{s.Name, folder} {
		if installed.IsValidName(n) {
			return n
		}
	}
	const nothing = "skill" // result of Slug for a name without usable characters
	for _, n := range []string{s.Name, folder} {
		if slug := skillname.Slug(n); slug != nothing && installed.IsValidName(slug) {
			return slug
		}
	}
	return nothing + "-" + skillfile.Hash([]byte(s.Name))[:8] // different for each name
}
