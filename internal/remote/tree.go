package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// Limits on the paths in a tree.
const (
	maxTreePath  = 4096     // bytes of a path
	maxTreePaths = 64 << 20 // total bytes of all paths
	maxTreeDirs  = 100_000
)

// entryKind is the file type of an entry.
type entryKind uint8

const (
	plainEntry entryKind = iota
	// linkEntry is a symlink or hard link.
	linkEntry
	// submoduleEntry is another repository, which is not fetched.
	submoduleEntry
	// specialEntry is a device, pipe, sparse or encrypted file.
	specialEntry
)

// entry is a file in a fetched tree. Directories have no entries.
type entry struct {
	path       string // slash-separated, unchecked
	size       int64
	kind       entryKind
	executable bool
	note       string // for specialEntry: why the file cannot be used
	open       func() (io.ReadCloser, error)
}

// tree implements [fs.FS] for a list of files. Only plain files can be opened.
// Reading a file returns exactly the listed number of bytes, or an error. Files
// with invalid paths, and paths below a file, cannot be opened, but check finds
// them in entries. The tree is as safe for concurrent use as the open functions
// of its entries.
type tree struct {
	folder  string  // name of the top folder, or ""
	entries []entry // sorted by path
	files   map[string]*entry
	dirs    map[string][]fs.DirEntry // sorted by name
}

var (
	_ fs.StatFS    = (*tree)(nil)
	_ fs.ReadDirFS = (*tree)(nil)
)

