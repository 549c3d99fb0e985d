//go:build linux

package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// stream hashes the files of a tree while sending them. If a file does not
// match the manifest, stream returns an error, and the caller must end the stage.
func (s *Sandbox) stream(t *sandbox.Tree) error {
	for _, f := range t.Files {
		if err := s.streamFile(t, f); err != nil {
			return err
		}
	}
	return nil
}

// chunk is the maximum size of a file data message.
const chunk = 256 << 10

func (s *Sandbox) streamFile(t *sandbox.Tree, f sandbox.File) error {
	mode := uint32(0o644) // scripts may change the copy; a read-only mount protects other trees
	if f.Exec {
		mode |= 0o111
	}
	src, err := openRegular(t.FS, f.Path)
	if err != nil {
		return &sandbox.ChangedError{Tree: t.Path, Path: f.Path, Err: err}
	}
	defer src.Close()
	if err := s.send(stage.KindFile, &stage.File{Path: s.cfg.HostPath(t.Path) + "/" + f.Path, Size: f.Size, Mode: mode}); err != nil {
		return err
	}
	h := sha256.New()
	buf := make([]byte, min(f.Size, chunk))
	for left := f.Size; left > 0; {
		n, err := io.ReadFull(src, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return changedError(t, f, err)
		}
		h.Write(buf[:n])
		if err := s.sendBytes(stage.KindData, buf[:n]); err != nil {
			return err
		}
		left -= int64(n)
	}
	if n, err := src.Read(make([]byte, 1)); n > 0 || err != nil && err != io.EOF {
		return changedError(t, f, nil) // the file grew
	}
	if f.SHA256 != "" && !strings.EqualFold(hex.EncodeToString(h.Sum(nil)), f.SHA256) {
		return changedError(t, f, nil)
	}
	return nil
}

func changedError(t *sandbox.Tree, f sandbox.File, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the file shrank
	}
	return &sandbox.ChangedError{Tree: t.Path, Path: f.Path, Err: err}
}

// openRegular opens a regular file. It does not open pipes, because that would
// block.
func openRegular(fsys fs.FS, path string) (fs.File, error) {
	fi, err := fs.Stat(fsys, path)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return fsys.Open(path)
}
