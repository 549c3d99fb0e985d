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
	b, err := l.bundle(ctx, h.Name, v)
	if err != nil {
		return nil, err
	}
	return &Archive{
		Name: h.Name, FileName: fmt.Sprintf("%s-%d.zip", h.Name, v.Number), ETag: `"` + v.Digest + `"`,
		Version: newVersion(v, v.Number == h.Number), bundle: b, folder: h.Name,
	}, nil
}

// WriteTo writes the package. Each file is checked as it is read; on an error what was
// written is no package.
func (a *Archive) WriteTo(w io.Writer) (int64, error) {
	n := &counted{w: w}
	_, _, err := skill.WriteZIP(n, a.bundle.FS, a.folder)
	return n.n, err
}

// Close lets go of the files.
func (a *Archive) Close() error { return a.bundle.Close() }

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
