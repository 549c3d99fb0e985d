package remote

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// ratioFrom is the size in bytes above which a stream's compression ratio is
// checked. The beginning of a legitimate stream may be highly compressible.
const ratioFrom = 16 << 20

// gunzip decompresses a gzip stream into a temporary file, so that the files of
// a tar archive can be read individually. The caller must close the file.
func (c *Client) gunzip(ctx context.Context, r io.Reader) (*tempFile, error) {
	packed := &countingReader{r: r}
	zr, err := gzip.NewReader(bufio.NewReaderSize(packed, 64<<10))
	if err != nil {
		return nil, damagedError(err)
	}
	t, err := c.newTempFile()
	if err != nil {
		return nil, err
	}
	err = t.copyFrom(ctx, readerFunc(func(p []byte) (int, error) {
		n, err := zr.Read(p)
		if err != nil && err != io.EOF {
			err = damagedError(err)
		}
		return n, err
	}), func(n int64) error {
		switch {
		case n > c.opts.Limits.Unpacked:
			return refusedError("", "archive-unpacked-too-large", "unpacks to more than %d bytes", c.opts.Limits.Unpacked)
		case n > ratioFrom && n > packed.n*maxRatio:
			return refusedError("", "compression-ratio", "unpacks to more than %d times its packed size", maxRatio)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func damagedError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return refusedError("", "damaged", "truncated")
	}
	return refusedError("", "damaged", "damaged: %v", err)
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readTar reads the headers of a tar archive and the offsets of its files. It
// returns the commit that git recorded in the archive, or "".
func (l *archiveListing) readTar(ctx context.Context, r io.ReaderAt, size int64) (commit string, err error) {
	at := io.NewSectionReader(r, 0, size)
	tr := tar.NewReader(at)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		h, err := tr.Next()
		switch {
		case err == io.EOF && l.count == 0:
			return "", refusedError("", "not-an-archive", "contains no tar, or an empty one")
		case err == io.EOF:
			return commit, nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // check rejects these paths like all others
			return "", damagedError(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			if c := h.PAXRecords["comment"]; commit == "" && isCommit(c) {
				commit = c
			}
			if err := l.countEntry(""); err != nil {
				return "", err
			}
			continue
		}
		// The tar reader does not read beyond the header, so the content starts
		// here.
		from, err := at.Seek(0, io.SeekCurrent)
		if err != nil {
			return "", err
		}
		if err := l.addTarEntry(h, r, from); err != nil {
			return "", err
		}
	}
}

// addTarEntry adds an entry whose content starts at offset.
func (l *archiveListing) addTarEntry(h *tar.Header, r io.ReaderAt, offset int64) error {
	name := h.Name
	for strings.HasPrefix(name, "./") { // tar writes paths this way for the current directory
		name = name[2:]
	}
	if err := l.countEntry(name); err != nil {
		return err
	}
	e := entry{path: name, size: h.Size, executable: h.Mode&0o111 != 0, open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, offset, h.Size)), nil
	}}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				e.kind, e.note, e.size = specialEntry, "sparse file; pack it without -S", 0
			}
		}
	case tar.TypeDir:
		return l.checkDirectory(name)
	case tar.TypeSymlink:
		e.kind, e.size = linkEntry, 0
	case tar.TypeLink:
		e.kind, e.note, e.size = linkEntry, "hard link; use the file itself", 0
	default:
		e.kind, e.size = specialEntry, 0
	}
	if name == "" || name == "." {
		return refusedError(h.Name, "path-unclean", "path names no file")
	}
	return l.add(e)
}

// checkDirectory checks the name of a directory. Its other properties are
// ignored.
func (l *archiveListing) checkDirectory(name string) error {
	if r, ok := checkEscape(name); ok {
		return &skill.RefusedError{Refusals: []skill.Refusal{r}}
	}
	return nil
}
