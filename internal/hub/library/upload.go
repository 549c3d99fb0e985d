package library

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Package is a skill archive that somebody uploads: a ZIP, of which at most
// [Options.Limits] is read.
type Package struct {
	// FileName is the name of the archive. Its folder has to be named like it.
	FileName string
	// AnyFolder lets the folder have another name.
	AnyFolder bool
	Data      io.Reader
}

// Upload adds a new skill to a namespace, and returns it. Its code runs only once a
// reviewer approved it; until then it is instructions. One in the principal's own
// namespace becomes a default of his, where he has less than [MaxDefaults].
//
// The errors are a [*TooLargeError], a [*skill.RefusedError] with all reasons, a
// [*BrokenError], a [*NameError], [ErrExists] where the namespace has a skill of that
// name, [ErrFull], [account.DeniedError], and what reading the package failed with. Nothing is kept then but
// files, which [Library.Sweep] removes.
func (l *Library) Upload(ctx context.Context, p account.Principal, in Namespace, pkg Package) (*Skill, error) {
	if err := l.authorizeIn(ctx, p, account.SkillUpload, in, pkg.FileName); err != nil {
		return nil, err
	}
	ctx, stop := withTimeLimit(ctx)
	defer stop()
	var id string
	err := l.withPackage(ctx, pkg, func(c *content) error {
		if err := l.checkNameFree(ctx, in, c.skill.Name); err != nil {
			return err
		}
		if err := l.storeFiles(ctx, c); err != nil {
			return err
		}
		var err error
		id, err = l.create(ctx, p, in, c, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("upload a skill: %w", err)
	}
	// Who may upload may not for that read: a token for this alone is told what it made.
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	return h.viewFor(p), nil
}

// AddVersion adds a version to a skill, which becomes the current one, and returns it.
// The package names the skill as it is named. A package with the files of a version
// that is there is [ErrExists]; the other errors are those of [Library.Upload].
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
		if err := l.storeFiles(ctx, c); err != nil {
			return err
		}
		var err error
		number, err = l.appendVersion(ctx, p, id, c, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("upload a version: %w", err)
	}
	v, err := l.db.Versions.Get(ctx, id, number)
	if err != nil {
		return nil, err
	}
	return newVersion(v, true), nil
}

// authorizeChange asks before work is done for a change whether it may be made.
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

// checkSameSkill fails where the content is that of another skill.
func (c *content) checkSameSkill(h *skillRecord) error {
	if c.skill.Name == h.Name {
		return nil
	}
	return &NameError{Name: c.skill.Name, Why: fmt.Sprintf("this is skill %q; upload it as a new one", h.Name)}
}

// withPackage reads a package and calls f with what is in it.
func (l *Library) withPackage(ctx context.Context, pkg Package, f func(*content) error) error {
	file, err := l.spoolUpload(pkg.Data)
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
	return f(c)
}

// checkNameFree fails with [ErrExists] where a namespace has a skill of a name. Two that ask at
// once may both be told that it is free: then the database decides.
func (l *Library) checkNameFree(ctx context.Context, in Namespace, name string) error {
	found, err := l.db.Skills.Find(ctx, name, []Namespace{in})
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("skill %q: %w", name, ErrExists)
	}
	return err
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

// createInTx is create in a transaction, after which others are to be told.
func (l *Library) createInTx(ctx context.Context, tx *store.Tx, p account.Principal, in Namespace, c *content, from *Source) (string, error) {
	s, err := tx.Skills.Create(ctx, store.Skill{
		Namespace: in, Name: c.skill.Name, CreatedBy: string(p.User), Origin: from.origin(), Source: from.json(),
	})
	if err != nil {
		return "", err
	}
	v, err := l.insertVersion(ctx, tx, p, s.ID, c, from)
	if err != nil {
		return "", err
	}
	if in == store.UserNamespace(string(p.User)) {
		if err := addDefault(ctx, tx, store.Default{Namespace: in, SkillID: s.ID, CreatedBy: string(p.User)}); err != nil && !errors.Is(err, ErrTooMany) {
			return "", err
		}
	}
	return s.ID, appendAudit(ctx, tx.Audit, p, account.SkillUpload, in, s.ID, "allowed", uploadDetails{s.Name, v.Number, v.Digest, from})
}

// uploadDetails is what the audit log says of new files.
type uploadDetails struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"`
	Digest  string  `json:"digest"`
	From    *Source `json:"from,omitempty"`
}

// appendVersion adds a version to a skill that is there, and tells those who use it.
func (l *Library) appendVersion(ctx context.Context, p account.Principal, id string, c *content, from *Source) (int64, error) {
	var number int64
	err := l.update(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		v, err := l.appendVersionInTx(ctx, tx, p, h, c, from)
		number = v.Number
		return uploadDetails{h.Name, v.Number, v.Digest, from}, err
	})
	return number, err
}

// appendVersionInTx is extend in a transaction that records it.
func (l *Library) appendVersionInTx(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, c *content, from *Source) (store.Version, error) {
	if err := c.checkSameSkill(h); err != nil {
		return store.Version{}, err
	}
	v, err := l.insertVersion(ctx, tx, p, h.ID, c, from)
	if err != nil {
		return v, err
	}
	if from != nil {
		if err := tx.Skills.Update(ctx, h.ID, from.origin(), from.json()); err != nil {
			return v, err
		}
	}
	return v, l.notifyUsers(ctx, tx, p, h, v)
}

// insertVersion adds a version whose files are kept, and makes it the current one.
func (l *Library) insertVersion(ctx context.Context, tx *store.Tx, p account.Principal, id string, c *content, from *Source) (store.Version, error) {
	row, files, err := c.version(id, string(p.User), from.json())
	if err != nil {
		return store.Version{}, err
	}
	v, err := tx.Versions.Add(ctx, row, files, c.findings)
	if err != nil {
		return store.Version{}, err
	}
	return v, l.setCurrent(ctx, tx, v)
}
