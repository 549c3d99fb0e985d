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

// Servers contains the MCP servers in a client's file, including credentials.
type Servers struct {
	File   string         // path as the client uses it
	Exists bool           // the file is there
	Data   []byte         // all of the file
	ByName map[string]any // decoded entries; numbers of JSON are json.Number
	Inputs any            // of VS Code, nil for none

	projects map[string]map[string]any
}

// Read returns the servers in the target's file, or none without a file. Its errors are
// those of [Plan].
func Read(t Target) (*Servers, error) {
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	all := doc.decoded()
	s := &Servers{File: ch.File, Exists: ch.before.exists, Data: ch.before.data, ByName: map[string]any{}, Inputs: all["inputs"], projects: projectsOf(t, all)}
	if m, ok := all[t.Client.Key].(map[string]any); ok {
		s.ByName = m
	}
	return s, nil
}

// Holds reports whether the entry with e's name is exactly what [Plan] writes for e.
func (s *Servers) Holds(c Client, e Entry) bool {
	e = e.named()
	want, err := c.fields(e)
	v, there := s.ByName[e.Name]
	return err == nil && there && equal(v, want.decoded())
}

// PlanAdopt plans to replace the named entries, which must exist, and those of projects by
// the entry. Everything else stays as with [Plan]. Its errors are those of [Plan].
func PlanAdopt(t Target, names []string, local []Local, e Entry) (*Change, error) {
	e = e.named()
	ch, doc, err := t.open()
	if err != nil {
		return nil, err
	}
	last, after, err := adoptAll(t.Client, doc, ch.before.data, names, local, e)
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

// Adoption records one [PlanAdopt], so that [PlanReturn] can revert it.
type Adoption struct {
	Original []byte   // the file before it
	Names    []string // entries that it removed
	Local    []Local  // entries of projects that it removed
	Entry    Entry    // the entry that it added
}

// PlanReturn plans the revert of adoptions, the last one first: it removes
// their entry and restores the entries they removed. A file that nobody changed
// since is restored to the byte. An entry that was written anew since is not
// overwritten; the notes name it. done lists the adoptions in their order.
func PlanReturn(t Target, done []Adoption) (*Change, error) {
	ch, doc, err := t.open()
	if err != nil || len(done) == 0 {
		return ch, err
	}
	last, after := doc, ch.before.data
	for _, a := range slices.Backward(done) {
		a.Entry = a.Entry.named()
		old, err := parse(t.Client, a.Original)
		if err != nil {
			return nil, fmt.Errorf("the backup of %s: %w", ch.File, err)
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
	return ch, ch.prepareDiff(doc, last, done[0].Entry.named().Name, nil, false)
}

// revert returns the text without the adoption, and notes about entries that
// are not restored. old is the parsed Original.
func (a Adoption) revert(c Client, old, doc document, src []byte) (document, []byte, []string, error) {
	if _, adopted, err := adoptAll(c, old, a.Original, a.Names, a.Local, a.Entry); err == nil && bytes.Equal(adopted, src) {
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
	if v, there, err := doc.value(a.Entry.Name); err == nil && there && !slices.Contains(a.Names, a.Entry.Name) {
		if _, ours := c.entry(a.Entry.Name, v); ours {
			doc, src, err = replaceEntry(c, doc, src, a.Entry.Name, nil)
			return doc, src, notes, err
		}
	}
	return doc, src, notes, nil
}

// restoreEntries restores the removed entries that are not in the file.
func (a Adoption) restoreEntries(c Client, old, doc document, src []byte) (document, []byte, []string, error) {
	var notes []string
	for _, name := range a.Names {
		v, there, err := old.value(name)
		if err != nil || !there {
			continue
		}
		if now, there, err := doc.value(name); err != nil || there {
			if !equal(now, v) {
				notes = append(notes, fmt.Sprintf("the entry %q has been written anew since, and stays", name))
			}
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if doc, src, err = replaceEntry(c, doc, src, name, objectOf(m)); err != nil {
			return nil, nil, nil, err
		}
	}
	return doc, src, notes, nil
}

// adopt returns the new text and its parsed form.
func adopt(c Client, doc document, src []byte, names []string, e Entry) (document, []byte, error) {
	want, err := c.fields(e)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if name == e.Name {
			continue // it is replaced
		}
		if doc, src, err = replaceEntry(c, doc, src, name, nil); err != nil {
			return nil, nil, err
		}
	}
	if v, there, err := doc.value(e.Name); err != nil || there && equal(v, want.decoded()) {
		return doc, src, err
	}
	return replaceEntry(c, doc, src, e.Name, want)
}

// replaceEntry makes one edit and verifies that it changes nothing else. The named entry becomes
// o, or is removed if o is nil.
func replaceEntry(c Client, doc document, src []byte, name string, o object) (document, []byte, error) {
	var e edit
	var err error
	if o == nil {
		e, err = doc.without(name, false)
	} else {
		e, err = doc.with(name, o)
	}
	if err != nil {
		return nil, nil, err
	}
	after := e.apply(src)
	left, err := verify(c, doc, after, name, o)
	return left, after, err
}

// prepareDiff verifies the file, chooses the backup and creates the diff.
func (c *Change) prepareDiff(before, after document, name string, want object, backUp bool) error {
	if err := c.before.checkWritable(c.Target); err != nil {
		return err
	}
	if c.File != c.Target {
		c.Notes = slices.Insert(c.Notes, 0, c.File+" is a symlink to "+c.Target+", which will change")
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
	c.diff = unifiedDiff(oldName, c.File, c.before.data, c.after,
		maskText(c.before.data, before.marks(name), showOld(c.before.data, want.strings())),
		maskText(c.after, after.marks(name), showNew(c.after)))
	return nil
}

// objectOf converts a decoded entry for writing.
func objectOf(m map[string]any) object {
	o := object{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		o = append(o, field{key, m[key]})
	}
	return o
}

// formatValue formats a decoded value that is not a string, list of strings or object.
func (l layout) formatValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return l.value(objectOf(v))
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

// formatTOML formats a decoded value on one line, or returns "" if it cannot.
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
		for _, f := range objectOf(v) {
			items = append(items, tomlKey(f.key)+" = "+formatTOML(f.value))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "" // then verify refuses it
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
