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
	name string // as it was opened; a rename does not change it
	file *os.File
	dir  bool

	append  bool // writes go to the end
	appends bool // the system sees to that, also against other processes
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

// SetAppend changes where writes go. A file that the system appends to stays like that.
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

// Pwrite appends to a file in append mode, as Linux does; Go would refuse.
func (f *rootFile) Pwrite(b []byte, off int64) (int, experimentalsys.Errno) {
	if f.dir || f.append {
		return f.Write(b)
	}
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return result(f.file.WriteAt(b, off))
}

// position is an int64 of which vet does not think that Seek must be io.Seeker's; wazero asks for another result.
type position = int64

// Seek of a directory can go to its beginning only, and makes new entries visible.
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

// rewind opens the directory anew, which is the way that works on every system, if it is still the same one.
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

// Readdir returns the next n entries, or all if n is not positive. An entry that is gone meanwhile is left out.
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
		// Through the root, because Info of an entry goes by the path. C programs ask for each inode that is not told.
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

// Utimens goes by the name the file was opened with.
func (f *rootFile) Utimens(atim, mtim int64) experimentalsys.Errno {
	return f.fs.Utimens(f.name, atim, mtim)
}

func (f *rootFile) Close() experimentalsys.Errno { return errno(f.file.Close()) }

// result is n bytes read or written. Bytes that were moved count more than what stopped them: the next call tells.
func result(n int, err error) (int, experimentalsys.Errno) {
	if n > 0 {
		return n, 0
	}
	return 0, errno(err)
}
