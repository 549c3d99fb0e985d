package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// Most skills are plain directories without symlinks. The functions below read
// their instructions and list their files with few system calls. Other skills
// are read through [skill.Bundle], which confines symlinks to the skill.

// readSymlinked reads the start of a symlinked file. The target must be in the
// directory that contains the symlink, or below it. If within is not nil, that
// directory must be inside that boundary.
func readSymlinked(path string, within *boundary, buf []byte) (int, stamp, error) {
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
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, stampOfInfo(fi), err
}

// headBuffers is a pool of buffers that are larger than most SKILL.md files.
var headBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readDirect returns the content of a skill's SKILL.md. It returns false if the
// skill must be opened through its bundle instead.
func (c *Catalog) readDirect(e *Entry) ([]byte, bool) {
	d, closeDir := c.openDirect(e)
	if d == nil {
		return nil, false
	}
	defer closeDir()
	scratch := headBuffers.Get().(*[32 << 10]byte)
	defer headBuffers.Put(scratch)
	buf := scratch[:]
	for {
		n, st, err := d.readHead(e.file, buf)
		switch {
		case err != nil || st.size > skillfile.MaxFileBytes:
			return nil, false
		case int64(n) >= st.size && n < len(buf):
			return bytes.Clone(buf[:n]), true
		case len(buf) > skillfile.MaxFileBytes:
			return nil, false
		}
		buf = make([]byte, max(2*len(buf), int(st.size)+1))
	}
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
	var out skill.Manifest
	ok, err := d.files("", make([]byte, 4<<10), func(path string, size int64, mode fs.FileMode) bool {
		out = append(out, skill.File{Path: path, Size: size, Script: skillpath.IsScript(path, mode)})
		return len(out) < skillfile.MaxFiles
	})
	if !ok || err != nil {
		return nil, false
	}
	slices.SortFunc(out, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return out, true
}
