//go:build unix

// Package box is the layout of a sandbox in real directories of the host, for
// back ends without mounts of their own: a private directory for one sandbox,
// with links to verified copies of the read-only trees. It is removed with the
// sandbox, or, where its program was killed, by the next program that makes one.
package box

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/bundle"
)

// Options say where a box is and whose.
type Options struct {
	Backend string
	// Dir is the directory that boxes are in; default is run in the cache.
	Dir string
	// Cache is the directory for verified copies; default is [bundle.Cache].
	Cache string
	// UID is the user that code in the box is, where that is not us; 0 means us.
	UID int
}

// Box is the directory of one sandbox.
type Box struct {
	Dir string
	// Read are the directories of the host to read besides Dir, Write those to
	// change.
	Read, Write []string

	lock   *os.File
	held   []*bundle.Bundle
	uid    int
	places map[string]string // where else a place of the layout is
}

// New makes a box with all that the spec asks for. The error is that of
// [sandbox.Backend.Start].
func New(opts Options, spec *sandbox.Spec) (*Box, error) {
	unavailable := func(missing string, err error) error {
		return &sandbox.UnavailableError{Backend: opts.Backend, Missing: missing, Err: err, Fix: "name directories that are ours, and that user can reach"}
	}
	if opts.Cache == "" {
		var err error
		if opts.Cache, err = bundle.Cache(); err != nil {
			return nil, unavailable("a cache directory", err)
		}
	}
	if opts.Dir == "" {
		opts.Dir = filepath.Join(opts.Cache, "run")
	}
	if err := prepare(opts); err != nil {
		return nil, unavailable("a directory for sandboxes", err)
	}
	b, err := create(opts)
	if err != nil {
		return nil, unavailable("a directory for the sandbox", err)
	}
	if err = b.fill(opts, spec); err == nil && opts.UID != 0 {
		if err = b.reachable(); err != nil {
			err = unavailable(fmt.Sprintf("directories that user %d can reach", opts.UID), err)
		}
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// reachable says why the user of the box cannot reach what is ours in it.
func (b *Box) reachable() error {
	err := bundle.Reachable(b.Dir, b.uid)
	for _, c := range b.held {
		err = errors.Join(err, bundle.Reachable(c.Dir, b.uid))
	}
	return err
}

// prepare makes the directory for boxes and, the first time, sweeps it.
func prepare(opts Options) error {
	perm := os.FileMode(0o700)
	if opts.UID != 0 {
		perm = 0o711
	}
	if err := os.MkdirAll(opts.Dir, perm); err != nil {
		return err
	}
	fi, err := os.Lstat(opts.Dir)
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || !fi.IsDir() || int(st.Uid) != os.Geteuid() || fi.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only we can change", opts.Dir)
	}
	once, _ := swept.LoadOrStore(opts.Dir, &sync.Once{})
	once.(*sync.Once).Do(func() { sweep(opts.Dir) })
	return nil
}

var swept sync.Map // of *sync.Once by directory

const lockSuffix = ".lock"

// create makes the directory. Its lock is held as long as we live.
func create(opts Options) (*Box, error) {
	for {
		dir := filepath.Join(opts.Dir, strings.ToLower(rand.Text()[:16]))
		lock, err := os.OpenFile(dir+lockSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if held(lock) == nil {
			perm := os.FileMode(0o700)
			if opts.UID != 0 {
				perm = 0o711
			}
			if err := os.Mkdir(dir, perm); err != nil {
				lock.Close()
				return nil, err
			}
			return &Box{Dir: dir, lock: lock, uid: opts.UID, places: map[string]string{}}, nil
		}
		lock.Close() // someone who sweeps was there first, and removes it
	}
}

// held locks an open file that is still at its name, for as long as it is open.
func held(f *os.File) error {
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

// sweep removes the boxes of programs that have ended without it.
func sweep(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, "*"+lockSuffix))
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if held(f) == nil && Remove(strings.TrimSuffix(name, lockSuffix)) == nil {
			os.Remove(name)
		}
		f.Close()
	}
}

// At is where a path of the layout is.
func (b *Box) At(p string) string {
	if real, ok := b.places[p]; ok {
		return real
	}
	return b.Dir + p
}

