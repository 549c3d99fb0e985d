package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

const (
	manifestVersion = 1
	maxManifest     = 64 << 20
)

// manifest is the JSON file that lists the installed files.
type manifest struct {
	Version int    `json:"version"`
	Digest  string `json:"digest"`
	Files   []file `json:"files"` // sorted
}

// file is the manifest entry of an installed file.
type file struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Exec   bool   `json:"exec,omitempty"`
	Stamp  stamp  `json:"stamp"`
}

// stamp detects whether a file was modified after it was hashed. If the fields
// include the change time and are unchanged, the content is unchanged too,
// because programs cannot set the change time.
type stamp struct {
	Modified int64  `json:"modified"` // nanoseconds
	Changed  int64  `json:"changed,omitempty"`
	Inode    uint64 `json:"inode,omitempty"`
}

func newManifest(files []file) *manifest {
	m := &manifest{Version: manifestVersion, Files: slices.Clone(files)}
	slices.SortFunc(m.Files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	m.Digest = m.digest()
	return m
}

func (m *manifest) digest() string {
	h := sha256.New()
	fmt.Fprintln(h, "loadout installed packages 1")
	for _, f := range m.Files {
		fmt.Fprintf(h, "%s %t %q\n", f.SHA256, f.Exec, f.Path)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (m *manifest) size() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

func (m *manifest) write(root *os.Root, name string) error {
	data, err := json.Marshal(m)
	if err == nil {
		err = root.WriteFile(name, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write package manifest: %w", err)
	}
	return nil
}

func readManifest(root *os.Root) (*manifest, error) {
	f, err := root.Open(manifestFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(m); err != nil || m.Version != manifestVersion || m.Digest != m.digest() {
		return nil, &ChangedError{Reason: "the manifest cannot be read"}
	}
	return m, nil
}

// entry is a verified directory of packages.
type entry struct {
	files    string // path on the host
	manifest *manifest
}

// lookup returns the entry with the given name after verifying it. If there is
// no such entry, it returns nil, nil. If the entry was changed, it returns an error,
// usually a [ChangedError].
func (s *store) lookup(name string) (*entry, error) {
	dir := filepath.Join(s.dir, name)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	m, err := readManifest(root)
	if err != nil {
		return nil, err
	}
	stale, err := m.check(root)
	if err != nil {
		return nil, err
	}
	if stale { // for example after a backup was restored
		const temp = manifestFile + ".new"
		err := m.write(root, temp)
		if err == nil {
			err = root.Rename(temp, manifestFile)
		}
		if err != nil {
			s.log.Warn("cannot update the stamps of installed packages", slog.String("directory", dir), slog.Any("error", err))
		}
	} else {
		now := time.Now()
		os.Chtimes(filepath.Join(dir, manifestFile), now, now) // only used by prune
	}
	return &entry{filepath.Join(dir, filesDir), m}, nil
}

// check compares an entry with its manifest. The entry must contain exactly the
// listed files, unchanged and without symlinks. Files whose stamps differ are
// hashed again, and their stamps are updated. stale reports whether any stamp
// was updated.
func (m *manifest) check(root *os.Root) (stale bool, err error) {
	left := make(map[string]int, len(m.Files))
	for i, f := range m.Files {
		left[f.Path] = i
	}
	err = fs.WalkDir(root.FS(), filesDir, func(p string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(p, filesDir), "/")
		if err != nil {
			return &ChangedError{name, "cannot be read: " + fileerror.Cause(err).Error()}
		}
		if d.IsDir() {
			return nil
		}
		i, ok := left[name]
		if !ok {
			return &ChangedError{name, "was not installed"}
		}
		delete(left, name)
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() != m.Files[i].Size {
			return &ChangedError{name, "differs from the installed file"}
		}
		if now := newStamp(info); !hasChangeTime || now != m.Files[i].Stamp {
			if sum, err := hashFile(root, p); err != nil || sum != m.Files[i].SHA256 {
				return &ChangedError{name, "differs from the installed file"}
			}
			stale, m.Files[i].Stamp = stale || now != m.Files[i].Stamp, now
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for name := range left {
		return false, &ChangedError{name, "is missing"}
	}
	return stale, nil
}

func hashFile(root *os.Root, p string) (string, error) {
	f, err := root.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
