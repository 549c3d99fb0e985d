package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// Most skills are plain directories without symlinks. The functions below read
// their instructions and list their files with few system calls. Other skills
// are read through [skill.Bundle], which confines symlinks to the skill.

// readSymlinked reads the start of a symlinked file into the buffer that alloc
// returns for its size. The target must be in the directory that contains the
// symlink, or below it. If within is not nil, the directory must be inside it.
func readSymlinked(path string, within *boundary, alloc func(size int64) []byte) (int, stamp, error) {
	root, err := within.openRoot(filepath.Dir(path))
	if err != nil {
		return 0, stamp{}, err
	}
	defer root.Close()
	fi, err := root.Stat(filepath.Base(path))
	if err != nil {
		return 0, stamp{}, &fs.PathError{Op: "open", Path: path, Err: errors.New("symbolic link target is missing or outside the skill")}
	}
	if !fi.Mode().IsRegular() { // opening a pipe would block
		return 0, stamp{}, fmt.Errorf("read %s: not a regular file", path)
	}
	f, err := root.Open(filepath.Base(path))
	if err != nil {
		return 0, stamp{}, err
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil {
		return 0, stamp{}, err
	}
	n, err := io.ReadFull(f, alloc(fi.Size()))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, stampOfInfo(fi), err
}

// direct is the result of readDirect.
type direct struct {
	source []byte // content of SKILL.md
	files  skill.Manifest
	listed bool // whether files is valid
}

// readDirect returns the content of a skill's SKILL.md and, if list is set, the
// skill's files. It returns false if the skill must be opened through its bundle
// instead.
func (c *Catalog) readDirect(e *Entry, list bool) (direct, bool) {
	d, closeDir := c.openDirect(e)
	if d == nil {
		return direct{}, false
	}
	defer closeDir()
	var out direct
	n, st, err := d.readInto(e.file, func(size int64) []byte {
		if size <= skillfile.MaxFileBytes {
			out.source = make([]byte, size)
		}
		return out.source
	})
	if err != nil || st.size > skillfile.MaxFileBytes || int64(n) < st.size { // too large, or truncated meanwhile
		return direct{}, false
	}
	if list {
		out.files, out.listed = d.listFiles()
	}
	return out, true
}

// openDirect opens the directory of a skill. It returns nil if the directory
// cannot be opened, or if the skill was not listed by a directory source.
func (c *Catalog) openDirect(e *Entry) (d *dirfd, closeDir func()) {
	if e.file == "" || e.Location() == "" {
		return nil, nil
	}
	var b *boundary
	if src, err := c.source(e); err == nil {
		if listed, ok := src.(*dirSource); ok && listed.opts.Within != "" {
			if d := openInside(listed.opts.Within, e.Path); d != nil {
				return d, d.close
			}
			if b, err = openBoundary(listed.opts.Within); err != nil {
				return nil, nil
			}
		}
	}
	d, err := b.openDir(e.Path)
	if err != nil {
		b.close()
		return nil, nil
	}
	return d, func() { d.close(); b.close() }
}

// ListFiles returns the current files of a skill without reading them, and
// therefore without hashes. It returns the same errors as [Catalog.Manifest].
func (c *Catalog) ListFiles(ctx context.Context, e *Entry) (skill.Manifest, error) {
	if m, ok := c.listDirect(e); ok {
		return m, nil
	}
	b, err := c.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	files, _, err := skill.List(b.FS)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	return files, nil
}

func (c *Catalog) listDirect(e *Entry) (skill.Manifest, bool) {
	d, closeDir := c.openDirect(e)
	if d == nil {
		return nil, false
	}
	defer closeDir()
	return d.listFiles()
}
