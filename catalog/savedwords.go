package catalog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/filelock"
)

// The words of the skills of a directory source are saved next to its index, in
// two files: a large one, and a small one with skills that were added since.
// Each file is valid on its own, because a skill is identified by the stamp of
// its file. A skill that is in no file, or whose file changed, is read again. As
// with the index, an unreadable file, or one for another version or directory,
// is ignored.

const (
	largeSuffix = ".search"
	smallSuffix = ".recent.search"

	// minSaved is the number of unsaved skills at which saving them becomes
	// cheaper than reading them again in the next process.
	minSaved = 16
)

// savedWords holds the saved segments of a source. Each may be nil.
type savedWords struct {
	large, small *savedFile
}

// savedFile is a file with a saved segment of the search index.
type savedFile struct {
	*bm25.Segment // nil if the file is not usable
	path          string
	info          fs.FileInfo
	first         []int32 // index of the first text for each value of the leading bits of a key
	shift         uint
	at            []int32 // as in wordSegment
	live          int
}

// files returns the usable files.
func (w *savedWords) files() []*savedFile {
	var out []*savedFile
	if w != nil {
		for _, f := range []*savedFile{w.large, w.small} {
			if f != nil && f.Segment != nil {
				out = append(out, f)
			}
		}
	}
	return out
}

// assign stores the position of a skill. It returns false if no file contains
// the skill.
func (w *savedWords) assign(e *Entry, at int32) bool {
	if w == nil {
		return false
	}
	key := e.wordKey()
	return key != 0 && (w.large.assign(key, at) || w.small.assign(key, at))
}

func (f *savedFile) assign(key uint64, at int32) bool {
	text, ok := f.find(key)
	if !ok || f.at[text] >= 0 { // a second skill with the same file is read again
		return false
	}
	f.at[text] = at
	f.live++
	return true
}

// discarded returns a copy of f with only the path and the file information, so
// that the file is not opened again until it is replaced.
func (f *savedFile) discarded() *savedFile {
	if f == nil {
		return nil
	}
	return &savedFile{path: f.path, info: f.info}
}

func (f *savedFile) clearPositions() { f.at, f.live = newPositions(f.Len()), 0 }

// find returns the index of the text with the given key.
func (f *savedFile) find(key uint64) (text int32, ok bool) {
	if f == nil || f.Segment == nil {
		return 0, false
	}
	bucket := key >> f.shift
	keys := f.Keys()
	for i := f.first[bucket]; i < f.first[bucket+1]; i++ {
		if keys[i] == key {
			return i, true
		}
	}
	return 0, false
}

// indexKeys computes the table that find uses to look up keys.
func (f *savedFile) indexKeys() {
	n := bits.Len(uint(f.Len()))
	f.shift = uint(64 - n)
	f.first = make([]int32, 1<<n+1)
	bucket := uint64(0)
	for i, key := range f.Keys() {
		for ; bucket <= key>>f.shift; bucket++ {
			f.first[bucket] = int32(i)
		}
	}
	for ; bucket < uint64(len(f.first)); bucket++ {
		f.first[bucket] = int32(f.Len())
	}
}

// openSaved opens the saved segments of the sources of a snapshot, unless they
// are open. It must be called with c.index.mu held.
func (c *Catalog) openSaved(s *Snapshot) {
	before := c.index.saved
	c.index.saved = nil
	used := map[string]bool{}
	for _, l := range s.layers {
		used[l.entries[0].Origin] = true
	}
	for _, src := range c.Sources() {
		d, ok := src.(*dirSource)
		if !ok || d.opts.IndexFile == "" || !used[d.origin] {
			continue
		}
		w := &savedWords{}
		if old := before[d.origin]; old != nil {
			*w = *old
		}
		w.large = openSavedFile(w.large, d, largeSuffix)
		w.small = openSavedFile(w.small, d, smallSuffix)
		if c.index.saved == nil {
			c.index.saved = map[string]*savedWords{}
		}
		c.index.saved[d.origin] = w
	}
}

// openSavedFile opens a saved segment of a source. If the file is still the one
// that old describes, it returns old.
func openSavedFile(old *savedFile, d *dirSource, suffix string) *savedFile {
	path := d.opts.IndexFile + suffix
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if old != nil && os.SameFile(old.info, info) && old.info.Size() == info.Size() && old.info.ModTime().Equal(info.ModTime()) {
		return old
	}
	f := &savedFile{path: path, info: info}
	r, size, err := openSegmentFile(path)
	if err != nil {
		return f
	}
	if f.Segment, err = bm25.OpenSegment(r, size, d.wordLabel()); err == nil {
		f.indexKeys()
	}
	return f
}

// wordLabel identifies everything that determines a skill's words, apart from
// the skill's file.
func (d *dirSource) wordLabel() string { return indexMagic() + d.root }

// saveSearch saves the words of skills whose words are only in memory, if there
// are enough such skills. It skips a source if another process is saving the
// same files or they cannot be written.
func (c *Catalog) saveSearch(ctx context.Context, s *Snapshot) {
	x := &c.index
	x.save.Lock()
	defer x.save.Unlock()
	for _, src := range c.Sources() {
		if d, ok := src.(*dirSource); ok && d.opts.IndexFile != "" && ctx.Err() == nil {
			if err := c.saveWords(ctx, d, s); err != nil {
				c.log.Warn("cannot save the search index", "origin", d.origin, "reason", err)
			}
		}
	}
}