// newTree creates a file system from entries. It sorts and retains the slice.
// If a path leads out of the tree, the error is a [*skill.RefusedError],
// because such paths are never accidental.
func newTree(entries []entry) (*tree, error) {
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	t := &tree{entries: entries, files: make(map[string]*entry, len(entries)), dirs: map[string][]fs.DirEntry{".": nil}}
	var refused []skill.Refusal
	length := 0
	for i := range entries {
		e := &entries[i]
		if length += len(e.path); length > maxTreePaths {
			return nil, fmt.Errorf("total length of the paths exceeds %d bytes", maxTreePaths)
		}
		if r, ok := checkEscape(e.path); ok {
			if len(refused) < maxRefusals {
				refused = append(refused, r)
			}
			continue
		}
		t.insert(e)
		if len(t.dirs) > maxTreeDirs {
			return nil, fmt.Errorf("too many directories (limit %d)", maxTreeDirs)
		}
	}
	if len(refused) > 0 {
		return nil, &skill.RefusedError{Refusals: refused}
	}
	for _, children := range t.dirs {
		slices.SortFunc(children, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	}
	return t, nil
}

// checkEscape reports whether a path leads out of the tree on any system. If
// so, it returns the refusal.
func checkEscape(p string) (skill.Refusal, bool) {
	slashed := strings.ReplaceAll(p, `\`, "/")
	code, message := "", ""
	switch {
	case strings.HasPrefix(slashed, "/"):
		code, message = "absolute-path", "its path is absolute"
	case len(p) >= 2 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z':
		code, message = "drive", "its path names a drive"
	case slashed == ".." || strings.HasPrefix(slashed, "../") || strings.HasSuffix(slashed, "/..") || strings.Contains(slashed, "/../"):
		code, message = "path-escape", "its path contains .."
	default:
		return skill.Refusal{}, false
	}
	if len(p) > 200 {
		p = p[:200] + "…"
	}
	return skill.Refusal{Entry: strings.ToValidUTF8(p, "\ufffd"), Code: code, Message: message}, true
}

// insert adds an entry unless its path is invalid or already exists.
func (t *tree) insert(e *entry) {
	if len(e.path) > maxTreePath || !fs.ValidPath(e.path) || e.path == "." {
		return
	}
	if _, taken := t.files[e.path]; taken {
		return
	}
	if _, taken := t.dirs[e.path]; taken || !t.makeDir(path.Dir(e.path)) {
		return
	}
	t.files[e.path] = e
	dir := path.Dir(e.path)
	t.dirs[dir] = append(t.dirs[dir], fs.FileInfoToDirEntry(e.info()))
}

// makeDir creates a directory and its parents. It returns false if any of them
// is a file.
func (t *tree) makeDir(dir string) bool {
	missing := 0 // directories to create, from dir up
	for d := dir; ; d = path.Dir(d) {
		if _, known := t.dirs[d]; known {
			break
		}
		if _, taken := t.files[d]; taken {
			return false
		}
		missing++
	}
	for d := dir; missing > 0; missing-- {
		up := path.Dir(d)
		if _, known := t.dirs[d]; !known { // otherwise the directory below listed it
			t.dirs[d] = nil
		}
		t.dirs[up] = append(t.dirs[up], fs.FileInfoToDirEntry(dirInfo(d)))
		d = up
	}
	return true
}

// entriesBelow returns the entries below a directory, or all entries for ".".
func (t *tree) entriesBelow(dir string) []entry {
	if dir == "." {
		return t.entries
	}
	from, _ := slices.BinarySearchFunc(t.entries, dir+"/", func(e entry, p string) int { return cmp.Compare(e.path, p) })
	to, _ := slices.BinarySearchFunc(t.entries, dir+"0", func(e entry, p string) int { return cmp.Compare(e.path, p) }) // '0' follows '/'
	return t.entries[from:to]
}

// Open implements [fs.FS]. It opens plain files and directories.
func (t *tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if children, ok := t.dirs[name]; ok {
		return &openDir{info: dirInfo(name), children: children}, nil
	}
	e, ok := t.files[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case e.kind != plainEntry:
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New(e.describeKind())}
	}
	r, err := e.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{info: e.info(), path: name, r: r, left: e.size}, nil
}

// Stat implements [fs.StatFS]. It does not follow symlinks.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	if _, ok := t.dirs[name]; ok && fs.ValidPath(name) {
		return dirInfo(name), nil
	}
	if e, ok := t.files[name]; ok {
		return e.info(), nil
	}
	err := fs.ErrNotExist
	if !fs.ValidPath(name) {
		err = fs.ErrInvalid
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
}

// ReadDir implements [fs.ReadDirFS].
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	children, ok := t.dirs[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(children), nil
}

// describeKind returns the reason why an entry is not a plain file.
func (e *entry) describeKind() string {
	switch {
	case e.note != "":
		return e.note
	case e.kind == linkEntry:
		return "it is a link; replace it with the file itself"
	case e.kind == submoduleEntry:
		return "it is a submodule, which is not fetched"
	}
	return "it is a device, pipe or socket"
}

func (e *entry) info() fileInfo {
	mode := fs.FileMode(0o644)
	switch {
	case e.kind == linkEntry:
		mode |= fs.ModeSymlink
	case e.kind != plainEntry:
		mode |= fs.ModeIrregular
	case e.executable:
		mode |= 0o111
	}
	return fileInfo{path.Base(e.path), e.size, mode}
}

// fileInfo implements [fs.FileInfo] for a file of a tree. It has no times.
type fileInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func dirInfo(dir string) fileInfo { return fileInfo{path.Base(dir), 0, fs.ModeDir | 0o755} }

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// openFile is an open file of a tree. Reading it returns exactly the listed
// number of bytes, or an error.
type openFile struct {
	info fileInfo
	path string
	r    io.ReadCloser
	left int64
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return f.r.Close() }

func (f *openFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var one [1]byte
	if f.left == 0 {
		p = one[:] // expect no further byte
	} else if int64(len(p)) > f.left {
		p = p[:f.left]
	}
	n, err := f.r.Read(p)
	switch {
	case f.left == 0 && n > 0:
		return 0, f.sizeError("more")
	case err == io.EOF && f.left > int64(n):
		return n, f.sizeError("fewer")
	}
	f.left -= int64(n)
	return n, err
}

func (f *openFile) sizeError(than string) error {
	return &fs.PathError{Op: "read", Path: f.path, Err: fmt.Errorf("size mismatch: file has %s than %d bytes", than, f.info.size)}
}

// openDir is an open directory of a tree.
type openDir struct {
	info     fileInfo
	children []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.children)
	} else if len(d.children) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.children))
	out := slices.Clone(d.children[:n])
	d.children = d.children[n:]
	return out, nil
}
