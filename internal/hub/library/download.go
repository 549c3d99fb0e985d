package library

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Archive is a version packaged for download: a reproducible ZIP archive with one
// top-level directory.
type Archive struct {
	Name     string // name of the skill
	FileName string // such as pdf-3.zip; may contain any printable characters
	ETag     string // ETag header: the quoted digest of the files
	Version  *Version

	bundle *skill.Bundle
	folder string
	failed error // first error reading a file
}

// DownloadNamespaces returns the namespaces from which a principal may download
// skills, in order of precedence. It omits the namespace of the skills bundled
// with the program.
func DownloadNamespaces(p account.Principal) ([]Namespace, error) {
	all, err := namespaces(p, account.SkillDownload)
	return slices.DeleteFunc(all, func(n Namespace) bool { return n == store.Bundled }), err
}

// IsInstallable reports whether the name of a skill resolves to it among the skills that
// the principal can install: those of [DownloadNamespaces] that are [Query.Installable].
func (l *Library) IsInstallable(ctx context.Context, p account.Principal, s *Skill) (bool, error) {
	in, err := DownloadNamespaces(p)
	if err != nil {
		return false, err
	}
	k, err := l.index.find(ctx, in, s.Name, func(k *indexedSkill) bool { return !k.hidden && canInstall(p, k.home, k.code, k.review) })
	return k != nil && k.id == s.ID, err
}

// Download returns the package of a version without reading its files. Number 0
// means the current version. Downloading requires [account.SkillDownload].
// [Archive.WriteTo] also uses ctx. The caller must close the archive.
func (l *Library) Download(ctx context.Context, p account.Principal, id string, number int64) (*Archive, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillDownload, id, number)
	if err != nil {
		return nil, err
	}
	a := &Archive{
		Name: h.Name, FileName: fmt.Sprintf("%s-%d.zip", h.Name, v.Number), ETag: `"` + v.Digest + `"`,
		Version: h.newVersionFor(p, v), folder: h.Name,
	}
	t, err := l.tree(ctx, v)
	if err != nil {
		return nil, err
	}
	a.bundle = skill.NewBundle(&manifestFS{func(f skill.File) ([]byte, error) {
		data, err := l.files.read(ctx, f.SHA256, f.Size)
		if err != nil {
			a.failed = fmt.Errorf("read %q: %w", f.Path, err)
		}
		return data, err
	}, t}, h.Name, nil)
	return a, nil
}

// WriteTo writes the package to w. It verifies each file before writing it. After
// an error, the output is not a valid package.
func (a *Archive) WriteTo(w io.Writer) (int64, error) {
	out := &archiveWriter{to: w, of: a}
	_, _, err := skill.WriteZIP(out, a.bundle.FS, a.folder)
	if a.failed != nil { // skill.WriteZIP skips files that cannot be read
		err = a.failed
	}
	return out.n, err
}

// Close releases the underlying files.
func (a *Archive) Close() error { return a.bundle.Close() }

// archiveWriter counts the bytes of an archive. Writes fail once reading a file
// has failed.
type archiveWriter struct {
	to io.Writer
	of *Archive
	n  int64
}

func (w *archiveWriter) Write(p []byte) (int, error) {
	if w.of.failed != nil {
		return 0, w.of.failed
	}
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}
