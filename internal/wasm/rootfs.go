package wasm

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// rootFS is a directory tree mounted in a guest. Symlinks cannot lead outside
// root. The guest can use regular files and directories. It can follow and read
// symlinks but not create them, and cannot open other types of files.
//
// Names are slash-separated. They may start with a slash, because wazero joins
// the name of the open directory, which may be empty, with the name in that
// directory. The name of a directory may end with a slash.
type rootFS struct {
	experimentalsys.UnimplementedFS
	root     *os.Root
	readOnly bool
}

var _ experimentalsys.FS = (*rootFS)(nil)

// localName converts a guest's name to the form that [os.Root] accepts.
func localName(name string) string {
	if name = strings.TrimLeft(name, "/"); name == "" {
		return "."
	}
	return filepath.FromSlash(name)
}

// openFlags maps the guest's flags to the host's. OpenFile handles O_NOFOLLOW,
// O_DIRECTORY and O_NONBLOCK.
var openFlags = [...]struct {
	guest experimentalsys.Oflag
	host  int
}{
	{experimentalsys.O_WRONLY, os.O_WRONLY},
	{experimentalsys.O_RDWR, os.O_RDWR},
	{experimentalsys.O_APPEND, os.O_APPEND},
	{experimentalsys.O_CREAT, os.O_CREATE},
	{experimentalsys.O_EXCL, os.O_EXCL},
	{experimentalsys.O_TRUNC, os.O_TRUNC},
	{experimentalsys.O_DSYNC, os.O_SYNC},
	{experimentalsys.O_RSYNC, os.O_SYNC},
	{experimentalsys.O_SYNC, os.O_SYNC},
}

// OpenFile opens a regular file or a directory. It ignores the permissions,
// because WASI has none, and wazero's 0600 would make results unreadable. The
// umask applies as usual.
func (f *rootFS) OpenFile(name string, flag experimentalsys.Oflag, _ fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	const writes = experimentalsys.O_WRONLY | experimentalsys.O_RDWR | experimentalsys.O_CREAT | experimentalsys.O_TRUNC
	if f.readOnly && flag&writes != 0 {
		return nil, experimentalsys.EROFS
	}
	name = localName(name)
	if flag&experimentalsys.O_NOFOLLOW != 0 {
		if info, err := f.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, experimentalsys.ELOOP
		}
	}
	// Opening a pipe without a writer would block the guest beyond any
	// deadline.
	flags := nonblock
	for _, o := range openFlags {
		if flag&o.guest != 0 {
			flags |= o.host
		}
	}
	opened, err := f.root.OpenFile(name, flags, 0o666)
	if err != nil {
		return nil, errno(err)
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fs.ErrPermission
	}
	if err != nil {
		opened.Close()
		return nil, errno(err)
	}
	return &rootFile{fs: f, name: name, file: opened, isDir: info.IsDir(), appendMode: flag&experimentalsys.O_APPEND != 0,
		openedForAppend: flag&experimentalsys.O_APPEND != 0}, 0
}

func (f *rootFS) Stat(name string) (sys.Stat_t, experimentalsys.Errno) {
	return stat(f.root.Stat(localName(name)))
}

func (f *rootFS) Lstat(name string) (sys.Stat_t, experimentalsys.Errno) {
	return stat(f.root.Lstat(localName(name)))
}

func (f *rootFS) Readlink(name string) (string, experimentalsys.Errno) {
	target, err := f.root.Readlink(localName(name))
	return filepath.ToSlash(target), errno(err)
}

func (f *rootFS) Mkdir(name string, _ fs.FileMode) experimentalsys.Errno {
	return f.modify(func() error { return f.root.Mkdir(localName(name), 0o777) })
}

func (f *rootFS) Rename(from, to string) experimentalsys.Errno {
	return f.modify(func() error { return f.root.Rename(localName(from), localName(to)) })
}

func (f *rootFS) Rmdir(name string) experimentalsys.Errno {
	return f.remove(name, func(isDir bool) experimentalsys.Errno {
		if !isDir {
			return experimentalsys.ENOTDIR
		}
		return 0
	})
}

func (f *rootFS) Unlink(name string) experimentalsys.Errno {
	return f.remove(name, func(isDir bool) experimentalsys.Errno {
		if isDir {
			return experimentalsys.EISDIR
		}
		return 0
	})
}

// remove removes a file or an empty directory if fits returns 0 for it. The
// guest cannot run between that check and the removal.
func (f *rootFS) remove(name string, fits func(isDir bool) experimentalsys.Errno) experimentalsys.Errno {
	return f.modify(func() error {
		info, err := f.root.Lstat(localName(name))
		if err != nil {
			return err
		}
		if e := fits(info.IsDir()); e != 0 {
			return e
		}
		return f.root.Remove(localName(name))
	})
}

func (f *rootFS) Utimens(name string, atim, mtim int64) experimentalsys.Errno {
	return f.modify(func() error { return f.root.Chtimes(localName(name), timeFromNanos(atim), timeFromNanos(mtim)) })
}

// Symlink always fails, like Link. The worker would not follow a symlink out of
// the mount, but a program that reads the results might.
func (f *rootFS) Symlink(string, string) experimentalsys.Errno { return experimentalsys.EPERM }

func (f *rootFS) Link(string, string) experimentalsys.Errno { return experimentalsys.EPERM }

// modify calls do if the mount is writable.
func (f *rootFS) modify(do func() error) experimentalsys.Errno {
	if f.readOnly {
		return experimentalsys.EROFS
	}
	return errno(do())
}

// timeFromNanos converts nanoseconds since 1970. It returns the zero time for
// UTIME_OMIT, which leaves a file's time unchanged.
func timeFromNanos(nanos int64) time.Time {
	if nanos == experimentalsys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func stat(info fs.FileInfo, err error) (sys.Stat_t, experimentalsys.Errno) {
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(info), 0
}

// errno returns the WASI error code for an error of package os. An unknown
// error means that [os.Root] refused access outside the mount.
func errno(err error) experimentalsys.Errno {
	if err == nil || err == io.EOF {
		return 0
	}
	if e, ok := errors.AsType[experimentalsys.Errno](err); ok {
		return e
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return experimentalsys.UnwrapOSError(e)
	}
	for _, known := range []error{fs.ErrInvalid, fs.ErrExist, fs.ErrNotExist, fs.ErrClosed} {
		if errors.Is(err, known) {
			return experimentalsys.UnwrapOSError(known)
		}
	}
	return experimentalsys.EPERM
}
