package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlDoc is a TOML document. Edits replace the lines of whole tables, because
// TOML encoders do not preserve comments or layout.
type tomlDoc struct {
	src     []byte
	key     string
	scan    *tomlScan
	servers map[string]any // decoded servers; nil if there are none
}

var _ document = (*tomlDoc)(nil)

func parseTOML(src []byte, key string) (*tomlDoc, error) {
	scan, err := scanTOML(src)
	if err != nil {
		return nil, err
	}
	d := &tomlDoc{src: src, key: key, scan: scan}
	m, err := d.decode()
	if err != nil {
		return nil, d.convertError(err)
	}
	d.servers, _ = m[key].(map[string]any)
	return d, nil
}

func (d *tomlDoc) decode() (map[string]any, error) {
	m := map[string]any{}
	_, err := toml.Decode(string(d.src[bomLen(d.src):]), &m)
	return m, err
}

// convertError converts a parser's error to a refusal. It drops the error text,
// which may quote the file.
func (d *tomlDoc) convertError(err error) error {
	r := &refusal{-1, "invalid TOML", fixSyntax}
	var parse toml.ParseError
	if errors.As(err, &parse) {
		r.offset = bomLen(d.src) + parse.Position.Start
		if strings.Contains(parse.Message, "already been defined") || strings.Contains(parse.Message, "already exists") {
			r.problem += ": duplicate key or table"
		}
	}
	return r
}

func (d *tomlDoc) decoded() map[string]any {
	m, _ := d.decode() // cannot fail, because parseTOML decoded the document
	return m
}

func (d *tomlDoc) entry(name string) (any, bool, error) {
	v, there := d.servers[name]
	return v, there, nil
}

// hasContainer returns true, because a TOML table needs no parent.
func (d *tomlDoc) hasContainer() bool { return true }

func (d *tomlDoc) isEmpty() bool { return isBlank(d.src[bomLen(d.src):]) }

func (d *tomlDoc) setEntry(name string, o object) (edit, error) {
	tables, err := d.tables(name)
	if err != nil {
		return nil, err
	}
	nl := lineEnding(d.src)
	text := d.formatTable(name, o, nl)
	if len(tables) == 0 {
		return edit{insertAt(len(d.src), d.paragraphSeparator(nl)+text)}, nil
	}
	e := edit{{tables[0], text}}
	for _, t := range tables[1:] {
		e = append(e, splice{d.withGap(t), ""})
	}
	return e, nil
}

// paragraphSeparator returns the newlines needed at the end of the document before a new
// table.
func (d *tomlDoc) paragraphSeparator(nl string) string {
	body := d.src[bomLen(d.src):]
	lines := bytes.Split(body, []byte("\n"))
	last := lines[len(lines)-1] // without a newline
	switch {
	case len(last) > 0 && isBlank(last):
		return nl
	case len(last) > 0:
		return nl + nl
	case len(lines) == 1 || isBlank(lines[len(lines)-2]):
		return ""
	}
	return nl
}

func (d *tomlDoc) removeEntry(name string, _ bool) (edit, error) {
	tables, err := d.tables(name)
	if err != nil {
		return nil, err
	}
	var e edit
	for _, t := range tables {
		e = append(e, splice{d.withGap(t), ""})
	}
	return e, nil
}

// tables returns the lines of the entry: its table and subtables. They include
// comments inside a table, but not comments after its last line. If the entry
// is not written as a table, tables returns an error.
func (d *tomlDoc) tables(name string) ([]span, error) {
	var spans []span
	for _, it := range d.scan.items {
		container := slices.Equal(it.path, []string{d.key})
		switch own := d.ownsExpression(it, name); {
		case container && it.kind == tomlPair:
			return nil, d.refuse(it, "%s is written as one value", d.key)
		case container && it.kind == tomlList:
			return nil, d.refuse(it, "%s is an array of tables", d.key)
		case !own:
		case it.kind == tomlList && len(it.path) == 2:
			return nil, d.refuse(it, "%s.%s is an array of tables", d.key, name)
		case it.kind != tomlPair:
			spans = append(spans, it.span)
		case it.table < 0 || !d.ownsExpression(d.scan.items[it.table], name):
			return nil, d.refuse(it, "%s.%s does not have its own table", d.key, name)
		default:
			spans[len(spans)-1].end = it.end
		}
	}
	return d.mergeSpans(spans), nil
}

func (d *tomlDoc) ownsExpression(it expression, name string) bool {
	return len(it.path) >= 2 && it.path[0] == d.key && it.path[1] == name
}

func (d *tomlDoc) refuse(it expression, format string, args ...any) error {
	return &refusal{it.at, fmt.Sprintf(format, args...) + ", which cannot be edited", fmt.Sprintf("write it as [%s.NAME] tables, or %s", d.key, fixByHand)}
}

// mergeSpans joins spans that are separated only by empty lines.
func (d *tomlDoc) mergeSpans(spans []span) []span {
	var merged []span
	for _, s := range spans {
		if n := len(merged); n > 0 && isBlank(d.src[merged[n-1].end:s.start]) {
			merged[n-1].end = s.end
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// withGap extends a span that is to be deleted to include an adjacent empty
// line, if the deletion would otherwise leave two consecutive empty lines, or an
// empty line at the end of the document.
func (d *tomlDoc) withGap(s span) span {
	before := d.src[bomLen(d.src):s.start]
	previous := before[bytes.LastIndexByte(bytes.TrimSuffix(before, []byte("\n")), '\n')+1:]
	following := d.src[s.end:min(s.end+lengthTo(d.src[s.end:], "\n")+1, len(d.src))]
	switch {
	case len(before) > 0 && !isBlank(previous): // the line before has text
	case len(following) > 0 && isBlank(following):
		s.end += len(following)
	case len(before) > 0 && s.end == len(d.src):
		s.start -= len(previous)
	}
	return s
}

// formatTable formats the entry as a table.
func (d *tomlDoc) formatTable(name string, o object, nl string) string {
	var b strings.Builder
	b.WriteString("[" + d.key + "." + tomlKey(name) + "]" + nl)
	for _, f := range o {
		b.WriteString(tomlKey(f.key) + " = " + formatTOML(f.value) + nl)
	}
	return b.String()
}

// quoteTOML formats a basic string, or a literal string if that avoids escaping
// backslashes, as in Windows paths.
func quoteTOML(s string) string {
	control := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	if strings.Contains(s, `\`) && !strings.Contains(s, "'") && !control {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func (d *tomlDoc) marks(name string) []mark {
	marks := slices.Clone(d.scan.marks)
	for _, it := range d.scan.items {
		if !d.ownsExpression(it, name) {
			continue
		}
		for i := it.first; i < it.last; i++ {
			m := &marks[i]
			m.in = true
			if len(it.path) == 3 {
				m.key = it.path[2]
			}
			if m.kind == markString {
				scan := tomlScan{src: d.src, pos: m.end}
				m.text = scan.unquote(m.start)
			}
		}
	}
	return marks
}
