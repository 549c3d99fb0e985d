package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of what a project's configuration may be.
const (
	maxProjectFiles = 1000
	maxProjectBytes = 16 << 20
	maxProjectDepth = 16
)

// ProjectFile is a file that a project's configuration consists of.
type ProjectFile struct {
	Path   string `json:"path"` // below the directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// projectFiles are what a project's configuration consists of, files and
// directories.
var projectFiles = []string{"loadout.yaml", ".mcp.json", ".loadout"}

// apartFromProject is below .loadout, and no configuration: skills are approved
// by digests of their own.
const apartFromProject = ".loadout/skills"

// ProjectDigest returns the digest of the configuration in a project's
// directory, and the files it is of, by path: loadout.yaml, .mcp.json, and what
// is below .loadout but its skills. Another byte or name in them is another
// digest; modes and times do not count. Without such files there is a digest
// too, and no file.
//
// It fails where there is more than 1,000 files, 16 MiB or 16 levels of it, and
// where one of them is a link, a pipe or the like, as what that leads to could
// change without the digest.
func ProjectDigest(root *os.Root) (Digest, []ProjectFile, error) {
	w := projectWalk{root: root}
	for _, name := range projectFiles {
		if err := w.add(name, 0); err != nil {
			return "", nil, fmt.Errorf("the configuration of the project: %w", err)
		}
	}
	slices.SortFunc(w.files, func(a, b ProjectFile) int { return strings.Compare(a.Path, b.Path) })
	list, err := json.Marshal(w.files) // names can hold any character
	if err != nil {
		return "", nil, fmt.Errorf("the configuration of the project: %w", err)
	}
	sum := sha256.Sum256(list)
	return Digest("sha256:" + hex.EncodeToString(sum[:])), w.files, nil
}

// Covers reports whether name, a path with slashes below the project's
// directory, is among files with exactly these bytes. Whoever uses a file of a
// trusted project asks it of the bytes that it read: those may be others by now.
func Covers(files []ProjectFile, name string, data []byte) bool {
	sum := sha256.Sum256(data)
	want := ProjectFile{Path: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	return slices.Contains(files, want)
}

type projectWalk struct {
	root  *os.Root
	files []ProjectFile
	bytes int64
	seen  int
}

func (w *projectWalk) add(name string, depth int) error {
	if name == apartFromProject {
		return nil
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("the name %s is not UTF-8: rename it", visible(name, 300))
	}
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.seen++; w.seen > maxProjectFiles {
		return fmt.Errorf("there are more than %d files", maxProjectFiles)
	}
	switch {
	case info.IsDir():
		return w.directory(name, depth)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is a link or no regular file: replace it by what it leads to", visible(name, 300))
	}
	return w.file(name, info)
}

func (w *projectWalk) directory(name string, depth int) error {
	if depth >= maxProjectDepth {
		return fmt.Errorf("%s has more than %d levels", visible(name, 300), maxProjectDepth)
	}
	d, err := w.root.Open(name)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(maxProjectFiles + 1)
	d.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		if err := w.add(path.Join(name, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *projectWalk) file(name string, before fs.FileInfo) error {
	f, err := w.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(before, now) {
		return fmt.Errorf("%s was replaced while it was read: try again", visible(name, 300))
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxProjectBytes-w.bytes+1))
	if err != nil {
		return err
	}
	if w.bytes += n; w.bytes > maxProjectBytes {
		return fmt.Errorf("it has more than %d bytes", int64(maxProjectBytes))
	}
	w.files = append(w.files, ProjectFile{Path: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return nil
}
