//go:build unix

package rundir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// Limits on collected files, which untrusted commands create.
const (
	maxCollected = 20_000
	maxDepth     = 64
)

// Collect implements [sandbox.Sandbox.Collect]. It opens only regular files,
// follows no symlinks, and never blocks.
func (b *Dir) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	root, err := os.OpenRoot(b.HostPath(mountpoint.Work))
	if err != nil {
		return err
	}
	defer root.Close()
	n := 0
	return fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && p == ".":
			return err
		case d.IsDir() && (err != nil || p == "in" || strings.Count(p, "/") >= maxDepth):
			return fs.SkipDir
		case err != nil, !d.Type().IsRegular():
			return nil
		}
		if n++; n > maxCollected {
			return fs.SkipAll
		}
		return collectFile(root, p, visit)
	})
}

func collectFile(root *os.Root, p string, visit func(sandbox.File, io.Reader) error) error {
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // the file was removed or replaced meanwhile
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	return visit(sandbox.File{Path: p, Size: fi.Size(), Exec: fi.Mode()&0o111 != 0}, &exactReader{r: f, remaining: fi.Size()})
}

// exactReader reads exactly as many bytes as a file had when it was opened;
// remaining is the number of bytes left to read. If the file shrank, the
// missing bytes are read as zeros.
type exactReader struct {
	r         io.Reader
	remaining int64
	gone      bool
}

func (e *exactReader) Read(b []byte) (n int, err error) {
	if e.remaining <= 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), e.remaining)]
	if !e.gone {
		n, err = e.r.Read(b)
		e.gone = err != nil
		if err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	} else {
		clear(b)
		n = len(b)
	}
	e.remaining -= int64(n)
	return n, nil
}
