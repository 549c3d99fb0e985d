//go:build unix

// Package rundir creates the directory of a sandbox on the host, for backends
// without mounts. The directory contains the layout, with symlinks to verified
// copies of the read-only trees. It is removed when the sandbox is closed. If
// the program is killed, the next program that creates a directory removes the
// old one.
package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/loadout-dev/loadout/internal/sandbox/bundle"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures a [Dir].
type Options struct {
	Backend string
	// Parent is the parent of the sandboxes' directories. The default is run in
	// the cache directory.
	Parent string
	// Cache is the directory for verified copies of trees. The default is
	// [bundle.Cache].
	Cache string
	// UID is the user that runs the code. Zero means the current user.
	UID int
}

// Dir is the host directory that holds a sandbox's files.
type Dir struct {
	Root string
	// Read lists the host directories outside Root that code may read, and
	// Write those that it may change.
	Read, Write []string

	lock      *os.File
	held      []*bundle.Bundle
	uid       int
	hostPaths map[string]string // host paths of layout paths outside Root
}

func (opts *Options) unavailable(missing string, err error) error {
	return &sandbox.UnavailableError{Backend: opts.Backend, Missing: missing, Err: err, Fix: "name directories that this user owns and that the sandbox user can reach"}
}

// Empty creates an empty directory, without a file system layout. It returns
// the same errors as [sandbox.Backend.Start].
func Empty(opts Options) (*Dir, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	if err := prepareParent(opts); err != nil {
		return nil, opts.unavailable("a directory for sandboxes", err)
	}
	b, err := create(opts)
	if err != nil {
		return nil, opts.unavailable("a directory for the sandbox", err)
	}
	return b, nil
}

func (opts *Options) setDefaults() error {
	if opts.Cache == "" {
		var err error
		if opts.Cache, err = bundle.Cache(); err != nil {
			return opts.unavailable("a cache directory", err)
		}
	}
	if opts.Parent == "" {
		opts.Parent = filepath.Join(opts.Cache, "run")
	}
	return nil
}

// New creates a directory with the file system layout of a spec. It returns the
// same errors as [sandbox.Backend.Start].
func New(opts Options, spec *sandbox.Spec) (*Dir, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	b, err := Empty(opts)
	if err != nil {
		return nil, err
	}
	if err = b.createLayout(opts, spec); err == nil && opts.UID != 0 {
		if err = b.checkReachable(); err != nil {
			err = opts.unavailable(fmt.Sprintf("directories that user %d can reach", opts.UID), err)
		}
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// checkReachable returns an error if the sandbox's user has no access to the
// sandbox's directories.
func (b *Dir) checkReachable() error {
	err := bundle.Reachable(b.Root, b.uid)
	for _, c := range b.held {
		err = errors.Join(err, bundle.Reachable(c.Dir, b.uid))
	}
	return err
}

// prepareParent creates the parent directory. The first call also removes abandoned
// directories in it.
func prepareParent(opts Options) error {
	perm := os.FileMode(0o700)
	if opts.UID != 0 {
		perm = 0o711
	}
	if err := os.MkdirAll(opts.Parent, perm); err != nil {
		return err
	}
	fi, err := os.Lstat(opts.Parent)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || !fi.IsDir() || int(st.Uid) != os.Geteuid() || fi.Mode()&0o022 != 0 {
		return fmt.Errorf("unsafe sandbox directory %s: want a directory that only the current user can change", opts.Parent)
	}
	once, _ := swept.LoadOrStore(opts.Parent, &sync.Once{})
	once.(*sync.Once).Do(func() { sweep(opts.Parent) })
	return nil
}

var swept sync.Map // *sync.Once by directory

const lockSuffix = ".lock"

// create creates the directory and holds its lock until the program exits.
func create(opts Options) (*Dir, error) {
	for {
		dir := filepath.Join(opts.Parent, strings.ToLower(rand.Text()[:16]))
		lock, err := os.OpenFile(dir+lockSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if lockFile(lock) == nil {
			perm := os.FileMode(0o700)
			if opts.UID != 0 {
				perm = 0o711
			}
			if err := os.Mkdir(dir, perm); err != nil {
				lock.Close()
				return nil, err
			}
			return &Dir{Root: dir, lock: lock, uid: opts.UID, hostPaths: map[string]string{}}, nil
		}
		lock.Close() // another process may now remove it
	}
}

// lockFile locks f until it is closed. It returns an error if the file was
// removed or replaced.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	have, err := f.Stat()
	now, err2 := os.Lstat(f.Name())
	if err == nil && (err2 != nil || !os.SameFile(have, now)) {
		err = os.ErrNotExist
	}
	return err
}

// sweep removes directories whose program exited without closing them.
func sweep(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, "*"+lockSuffix))
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if lockFile(f) == nil && Remove(strings.TrimSuffix(name, lockSuffix)) == nil {
			os.Remove(name)
		}
		f.Close()
	}
}

// HostPath returns the host path for a path in the layout.
func (b *Dir) HostPath(p string) string {
	if real, ok := b.hostPaths[p]; ok {
		return real
	}
	return b.Root + p
}

