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
	fs    *rootFS
	name  string // name when the file was opened, even after a rename
	file  *os.File
	isDir bool

	appendMode      bool // writes go to the end
	openedForAppend bool // the system appends, even with concurrent writers
	wasListed       bool // entries were read since the directory was opened
}

var _ experimentalsys.File = (*rootFile)(nil)

func (f *rootFile) IsDir() (bool, experimentalsys.Errno) { return f.isDir, 0 }

func (f *rootFile) Stat() (sys.Stat_t, experimentalsys.Errno) { return stat(f.file.Stat()) }

func (f *rootFile) Dev() (uint64, experimentalsys.Errno) {
	st, e := f.Stat()
	return st.Dev, e
}

func (f *rootFile) Ino() (sys.Inode, experimentalsys.Errno) {
	st, e := f.Stat()
	return st.Ino, e
}

func (f *rootFile) IsAppend() bool { return f.appendMode }

// SetAppend sets whether writes go to the end. It cannot disable append mode
// for a file that was opened in append mode.
func (f *rootFile) SetAppend(enable bool) experimentalsys.Errno {
	switch {
	case f.isDir:
		return experimentalsys.EISDIR
	case f.openedForAppend && !enable:
		return experimentalsys.ENOSYS
	}
	f.appendMode = enable
	return 0
}

func (f *rootFile) Read(b []byte) (int, experimentalsys.Errno) {
	if f.isDir {
		return 0, experimentalsys.EISDIR
	}
	return ioResult(f.file.Read(b))
}

func (f *rootFile) Pread(b []byte, off int64) (int, experimentalsys.Errno) {
	if f.isDir {
		return 0, experimentalsys.EISDIR
	}
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return ioResult(f.file.ReadAt(b, off))
}

func (f *rootFile) Write(b []byte) (int, experimentalsys.Errno) {
	if f.isDir {
		return 0, experimentalsys.EISDIR
	}
	if f.appendMode && !f.openedForAppend {
		if _, err := f.file.Seek(0, io.SeekEnd); err != nil {
			return 0, errno(err)
		}
	}
	return ioResult(f.file.Write(b))
}

// Pwrite writes at an offset. In append mode it appends, as Linux does. Go's
// WriteAt would return an error.
func (f *rootFile) Pwrite(b []byte, off int64) (int, experimentalsys.Errno) {
	if f.isDir || f.appendMode {
		return f.Write(b)
	}
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return ioResult(f.file.WriteAt(b, off))
}

// position is an alias of int64. It hides Seek from vet, which expects the
// signature of io.Seeker, while wazero requires a different result type.
type position = int64

// Seek on a directory supports only seeking to the start, which makes new
// entries visible.
func (f *rootFile) Seek(offset position, whence int) (int64, experimentalsys.Errno) {
	if f.isDir {
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

// rewind reopens the directory, which works on every system. It returns an
// error if the directory was replaced.
func (f *rootFile) rewind() experimentalsys.Errno {
	if !f.wasListed {
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
	f.file, f.wasListed = again, false
	return 0
}

// Readdir returns the next n entries, or all entries if n is not positive. It
// omits entries that were removed after the listing.
func (f *rootFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.isDir {
		return nil, experimentalsys.EBADF
	}
	f.wasListed = true
	entries, err := f.file.ReadDir(n)
	if err != nil && len(entries) == 0 {
		return nil, errno(err)
	}
	list := make([]experimentalsys.Dirent, 0, len(entries))
	for _, e := range entries {
		// Use the root, because Info of an entry would use the path. C programs
		// call stat for each entry that has no inode.
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
	case f.isDir:
		return experimentalsys.EISDIR
	case size < 0:
		return experimentalsys.EINVAL
	}
	return errno(f.file.Truncate(size))
}

func (f *rootFile) Sync() experimentalsys.Errno { return errno(f.file.Sync()) }

func (f *rootFile) Datasync() experimentalsys.Errno { return f.Sync() }

// Utimens sets the times of the file with the name under which this file was
// opened.
func (f *rootFile) Utimens(atim, mtim int64) experimentalsys.Errno {
	return f.fs.Utimens(f.name, atim, mtim)
}

func (f *rootFile) Close() experimentalsys.Errno { return errno(f.file.Close()) }

// ioResult returns the result of reading or writing n bytes. If n > 0, it drops
// the error; the next call returns it.
func ioResult(n int, err error) (int, experimentalsys.Errno) {
	if n > 0 {
		return n, 0
	}
	return 0, errno(err)
}
