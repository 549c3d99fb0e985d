package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// Draft is a skill that a user is editing and has not saved.
type Draft struct {
	Files []DraftFile
	// Of is the ID of the skill to which the draft adds a version, or "" for a
	// new skill.
	Of string
}

type DraftFile struct {
	Path string
	Data []byte
}

// draft is a [Draft] whose files have been checked.
type draft struct {
	of       *skillRecord // nil for a new skill
	folder   string
	fsys     fs.FS // files that are not refused
	refusals []skill.Refusal
}

// openDraft checks the files of a draft. It returns a [*skill.RefusedError] if
// they exceed the upload limits.
func (l *Library) openDraft(ctx context.Context, p account.Principal, d Draft) (*draft, error) {
	out := &draft{}
	if d.Of != "" {
		h, err := l.authorize(ctx, p, account.SkillRead, d.Of)
		if err != nil {
			return nil, err
		}
		out.of, out.folder = h, h.Name
	} else if err := checkNamespace(p, account.SkillRead, ownNamespace(p)); err != nil {
		return nil, err
	}
	listed := make(skill.Manifest, len(d.Files))
	for i, f := range d.Files {
		listed[i] = skill.File{Path: f.Path, Size: int64(len(f.Data))}
	}
	out.refusals = l.opts.Limits.Check(listed)
	if slices.ContainsFunc(out.refusals, isLimitRefusal) {
		return nil, &skill.RefusedError{What: "skill", Refusals: slices.DeleteFunc(out.refusals, func(r skill.Refusal) bool { return !isLimitRefusal(r) })}
	}
	var err error
	out.fsys, err = newDraftFS(d.Files)
	return out, err
}

// isLimitRefusal reports whether files were refused because of their number or size.
func isLimitRefusal(r skill.Refusal) bool {
	return slices.Contains([]string{"too-many-entries", "file-too-large", "archive-unpacked-too-large"}, r.Code)
}

// newDraftFS returns an in-memory file system. It omits files whose paths are
// invalid or conflict with other paths.
func newDraftFS(files []DraftFile) (fs.FS, error) {
	data, dirs := map[string][]byte{}, map[string]bool{}
	var listed skill.Manifest
	for _, f := range files {
		if code, _ := skillpath.Check(f.Path); code != "" || dirs[f.Path] || data[f.Path] != nil || hasFileParent(f.Path, data) {
			continue
		}
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
		data[f.Path] = f.Data
		if f.Data == nil {
			data[f.Path] = []byte{}
		}
		listed = append(listed, skill.File{Path: f.Path, Size: int64(len(f.Data))})
	}
	return newManifestFS(listed, func(f skill.File) ([]byte, error) { return data[f.Path], nil })
}

// hasFileParent reports whether a parent directory of p is a file in files.
func hasFileParent(p string, files map[string][]byte) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if files[dir] != nil {
			return true
		}
	}
	return false
}

// uploadContent returns the content that uploading the draft would store. It
// returns the same errors as an upload.
func (d *draft) uploadContent(ctx context.Context, l *Library) (*content, error) {
	if len(d.refusals) > 0 {
		return nil, &skill.RefusedError{What: "skill", Refusals: d.refusals}
	}
	if _, err := skillfile.Find(d.fsys); err != nil { // missing or a directory
		return nil, &skill.RefusedError{What: "skill", Refusals: []skill.Refusal{{Code: "no-skill", Message: "the package contains no SKILL.md"}}}
	}
	c, err := l.readContent(ctx, skill.NewBundle(d.fsys, d.folder, nil))
	if err == nil && d.of != nil {
		err = c.checkSameSkill(d.of)
	}
	return c, err
}

// readDraft opens a draft and returns the content that uploading it would store.
func (l *Library) readDraft(ctx context.Context, p account.Principal, d Draft) (*draft, *content, error) {
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	opened, err := l.openDraft(ctx, p, d)
	if err != nil {
		return nil, nil, err
	}
	c, err := opened.uploadContent(ctx, l)
	return opened, c, err
}

// DraftPackage is a draft in the package format of [Library.Upload].
type DraftPackage struct {
	Name     string // name of the skill
	FileName string
	Digest   string // digest of the files, as after an upload
	Of       string // ID of the skill to which the draft adds a version, or ""
	Data     []byte
}

// PackDraft packages a draft. It returns the same errors as an upload, but ignores
// existing skills and versions.
func (l *Library) PackDraft(ctx context.Context, p account.Principal, d Draft) (*DraftPackage, error) {
	_, c, err := l.readDraft(ctx, p, d)
	if err != nil {
		return nil, fmt.Errorf("pack draft: %w", err)
	}
	data, err := l.packFiles(c.fsys, c.skill.Name)
	if err != nil {
		return nil, fmt.Errorf("pack draft: %w", err)
	}
	return &DraftPackage{Name: c.skill.Name, FileName: c.skill.Name + ".zip", Digest: c.manifest.Digest(), Of: d.Of, Data: data}, nil
}

// PackVersion packages a version, so that a conversation can try it as its draft.
// Number 0 means the current version. It returns a [*ReviewError] if only the
// version's uploader and the reviewers may access it.
func (l *Library) PackVersion(ctx context.Context, p account.Principal, id string, number int64) (*DraftPackage, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillUse, id, number)
	if err != nil {
		return nil, err
	}
	done, err := acquireSlot(ctx, l.packageSlots)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := l.bundle(ctx, h.Name, v)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	data, err := l.packFiles(b.FS, h.Name)
	if err != nil {
		return nil, fmt.Errorf("pack version %d of skill %q: %w", v.Number, h.Name, err)
	}
	return &DraftPackage{Name: h.Name, FileName: h.Name + ".zip", Digest: v.Digest, Of: id, Data: data}, nil
}

// packFiles returns the files of a skill as a ZIP archive in the format of an
// upload. It returns the same errors as an upload.
func (l *Library) packFiles(files fs.FS, name string) ([]byte, error) {
	var out bytes.Buffer
	if _, _, err := skill.WriteZIP(&limitedWriter{to: &out, left: l.opts.Limits.PackedBytes}, files, name); err != nil {
		if errors.Is(err, errPackedLarge) {
			err = &TooLargeError{Limit: l.opts.Limits.PackedBytes}
		}
		return nil, err
	}
	b, err := skill.OpenZIP(bytes.NewReader(out.Bytes()), int64(out.Len()), name+".zip", l.opts.Limits)
	if err != nil {
		return nil, err
	}
	return out.Bytes(), b.Close()
}

var errPackedLarge = errors.New("package too large")

// limitedWriter writes up to left bytes and then fails.
type limitedWriter struct {
	to   io.Writer
	left int64
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errPackedLarge
	}
	return w.to.Write(p)
}
