package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// draftScanTime limits the scan of a draft, because the author waits for it.
const draftScanTime = 5 * time.Second

// DraftCheck is the result of checking a draft. Unknown values are empty.
type DraftCheck struct {
	Skill                *skill.Skill // nil if unreadable
	Valid                bool         // according to the specification
	Loadable             bool         // it can be used
	Savable              bool         // an upload would succeed if the name is free
	Diagnostics          []DraftDiagnostic
	Findings             []scan.Finding
	Unscanned            bool // the scan is incomplete
	Manifest             skill.Manifest
	RequestedPermissions []skilldiff.PermissionChange
	Code                 bool           // it needs a review
	Runnable             bool           // these files were approved, so their code may run
	CatalogLine          string         // shown to models; "" if hidden from them
	Existing             *ExistingSkill // nil if the name is free, or belongs to the skill that this is a version of
	CanSave              bool           // the principal may save it
}

// DraftDiagnostic is a problem in a file of a draft.
type DraftDiagnostic struct {
	skill.Diagnostic
	File string
	// Edit fixes the problem, nil if it needs manual work. Rename is the
	// required file name, "" if the name is right.
	Edit   *skill.Edit
	Rename string
}

// ExistingSkill is the skill that already has the name of a draft.
type ExistingSkill struct {
	ID            string // "" where the principal may not know of it
	CanAddVersion bool   // the principal may add a version
}

// CheckDraft checks a draft that is to be saved in a namespace. "" is the
// namespace of the skill that it is a version of, otherwise the principal's
// own.
func (l *Library) CheckDraft(ctx context.Context, p account.Principal, d Draft, in Namespace) (*DraftCheck, error) {
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return nil, err
	}
	defer done()
	opened, err := l.openDraft(ctx, p, d)
	if err != nil {
		return nil, err
	}
	switch {
	case opened.of != nil:
		in = opened.of.Namespace
	case in == "":
		in = ownNamespace(p)
	default:
		if err := checkNamespace(p, account.SkillRead, in); err != nil {
			return nil, err
		}
	}
	out := &DraftCheck{}
	for _, step := range []func(context.Context, *draft) error{out.readSkillFile, out.hashFiles, out.scanFiles, out.readPermissions} {
		if err := step(ctx, opened); err != nil {
			return nil, fmt.Errorf("check draft: %w", err)
		}
	}
	out.Loadable = out.Loadable && out.Skill != nil
	out.Savable = out.Loadable && len(opened.refusals) == 0
	if out.Skill == nil {
		return out, nil
	}
	out.checkName(opened)
	return out, l.checkDraftTarget(ctx, p, out, opened, in)
}

// ownNamespace returns the namespace of a principal.
func ownNamespace(p account.Principal) Namespace { return store.UserNamespace(string(p.User)) }

// maxEdits limits the diagnostics that get a suggested edit.
const maxEdits = 50

// readSkillFile reads SKILL.md.
func (c *DraftCheck) readSkillFile(_ context.Context, d *draft) error {
	for _, r := range d.refusals {
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: printable.OneLine(r.Entry), Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: r.Code, Message: printable.OneLine(r.Message), Fix: "rename the file"}})
	}
	file, err := skill.FindFile(d.fsys)
	if err != nil { // missing, or a directory
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: skill.FileName, Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: "no-skill-md", Message: "no SKILL.md", Fix: "add a file SKILL.md at the top"}})
		return nil
	}
	src, err := fs.ReadFile(d.fsys, file)
	if err != nil {
		return err
	}
	s, ds := skill.ParseBytes(src, file, d.folder)
	c.Skill, c.Valid, c.Loadable = s, ds.Valid(), ds.Loads()
	for i, found := range ds {
		said := DraftDiagnostic{Diagnostic: found, File: file}
		if found.Code == "file-name" {
			said.Rename = skill.FileName
		} else if i < maxEdits {
			said.Edit = found.SuggestEdit(src, d.folder)
		}
		c.Diagnostics = append(c.Diagnostics, said)
	}
	return nil
}

// hashFiles hashes the files.
func (c *DraftCheck) hashFiles(_ context.Context, d *draft) (err error) {
	c.Manifest, _, err = skill.ReadManifest(d.fsys)
	return err
}

