package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Files is a [SummaryCache] that stores each listing in a file in Dir, and its
// summaries in another. It ignores corrupt and oversized files. It is safe for
// concurrent use, even by several processes.
type Files struct{ Dir string }

const (
	maxCached      = 16 << 20                            // maximum size of a cached listing in bytes
	maxSummary     = 8 << 10                             // maximum size of a summary in bytes
	maxSummaries   = 4                                   // maximum number of summaries of a listing
	maxSummaryFile = maxSummaries * (maxSummary + 1<<10) // maximum size of a summary file in bytes
)

// summaryFile is the content of a summary file. It is valid only for the
// listing that it was written for. Earlier versions of this program and other
// processes may replace that listing at any time. Listings are distinguished by
// the modification time of their file, which [Files.Store] sets to the time of
// the listing.
type summaryFile struct {
	At        time.Time       `json:"at"` // modification time of the listing's file
	Summaries []storedSummary `json:"summaries"`
}

// storedSummary is a summary of a listing.
type storedSummary struct {
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data"`
}

// findSummary returns the summary with the given key, or nil.
func findSummary(all []storedSummary, key string) json.RawMessage {
	for _, s := range all {
		if s.Key == key {
			return s.Data
		}
	}
	return nil
}

func (f *Files) file(digest string) string {
	return filepath.Join(f.Dir, strings.TrimPrefix(digest, "sha256:")+".json")
}

func (f *Files) summaryFile(digest string) string {
	return strings.TrimSuffix(f.file(digest), ".json") + ".summary.json"
}

// Load returns the cached listing for a configuration digest, or nil if there
// is none.
func (f *Files) Load(digest string) (*Listing, error) {
	file, err := os.Open(f.file(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxCached+1))
	if err != nil || len(b) > maxCached {
		return nil, err
	}
	var l Listing
	if json.Unmarshal(b, &l) != nil || l.At.IsZero() {
		return nil, nil
	}
	for _, t := range l.Tools {
		if t == nil || t.Name == "" {
			return nil, nil
		}
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	l.modified = info.ModTime()
	l.summaries, err = f.summaries(digest, l.modified)
	return &l, err
}

// Store replaces the cached listing for a configuration digest.
func (f *Files) Store(digest string, l *Listing) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(b) > maxCached {
		return fmt.Errorf("listing too large to cache (%d bytes, limit %d)", len(b), maxCached)
	}
	return f.replace(f.file(digest), b, l.At)
}

// LoadSummary implements [SummaryCache]. It does not read the listing.
func (f *Files) LoadSummary(digest, key string) (json.RawMessage, error) {
	info, err := os.Stat(f.file(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := f.summaries(digest, info.ModTime())
	return findSummary(all, key), err
}

// StoreSummary implements [SummaryCache]. It keeps the newest summaries.
func (f *Files) StoreSummary(digest string, l *Listing, key string, summary json.RawMessage) error {
	if len(summary) > maxSummary {
		return fmt.Errorf("summary too large to cache (%d bytes, limit %d)", len(summary), maxSummary)
	}
	at := l.modified
	if at.IsZero() { // not loaded, but stored
		at = l.At
	}
	info, err := os.Stat(f.file(digest))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Equal(at) {
		return nil
	}
	if err != nil {
		return err
	}
	have, err := f.summaries(digest, at)
	if err != nil {
		return err
	}
	all := []storedSummary{{key, summary}}
	for _, s := range have {
		if s.Key != key && len(all) < maxSummaries {
			all = append(all, s)
		}
	}
	b, err := json.Marshal(summaryFile{at, all})
	if err != nil {
		return err
	}
	return f.replace(f.summaryFile(digest), b, time.Now())
}

// summaries returns the stored summaries of a listing. It returns none if they
// were made from a file of the listing that was modified at another time than at.
func (f *Files) summaries(digest string, at time.Time) ([]storedSummary, error) {
	file, err := os.Open(f.summaryFile(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxSummaryFile+1))
	if err != nil || len(b) > maxSummaryFile {
		return nil, err
	}
	var s summaryFile
	if json.Unmarshal(b, &s) != nil || !s.At.Equal(at) {
		return nil, nil
	}
	return s.Summaries, nil
}

// replace replaces a file and sets its modification time.
func (f *Files) replace(path string, b []byte, modified time.Time) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.Dir, ".tools-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails if the file was renamed
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close(), os.Chtimes(tmp.Name(), time.Time{}, modified)); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
