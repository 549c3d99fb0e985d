package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

// openLocal opens a local folder, SKILL.md or archive. For a SKILL.md, it opens
// the folder that contains it. openLocal writes nothing to disk.
func (c *Client) openLocal(ctx context.Context, l Location) (*Collection, error) {
	fi, err := os.Stat(l.URL)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NotFoundError{What: fmt.Sprintf("file or folder %q", l.URL)}
	case err != nil:
		return nil, fmt.Errorf("open %q: %w", l.URL, fileerror.Cause(err))
	case fi.IsDir():
		return c.openFolder(ctx, l, l.URL)
	case !fi.Mode().IsRegular(): // opening a pipe would block
		return nil, fmt.Errorf("open %q: neither a folder nor a file", l.URL)
	case skillpath.IsSkillFile(filepath.Base(l.URL)):
		return c.openFolder(ctx, l, filepath.Dir(l.URL))
	}
	f, err := os.Open(l.URL)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", l.URL, fileerror.Cause(err))
	}
	if fi.Size() > c.opts.Limits.Download {
		return nil, errors.Join(&TooLargeError{l.displayURL(), c.opts.Limits.Download}, f.Close())
	}
	return c.collectArchive(ctx, l, f, fi.Size(), f.Close)
}

// openFolder opens a folder. dir itself may be a symlink.
func (c *Client) openFolder(ctx context.Context, l Location, dir string) (*Collection, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", l.URL, fileerror.Cause(err))
	}
	t, err := c.listFolder(ctx, root)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", l.URL, err), root.Close())
	}
	t.folder = filepath.Base(dir)
	return c.collect(ctx, l, Revision{}, t, root.Close)
}

// listFolder lists the files of a folder without following symlinks.
func (c *Client) listFolder(ctx context.Context, root *os.Root) (*tree, error) {
	var entries []entry
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && p == ".":
			return err
		case p != "." && skillpath.IsIgnored(d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err != nil: // openSkill reports the error for the skill that contains the folder
			entries = append(entries, entry{path: p, kind: specialEntry, note: "cannot be read: " + fileerror.Cause(err).Error()})
			return fs.SkipDir
		case d.IsDir():
			return nil
		case len(entries) == c.opts.Limits.Entries:
			return fmt.Errorf("too many files (limit %d); specify a subdirectory", c.opts.Limits.Entries)
		}
		e := entry{path: p, open: func() (io.ReadCloser, error) { return openPlain(root, p) }}
		info, err := d.Info()
		switch {
		case err != nil:
			e.kind, e.note = specialEntry, "cannot be read: "+fileerror.Cause(err).Error()
		case d.Type() == fs.ModeSymlink:
			e.kind = linkEntry
		case !d.Type().IsRegular():
			e.kind = specialEntry
		default:
			e.size, e.executable = info.Size(), info.Mode()&0o111 != 0
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newTree(entries)
}

// openPlain opens a file that was listed as a plain file. It fails if the file
// has been replaced since then.
func openPlain(root *os.Root, p string) (io.ReadCloser, error) {
	name := filepath.FromSlash(p)
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, fileerror.Cause(err)
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("no longer a regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fileerror.Cause(err)
	}
	return f, nil
}
