package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// maxRatio is how many times larger than packed a large file may be unpacked.
const maxRatio = 200

// lookArchive looks into the archive at a URL.
func (c *Client) lookArchive(ctx context.Context, l Location) (*Offer, error) {
	t, err := c.download(ctx, l.URL)
	if err != nil {
		return nil, err
	}
	return c.offerArchive(ctx, l, t, t.size, t.Close)
}

// lookFile looks at the SKILL.md at a URL: a skill of one file.
func (c *Client) lookFile(ctx context.Context, l Location) (*Offer, error) {
	resp, err := c.fetch(ctx, l.URL, "file")
	if err != nil {
		return nil, err
	}
	src, err := readFile(resp.Body, place(resp.Request.URL), skill.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	file, folder := skill.FileName, ""
	if u, err := url.Parse(l.URL); err == nil {
		if base := path.Base(u.Path); skill.IsFileName(base) {
			file = base
		}
		if parent := path.Base(path.Dir(u.Path)); skill.PortableName(parent) {
			folder = parent
		}
	}
	t, err := newTree([]entry{inMemory(file, src)})
	if err != nil {
		return nil, err
	}
	t.folder = folder
	return c.offer(ctx, l, Revision{}, t, nil)
}

// readFile reads a body to its end, which has to come within limit, and closes it.
func readFile(body io.ReadCloser, what string, limit int64) ([]byte, error) {
	defer body.Close()
	src, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(src)) > limit {
		return nil, &TooLargeError{what, limit}
	}
	return src, nil
}

// inMemory is a plain file with that content.
func inMemory(p string, src []byte) entry {
	return entry{path: p, size: int64(len(src)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(src))), nil
	}}
}

// offerArchive offers the skills in an archive of size bytes, a ZIP or a gzipped
// tar, whatever it is named. close removes it; where there is no offer, that is
// done.
func (c *Client) offerArchive(ctx context.Context, l Location, r io.ReaderAt, size int64, close func() error) (*Offer, error) {
	a, err := c.openArchive(ctx, r, size, close)
	if err != nil {
		return nil, fmt.Errorf("read archive %s: %w", l.where(), err)
	}
	return c.offer(ctx, l, Revision{Commit: a.commit}, a.tree, a.close)
}

// archive is what is in an archive, until it is closed.
type archive struct {
	tree   *tree
	commit string // that it says it is of, or ""
	close  func() error
}

// openArchive reads the list of files of an archive. close removes what r reads, and
// is called as soon as that is no longer needed.
func (c *Client) openArchive(ctx context.Context, r io.ReaderAt, size int64, close func() error) (*archive, error) {
	var magic [2]byte
	_, _ = r.ReadAt(magic[:], 0) // shorter is neither
	a := &archive{close: close}
	list := &listing{limits: c.opts.Limits}
	var err error
	if magic == [2]byte{0x1f, 0x8b} {
		var spool *temp
		if spool, err = c.unzip(ctx, io.NewSectionReader(r, 0, size)); err == nil {
			err = close()
			a.close = spool.Close
		}
		if err == nil {
			a.commit, err = list.tar(ctx, spool, spool.size)
		}
	} else {
		a.commit, err = list.zip(r, size)
	}
	if err == nil {
		list.stripTop()
		a.tree, err = newTree(list.entries)
	}
	if err != nil {
		if a.close != nil {
			err = errors.Join(err, a.close())
		}
		return nil, err
	}
	return a, nil
}

// listing gathers the entries of an archive, within limits.
type listing struct {
	limits  Limits
	entries []entry
	count   int
	names   int
	total   int64
}

// enter counts an entry of any kind.
func (l *listing) enter(name string) error {
	if l.count++; l.count > l.limits.Entries {
		return refuse("", "too-many-entries", "it has more than %d entries", l.limits.Entries)
	}
	if l.names += len(name); l.names > maxTreePaths {
		return refuse("", "path-too-long", "the paths of its entries have more than %d bytes together", maxTreePaths)
	}
	return nil
}

// add keeps an entry that is no directory.
func (l *listing) add(e entry) error {
	if e.size < 0 || e.size > l.limits.Unpacked-l.total {
		return refuse(e.path, "archive-unpacked-too-large", "with it the archive unpacks to more than %d bytes", l.limits.Unpacked)
	}
	l.total += e.size
	l.entries = append(l.entries, e)
	return nil
}

// stripTop takes away the one top folder that all entries lie in, if they do.
func (l *listing) stripTop() {
	top := ""
	for i, e := range l.entries {
		first, _, nested := strings.Cut(e.path, "/")
		if !nested || first == "" || first == ".." || i > 0 && first != top {
			return
		}
		top = first
	}
	for i := range l.entries {
		l.entries[i].path = l.entries[i].path[len(top)+1:]
	}
}

func refuse(entry, code, format string, args ...any) error {
	if len(entry) > 200 {
		entry = entry[:200] + "…"
	}
	return &skill.RefusedError{Refusals: []skill.Refusal{{Entry: strings.ToValidUTF8(entry, "\ufffd"), Code: code, Message: skill.OneLine(fmt.Sprintf(format, args...))}}}
}

// where is the URL or path of a location as messages have it.
func (l Location) where() string {
	if l.Kind == Local {
		return skill.OneLine(l.URL)
	}
	u, err := url.Parse(l.URL)
	if err != nil {
		return "a URL that cannot be read"
	}
	return place(u)
}
