//go:build unix

package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes a directory whose content may be hostile, without following
// symlinks. [os.RemoveAll] keeps a directory open for each level and fails if
// there are too many levels; Remove instead moves nested directories to the top
// level and removes them there.
func Remove(dir string) error {
	parent, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	defer unix.Close(parent)
	top, err := openDir(parent, filepath.Base(dir))
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	defer top.Close()
	r := &remover{top: int(top.Fd()), prefix: ".removed-" + rand.Text() + "-"}
	for {
		names, err := readNames(top)
		if err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		if len(names) == 0 {
			break
		}
		before := r.done
		for _, name := range names {
			r.remove(name)
		}
		if r.done == before {
			return fmt.Errorf("remove %s: %w", dir, r.err)
		}
	}
	if err := unix.Unlinkat(parent, filepath.Base(dir), unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// remover removes the entries of a directory and counts the removed and moved
// entries.
type remover struct {
	top    int
	prefix string
	moved  int
	done   int
	err    error
}

// remove removes an entry of the top directory. It moves directories in the
// entry to the top directory, to be removed later.
func (r *remover) remove(name string) {
	if unix.Unlinkat(r.top, name, 0) == nil {
		r.done++
		return
	}
	d, err := openDir(r.top, name)
	if err != nil {
		r.err = err
		return
	}
	defer d.Close()
	names, err := readNames(d)
	if err != nil {
		r.err = err
		return
	}
	fd := int(d.Fd())
	for _, n := range names {
		if unix.Unlinkat(fd, n, 0) == nil {
			r.done++
			continue
		}
		unix.Fchmodat(fd, n, 0o700, unix.AT_SYMLINK_NOFOLLOW) // moving a directory requires write permission on it
		r.moved++
		if err := unix.Renameat(fd, n, r.top, r.prefix+strconv.Itoa(r.moved)); err != nil {
			r.err = err
			continue
		}
		r.done++
	}
	if err := unix.Unlinkat(r.top, name, unix.AT_REMOVEDIR); err != nil {
		r.err = err
		return
	}
	r.done++
}

// openDir opens a directory without following symlinks.
func openDir(at int, name string) (*os.File, error) {
	unix.Fchmodat(at, name, 0o700, unix.AT_SYMLINK_NOFOLLOW) // the next call fails if this call fails
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// maxNames is the maximum number of names to read at once.
const maxNames = 4096

// readNames returns the next names in a directory.
func readNames(d *os.File) ([]string, error) {
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var all []string
	for {
		names, err := d.Readdirnames(maxNames)
		all = append(all, names...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
