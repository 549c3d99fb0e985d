package clientconfig

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
)

// Target selects a configuration file.
type Target struct {
	Client Client
	// Scope is [User] or [Project]; "" means the client's default scope.
	Scope       Scope
	Environment Environment
	// File overrides the path of the client's file. A relative path is relative
	// to Environment.Dir. The other fields of Environment are then ignored.
	File string

	other string // second file of the client to use instead of the first; see otherFile
}

// Action describes how a [Change] affects the file.
type Action string

// Actions. Connecting a client results in Create (a new file), Add, Replace or
// None. An undo results in Remove, Delete (the file has no other content),
// Replace (the user's entry is restored) or None.
const (
	None    Action = "none"
	Create  Action = "create"
	Add     Action = "add"
	Replace Action = "replace"
	Remove  Action = "remove"
	Delete  Action = "delete"
)

// Change is a planned edit of one file. Only Apply writes the file. A Change is
// not safe for concurrent use.
type Change struct {
	// File is the path as the client uses it. Target is the path of the file to
	// write, which differs if File involves symlinks.
	File, Target string
	Action       Action
	// Backup is the path to which Apply copies the current file, or "".
	Backup string
	// Removes lists the backups that Apply deletes after an undo.
	Removes []string
	// Existing describes how an entry that [PlanMissing] leaves unchanged
	// differs from the one it would add, such as "with --skills". It is "" if
	// there is no such entry.
	Existing string
	// Notes are sentences for the user to read before confirming.
	Notes []string
	// Next tells the user what to do after Apply; "" for an undo.
	Next string

	before  fileState
	after   []byte
	diff    string
	base    string   // directory of the user or the project that contains File, or ""
	backups []backup // nil unless it is an undo
}

// Diff returns the change as a unified diff, or "" if Action is [None]. It
// shows the new entry completely. For the rest of the file it shows only
// structure and keys, and replaces values and comments with "•••". See
// "Secrets" in the package comment.
func (c *Change) Diff() string { return c.diff }

// Plan plans a change that adds the entry e or replaces the existing entry.
// Apply creates the file if it does not exist. Action is [None] if an
// equivalent entry already exists.
//
// Plan returns [ErrUnsupported] if the client lacks a feature, and a
// [FileError] if the file cannot be read or safely edited.
func Plan(t Target, e Entry) (*Change, error) {
	e = e.withDefaultName()
	want, err := t.Client.fields(e)
	if err != nil {
		return nil, err
	}
	t, ch, doc, err := t.openWith(e.Name)
	if err != nil {
		return nil, err
	}
	value, there, err := doc.entry(e.Name)
	switch {
	case err != nil:
		return nil, ch.locate(err)
	case there && equalValues(value, want.decoded()):
		return ch, nil
	case there:
		ch.Action = Replace
	case ch.before.exists:
		ch.Action = Add
	default:
		ch.Action = Create
	}
	edit, err := doc.setEntry(e.Name, want)
	if err != nil {
		return nil, ch.locate(err)
	}
	ch.after = edit.apply(ch.before.data)
	ch.Notes, ch.Next = append(ch.Notes, t.notes(doc)...), t.Client.Next
	return ch, ch.finish(t.Client, doc, e.Name, want)
}

// PlanMissing is like [Plan], but leaves an existing entry unchanged if it
// starts Loadout with options or other settings, or connects to its URL. Action
// is then [None], and Existing is set.
func PlanMissing(t Target, e Entry) (*Change, error) {
	e = e.withDefaultName()
	t, ch, doc, err := t.openWith(e.Name)
	if err != nil {
		return nil, err
	}
	value, there, err := doc.entry(e.Name)
	if err == nil && there && t.Client.startsLoadout(e.Name, value) {
		if ch.Existing = t.Client.describeOptions(e, value); ch.Existing != "" {
			return ch, nil
		}
	}
	return Plan(t, e)
}