// saveWords saves the words of the skills of a source. It must be called with
// c.index.save held.
func (c *Catalog) saveWords(ctx context.Context, d *dirSource, s *Snapshot) error {
	if !c.index.needsSaving(d, s) {
		return nil
	}
	unlock, err := lockSaved(d)
	if unlock == nil {
		return err
	}
	defer unlock()
	plan := c.planSave(ctx, d, s) // another process may have saved them in the meantime
	if plan == nil {
		return nil
	}
	merged, err := bm25.Merge(plan.texts, plan.parts...)
	if err != nil {
		c.index.discardSaved()
		return err
	}
	suffix := smallSuffix
	if plan.large {
		suffix = largeSuffix
	}
	err = atomicfile.WriteFunc(d.opts.IndexFile+suffix, 0o600, func(w io.Writer) error { return merged.Write(w, d.wordLabel()) })
	if err != nil {
		return err
	}
	if plan.large {
		if err := os.Remove(d.opts.IndexFile + smallSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c.useSaved(ctx, s)
	return nil
}

// useSaved replaces segments in memory with saved ones.
func (c *Catalog) useSaved(ctx context.Context, s *Snapshot) {
	x := &c.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == s {
		_ = c.buildSearchIndex(ctx, s) // reads at most a skill that another process did not save
	}
}

// lockSaved locks the saved segments of a source. unlock is nil if another
// process holds the lock, or if there is an error.
func lockSaved(d *dirSource) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(d.opts.IndexFile), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.opts.IndexFile+largeSuffix+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.TryLock(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		f.Close()
		if errors.Is(err, filelock.ErrLocked) {
			err = nil
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}

// needsSaving reports whether the files of a source should be written, because
// too many of its skills are only in memory or too few of the saved skills
// still exist.
func (x *searchIndex) needsSaving(d *dirSource, s *Snapshot) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != s {
		return false
	}
	unsaved := 0
	for _, m := range x.memory {
		for e, text := range m.texts {
			if e.Origin == d.origin && m.at[text] >= 0 && m.Keys()[text] != 0 {
				unsaved++
			}
		}
	}
	if unsaved >= minSaved {
		return true
	}
	texts, live := 0, 0
	for _, f := range x.saved[d.origin].files() {
		texts, live = texts+f.Len(), live+f.live
	}
	return texts > 4*minSaved && live < texts/2 && countKnown(x.saved[d.origin], d, s) < texts/2
}

// countKnown returns the number of saved skills that exist, even if they are
// hidden.
func countKnown(w *savedWords, d *dirSource, s *Snapshot) int {
	n := 0
	for key := range wordKeys(d, s) {
		for _, f := range w.files() {
			if _, ok := f.find(key); ok {
				n++
				break
			}
		}
	}
	return n
}

// wordKeys returns the keys of all skills of a source, including hidden ones and
// those that another source lists too.
func wordKeys(d *dirSource, s *Snapshot) map[uint64]bool {
	keys := map[uint64]bool{}
	for _, l := range s.layers {
		if l.entries[0].Origin != d.origin {
			continue
		}
		for _, e := range l.entries {
			if key := e.wordKey(); key != 0 {
				keys[key] = true
			}
		}
	}
	return keys
}

// savePlan describes a file to write.
type savePlan struct {
	large bool // whether to write the large file and remove the small one
	texts int
	parts []bm25.Part
}

// savedText identifies the words of a skill that are to be saved.
type savedText struct {
	key        uint64
	part, text int32
}

// planSave decides which file of a source to write. It returns nil if nothing
// needs to be saved.
func (c *Catalog) planSave(ctx context.Context, d *dirSource, s *Snapshot) *savePlan {
	c.useSaved(ctx, s)
	if !c.index.needsSaving(d, s) {
		return nil
	}
	x := &c.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of != s {
		return nil
	}
	known := wordKeys(d, s)
	w := x.saved[d.origin]
	var parts []bm25.Part
	var texts []savedText // those of the large file last
	add := func(segment *bm25.Segment, wanted func(text int) bool) int {
		before := len(texts)
		for text, key := range segment.Keys() {
			if key != 0 && wanted(text) {
				delete(known, key)
				texts = append(texts, savedText{key, int32(len(parts)), int32(text)})
			}
		}
		parts = append(parts, bm25.Part{Segment: segment, At: newPositions(segment.Len())})
		return len(texts) - before
	}
	large := w != nil && w.large != nil && w.large.Segment != nil
	largeLive := 0
	if large {
		for _, key := range w.large.Keys() {
			if known[key] {
				largeLive++
			}
		}
	}
	isKnown := func(segment *bm25.Segment) func(int) bool {
		return func(text int) bool { return known[segment.Keys()[text]] }
	}
	if w != nil && w.small != nil && w.small.Segment != nil {
		add(w.small.Segment, isKnown(w.small.Segment))
	}
	for _, m := range x.memory {
		ours := make([]bool, m.Len())
		for e, text := range m.texts {
			ours[text] = e.Origin == d.origin && m.at[text] >= 0
		}
		add(m.Segment, func(text int) bool { return ours[text] && known[m.Keys()[text]] })
	}
	plan := &savePlan{large: !large || len(texts)*maxPartShare > largeLive || largeLive < w.large.Len()/2}
	if plan.large && large {
		add(w.large.Segment, isKnown(w.large.Segment))
	}
	slices.SortFunc(texts, func(a, b savedText) int { return cmp.Compare(a.key, b.key) })
	for at, t := range texts {
		parts[t.part].At[t.text] = int32(at)
	}
	plan.texts, plan.parts = len(texts), parts
	return plan
}
