package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// Limits for the files of a conversation.
const (
	MaxFile      = 8 << 20  // maximum size of a file, in bytes
	MaxFiles     = 200      // maximum number of files
	MaxFileBytes = 64 << 20 // maximum total size of all files, in bytes
	maxPath      = 512      // maximum length of a path, in bytes
)

// File describes a file in a conversation.
type File struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	SHA256  string    `json:"sha256"`
	Updated time.Time `json:"updated"`
}

// Files returns the files on the current branch of a conversation, sorted by path.
func (e *Engine) Files(ctx context.Context, p account.Principal, id string) ([]File, error) {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return nil, err
	}
	kept, err := e.db.Attachments.List(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]File, len(kept))
	for i, a := range kept {
		out[i] = File{Path: a.Path, Size: a.Size, SHA256: a.SHA256, Updated: a.Updated}
	}
	return out, nil
}

// ReadFile returns the contents of a file in a conversation.
func (e *Engine) ReadFile(ctx context.Context, p account.Principal, id, path string) ([]byte, error) {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return nil, err
	}
	return e.db.Attachments.Read(ctx, id, path)
}

// WriteFile creates or replaces a file on the current branch of a conversation. The
// change is visible from the next turn on. WriteFile fails with [ErrInvalid], or with a
// [*quota.ExceededError] if the owner may not store the file.
func (e *Engine) WriteFile(ctx context.Context, p account.Principal, id, path string, data []byte) error {
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.update(ctx, id, func(c *conversationTx) error {
		if err := c.changeFiles(ctx, func(f *fileChanges) error { return f.store(ctx, path, data) }); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session.file.write", id, map[string]any{"path": path, "size": len(data)}))
	})
}

// DeleteFile deletes a file of a conversation, with its versions on all branches. It
// fails with [store.ErrNotFound] if there are none.
func (e *Engine) DeleteFile(ctx context.Context, p account.Principal, id, path string) error {
	if _, err := e.authorize(ctx, p, account.SessionWrite, id); err != nil {
		return err
	}
	return e.update(ctx, id, func(c *conversationTx) error {
		if err := c.Attachments.Purge(ctx, id, path); err != nil {
			return err
		}
		return c.Audit.Append(ctx, auditRecord(p.User, "session.file.delete", id, map[string]any{"path": path}))
	})
}

// fileChanges changes the files on the current branch of a conversation.
type fileChanges struct {
	*conversationTx
	step    int64 // last step of the transcript
	current []store.Attachment
}

// changeFiles calls f to change files.
func (c *conversationTx) changeFiles(ctx context.Context, f func(*fileChanges) error) error {
	step, err := c.Events.Last(ctx, c.id)
	if err != nil {
		return err
	}
	current, err := c.Attachments.List(ctx, c.id)
	if err != nil {
		return err
	}
	if err := f(&fileChanges{c, step, current}); err != nil {
		return err
	}
	return c.Attachments.Prune(ctx, c.id)
}

// store stores a file. It fails with [ErrInvalid] if a limit is exceeded or the path
// is invalid, and with a [*quota.ExceededError] if it exceeds the owner's quota. In
// the latter case, the transaction can continue.
func (c *fileChanges) store(ctx context.Context, path string, data []byte) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if len(data) > MaxFile {
		return fmt.Errorf("file %q: %w: too large (limit %d bytes)", path, ErrInvalid, MaxFile)
	}
	kept, err := c.keepQueuedImage(ctx, path)
	if err != nil {
		return err
	}
	n, size, added := 1, int64(len(data)), int64(len(data))
	for _, a := range c.current {
		if a.Path == path {
			if a.Step == c.step && !kept { // it is replaced; otherwise it is kept for other branches
				added -= a.Size
			}
			continue
		}
		if conflicts(a.Path, path) {
			return fmt.Errorf("file %q: %w: conflicts with file %q (one path contains the other)", path, ErrInvalid, a.Path)
		}
		n, size = n+1, size+a.Size
	}
	if n > MaxFiles || size > MaxFileBytes {
		return fmt.Errorf("file %q: %w: too many files in conversation (%d files, %d bytes; limit %d files, %d bytes)", path, ErrInvalid, n, size, MaxFiles, MaxFileBytes)
	}
	if err := c.reserve(ctx, added); err != nil {
		return fmt.Errorf("file %q: %w", path, err)
	}
	sum := sha256.Sum256(data)
	a := store.Attachment{Session: c.id, Path: path, Step: c.step, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	c.forget(path)
	c.current = append(c.current, a)
	return c.Attachments.Put(ctx, a, data)
}

// delete deletes a file if it exists.
func (c *fileChanges) delete(ctx context.Context, path string) error {
	if _, err := c.keepQueuedImage(ctx, path); err != nil {
		return err
	}
	if !c.forget(path) {
		return nil
	}
	return c.Attachments.Delete(ctx, c.id, path, c.step)
}

