package serverskill

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/skillfile"
)

const (
	maxMemoryBytes = 32 << 20  // of files cached in memory for a server
	maxDiskBytes   = 256 << 20 // of files cached on disk for a server
	maxDiskFiles   = 20_000    // cached on disk for a server
	maxListingFile = 64 << 20
	listingVersion = 1
)

// Cache stores the listing of a server and the files that were read. A file is stored
// under its hash, which is computed again at each access, so that nobody can change
// what the cache returns. The files have other names than in skills, so that no
// search for skills finds them. It is safe for concurrent use, even by several
// processes. A Cache with an empty Dir keeps files in memory only.
type Cache struct {
	Dir string // private to the user; created if necessary
	// MaxMemory is the maximum size of the files in memory, in bytes; 0 means
	// 32 MiB.
	MaxMemory int64

	mu     sync.Mutex
	recent list.List // of *blob, the most recently used first
	byHash map[string]*list.Element
	size   int64
	disk   *usage // of the directory; nil if unknown
}

// usage is the number and total size of files. Other processes may add more.
type usage struct {
	files int
	bytes int64
}

func (u *usage) exceeds(files int, bytes int64) bool { return u.files > files || u.bytes > bytes }

type blob struct {
	hash string
	data []byte
}

// CacheDir returns the directory of a server's cache below dir. key identifies
// the configuration of the server, but not the values of its variables or the
// account that is signed in.
func CacheDir(dir, label, key string) string {
	sum := sha256.Sum256([]byte(label + "\x00" + key))
	return filepath.Join(dir, label+"-"+hex.EncodeToString(sum[:16]))
}

// RemoveCaches removes all caches below dir except those in keep.
func RemoveCaches(dir string, keep []string) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range all {
		if p := filepath.Join(dir, d.Name()); !slices.Contains(keep, p) {
			errs = append(errs, os.RemoveAll(p))
		}
	}
	return errors.Join(errs...)
}

// get returns the content of a file, or nil.
func (c *Cache) get(r Resource) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.byHash[r.SHA256]; at != nil {
		c.recent.MoveToFront(at)
		if data := at.Value.(*blob).data; r.Verify(data) == nil {
			return data
		}
	}
	root := c.open(false)
	if root == nil {
		return nil
	}
	defer root.Close()
	data, err := privatefile.ReadFile(root, r.SHA256, filepath.Join(c.Dir, "files", r.SHA256), skillfile.PortableBytes)
	if err != nil {
		return nil
	}
	if r.Verify(data) != nil {
		_ = root.Remove(r.SHA256) // it is fetched again
		return nil
	}
	c.remember(r.SHA256, data)
	return data
}

// put stores a verified file. Failures only cost another request.
func (c *Cache) put(r Resource, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(r.SHA256, data)
	root := c.open(true)
	if root == nil {
		return
	}
	defer root.Close()
	if c.disk == nil || c.disk.exceeds(maxDiskFiles-1, maxDiskBytes-int64(len(data))) {
		c.disk = shrink(root, maxDiskFiles-1, maxDiskBytes-int64(len(data)))
	}
	if privatefile.ReplaceFile(root, r.SHA256, data) == nil && c.disk != nil {
		c.disk.files++
		c.disk.bytes += int64(len(data))
	}
}

func (c *Cache) remember(hash string, data []byte) {
	if c.byHash[hash] != nil {
		return
	}
	if c.byHash == nil {
		c.byHash = map[string]*list.Element{}
	}
	c.byHash[hash] = c.recent.PushFront(&blob{hash, data})
	for c.size += int64(len(data)); c.size > cmp.Or(c.MaxMemory, maxMemoryBytes); {
		last := c.recent.Back()
		old := c.recent.Remove(last).(*blob)
		delete(c.byHash, old.hash)
		c.size -= int64(len(old.data))
	}
}

// open opens the directory of files. It returns nil if there is none.
func (c *Cache) open(create bool) *os.Root {
	if c.Dir == "" {
		return nil
	}
	dir := filepath.Join(c.Dir, "files")
	if create && os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	root, err := privatefile.OpenDir(dir)
	if err != nil {
		return nil
	}
	return root
}

