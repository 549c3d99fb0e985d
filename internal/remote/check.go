package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// maxRefusals is the maximum number of refusals reported by check.
const maxRefusals = 20

// check returns the files of the skill in dir, with paths relative to dir. It
// omits names for which skillpath.IsIgnored returns true. If any file is not a
// plain file, or cannot be stored on every system, the error is a
// [*skill.RefusedError] with all reasons.
func (c *Client) check(ctx context.Context, t *tree, dir string) ([]entry, error) {
	var files []entry
	var listed skill.Manifest
	for _, e := range t.entriesBelow(dir) {
		if dir != "." {
			e.path = strings.TrimPrefix(e.path, dir+"/")
		}
		if !isIgnored(e.path) {
			files = append(files, e)
			listed = append(listed, skill.File{Path: e.path, Size: e.size})
		}
	}
	refused := c.opts.Limits.Skill.Check(listed)
	tooMany := slices.ContainsFunc(refused, func(r skill.Refusal) bool { return r.Code == "too-many-entries" })
	for _, e := range files {
		if tooMany || len(refused) >= maxRefusals {
			break
		}
		r, err := e.refusal(ctx)
		if err != nil {
			return nil, err
		}
		if r.Code != "" {
			refused = append(refused, r)
		}
	}
	if len(refused) > 0 {
		return nil, &skill.RefusedError{What: "skill", Refusals: refused}
	}
	return files, nil
}

// isIgnored reports whether an element of the path is ignored in skills.
func isIgnored(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if skillpath.IsIgnored(part) {
			return true
		}
	}
	return false
}

// refusal returns the reason to reject an entry, other than its path or size.
// If there is no reason, the code is empty.
func (e *entry) refusal(ctx context.Context) (skill.Refusal, error) {
	name := strings.ToValidUTF8(e.path, "\ufffd")
	switch e.kind {
	case plainEntry:
	case linkEntry:
		return skill.Refusal{Entry: name, Code: "link", Message: e.describeKind()}, nil
	case submoduleEntry:
		return skill.Refusal{Entry: name, Code: "submodule", Message: e.describeKind()}, nil
	default:
		return skill.Refusal{Entry: name, Code: "special-file", Message: e.describeKind()}, nil
	}
	for part := range strings.SplitSeq(e.path, "/") {
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return skill.Refusal{Entry: name, Code: "name-git", Message: "some systems treat it as the directory of a Git repository"}, nil
		}
	}
	pointer, err := e.isPointer(ctx)
	if err != nil || !pointer {
		return skill.Refusal{}, err
	}
	return skill.Refusal{Entry: name, Code: "git-lfs",
		Message: "stored with Git LFS, so only a pointer was fetched; ask the author to store it in Git itself"}, nil
}

// isPointer reports whether a file is a Git LFS pointer. It reads only small
// files, because the Git LFS specification limits the size of a pointer.
func (e *entry) isPointer(ctx context.Context) (bool, error) {
	const begin, bound = "version https://git-lfs.github.com/spec/", 1024
	if e.size < int64(len(begin)) || e.size >= bound {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	r, err := e.open()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", printable.OneLine(path.Base(e.path)), err)
	}
	defer r.Close()
	var head [len(begin)]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("read %s: %w", printable.OneLine(path.Base(e.path)), err)
	}
	return bytes.Equal(head[:n], []byte(begin)), nil
}
