package library

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Package is an uploaded ZIP archive that contains a skill. [Options.Limits] limits
// its size.
type Package struct {
	// FileName is the name of the archive, which must match the name of the
	// directory in the archive as in [skill.OpenZIP], unless AnyFolder is set.
	FileName string
	// AnyFolder permits any directory name.
	AnyFolder bool
	// Changelog is one line by the author about what changed, of up to 200 characters.
	Changelog string
	// Base is the newest version that the author knows, or 0. AddVersion returns
	// [ErrConflict] if there is a newer one.
	Base int64
	Data io.Reader
}

// maxChangelog is the maximum length of [Package.Changelog], in characters.
const maxChangelog = 200

// Upload adds a new skill to a namespace and returns it. The skill's code must be
// approved before it can run. A skill in the principal's own namespace becomes a
// default unless there are already [MaxDefaults].
//
// Upload returns a [*TooLargeError], a [*skill.RefusedError] with all reasons, a
// [*BrokenError], a [*NameError], [ErrExists] if the name is taken, usually as an
// [*ExistsError], [ErrFull], a [*quota.ExceededError], an [account.DeniedError], or
// an error from reading the package. [Library.Sweep] removes files that were stored
// before an error.
func (l *Library) Upload(ctx context.Context, p account.Principal, in Namespace, pkg Package) (*Skill, error) {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, pkg.FileName); err != nil {
		return nil, err
	}
	ctx, stop := withTimeLimit(ctx)
	defer stop()
	var id string
	err := l.withPackage(ctx, pkg, func(c *content) error {
		if err := l.checkNameFree(ctx, p, in, c); err != nil {
			return err
		}
		if err := l.storeFiles(ctx, in, c, 1); err != nil {
			return err
		}
		var err error
		id, err = l.create(ctx, p, in, c, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("upload skill: %w", err)
	}
	ctx, stop = afterCommit(ctx)
	defer stop()
	// Return the new skill even if the token permits uploading but not reading.
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	return h.viewFor(p), nil
}

// AddVersion adds a version to a skill and returns it. The version becomes
// current immediately if it has no code to review, or if the current version
// has code that nobody approved. Otherwise it becomes current when it is
// approved. The package must contain a skill with the same name. AddVersion
// returns [ErrExists] if a version already has the same files. It also returns
// the same errors as [Library.Upload].
func (l *Library) AddVersion(ctx context.Context, p account.Principal, id string, pkg Package) (*Version, error) {
	h, err := l.authorizeChange(ctx, p, id)
	if err != nil {
		return nil, err
	}
	ctx, stop := withTimeLimit(ctx)
	defer stop()
	var number int64
	err = l.withPackage(ctx, pkg, func(c *content) error {
		if err := c.checkSameSkill(h); err != nil {
			return err
		}
		if err := l.storeFiles(ctx, h.Namespace, c, 0); err != nil {
			return err
		}
		var err error
		number, _, err = l.appendVersion(ctx, p, id, c, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("upload version: %w", err)
	}
	ctx, stop = afterCommit(ctx)
	defer stop()
	v, err := l.db.Versions.Get(ctx, id, number)
	if err != nil {
		return nil, err
	}
	if h, err = l.getSkill(ctx, &l.db.Tables, id); err != nil {
		return nil, err
	}
	out, err := l.newVersions(ctx, p, h, v)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// authorizeChange returns a skill if the principal may change it. Call it before
// expensive work, so that none is done for a denied change.
func (l *Library) authorizeChange(ctx context.Context, p account.Principal, id string) (*skillRecord, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	if err := h.check(p, account.SkillChange, h.CreatedBy); err != nil {
		return nil, l.recordDenied(ctx, p, account.SkillChange, h.Namespace, id, err)
	}
	return h, nil
}

// checkSameSkill returns an error if the content's name differs from the skill's.
func (c *content) checkSameSkill(h *skillRecord) error {
	if c.skill.Name == h.Name {
		return nil
	}
	return &NameError{Name: c.skill.Name, Why: fmt.Sprintf("the existing skill is named %q; upload the package as a new skill", h.Name)}
}

// withPackage reads a package and passes its content to f.
func (l *Library) withPackage(ctx context.Context, pkg Package, f func(*content) error) error {
	if n := utf8.RuneCountInString(pkg.Changelog); n > maxChangelog {
		return invalidf("changelog line too long (%d characters, limit %d)", n, maxChangelog)
	}
	file, err := l.spoolUpload(pkg.Data, l.opts.Limits.PackedBytes)
	if err != nil {
		return err
	}
	defer file.Close()
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return err
	}
	defer done()
	limits := l.opts.Limits
	limits.AllowFolderMismatch = limits.AllowFolderMismatch || pkg.AnyFolder
	b, err := skill.OpenZIP(file, file.size, pkg.FileName, limits)
	if err != nil {
		return err
	}
	defer b.Close()
	c, err := l.readContent(ctx, b)
	if err != nil {
		return err
	}
	c.changelog = cleanLine(strings.TrimSpace(pkg.Changelog), 1024)
	c.base = pkg.Base
	return f(c)
}

// checkNameFree returns an [*ExistsError] if the namespace lists a skill with the
// name of c. Of several concurrent uploads with the same name, the database
// accepts only one.
func (l *Library) checkNameFree(ctx context.Context, p account.Principal, in Namespace, c *content) error {
	existing, err := l.findExisting(ctx, p, in, c.skill.Name)
	if err == nil && existing != nil {
		existing.Same = existing.ID != "" && existing.record.Digest == c.manifest.Digest()
		err = &ExistsError{c.skill.Name, *existing}
	}
	return err
}

// findExisting returns the skill that the namespace lists under a name, or nil if
// there is none.
func (l *Library) findExisting(ctx context.Context, p account.Principal, in Namespace, name string) (*ExistingSkill, error) {
	found, err := l.db.Skills.Find(ctx, name, []Namespace{in})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	h, err := l.getSkill(ctx, &l.db.Tables, found[0].ID)
	switch {
	case isNotFound(err): // just deleted
		return nil, nil
	case err != nil:
		return nil, err
	case h.check(p, account.SkillRead, h.CreatedBy) != nil:
		return &ExistingSkill{record: h}, nil
	}
	return &ExistingSkill{ID: h.ID, CanAddVersion: h.check(p, account.SkillChange, h.CreatedBy) == nil, record: h}, nil
}

// create adds a skill with its first version.
func (l *Library) create(ctx context.Context, p account.Principal, in Namespace, c *content, from *Source) (string, error) {
	var id string
	err := l.db.Tx(ctx, func(tx *store.Tx) (err error) {
		id, err = l.createInTx(ctx, tx, p, in, c, from)
		return err
	})
	if err != nil {
		return "", err
	}
	l.NotifyChanged()
	return id, nil
}

// createInTx is like create, but uses the caller's transaction. The caller must
// call NotifyChanged after the commit.
func (l *Library) createInTx(ctx context.Context, tx *store.Tx, p account.Principal, in Namespace, c *content, from *Source) (string, error) {
	if err := l.opts.Quotas.Check(ctx, &tx.Tables, in, quota.Amounts{Skills: 1}); err != nil {
		return "", err
	}
	s, err := tx.Skills.Create(ctx, store.Skill{
		Namespace: in, Name: c.skill.Name, CreatedBy: string(p.User), Origin: from.origin(), Source: from.encode(),
	})
	if err != nil {
		return "", err
	}
	v, err := l.insertVersion(ctx, tx, p, s, c, from)
	if err != nil {
		return "", err
	}
	if in == store.UserNamespace(string(p.User)) {
		if err := addDefault(ctx, tx, store.Default{Namespace: in, SkillID: s.ID, CreatedBy: string(p.User)}); err != nil && !errors.Is(err, ErrTooMany) {
			return "", err
		}
	}
	return s.ID, appendAudit(ctx, tx.Audit, p, account.SkillUpload, in, s.ID, "allowed", uploadDetails{s.Name, v.Number, v.Digest, from, v.Number})
}

// uploadDetails holds the details of the audit record for a new version.
type uploadDetails struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"`
	Digest  string  `json:"digest"`
	From    *Source `json:"from,omitempty"`
	Current int64   `json:"current,omitempty"` // number of the version if it became current
}

func newUploadDetails(h *skillRecord, v store.Version, from *Source) uploadDetails {
	out := uploadDetails{h.Name, v.Number, v.Digest, from, 0}
	if mayBeCurrent(h.Skill, v) {
		out.Current = v.Number
	}
	return out
}

// appendVersion adds a version to a skill. It notifies the users of the skill, or
// only its managers if the version is awaiting review. It returns the number of the
// version and whether it is awaiting review.
func (l *Library) appendVersion(ctx context.Context, p account.Principal, id string, c *content, from *Source) (number int64, pending bool, err error) {
	err = l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		v, err := l.appendVersionInTx(ctx, tx, p, h, c, from)
		number, pending = v.Number, !mayBeCurrent(h.Skill, v)
		return newUploadDetails(h, v, from), err
	})
	return number, pending, err
}

