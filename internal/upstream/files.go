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
)

// Files is a [Cache] that stores each listing in a file in Dir. It ignores
// corrupt and oversized files. It is safe for concurrent use, even by several
// processes.
type Files struct{ Dir string }

// maxCached is the maximum size of a cached listing in bytes.
const maxCached = 16 << 20

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
	if json.Unmarshal(b, &l) != nil || l.At.IsZero() {
		return nil, nil
	}
	for _, t := range l.Tools {
		if t == nil || t.Name == "" {
			return nil, nil
		}
	}
	return &l, nil
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
