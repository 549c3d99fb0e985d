package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/sandbox"
)

// HeldChange is a change to a steering file in the user's workspace: a file
// that makes programs run commands, or instructs agents. It is applied only if
// the user agrees.
type HeldChange struct {
	Path   string // relative to the workspace; printable
	Op     string // create, modify, mode or delete
	Reader string // program whose behavior the file controls
	Diff   string // printable unified diff; may be "" for a directory
}

// Agree asks the user whether to apply the held changes, either all of them or
// none.
type Agree func(ctx context.Context, changes []HeldChange) (bool, error)

// workspace runs code on an overlay of the user's directory and applies the
// changes.
type workspace struct {
	dir    string
	access Access
	agree  Agree             // nil if no user can answer
	store  *heldchange.Store // store for changes that the user could not be asked about; may be nil
	by     string            // name of the skill, for the store
	began  time.Time
	notes  []string
	held   []HeldChange // held changes that were not applied
}

// run is like [execute.Run], and applies the changes to the workspace, unless
// the permission was revoked.
func (w *workspace) run(ctx context.Context, b sandbox.Backend, spec *sandbox.Spec, cmd *sandbox.Cmd, opts *execute.Options) (*execute.Result, error) {
	box, err := w.start(ctx, b, spec)
	if err != nil {
		return nil, err
	}
	defer box.Close()
	res, err := execute.RunIn(ctx, box, spec, cmd, opts)
	if res == nil {
		return nil, err
	}
	res.Backend, res.Tier = b.Name(), cmp.Or(box.State().Tier, b.Tier())
	if res.Reason == sandbox.Disabled {
		return res, err
	}
	return res, errors.Join(err, w.apply(ctx, box))
}

// start starts a sandbox. If the sandbox cannot provide the overlay that the
// workspace needs, the workspace is read-only, or mounted directly if that is
// allowed.
func (w *workspace) start(ctx context.Context, b sandbox.Backend, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	w.began = time.Now()
	box, err := b.Start(ctx, spec)
	if err != nil || !w.isOverlay() {
		return box, err
	}
	var reason error = &sandbox.UnsupportedError{Backend: b.Name(), What: "overlays"}
	if o, ok := box.(execute.Overlayer); ok {
		reason = o.OverlayError()
	}
	switch {
	case reason == nil:
		return box, nil
	case b.Tier() == sandbox.Limited:
		w.access = ReadOnly
		w.notes = append(w.notes, "changes to the workspace were not held for review, because the command ran without isolation")
		return box, nil
	case w.access == OverlayOrDirect && overlay.DirReader(w.dir) != "":
		w.access = ReadOnly
		w.notes = append(w.notes, fmt.Sprintf("the workspace was read-only, because it configures %s and changes cannot be held for review: %v", overlay.DirReader(w.dir), reason))
		return box, nil
	case w.access == Overlay:
		w.access = ReadOnly
		w.notes = append(w.notes, fmt.Sprintf("the workspace was read-only, because changes cannot be held for review: %v; set sandbox.direct_workspace to let code write to it directly", reason))
		return box, nil
	}
	if err := box.Close(); err != nil {
		return nil, err
	}
	w.access = Direct
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.Overlay })
	mountWorkspace(spec, w.dir, Direct)
	w.notes = append(w.notes, fmt.Sprintf("code wrote to the workspace directly, as sandbox.direct_workspace allows: %v", reason))
	return b.Start(ctx, spec)
}

// isOverlay reports whether changes are collected in an overlay. It is valid
// after start.
func (w *workspace) isOverlay() bool { return w.access == Overlay || w.access == OverlayOrDirect }

// apply ends the sandbox and applies the changes to the workspace. It asks the
// user about changes to steering files. Changes that were not applied are
// listed in held and notes.
func (w *workspace) apply(ctx context.Context, box sandbox.Sandbox) error {
	if !w.isOverlay() {
		return nil
	}
	upper, err := box.(execute.Overlayer).Changes()
	if err != nil {
		return fmt.Errorf("apply changes: %w", err)
	}
	set, err := overlay.Read(w.dir, upper, w.began)
	if err != nil {
		return fmt.Errorf("apply changes: %w", err)
	}
	defer set.Close()
	applying := ctx
	if ctx.Err() != nil { // it ended the command; changes made until then are applied
		applying = context.WithoutCancel(ctx)
	}
	failed := set.Apply(applying, (*overlay.Change).Ordinary)
	if held := heldChanges(set); len(held) > 0 {
		why, declined := w.ask(ctx, held)
		if why == "" {
			failed = set.Apply(applying, func(*overlay.Change) bool { return true })
		} else {
			w.held = held
			note := heldNote(held, why)
			if !declined {
				note += "; " + w.storeHeldChanges(ctx, set)
			}
			w.notes = append(w.notes, note)
		}
	}
	w.noteFailedChanges(set, failed)
	return nil
}

// ask asks the user whether to apply held changes. why is the reason for not
// applying them, or "" if the user agreed. declined reports whether the user
// declined.
func (w *workspace) ask(ctx context.Context, held []HeldChange) (why string, declined bool) {
	if w.agree == nil {
		return "the user could not be asked", false
	}
	agreed, err := w.agree(ctx, held)
	switch {
	case err != nil:
		return "the user could not be asked: " + err.Error(), false
	case !agreed:
		return "the user declined", true
	}
	return "", false
}