// scanFiles scans the files for at most draftScanTime.
func (c *DraftCheck) scanFiles(ctx context.Context, d *draft) error {
	limited, stop := context.WithTimeout(ctx, draftScanTime)
	defer stop()
	report, err := scan.Skill(limited, d.fsys, d.folder)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // timeout or unreadable file: findings are advisory
		c.Unscanned = true
	default:
		c.Findings, c.Unscanned = report.Findings, report.Truncated
	}
	return nil
}

// readPermissions determines the requested permissions by comparing the draft
// with an empty skill.
func (c *DraftCheck) readPermissions(ctx context.Context, d *draft) error {
	if c.Skill == nil {
		return nil
	}
	diff, err := skilldiff.Compare(ctx, nil, d.fsys, &skilldiff.Options{Folder: d.folder, NoScan: true})
	if err != nil {
		return err
	}
	c.RequestedPermissions = diff.Permissions.More
	return nil
}

// checkName adds a diagnostic if the skill cannot have its name here.
func (c *DraftCheck) checkName(d *draft) {
	if c.Skill.Name == "" {
		return // already reported for SKILL.md
	}
	err := checkName(c.Skill.Name)
	if err == nil && d.of != nil {
		err = (&content{skill: c.Skill}).checkSameSkill(d.of)
	}
	why, bad := errors.AsType[*NameError](err)
	if !bad {
		return
	}
	c.Savable = false
	found := skill.Diagnostic{Severity: skill.Error, Code: "name-refused", Message: printable.OneLine(why.Error()), Fix: "give the skill another name"}
	c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{Diagnostic: found, File: skill.FileName})
}

// checkDraftTarget determines what an upload of the draft would meet.
func (l *Library) checkDraftTarget(ctx context.Context, p account.Principal, c *DraftCheck, d *draft, in Namespace) error {
	m := newMeta(c.Skill, nil, skill.FileName, c.Manifest)
	c.Code = m.hasCode()
	if c.Loadable && !c.Skill.DisableModelInvocation {
		row := newDraftEntry(c.Skill, m)
		c.CatalogLine = strings.TrimSuffix(catalog.Format([]*catalog.Entry{row}, catalog.FormatOptions{}), "\n")
	}
	switch err := l.CheckRunnable(ctx, p, c.Manifest.Digest()); {
	case err == nil:
		c.Runnable = true
	case !isReviewDecision(err):
		return err
	}
	if d.of != nil {
		c.CanSave = d.of.check(p, account.SkillChange, d.of.CreatedBy) == nil
		return nil
	}
	c.CanSave = account.Can(p, account.SkillUpload, resourceOf(in, ""))
	if c.Skill.Name == "" {
		return nil
	}
	found, err := l.db.Skills.Find(ctx, c.Skill.Name, []Namespace{in})
	if err != nil || len(found) == 0 {
		return err
	}
	c.Existing = &ExistingSkill{}
	h, err := l.getSkill(ctx, &l.db.Tables, found[0].ID)
	if err != nil {
		if isNotFound(err) {
			c.Existing = nil // deleted meanwhile
			return nil
		}
		return err
	}
	switch {
	case h.check(p, account.SkillRead, h.CreatedBy) == nil:
		c.Existing.ID, c.Existing.CanAddVersion = h.ID, h.check(p, account.SkillChange, h.CreatedBy) == nil
	case !c.CanSave: // an upload would not reveal it either
		c.Existing = nil
	}
	return nil
}

// isReviewDecision reports whether err denies running code, as opposed to a
// failed check.
func isReviewDecision(err error) bool {
	_, reviewed := errors.AsType[*ReviewError](err)
	return reviewed || isNotFound(err) || isDenied(err)
}

// newDraftEntry returns the catalog entry of a draft.
func newDraftEntry(s *skill.Skill, m *meta) *catalog.Entry {
	return m.catalogEntry(s.Name, cleanLine(s.DisplayName, 1024), truncate(s.Description, 16<<10), cleanLine(s.Version, 256), cleanLines(s.Tags))
}
