package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Servers holds the MCP servers in a client's configuration file, including
// their credentials.
type Servers struct {
	File   string         // path of the file as the client uses it
	Exists bool           // whether the file exists
	Data   []byte         // content of the file
	ByName map[string]any // decoded entries by name; JSON numbers are json.Number
	Inputs any            // inputs in a VS Code file, or nil

	projects map[string]map[string]any
}

// Read returns the servers in the target's file, or none if the file does not
// exist. It returns the same errors as [Plan].
func Read(t Target) (*Servers, error) {
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	all := doc.decoded()
	s := &Servers{File: ch.File, Exists: ch.before.exists, Data: ch.before.data, ByName: map[string]any{}, Inputs: all["inputs"], projects: decodeProjects(t, all)}
	if m, ok := all[t.Client.Key].(map[string]any); ok {
		s.ByName = m
	}
	return s, nil
}

// HasEntry reports whether the entry named e.Name equals the entry that [Plan]
// would write for e.
func (s *Servers) HasEntry(c Client, e Entry) bool {
	e = e.withDefaultName()
	want, err := c.fields(e)
	v, there := s.ByName[e.Name]
	return err == nil && there && equalValues(v, want.decoded())
}

// PlanImport plans to replace the named entries and the project entries with e.
// All of them must exist. As with [Plan], the rest of the file is unchanged. It
// returns the same errors as [Plan].
func PlanImport(t Target, names []string, local []ProjectEntry, e Entry) (*Change, error) {
	e = e.withDefaultName()
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	last, after, err := importAllEntries(t.Client, doc, ch.before.data, names, local, e)
	if err != nil {
		return nil, ch.locate(err)
	}
	if bytes.Equal(after, ch.before.data) {
		return ch, nil
	}
	ch.Action, ch.after = Replace, after
	if !ch.before.exists {
		ch.Action = Create
	}
	ch.Notes, ch.Next = append(ch.Notes, t.notes(doc)...), t.Client.Next
	want, err := t.Client.fields(e)
	if err != nil {
		return nil, err
	}
	return ch, ch.prepareDiff(doc, last, e.Name, want, true)
}

// Import records the changes made by one [PlanImport], so that
// [PlanUndoImports] can revert them.
type Import struct {
	Original []byte         // the file before the import
	Names    []string       // entries that were removed
	Local    []ProjectEntry // project entries that were removed
	Entry    Entry          // the entry that was added
}

// PlanUndoImports plans to undo imports, starting with the last one. It removes
// the entry that each import added and restores the entries that it removed. If
// the file has not changed since, it is restored byte for byte. An entry that
// was added again is not overwritten but reported in the notes. done lists the
// imports in the order in which they were made.
func PlanUndoImports(t Target, done []Import) (*Change, error) {
	ch, doc, err := t.open()
	if err != nil || len(done) == 0 {
		return ch, err
	}
	last, after := doc, ch.before.data
	for _, a := range slices.Backward(done) {
		a.Entry = a.Entry.withDefaultName()
		old, err := parse(t.Client, a.Original)
		if err != nil {
			return nil, fmt.Errorf("parse backup of %s: %w", ch.File, err)
		}
		var notes []string
		if last, after, notes, err = a.revert(t.Client, old, last, after); err != nil {
			return nil, ch.locate(err)
		}
		ch.Notes = append(ch.Notes, notes...)
	}
	if ch.after = after; bytes.Equal(after, ch.before.data) {
		return ch, nil
	}
	ch.Action = Replace
	return ch, ch.prepareDiff(doc, last, done[0].Entry.withDefaultName().Name, nil, false)
}

// revert undoes the import. It returns the resulting document, its text, and
// notes about entries that were not restored. old is the parsed Original.
func (a Import) revert(c Client, old, doc document, src []byte) (document, []byte, []string, error) {
	if _, imported, err := importAllEntries(c, old, a.Original, a.Names, a.Local, a.Entry); err == nil && bytes.Equal(imported, src) {
		return old, a.Original, nil, nil
	}
	doc, src, notes, err := a.restoreEntries(c, old, doc, src)
	if err != nil {
		return nil, nil, nil, err
	}
	doc, src, lost, err := restoreProjectEntries(c, old, doc, src, a.Local)
	if err != nil {
		return nil, nil, nil, err
	}
	notes = append(notes, lost...)
	if v, there, err := doc.entry(a.Entry.Name); err == nil && there && !slices.Contains(a.Names, a.Entry.Name) {
		if _, ours := c.parseEntry(a.Entry.Name, v); ours {
			doc, src, err = replaceEntry(c, doc, src, a.Entry.Name, nil)
			return doc, src, notes, err
		}
	}
	return doc, src, notes, nil
}

