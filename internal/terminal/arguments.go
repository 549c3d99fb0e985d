package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/linediff"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// member is a name-value pair of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// parseMembers returns the members of a JSON object in order. It returns false
// for other JSON.
func parseMembers(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			return nil, false
		}
		m := member{name: key}
		if err := dec.Decode(&m.value); err != nil {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

// text returns the value for display, without the quotes of a string.
func (m member) text() (s string, isString bool) {
	if json.Unmarshal(m.value, &s) == nil && !bytes.Equal(m.value, []byte("null")) {
		return s, true
	}
	var b bytes.Buffer
	if json.Indent(&b, m.value, "", "  ") != nil {
		return string(m.value), false
	}
	return b.String(), false
}

// Arguments formats the arguments of a call for review. If the call writes a
// file, it shows a diff; otherwise it shows each argument with its name.
func Arguments(tool string, args json.RawMessage, before func(string) (string, bool)) string {
	var b strings.Builder
	for _, l := range argumentLines(tool, args, before) {
		b.WriteString(l.plainText() + "\n")
	}
	return b.String()
}

func argumentLines(tool string, args json.RawMessage, before func(string) (string, bool)) []line {
	all, ok := parseMembers(args)
	if !ok {
		return textLines(string(args), normal)
	}
	get := func(name string) (string, bool) {
		i := slices.IndexFunc(all, func(m member) bool { return m.name == name })
		if i < 0 {
			return "", false
		}
		return all[i].text()
	}
	path, hasPath := get("path")
	var changes []line
	hidden := []string{}
	switch baseName(tool) {
	case toolname.WriteFile:
		if now, ok := get("content"); ok && hasPath {
			was := ""
			if before != nil {
				was, _ = before(path)
			}
			changes, hidden = diffLines(was, now), []string{"content"}
		}
	case toolname.EditFile:
		was, ok1 := get("old")
		now, ok2 := get("new")
		if ok1 && ok2 {
			changes, hidden = diffLines(was, now), []string{"old", "new"}
		}
	}
	var out []line
	for _, m := range all {
		if !slices.Contains(hidden, m.name) {
			out = append(out, m.lines()...)
		}
	}
	return append(out, changes...)
}

// baseName removes the server prefix from a tool name.
func baseName(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	return tool[strings.LastIndexByte(tool, '.')+1:]
}

// lines formats the name and the value. A multi-line value starts on its own
// line.
func (m member) lines() []line {
	name := span{expandTabs(Plain(m.name)), bold}
	text, _ := m.text()
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		return []line{{name, {": " + expandTabs(Safe(strings.TrimSuffix(text, "\n"))), normal}}}
	}
	return append([]line{{name, {":", normal}}}, prefixLines(textLines(text, normal), styledText("  ", normal), styledText("  ", normal))...)
}

func textLines(text string, st style) []line {
	var out []line
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, styledText(l, st))
	}
	return out
}

// maxTable is the maximum size of the table for comparing lines, because the
// user waits for the result.
const maxTable = 1 << 20

// diffLines returns the diff of two texts with two lines of context.
func diffLines(was, now string) []line {
	a, b := splitLines(was), splitLines(now)
	var out []line
	for i, h := range linediff.Hunks(linediff.Compare(a, b, maxTable), 2) {
		if i > 0 {
			out = append(out, line{{"  …", faint}})
		}
		for _, s := range h {
			st := map[byte]style{' ': faint, '-': red, '+': green}[s.Op]
			out = append(out, line{{string(s.Op) + " " + expandTabs(Safe(s.Line(a, b))), st}})
		}
	}
	if out == nil {
		return []line{{{"(no changes)", faint}}}
	}
	return out
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// summarizeArguments formats arguments for the one-line summary of a call.
func summarizeArguments(args string) string {
	all, ok := parseMembers(json.RawMessage(args))
	if !ok {
		return Plain(args)
	}
	var out []string
	for _, m := range all {
		text, isString := m.text()
		if nested, ok := parseMembers(m.value); ok && !isString {
			text = "{" + fmt.Sprint(len(nested)) + "}"
		}
		if len(all) == 1 {
			return Plain(text)
		}
		out = append(out, Clip(m.name, 20)+": "+Clip(text, 30))
	}
	return strings.Join(out, ", ")
}
