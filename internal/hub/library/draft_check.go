package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/scan"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/skilldiff"
)

// draftScanTime bounds the scan of a draft: somebody waits for it while he writes.
const draftScanTime = 5 * time.Second

// Checked is what there is to know of a draft. What cannot be told is left empty.
type Checked struct {
	Skill       *skill.Skill // nil where nothing could be read of it
	Valid       bool         // by the rules of the specification
	Loads       bool         // it can be used
	Saves       bool         // an upload of it is taken, where the name is free
	Diagnostics []DraftDiagnostic
	Findings    []scan.Finding
	Unscanned   bool // something was not looked at
	Manifest    skill.Manifest
	Asks        []skilldiff.Ask
	Code        bool   // it has what a review is about
	MayRun      bool   // its code may run as it is: these files were approved
	CatalogLine string // by which a model is told of it, "" where it is not
	Taken       *Taken // nil where the name is free, or is that of the skill it is a version of
	MayAdd      bool   // the principal may save it
}

// DraftDiagnostic is what is wrong with a file of a draft.
type DraftDiagnostic struct {
	skill.Diagnostic
	File string
	// Edit mends it, nil where that takes a person; Rename is what the file has to be
	// called, "" where its name is right.
	Edit   *skill.Edit
	Rename string
}

// Taken is a skill that has the name of a draft.
type Taken struct {
	ID     string // "" where the principal may not know of it
	MayAdd bool   // he may add a version to it
}

// CheckDraft looks at a draft that is to be kept in a namespace; "" is where the skill is
// that it is a version of, or else the principal's own.
func (l *Library) CheckDraft(ctx context.Context, p account.Principal, d Draft, in Namespace) (*Checked, error) {
	done, err := turn(ctx, l.turns)
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
		in = own(p)
	default:
		if err := inPlace(p, account.SkillRead, in); err != nil {
			return nil, err
		}
	}
	out := &Checked{}
	for _, step := range []func(context.Context, *draft) error{out.read, out.list, out.scan, out.askFor} {
		if err := step(ctx, opened); err != nil {
			return nil, fmt.Errorf("check a draft: %w", err)
		}
	}
	out.Loads = out.Loads && out.Skill != nil
	out.Saves = out.Loads && len(opened.refusals) == 0
	if out.Skill == nil {
		return out, nil
	}
	out.name(opened)
	return out, l.placeDraft(ctx, p, out, opened, in)
}

// own is the namespace of a principal.
func own(p account.Principal) Namespace { return store.UserNamespace(string(p.User)) }

// maxEdits bounds the diagnostics for which an edit is looked for.
const maxEdits = 50

// read reads SKILL.md.
func (c *Checked) read(_ context.Context, d *draft) error {
	for _, r := range d.refusals {
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: skill.OneLine(r.Entry), Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: r.Code, Message: skill.OneLine(r.Message), Fix: "rename the file"}})
	}
	file, err := skill.FindFile(d.fsys)
	if err != nil { // it is not there, or is a folder
		c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{File: skill.FileName, Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: "no-skill-md", Message: "there is no SKILL.md", Fix: "add a file SKILL.md at the top"}})
		return nil
	}
	src, err := fs.ReadFile(d.fsys, file)
	if err != nil {
		return err
	}
	s, ds := skill.ParseBytes(src, file, d.folder)
	c.Skill, c.Valid, c.Loads = s, ds.Valid(), ds.Loads()
	for i, found := range ds {
		said := DraftDiagnostic{Diagnostic: found, File: file}
		if found.Code == "file-name" {
			said.Rename = skill.FileName
		} else if i < maxEdits {
			said.Edit = skill.Mend(src, d.folder, found)
		}
		c.Diagnostics = append(c.Diagnostics, said)
	}
	return nil
}

// list hashes the files.
func (c *Checked) list(_ context.Context, d *draft) (err error) {
	c.Manifest, _, err = skill.ReadManifest(d.fsys)
	return err
}

