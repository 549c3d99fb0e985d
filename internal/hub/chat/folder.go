package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
)

// folder is the directory with the files of a conversation that is active on a
// node. It is created at its first use in a turn and then contains the
// conversation's files from the database. Changed files are stored before the
// result of each call.
type folder struct {
	w   *worker
	dir string // path of the directory; unique, even before the directory exists

	mu       sync.Mutex // guards the fields below; held during file access
	root     *os.Root   // nil until the folder is used
	closed   bool
	synced   map[string]fileState
	reported map[string]bool // files that cannot be saved and were reported to the user
}

// fileState describes a file in the folder as it was last fetched from or offered to
// the database, which may have refused it.
type fileState struct {
	sha256 string
	size   int64
	time   time.Time
}

// maxFolderEntries is the maximum number of files and directories visited per
// scan.
const maxFolderEntries = 10_000

func newFolder(w *worker) *folder {
	dir := filepath.Join(cmp.Or(w.e.opts.Dir, os.TempDir()), "loadout-session-"+store.NewID())
	return &folder{w: w, dir: dir, synced: map[string]fileState{}, reported: map[string]bool{}}
}

// open creates the directory if it does not exist, and returns it.
func (f *folder) open(ctx context.Context) (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed: // nobody would remove the directory
		return nil, errors.New("open working directory of conversation: the turn has ended")
	case f.root != nil:
		return f.root, nil
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create working directory of conversation: %w", err)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(f.dir))
	}
	f.root = root
	if err := f.fetchFiles(ctx); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return root, nil
}

func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.remove()
}

// remove removes the directory if it exists. f.mu must be held.
func (f *folder) remove() error {
	if f.root == nil {
		return nil
	}
	err := errors.Join(f.root.Close(), os.RemoveAll(f.dir))
	f.root, f.synced = nil, map[string]fileState{}
	return err
}

// fetchFiles fetches the files of the conversation. f.mu must be held.
func (f *folder) fetchFiles(ctx context.Context) error {
	kept, err := f.w.e.db.Attachments.List(ctx, f.w.id)
	if err != nil {
		return err
	}
	for _, a := range kept {
		if err := f.fetchFile(ctx, a); err != nil {
			return fmt.Errorf("fetch file %q of conversation: %w", a.Path, err)
		}
	}
	return nil
}

func (f *folder) fetchFile(ctx context.Context, a store.Attachment) error {
	data, err := f.w.e.db.Attachments.Read(ctx, a.Session, a.Path)
	if errors.Is(err, store.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	if err := f.root.MkdirAll(path.Dir(a.Path), 0o700); err != nil {
		return err
	}
	if fi, err := f.root.Lstat(a.Path); err == nil && !fi.Mode().IsRegular() { // created by code
		if err := f.root.RemoveAll(a.Path); err != nil {
			return err
		}
	}
	if err := f.writeFile(a.Path, data); err != nil {
		return err
	}
	info, err := f.root.Stat(a.Path)
	if err != nil {
		return err
	}
	f.synced[a.Path] = fileState{a.SHA256, info.Size(), info.ModTime()}
	return nil
}

// save stores the changed files in the database. If a file cannot be stored, save
// notifies the user once.
func (f *folder) save(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == nil {
		return nil // no tool used it
	}
	changed, gone, err := f.findChanges()
	if err != nil {
		return fmt.Errorf("scan working directory of conversation: %w", err)
	}
	if len(changed)+len(gone) == 0 {
		return nil
	}
	var refused map[string]error
	save := func(c *fileChanges) error {
		refused = map[string]error{}
		for name := range gone {
			if err := c.delete(ctx, name); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			err := c.store(ctx, name, changed[name].data)
			if _, full := errors.AsType[*quota.ExceededError](err); full || errors.Is(err, ErrInvalid) {
				refused[name] = err
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	err = f.w.update(ctx, func(c *conversationTx) error { return c.changeFiles(ctx, save) })
	if err != nil {
		return fmt.Errorf("save files of conversation: %w", err)
	}
	for name := range gone {
		delete(f.synced, name)
	}
	for name, one := range changed {
		f.synced[name] = one.fileState
		if err := refused[name]; err != nil && !f.reported[name] {
			f.reported[name] = true
			f.w.journal.queueEvent(eventRow{Event: Event{Type: Notice, Text: "not saved; available in the folder until the turn ends: " + err.Error()}})
		}
	}
	return nil
}

// changedFile is a new or modified file with its content.
type changedFile struct {
	fileState
	data []byte
}

// findChanges returns the regular files that were changed and those that were
// removed. It does not follow symbolic links.
func (f *folder) findChanges() (changed map[string]changedFile, gone map[string]bool, err error) {
	changed, gone = map[string]changedFile{}, map[string]bool{}
	for name := range f.synced {
		gone[name] = true
	}
	looked := 0
	err = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > maxFolderEntries {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // do not save unreadable files
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		delete(gone, name)
		old, was := f.synced[name]
		if was && old.size == info.Size() && old.time.Equal(info.ModTime()) {
			return nil
		}
		data, err := f.readFile(name)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(data)
		now := fileState{hex.EncodeToString(sum[:]), info.Size(), info.ModTime()}
		if was && now.sha256 == old.sha256 {
			f.synced[name] = now
			return nil
		}
		changed[name] = changedFile{now, data}
		return nil
	})
	if looked > maxFolderEntries {
		clear(gone) // the scan is incomplete
	}
	return changed, gone, err
}

// writeFile writes a file. Like readFile, it opens the file without blocking,
// because code may have replaced the file with a named pipe.
func (f *folder) writeFile(name string, data []byte) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// readFile reads at most the first [MaxFile]+1 bytes of a file, so that the
// caller can detect a file that is too large.
func (f *folder) readFile(name string) ([]byte, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if fi, err := file.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(file, MaxFile+1))
}
