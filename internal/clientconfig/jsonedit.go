package clientconfig

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"
)

const defaultIndent = "  "

// layout is how a value is written at one place: over several lines, or on one.
type layout struct {
	lines   bool
	newline string
	indent  string // of the line the value begins on
	unit    string // one step of indentation
	space   string // after ":" and ",", on one line
}

// inner is the layout one level down.
func (l layout) inner() layout {
	l.indent += l.unit
	return l
}

// braces wraps the members of an object, which are written in l.inner().
func (l layout) braces(members []string) string {
	if !l.lines {
		return "{" + strings.Join(members, ","+l.space) + "}"
	}
	in := l.newline + l.inner().indent
	return "{" + in + strings.Join(members, ","+in) + l.newline + l.indent + "}"
}

func (l layout) member(f field) string {
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
		return l.other(v)
	}
	var members []string
	for _, f := range o {
		members = append(members, l.inner().member(f))
	}
	return l.braces(members)
}

func quoteJSON(s string) string { return string(hujson.String(s)) }

func (d *jsonDoc) with(name string, o object) (edit, error) {
	if d.top == nil {
		l := layout{lines: true, newline: newline(d.src), unit: defaultIndent}
		text := l.value(object{{d.key, object{{name, o}}}}) + l.newline
		return edit{insert(bomLen(d.src), text)}, nil
	}
	if d.entries == nil {
		return d.add(d.root, field{d.key, object{{name, o}}}), nil
	}
	i, err := d.find(name)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return d.add(d.top.Members[d.servers].Value, field{name, o}), nil
	}
	m := d.entries.Members[i]
	text := d.beside(m).value(o)
	return edit{{span{m.Value.StartOffset, m.Value.EndOffset}, text}}, nil
}

// add appends a member to an object, written as its last member is.
func (d *jsonDoc) add(v hujson.Value, f field) edit {
	o := v.Value.(*hujson.Object)
	if len(o.Members) == 0 {
		return d.addFirst(v, f)
	}
	last := o.Members[len(o.Members)-1]
	l := d.beside(last)
	text := l.member(f)
	if l.lines {
		text = l.newline + l.indent + text
	} else {
		text = l.space + text
	}
	if last.Value.AfterExtra != nil { // there is a comma after it, and is to be one after ours
		comma := last.Value.EndOffset + len(last.Value.AfterExtra)
		return edit{insert(comma+1+sameLine(o.AfterExtra, l.lines), text+",")}
	}
	end := last.Value.EndOffset
	return edit{insert(end, ","), insert(end+sameLine(o.AfterExtra, l.lines), text)}
}

// addFirst puts a member into an object that has none. White space and comments
// that are there stay behind it.
func (d *jsonDoc) addFirst(v hujson.Value, f field) edit {
	o := v.Value.(*hujson.Object)
	l := d.within(v)
	if !l.lines {
		return edit{insert(v.StartOffset+1, l.member(f))}
	}
	n := sameLine(o.AfterExtra, true)
	text := l.newline + l.inner().indent + l.inner().member(f)
	if !bytes.Contains(o.AfterExtra[n:], []byte("\n")) {
		text += l.newline + l.indent
	}
	return edit{insert(v.StartOffset+1+n, text)}
}

// beside is the layout of a member that is there, for another one like it.
func (d *jsonDoc) beside(m hujson.ObjectMember) layout {
	l := layout{newline: newline(d.src), unit: d.unit()}
	if bytes.Contains(m.Name.BeforeExtra, []byte("\n")) {
		l.lines, l.indent = true, indentAt(d.src, m.Name.StartOffset)
		return l
	}
	if len(m.Value.BeforeExtra) > 0 || len(m.Name.BeforeExtra) > 0 {
		l.space = " "
	}
	return l
}

// within is the layout of the inside of an object without members.
func (d *jsonDoc) within(v hujson.Value) layout {
	if len(d.top.Members) > 0 {
		if l := d.beside(d.top.Members[0]); !l.lines {
			return l
		}
	}
	return layout{lines: true, newline: newline(d.src), indent: indentAt(d.src, v.StartOffset), unit: d.unit()}
}

// unit is the indentation of the first member of the root, if it has a line of
// its own.
func (d *jsonDoc) unit() string {
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

// sameLine is the length of the comments that end on the line on which extra
// begins, with the space before them: they belong to what stands there. It is
// 0 where there are none, and where values do not have lines of their own.
func sameLine(extra []byte, lines bool) int {
	n := 0
	for _, c := range jsonComments(extra) {
		if !lines || bytes.Contains(extra[n:c.end], []byte("\n")) {
			break
		}
		n = c.end
	}
	return n
}

func (d *jsonDoc) without(name string, container bool) (edit, error) {
	i, err := d.find(name)
	if err != nil {
		return nil, err
	}
	if container && d.bare(i) {
		return d.remove(d.root, d.servers), nil
	}
	return d.remove(d.top.Members[d.servers].Value, i), nil
}

// bare reports whether entry i is all that the container holds, comments
// counted.
func (d *jsonDoc) bare(i int) bool {
	m := d.entries.Members[i]
	return len(d.entries.Members) == 1 && isBlank(m.Name.BeforeExtra) && isBlank(m.Value.AfterExtra) && isBlank(d.entries.AfterExtra)
}

// remove takes member i out of an object, with the comma that it no longer
// needs. Comments around it stay, also those on the lines before it.
func (d *jsonDoc) remove(v hujson.Value, i int) edit {
	o := v.Value.(*hujson.Object)
	m := o.Members[i]
	if len(o.Members) == 1 && isBlank(m.Name.BeforeExtra) && isBlank(m.Value.AfterExtra) && isBlank(o.AfterExtra) {
		return edit{cut(v.StartOffset+1, v.EndOffset-1)}
	}
	start, end := d.before(m), m.Value.EndOffset
	comma := end + len(m.Value.AfterExtra)
	switch last := i == len(o.Members)-1; {
	case !last && !bytes.Contains(m.Name.BeforeExtra, []byte("\n")) && isBlank(m.Value.AfterExtra) && isBlank(o.Members[i+1].Name.BeforeExtra):
		// On one line: the next takes its place.
		return edit{cut(m.Name.StartOffset, o.Members[i+1].Name.StartOffset)}
	case !last || m.Value.AfterExtra != nil:
		return edit{cut(start, end), cut(comma, comma+1)}
	case i == 0:
		return edit{cut(start, end)}
	}
	previous := o.Members[i-1].Value
	at := previous.EndOffset + len(previous.AfterExtra)
	return edit{cut(at, at+1), cut(max(start, at+1), end)}
}

// before is where to begin cutting a member: after the comments that precede
// it, or the token. A comment keeps its line end unless another follows.
func (d *jsonDoc) before(m hujson.ObjectMember) int {
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
