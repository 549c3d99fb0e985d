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
)

// WriteZIP writes the files of a skill as an archive with the single top
// folder named folder. The same files give the same bytes, whatever their
// times and modes. It returns the manifest of what was written; files that
// [List] reports on are left out, and returned as diagnostics. Paths that
// [OpenZIP] would refuse are a [*RefusedError] before anything is written; its
// limits on sizes and numbers are not checked.
func WriteZIP(w io.Writer, fsys fs.FS, folder string) (Manifest, Diagnostics, error) {
	if !usableName(folder) {
		return nil, nil, fmt.Errorf("pack skill: the folder name %s cannot be used in an archive", quote(folder))
	}
	files, ds, err := ReadManifest(fsys)
	if err != nil {
		return nil, ds, fmt.Errorf("pack skill: %w", err)
	}
	c := newChecker(Limits{})
	for _, f := range files {
		if name := folder + "/" + f.Path; c.name(name) {
			c.collide(name)
		}
	}
	if len(c.refusals) > 0 {
		return nil, ds, fmt.Errorf("pack skill: %w", &RefusedError{Refusals: c.refusals})
	}
	zw := zip.NewWriter(w)
	for _, f := range files {
		if err := writeEntry(zw, fsys, folder, f); err != nil {
			return nil, ds, fmt.Errorf("pack %s: %w", f.Path, reason(err))
		}
	}
	if err := zw.Close(); err != nil {
		return nil, ds, fmt.Errorf("pack skill: %w", err)
	}
	return files, ds, nil
}

// epoch is the earliest time that a ZIP entry can have.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

var errChanged = errors.New("the file changed while it was packed")

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
		h.SetMode(0o755) // by content, so that the bytes do not depend on a checkout
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
