package catalog

import (
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// fileList collects the files of a skill. Its buffers are reused, so that listing
// the files of a usual skill allocates only their manifest.
type fileList struct {
	dirents [8 << 10]byte
	paths   []byte // paths, each followed by a NUL
	entries []listedFile
}

// listedFile is a file, or a directory, whose path is paths[from:to].
type listedFile struct {
	from, to int
	kind     kind
	size     int64
	mode     fs.FileMode
}

// maxPooledPaths is the maximum capacity, in bytes, of the paths of a list that is
// reused.
const maxPooledPaths = 64 << 10

var fileLists = sync.Pool{New: func() any { return new(fileList) }}

// listFiles returns the files in a directory tree, sorted by path, without hashes.
// It returns false if the tree has too many files, or anything other than files and
// directories. It must be called only once.
func (d *dirfd) listFiles() (skill.Manifest, bool) {
	l := fileLists.Get().(*fileList)
	defer func() {
		if cap(l.paths) <= maxPooledPaths {
			fileLists.Put(l)
		}
	}()
	l.paths, l.entries = l.paths[:0], l.entries[:0]
	if !l.walk(d, 0, 0) {
		return nil, false
	}
	return l.manifest(), true
}

// manifest returns the files. Their paths share memory.
func (l *fileList) manifest() skill.Manifest {
	l.entries = slices.DeleteFunc(l.entries, func(e listedFile) bool { return e.kind != kindFile })
	if len(l.entries) == 0 {
		return nil
	}
	all := string(l.paths)
	out := make(skill.Manifest, len(l.entries))
	for i, e := range l.entries {
		path := all[e.from:e.to]
		out[i] = skill.File{Path: path, Size: e.size, Script: skillpath.IsScript(path, e.mode)}
	}
	slices.SortFunc(out, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// walk adds the files in d, whose path is paths[from:to] and is empty or ends in a
// slash.
func (l *fileList) walk(d *dirfd, from, to int) bool {
	first := len(l.entries)
	return l.read(d, from, to) && l.visit(d, from, to, first, len(l.entries))
}

// visit sets the sizes and modes of the files in entries[first:last], which were
// read from d, and walks the directories among them.
func (l *fileList) visit(d *dirfd, from, to, first, last int) bool {
	for i := first; i < last; i++ {
		e := l.entries[i]
		name := l.paths[e.from+to-from : e.to+1] // with its NUL
		switch e.kind {
		case kindFile:
			var st unix.Stat_t
			if err := fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || modeKind(st.Mode) != kindFile {
				return false
			}
			l.entries[i].size, l.entries[i].mode = st.Size, fs.FileMode(st.Mode&0o777)
		case kindDir:
			sub, err := d.subNoFollow(string(name[:len(name)-1]))
			if err != nil {
				return false
			}
			at := len(l.paths)
			l.paths = append(append(l.paths, l.paths[e.from:e.to]...), '/')
			ok := l.walk(sub, at, len(l.paths))
			sub.close()
			if !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// read adds the names in d that belong to a skill.
func (l *fileList) read(d *dirfd, from, to int) bool {
	for {
		n, err := d.getdents(l.dirents[:])
		if err != nil || n == 0 {
			return err == nil
		}
		for b := l.dirents[:n]; ; {
			name, k, rest, ok := nextDirent(b)
			if !ok {
				break
			}
			b = rest
			if skillpath.IsIgnored(string(name)) {
				continue
			}
			if len(l.entries) == skillfile.MaxFiles {
				return false
			}
			at := len(l.paths)
			l.paths = append(append(append(l.paths, l.paths[from:to]...), name...), 0)
			l.entries = append(l.entries, listedFile{from: at, to: len(l.paths) - 1, kind: k})
		}
	}
}
