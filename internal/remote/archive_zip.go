package remote

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// readZip reads the directory of a ZIP archive. It returns the commit that git
// recorded in the archive comment, or "".
func (l *archiveListing) readZip(r io.ReaderAt, size int64) (commit string, err error) {
	// A directory entry has 46 bytes plus its name. The reader limits the
	// bytes, because the declared number of entries may be wrong.
	budget := &limitedReaderAt{r: r, left: int64(l.limits.Entries)*256 + 1<<20}
	zr, err := zip.NewReader(budget, size)
	switch {
	case errors.Is(err, errReadLimit):
		return "", refusedError("", "too-many-entries", "directory with more than %d entries, or very long names", l.limits.Entries)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // check rejects these paths like all others
		return "", refusedError("", "not-an-archive", "neither a valid ZIP nor a gzipped tar: %v", err)
	}
	budget.left = -1
	var packed uint64
	for _, f := range zr.File {
		if err := l.addZipEntry(f); err != nil {
			return "", err
		}
		if packed += f.CompressedSize64; packed > uint64(size) || f.CompressedSize64 > uint64(size) {
			return "", refusedError(f.Name, "overlap", "entries overlap: their total size exceeds that of the archive")
		}
	}
	if isCommit(zr.Comment) {
		commit = zr.Comment
	}
	return commit, nil
}

// addZipEntry adds an entry to the listing. It returns an error if a limit is
// exceeded.
func (l *archiveListing) addZipEntry(f *zip.File) error {
	if err := l.countEntry(f.Name); err != nil {
		return err
	}
	mode := f.Mode()
	if strings.HasSuffix(f.Name, "/") {
		return l.checkDirectory(f.Name)
	}
	e := entry{path: f.Name, executable: mode&0o111 != 0, open: f.Open}
	switch {
	case mode.Type() == fs.ModeSymlink:
		e.kind = linkEntry
	case mode.Type() != 0:
		e.kind = specialEntry
	case f.Flags&1 != 0:
		e.kind, e.note = specialEntry, "encrypted"
	case f.Method != zip.Store && f.Method != zip.Deflate:
		e.kind, e.note = specialEntry, fmt.Sprintf("compression method %d is not supported; use deflate", f.Method)
	case f.UncompressedSize64 > 64<<10 && f.UncompressedSize64/maxRatio > f.CompressedSize64:
		e.kind, e.note = specialEntry, fmt.Sprintf("unpacks to more than %d times its packed size", maxRatio)
	case f.UncompressedSize64 > uint64(l.limits.Unpacked):
		e.size = -1 // exceeds every limit
	default:
		e.size = int64(f.UncompressedSize64)
	}
	return l.add(e)
}

var errReadLimit = errors.New("read limit exceeded")

// limitedReaderAt limits the number of bytes read. If left is -1, there is no
// limit.
type limitedReaderAt struct {
	r    io.ReaderAt
	left int64
}

func (b *limitedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.r.ReadAt(p, off)
	if b.left < 0 {
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return 0, errReadLimit
	}
	return n, err
}
