//go:build unix

package catalog

import (
	"io"
	"os"
)

// openSegmentFile opens a file that is only ever replaced, so an open file does
// not change. It is closed when it is no longer reachable.
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