// maxTemporaryAge is the age at which a temporary file is assumed to be left over
// from a crash.
const maxTemporaryAge = time.Hour

// shrink removes the oldest files if a limit is exceeded, and temporary files left
// over from a crash. It returns the usage of the remaining files, or nil if it is
// unknown.
func shrink(root *os.Root, files int, limit int64) *usage {
	all, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil
	}
	var infos []fs.FileInfo
	now := &usage{}
	for _, d := range all {
		i, err := d.Info()
		switch {
		case err != nil || !i.Mode().IsRegular():
		case !strings.HasPrefix(i.Name(), "."):
			infos = append(infos, i)
			now.files++
			now.bytes += i.Size()
		case time.Since(i.ModTime()) > maxTemporaryAge:
			_ = root.Remove(i.Name())
		}
	}
	if !now.exceeds(files, limit) {
		return now
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, i := range infos {
		if !now.exceeds(files/2, limit/2) { // make room for many files at once
			break
		}
		_ = root.Remove(i.Name())
		now.files--
		now.bytes -= i.Size()
	}
	return now
}

// storedListing is the file format of a listing.
type storedListing struct {
	Version  int           `json:"version"`
	At       time.Time     `json:"at"`
	TTL      time.Duration `json:"ttl"`
	Partial  string        `json:"partial,omitempty"`
	Problems []string      `json:"problems,omitempty"`
	Skills   []any         `json:"skills"` // entries
}

// failure is a failed attempt to list the skills of a server.
type failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// loadFailure returns the stored failure, or nil if there is none.
func (c *Cache) loadFailure() *failure {
	if c.Dir == "" {
		return nil
	}
	data, err := privatefile.New(filepath.Join(c.Dir, failureFile), 16<<10).Read()
	var f failure
	if err != nil || json.Unmarshal(data, &f) != nil || f.At.After(time.Now()) {
		return nil
	}
	return &f
}

const failureFile = "failure.json"

// storeFailure stores a failure for later processes, or removes it if f is nil. If
// that fails, they only connect more often.
func (c *Cache) storeFailure(f *failure) {
	if c.Dir == "" || f != nil && os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	root, err := privatefile.OpenDir(c.Dir)
	if err != nil {
		return
	}
	defer root.Close()
	if f == nil {
		_ = root.Remove(failureFile)
		return
	}
	if data, err := json.Marshal(f); err == nil {
		_ = privatefile.ReplaceFile(root, failureFile, data)
	}
}

func (c *Cache) listingFile() *privatefile.File {
	return privatefile.New(filepath.Join(c.Dir, "listing.json"), maxListingFile)
}

// loadListing returns the stored listing, or nil if there is none. It checks the
// entries again.
func (c *Cache) loadListing() *Listing {
	if c.Dir == "" {
		return nil
	}
	data, err := c.listingFile().Read()
	if err != nil {
		return nil
	}
	var s storedListing
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&s) != nil || s.Version != listingVersion {
		return nil
	}
	l := &Listing{At: s.At, TTL: s.TTL, Partial: s.Partial}
	for _, p := range s.Problems {
		l.Problems = append(l.Problems, errors.New(p))
	}
	l.add(s.Skills, map[string]bool{}, len(s.Skills))
	return l
}

// storeListing stores a listing for later processes.
func (c *Cache) storeListing(l *Listing) error {
	if c.Dir == "" {
		return nil
	}
	s := storedListing{Version: listingVersion, At: l.At, TTL: l.TTL, Partial: l.Partial, Skills: []any{}}
	for _, p := range l.Problems {
		s.Problems = append(s.Problems, p.Error())
	}
	for _, e := range l.Entries {
		s.Skills = append(s.Skills, e)
	}
	data, err := plainjson.Line(s)
	if err == nil && len(data) > maxListingFile {
		err = fmt.Errorf("listing too large (%d bytes, limit %d)", len(data), maxListingFile)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	root, err := privatefile.OpenDir(c.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return privatefile.ReplaceFile(root, "listing.json", data)
}
