package clientconfig

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
)

// Target says which configuration file is meant.
type Target struct {
	Client Client
	// Scope is [User] or [Project]; "" is the client's default.
	Scope Scope
	Place Place
	// File names the file instead of the client's usual one; a relative path
	// is below Place.Dir. With it Place may be empty but for that.
	File string
}

// Action is what a [Change] does to the file.
type Action string

// The actions of a plan to connect are Create (a new file), Add, Replace and
// None; those of a plan to undo are Remove, Delete (of a file that holds
// nothing else) and None.
const (
	None    Action = "none"
	Create  Action = "create"
	Add     Action = "add"
	Replace Action = "replace"
	Remove  Action = "remove"
	Delete  Action = "delete"
)

// Change is a planned edit of one file. Nothing is written before Apply. A
// Change is used by one goroutine at a time.
type Change struct {
	// File is the configuration file as the client names it, and Target the
	// one that is written: another where File is a link, or is below one.
	File, Target string
	Action       Action
	// Backup is where Apply leaves the bytes the file has now; "" where none
	// is made.
	Backup string
	// Removes are backups that Apply deletes, after an undo.
	Removes []string
	// Notes are sentences the person should read before saying yes.
	Notes []string
	// Next says what to do after Apply; "" for an undo.
	Next string

	before current
	after  []byte
	diff   string
}

// Diff returns the change in the unified form, "" for None. It shows the new
// entry whole; of everything else the structure and the keys, with values and
// comments replaced by "•••". See the package comment on secrets.
func (c *Change) Diff() string { return c.diff }

// Plan reads the file and works out how to put the entry into it. A file that
// does not exist is created by Apply. The action is [None] if the entry is
// there already, in whatever spelling.
//
// The error is an [ErrUnsupported] for what the client does not have, and a
// [FileError] for a file that cannot be read or safely edited.
func Plan(t Target, e Entry) (*Change, error) {
	e = e.named()
	want, err := t.Client.fields(e)
	if err != nil {
		return nil, err
	}
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	value, there, err := doc.value(e.Name)
	switch {
	case err != nil:
		return nil, ch.locate(err)
	case there && equal(value, want.decoded()):
		return ch, nil
	case there:
		ch.Action = Replace
	case ch.before.exists:
		ch.Action = Add
	default:
		ch.Action = Create
	}
	edit, err := doc.with(e.Name, want)
	if err != nil {
		return nil, ch.locate(err)
	}
	ch.after = edit.apply(ch.before.data)
	ch.Notes, ch.Next = append(ch.Notes, t.notes(doc)...), t.Client.Next
	return ch, ch.finish(t.Client, doc, e.Name, want)
}

