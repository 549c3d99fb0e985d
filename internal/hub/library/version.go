package library

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Version is an immutable version of a skill, with its review.
type Version struct {
	SkillID     string           `json:"skill_id"`
	Name        string           `json:"-"` // name of the skill; not set in lists of a single skill's versions
	Namespace   Namespace        `json:"-"` // namespace of the skill; not set in lists of a single skill's versions
	Number      int64            `json:"number" doc:"Starts at 1"`
	Label       string           `json:"version,omitempty" doc:"Version given by the author"`
	Digest      string           `json:"digest"`
	Current     bool             `json:"current"`
	Description string           `json:"description"`
	Size        int64            `json:"size" doc:"Total size in bytes"`
	Files       int64            `json:"files" doc:"Number of files"`
	Scripts     int              `json:"scripts" doc:"Number of executable files"`
	Code        bool             `json:"code" doc:"Whether it has scripts, servers or a provider that need a review"`
	Tokens      int              `json:"tokens" doc:"Estimate for the instructions"`
	Review      Review           `json:"review" enum:"pending,approved,rejected"`
	State       skillstate.State `json:"state" enum:"pending,changes-requested,rejected,approved,superseded,withdrawn" doc:"State of the version; approved is the current version, even if it has no code to review"`
	// Runnable does not say who may run the code. That also depends on the
	// principal's rights, the policy and the sandbox.
	Runnable  bool      `json:"runnable" doc:"Whether its code may run, because a reviewer approved these files"`
	Reviewer  string    `json:"reviewer,omitempty"`
	Reviewed  time.Time `json:"reviewed,omitzero"`
	Note      string    `json:"note,omitempty" doc:"Comment of the reviewer; only for its author and reviewers"`
	Approvers []string  `json:"approvers" nullable:"false" doc:"Users who approved these files; empty if an older hub stored the review"`
	// RequiredApprovers is 0 in a [Resolution] and an [Archive].
	RequiredApprovers int            `json:"requiredApprovers" doc:"How many reviewers must approve a version of this skill"`
	CreatedBy         string         `json:"createdBy"`
	Created           time.Time      `json:"created"`
	Changelog         string         `json:"changelog,omitempty" doc:"What its author says that changed"`
	NeedsApproval     bool           `json:"needsApproval" doc:"Whether it was added while changes of an earlier version were requested, so that it awaits an approval even without code"`
	Source            *Source        `json:"source,omitempty" doc:"Source of the import; absent for an upload"`
	Findings          map[string]int `json:"findings,omitempty" doc:"Number of findings by severity"`
	Unscanned         bool           `json:"unscanned" doc:"Whether the scan failed or timed out"`

	// Withheld versions lack the author's text.
	Withheld bool `json:"withheld,omitempty" doc:"Whether only its uploader and reviewers may see its files"`

	Diagnostics []skill.Diagnostic `json:"-"`
}

func newVersion(s store.Skill, v store.Version) *Version {
	m := readMeta(v.Meta)
	return &Version{
		SkillID: v.SkillID, Number: v.Number, Label: v.Label, Digest: v.Digest, Current: v.Number == s.Number, Description: untrusted.New(v.Description).ForPage(),
		Size: v.Size, Files: v.Files, Scripts: m.Scripts, Code: m.hasCode(), Tokens: m.Tokens,
		Review: v.Review, State: facts(v).State(s.Number), Runnable: v.Review == Approved, Reviewer: v.Reviewer, Reviewed: v.Reviewed, Note: untrusted.New(v.Note).ForPage(), Approvers: append([]string{}, v.Approvers...), CreatedBy: v.CreatedBy, Created: v.Created,
		Changelog: untrusted.New(v.Changelog).ForPage(), NeedsApproval: v.NeedsApproval,
		Source: readSource(v.Source), Findings: m.Findings, Unscanned: m.Unscanned, Diagnostics: m.Diagnostics,
	}
}

