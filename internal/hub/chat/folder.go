package chat

import (
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
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
)

// folder is where the files of a conversation are while it is open on a node. They are
// kept in the database: fetched before each input, and what was changed is kept before
// the result of a call is.
type folder struct {
	w    *worker
	dir  string
	root *os.Root

	mu    sync.Mutex // guards what follows, and is held while files are looked at
	known map[string]fileState
	told  map[string]bool // files that are not kept, of which the person knows
}

// fileState is a file as it was when it was last looked at.
type fileState struct {
	sha256 string
	size   int64
	time   time.Time
}

// maxLooked bounds the files and directories that are looked at.
const maxLooked = 10_000

func newFolder(ctx context.Context, w *worker) (*folder, error) {
	dir, err := os.MkdirTemp(w.e.opts.Dir, "loadout-session-")
	if err != nil {
		return nil, fmt.Errorf("make the folder of the conversation: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	f := &folder{w: w, dir: dir, root: root, known: map[string]fileState{}, told: map[string]bool{}}
	if err := f.fetch(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) close() error {
	return errors.Join(f.root.Close(), os.RemoveAll(f.dir))
}

// fetch brings the folder to what is kept, where others changed that.
func (f *folder) fetch(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, err := f.w.e.db.Attachments.List(ctx, f.w.id)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, a := range kept {
		there[a.Path] = true
		if f.known[a.Path].sha256 == a.SHA256 {
			continue
		}
		if err := f.write(ctx, a); err != nil {
			return fmt.Errorf("file %q of the conversation: %w", a.Path, err)
		}
	}
	for name := range f.known {
		if there[name] {
			continue
		}
		delete(f.known, name)
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file %q of the conversation: %w", name, err)
		}
	}
	return nil
}

func (f *folder) write(ctx context.Context, a store.Attachment) error {
	data, err := f.w.e.db.Attachments.Read(ctx, a.Session, a.Path)
	if errors.Is(err, store.ErrNotFound) {
		return nil // it was deleted at this moment
	}
	if err != nil {
		return err
	}
	if err := f.root.MkdirAll(path.Dir(a.Path), 0o700); err != nil {
		return err
	}
	if fi, err := f.root.Lstat(a.Path); err == nil && !fi.Mode().IsRegular() { // code made it
		if err := f.root.RemoveAll(a.Path); err != nil {
			return err
		}
	}
	if err := f.put(a.Path, data); err != nil {
		return err
	}
	info, err := f.root.Stat(a.Path)
	if err != nil {
		return err
	}
	f.known[a.Path] = fileState{a.SHA256, info.Size(), info.ModTime()}
	return nil
}

// keep keeps what was changed in the folder. What cannot be kept is told, once.
func (f *folder) keep(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, gone, err := f.changes()
	if err != nil {
		return fmt.Errorf("look at the folder of the conversation: %w", err)
	}
	if len(changed)+len(gone) == 0 {
		return nil
	}
	var refused map[string]error
	err = f.w.locked(ctx, func(c *change) error {
		refused = map[string]error{}
		for name := range gone {
			if err := c.Attachments.Delete(ctx, f.w.id, name); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			one := changed[name]
			err := c.putFile(ctx, name, one.data)
			if errors.Is(err, ErrInvalid) {
				refused[name] = err
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the files of the conversation: %w", err)
	}
	for name := range gone {
		delete(f.known, name)
	}
	for name, one := range changed {
		f.known[name] = one.fileState
		if err := refused[name]; err != nil && !f.told[name] {
			f.told[name] = true
			f.w.journal.note(row{Event: Event{Type: Notice, Text: "it is in the folder until the turn ends, and is not kept: " + err.Error()}})
		}
	}
	return nil
}

// changedFile is a file that is not as it was.
type changedFile struct {
	fileState
	data []byte
}

// changes are the regular files that changed, and those that are gone. Links are not
// followed.
func (f *folder) changes() (changed map[string]changedFile, gone map[string]bool, err error) {
	changed, gone = map[string]changedFile{}, map[string]bool{}
	for name := range f.known {
		gone[name] = true
	}
	looked := 0
	err = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil // what cannot be read is not kept
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		delete(gone, name)
		old, was := f.known[name]
		if was && old.size == info.Size() && old.time.Equal(info.ModTime()) {
			return nil
		}
		data, err := f.read(name)
		if err != nil {
			return nil
		}
		sum := sha256.Sum256(data)
		now := fileState{hex.EncodeToString(sum[:]), info.Size(), info.ModTime()}
		if was && now.sha256 == old.sha256 {
			f.known[name] = now
			return nil
		}
		changed[name] = changedFile{now, data}
		return nil
	})
	if looked > maxLooked {
		clear(gone) // nobody knows
	}
	return changed, gone, err
}

// put writes a file. Where code has put a pipe there by now it fails, as read does: to
// open one may wait for ever, for nobody at the other end.
func (f *folder) put(name string, data []byte) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// read returns a file, of a large one a little more than may be kept.
func (f *folder) read(name string) ([]byte, error) {
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
