package trust

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

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/policy"
)

// Limits on a project's configuration.
const (
	maxConfigFiles = 1000
	maxConfigBytes = 16 << 20
	maxConfigDepth = 16
)

// File describes a file in a project's configuration.
type File struct {
	Path   string `json:"path"` // relative to the project directory, with slashes
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// configFiles lists the files and directories of a project's configuration.
var configFiles = []string{"loadout.yaml", ".mcp.json", ".loadout"}

// skillsDir is not part of the configuration, because skills are approved by
// their own digests.
const skillsDir = ".loadout/skills"

// ConfigDigest returns the digest of the configuration in a project directory,
// and its files sorted by path: loadout.yaml, .mcp.json, and everything below
// .loadout except skills. The digest depends on names and content, not on modes
// and times. A project without such files has a digest too.
//
// ConfigDigest returns an error if the configuration has more than 1,000 files,
// 16 MiB or 16 levels. It rejects symlinks, pipes and other special files,
// because their content could change without changing the digest.
func ConfigDigest(root *os.Root) (policy.Digest, []File, error) {
	w := configWalker{root: root}
	for _, name := range configFiles {
		if err := w.add(name, 0); err != nil {
			return "", nil, fmt.Errorf("read project configuration: %w", err)
		}
	}
	slices.SortFunc(w.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	list, err := json.Marshal(w.files) // names can contain any character
	if err != nil {
		return "", nil, fmt.Errorf("read project configuration: %w", err)
	}
	sum := sha256.Sum256(list)
	return policy.Digest("sha256:" + hex.EncodeToString(sum[:])), w.files, nil
}

// ContainsFile reports whether files has an entry with this name and exactly
// these bytes. The name is slash-separated and relative to the project
// directory. Callers must pass the bytes that they use, because the file may
// have changed since the project was trusted.
func ContainsFile(files []File, name string, data []byte) bool {
	sum := sha256.Sum256(data)
	want := File{Path: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	return slices.Contains(files, want)
}

type configWalker struct {
	root  *os.Root
	files []File
	bytes int64
	seen  int
}

func (w *configWalker) add(name string, depth int) error {
	if name == skillsDir {
		return nil
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("file name %s is not valid UTF-8", printable.Text(name, 300))
	}
	info, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if w.seen++; w.seen > maxConfigFiles {
		return fmt.Errorf("too many files (limit %d)", maxConfigFiles)
	}
	switch {
	case info.IsDir():
		return w.addDirectory(name, depth)
	case !info.Mode().IsRegular():
		return fmt.Errorf("not a regular file: %s", printable.Text(name, 300))
	}
	return w.addFile(name, info)
}

func (w *configWalker) addDirectory(name string, depth int) error {
	if depth >= maxConfigDepth {
		return fmt.Errorf("%s: too many directory levels (limit %d)", printable.Text(name, 300), maxConfigDepth)
	}
	d, err := w.root.Open(name)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(maxConfigFiles + 1)
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

func (w *configWalker) addFile(name string, before fs.FileInfo) error {
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
		return fmt.Errorf("%s was replaced while being read; try again", printable.Text(name, 300))
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxConfigBytes-w.bytes+1))
	if err != nil {
		return err
	}
	if w.bytes += n; w.bytes > maxConfigBytes {
		return fmt.Errorf("too large (limit %d bytes)", int64(maxConfigBytes))
	}
	w.files = append(w.files, File{Path: name, Size: n, SHA256: hex.EncodeToString(h.Sum(nil))})
	return nil
}
