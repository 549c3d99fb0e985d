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

// member is one of a JSON object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

// members are those of a JSON object; false is that it is none.
func members(raw json.RawMessage) ([]member, bool) {
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

// text is a value as a person reads it: a string without its quotes.
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

// Arguments are the arguments of a call as a person decides about them, as text: of a
// file that is written, what changes, and else each by its name.
func Arguments(tool string, args json.RawMessage, before func(string) (string, bool)) string {
	var b strings.Builder
	for _, l := range argumentLines(tool, args, before) {
		b.WriteString(l.plain() + "\n")
	}
	return b.String()
}

func argumentLines(tool string, args json.RawMessage, before func(string) (string, bool)) []line {
	all, ok := members(args)
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
	switch bare(tool) {
	case toolname.WriteFile:
		if now, ok := get("content"); ok && hasPath {
			was := ""
			if before != nil {
				was, _ = before(path)
			}
			changes, hidden = difference(was, now), []string{"content"}
		}
	case toolname.EditFile:
		was, ok1 := get("old")
		now, ok2 := get("new")
		if ok1 && ok2 {
			changes, hidden = difference(was, now), []string{"old", "new"}
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

// bare is the name of a tool without that of its server.
func bare(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 {
		tool = tool[i+2:]
	}
	return tool[strings.LastIndexByte(tool, '.')+1:]
}

// lines are a name and its value, below it where that has several lines.
func (m member) lines() []line {
	name := span{untabbed(Plain(m.name)), bold}
	text, _ := m.text()
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		return []line{{name, {": " + untabbed(Safe(strings.TrimSuffix(text, "\n"))), normal}}}
	}
	return append([]line{{name, {":", normal}}}, behind(textLines(text, normal), words("  ", normal), words("  ", normal))...)
}

func textLines(text string, st style) []line {
	var out []line
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, words(l, st))
	}
	return out
}

// maxTable bounds the time of a comparison, because a user waits for it.
const maxTable = 1 << 20

// difference returns the removed and added lines between two texts, with two lines of
// context.
func difference(was, now string) []line {
	a, b := linesOf(was), linesOf(now)
	var out []line
	for i, h := range linediff.Hunks(linediff.Compare(a, b, maxTable), 2) {
		if i > 0 {
			out = append(out, line{{"  …", faint}})
		}
		for _, s := range h {
			st := map[byte]style{' ': faint, '-': red, '+': green}[s.Op]
			out = append(out, line{{string(s.Op) + " " + untabbed(Safe(s.Line(a, b))), st}})
		}
	}
	if out == nil {
		return []line{{{"(nothing changes)", faint}}}
	}
	return out
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// brief are arguments in a few words, for a line about a call.
func brief(args string) string {
	all, ok := members(json.RawMessage(args))
	if !ok {
		return Plain(args)
	}
	var out []string
	for _, m := range all {
		text, isString := m.text()
		if nested, ok := members(m.value); ok && !isString {
			text = "{" + fmt.Sprint(len(nested)) + "}"
		}
		if len(all) == 1 {
			return Plain(text)
		}
		out = append(out, Clip(m.name, 20)+": "+Clip(text, 30))
	}
	return strings.Join(out, ", ")
}
