package library

import (
	"bytes"
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Text is a skill that is no more than its SKILL.md.
type Text struct {
	In   Namespace
	Name string
	File []byte
	// Same reports whether another SKILL.md says the same; nil compares bytes.
	Same func(other []byte) bool
}

// Applied is what came of a [Text].
type Applied string

// What may come of one.
const (
	TextCreated   Applied = "created"
	TextUpdated   Applied = "updated"
	TextUnchanged Applied = "unchanged"
)

// MoreFilesError says that a skill has files besides its SKILL.md, which one that is no
// more than that would lose.
type MoreFilesError struct {
	Name  string
	Files int64
}

func (e *MoreFilesError) Error() string {
	return fmt.Sprintf("skill %q has %d files, which it would lose but for its SKILL.md", e.Name, e.Files)
}

// Apply makes a skill or a version of one in a transaction, as [Library.Upload] and
// [Library.AddVersion] do: its errors are theirs, and a [*MoreFilesError]. It returns
// what SKILL.md said before, nil where there was none. Whose the transaction is calls
// [Library.Changed] once it holds.
func (l *Library) Apply(ctx context.Context, tx *store.Tx, p account.Principal, t Text) (Applied, []byte, error) {
	h, err := l.homed(ctx, &tx.Tables, t.In, t.Name)
	if isNotFound(err) {
		return l.applyNew(ctx, tx, p, t)
	}
	if err != nil {
		return "", nil, err
	}
	if err := h.check(p, account.SkillChange, h.CreatedBy); err != nil {
		return "", nil, err
	}
	v, err := tx.Versions.Get(ctx, h.ID, h.Number)
	if err != nil {
		return "", nil, err
	}
	was, err := l.skillFile(ctx, tx.Tables, v)
	if err != nil {
		return "", nil, err
	}
	switch same := t.Same; {
	case same == nil && bytes.Equal(was, t.File), same != nil && same(was):
		return TextUnchanged, was, nil
	case h.Files > 1:
		return "", nil, &MoreFilesError{Name: h.Name, Files: h.Files}
	}
	return TextUpdated, was, l.applyVersion(ctx, tx, p, h, t)
}

func (l *Library) applyNew(ctx context.Context, tx *store.Tx, p account.Principal, t Text) (Applied, []byte, error) {
	if err := inPlace(p, account.SkillUpload, t.In); err != nil {
		return "", nil, err
	}
	taken, err := tx.Skills.Find(ctx, t.Name, []Namespace{t.In})
	if err != nil {
		return "", nil, err
	}
	if len(taken) > 0 {
		return "", nil, &NameError{Name: t.Name, Why: "a skill of that name was published there"}
	}
	c, err := l.textContent(ctx, tx, t)
	if err != nil {
		return "", nil, err
	}
	_, err = l.createIn(ctx, tx, p, t.In, c, nil)
	return TextCreated, nil, err
}

// applyVersion adds a version, or goes back to the one that has these files.
func (l *Library) applyVersion(ctx context.Context, tx *store.Tx, p account.Principal, h *held, t Text) error {
	c, err := l.textContent(ctx, tx, t)
	if err != nil {
		return err
	}
	v, err := tx.Versions.OfDigest(ctx, h.ID, c.manifest.Digest())
	switch {
	case err == nil:
		if err := l.setCurrent(ctx, tx, v); err != nil {
			return err
		}
		return record(ctx, tx.Audit, p, account.SkillChange, h.Namespace, h.ID, "allowed", used{h.Name, h.Number, v.Number})
	case !isNotFound(err):
		return err
	}
	if v, err = l.extendIn(ctx, tx, p, h, c, nil); err != nil {
		return err
	}
	return record(ctx, tx.Audit, p, account.SkillChange, h.Namespace, h.ID, "allowed", uploaded{h.Name, v.Number, v.Digest, nil})
}

// textContent reads a text as an upload is read, and keeps its file. It waits for none of
// the turns of packages: who has one may wait for this transaction to end.
func (l *Library) textContent(ctx context.Context, tx *store.Tx, t Text) (*content, error) {
	only := skill.Manifest{{Path: skill.FileName, Size: int64(len(t.File)), SHA256: skill.Hash(t.File)}}
	files, err := newTree(only, func(skill.File) ([]byte, error) { return t.File, nil })
	if err != nil {
		return nil, err
	}
	c, err := l.readContent(ctx, skill.NewBundle(files, t.Name, nil))
	if err != nil {
		return nil, err
	}
	if c.skill.Name != t.Name {
		return nil, &NameError{Name: c.skill.Name, Why: fmt.Sprintf("the document is of %q", t.Name)}
	}
	if err := l.scan(ctx, c); err != nil {
		return nil, err
	}
	_, err = tx.Blobs.Put(ctx, t.File)
	return c, err
}

// homed is the skill of a name that is at home in a namespace.
func (l *Library) homed(ctx context.Context, t *store.Tables, in Namespace, name string) (*held, error) {
	found, err := t.Skills.Find(ctx, name, []Namespace{in})
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if c.Namespace == in {
			return l.held(ctx, t, c.ID)
		}
	}
	return nil, notFound(name)
}

// skillFile is the SKILL.md of a version.
func (l *Library) skillFile(ctx context.Context, t store.Tables, v store.Version) ([]byte, error) {
	name := readMeta(v.Meta).File
	if name == "" {
		name = skill.FileName
	}
	f, err := t.Versions.File(ctx, v.ID, name)
	if err != nil {
		return nil, fmt.Errorf("the %s of version %d of skill %q: %w", name, v.Number, v.SkillID, err)
	}
	return t.Blobs.Read(ctx, f.SHA256)
}

// Changed tells others that skills were changed here, by [Library.Apply].
func (l *Library) Changed() { l.changed() }

// ID is the id of the skill of a name that a namespace has, or that was published there,
// if the principal may know of it, whatever the way in allows.
func (l *Library) ID(ctx context.Context, p account.Principal, in Namespace, name string) (string, error) {
	found, err := l.db.Skills.Find(ctx, name, []Namespace{in})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", notFound(name)
	}
	h, err := l.held(ctx, &l.db.Tables, found[0].ID)
	if err == nil && !h.seen(p) {
		err = notFound(name)
	}
	if err != nil {
		return "", err
	}
	return h.ID, nil
}

// Instructions returns the SKILL.md of a version of a skill as it was written, 0 being
// the current one.
func (l *Library) Instructions(ctx context.Context, p account.Principal, id string, number int64) ([]byte, error) {
	_, v, err := l.readable(ctx, p, id, number)
	if err != nil {
		return nil, err
	}
	return l.skillFile(ctx, l.db.Tables, v)
}
