package library

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/store"
)

// fileCache caches database files in a directory, named by their hashes. It
// verifies the hash on each read, so it never returns a changed or truncated
// file. It is safe for concurrent use.
//
// If the disk is full or the directory is damaged, reads are slower but correct.
type fileCache struct {
	blobs    store.Blobs
	root     *os.Root // nil disables the cache
	maxBytes int64

	mu      sync.Mutex
	entries map[string]*list.Element // elements of used, by hash
	used    *list.List               // holds *cached, most recently used first
	bytes   int64
}

// cached describes a file in the cache.
type cached struct {
	hash string
	size int64
}

// openFileCache opens the cache in dir. It removes unrelated files and shrinks
// the cache to limit bytes. If dir is "", the cache is disabled.
func openFileCache(blobs store.Blobs, dir string, limit int64) (*fileCache, error) {
	c := &fileCache{blobs: blobs, maxBytes: limit, entries: map[string]*list.Element{}, used: list.New()}
	if dir == "" {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create file cache: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open file cache: %w", err)
	}
	c.root = root
	if err := c.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("read file cache: %w", err), root.Close())
	}
	return c, nil
}

// scan adds the files in the cache directory to the index, oldest first.
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
			continue // just removed
		}
		if !skillfile.IsHash(d.Name()) || !fi.Mode().IsRegular() {
			_ = c.root.RemoveAll(d.Name()) // incomplete file of a killed process
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

// close closes the cache directory.
func (c *fileCache) close() error {
	if c.root == nil {
		return nil
	}
	return c.root.Close()
}

// read returns the content of a file from the cache or the database.
func (c *fileCache) read(ctx context.Context, hash string, size int64) ([]byte, error) {
	if data, ok := c.lookup(hash, size); ok {
		return data, nil
	}
	data, err := c.blobs.Read(ctx, hash)
	if err != nil {
		return nil, err
	}
	c.put(hash, data)
	return data, nil
}

// lookup returns the content of a file if it is cached and intact.
func (c *fileCache) lookup(hash string, size int64) ([]byte, bool) {
	c.mu.Lock()
	e, ok := c.entries[hash]
	if ok {
		c.used.MoveToFront(e)
	}
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	if fi, err := c.root.Stat(hash); err == nil && fi.Size() == size {
		if data, err := c.root.ReadFile(hash); err == nil && skillfile.Hash(data) == hash {
			return data, true
		}
	}
	c.removeDamaged(hash)
	return nil, false
}

// removeDamaged evicts the file with the given hash.
func (c *fileCache) removeDamaged(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[hash]; ok {
		c.evict(e)
	}
}

// put caches a file unless it is too large.
func (c *fileCache) put(hash string, data []byte) {
	size := int64(len(data))
	if c.root == nil || size > c.maxBytes/4 { // a single file must not evict all others
		return
	}
	name := "new-" + store.NewID()
	if err := c.root.WriteFile(name, data, 0o600); err != nil {
		_ = c.root.Remove(name)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[hash] != nil || c.root.Rename(name, hash) != nil {
		_ = c.root.Remove(name) // already cached, or the rename failed
		return
	}
	c.add(hash, size)
}

// add records a file that is in the cache directory. If the cache then exceeds
// its limit, add evicts the least recently used files. The caller must hold mu.
func (c *fileCache) add(hash string, size int64) {
	c.entries[hash] = c.used.PushFront(&cached{hash, size})
	c.bytes += size
	for c.bytes > c.maxBytes {
		c.evict(c.used.Back())
	}
}

// evict removes a file from the cache. The caller must hold mu.
func (c *fileCache) evict(e *list.Element) {
	f := c.used.Remove(e).(*cached)
	delete(c.entries, f.hash)
	c.bytes -= f.size
	_ = c.root.Remove(f.hash) // if this fails, the next scan finds the file
}
