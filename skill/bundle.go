package skill

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Bounds on the files of one skill. The largest real one seen has 1,104 files
// and 15 MB.
const (
	MaxFiles = 10_000
	MaxBytes = 256 << 20
	maxDirs  = 2_000
)

// What Skills over MCP makes every host accept (SEP-2640, "Limits"); skills
// beyond it work locally and are not served that way.
const (
	PortableFiles = 512
	PortableBytes = 16 << 20
)

// ErrTooLarge says that a skill has more files or bytes than [MaxFiles] or
// [MaxBytes].
var ErrTooLarge = errors.New("skill is too large")

// Bundle is the files of one version of a skill. Paths are relative, slashed
// and confined to the skill: a link that leaves it cannot be opened. It is
// safe for concurrent use; close it when done.
type Bundle struct {
	fs.FS
	Folder string // name of the directory or archive folder it was found in
	close  func() error
}

// NewBundle makes a bundle of fsys. close may be nil.
func NewBundle(fsys fs.FS, folder string, close func() error) *Bundle {
	return &Bundle{FS: fsys, Folder: folder, close: close}
}

// OpenDir opens the skill in the directory dir. The directory may be a link;
// links inside it that leave it are errors when opened.
func OpenDir(dir string) (*Bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open skill directory: %w", err)
	}
	return NewBundle(root.FS(), filepath.Base(dir), root.Close), nil
}

// Close releases the bundle.
func (b *Bundle) Close() error {
	if b.close == nil {
		return nil
	}
	return b.close()
}

// File is one file of a skill.
type File struct {
	Path   string `json:"path"` // relative, slashed
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // 64 lower-case hex digits; empty in a plain listing
	Script bool   `json:"script"` // by its extension or its executable bit
}

// Manifest is the files of a skill, sorted by path, each with its hash.
type Manifest []File

