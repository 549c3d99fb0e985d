package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// Layout of the cache:
//
//	ENTRY/files          installed files; directories 0555, files 0444 or 0555
//	ENTRY/manifest.json  their manifest, 0600
//	build-ENTRY-…        an unfinished build
//	lock-…               a fixed number of empty lock files
const (
	filesDir     = "files"
	inputDir     = "in"
	manifestFile = "manifest.json"
	buildPrefix  = "build-"
	lockPrefix   = "lock-"
)

// store is a cache of installed packages on disk.
type store struct {
	dir string
	log *slog.Logger
}

// lock locks an entry exclusively. If another process holds the lock, lock calls
// onWait and then waits.
func (s *store) lock(ctx context.Context, entry string, onWait func()) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create package directory: %w", err)
	}
	f, err := os.OpenFile(s.lockFile(entry), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock packages: %w", err)
	}
	if err = filelock.TryLock(f); errors.Is(err, filelock.ErrLocked) {
		onWait()
		err = filelock.Lock(ctx, f)
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without locks two processes may build, but only one result is stored
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lockFile returns the path of an entry's lock file. Several entries may share
// a lock file.
func (s *store) lockFile(entry string) string {
	sum := sha256.Sum256([]byte(entry))
	return filepath.Join(s.dir, lockPrefix+hex.EncodeToString(sum[:1]))
}

// draft is an entry that is being built.
type draft struct {
	store *store
	entry string
	dir   string
	root  *os.Root // root of dir
	// made holds the directories that were created.
	made map[string]bool
}

// begin creates a draft of an entry. It removes what killed builds of the entry
// left behind. The caller must discard the draft.
func (s *store) begin(entry string) (*draft, error) {
	old, _ := filepath.Glob(filepath.Join(s.dir, buildPrefix+entry+"-*"))
	for _, dir := range old {
		removeAll(dir)
	}
	dir, err := os.MkdirTemp(s.dir, buildPrefix+entry+"-")
	if err != nil {
		return nil, fmt.Errorf("create package directory: %w", err)
	}
	d := &draft{store: s, entry: entry, dir: dir, made: map[string]bool{}}
	if d.root, err = os.OpenRoot(dir); err == nil {
		err = d.root.Mkdir(filesDir, 0o700)
	}
	if err != nil {
		d.discard()
		return nil, fmt.Errorf("create package directory: %w", err)
	}
	return d, nil
}

// discard removes the draft unless it was published.
func (d *draft) discard() {
	if d.root != nil {
		d.root.Close()
	}
	if err := removeAll(d.dir); err != nil {
		d.store.log.Warn("cannot remove the directory of an installation", slog.String("directory", d.dir), slog.Any("error", err))
	}
}

// writeInput writes the files for an installer and returns them as a tree.
func (d *draft) writeInput(input map[string][]byte) (sandbox.Tree, error) {
	files := map[string][]byte{lastFile: nil}
	for name, data := range input {
		files[appName+"/"+name] = data
	}
	t := sandbox.Tree{Path: mountpoint.Work}
	if err := d.root.MkdirAll(inputDir+"/"+appName, 0o700); err != nil {
		return t, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := d.root.WriteFile(inputDir+"/"+name, files[name], 0o600); err != nil {
			return t, err
		}
		t.Files = append(t.Files, sandbox.File{Path: name, Size: int64(len(files[name]))})
	}
	var err error
	t.FS, err = fs.Sub(d.root.FS(), inputDir)
	return t, err
}

// writeFile stores a file and returns its hash.
func (d *draft) writeFile(name string, f sandbox.File, r io.Reader) (string, error) {
	p := path.Join(filesDir, name)
	if dir := path.Dir(p); !d.made[dir] {
		if err := d.root.MkdirAll(dir, 0o700); err != nil {
			return "", rejectedError("cannot store file: %v", fileerror.Cause(err))
		}
		for ; dir != "." && !d.made[dir]; dir = path.Dir(dir) {
			d.made[dir] = true
		}
	}
	// On systems that ignore case, an existing file may differ only in case.
	out, err := d.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", rejectedError("cannot store file: %v", fileerror.Cause(err))
	}
	defer out.Close()
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(out, h), r, f.Size); err != nil {
		return "", fmt.Errorf("store packages: %w", err)
	}
	mode := fs.FileMode(0o444)
	if f.Exec {
		mode = 0o555
	}
	if err := out.Chmod(mode); err != nil {
		return "", fmt.Errorf("store packages: %w", err)
	}
	if err := out.Close(); err != nil {
		return "", fmt.Errorf("store packages: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// finish makes the files read-only and writes the manifest.
func (d *draft) finish(files []file) error {
	if err := removeAll(filepath.Join(d.dir, inputDir)); err != nil {
		return err
	}
	for dir := range d.made {
		if err := d.root.Chmod(dir, 0o555); err != nil {
			return fmt.Errorf("write-protect packages: %w", err)
		}
	}
	if err := d.root.Chmod(filesDir, 0o555); err != nil {
		return fmt.Errorf("write-protect packages: %w", err)
	}
	for i := range files {
		info, err := d.root.Lstat(path.Join(filesDir, files[i].Path))
		if err != nil {
			return fmt.Errorf("write-protect packages: %w", err)
		}
		files[i].Stamp = newStamp(info)
	}
	return newManifest(files).write(d.root, manifestFile)
}

// publish turns a finished draft into the entry. It keeps a valid entry that
// another process published first, which can happen on systems without locks,
// and replaces an invalid one.
func (s *store) publish(d *draft) (*entry, error) {
	d.root.Close() // some systems cannot rename an open directory
	if e, err := s.lookup(d.entry); e != nil {
		return e, nil
	} else if err != nil {
		if err := s.remove(d.entry); err != nil {
			return nil, fmt.Errorf("remove modified packages: %w", err)
		}
	}
	err := os.Rename(d.dir, filepath.Join(s.dir, d.entry))
	e, lookupErr := s.lookup(d.entry)
	if e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("store packages: %w", errors.Join(err, lookupErr))
}

// remove renames an entry before deleting it, so that a partially deleted entry
// is never used.
func (s *store) remove(entry string) error {
	dir, err := os.MkdirTemp(s.dir, buildPrefix+entry+"-")
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(s.dir, entry), filepath.Join(dir, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		removeAll(dir)
		return err
	}
	return removeAll(dir)
}

// removeAll removes a directory, including read-only subdirectories.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700) // RemoveAll reports directories that could not be changed
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// prune implements [Builder.Prune]. It returns the number of removed entries.
func (s *store) prune(ctx context.Context, maxBytes int64, retention time.Duration) (int, error) {
	dirs, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	type old struct {
		name string
		size int64
		used time.Time
	}
	var all []old
	var total int64
	for _, d := range dirs {
		if !d.IsDir() || strings.HasPrefix(d.Name(), lockPrefix) {
			continue
		}
		o := old{name: d.Name()}
		if info, err := os.Stat(filepath.Join(s.dir, o.name, manifestFile)); err == nil {
			o.used = info.ModTime()
		}
		if root, err := os.OpenRoot(filepath.Join(s.dir, o.name)); err == nil {
			if m, err := readManifest(root); err == nil {
				o.size = m.size()
			}
			root.Close()
		}
		all, total = append(all, o), total+o.size
	}
	slices.SortFunc(all, func(a, b old) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	removed := 0
	for _, o := range all {
		if err := ctx.Err(); err != nil {
			return removed, context.Cause(ctx)
		}
		entry, isBuild := strings.CutPrefix(o.name, buildPrefix)
		if isBuild {
			entry = entry[:max(0, strings.LastIndexByte(entry, '-'))]
		} else if total <= maxBytes || time.Since(o.used) < retention {
			continue
		}
		ok, err := s.removeIdle(entry, o.name, isBuild)
		if err != nil {
			return removed, err
		}
		if ok {
			total -= o.size
			removed++
		}
	}
	return removed, nil
}

// removeIdle removes an entry or a draft unless the entry is locked. A draft
// without a lock belongs to a killed build.
func (s *store) removeIdle(entry, name string, isBuild bool) (bool, error) {
	f, err := os.OpenFile(s.lockFile(entry), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if err := filelock.TryLock(f); err != nil {
		return false, nil
	}
	if isBuild {
		return true, removeAll(filepath.Join(s.dir, name))
	}
	return true, s.remove(entry)
}
