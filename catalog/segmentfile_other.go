//go:build !unix

package catalog

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// openSegmentFile reads a file into memory, because some systems cannot replace
// an open file.
func openSegmentFile(path string) (io.ReaderAt, int64, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if fi.Size() > maxIndex {
		return nil, 0, fmt.Errorf("%s too large (%d bytes, limit %d)", path, fi.Size(), maxIndex)
	}
	b, err := os.ReadFile(path)
	return bytes.NewReader(b), int64(len(b)), err
}