// newVersionFor returns a version without the parts that the principal must not
// see. Only the author and reviewers see the reviewer's note. A principal who
// must not access the version does not see its description, label and
// diagnostics.
func (h *skillRecord) newVersionFor(p account.Principal, v store.Version) *Version {
	out := newVersion(h.Skill, v)
	if !h.isAuthorOrReviewer(p, v) {
		out.Note = ""
	}
	if h.checkVersion(p, v) != nil {
		out.Withheld, out.Description, out.Label, out.Changelog, out.Diagnostics = true, "", "", "", nil
	}
	return out
}

// Version returns a version of a skill. Number 0 means the current version. If
// only the uploader and the reviewers may access the version, the result for
// others omits the author's text.
func (l *Library) Version(ctx context.Context, p account.Principal, id string, number int64) (*Version, error) {
	h, err := l.authorize(ctx, p, account.SkillRead, id)
	if err != nil {
		return nil, err
	}
	v, err := l.getVersion(ctx, h, number)
	if err != nil {
		return nil, err
	}
	out, err := l.newVersions(ctx, p, h, v)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// getReadableVersion returns a version of a skill if the principal may perform the
// read-only action on the skill and may access the version. Number 0 means the
// current version.
func (l *Library) getReadableVersion(ctx context.Context, p account.Principal, a account.Action, id string, number int64) (*skillRecord, store.Version, error) {
	h, err := l.authorize(ctx, p, a, id)
	if err != nil {
		return nil, store.Version{}, err
	}
	v, err := l.getVersion(ctx, h, number)
	if err == nil {
		err = h.checkVersion(p, v)
	}
	return h, v, err
}

// getVersion returns a version of a skill. Number 0 means the current version.
func (l *Library) getVersion(ctx context.Context, h *skillRecord, number int64) (store.Version, error) {
	if number == 0 {
		number = h.Number
	}
	return l.db.Versions.Get(ctx, h.ID, number)
}

// Versions returns the versions of a skill with numbers less than end, newest
// first. If end is 0, it starts with the newest version. It returns up to limit
// versions, and never more than [store.MaxPage]. Like [Library.Version], it
// omits the author's text from versions that the principal must not access.
func (l *Library) Versions(ctx context.Context, p account.Principal, id string, end int64, limit int) ([]*Version, error) {
	h, err := l.authorize(ctx, p, account.SkillRead, id)
	if err != nil {
		return nil, err
	}
	rows, err := l.db.Versions.List(ctx, id, end, limit)
	if err != nil {
		return nil, err
	}
	return l.newVersions(ctx, p, h, rows...)
}

// Findings returns the scan report of a version, or nil if none is stored. Number 0
// means the current version. Like all methods that return contents of a version,
// Findings returns a [*ReviewError] if only the uploader and the reviewers may
// access the version.
func (l *Library) Findings(ctx context.Context, p account.Principal, id string, number int64) (*scan.Report, error) {
	_, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	data, err := l.db.Versions.Findings(ctx, v.ID)
	if err != nil || data == nil {
		return nil, err
	}
	var report scan.Report
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("read findings of version %d: %w", number, store.ErrCorrupt)
	}
	return &report, nil
}

// Manifest returns the file list of a version. Number 0 means the current version.
func (l *Library) Manifest(ctx context.Context, p account.Principal, id string, number int64) (skill.Manifest, error) {
	_, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	return l.manifest(ctx, v)
}

// Open returns the files of a version. Number 0 means the current version. The
// bundle verifies each file when the file is opened. The caller must close the
// bundle.
func (l *Library) Open(ctx context.Context, p account.Principal, id string, number int64) (*skill.Bundle, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	return l.bundle(ctx, h.Name, v)
}

// NoVersion stands for an empty older version in [Library.Diff]. The diff then
// shows all files and requested permissions of the newer version.
const NoVersion = -1