// restoreEntries restores the removed entries that are missing from the file.
func (a Import) restoreEntries(c Client, old, doc document, src []byte) (document, []byte, []string, error) {
	var notes []string
	for _, name := range a.Names {
		v, there, err := old.entry(name)
		if err != nil || !there {
			continue
		}
		if now, there, err := doc.entry(name); err != nil || there {
			if !equalValues(now, v) {
				notes = append(notes, fmt.Sprintf("entry %q was added again since and is not restored", name))
			}
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if doc, src, err = replaceEntry(c, doc, src, name, newObject(m)); err != nil {
			return nil, nil, nil, err
		}
	}
	return doc, src, notes, nil
}

// importEntries replaces the named entries with e. It returns the new text and
// its parsed form.
func importEntries(c Client, doc document, src []byte, names []string, e Entry) (document, []byte, error) {
	want, err := c.fields(e)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if name == e.Name {
			continue // replaced by the last call below
		}
		if doc, src, err = replaceEntry(c, doc, src, name, nil); err != nil {
			return nil, nil, err
		}
	}
	if v, there, err := doc.entry(e.Name); err != nil || there && equalValues(v, want.decoded()) {
		return doc, src, err
	}
	return replaceEntry(c, doc, src, e.Name, want)
}

// replaceEntry sets the named entry to o, or removes it if o is nil. It
// verifies that the rest of the document is unchanged.
func replaceEntry(c Client, doc document, src []byte, name string, o object) (document, []byte, error) {
	var e edit
	var err error
	if o == nil {
		e, err = doc.removeEntry(name, false)
	} else {
		e, err = doc.setEntry(name, o)
	}
	if err != nil {
		return nil, nil, err
	}
	after := e.apply(src)
	left, err := verify(c, doc, after, name, o)
	return left, after, err
}

// prepareDiff checks the file, chooses the backup's path, and creates the diff.
// want is the new entry. If it is nil, after may contain a restored entry, whose
// values the diff does not show.
func (c *Change) prepareDiff(before, after document, name string, want object, backUp bool) error {
	if err := c.before.checkWritable(c.Target); err != nil {
		return err
	}
	if c.File != c.Target {
		c.Notes = slices.Insert(c.Notes, 0, c.File+" is a symlink to "+c.Target+"; that file will change")
	}
	if c.before.exists && backUp {
		var err error
		if c.Backup, err = backupFor(c.File, c.before.data); err != nil {
			return err
		}
	}
	oldName := c.File
	if !c.before.exists {
		oldName = "/dev/null"
	}
	show := showNewEntry(c.after)
	if want == nil {
		show = showOldEntry(c.after, nil)
	}
	c.diff = unifiedDiff(oldName, c.File, c.before.data, c.after,
		maskText(c.before.data, before.marks(name), showOldEntry(c.before.data, want.strings())),
		maskText(c.after, after.marks(name), show))
	return nil
}

// newObject converts a decoded entry to an object that can be written.
func newObject(m map[string]any) object {
	o := object{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		o = append(o, field{key, m[key]})
	}
	return o
}

// formatValue formats a decoded value that is not a string, a list of strings
// or an object.
func (l layout) formatValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return l.value(newObject(v))
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, l.value(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// formatTOML formats a decoded value on one line. It returns "" if the value
// has no TOML form.
func formatTOML(v any) string {
	switch v := v.(type) {
	case string:
		return quoteTOML(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	case []string:
		var items []string
		for _, s := range v {
			items = append(items, quoteTOML(s))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, formatTOML(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var items []string
		for _, f := range newObject(v) {
			items = append(items, tomlKey(f.key)+" = "+formatTOML(f.value))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "" // verify then rejects the edit
}

// tomlKey formats a key, quoted if necessary.
func tomlKey(s string) string {
	bare := func(r rune) bool {
		return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !bare(r) }) {
		return s
	}
	return quoteTOML(s)
}