// PlanUndo plans to remove the entry with the given name; "" means
// [DefaultName]. It also removes the parent object and the file if Plan created
// them and they are now empty, and then the file's empty directories with mode
// 0700, which Apply may have created. If there is nothing to undo, Action is
// [None], and the notes list backups, which are not deleted. The same applies
// if the entry starts something other than Loadout.
//
// If Plan replaced an entry that starts something other than Loadout and the
// file has not changed since, the file is restored with that entry, and Action
// is [Replace]. Any other replaced entry remains in its backup, and a note
// names the backup.
//
// It returns the same errors as [Plan].
func PlanUndo(t Target, name string) (*Change, error) {
	if name == "" {
		name = DefaultName
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	t, ch, doc, err := t.openWith(name)
	if err != nil {
		return nil, err
	}
	ch.backups, err = readBackups(ch.File)
	if err != nil {
		return nil, err
	}
	backups := ch.backups
	value, there, err := doc.entry(name)
	if err != nil {
		return nil, ch.locate(err)
	}
	if !there {
		for _, b := range backups {
			ch.Notes = append(ch.Notes, "the backup "+b.file+" remains; delete it if you do not need it")
		}
		return ch, nil
	}
	if !t.Client.startsLoadout(name, value) {
		ch.Notes = append(ch.Notes, fmt.Sprintf("the entry %q does not start Loadout and stays", name))
		return ch, nil
	}
	var kept []backup
	for i, b := range backups {
		if b.hasUserEntry(t.Client, name, backups[:i]) {
			kept = append(kept, b)
			continue
		}
		ch.Removes = append(ch.Removes, b.file)
	}
	restored, err := ch.setUndo(t.Client, doc, name, value, kept)
	if err != nil {
		return nil, ch.locate(err)
	}
	for _, b := range kept {
		if restored != nil && b.file == restored.file {
			ch.Removes = append(ch.Removes, b.file)
			ch.Notes = append(ch.Notes, "Loadout replaced an entry with this name; it is restored")
			continue
		}
		ch.Notes = append(ch.Notes, "Loadout replaced an entry with this name; the backup "+b.file+" contains it and remains")
	}
	if ch.Action == Replace {
		return ch, ch.prepareDiff(doc, restored.doc, name, nil, false)
	}
	return ch, ch.finish(t.Client, doc, name, nil)
}

// setUndo sets the action and the new text of an undo. kept lists the backups
// with a user's entry. If the action is [Replace], setUndo returns the backup
// whose entry the new text restores.
func (c *Change) setUndo(client Client, doc document, name string, value any, kept []backup) (*backup, error) {
	c.Action = Remove
	original := newestWithout(client, c.backups, kept, name)
	// Without a backup of something else, the file did not exist before.
	created := original == nil && len(kept) == 0
	if e, ok := client.parseEntry(name, value); ok {
		switch {
		case original != nil && bytes.Equal(addEntry(client, original.data, e), c.before.data):
			c.after = original.data
			if _, there, _ := original.doc.entry(name); there {
				c.Action = Replace
				return original, nil
			}
			return nil, nil
		case created && bytes.Equal(addEntry(client, nil, e), c.before.data):
			c.Action = Delete
			return nil, nil
		}
	}
	edit, err := doc.removeEntry(name, created || original != nil && !original.doc.hasContainer())
	if err != nil {
		return nil, err
	}
	c.after = edit.apply(c.before.data)
	if left, err := parse(client, c.after); err == nil && created && left.isEmpty() {
		c.Action, c.after = Delete, nil
	}
	return nil, nil
}

// addEntry returns src with the entry added, or nil if it cannot be added.
func addEntry(c Client, src []byte, e Entry) []byte {
	doc, err := parse(c, src)
	if err != nil {
		return nil
	}
	want, err := c.fields(e)
	if err != nil {
		return nil
	}
	edit, err := doc.setEntry(e.Name, want)
	if err != nil {
		return nil
	}
	return edit.apply(src)
}

// openWith is like open, but if the client reads a second file and only that
// file contains the entry, openWith opens it and returns it as the target.
func (t Target) openWith(name string) (Target, *Change, document, error) {
	ch, doc, err := t.open()
	if err != nil || t.File != "" || t.other != "" {
		return t, ch, doc, err
	}
	if _, there, err := doc.entry(name); err != nil || there {
		return t, ch, doc, nil
	}
	other := t
	if other.other = t.Client.otherFile(t.Environment, t.Scope); other.other == "" {
		return t, ch, doc, nil
	}
	otherChange, otherDoc, err := other.open()
	if err != nil {
		return t, nil, nil, err // it may contain the entry
	}
	if _, there, err := otherDoc.entry(name); err == nil && !there {
		return t, ch, doc, nil
	}
	return other, otherChange, otherDoc, nil
}

// Others returns the targets for the client's other existing files, such as
// opencode.jsonc next to opencode.json.
func (t Target) Others() []Target {
	if t.File != "" {
		return nil
	}
	if t.other = t.Client.otherFile(t.Environment, t.Scope); t.other == "" {
		return nil
	}
	return []Target{t}
}

// open reads and parses the target's file.
func (t Target) open() (*Change, document, error) {
	file, err := t.path()
	if err != nil {
		return nil, nil, err
	}
	ch := &Change{File: file, Action: None, base: t.base()}
	if ch.Target, err = resolveSymlinks(file); err != nil {
		return nil, nil, err
	}
	if err := t.checkContained(ch); err != nil {
		return nil, nil, err
	}
	if ch.before, err = readFile(ch.Target); err != nil {
		return nil, nil, err
	}
	doc, err := parse(t.Client, ch.before.data)
	if err != nil {
		return nil, nil, ch.locate(err)
	}
	return ch, doc, nil
}

// base returns the existing directory in which Apply may create directories, or
// "" for a file that the user named.
func (t Target) base() string {
	scope, err := t.Client.resolveScope(t.Scope)
	switch {
	case err != nil || t.File != "":
		return ""
	case scope == Project:
		return t.Environment.Dir
	case t.Client.where[scope].env != "" && t.Environment.getenv(t.Client.where[scope].env) != "":
		return t.Environment.makeAbsolute(t.Environment.getenv(t.Client.where[scope].env))
	}
	return t.Environment.Home
}

func (t Target) path() (string, error) {
	switch {
	case t.other != "":
		return t.other, nil
	case t.File == "":
		return t.Client.Path(t.Environment, t.Scope)
	case filepath.IsAbs(t.File):
		return filepath.Clean(t.File), nil
	case !filepath.IsAbs(t.Environment.Dir):
		return "", fmt.Errorf("cannot resolve relative path %s without a directory; use an absolute path", t.File)
	}
	return filepath.Join(t.Environment.Dir, t.File), nil
}

// checkContained returns an error if symlinks in a project lead to a file
// outside the project, because the project may be untrusted.
func (t Target) checkContained(ch *Change) error {
	scope, _ := t.Client.resolveScope(t.Scope)
	if t.File != "" || scope != Project {
		return nil
	}
	dir, err := resolveSymlinks(t.Environment.Dir)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(dir, ch.Target); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	return &FileError{File: ch.File, Problem: "symlink leads out of the project, to " + ch.Target, Fix: "name that file explicitly if you want to change it"}
}

// notes returns notes for the user about the file.
func (t Target) notes(doc document) []string {
	var notes []string
	if t.Client.TestedVersion == "" {
		notes = append(notes, fmt.Sprintf("from documentation (%s), not tried with %s", t.Client.Source, t.Client.Title))
	}
	if t.Client.Note != "" {
		notes = append(notes, t.Client.Note)
	}
	if scope, err := t.Client.resolveScope(t.Scope); err == nil && t.File == "" {
		if note := t.Client.where[scope].note; note != "" {
			notes = append(notes, note)
		}
	}
	if d, ok := doc.(*jsonDoc); ok && t.Client.plain && !d.root.IsStandard() {
		notes = append(notes, fmt.Sprintf("the file contains comments or trailing commas, which %s may reject", t.Client.Title))
	}
	return notes
}

// finish verifies the new text, checks the file, and creates the diff.
func (c *Change) finish(client Client, doc document, name string, want object) error {
	var left document
	var err error
	if c.Action == Delete {
		left = emptyDocument(client)
	} else if left, err = verify(client, doc, c.after, name, want); err != nil {
		return c.locate(err)
	}
	if err := c.before.checkWritable(c.Target); err != nil {
		return err
	}
	if c.File != c.Target {
		c.Notes = slices.Insert(c.Notes, 0, c.File+" is a symlink to "+c.Target+"; that file will change")
	}
	if c.before.exists && want != nil {
		if c.Backup, err = backupFor(c.File, c.before.data); err != nil {
			return err
		}
	}
	oldName, newName := c.File, c.File
	switch c.Action {
	case Create:
		oldName = "/dev/null"
	case Delete:
		newName = "/dev/null"
	}
	c.diff = unifiedDiff(oldName, newName, c.before.data, c.after,
		maskText(c.before.data, doc.marks(name), showOldEntry(c.before.data, want.strings())),
		maskText(c.after, left.marks(name), showNewEntry(c.after)))
	return nil
}

func (c *Change) locate(err error) error { return locate(err, c.File, c.before.data) }
