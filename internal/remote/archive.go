package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// maxRatio is the maximum compression ratio of a large file.
const maxRatio = 200

// openArchiveURL lists the skills in the archive at a URL.
func (c *Client) openArchiveURL(ctx context.Context, l Location) (*Collection, error) {
	t, err := c.download(ctx, l.URL)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(t, 0, t.size)); err != nil {
		return nil, errors.Join(fmt.Errorf("read archive %s: %w", l.displayURL(), err), t.Close())
	}
	o, err := c.collectArchive(ctx, l, t, t.size, t.Close)
	if err != nil {
		return nil, err
	}
	o.Revision.Digest = formatDigest(sum.Sum(nil))
	return o, nil
}

func formatDigest(sum []byte) string { return fmt.Sprintf("sha256:%x", sum) }

// openFileURL returns the skill in the SKILL.md at a URL.
func (c *Client) openFileURL(ctx context.Context, l Location) (*Collection, error) {
	resp, err := c.fetch(ctx, l.URL, "file")
	if err != nil {
		return nil, err
	}
	src, err := readFile(resp.Body, cleanAddress(resp.Request.URL), skillfile.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	file, folder := skill.FileName, ""
	if u, err := url.Parse(l.URL); err == nil {
		if base := path.Base(u.Path); skillpath.IsSkillFile(base) {
			file = base
		}
		if parent := path.Base(path.Dir(u.Path)); skillname.IsPortable(parent) {
			folder = parent
		}
	}
	t, err := newTree([]entry{memoryEntry(file, src)})
	if err != nil {
		return nil, err
	}
	t.folder = folder
	sum := sha256.Sum256(src)
	return c.collect(ctx, l, Revision{Digest: formatDigest(sum[:])}, t, nil)
}

// readFile reads and closes a body of at most limit bytes.
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

// memoryEntry returns a plain file entry with the given content.
func memoryEntry(p string, src []byte) entry {
	return entry{path: p, size: int64(len(src)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(src))), nil
	}}
}

// collectArchive lists the skills in an archive of size bytes. The archive is a
// ZIP or a gzipped tar, regardless of its name. close removes the archive and
// is also called after an error.
func (c *Client) collectArchive(ctx context.Context, l Location, r io.ReaderAt, size int64, close func() error) (*Collection, error) {
	a, err := c.openArchive(ctx, r, size, close)
	if err != nil {
		return nil, fmt.Errorf("read archive %s: %w", l.displayURL(), err)
	}
	return c.collect(ctx, l, Revision{Commit: a.commit}, a.tree, a.close)
}

// archive is an open archive whose files can be read.
type archive struct {
	tree   *tree
	commit string // commit recorded in the archive, or ""
	close  func() error
}

// gzipMagic is the beginning of each gzip file.
var gzipMagic = [2]byte{0x1f, 0x8b}

// openArchive reads the file list of an archive. close, which removes the data
// of r, is called as soon as r is no longer needed.
func (c *Client) openArchive(ctx context.Context, r io.ReaderAt, size int64, close func() error) (*archive, error) {
	var magic [2]byte
	_, _ = r.ReadAt(magic[:], 0) // a shorter file is neither format
	a := &archive{close: close}
	list := &archiveListing{limits: c.opts.Limits}
	var err error
	if magic == gzipMagic {
		var spool *tempFile
		if spool, err = c.gunzip(ctx, io.NewSectionReader(r, 0, size)); err == nil {
			err = close()
			a.close = spool.Close
		}
		if err == nil {
			a.commit, err = list.readTar(ctx, spool, spool.size)
		}
	} else {
		a.commit, err = list.readZip(r, size)
	}
	if err == nil {
		if !c.opts.KeepTop {
			list.stripTop()
		}
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

// archiveListing collects the entries of an archive while enforcing limits.
type archiveListing struct {
	limits    Limits
	entries   []entry
	count     int
	pathBytes int
	unpacked  int64
}

// countEntry counts an entry of any kind. It returns an error if a limit is
// exceeded.
func (l *archiveListing) countEntry(name string) error {
	if l.count++; l.count > l.limits.Entries {
		return refusedError("", "too-many-entries", "more than %d entries", l.limits.Entries)
	}
	if l.pathBytes += len(name); l.pathBytes > maxTreePaths {
		return refusedError("", "path-too-long", "total length of the paths exceeds %d bytes", maxTreePaths)
	}
	return nil
}

// add adds an entry that is not a directory.
func (l *archiveListing) add(e entry) error {
	if e.size < 0 || e.size > l.limits.Unpacked-l.unpacked {
		return refusedError(e.path, "archive-unpacked-too-large", "total unpacked size exceeds the limit of %d bytes", l.limits.Unpacked)
	}
	l.unpacked += e.size
	l.entries = append(l.entries, e)
	return nil
}

// stripTop removes the top folder if it is common to all entries.
func (l *archiveListing) stripTop() {
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

func refusedError(entry, code, format string, args ...any) error {
	if len(entry) > 200 {
		entry = entry[:200] + "…"
	}
	return &skill.RefusedError{Refusals: []skill.Refusal{{Entry: strings.ToValidUTF8(entry, "\ufffd"), Code: code, Message: printable.OneLine(fmt.Sprintf(format, args...))}}}
}

// displayURL returns the URL or path of the location for use in messages.
func (l Location) displayURL() string {
	if l.Kind == Local {
		return printable.OneLine(l.URL)
	}
	u, err := url.Parse(l.URL)
	if err != nil {
		return "an invalid URL"
	}
	return cleanAddress(u)
}
