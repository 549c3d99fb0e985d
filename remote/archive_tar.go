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

// ratioFrom is the size from which a compressed stream is compared with what it
// unpacks to: the beginning of an honest one may be blank.
const ratioFrom = 16 << 20

// unzip unpacks a gzip stream into a file, so that files of a tar can be read one
// by one. Close it.
func (c *Client) unzip(ctx context.Context, r io.Reader) (*temp, error) {
	packed := &countingReader{r: r}
	zr, err := gzip.NewReader(bufio.NewReaderSize(packed, 64<<10))
	if err != nil {
		return nil, damaged(err)
	}
	t, err := c.temp()
	if err != nil {
		return nil, err
	}
	err = t.fill(ctx, readerFunc(func(p []byte) (int, error) {
		n, err := zr.Read(p)
		if err != nil && err != io.EOF {
			err = damaged(err)
		}
		return n, err
	}), func(n int64) error {
		switch {
		case n > c.opts.Limits.Unpacked:
			return refuse("", "archive-unpacked-too-large", "it unpacks to more than %d bytes", c.opts.Limits.Unpacked)
		case n > ratioFrom && n > packed.n*maxRatio:
			return refuse("", "compression-ratio", "it unpacks to more than %d times its packed size", maxRatio)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return refuse("", "damaged", "it is cut off")
	}
	return refuse("", "damaged", "it is damaged: %v", err)
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

// tar reads the headers of a tar and where its files are in it. It returns the
// commit that git wrote into it, or "".
func (l *listing) tar(ctx context.Context, r io.ReaderAt, size int64) (commit string, err error) {
	at := io.NewSectionReader(r, 0, size)
	tr := tar.NewReader(at)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		h, err := tr.Next()
		switch {
		case err == io.EOF && l.count == 0:
			return "", refuse("", "not-an-archive", "there is no tar in it, or an empty one")
		case err == io.EOF:
			return commit, nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // such paths are refused with all others
			return "", damaged(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			if c := h.PAXRecords["comment"]; commit == "" && isCommit(c) {
				commit = c
			}
			if err := l.enter(""); err != nil {
				return "", err
			}
			continue
		}
		// The reader takes no byte beyond the header, so the content begins here.
		from, err := at.Seek(0, io.SeekCurrent)
		if err != nil {
			return "", err
		}
		if err := l.tarEntry(h, r, from); err != nil {
			return "", err
		}
	}
}

// tarEntry adds one entry, whose content is at from.
func (l *listing) tarEntry(h *tar.Header, r io.ReaderAt, from int64) error {
	name := h.Name
	for strings.HasPrefix(name, "./") { // as tar writes them of the directory it is in
		name = name[2:]
	}
	if err := l.enter(name); err != nil {
		return err
	}
	e := entry{path: name, size: h.Size, executable: h.Mode&0o111 != 0, open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, from, h.Size)), nil
	}}
	switch h.Typeflag {
	case tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				e.kind, e.note, e.size = special, "it is a sparse file; pack it as it is", 0
			}
		}
	case tar.TypeDir:
		return l.directory(name)
	case tar.TypeSymlink:
		e.kind, e.size = link, 0
	case tar.TypeLink:
		e.kind, e.note, e.size = link, "it is a hard link; put the file itself there", 0
	default:
		e.kind, e.size = special, 0
	}
	if name == "" || name == "." {
		return refuse(h.Name, "path-unclean", "its path is that of no file")
	}
	return l.add(e)
}

// directory checks the name of a directory, of which nothing else counts.
func (l *listing) directory(name string) error {
	if r, ok := escapes(name); ok {
		return &skill.RefusedError{Refusals: []skill.Refusal{r}}
	}
	return nil
}