// PlanUndo reads the file and works out how to take the entry of that name out
// of it, "" meaning [DefaultName]. Of what Plan had to create it also removes
// what is now empty: the object around the entries, and the file. Directories
// stay. The action is [None] if there is nothing to undo; backups stay then,
// and are named in the notes.
//
// Its errors are those of [Plan].
func PlanUndo(t Target, name string) (*Change, error) {
	if name == "" {
		name = DefaultName
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	backups, err := readBackups(ch.File)
	if err != nil {
		return nil, err
	}
	value, there, err := doc.value(name)
	if err != nil {
		return nil, ch.locate(err)
	}
	if !there {
		for _, b := range backups {
			ch.Notes = append(ch.Notes, "the backup "+b.file+" is left; delete it if it is not needed")
		}
		return ch, nil
	}
	if err := ch.undo(t.Client, doc, name, value, backups); err != nil {
		return nil, ch.locate(err)
	}
	for i, b := range backups {
		if i == 0 && b.holds(t.Client, name) {
			ch.Notes = append(ch.Notes, "an entry of this name was there before Loadout's; it is in the backup "+b.file+", which stays")
			continue
		}
		ch.Removes = append(ch.Removes, b.file)
	}
	return ch, ch.finish(t.Client, doc, name, nil)
}

// undo sets the action and the new text.
func (c *Change) undo(client Client, doc document, name string, value any, backups []backup) error {
	c.Action = Remove
	original := lastWithout(client, backups, name)
	if e, ok := client.entry(name, value); ok {
		switch {
		case original != nil && bytes.Equal(connected(client, original.data, e), c.before.data):
			c.after = original.data
			return nil
		case len(backups) == 0 && bytes.Equal(connected(client, nil, e), c.before.data):
			c.Action = Delete
			return nil
		}
	}
	// Without a backup the file did not exist.
	created := len(backups) == 0 || original != nil && !original.doc.hasContainer()
	edit, err := doc.without(name, created)
	if err != nil {
		return err
	}
	c.after = edit.apply(c.before.data)
	if left, err := parse(client, c.after); err == nil && len(backups) == 0 && left.empty() {
		c.Action, c.after = Delete, nil
	}
	return nil
}

// connected is src with the entry put in, nil where that cannot be done.
func connected(c Client, src []byte, e Entry) []byte {
	doc, err := parse(c, src)
	if err != nil {
		return nil
	}
	want, err := c.fields(e)
	if err != nil {
		return nil
	}
	edit, err := doc.with(e.Name, want)
	if err != nil {
		return nil
	}
	return edit.apply(src)
}

// open reads the target and parses it.
func (t Target) open() (*Change, document, error) {
	file, err := t.path()
	if err != nil {
		return nil, nil, err
	}
	ch := &Change{File: file, Action: None}
	if ch.Target, err = follow(file); err != nil {
		return nil, nil, err
	}
	if err := t.contain(ch); err != nil {
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

func (t Target) path() (string, error) {
	switch {
	case t.File == "":
		return t.Client.Path(t.Place, t.Scope)
	case filepath.IsAbs(t.File):
		return filepath.Clean(t.File), nil
	case !filepath.IsAbs(t.Place.Dir):
		return "", fmt.Errorf("%s has no directory to be looked for in; give its full path", t.File)
	}
	return filepath.Join(t.Place.Dir, t.File), nil
}

// contain keeps the links of a repository, which may be a stranger's, from
// choosing a file outside it.
func (t Target) contain(ch *Change) error {
	scope, _ := t.Client.scope(t.Scope)
	if t.File != "" || scope != Project {
		return nil
	}
	dir, err := follow(t.Place.Dir)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(dir, ch.Target); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	return &FileError{File: ch.File, Problem: "it is a link out of the project, to " + ch.Target, Fix: "name that file yourself if it is the one to change"}
}

// notes are what the person should know about the file.
func (t Target) notes(doc document) []string {
	var notes []string
	if scope, err := t.Client.scope(t.Scope); err == nil && t.File == "" {
		if note := t.Client.where[scope].note; note != "" {
			notes = append(notes, note)
		}
	}
	if d, ok := doc.(*jsonDoc); ok && t.Client.plain && !d.root.IsStandard() {
		notes = append(notes, fmt.Sprintf("the file has comments or trailing commas, with which %s may not read it", t.Client.Title))
	}
	return notes
}

// finish checks the new text and the file, and makes the diff.
func (c *Change) finish(client Client, doc document, name string, want object) error {
	var left document
	var err error
	if c.Action == Delete {
		left = blank(client)
	} else if left, err = verify(client, doc, c.after, name, want); err != nil {
		return c.locate(err)
	}
	if err := c.before.writable(c.Target); err != nil {
		return err
	}
	if c.File != c.Target {
		c.Notes = slices.Insert(c.Notes, 0, c.File+" leads to "+c.Target+", which is the file that changes")
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
	c.diff = unified(oldName, newName, c.before.data, c.after,
		masked(c.before.data, doc.marks(name), showOld(c.before.data, want.strings())),
		masked(c.after, left.marks(name), showNew(c.after)))
	return nil
}

func (c *Change) locate(err error) error { return locate(err, c.File, c.before.data) }
