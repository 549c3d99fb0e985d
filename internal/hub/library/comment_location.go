package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

const (
	// maxCommentedBytes is the maximum size of a file whose lines can be commented on.
	maxCommentedBytes = 1 << 20
	// maxLineText is the maximum number of bytes of a line that a comment stores.
	maxLineText = 1000
	// maxRelocatedFiles is the maximum number of files that are read to find the lines
	// of earlier comments.
	maxRelocatedFiles = 100
	// maxComparedLines is the maximum number of lines that are compared with those of
	// earlier comments in one request.
	maxComparedLines = 1_000_000
)

// commentedLine checks that the location of a comment exists, and returns the text of
// the line.
func (l *Library) commentedLine(ctx context.Context, p account.Principal, h *skillRecord, v store.Version, c NewComment) (string, error) {
	switch {
	case c.Line < 0 || c.Base < 0:
		return "", invalidf("line and base must be at least 0 (line %d, base %d)", c.Line, c.Base)
	case c.Path == "" && (c.Line != 0 || c.Base != 0):
		return "", invalidf("missing path of the line")
	case c.Path == "":
		return "", nil
	}
	if c.Base != 0 && c.Base != v.Number {
		base, err := l.getVersion(ctx, h, c.Base)
		if err == nil {
			err = h.checkVersion(p, base)
		}
		if err != nil {
			return "", err
		}
		v = base
	}
	lines, err := l.readLines(ctx, h, v, c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", invalidf("no file %.200q in version %d", c.Path, v.Number)
	case err != nil:
		return "", err
	case c.Line == 0:
		return "", nil
	case lines == nil:
		return "", invalidf("cannot comment on lines of %.200q: not a text file of at most %d bytes; comment on the file", c.Path, maxCommentedBytes)
	case c.Line > int64(len(lines)):
		return "", invalidf("no line %d in %.200q (%d lines)", c.Line, c.Path, len(lines))
	}
	return lines[c.Line-1], nil
}

// readLines returns the lines of a file of a version, each truncated to maxLineText
// bytes. It returns nil if the file is too large or is not text.
func (l *Library) readLines(ctx context.Context, h *skillRecord, v store.Version, path string) ([]string, error) {
	t, err := l.tree(ctx, v)
	if err != nil {
		return nil, err
	}
	files := l.treeBundle(ctx, h.Name, t)
	defer files.Close()
	info, err := fs.Stat(files.FS, path)
	if errors.Is(err, fs.ErrInvalid) || err == nil && info.IsDir() {
		err = fs.ErrNotExist
	}
	if err != nil || info.Size() > maxCommentedBytes {
		return nil, err
	}
	data, err := fs.ReadFile(files.FS, path)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, text := range lines {
		lines[i] = truncate(strings.TrimSuffix(text, "\r"), maxLineText)
	}
	return lines, nil
}

// relocateThreads sets the lines of the threads of earlier versions to those with the
// same text in v, or marks the threads as outdated. Threads on a line that v's
// predecessor removed, and those above the limits, are outdated.
func (l *Library) relocateThreads(ctx context.Context, h *skillRecord, v store.Version, threads []CommentThread) error {
	var paths []string
	byPath := map[string][]*CommentThread{}
	for i := range threads {
		t := &threads[i]
		if t.Version == v.Number || t.Path == "" {
			continue
		}
		if byPath[t.Path] == nil {
			paths = append(paths, t.Path)
		}
		byPath[t.Path] = append(byPath[t.Path], t)
	}
	compared := 0
	for i, path := range paths {
		var lines []string // of one file at a time, because a file may have a million lines
		if i < maxRelocatedFiles && compared < maxComparedLines {
			var err error
			if lines, err = l.readLines(ctx, h, v, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		for _, t := range byPath[path] {
			if t.Line == 0 {
				t.Outdated = lines == nil
				continue
			}
			at := t.Line
			t.Line = 0
			if compared += len(lines); t.Base == 0 && compared <= maxComparedLines {
				t.Line = nearestLine(lines, at, t.Text)
			}
			t.Outdated = t.Line == 0
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearestLine returns the number of the line that has the given text and is nearest
// to line at, or 0 if there is none. text may have been cleaned for the page.
func nearestLine(lines []string, at int64, text string) int64 {
	best, distance := int64(0), int64(len(lines))+at
	for i, s := range lines {
		n := int64(i) + 1
		if d := max(n-at, at-n); d < distance && (s == text || untrusted.New(s).ForPage() == text) {
			best, distance = n, d
		}
	}
	return best
}
