//go:build unix

package catalog

import (
	"io"
	"os"
)

// openSegmentFile opens a file. Such files are replaced but never modified, so
// the content of an open file does not change. The file is closed when the
// result is no longer reachable.
func openSegmentFile(path string) (io.ReaderAt, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
}
