package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirfd is an open directory. Names are resolved against it by system calls
// that need no path from the root: half the cost of the portable way, for
// what a scan of 10,000 skills does most.
type dirfd struct {
	fd   int
	path string // for messages
}

func openDir(path string) (*dirfd, error) {
	fd, err := openat(unix.AT_FDCWD, path, unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &dirfd{fd, path}, nil
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func (d *dirfd) close() { unix.Close(d.fd) }

func (d *dirfd) sub(name string) (*dirfd, error) {
	fd, err := openat(d.fd, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path + "/" + name, Err: err}
	}
	return &dirfd{fd, d.path + "/" + name}, nil
}

// list returns the names in the directory with their types, unsorted, leaving
// out files that a scan has no use for. It can be called once.
func (d *dirfd) list(buf []byte) ([]dirent, error) {
	var out []dirent
	for {
		n, err := unix.Getdents(d.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: d.path, Err: err}
		}
		if n == 0 {
			return out, nil
		}
		out = appendDirents(out, buf[:n])
	}
}

// appendDirents decodes linux_dirent64 records: inode (8 bytes), offset (8),
// record length (2), type (1), name ending in NUL.
func appendDirents(out []dirent, b []byte) []dirent {
	for len(b) >= 20 {
		size := int(b[16]) | int(b[17])<<8
		if size < 20 || size > len(b) {
			return out
		}
		name := b[19:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		if k := direntKind(b[18]); k == kindFile && !interesting(name) || len(name) <= 2 && (string(name) == "." || string(name) == "..") {
			// passed over
		} else {
			out = append(out, dirent{string(name), k})
		}
		b = b[size:]
	}
	return out
}

func direntKind(t byte) kind {
	switch t {
	case unix.DT_DIR:
		return kindDir
	case unix.DT_REG:
		return kindFile
	case unix.DT_LNK, unix.DT_UNKNOWN:
		return kindUnknown
	}
	return kindOther
}

// stat follows links.
func (d *dirfd) stat(name string) (stamp, kind, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, 0); err != nil {
		return stamp{}, kindOther, &fs.PathError{Op: "stat", Path: d.path + "/" + name, Err: err}
	}
	return stampOf(&st), modeKind(st.Mode), nil
}

func (d *dirfd) self() (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.fd, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	return stampOf(&st), nil
}

// readHead reads the beginning of a file into buf and says what the file was
// when it was read.
func (d *dirfd) readHead(name string, buf []byte) (n int, st stamp, err error) {
	fd, err := openat(d.fd, name, 0)
	if err != nil {
		return 0, stamp{}, &fs.PathError{Op: "open", Path: d.path + "/" + name, Err: err}
	}
	defer unix.Close(fd)
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		return 0, stamp{}, &fs.PathError{Op: "stat", Path: d.path + "/" + name, Err: err}
	}
	if modeKind(raw.Mode) != kindFile {
		return 0, stamp{}, fmt.Errorf("read %s/%s: not a regular file", d.path, name)
	}
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return n, stamp{}, &fs.PathError{Op: "read", Path: d.path + "/" + name, Err: err}
		}
		if m == 0 || n+m >= int(raw.Size) {
			return n + m, stampOf(&raw), nil
		}
		n += m
	}
	return n, stampOf(&raw), nil
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{size: st.Size, mtime: st.Mtim.Nano(), id: fileID{uint64(st.Dev), st.Ino}}
}

func modeKind(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return kindDir
	case unix.S_IFREG:
		return kindFile
	}
	return kindOther
}

func stampOfInfo(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.id = fileID{uint64(st.Dev), st.Ino}
	}
	return s
}