// appendVersionInTx is like appendVersion, but uses the caller's transaction and
// writes no audit record.
func (l *Library) appendVersionInTx(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, c *content, from *Source) (store.Version, error) {
	if err := c.checkSameSkill(h); err != nil {
		return store.Version{}, err
	}
	if err := checkNewest(ctx, tx, h.ID, c.base); err != nil {
		return store.Version{}, err
	}
	v, err := l.insertVersion(ctx, tx, p, h.Skill, c, from)
	if err != nil {
		return v, err
	}
	if from != nil {
		if err := setSource(ctx, tx, h.ID, from); err != nil {
			return v, err
		}
	}
	if !mayBeCurrent(h.Skill, v) {
		return v, l.notifyManagers(ctx, tx, p, h, v)
	}
	return v, l.notifyUsers(ctx, tx, p, h, v)
}

// checkNewest returns [ErrConflict] if a skill has a version newer than base. It does
// not check base 0.
func checkNewest(ctx context.Context, tx *store.Tx, id string, base int64) error {
	if base == 0 {
		return nil
	}
	newest, err := tx.Versions.List(ctx, id, math.MaxInt64, 1)
	if err != nil {
		return err
	}
	if len(newest) > 0 && newest[0].Number > base {
		return fmt.Errorf("%w: version %d is newer than version %d", ErrConflict, newest[0].Number, base)
	}
	return nil
}

// insertVersion adds a version and makes it current if mayBeCurrent permits
// that. Its files must already be stored.
func (l *Library) insertVersion(ctx context.Context, tx *store.Tx, p account.Principal, s store.Skill, c *content, from *Source) (store.Version, error) {
	row, files, err := c.versionRow(s.ID, string(p.User), from.encode())
	if err != nil {
		return store.Version{}, err
	}
	size := manifestSize(c.manifest) + int64(len(row.Meta)+len(c.findings))
	if err := l.opts.Quotas.Check(ctx, &tx.Tables, s.Namespace, quota.Amounts{Bytes: size}); err != nil {
		return store.Version{}, err
	}
	requests, err := tx.ChangeRequests.ListOpen(ctx, s.ID, math.MaxInt64)
	if err != nil {
		return store.Version{}, err
	}
	row.NeedsApproval = len(requests) > 0
	v, err := tx.Versions.Add(ctx, row, files, c.findings)
	if err != nil {
		return store.Version{}, err
	}
	if !mayBeCurrent(s, v) {
		return v, nil
	}
	return v, l.setCurrent(ctx, tx, v)
}
