package library

import (
	"context"
	"fmt"
	"io"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/skill"
)

// Archive is the package of a version, to be downloaded: a ZIP with one folder, the same
// bytes each time.
type Archive struct {
	Name     string // of the skill
	FileName string // as pdf-3.zip; it may have any characters that can be seen
	ETag     string // the digest of the files in quotes, as HTTP writes it
	Version  *Version

	bundle *skill.Bundle
	folder string
	failed error // why a file could not be read
}

// Download returns the package of a version, 0 being the current one, without reading a
// file yet. Who may load a skill may not for that have its package: that is a matter of
// [account.SkillDownload]. The context bounds the writing too. Close it when done.
func (l *Library) Download(ctx context.Context, p account.Principal, id string, number int64) (*Archive, error) {
	h, err := l.may(ctx, p, account.SkillDownload, id)
	if err != nil {
		return nil, err
	}
	v, err := l.row(ctx, h, number)
	if err != nil {
		return nil, err
	}
	a := &Archive{
		Name: h.Name, FileName: fmt.Sprintf("%s-%d.zip", h.Name, v.Number), ETag: `"` + v.Digest + `"`,
		Version: newVersion(v, v.Number == h.Number), folder: h.Name,
	}
	a.bundle, err = l.bundleBy(ctx, h.Name, v, func(f skill.File) ([]byte, error) {
		data, err := l.files.read(ctx, f.SHA256, f.Size)
		if err != nil {
			a.failed = fmt.Errorf("file %q: %w", f.Path, err)
		}
		return data, err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// WriteTo writes the package. Each file is read and checked before anything is written;
// on an error what was written is no package.
func (a *Archive) WriteTo(w io.Writer) (int64, error) {
	out := &packing{to: w, of: a}
	_, _, err := skill.WriteZIP(out, a.bundle.FS, a.folder)
	if a.failed != nil { // which packing takes for a file that is not to be packed
		err = a.failed
	}
	return out.n, err
}

// Close lets go of the files.
func (a *Archive) Close() error { return a.bundle.Close() }

// packing counts what is written of an archive, and ends it at the first file that cannot
// be read.
type packing struct {
	to io.Writer
	of *Archive
	n  int64
}

func (w *packing) Write(p []byte) (int, error) {
	if w.of.failed != nil {
		return 0, w.of.failed
	}
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}