// Diff compares two versions of a skill. If to is 0, it means the current version.
// If from is [NoVersion], the diff shows the whole version as new.
func (l *Library) Diff(ctx context.Context, p account.Principal, id string, from, to int64, o *skilldiff.Options) (*skilldiff.Diff, error) {
	h, err := l.authorize(ctx, p, account.SkillRead, id)
	if err != nil {
		return nil, err
	}
	var files [2]fs.FS
	for i, number := range []int64{from, to} {
		if i == 0 && number == NoVersion {
			continue
		}
		v, err := l.getVersion(ctx, h, number)
		if err == nil {
			err = h.checkVersion(p, v)
		}
		if err != nil {
			return nil, err
		}
		b, err := l.bundle(ctx, h.Name, v)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		files[i] = b.FS
	}
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return nil, err
	}
	defer done()
	return skilldiff.Compare(ctx, files[0], files[1], diffOptions(o, h.Name))
}

func diffOptions(o *skilldiff.Options, name string) *skilldiff.Options {
	var out skilldiff.Options
	if o != nil {
		out = *o
	}
	out.Folder = name
	return &out
}

// SetCurrentVersion makes a version current, for example to revert to an older
// version. Reviews remain valid. SetCurrentVersion returns a [*ReviewError] if the
// version was rejected, or if it has code that nobody approved, unless the current
// version is also pending.
func (l *Library) SetCurrentVersion(ctx context.Context, p account.Principal, id string, number int64) error {
	return l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		v, err := tx.Versions.Get(ctx, id, number)
		if err != nil {
			return nil, err
		}
		if v.Review != Approved && v.Number > h.Number {
			if blocked, err := isBlocked(ctx, &tx.Tables, id, v.Number, ""); err != nil || blocked {
				return nil, cmp.Or(err, error(invalidf("changes of version %d, or of an earlier one, were requested; let the reviewer approve it, or an owner dismiss the request", number)))
			}
		}
		if !mayBeCurrent(h.Skill, v) {
			return nil, h.newReviewError(p, v)
		}
		return currentDetails{h.Name, h.Number, number}, l.setCurrent(ctx, tx, v)
	})
}

// setCurrent makes a version current and updates the skill's references.
func (l *Library) setCurrent(ctx context.Context, tx *store.Tx, v store.Version) error {
	if err := tx.Skills.SetCurrent(ctx, v.SkillID, v.Number); err != nil {
		return err
	}
	m := readMeta(v.Meta)
	return tx.Refs.Set(ctx, store.SkillKind, v.SkillID, m.dependencyRefs())
}

// currentDetails holds the details of the audit record for SetCurrentVersion.
type currentDetails struct {
	Name string `json:"name"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
}

// DeleteVersion deletes a version that is not current, its comments, and the
// notifications that quote them. It returns a
// [*ReferencedError] if a reference pins the version. If unbind is set, it removes
// such references, even those that the principal may not see; the version must then
// be rejected.
func (l *Library) DeleteVersion(ctx context.Context, p account.Principal, id string, number int64, unbind bool) error {
	return l.update(ctx, p, account.SkillDelete, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		v, err := tx.Versions.Get(ctx, id, number)
		if err != nil {
			return nil, err
		}
		refs, err := l.loadReferences(ctx, &tx.Tables, p, h)
		if err != nil {
			return nil, err
		}
		pins := refs.filterByDigest(v.Digest)
		switch {
		case unbind && v.Review != Rejected:
			return nil, invalidf("version %d of skill %q is not rejected; remove the references to it first", number, h.Name)
		case unbind: // references that were not read no longer resolve, which their owners see
			err = l.unbind(ctx, tx, h, pins.all)
		case pins.Total() > 0 || refs.moreByID:
			err = &ReferencedError{Skill: id, Name: h.Name, References: pins}
		}
		if err != nil {
			return nil, err
		}
		if err := tx.Notifications.DeletePrefix(ctx, CommentAdded, commentSubjects(id, number)); err != nil {
			return nil, err
		}
		return deletedVersionDetails{uploadDetails{Name: h.Name, Version: number, Digest: v.Digest}, pins.all}, tx.Versions.Delete(ctx, id, number)
	})
}

// deletedVersionDetails holds the details of the audit record for DeleteVersion.
type deletedVersionDetails struct {
	uploadDetails
	References []Reference `json:"references,omitempty"` // references that were removed
}
