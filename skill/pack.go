package skill

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

// WriteZIP writes a skill's files to an archive with a single top-level
// directory named folder. The same files produce the same bytes, regardless of
// their times and modes. WriteZIP returns the manifest of the written files. It
// omits the files that [List] skips and returns its diagnostics. It does not
// close w.
//
// folder must have 1 to 256 printable characters and no slash or backslash. If
// [OpenZIP] would reject a path, the error wraps a [*RefusedError]. If the skill
// exceeds 10,000 files or 256 MiB, it wraps [ErrTooLarge]. In these cases,
// WriteZIP writes nothing. It does not check [Limits]. If a file changes in the
// meantime, WriteZIP returns an error, and the archive is incomplete.
func WriteZIP(w io.Writer, fsys fs.FS, folder string) (Manifest, Diagnostics, error) {
	if !usableName(folder) {
		return nil, nil, fmt.Errorf("pack skill: folder name %s cannot be used in an archive", quote(folder))
	}
	files, ds, err := ReadManifest(fsys)
	if err != nil {
		return nil, ds, fmt.Errorf("pack skill: %w", err)
	}
	c := newChecker(Limits{})
	for _, f := range files {
		if name := folder + "/" + f.Path; c.checkName(name) {
			c.checkCollision(name)
		}
	}
	if len(c.refusals) > 0 {
		return nil, ds, fmt.Errorf("pack skill: %w", &RefusedError{Refusals: c.refusals})
	}
	zw := zip.NewWriter(w)
	for _, f := range files {
		if err := writeEntry(zw, fsys, folder, f); err != nil {
			return nil, ds, fmt.Errorf("pack %s: %w", f.Path, fileerror.Cause(err))
		}
	}
	if err := zw.Close(); err != nil {
		return nil, ds, fmt.Errorf("pack skill: %w", err)
	}
	return files, ds, nil
}

// epoch is the earliest time that a ZIP entry can have.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

var errChanged = errors.New("file changed while being packed")

func writeEntry(zw *zip.Writer, fsys fs.FS, folder string, f File) error {
	src, err := fsys.Open(f.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	var magic [4]byte
	n, err := io.ReadFull(src, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	h := &zip.FileHeader{Name: folder + "/" + f.Path, Method: zip.Deflate, Modified: epoch}
	h.SetMode(0o644)
	if bytes.HasPrefix(magic[:n], []byte("#!")) || string(magic[:n]) == "\x7fELF" {
		h.SetMode(0o755) // depends on the content, so that the archive does not depend on file modes
	}
	dst, err := zw.CreateHeader(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(dst, sum), io.MultiReader(bytes.NewReader(magic[:n]), io.LimitReader(src, f.Size))); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return errChanged
	}
	return nil
}