// keepQueuedImage is called before a file is replaced or deleted at the step at which it
// was written. If a running or queued message contains the file as an image, it keeps
// the content and returns true.
func (c *fileChanges) keepQueuedImage(ctx context.Context, path string) (bool, error) {
	at := slices.IndexFunc(c.current, func(a store.Attachment) bool { return a.Path == path && a.Step == c.step })
	if at < 0 {
		return false, nil
	}
	_, st, err := c.state(ctx)
	if err != nil {
		return false, err
	}
	inputs, err := readInputs(ctx, c.Events, c.id, st.ended())
	if err != nil {
		return false, err
	}
	for _, in := range inputs {
		if slices.ContainsFunc(in.Images, func(i llm.Image) bool { return i.Ref == c.current[at].SHA256 }) {
			return true, c.Attachments.Keep(ctx, c.id, path)
		}
	}
	return false, nil
}

// forget removes a file from c.current. It reports whether the file was there.
func (c *fileChanges) forget(path string) bool {
	n := len(c.current)
	c.current = slices.DeleteFunc(c.current, func(a store.Attachment) bool { return a.Path == path })
	return len(c.current) < n
}

// restoreFiles restores the files of a branch: for each file, the last version that
// was written on the branch. path holds the numbers of the steps on the branch, in
// order. Files that were written before the first step belong to all branches. Files
// that were written after the last step, which no turn could use, move to the branch.
// restoreFiles returns the paths of the files that cannot be restored because the
// content of their versions was deleted.
func (c *conversationTx) restoreFiles(ctx context.Context, path []int64) (dropped []string, err error) {
	last, err := c.Events.Last(ctx, c.id)
	if err != nil {
		return nil, err
	}
	start := last + 1 // the step that starts the branch
	path = append(slices.Clip(path), start)
	current, err := c.Attachments.List(ctx, c.id)
	if err != nil {
		return nil, err
	}
	for i, a := range current {
		if a.Step != last {
			continue
		}
		if err := c.Attachments.Move(ctx, c.id, a.Path, start); err != nil {
			return nil, err
		}
		current[i].Step = start
	}
	versions, err := c.Attachments.ListVersions(ctx, c.id)
	if err != nil {
		return nil, err
	}
	steps := map[string]int64{} // of the versions to restore, by path
	isDropped := map[string]bool{}
	for _, a := range slices.Concat(current, versions) {
		if _, ok := slices.BinarySearch(path, a.Step); !ok && a.Step != 0 {
			continue
		}
		if step, ok := steps[a.Path]; !ok || a.Step > step {
			steps[a.Path], isDropped[a.Path] = a.Step, a.SHA256 == store.DroppedVersion
		}
	}
	for _, a := range current {
		if a.Step != start {
			continue
		}
		for name := range steps {
			if conflicts(a.Path, name) { // the moved file replaces it
				steps[name] = noStep
			}
		}
	}
	for _, a := range current {
		if step, ok := steps[a.Path]; ok && step == a.Step {
			delete(steps, a.Path)
		} else if !ok {
			steps[a.Path] = noStep
		}
	}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		if isDropped[name] && steps[name] != noStep {
			dropped = append(dropped, name)
		}
		if err := c.Attachments.Restore(ctx, c.id, name, steps[name]); err != nil {
			return nil, err
		}
	}
	return dropped, nil
}

// conflicts reports whether two paths cannot both be files, because one contains
// the other.
func conflicts(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// noStep is the step of no version of a file.
const noStep = -1

// reserve counts bytes toward the quota of the conversation's owner.
func (c *conversationTx) reserve(ctx context.Context, bytes int64) error {
	if c.left == nil {
		s, err := c.Sessions.Get(ctx, c.id)
		if err != nil {
			return err
		}
		if err := c.measure(ctx, s.Owner); err != nil {
			return err
		}
	}
	return c.left.Add(bytes)
}

// measure reads the quota of the conversation's owner.
func (c *conversationTx) measure(ctx context.Context, owner string) (err error) {
	if c.left == nil {
		c.left, err = c.quotas.Allowance(ctx, &c.Tables, store.UserNamespace(owner))
	}
	return err
}

// checkPath returns an error unless path is a valid relative path to a file on
// every operating system.
func checkPath(path string) error {
	var why error
	switch {
	case len(path) > maxPath:
		why = fmt.Errorf("too long (%d bytes, limit %d)", len(path), maxPath)
	case !fs.ValidPath(path) || path == "." || !filepath.IsLocal(path) || strings.ContainsAny(path, `\:`):
		why = errors.New("want a relative path inside the working directory")
	case !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		why = errors.New("contains unprintable characters")
	default:
		return nil
	}
	return fmt.Errorf("path %.100q: %w: %w", path, ErrInvalid, why)
}
