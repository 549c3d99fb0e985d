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
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// draftScanTime is the timeout for scanning a draft. It is short, because the
// author is waiting.
const draftScanTime = 5 * time.Second

// DraftCheck is the result of [Library.CheckDraft]. Fields that could not be
// determined are empty.
type DraftCheck struct {
	Skill                *skill.Skill // nil if SKILL.md cannot be read
	Valid                bool         // whether it conforms to the specification
	Loadable             bool         // whether it can be loaded
	Savable              bool         // whether an upload would succeed if the name is free
	Diagnostics          []DraftDiagnostic
	Findings             []scan.Finding
	Unscanned            bool // whether the scan is incomplete
	Manifest             skill.Manifest
	RequestedPermissions []skilldiff.PermissionChange
	Code                 bool           // whether it has code, which needs a review
	Runnable             bool           // whether these files are approved, so that their code may run
	CatalogLine          string         // line in the catalog text for models; "" if hidden from them
	Existing             *ExistingSkill // another skill with this name, or nil
	CanSave              bool           // whether the principal may save it
}

// DraftDiagnostic is a problem in a file of a draft.
type DraftDiagnostic struct {
	skill.Diagnostic
	File string
	// Edit fixes the problem, or is nil if there is no automatic fix. Rename is
	// the file name that would fix the problem, or "".
	Edit   *skill.Edit
	Rename string
}

// ExistingSkill is a skill with the same name as a draft or an upload.
type ExistingSkill struct {
	ID            string // "" if the principal may not see the skill
	CanAddVersion bool   // whether the principal may add a version to it
	// Same reports whether the principal may see the skill, and its current version has
	// the same files as the upload.
	Same bool

	record *skillRecord
}

// isOutOfReach reports whether the principal may neither see nor change the skill.
func (e *ExistingSkill) isOutOfReach(p account.Principal) bool {
	return e.ID == "" && e.record.check(p, account.SkillChange, e.record.CreatedBy) != nil
}

// CheckDraft checks a draft before it is saved in a namespace. If the draft
// adds a version to a skill, CheckDraft ignores the parameter in and uses the
// skill's namespace. Otherwise, "" means the principal's own namespace.
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

func ownNamespace(p account.Principal) Namespace { return store.UserNamespace(string(p.User)) }

// maxEdits is the maximum number of diagnostics for which an edit is computed.
const maxEdits = 50

// readSkillFile parses SKILL.md and adds its diagnostics.
func (c *DraftCheck) readSkillFile(_ context.Context, d *draft) error {
	for _, r := range d.refusals {
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: printable.OneLine(r.Entry), Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: r.Code, Message: printable.OneLine(r.Message), Fix: "rename the file"}})
	}
	file, err := skillfile.Find(d.fsys)
	if err != nil { // missing or a directory
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: skill.FileName, Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: "no-skill-md", Message: "SKILL.md is missing", Fix: "add a file SKILL.md to the top directory"}})
		return nil
	}
	src, err := fs.ReadFile(d.fsys, file)
	if err != nil {
		return err
	}
	s, ds := skill.ParseBytes(src, file, d.folder)
	ds = append(ds, skill.CheckFiles(d.fsys, src, s)...)
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

// hashFiles computes the manifest.
func (c *DraftCheck) hashFiles(_ context.Context, d *draft) (err error) {
	c.Manifest, _, err = skill.ReadManifest(d.fsys)
	return err
}

// scanFiles scans the files for up to draftScanTime.
func (c *DraftCheck) scanFiles(ctx context.Context, d *draft) error {
	limited, stop := context.WithTimeout(ctx, draftScanTime)
	defer stop()
	report, err := scan.Skill(limited, d.fsys, d.folder)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // ignore a timeout or unreadable file, because findings are advisory
		c.Unscanned = true
	default:
		c.Findings, c.Unscanned = report.Findings, report.Truncated
	}
	return nil
}

// readPermissions sets the requested permissions by comparing the skill with an
// empty one.
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

// checkName adds a diagnostic if the skill's name is not allowed.
func (c *DraftCheck) checkName(d *draft) {
	if c.Skill.Name == "" {
		return // readSkillFile has reported it
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

// checkDraftTarget determines whether the principal may save the draft and
// whether another skill has its name.
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
	c.CanSave = account.Can(p, account.SkillUpload, accountResource(in, ""))
	if c.Skill.Name == "" {
		return nil
	}
	existing, err := l.findExisting(ctx, p, in, c.Skill.Name)
	if err != nil || existing == nil {
		return err
	}
	if existing.ID != "" || c.CanSave { // otherwise an upload would not reveal the existing skill, either
		c.Existing = existing
	}
	return nil
}

// isReviewDecision reports whether err means that the code must not run, rather
// than that the check itself failed.
func isReviewDecision(err error) bool {
	_, reviewed := errors.AsType[*ReviewError](err)
	return reviewed || isNotFound(err) || account.IsDenied(err)
}

func newDraftEntry(s *skill.Skill, m *meta) *catalog.Entry {
	return m.catalogEntry(s.Name, cleanLine(s.DisplayName, 1024), truncate(s.Description, 16<<10), cleanLine(s.Version, 256), cleanLines(s.Tags))
}
