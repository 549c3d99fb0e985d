package library

import (
	"bytes"
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// SkillText is a skill that consists of a single SKILL.md file.
type SkillText struct {
	In   Namespace
	Name string
	File []byte
	// Same reports whether another SKILL.md is equivalent. If it is nil, the
	// bytes are compared.
	Same func(other []byte) bool
}

// Applied describes what [Library.Apply] changed.
type Applied struct {
	Result  ApplyResult
	Before  []byte // previous SKILL.md; nil if there was none
	Pending int64  // number of the version with the text if it is awaiting review, or 0
}

// ApplyResult is the kind of change that [Library.Apply] made.
type ApplyResult string

// Results of [Library.Apply].
const (
	TextCreated   ApplyResult = "created"
	TextUpdated   ApplyResult = "updated"
	TextUnchanged ApplyResult = "unchanged"
)

// ExtraFilesError reports that a [SkillText] would remove other files of a skill.
type ExtraFilesError struct {
	Name  string
	Files int64
}

func (e *ExtraFilesError) Error() string {
	return fmt.Sprintf("skill %q has %d files and cannot be replaced by a SKILL.md alone", e.Name, e.Files)
}

// Apply creates a skill or adds a version within tx. The caller must call
// [Library.NotifyChanged] after committing tx. Apply returns the same errors as
// [Library.Upload] and [Library.AddVersion], or an [*ExtraFilesError].
func (l *Library) Apply(ctx context.Context, tx *store.Tx, p account.Principal, t SkillText) (Applied, error) {
	h, err := l.findInNamespace(ctx, &tx.Tables, t.In, t.Name)
	if isNotFound(err) {
		return l.applyNew(ctx, tx, p, t)
	}
	if err != nil {
		return Applied{}, err
	}
	if err := h.check(p, account.SkillChange, h.CreatedBy); err != nil {
		return Applied{}, err
	}
	v, err := tx.Versions.Get(ctx, h.ID, h.Number)
	if err != nil {
		return Applied{}, err
	}
	was, err := l.skillFile(ctx, tx.Tables, v)
	if err != nil {
		return Applied{}, err
	}
	out := Applied{Result: TextUnchanged, Before: was}
	switch same := t.Same; {
	case same == nil && bytes.Equal(was, t.File), same != nil && same(was):
		return out, nil
	case h.Files > 1:
		return Applied{}, &ExtraFilesError{Name: h.Name, Files: h.Files}
	}
	out.Result, out.Pending, err = l.applyVersion(ctx, tx, p, h, t)
	return out, err
}

func (l *Library) applyNew(ctx context.Context, tx *store.Tx, p account.Principal, t SkillText) (Applied, error) {
	if err := checkNamespace(p, account.SkillUpload, t.In); err != nil {
		return Applied{}, err
	}
	taken, err := tx.Skills.Find(ctx, t.Name, []Namespace{t.In})
	if err != nil {
		return Applied{}, err
	}
	if len(taken) > 0 {
		return Applied{}, &NameError{Name: t.Name, Why: "another skill with this name is published there"}
	}
	c, err := l.textContent(ctx, tx, t)
	if err != nil {
		return Applied{}, err
	}
	_, err = l.createInTx(ctx, tx, p, t.In, c, nil)
	return Applied{Result: TextCreated}, err
}

// applyVersion adds a version. If a version with these files already exists, it
// makes that version current, unless it is awaiting review.
func (l *Library) applyVersion(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, t SkillText) (ApplyResult, int64, error) {
	c, err := l.textContent(ctx, tx, t)
	if err != nil {
		return "", 0, err
	}
	v, err := tx.Versions.GetByDigest(ctx, h.ID, c.manifest.Digest())
	if err == nil && !mayBeCurrent(h.Skill, v) {
		return TextUnchanged, v.Number, nil
	}
	if err == nil {
		if err := l.setCurrent(ctx, tx, v); err != nil {
			return "", 0, err
		}
		return TextUpdated, 0, appendAudit(ctx, tx.Audit, p, account.SkillChange, h.Namespace, h.ID, "allowed", currentDetails{h.Name, h.Number, v.Number})
	}
	if !isNotFound(err) {
		return "", 0, err
	}
	if v, err = l.appendVersionInTx(ctx, tx, p, h, c, nil); err != nil {
		return "", 0, err
	}
	var pending int64
	if !mayBeCurrent(h.Skill, v) {
		pending = v.Number
	}
	return TextUpdated, pending, appendAudit(ctx, tx.Audit, p, account.SkillChange, h.Namespace, h.ID, "allowed", newUploadDetails(h, v, nil))
}

// textContent checks a skill text as it would check an upload, and stores its
// file. It does not wait for a package slot, because the holder of a slot may
// be waiting for this transaction.
func (l *Library) textContent(ctx context.Context, tx *store.Tx, t SkillText) (*content, error) {
	c, err := l.readText(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := l.scan(ctx, c); err != nil {
		return nil, err
	}
	_, err = tx.Blobs.Put(ctx, t.File)
	return c, err
}

// readText checks t like an upload.
func (l *Library) readText(ctx context.Context, t SkillText) (*content, error) {
	only := skill.Manifest{{Path: skill.FileName, Size: int64(len(t.File)), SHA256: skillfile.Hash(t.File)}}
	files, err := newManifestFS(only, func(skill.File) ([]byte, error) { return t.File, nil })
	if err != nil {
		return nil, err
	}
	c, err := l.readContent(ctx, skill.NewBundle(files, t.Name, nil))
	if err == nil && c.skill.Name != t.Name {
		err = &NameError{Name: c.skill.Name, Why: fmt.Sprintf("the document names %q", t.Name)}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// findInNamespace returns the skill with the given name that the namespace owns.
func (l *Library) findInNamespace(ctx context.Context, t *store.Tables, in Namespace, name string) (*skillRecord, error) {
	found, err := t.Skills.Find(ctx, name, []Namespace{in})
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if c.Namespace == in {
			return l.getSkill(ctx, t, c.ID)
		}
	}
	return nil, notFound(name)
}

// skillFile returns the SKILL.md of a version.
func (l *Library) skillFile(ctx context.Context, t store.Tables, v store.Version) ([]byte, error) {
	name := readMeta(v.Meta).File
	if name == "" {
		name = skill.FileName
	}
	f, err := t.Versions.File(ctx, v.ID, name)
	if err != nil {
		return nil, fmt.Errorf("read %s in version %d of skill %q: %w", name, v.Number, v.SkillID, err)
	}
	return t.Blobs.Read(ctx, f.SHA256)
}

// FindID returns the ID of the skill with the given name that the namespace owns
// or that is published to it. The principal must be allowed to see the skill.
// FindID ignores the scopes of the principal's token.
func (l *Library) FindID(ctx context.Context, p account.Principal, in Namespace, name string) (string, error) {
	found, err := l.db.Skills.Find(ctx, name, []Namespace{in})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", notFound(name)
	}
	h, err := l.getSkill(ctx, &l.db.Tables, found[0].ID)
	if err == nil && !h.isVisible(p) {
		err = notFound(name)
	}
	if err != nil {
		return "", err
	}
	return h.ID, nil
}

// ReadSkillFile returns the SKILL.md of a version exactly as uploaded. Number 0
// means the current version.
func (l *Library) ReadSkillFile(ctx context.Context, p account.Principal, id string, number int64) ([]byte, error) {
	_, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	return l.skillFile(ctx, l.db.Tables, v)
}