// storeHeldChanges stores the changes of a set that wait for the user's decision. It
// returns a text that says what the user can do with them.
func (w *workspace) storeHeldChanges(ctx context.Context, set *overlay.Set) (next string) {
	const byHand = "the user can make these changes, or run this with loadout run in their own terminal"
	if w.store == nil {
		return byHand
	}
	var list []overlay.Stored
	for i := range set.List {
		if !set.List[i].Held() {
			continue
		}
		c, err := set.Store(&set.List[i])
		if err != nil {
			return byHand + ", because they cannot be stored: " + printable.Text(err.Error(), 200)
		}
		list = append(list, c)
	}
	if err := w.store.Add(context.WithoutCancel(ctx), w.dir, w.by, list); err != nil {
		return byHand + ", because they cannot be stored: " + printable.Text(err.Error(), 200)
	}
	return "the user can review and apply them: loadout changes"
}

// heldChanges returns the held changes of a set. It omits a directory that
// contains other held changes. It refuses changes that cannot be shown
// completely, because the user cannot agree to a change without seeing it.
func heldChanges(set *overlay.Set) []HeldChange {
	var held []HeldChange
	shown := 0
	parents := map[string]bool{}
	for i := range set.List {
		if c := &set.List[i]; c.Held() {
			parents[path.Dir(c.Path)] = true
		}
	}
	for i := range set.List {
		c := &set.List[i]
		if !c.Held() || c.Mode.IsDir() && parents[c.Path] {
			continue
		}
		if len(held) >= maxHeld || shown > maxShown {
			c.Refused = fmt.Sprintf("configures %s, and there are too many changes to show (limit %d changes, %d bytes)", c.Reader, maxHeld, maxShown)
			continue
		}
		h, err := newHeldChange(set, c)
		if err != nil {
			c.Refused = fmt.Sprintf("configures %s, and cannot be shown: %s", c.Reader, printable.Text(err.Error(), 200))
			continue
		}
		shown += len(h.Diff)
		held = append(held, h)
	}
	return held
}

// maxNamed is the maximum number of paths in a note.
const maxNamed = 5

// heldNote returns a note that lists held changes.
func heldNote(held []HeldChange, why string) string {
	var names []string
	for _, c := range held {
		if len(names) == maxNamed {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%s, %s)", c.Path, c.Op, c.Reader))
	}
	return fmt.Sprintf("changes to files that configure programs or agents were not applied (%d), because %s: %s", len(held), why, strings.Join(names, ", "))
}

// noteFailedChanges adds a note about changes that were refused or failed.
func (w *workspace) noteFailedChanges(set *overlay.Set, failed []overlay.Failure) {
	var lost []string
	count := 0
	add := func(c *overlay.Change, reason string) {
		if count++; count <= maxNamed {
			lost = append(lost, fmt.Sprintf("%s (%s)", printable.Text(c.Path, 200), reason))
		}
	}
	for i := range set.List {
		if c := &set.List[i]; c.Refused != "" {
			add(c, c.Refused)
		}
	}
	for _, f := range failed {
		add(f.Change, f.Err.Error())
	}
	if count > len(lost) {
		lost = append(lost, "…")
	}
	if count > 0 {
		w.notes = append(w.notes, fmt.Sprintf("changes to the workspace were not applied (%d): %s", count, strings.Join(lost, ", ")))
	}
}

const (
	// maxDiffed is the maximum size of a file for which a diff is shown.
	maxDiffed = 64 << 10
	// maxHeld is the maximum number of changes in one question, and maxShown
	// the maximum total size of their diffs in bytes.
	maxHeld  = 500
	maxShown = 1 << 20
	// maxDiff is the maximum size of a diff. It is large enough for any file of
	// maxDiffed bytes, even if all characters are escaped, because the user
	// must see the whole diff.
	maxDiff = 32 << 20
)

// newHeldChange returns a held change with its diff. The error says why the
// change cannot be shown completely.
func newHeldChange(set *overlay.Set, c *overlay.Change) (HeldChange, error) {
	h := HeldChange{Path: quotedPath(c.Path), Op: string(c.Op), Reader: c.Reader}
	if c.Op != overlay.Mode && !c.Mode.IsDir() {
		before, after, err := set.Contents(c, maxDiffed)
		if err != nil {
			return h, err
		}
		h = NewHeldChange(c.Path, string(c.Op), c.Reader, before, after)
	}
	h.Diff = modeLines(c) + h.Diff
	return h, nil
}

// modeLines returns lines like those of git diff for a change that makes a file
// executable or changes its permissions. For other changes, it returns "".
func modeLines(c *overlay.Change) string {
	old, existed := c.OldMode()
	switch {
	case c.Op == overlay.Delete || c.Mode.Type() == fs.ModeSymlink:
		return ""
	case existed && old.Type() == c.Mode.Type() && old.Perm() != c.Mode.Perm():
		return fmt.Sprintf("old mode %04o\nnew mode %04o\n", old.Perm(), c.Mode.Perm())
	case !existed && c.Mode.IsRegular() && c.Mode.Perm()&0o111 != 0:
		return fmt.Sprintf("new file mode %04o (executable)\n", c.Mode.Perm())
	}
	return ""
}

// quotedPath formats a path for display. It quotes a path that could be
// mistaken for another one.
func quotedPath(name string) string {
	plain := printable.Text(name, 4*len(name)) == name && !strings.ContainsAny(name, "\"\\")
	for part := range strings.SplitSeq(name, "/") {
		plain = plain && strings.TrimSpace(part) == part
	}
	if plain {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// NewHeldChange returns a held change to a file, with a diff of the contents
// before and after the change.
func NewHeldChange(name, op, reader string, before, after []byte) HeldChange {
	h := HeldChange{Path: quotedPath(name), Op: op, Reader: reader}
	h.Diff = skilldiff.Unified(before, after, "a/"+h.Path, "b/"+h.Path, &skilldiff.Options{FileBytes: maxDiff, LineBytes: maxDiff})
	return h
}
