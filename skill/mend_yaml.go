package skill

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// block is the YAML between the fences.
func (m *mending) block() string { return m.src[m.lay.front:m.lay.end] }

// withBlock is the text with another block; "" where it has none.
func (m *mending) withBlock(block string) string {
	if m.lay.body == 0 {
		return ""
	}
	return m.src[:m.lay.front] + block + m.src[m.lay.end:]
}

// tree is the mapping of the block, nil where it cannot be read as it is.
func (m *mending) tree() *yaml.Node {
	root, err := parseYAML([]byte(m.block()))
	if err != nil || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	return root
}

// value is the text of a field.
func (m *mending) value(key string) (string, bool) {
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

// asString writes a text so that YAML has no other meaning for it.
func asString(s string) string { return yamlQuote(s) }

// withField is the text with another value of a field, on one line.
func (m *mending) withField(key, value string) string {
	lines := strings.SplitAfter(m.block(), "\n")
	from, to := span(lines, key)
	if to == 0 {
		return ""
	}
	return m.withBlock(strings.Join(lines[:from], "") + key + ": " + value + "\n" + strings.Join(lines[to:], ""))
}

// span are the lines of a field at the top, of several of one name the last; 0 and 0
// where there is none.
func span(lines []string, key string) (from, to int) {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], key+":") {
			return i, spanEnd(lines, i)
		}
	}
	return 0, 0
}

// spanEnd is where the lines of a field at the top end, but for blank ones and comments
// behind it.
func spanEnd(lines []string, from int) int {
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

// quoted has quotes where a repair put some in thought.
func (m *mending) quoted() string {
	fixed, _ := repair([]byte(m.block()))
	if fixed == nil {
		return ""
	}
	was, is := strings.SplitAfter(m.block(), "\n"), strings.SplitAfter(string(fixed), "\n")
	var out strings.Builder
	for i, line := range is {
		if i < len(was) && line == "\n" && strings.TrimSpace(was[i]) != "" {
			continue // it is part of the line above now
		}
		out.WriteString(line)
	}
	return m.withBlock(out.String())
}

// readable has another try at what cannot be read: spaces for tabs, and the end of a
// quote.
func (m *mending) readable() string {
	if strings.Contains(m.block(), "\t") {
		return m.withoutTabs()
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

func (m *mending) withoutTabs() string { return m.withBlock(strings.ReplaceAll(m.block(), "\t", "  ")) }

func (m *mending) withoutLine() string {
	lines := strings.SplitAfter(m.src, "\n")
	if m.d.Line < 1 || m.d.Line > len(lines) {
		return ""
	}
	return strings.Join(slices.Delete(lines, m.d.Line-1, m.d.Line), "")
}

// inLines writes what is in brackets and braces as indented lines.
func (m *mending) inLines() string {
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
		text, ok := blockStyle(value, "  ")
		if !ok {
			return ""
		}
		lines = slices.Replace(lines, from, spanEnd(lines, from), key.Value+":\n"+text)
	}
	return m.withBlock(strings.Join(lines, ""))
}

func hasFlow(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 || slices.ContainsFunc(n.Content, hasFlow)
}

// blockStyle writes a list or a map as indented lines; false where that cannot be, as
// for an empty one.
func blockStyle(n *yaml.Node, indent string) (string, bool) {
	if n.Anchor != "" || len(n.Content) == 0 || n.Kind != yaml.SequenceNode && n.Kind != yaml.MappingNode {
		return "", false
	}
	var out strings.Builder
	add := func(lead string, value *yaml.Node) bool {
		out.WriteString(indent + lead)
		if text, ok := inline(value); ok {
			out.WriteString(" " + text + "\n")
			return true
		}
		text, ok := blockStyle(value, indent+"  ")
		out.WriteString("\n" + text)
		return ok
	}
	for i := 0; i < len(n.Content); i++ {
		lead := "-"
		if n.Kind == yaml.MappingNode {
			key, ok := inline(n.Content[i])
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

// inline is a scalar as it is written on a line.
func inline(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "":
		return "", false
	case isPlain(n) && scalarKind(n) != "str":
		return n.Value, true
	}
	return yamlQuote(n.Value), true
}

// withoutEarlier leaves out what a field is given before it is given again.
func (m *mending) withoutEarlier() string {
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

// quotedValues has quotes around the values of metadata that are no texts.
func (m *mending) quotedValues() string {
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
		lines[n.Line-1] = string(line[:n.Column-1]) + quotedText(n.Value) + rest
	}
	return m.withBlock(strings.Join(lines, ""))
}

// quotedText is a text in double quotes.
func quotedText(s string) string {
	var r renderer
	r.string(s)
	return string(r.buf)
}

// underMetadata moves the fields that the specification does not know below metadata.
func (m *mending) underMetadata() string {
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
		to := spanEnd(lines, from)
		moved = append(slices.Clone(lines[from:to]), moved...)
		lines = slices.Delete(lines, from, to)
	}
	from, to := span(lines, "metadata")
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
	return m.withBlock(strings.Join(slices.Insert(lines, to, moved...), ""))
}

// asAllowedTools gives a field its name.
func (m *mending) asAllowedTools() string {
	lines := strings.SplitAfter(m.block(), "\n")
	from, to := span(lines, "tools")
	if to == 0 {
		return ""
	}
	lines[from] = "allowed-" + lines[from]
	return m.withBlock(strings.Join(lines, ""))
}

// toolsInLine writes allowed tools as one text, separated by spaces.
func (m *mending) toolsInLine() string {
	if m.skill == nil {
		return ""
	}
	for _, key := range []string{"allowed-tools", "allowed_tools", "allowedTools"} {
		if text := m.withField(key, yamlQuote(strings.Join(m.skill.AllowedTools, " "))); text != "" {
			return text
		}
	}
	return ""
}