// fill makes the layout.
func (b *Box) fill(opts Options, spec *sandbox.Spec) error {
	for _, d := range []string{"/run", sandbox.SecretsDir, sandbox.NeedsDir} {
		if err := os.Mkdir(b.At(d), 0o755); err != nil {
			return fmt.Errorf("make sandbox: %w", err)
		}
	}
	for _, d := range []string{sandbox.WorkDir, sandbox.InDir, sandbox.OutDir, sandbox.TmpDir} {
		if err := b.ours(os.Mkdir(b.At(d), 0o755), d); err != nil {
			return err
		}
	}
	for i := range spec.Trees {
		var err error
		if t := &spec.Trees[i]; t.Writable() {
			err = b.copy(t)
		} else {
			err = b.link(opts.Cache, t)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range spec.Secrets {
		p := sandbox.SecretsDir + "/" + s.Name
		if err := b.ours(os.WriteFile(b.At(p), []byte(s.Reveal()), 0o400), p); err != nil {
			return err
		}
	}
	return b.mount(opts.Backend, spec)
}

// ours gives what was made at p to whoever uses the box.
func (b *Box) ours(err error, p string) error {
	if err == nil && b.uid != 0 {
		err = os.Lchown(b.At(p), b.uid, b.uid)
	}
	if err != nil {
		return fmt.Errorf("make sandbox: %w", err)
	}
	return nil
}

// link puts a verified copy of a tree into its place.
func (b *Box) link(cache string, t *sandbox.Tree) error {
	c, err := bundle.Open(cache, t)
	if err != nil {
		return err
	}
	b.held = append(b.held, c)
	b.Read = append(b.Read, c.Dir)
	return b.place(t.Path, c.Dir)
}

// place makes known where a place of the layout really is.
func (b *Box) place(p, real string) error {
	if err := os.Symlink(real, b.Dir+p); err != nil {
		return fmt.Errorf("make sandbox: %w", err)
	}
	b.places[p] = real
	return nil
}

// copy copies a tree that may be changed.
func (b *Box) copy(t *sandbox.Tree) error {
	root, err := os.OpenRoot(b.Dir)
	if err != nil {
		return fmt.Errorf("make sandbox: %w", err)
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
			return fmt.Errorf("make sandbox: %w", err)
		}
		err = bundle.Copy(w, t, f)
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		if err := b.ours(nil, "/"+p); err != nil {
			return err
		}
	}
	return nil
}

func (b *Box) parents(root *os.Root, dir string) error {
	if fi, err := root.Lstat(dir); err == nil && fi.IsDir() {
		return nil
	}
	if err := b.parents(root, filepath.Dir(dir)); err != nil {
		return err
	}
	return b.ours(root.Mkdir(dir, 0o755), "/"+dir)
}

// mount makes the person's directory known at its place. Others must be where
// they are.
func (b *Box) mount(backend string, spec *sandbox.Spec) error {
	for _, m := range spec.Mounts {
		switch m.Path {
		case m.Host:
		case sandbox.WorkspaceDir:
			if err := b.place(m.Path, m.Host); err != nil {
				return err
			}
		default:
			return &sandbox.UnsupportedError{Backend: backend, What: fmt.Sprintf("%s at %s, as it has no mounts", m.Host, m.Path), Fix: "use native, bwrap or container"}
		}
		if _, err := os.Stat(m.Host); err != nil {
			return fmt.Errorf("make sandbox: %w", err)
		}
		if err := bundle.Searchable(m.Host, b.uid); b.uid != 0 && err != nil {
			return &sandbox.UnsupportedError{Backend: backend, What: fmt.Sprintf("%s to user %d, whom code is for root: %v", m.Host, b.uid, err), Fix: "let others search what leads to it, or run this program as another user"}
		}
		if b.Read = append(b.Read, m.Host); m.Writable {
			b.Write = append(b.Write, m.Host)
		}
	}
	return nil
}

// Close removes the box, in which nothing may run any more.
func (b *Box) Close() error {
	err := Remove(b.Dir)
	if err == nil {
		os.Remove(b.lock.Name())
	}
	b.lock.Close()
	for _, c := range b.held {
		c.Close()
	}
	return err
}
