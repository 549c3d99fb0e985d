package library

import (
	"cmp"
	"container/list"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// fileCache keeps files of the database in a directory, by the hash of what is in them.
// What it returns was hashed as it was read, so that a file that was changed there, or
// was not written to its end, is never used. It is safe for concurrent use.
//
// A directory that is full or broken costs time, and never an answer.
type fileCache struct {
	blobs store.Blobs
	root  *os.Root // nil where nothing is kept
	most  int64    // bytes

	mu    sync.Mutex
	known map[string]*list.Element // of used, by hash
	used  *list.List               // of *cached, the one used last first
	bytes int64
}

type cached struct {
	hash string
	size int64
}

// openFileCache opens the cache in dir, and removes what is too much, or none of its
// files.
func openFileCache(blobs store.Blobs, dir string, most int64) (*fileCache, error) {
	c := &fileCache{blobs: blobs, most: most, known: map[string]*list.Element{}, used: list.New()}
	if dir == "" {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache of files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache of files: %w", err)
	}
	c.root = root
	if err := c.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the cache of files: %w", err), root.Close())
	}
	return c, nil
}

// scan learns which files are there, those written last counting as used last.
func (c *fileCache) scan() error {
	dir, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return err
	}
	type found struct {
		cached
		at time.Time
	}
	var files []found
	for _, d := range dir {
		fi, err := d.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if !isHash(d.Name()) || !fi.Mode().IsRegular() {
			_ = c.root.RemoveAll(d.Name()) // begun by a process that was killed
			continue
		}
		files = append(files, found{cached{d.Name(), fi.Size()}, fi.ModTime()})
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.hash, b.hash)) })
	for _, f := range files {
		c.add(f.hash, f.size)
	}
	return nil
}

func isHash(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 64 && strings.ToLower(name) == name
}

// close lets go of the directory.
func (c *fileCache) close() error {
	if c.root == nil {
		return nil
	}
	return c.root.Close()
}

// read returns a file whole.
func (c *fileCache) read(ctx context.Context, hash string, size int64) ([]byte, error) {
	if data, ok := c.kept(hash, size); ok {
		return data, nil
	}
	data, err := c.blobs.Read(ctx, hash)
	if err != nil {
		return nil, err
	}
	c.keep(hash, data)
	return data, nil
}

// kept returns a file that is in the directory as it has to be.
func (c *fileCache) kept(hash string, size int64) ([]byte, bool) {
	c.mu.Lock()
	e, ok := c.known[hash]
	if ok {
		c.used.MoveToFront(e)
	}
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	if fi, err := c.root.Stat(hash); err == nil && fi.Size() == size {
		if data, err := c.root.ReadFile(hash); err == nil && skill.Hash(data) == hash {
			return data, true
		}
	}
	c.forget(hash)
	return nil, false
}

// forget removes a file that is not as it has to be.
func (c *fileCache) forget(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.known[hash]; ok {
		c.drop(e)
	}
}

// keep puts a file into the directory, where there is room.
func (c *fileCache) keep(hash string, data []byte) {
	size := int64(len(data))
	if c.root == nil || size > c.most/4 { // one file does not push out all others
		return
	}
	name := "new-" + store.NewID()
	if err := c.root.WriteFile(name, data, 0o600); err != nil {
		_ = c.root.Remove(name)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[hash] != nil || c.root.Rename(name, hash) != nil {
		_ = c.root.Remove(name) // somebody else kept it, or nobody can
		return
	}
	c.add(hash, size)
}

// add counts a file that is there, and drops those not used for longest where that is
// too much; mu is held.
func (c *fileCache) add(hash string, size int64) {
	c.known[hash] = c.used.PushFront(&cached{hash, size})
	c.bytes += size
	for c.bytes > c.most {
		c.drop(c.used.Back())
	}
}

// drop removes a file; mu is held.
func (c *fileCache) drop(e *list.Element) {
	f := c.used.Remove(e).(*cached)
	delete(c.known, f.hash)
	c.bytes -= f.size
	_ = c.root.Remove(f.hash) // one that stays is found by the next scan
}
