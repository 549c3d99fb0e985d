package library

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// manifest returns the file list of a version. It returns an error if the list
// does not match the version's digest.
func (l *Library) manifest(ctx context.Context, v store.Version) (skill.Manifest, error) {
	rows, err := l.db.Versions.Manifest(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	files := make(skill.Manifest, len(rows))
	for i, r := range rows {
		files[i] = skill.File{Path: r.Path, Size: r.Size, SHA256: r.SHA256, Script: skillpath.IsScript(r.Path, 0)}
	}
	if files.Digest() != v.Digest {
		return nil, fmt.Errorf("read files of version %d of skill %q: %w", v.Number, v.SkillID, store.ErrCorrupt)
	}
	return files, nil
}

// bundle returns the files of a version. Later reads from the bundle also use ctx.
func (l *Library) bundle(ctx context.Context, name string, v store.Version) (*skill.Bundle, error) {
	t, err := l.tree(ctx, v)
	if err != nil {
		return nil, err
	}
	return l.treeBundle(ctx, name, t), nil
}

// treeBundle is like bundle, but takes the version's file tree.
func (l *Library) treeBundle(ctx context.Context, name string, t fileTree) *skill.Bundle {
	read := func(f skill.File) ([]byte, error) { return l.files.read(ctx, f.SHA256, f.Size) }
	return skill.NewBundle(&manifestFS{read, t}, name, nil)
}

// tree returns the files and directories of a version, which the caller must not
// modify.
func (l *Library) tree(ctx context.Context, v store.Version) (fileTree, error) {
	if t := l.trees.get(v.Digest); t != nil {
		return t, nil
	}
	files, err := l.manifest(ctx, v)
	if err != nil {
		return nil, err
	}
	t, err := newFileTree(files)
	if err != nil {
		return nil, fmt.Errorf("read files of version %d of skill %q: %w", v.Number, v.SkillID, err)
	}
	l.trees.put(v.Digest, t)
	return t, nil
}

// treeCache caches the file trees of versions by digest. It is safe for concurrent
// use.
type treeCache struct {
	mu    sync.Mutex
	trees map[string]fileTree
	nodes int // number of nodes in all trees
}

// maxCachedNodes is the maximum number of files and directories in a treeCache,
// which take about 10 MB.
const maxCachedNodes = 30_000

// get returns a tree, or nil if it is not cached.
func (c *treeCache) get(digest string) fileTree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trees[digest]
}

// put caches a tree, which must not change. If there are too many nodes, it removes
// all other trees.
func (c *treeCache) put(digest string, t fileTree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trees[digest] != nil {
		return
	}
	if c.nodes += len(t); c.trees == nil || c.nodes > maxCachedNodes {
		c.trees, c.nodes = map[string]fileTree{}, len(t)
	}
	c.trees[digest] = t
}

// manifestFS is a file system that contains the files of a manifest. A file is
// read when it is opened. It is safe for concurrent use.
type manifestFS struct {
	read  func(skill.File) ([]byte, error)
	nodes fileTree
}

var (
	_ fs.ReadDirFS  = (*manifestFS)(nil)
	_ fs.ReadFileFS = (*manifestFS)(nil)
	_ fs.StatFS     = (*manifestFS)(nil)
)

// node is a file or directory of a manifestFS. It implements [fs.FileInfo] and
// [fs.DirEntry].
type node struct {
	name     string
	file     skill.File
	dir      bool
	children []fs.DirEntry // entries of a directory, sorted by name
}

func newManifestFS(files skill.Manifest, read func(skill.File) ([]byte, error)) (*manifestFS, error) {
	t, err := newFileTree(files)
	if err != nil {
		return nil, err
	}
	return &manifestFS{read, t}, nil
}

// fileTree holds the files and directories of a manifest by path.
type fileTree map[string]*node

func newFileTree(files skill.Manifest) (fileTree, error) {
	t := fileTree{".": {name: ".", dir: true}}
	for _, f := range files {
		if !fs.ValidPath(f.Path) || f.Path == "." || t[f.Path] != nil {
			return nil, fmt.Errorf("invalid path %q in manifest: %w", f.Path, store.ErrCorrupt)
		}
		n := &node{name: path.Base(f.Path), file: f}
		t[f.Path] = n
		if !t.addToParent(n, f.Path) {
			return nil, fmt.Errorf("path %q: %w", f.Path, store.ErrCorrupt)
		}
	}
	for _, n := range t {
		slices.SortFunc(n.children, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return t, nil
}

// addToParent adds n to its parent directory, creating missing directories. It
// returns false if a parent is a file.
func (t fileTree) addToParent(n *node, at string) bool {
	for at != "." {
		at = path.Dir(at)
		parent := t[at]
		if parent != nil {
			parent.children = append(parent.children, n)
			return parent.dir
		}
		parent = &node{name: path.Base(at), dir: true, children: []fs.DirEntry{n}}
		t[at], n = parent, parent
	}
	return true
}

func (t *manifestFS) find(op, name string) (*node, error) {
	n := t.nodes[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case n == nil:
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return n, nil
}

// Open opens a file or directory. It reads and verifies a file completely.
func (t *manifestFS) Open(name string) (fs.File, error) {
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return &openDir{node: n}, nil
	}
	data, err := t.read(n.file)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &openFile{node: n, Reader: bytes.NewReader(data)}, nil
}

// ReadFile reads and verifies a file.
func (t *manifestFS) ReadFile(name string) ([]byte, error) {
	n, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errIsDir}
	}
	data, err := t.read(n.file)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// Stat returns information about a file or directory without reading it.
func (t *manifestFS) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadDir returns the entries of a directory, sorted by name.
func (t *manifestFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errNotDir}
	}
	return slices.Clone(n.children), nil
}

var (
	errIsDir  = fmt.Errorf("%w: is a directory", fs.ErrInvalid)
	errNotDir = fmt.Errorf("%w: not a directory", fs.ErrInvalid)
)

func (n *node) Name() string               { return n.name }
func (n *node) Size() int64                { return n.file.Size }
func (n *node) ModTime() time.Time         { return time.Time{} }
func (n *node) IsDir() bool                { return n.dir }
func (n *node) Sys() any                   { return nil }
func (n *node) Type() fs.FileMode          { return n.Mode().Type() }
func (n *node) Info() (fs.FileInfo, error) { return n, nil }

func (n *node) Mode() fs.FileMode {
	if n.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

func (n *node) String() string { return fs.FormatFileInfo(n) }

type openFile struct {
	*node
	*bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *openFile) Close() error               { return nil }
func (f *openFile) Size() int64                { return f.node.Size() }

type openDir struct {
	*node
	at int
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.node, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errIsDir}
}

// ReadDir returns up to n of the remaining entries, or all of them if n <= 0.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	left := d.children[d.at:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 {
		left = left[:min(n, len(left))]
	}
	d.at += len(left)
	return slices.Clone(left), nil
}
