package remote

import (
	"context"
	"io"
	"path"
)

// OpenUpload finds the skills in an uploaded file of size bytes: a ZIP, a gzipped
// tar, or a single other file. name is the name of the file, as the client sent it.
// r must remain readable until the collection is closed. The errors are those of
// [Client.Open].
func (c *Client) OpenUpload(ctx context.Context, name string, r io.ReaderAt, size int64) (*Collection, error) {
	l := Location{Kind: Local, URL: path.Base(name)}
	ctx, cancel := c.startSession(ctx, l)
	defer cancel()
	keep := func() error { return nil }
	var magic [2]byte
	_, _ = r.ReadAt(magic[:], 0) // a shorter file is no archive
	if magic == gzipMagic || magic == [2]byte{'P', 'K'} {
		return c.collectArchive(ctx, l, r, size, keep)
	}
	t, err := newTree([]entry{{path: l.URL, size: size, open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(r, 0, size)), nil
	}}})
	if err != nil {
		return nil, err
	}
	return c.collect(ctx, l, Revision{}, t, keep)
}
