package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

var _ execute.Overlayer = (*instance)(nil)

// changes is the directory in which an overlay stores its changes.
type changes struct {
	dir *rundir.Dir // nil if there is none
	err error       // why there is no overlay
}

// errNoOverlay is returned if the spec has no overlay.
var errNoOverlay = errors.New("no overlay requested")

// overlay prepares the overlay of a spec, if it has one, and adds it to the
// setup. It replaces the read-only mount of the same directory.
func (b *Backend) overlay(spec *sandbox.Spec, setup *stage.Setup) *changes {
	i := slices.IndexFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.Overlay })
	if i < 0 {
		return &changes{err: errNoOverlay}
	}
	m := spec.Mounts[i]
	dir, err := b.makeUpper(m.Host)
	if err != nil {
		return &changes{err: fmt.Errorf("prepare overlay of %s: %w", m.Host, err)}
	}
	setup.Overlay = &stage.Overlay{Host: m.Host, Path: m.Path, Data: dir.Root}
	setup.Binds = slices.DeleteFunc(setup.Binds, func(s stage.Bind) bool { return s.Path == m.Path })
	return &changes{dir: dir}
}

// upperName and workName are the directories that an overlay needs on one file
// system.
const (
	upperName = "upper"
	workName  = "work"
)

// makeUpper makes the directories for changes to host. The upper directory gets
// the owner and permissions of host, because code sees them.
func (b *Backend) makeUpper(host string) (*rundir.Dir, error) {
	opts := rundir.Options{Backend: b.Name(), Parent: b.opts.Dir}
	root := os.Geteuid() == 0
	if root {
		opts.UID = b.opts.UID
	}
	fi, err := os.Stat(host)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, syscall.ENOTDIR
	}
	dir, err := rundir.Empty(opts)
	if err != nil {
		return nil, err
	}
	upper, work := filepath.Join(dir.Root, upperName), filepath.Join(dir.Root, workName)
	err = errors.Join(os.Mkdir(upper, 0o700), os.Mkdir(work, 0o700))
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && root && err == nil {
		err = errors.Join(os.Lchown(upper, int(st.Uid), int(st.Gid)), os.Lchown(work, b.opts.UID, b.opts.UID))
	}
	if err = errors.Join(err, os.Chmod(upper, fi.Mode().Perm())); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// setError records why the stage could not mount the overlay.
func (c *changes) setError(reason string) {
	if reason != "" {
		c.err = errors.New(reason)
	}
}

func (c *changes) close() {
	if c.dir != nil {
		c.dir.Close() // the next sandbox removes what is left
	}
}

// OverlayError implements [execute.Overlayer].
func (b *instance) OverlayError() error { return b.changes.err }

// Changes implements [execute.Overlayer].
func (b *instance) Changes() (string, error) {
	if b.changes.err != nil {
		return "", b.changes.err
	}
	b.End()
	return filepath.Join(b.changes.dir.Root, upperName), nil
}
