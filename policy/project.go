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

// Limits of a project's configuration.
const (
	maxProjectFiles = 1000
	maxProjectBytes = 16 << 20
	maxProjectDepth = 16
)

// ProjectFile is a file of a project's configuration.
type ProjectFile struct {
	Path   string `json:"path"` // relative to the project directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// projectFiles lists the files and directories of a project's configuration.
var projectFiles = []string{"loadout.yaml", ".mcp.json", ".loadout"}

// projectSkillsDir is not part of the configuration: skills are approved by
// their own digests.
const projectSkillsDir = ".loadout/skills"

// ProjectDigest returns the digest of the configuration in a project directory,
// and its files sorted by path: loadout.yaml, .mcp.json, and everything below
// .loadout except skills. The digest depends on names and content, not on modes
// and times. A project without such files has a digest and no files.
//
// ProjectDigest returns an error if the configuration has more than 1,000
// files, 16 MiB or 16 levels. It also rejects symbolic links, pipes and the
// like, because their content could change without changing the digest.
func ProjectDigest(root *os.Root) (Digest, []ProjectFile, error) {
	w := projectWalk{root: root}
	for _, name := range projectFiles {
		if err := w.add(name, 0); err != nil {
			return "", nil, fmt.Errorf("project configuration: %w", err)
		}
	}
	slices.SortFunc(w.files, func(a, b ProjectFile) int { return strings.Compare(a.Path, b.Path) })
	list, err := json.Marshal(w.files) // names can contain any character
	if err != nil {
		return "", nil, fmt.Errorf("project configuration: %w", err)
	}
	sum := sha256.Sum256(list)
	return Digest("sha256:" + hex.EncodeToString(sum[:])), w.files, nil
}

// ContainsProjectFile reports whether files has an entry with this name
// (relative to the project directory, with slashes) and exactly these bytes.
// Callers must pass the bytes that they use, because the file may have changed
// since it was trusted.
func ContainsProjectFile(files []ProjectFile, name string, data []byte) bool {
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
	if name == projectSkillsDir {
		return nil
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("name %s is not UTF-8", escapeText(name, 300))
	}
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.seen++; w.seen > maxProjectFiles {
		return fmt.Errorf("too many files (limit %d)", maxProjectFiles)
	}
	switch {
	case info.IsDir():
		return w.addDirectory(name, depth)
	case !info.Mode().IsRegular():
		return fmt.Errorf("not a regular file: %s", escapeText(name, 300))
	}
	return w.addFile(name, info)
}

func (w *projectWalk) addDirectory(name string, depth int) error {
	if depth >= maxProjectDepth {
		return fmt.Errorf("%s: too many directory levels (limit %d)", escapeText(name, 300), maxProjectDepth)
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

func (w *projectWalk) addFile(name string, before fs.FileInfo) error {
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
		return fmt.Errorf("%s was replaced while being read; try again", escapeText(name, 300))
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxProjectBytes-w.bytes+1))
	if err != nil {
		return err
	}
	if w.bytes += n; w.bytes > maxProjectBytes {
		return fmt.Errorf("too large (limit %d bytes)", int64(maxProjectBytes))
	}
	w.files = append(w.files, ProjectFile{Path: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return nil
}
