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

// Files is a [SummaryCache] that stores each listing in a file in Dir. It ignores
// corrupt and oversized files. It is safe for concurrent use, even by several
// processes.
type Files struct{ Dir string }

const (
	maxCached    = 16 << 20 // maximum size of a cached listing in bytes
	maxSummary   = 8 << 10  // maximum size of a summary in bytes
	maxSummaries = 4        // maximum number of summaries of a listing
)

// cachedFile is the content of a file. The time and the summaries come first, so
// that they can be read without the tools. Earlier programs ignore the summaries,
// and their files have none.
type cachedFile struct {
	At        time.Time       `json:"at"`
	Summaries []storedSummary `json:"summaries,omitempty"`
	*Listing
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
	c := cachedFile{Listing: &l}
	if json.Unmarshal(b, &c) != nil || c.At.IsZero() {
		return nil, nil
	}
	l.At, l.summaries = c.At, c.Summaries
	for _, t := range l.Tools {
		if t == nil || t.Name == "" {
			return nil, nil
		}
	}
	return &l, nil
}

// Store replaces the cached listing for a configuration digest.
func (f *Files) Store(digest string, l *Listing) error { return f.store(digest, l, nil) }

// LoadSummary implements [SummaryCache]. It reads only the start of the file.
func (f *Files) LoadSummary(digest, key string) (json.RawMessage, error) {
	_, all, err := f.head(digest)
	return findSummary(all, key), err
}

// StoreSummary implements [SummaryCache]. It keeps the newest summaries.
func (f *Files) StoreSummary(digest string, l *Listing, key string, summary json.RawMessage) error {
	if len(summary) > maxSummary {
		return fmt.Errorf("summary too large to cache (%d bytes, limit %d)", len(summary), maxSummary)
	}
	at, have, err := f.head(digest)
	switch {
	case err != nil:
		return err
	case at.After(l.At):
		return nil
	case !at.Equal(l.At):
		have = nil
	}
	all := []storedSummary{{key, summary}}
	for _, s := range have {
		if s.Key != key && len(all) < maxSummaries {
			all = append(all, s)
		}
	}
	return f.store(digest, l, all)
}

// head reads the time and the summaries of a cached listing. They are empty if
// there is no listing, or if an earlier program wrote it.
func (f *Files) head(digest string) (at time.Time, all []storedSummary, err error) {
	file, err := os.Open(f.file(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil, nil
	}
	if err != nil {
		return at, nil, err
	}
	defer file.Close()
	d := json.NewDecoder(io.LimitReader(file, maxSummaries*(maxSummary+1<<10)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return at, nil, nil
	}
	for _, field := range []struct {
		name string
		to   any
	}{{"at", &at}, {"summaries", &all}} {
		if t, err := d.Token(); err != nil || t != field.name || d.Decode(field.to) != nil {
			return at, nil, nil
		}
	}
	return at, all, nil
}

// store replaces a cached listing.
func (f *Files) store(digest string, l *Listing, summaries []storedSummary) error {
	b, err := json.Marshal(cachedFile{l.At, summaries, l})
	if err != nil {
		return err
	}
	if len(b) > maxCached {
		return fmt.Errorf("listing too large to cache (%d bytes, limit %d)", len(b), maxCached)
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.Dir, ".tools-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails if the file was renamed
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.file(digest))
}