// createLayout creates the files and directories that code in the sandbox
// expects.
func (b *Dir) createLayout(opts Options, spec *sandbox.Spec) error {
	for _, d := range []string{"/run", mountpoint.Secrets, mountpoint.Needs} {
		if err := os.Mkdir(b.HostPath(d), 0o755); err != nil {
			return fmt.Errorf("create sandbox directory: %w", err)
		}
	}
	for _, d := range []string{mountpoint.Work, mountpoint.In, mountpoint.Out, mountpoint.Tmp} {
		if err := b.chownToUser(os.Mkdir(b.HostPath(d), 0o755), d); err != nil {
			return err
		}
	}
	for i := range spec.Trees {
		var err error
		if t := &spec.Trees[i]; prepare.IsWritable(t.Path) {
			err = b.copyTree(t)
		} else {
			err = b.linkTree(opts.Cache, t)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range spec.Secrets {
		p := mountpoint.Secrets + "/" + s.Name
		if err := b.chownToUser(os.WriteFile(b.HostPath(p), []byte(s.Reveal()), 0o400), p); err != nil {
			return err
		}
	}
	return b.addMounts(opts.Backend, spec)
}

// chownToUser makes the sandbox's user the owner of the new file or directory at
// p. If err is not nil, it just returns err.
func (b *Dir) chownToUser(err error, p string) error {
	if err == nil && b.uid != 0 {
		err = os.Lchown(b.HostPath(p), b.uid, b.uid)
	}
	if err != nil {
		return fmt.Errorf("create sandbox directory: %w", err)
	}
	return nil
}

// linkTree creates a symlink in the layout to a verified copy of a tree.
func (b *Dir) linkTree(cache string, t *sandbox.Tree) error {
	c, err := bundle.Open(cache, t)
	if err != nil {
		return err
	}
	b.held = append(b.held, c)
	b.Read = append(b.Read, c.Dir)
	return b.addSymlink(t.Path, c.Dir)
}

// addSymlink creates a symlink in the layout and records its target.
func (b *Dir) addSymlink(p, real string) error {
	if err := os.Symlink(real, b.Root+p); err != nil {
		return fmt.Errorf("create sandbox directory: %w", err)
	}
	b.hostPaths[p] = real
	return nil
}

// copyTree copies a writable tree into the layout.
func (b *Dir) copyTree(t *sandbox.Tree) error {
	root, err := os.OpenRoot(b.Root)
	if err != nil {
		return fmt.Errorf("create sandbox directory: %w", err)
	}
	defer root.Close()
	for _, f := range t.Files {
		p := strings.TrimPrefix(t.Path, "/") + "/" + f.Path
		if err := b.parents(root, filepath.Dir(p)); err != nil {
			return err
		}
		perm := os.FileMode(0o644)
		if f.Exec {
			perm = 0o755
		}
		w, err := root.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
		if err != nil {
			return fmt.Errorf("create sandbox directory: %w", err)
		}
		err = bundle.Copy(w, t, f)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		if err := b.chownToUser(nil, "/"+p); err != nil {
			return err
		}
	}
	return nil
}

func (b *Dir) parents(root *os.Root, dir string) error {
	if fi, err := root.Lstat(dir); err == nil && fi.IsDir() {
		return nil
	}
	if err := b.parents(root, filepath.Dir(dir)); err != nil {
		return err
	}
	return b.chownToUser(root.Mkdir(dir, 0o755), "/"+dir)
}

// addMounts creates a symlink in the layout to the workspace, if it is mounted.
// It returns an error for any other mount whose path in the sandbox differs
// from its path on the host.
func (b *Dir) addMounts(backend string, spec *sandbox.Spec) error {
	for _, m := range spec.Mounts {
		switch m.Path {
		case m.Host:
		case mountpoint.Workspace:
			if err := b.addSymlink(m.Path, m.Host); err != nil {
				return err
			}
		default:
			return &sandbox.UnsupportedError{Backend: backend, What: fmt.Sprintf("%s at %s (it cannot mount)", m.Host, m.Path), Fix: "use native, bwrap or container"}
		}
		if _, err := os.Stat(m.Host); err != nil {
			return fmt.Errorf("create sandbox directory: %w", err)
		}
		if err := bundle.Searchable(m.Host, b.uid); b.uid != 0 && err != nil {
			return &sandbox.UnsupportedError{Backend: backend, What: fmt.Sprintf("%s for user %d: %v", m.Host, b.uid, err), Fix: "let others search its parent directories, or run this program as another user"}
		}
		if b.Read = append(b.Read, m.Host); m.Writable {
			b.Write = append(b.Write, m.Host)
		}
	}
	return nil
}

// Close removes the directory. No process may still be running in it.
func (b *Dir) Close() error {
	err := Remove(b.Root)
	if err == nil {
		os.Remove(b.lock.Name())
	}
	b.lock.Close()
	for _, c := range b.held {
		c.Close()
	}
	return err
}
