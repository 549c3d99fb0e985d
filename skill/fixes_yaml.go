package skill

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// block returns the YAML between the fences, or "" if one is missing.
func (m *fixer) block() string { return m.src[m.lay.front:max(m.lay.front, m.lay.end)] }

// replaceBlock returns the file with block as its frontmatter, or "" if it has
// no frontmatter.
func (m *fixer) replaceBlock(block string) string {
	if m.lay.body == 0 {
		return ""
	}
	return m.src[:m.lay.front] + block + m.src[m.lay.end:]
}

// tree returns the frontmatter mapping, or nil if the YAML cannot be parsed
// without repair.
func (m *fixer) tree() *yaml.Node {
	root, err := parseYAML([]byte(m.block()))
	if err != nil || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	return root
}

// value returns the text value of a field.
func (m *fixer) value(key string) (string, bool) {
	root := m.tree()
	if root == nil {
		return "", false
	}
	n := index(root)[key]
	if n == nil || n.Kind != yaml.ScalarNode {
		return "", false
	}
	return n.Value, true
}

// quoteString returns s as a YAML scalar that can only be read as a string.
func quoteString(s string) string { return yamlQuote(s) }

// replaceField returns the file with the field set to value, on one line.
func (m *fixer) replaceField(key, value string) string {
	lines := strings.SplitAfter(m.block(), "\n")
	from, to := fieldLines(lines, key)
	if to == 0 {
		return ""
	}
	return m.replaceBlock(strings.Join(lines[:from], "") + key + ": " + value + "\n" + strings.Join(lines[to:], ""))
}

// fieldLines returns the line range of a top-level field. If the field is
// repeated, it returns the last one. It returns 0, 0 if the field is missing.
func fieldLines(lines []string, key string) (from, to int) {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], key+":") {
			return i, fieldEnd(lines, i)
		}
	}
	return 0, 0
}

// fieldEnd returns the index after the last line of a top-level field. It
// excludes the blank lines and comments that follow the field.
func fieldEnd(lines []string, from int) int {
	to := from + 1
	for i := to; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		inside := lines[i] != "" && (lines[i][0] == ' ' || lines[i][0] == '\t' || lines[i][0] == '-')
		if text != "" && !inside {
			break
		}
		if text != "" {
			to = i + 1
		}
	}
	return to
}

// applyRepair writes the quotes that the parser's repair added.
func (m *fixer) applyRepair() string {
	fixed, _ := repair([]byte(m.block()))
	if fixed == nil {
		return ""
	}
	was, is := strings.SplitAfter(m.block(), "\n"), strings.SplitAfter(string(fixed), "\n")
	var out strings.Builder
	for i, line := range is {
		if i < len(was) && line == "\n" && strings.TrimSpace(was[i]) != "" {
			continue // joined with the line above
		}
		out.WriteString(line)
	}
	return m.replaceBlock(out.String())
}

// fixSyntax replaces tabs with spaces or adds a missing quote.
func (m *fixer) fixSyntax() string {
	if strings.Contains(m.block(), "\t") {
		return m.replaceTabs()
	}
	lines := strings.SplitAfter(m.src, "\n")
	if m.d.Line < 1 || m.d.Line > len(lines) {
		return ""
	}
	line := strings.TrimRight(lines[m.d.Line-1], " \t\r\n")
	at := []rune(line)
	if m.d.Column < 1 || m.d.Column > len(at) {
		return ""
	}
	quote := at[m.d.Column-1]
	if quote != '"' && quote != '\'' {
		return ""
	}
	lines[m.d.Line-1] = line + string(quote) + "\n"
	return strings.Join(lines, "")
}

func (m *fixer) replaceTabs() string {
	return m.replaceBlock(strings.ReplaceAll(m.block(), "\t", "  "))
}

func (m *fixer) deleteLine() string {
	lines := strings.SplitAfter(m.src, "\n")
	if m.d.Line < 1 || m.d.Line > len(lines) {
		return ""
	}
	return strings.Join(slices.Delete(lines, m.d.Line-1, m.d.Line), "")
}

// expandFlow converts lists and maps from flow style to block style.
func (m *fixer) expandFlow() string {
	root := m.tree()
	if root == nil {
		return ""
	}
	lines := strings.SplitAfter(m.block(), "\n")
	for i := len(root.Content) - 2; i >= 0; i -= 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode || !hasFlow(value) {
			continue
		}
		from := key.Line - 1
		if from >= len(lines) || !strings.HasPrefix(lines[from], key.Value+":") {
			return ""
		}
		text, ok := writeBlock(value, "  ")
		if !ok {
			return ""
		}
		lines = slices.Replace(lines, from, fieldEnd(lines, from), key.Value+":\n"+text)
	}
	return m.replaceBlock(strings.Join(lines, ""))
}

func hasFlow(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 || slices.ContainsFunc(n.Content, hasFlow)
}