// Digest identifies the manifest: "sha256:" and the hex SHA-256 over the lines
// "<hex>  <path>\n". Modes and times do not count.
func (m Manifest) Digest() string {
	h := sha256.New()
	for _, f := range m {
		io.WriteString(h, f.SHA256+"  "+f.Path+"\n")
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Size is the sum of the sizes of the files.
func (m Manifest) Size() int64 {
	var n int64
	for _, f := range m {
		n += f.Size
	}
	return n
}

// Find returns the file at path.
func (m Manifest) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(m, path, func(f File, p string) int { return cmp.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return m[i], true
}

// List lists the files of the skill without reading them, sorted by path. It
// passes over what [Ignored] names, and reports links that lead out of the
// skill, to a directory or nowhere, which are no part of it. The error wraps
// [ErrTooLarge] where there are more files than [MaxFiles].
func List(fsys fs.FS) (Manifest, Diagnostics, error) {
	return walk(fsys, func(*File, fs.FileInfo) {})
}

// walk is List, with a look at what the system says of each file.
func walk(fsys fs.FS, found func(*File, fs.FileInfo)) (Manifest, Diagnostics, error) {
	var files Manifest
	var ds Diagnostics
	dirs := 0
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if p == "." {
				return err
			}
			ds.add(unreadable(p, err))
			return skipDir(d)
		}
		if p != "." && Ignored(d.Name()) {
			return skipDir(d)
		}
		look := d.Info
		switch {
		case d.IsDir():
			if dirs++; dirs > maxDirs {
				return fmt.Errorf("%w: more than %d directories", ErrTooLarge, maxDirs)
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			look = func() (fs.FileInfo, error) { return fs.Stat(fsys, p) } // follows the link inside the root only
		case !d.Type().IsRegular():
			ds.add(Diagnostic{Warning, "file-special", 0, 0, p + " is not a regular file and is ignored", "remove it", 0})
			return nil
		}
		info, err := look()
		switch {
		case err != nil && d.Type().IsRegular():
			ds.add(unreadable(p, err))
			return nil
		case err != nil:
			ds.add(Diagnostic{Warning, "file-link", 0, 0, p + " is a link that leads out of the skill or nowhere, and is ignored", "put the file itself into the skill", 0})
			return nil
		case !info.Mode().IsRegular():
			ds.add(Diagnostic{Warning, "file-link", 0, 0, p + " is a link to something other than a file, and is ignored", "put the files themselves into the skill", 0})
			return nil
		}
		if len(files) == MaxFiles {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, MaxFiles)
		}
		f := File{Path: p, Size: info.Size(), Script: isScript(p, info.Mode())}
		found(&f, info)
		files = append(files, f)
		return nil
	})
	if err != nil {
		return nil, ds, fmt.Errorf("list files of skill: %w", err)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, ds, nil
}

// ReadManifest lists and hashes the files of the skill. It reads every byte;
// callers with many skills cache what it returns.
func ReadManifest(fsys fs.FS) (Manifest, Diagnostics, error) {
	files, ds, err := List(fsys)
	if err != nil {
		return nil, ds, err
	}
	return hashAll(fsys, files, ds)
}

// hashAll fills in the hashes that are missing.
func hashAll(fsys fs.FS, files Manifest, ds Diagnostics) (Manifest, Diagnostics, error) {
	tooLarge := fmt.Errorf("hash files of skill: %w: more than %d bytes", ErrTooLarge, MaxBytes)
	if files.Size() > MaxBytes {
		return nil, ds, tooLarge // known before a byte is read
	}
	var total int64
	kept := files[:0]
	for _, f := range files {
		if f.SHA256 == "" {
			n, sum, err := HashFile(fsys, f.Path)
			if err != nil {
				ds.add(unreadable(f.Path, err))
				continue
			}
			f.Size, f.SHA256 = n, sum
		}
		if total += f.Size; total > MaxBytes {
			return nil, ds, tooLarge
		}
		kept = append(kept, f)
	}
	return kept, ds, nil
}

// Hash returns the hex SHA-256 of data.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// buffers are for reading files, most of which are smaller than one.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// HashFile returns the size and the hex SHA-256 of the bytes of a file.
func HashFile(fsys fs.FS, path string) (int64, string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.LimitReader(f, MaxBytes+1), buf[:])
	if err != nil {
		return 0, "", err
	}
	if n > MaxBytes {
		return 0, "", fmt.Errorf("hash %s: %w: more than %d bytes", path, ErrTooLarge, MaxBytes)
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

// Ignored reports whether a file or directory of this name is no part of any
// skill: version control, caches, what desktops and editors leave behind.
func Ignored(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", "__pycache__", ".DS_Store", "Thumbs.db", "__MACOSX":
		return true
	}
	switch {
	case strings.HasSuffix(name, "~"), strings.HasPrefix(name, ".#"):
		return true
	case strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 1:
		return true
	case strings.HasPrefix(name, "."):
		ext := path.Ext(name)
		return len(ext) == 4 && strings.HasPrefix(ext, ".sw")
	}
	return false
}

// scriptExtensions are the kinds of files that an interpreter runs.
var scriptExtensions = []string{".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".wasm"}

// IsScript reports whether a path has the extension of a script.
func IsScript(p string) bool { return isScript(p, 0) }

func isScript(p string, mode fs.FileMode) bool {
	return slices.Contains(scriptExtensions, strings.ToLower(path.Ext(p))) || mode&0o111 != 0
}

func skipDir(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func unreadable(path string, err error) Diagnostic {
	d := Diagnostic{Severity: Warning, Code: "file-unreadable", Message: fmt.Sprintf("%s cannot be read and is ignored: %v", path, reason(err)), Fix: "mend or remove it"}
	if errors.Is(err, fs.ErrPermission) {
		d.Fix = "give the user who runs this the right to read it"
	}
	return d
}

// reason is the cause of a file error without the path that the message
// around it has already.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
