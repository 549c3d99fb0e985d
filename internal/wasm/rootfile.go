package wasm

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// rootFile is an open regular file or directory of a [rootFS].
type rootFile struct {
	experimentalsys.UnimplementedFile
	fs   *rootFS
	name string // path used to open the file; a rename does not change it
	file *os.File
	dir  bool

	append  bool // writes go to the end
	appends bool // the system appends, also with other writers
	listed  bool // entries were read since the directory was opened
}

var _ experimentalsys.File = (*rootFile)(nil)

func (f *rootFile) IsDir() (bool, experimentalsys.Errno) { return f.dir, 0 }

func (f *rootFile) Stat() (sys.Stat_t, experimentalsys.Errno) { return stat(f.file.Stat()) }

func (f *rootFile) Dev() (uint64, experimentalsys.Errno) {
	st, e := f.Stat()
	return st.Dev, e
}

func (f *rootFile) Ino() (sys.Inode, experimentalsys.Errno) {
	st, e := f.Stat()
	return st.Ino, e
}

func (f *rootFile) IsAppend() bool { return f.append }

// SetAppend sets whether writes go to the end. It cannot disable append mode on
// a file that the system opened for appending.
func (f *rootFile) SetAppend(enable bool) experimentalsys.Errno {
	switch {
	case f.dir:
		return experimentalsys.EISDIR
	case f.appends && !enable:
		return experimentalsys.ENOSYS
	}
	f.append = enable
	return 0
}

func (f *rootFile) Read(b []byte) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	return result(f.file.Read(b))
}

func (f *rootFile) Pread(b []byte, off int64) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return result(f.file.ReadAt(b, off))
}

func (f *rootFile) Write(b []byte) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	if f.append && !f.appends {
		if _, err := f.file.Seek(0, io.SeekEnd); err != nil {
			return 0, errno(err)
		}
	}
	return result(f.file.Write(b))
}

// Pwrite appends to a file in append mode, as Linux does; Go would return an
// error.
func (f *rootFile) Pwrite(b []byte, off int64) (int, experimentalsys.Errno) {
	if f.dir || f.append {
		return f.Write(b)
	}
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return result(f.file.WriteAt(b, off))
}

// position is an alias of int64 that hides Seek from vet, which expects the
// signature of io.Seeker. wazero requires another result type.
type position = int64

// Seek supports only the start of a directory. It makes new entries visible.
func (f *rootFile) Seek(offset position, whence int) (int64, experimentalsys.Errno) {
	if f.dir {
		if offset != 0 || whence != io.SeekStart {
			return 0, experimentalsys.EISDIR
		}
		return 0, f.rewind()
	}
	if uint(whence) > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	at, err := f.file.Seek(offset, whence)
	return at, errno(err)
}

// rewind reopens the directory, which works on every system, and fails if it
// was replaced.
func (f *rootFile) rewind() experimentalsys.Errno {
	if !f.listed {
		return 0
	}
	again, err := f.fs.root.OpenFile(f.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return errno(err)
	}
	before, err := f.file.Stat()
	if err == nil {
		var after fs.FileInfo
		if after, err = again.Stat(); err == nil && !os.SameFile(before, after) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		again.Close()
		return errno(err)
	}
	f.file.Close()
	f.file, f.listed = again, false
	return 0
}

// Readdir returns the next n entries, or all if n is not positive. It omits
// entries that were removed in the meantime.
func (f *rootFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.dir {
		return nil, experimentalsys.EBADF
	}
	f.listed = true
	entries, err := f.file.ReadDir(n)
	if err != nil && len(entries) == 0 {
		return nil, errno(err)
	}
	list := make([]experimentalsys.Dirent, 0, len(entries))
	for _, e := range entries {
		// Use the root, because Info of an entry would use the path. C programs
		// call stat for each inode that is missing here.
		info, err := f.fs.root.Lstat(filepath.Join(f.name, e.Name()))
		if err != nil {
			continue
		}
		list = append(list, experimentalsys.Dirent{Name: e.Name(), Type: info.Mode().Type(), Ino: sys.NewStat_t(info).Ino})
	}
	return list, 0
}

func (f *rootFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.dir:
		return experimentalsys.EISDIR
	case size < 0:
		return experimentalsys.EINVAL
	}
	return errno(f.file.Truncate(size))
}

func (f *rootFile) Sync() experimentalsys.Errno { return errno(f.file.Sync()) }

func (f *rootFile) Datasync() experimentalsys.Errno { return f.Sync() }

// Utimens uses the name that the file was opened with.
func (f *rootFile) Utimens(atim, mtim int64) experimentalsys.Errno {
	return f.fs.Utimens(f.name, atim, mtim)
}

func (f *rootFile) Close() experimentalsys.Errno { return errno(f.file.Close()) }

// result returns n bytes read or written. It drops the error if n > 0; the next
// call returns it.
func result(n int, err error) (int, experimentalsys.Errno) {
	if n > 0 {
		return n, 0
	}
	return 0, errno(err)
}