// writeBlock returns a list or map in block style. It returns false if that is
// not possible, for example because it is empty.
func writeBlock(n *yaml.Node, indent string) (string, bool) {
	if n.Anchor != "" || len(n.Content) == 0 || n.Kind != yaml.SequenceNode && n.Kind != yaml.MappingNode {
		return "", false
	}
	var out strings.Builder
	add := func(lead string, value *yaml.Node) bool {
		out.WriteString(indent + lead)
		if text, ok := inlineScalar(value); ok {
			out.WriteString(" " + text + "\n")
			return true
		}
		text, ok := writeBlock(value, indent+"  ")
		out.WriteString("\n" + text)
		return ok
	}
	for i := 0; i < len(n.Content); i++ {
		lead := "-"
		if n.Kind == yaml.MappingNode {
			key, ok := inlineScalar(n.Content[i])
			if i++; !ok || i == len(n.Content) {
				return "", false
			}
			lead = key + ":"
		}
		if !add(lead, n.Content[i]) {
			return "", false
		}
	}
	return out.String(), true
}

// inlineScalar returns a scalar in a form that fits on one line.
func inlineScalar(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "":
		return "", false
	case isPlain(n) && scalarKind(n) != "str":
		return n.Value, true
	}
	return yamlQuote(n.Value), true
}

// removeEarlierKey deletes the preceding occurrence of a repeated field.
func (m *fixer) removeEarlierKey() string {
	lines := strings.SplitAfter(m.src, "\n")
	indent := m.d.Column - 1
	if m.d.Line < 1 || m.d.Line > len(lines) || indent < 0 {
		return ""
	}
	key, _, ok := strings.Cut(strings.TrimSpace(lines[m.d.Line-1]), ":")
	if !ok {
		return ""
	}
	for i := m.d.Line - 2; i > 0; i-- {
		text := strings.TrimLeft(lines[i], " ")
		depth := len(lines[i]) - len(text)
		switch {
		case strings.TrimSpace(text) == "" || depth > indent:
		case depth < indent || isFence([]byte(strings.TrimRight(text, "\r\n"))):
			return ""
		case strings.HasPrefix(text, key+":"):
			to := i + 1
			for to < m.d.Line-1 && continues(lines[to], indent) {
				to++
			}
			return strings.Join(slices.Delete(lines, i, to), "")
		}
	}
	return ""
}

// quoteMetadata puts quotes around metadata values that are not strings.
func (m *fixer) quoteMetadata() string {
	root := m.tree()
	if root == nil || index(root)["metadata"] == nil {
		return ""
	}
	lines := strings.SplitAfter(m.block(), "\n")
	content := index(root)["metadata"].Content
	for i := len(content) - 1; i > 0; i -= 2 {
		n := content[i]
		if n.Kind != yaml.ScalarNode || scalarKind(n) == "str" {
			continue
		}
		if n.Line > len(lines) || n.Value == "" {
			return ""
		}
		line := []rune(lines[n.Line-1])
		if n.Column-1 > len(line) {
			return ""
		}
		rest, ok := strings.CutPrefix(string(line[n.Column-1:]), n.Value)
		if !ok {
			return ""
		}
		lines[n.Line-1] = string(line[:n.Column-1]) + doubleQuote(n.Value) + rest
	}
	return m.replaceBlock(strings.Join(lines, ""))
}

// doubleQuote returns s as a double-quoted YAML scalar.
func doubleQuote(s string) string {
	var r renderer
	r.string(s)
	return string(r.buf)
}

// moveToMetadata moves fields that the specification does not define to
// metadata.
func (m *fixer) moveToMetadata() string {
	root := m.tree()
	if root == nil {
		return ""
	}
	lines := strings.SplitAfter(m.block(), "\n")
	var moved []string
	for i := len(root.Content) - 2; i >= 0; i -= 2 {
		key := root.Content[i]
		if key.Kind != yaml.ScalarNode || slices.Contains(specFields, key.Value) {
			continue
		}
		from := key.Line - 1
		if from >= len(lines) || !strings.HasPrefix(lines[from], key.Value+":") {
			return ""
		}
		to := fieldEnd(lines, from)
		moved = append(slices.Clone(lines[from:to]), moved...)
		lines = slices.Delete(lines, from, to)
	}
	from, to := fieldLines(lines, "metadata")
	indent := "  "
	if to == 0 {
		lines = append(lines, "metadata:\n")
		to = len(lines)
	} else if to > from+1 {
		first := lines[from+1]
		indent = first[:len(first)-len(strings.TrimLeft(first, " "))]
	}
	for i, line := range moved {
		if strings.TrimSpace(line) != "" {
			moved[i] = indent + line
		}
	}
	return m.replaceBlock(strings.Join(slices.Insert(lines, to, moved...), ""))
}

// renameToolsField renames the field tools to allowed-tools.
func (m *fixer) renameToolsField() string {
	lines := strings.SplitAfter(m.block(), "\n")
	from, to := fieldLines(lines, "tools")
	if to == 0 {
		return ""
	}
	lines[from] = "allowed-" + lines[from]
	return m.replaceBlock(strings.Join(lines, ""))
}

// joinAllowedTools converts allowed-tools to one string, separated by spaces.
func (m *fixer) joinAllowedTools() string {
	if m.skill == nil {
		return ""
	}
	for _, key := range []string{"allowed-tools", "allowed_tools", "allowedTools"} {
		if text := m.replaceField(key, yamlQuote(strings.Join(m.skill.AllowedTools, " "))); text != "" {
			return text
		}
	}
	return ""
}
