package clientconfig

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

const defaultIndent = "  "

// layout describes how to format a value: on one line or on several lines.
type layout struct {
	lines   bool
	newline string
	indent  string // indentation of the line on which the value begins
	unit    string // indentation per level
	space   string // white space after ":" and "," in one-line values
}

// nested returns the layout for values one level deeper.
func (l layout) nested() layout {
	l.indent += l.unit
	return l
}

// formatObject joins the formatted members of an object. The members must be
// formatted with l.nested().
func (l layout) formatObject(members []string) string {
	if !l.lines {
		return "{" + strings.Join(members, ","+l.space) + "}"
	}
	in := l.newline + l.nested().indent
	return "{" + in + strings.Join(members, ","+in) + l.newline + l.indent + "}"
}

func (l layout) formatMember(f field) string {
	space := " "
	if !l.lines {
		space = l.space
	}
	return quoteJSON(f.key) + ":" + space + l.value(f.value)
}

func (l layout) value(v any) string {
	switch v := v.(type) {
	case string:
		return quoteJSON(v)
	case []string:
		var items []string
		for _, s := range v {
			items = append(items, quoteJSON(s))
		}
		space := " "
		if !l.lines {
			space = l.space
		}
		return "[" + strings.Join(items, ","+space) + "]"
	}
	o, ok := v.(object)
	if !ok {
		return l.formatValue(v)
	}
	var members []string
	for _, f := range o {
		members = append(members, l.nested().formatMember(f))
	}
	return l.formatObject(members)
}

func quoteJSON(s string) string { return string(hujson.String(s)) }

func (d *jsonDoc) setEntry(name string, o object) (edit, error) {
	if d.top == nil {
		l := layout{lines: true, newline: lineEnding(d.src), unit: defaultIndent}
		text := l.value(object{{d.key, object{{name, o}}}}) + l.newline
		return edit{insertAt(bomLen(d.src), text)}, nil
	}
	if d.entries == nil {
		return d.addMember(d.root, field{d.key, object{{name, o}}}), nil
	}
	i, err := d.findEntry(name)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return d.addMember(d.top.Members[d.servers].Value, field{name, o}), nil
	}
	m := d.entries.Members[i]
	text := d.siblingLayout(m).value(o)
	return edit{{span{m.Value.StartOffset, m.Value.EndOffset}, text}}, nil
}

// addMember returns the edit that appends a member to an object, formatted like
// the last member.
func (d *jsonDoc) addMember(v hujson.Value, f field) edit {
	o := v.Value.(*hujson.Object)
	if len(o.Members) == 0 {
		return d.addFirstMember(v, f)
	}
	last := o.Members[len(o.Members)-1]
	l := d.siblingLayout(last)
	text := l.formatMember(f)
	if l.lines {
		text = l.newline + l.indent + text
	} else {
		text = l.space + text
	}
	if last.Value.AfterExtra != nil { // keep a trailing comma
		comma := last.Value.EndOffset + len(last.Value.AfterExtra)
		return edit{insertAt(comma+1+sameLineComments(o.AfterExtra, l.lines), text+",")}
	}
	end := last.Value.EndOffset
	return edit{insertAt(end, ","), insertAt(end+sameLineComments(o.AfterExtra, l.lines), text)}
}

// addFirstMember returns the edit that adds a member to an empty object, before
// existing white space and comments.
func (d *jsonDoc) addFirstMember(v hujson.Value, f field) edit {
	o := v.Value.(*hujson.Object)
	l := d.contentLayout(v)
	if !l.lines {
		return edit{insertAt(v.StartOffset+1, l.formatMember(f))}
	}
	n := sameLineComments(o.AfterExtra, true)
	text := l.newline + l.nested().indent + l.nested().formatMember(f)
	if !bytes.Contains(o.AfterExtra[n:], []byte("\n")) {
		text += l.newline + l.indent
	}
	return edit{insertAt(v.StartOffset+1+n, text)}
}

// siblingLayout returns the layout for a new sibling of the member m.
func (d *jsonDoc) siblingLayout(m hujson.ObjectMember) layout {
	l := layout{newline: lineEnding(d.src), unit: d.indentUnit()}
	if bytes.Contains(m.Name.BeforeExtra, []byte("\n")) {
		l.lines, l.indent = true, indentAt(d.src, m.Name.StartOffset)
		return l
	}
	if len(m.Value.BeforeExtra) > 0 || len(m.Name.BeforeExtra) > 0 {
		l.space = " "
	}
	return l
}