// scan looks through the files for a bounded time.
func (c *Checked) scan(ctx context.Context, d *draft) error {
	limited, stop := context.WithTimeout(ctx, draftScanTime)
	defer stop()
	report, err := scan.Skill(limited, d.fsys, d.folder)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // it took too long, or met what it cannot read: advice is what is missing
		c.Unscanned = true
	default:
		c.Findings, c.Unscanned = report.Findings, report.Truncated
	}
	return nil
}

// askFor finds out what the skill asks for, which is more than nothing does.
func (c *Checked) askFor(ctx context.Context, d *draft) error {
	if c.Skill == nil {
		return nil
	}
	diff, err := skilldiff.Compare(ctx, nil, d.fsys, &skilldiff.Options{Folder: d.folder, NoScan: true})
	if err != nil {
		return err
	}
	c.Asks = diff.Asks.More
	return nil
}

// name says why a skill cannot have its name here.
func (c *Checked) name(d *draft) {
	if c.Skill.Name == "" {
		return // which is an error of its SKILL.md
	}
	err := checkName(c.Skill.Name)
	if err == nil && d.of != nil {
		err = (&content{skill: c.Skill}).isOf(d.of)
	}
	why, bad := errors.AsType[*NameError](err)
	if !bad {
		return
	}
	c.Saves = false
	found := skill.Diagnostic{Severity: skill.Error, Code: "name-refused", Message: skill.OneLine(why.Error()), Fix: "give the skill another name"}
	c.Diagnostics = append(c.Diagnostics, DraftDiagnostic{Diagnostic: found, File: skill.FileName})
}

// placeDraft finds out what an upload of the draft would meet.
func (l *Library) placeDraft(ctx context.Context, p account.Principal, c *Checked, d *draft, in Namespace) error {
	m := newMeta(c.Skill, nil, skill.FileName, c.Manifest)
	c.Code = m.code()
	if c.Loads && !c.Skill.DisableModelInvocation {
		row := newDraftEntry(c.Skill, m)
		c.CatalogLine = strings.TrimSuffix(catalog.Text([]*catalog.Entry{row}, catalog.TextOptions{}), "\n")
	}
	switch err := l.MayRun(ctx, p, c.Manifest.Digest()); {
	case err == nil:
		c.MayRun = true
	case !decided(err):
		return err
	}
	if d.of != nil {
		c.MayAdd = d.of.check(p, account.SkillChange, d.of.CreatedBy) == nil
		return nil
	}
	c.MayAdd = account.Can(p, account.SkillUpload, place(in, ""))
	if c.Skill.Name == "" {
		return nil
	}
	found, err := l.db.Skills.Find(ctx, c.Skill.Name, []Namespace{in})
	if err != nil || len(found) == 0 {
		return err
	}
	c.Taken = &Taken{}
	h, err := l.held(ctx, &l.db.Tables, found[0].ID)
	if err != nil {
		if isNotFound(err) {
			c.Taken = nil // it went meanwhile
			return nil
		}
		return err
	}
	switch {
	case h.check(p, account.SkillRead, h.CreatedBy) == nil:
		c.Taken.ID, c.Taken.MayAdd = h.ID, h.check(p, account.SkillChange, h.CreatedBy) == nil
	case !c.MayAdd: // who could not learn it by an upload is not told either
		c.Taken = nil
	}
	return nil
}

// decided reports whether an error says that code may not run, and not that this cannot
// be known.
func decided(err error) bool {
	_, reviewed := errors.AsType[*ReviewError](err)
	return reviewed || isNotFound(err) || isDenied(err)
}

// newDraftEntry is level 1 of a draft, as that of a version is kept.
func newDraftEntry(s *skill.Skill, m *meta) *catalog.Entry {
	return m.entry(s.Name, plain(s.DisplayName, 1024), cut(s.Description, 16<<10), plain(s.Version, 256), plainAll(s.Tags))
}
