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
	"path/filepath"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
)

const maxDirs = 2_000

// ErrTooLarge is returned for a skill with more than 10,000 files, 256 MiB or
// 2,000 directories.
var ErrTooLarge = errors.New("skill is too large")

// Bundle holds the files of one version of a skill. Paths are relative, use
// slashes and stay inside the skill: opening a symlink that leads outside
// fails. A Bundle is safe for concurrent use. The caller must close it.
type Bundle struct {
	fs.FS
	Folder string // name of the skill's directory or archive folder; may be empty
	close  func() error
}

// NewBundle returns a bundle of the files in fsys. fsys must be safe for
// concurrent use and must confine symlinks to the skill. Each call of
// [Bundle.Close] calls close, which may be nil.
func NewBundle(fsys fs.FS, folder string, close func() error) *Bundle {
	return &Bundle{FS: fsys, Folder: folder, close: close}
}

// OpenDir opens the skill in dir, which may be a symlink. Opening a symlink
// inside the skill that leads outside fails. OpenDir does not check that dir
// has a SKILL.md. The error wraps [fs.ErrNotExist] if dir does not exist. The
// caller must close the bundle.
func OpenDir(dir string) (*Bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open skill directory: %w", err)
	}
	return NewBundle(root.FS(), filepath.Base(dir), root.Close), nil
}

// Close releases the resources of the bundle. Files must not be opened
// afterwards.
func (b *Bundle) Close() error {
	if b.close == nil {
		return nil
	}
	return b.close()
}

// File describes a file of a skill.
type File struct {
	Path   string `json:"path"` // relative, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // 64 lower-case hex digits; empty if not hashed
	Script bool   `json:"script"` // whether the file has a script extension or an executable bit
}

// Manifest lists the files of a skill, sorted by path in byte order. The files
// have hashes unless [List] returned them for a file system other than a
// [ManifestFS].
type Manifest []File

// Digest returns an identifier of the manifest: "sha256:" and a hex SHA-256. It
// hashes one line per file: the file's hash, two spaces, the path and a line
// feed, as in the output of sha256sum. It ignores file modes and times. All
// files must have hashes.
func (m Manifest) Digest() string {
	h := sha256.New()
	for _, f := range m {
		io.WriteString(h, f.SHA256+"  "+f.Path+"\n")
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Size returns the total size of the files in bytes.
func (m Manifest) Size() int64 {
	var n int64
	for _, f := range m {
		n += f.Size
	}
	return n
}

// Find returns the file at path and whether there is one. m must be sorted.
func (m Manifest) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(m, path, func(f File, p string) int { return cmp.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return m[i], true
}

// List returns the files of the skill, sorted by path, without reading them. It
// skips version control data, caches, and files that desktops and editors
// create. It returns a warning for everything else that it skips: unreadable
// files and directories, special files, and symlinks to a directory, to a file
// outside the skill or to nothing.
//
// The error wraps [ErrTooLarge] if there are more than 10,000 files or 2,000
// directories. Any other error means that the root cannot be read.
func List(fsys fs.FS) (Manifest, Diagnostics, error) {
	if files, ok, err := knownManifest(fsys); ok {
		return files, nil, err
	}
	return walk(fsys, func(*File, fs.FileInfo) {})
}

// walk implements [List] and calls found with the file info of each file.
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
		if p != "." && skillpath.IsIgnored(d.Name()) {
			return skipDir(d)
		}
		stat := d.Info
		switch {
		case d.IsDir():
			if dirs++; dirs > maxDirs {
				return fmt.Errorf("%w: more than %d directories", ErrTooLarge, maxDirs)
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			stat = func() (fs.FileInfo, error) { return fs.Stat(fsys, p) } // follows the symlink only inside the root
		case !d.Type().IsRegular():
			ds.add(Diagnostic{Warning, "file-special", 0, 0, p + " is not a regular file and is ignored", "remove it", 0})
			return nil
		}
		info, err := stat()
		switch {
		case err != nil && d.Type().IsRegular():
			ds.add(unreadable(p, err))
			return nil
		case err != nil:
			ds.add(Diagnostic{Warning, "file-link", 0, 0, p + " is a symbolic link to a missing file or to a file outside the skill, and is ignored", "put the file itself into the skill", 0})
			return nil
		case !info.Mode().IsRegular():
			ds.add(Diagnostic{Warning, "file-link", 0, 0, p + " is a symbolic link to something other than a file, and is ignored", "put the files themselves into the skill", 0})
			return nil
		}
		if len(files) == skillfile.MaxFiles {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, skillfile.MaxFiles)
		}
		f := File{Path: p, Size: info.Size(), Script: skillpath.IsScript(p, info.Mode())}
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

// ReadManifest lists and hashes the files of a skill. It reads every byte, so
// callers with many skills should cache the result; see [Hasher]. It skips the
// same files as [List]. The error wraps [ErrTooLarge] if a limit is exceeded.
func ReadManifest(fsys fs.FS) (Manifest, Diagnostics, error) {
	files, ds, err := List(fsys)
	if err != nil {
		return nil, ds, err
	}
	return hashAll(fsys, files, ds)
}

// hashAll computes the hashes missing from files.
func hashAll(fsys fs.FS, files Manifest, ds Diagnostics) (Manifest, Diagnostics, error) {
	tooLarge := fmt.Errorf("hash files of skill: %w: more than %d bytes", ErrTooLarge, skillfile.MaxBytes)
	if files.Size() > skillfile.MaxBytes {
		return nil, ds, tooLarge // the sizes are known before any file is read
	}
	var total int64
	kept := files[:0]
	for _, f := range files {
		if f.SHA256 == "" {
			n, sum, err := hashFile(fsys, f.Path)
			if err != nil {
				ds.add(unreadable(f.Path, err))
				continue
			}
			f.Size, f.SHA256 = n, sum
		}
		if total += f.Size; total > skillfile.MaxBytes {
			return nil, ds, tooLarge
		}
		kept = append(kept, f)
	}
	return kept, ds, nil
}

// buffers is a pool of buffers for reading files. Most files fit into one
// buffer.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// hashFile returns the size and the hex SHA-256 of a file.
func hashFile(fsys fs.FS, path string) (int64, string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.LimitReader(f, skillfile.MaxBytes+1), buf[:])
	if err != nil {
		return 0, "", err
	}
	if n > skillfile.MaxBytes {
		return 0, "", fmt.Errorf("hash %s: %w: more than %d bytes", path, ErrTooLarge, skillfile.MaxBytes)
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

func skipDir(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func unreadable(path string, err error) Diagnostic {
	d := Diagnostic{Severity: Warning, Code: "file-unreadable", Message: fmt.Sprintf("%s cannot be read and is ignored: %v", path, fileerror.Cause(err)), Fix: "repair or remove it"}
	if errors.Is(err, fs.ErrPermission) {
		d.Fix = "give the user who runs this program permission to read it"
	}
	return d
}