// contentLayout returns the layout for the first member of an empty object.
func (d *jsonDoc) contentLayout(v hujson.Value) layout {
	if len(d.top.Members) > 0 {
		if l := d.siblingLayout(d.top.Members[0]); !l.lines {
			return l
		}
	}
	return layout{lines: true, newline: lineEnding(d.src), indent: indentAt(d.src, v.StartOffset), unit: d.indentUnit()}
}

// indentUnit returns the indentation of the root's first member if that member
// starts a line, and the default indentation otherwise.
func (d *jsonDoc) indentUnit() string {
	if len(d.top.Members) > 0 {
		first := d.top.Members[0].Name
		outer := indentAt(d.src, d.root.StartOffset)
		inner := indentAt(d.src, first.StartOffset)
		if unit := strings.TrimPrefix(inner, outer); bytes.Contains(first.BeforeExtra, []byte("\n")) && unit != "" {
			return unit
		}
	}
	return defaultIndent
}

// sameLineComments returns the length of the comments on the rest of the
// current line, including the space before them. They belong to the value on
// that line. It returns 0 if there are no comments, or if values do not have
// their own lines.
func sameLineComments(extra []byte, lines bool) int {
	n := 0
	for _, c := range jsonComments(extra) {
		if !lines || bytes.Contains(extra[n:c.end], []byte("\n")) {
			break
		}
		n = c.end
	}
	return n
}

func (d *jsonDoc) removeEntry(name string, container bool) (edit, error) {
	i, err := d.findEntry(name)
	if err != nil {
		return nil, err
	}
	if container && d.isOnlyEntry(i) {
		return d.removeMember(d.root, d.servers), nil
	}
	return d.removeMember(d.top.Members[d.servers].Value, i), nil
}

// isOnlyEntry reports whether the container contains nothing except entry i,
// not even a comment.
func (d *jsonDoc) isOnlyEntry(i int) bool {
	m := d.entries.Members[i]
	return len(d.entries.Members) == 1 && isBlank(m.Name.BeforeExtra) && isBlank(m.Value.AfterExtra) && isBlank(d.entries.AfterExtra)
}

// removeMember returns the edit that removes member i of an object, and a comma
// that is no longer needed. The edit preserves the comments around the member,
// including those on the preceding lines.
func (d *jsonDoc) removeMember(v hujson.Value, i int) edit {
	o := v.Value.(*hujson.Object)
	m := o.Members[i]
	if len(o.Members) == 1 && isBlank(m.Name.BeforeExtra) && isBlank(m.Value.AfterExtra) && isBlank(o.AfterExtra) {
		return edit{cutSpan(v.StartOffset+1, v.EndOffset-1)}
	}
	start, end := d.cutStart(m), m.Value.EndOffset
	comma := end + len(m.Value.AfterExtra)
	switch last := i == len(o.Members)-1; {
	case !last && !bytes.Contains(m.Name.BeforeExtra, []byte("\n")) && isBlank(m.Value.AfterExtra) && isBlank(o.Members[i+1].Name.BeforeExtra):
		// On one line, the next member moves to the position of the removed
		// one.
		return edit{cutSpan(m.Name.StartOffset, o.Members[i+1].Name.StartOffset)}
	case !last || m.Value.AfterExtra != nil:
		return edit{cutSpan(start, end), cutSpan(comma, comma+1)}
	case i == 0:
		return edit{cutSpan(start, end)}
	}
	previous := o.Members[i-1].Value
	at := previous.EndOffset + len(previous.AfterExtra)
	return edit{cutSpan(at, at+1), cutSpan(max(start, at+1), end)}
}

// cutStart returns the offset at which to start removing a member: after the
// previous token and any comments. A comment keeps its newline unless another
// comment follows.
func (d *jsonDoc) cutStart(m hujson.ObjectMember) int {
	begin := m.Name.StartOffset - len(m.Name.BeforeExtra)
	comments := jsonComments(m.Name.BeforeExtra)
	if len(comments) == 0 {
		return begin
	}
	after := d.src[m.Value.EndOffset+len(m.Value.AfterExtra):]
	after = bytes.TrimLeft(bytes.TrimPrefix(after, []byte(",")), " \t\r")
	if len(m.Value.AfterExtra) > 0 || !bytes.HasPrefix(after, []byte("\n")) {
		return m.Name.StartOffset
	}
	return begin + comments[len(comments)-1].end
}
