package pathwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of a watch, and of the symlinks in a path, as in the kernel.
const (
	maxWatches  = 512
	maxSymlinks = 40
	maxReads    = 16 // calls of read(2) in one call of Changed
)

const (
	dirEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB |
		unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	fileEvents = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

// Watch watches paths. It is not safe for concurrent use.
type Watch struct {
	fd      int
	dirs    map[int32]map[string]bool // names to watch in each directory, by watch descriptor
	wds     map[string]int32          // watch descriptors of the directories, by path; nil after New
	changed bool                      // whether there was an event
	buffer  [4096]byte
}

// New watches absolute paths. A change after New returns is reported. The error
// matches [ErrUnsupported] if the paths cannot be watched.
func New(paths []string) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("%w: inotify: %w", ErrUnsupported, err)
	}
	w := &Watch{fd: fd, dirs: map[int32]map[string]bool{}, wds: map[string]int32{}}
	for _, p := range paths {
		if err := w.add(p); err != nil {
			w.Close()
			return nil, fmt.Errorf("%w: %s: %w", ErrUnsupported, p, err)
		}
	}
	w.wds = nil
	return w, nil
}

// Close stops watching.
func (w *Watch) Close() {
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
}

// Changed reports whether Stat or Lstat of a path, or the content of the file,
// may differ from that at the time of New. Once it returned true, it always does.
func (w *Watch) Changed() bool {
	for range maxReads {
		if w.changed || w.fd < 0 {
			break
		}
		n, err := unix.Read(w.fd, w.buffer[:])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false
		case errors.Is(err, unix.EINTR):
		case err != nil:
			w.changed = true
		default:
			w.changed = w.isRelevant(w.buffer[:n])
		}
	}
	w.changed = true // assume a change if events arrive faster than they are read
	return true
}

// isRelevant reports whether one of the events concerns a path. An event has the
// watch descriptor, the mask, a cookie and the length of the name, of 4 bytes
// each, and the name with at least one NUL.
func (w *Watch) isRelevant(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		size := int(binary.NativeEndian.Uint32(events[12:]))
		if size > len(events)-unix.SizeofInotifyEvent {
			return true
		}
		name, _, _ := strings.Cut(string(events[unix.SizeofInotifyEvent:][:size]), "\x00")
		names, isDir := w.dirs[wd]
		if mask&unix.IN_Q_OVERFLOW != 0 || !isDir || name == "" || names[name] {
			return true // the event concerns the file or directory itself, or a name in it
		}
		events = events[unix.SizeofInotifyEvent+size:]
	}
	return len(events) > 0
}

// add resolves a path as the kernel does. Before it uses the name of a file, it
// watches the directory, so that no change in between is missed.
func (w *Watch) add(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("not an absolute path")
	}
	dir, rest := "/", strings.Split(filepath.Clean(path), "/")
	symlinks := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..": // in the target of a symlink
			dir = filepath.Dir(dir)
			continue
		}
		if err := w.addName(dir, name); err != nil {
			return ignoreMissing(err)
		}
		at := filepath.Join(dir, name)
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return ignoreMissing(err)
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			dir = at
		case unix.S_IFLNK:
			if symlinks++; symlinks > maxSymlinks {
				return nil // the kernel refuses the path until one of the symlinks changes
			}
			target := make([]byte, unix.PathMax)
			n, err := unix.Readlink(at, target)
			if err != nil {
				return ignoreMissing(err)
			}
			to := string(target[:n])
			if filepath.IsAbs(to) {
				dir = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
		default:
			if len(rest) == 0 {
				_, err := w.watch(at, fileEvents)
				return ignoreMissing(err)
			}
			return nil // not a directory, until the name changes
		}
	}
	return nil
}

// addName watches a name in a directory.
func (w *Watch) addName(dir, name string) error {
	wd, ok := w.wds[dir]
	if !ok {
		var err error
		if wd, err = w.watch(dir, dirEvents|unix.IN_ONLYDIR); err != nil {
			return err
		}
		w.wds[dir] = wd
	}
	if w.dirs[wd] == nil {
		w.dirs[wd] = map[string]bool{}
	}
	w.dirs[wd][name] = true
	return nil
}

// watch adds a watch of a file or directory that is not a symlink.
func (w *Watch) watch(path string, events uint32) (int32, error) {
	if len(w.dirs) >= maxWatches {
		return 0, fmt.Errorf("too many directories (limit %d)", maxWatches)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	if !isLocal[uint32(fs.Type)] {
		return 0, fmt.Errorf("unsupported file system %#x of %s", fs.Type, path)
	}
	wd, err := unix.InotifyAddWatch(w.fd, path, events|unix.IN_DONT_FOLLOW)
	return int32(wd), err
}

// isLocal contains the types of file systems that only this machine changes.
// Their events are complete.
var isLocal = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:      true,
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.F2FS_SUPER_MAGIC:      true,
	unix.TMPFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
}

// ignoreMissing returns nil if err says that a file does not exist. If the file was
// removed a moment ago, there is an event for its directory.
func ignoreMissing(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}
