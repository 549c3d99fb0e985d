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

// Files is a [Cache] in files of a directory, one a configuration. What is
// damaged or too large counts as not there. It is safe for concurrent use, and
// between processes.
type Files struct{ Dir string }

// maxCached bounds a listing in a file, in bytes.
const maxCached = 16 << 20

func (f *Files) file(digest string) string {
	return filepath.Join(f.Dir, strings.TrimPrefix(digest, "sha256:")+".json")
}

// Load returns the listing of a configuration, nil where there is none.
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

// Store keeps the listing of a configuration in place of the one before.
func (f *Files) Store(digest string, l *Listing) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(b) > maxCached {
		return fmt.Errorf("the tools take %d bytes, more than are kept", len(b))
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.Dir, ".tools-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // where it was not renamed
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.file(digest))
}
