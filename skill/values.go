package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/printable"
)

// maxListItems is the maximum length of a frontmatter list. Further items are
// dropped.
const maxListItems = 1000

// usableName reports whether s can be shown as a label: it is printable and
// cannot be mistaken for a path.
func usableName(s string) bool {
	if s == "" || s == "." || s == ".." || utf8.RuneCountInString(s) > 256 || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsAny(s, `/\`) && printable.IsLabel(s)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// isPlaceholder reports whether a description is an unedited template.
func isPlaceholder(s string) bool {
	t := strings.ToLower(s[:min(len(s), 40)])
	for _, p := range []string{"todo", "[todo", "tbd", "fixme", "replace with", "[replace", "your description", "<description", "description here", "lorem ipsum", "placeholder"} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return strings.Contains(s, "[TODO:") || strings.Contains(s, "TODO: complete")
}

// isText reports whether the reference validator reads a value as text. That is
// every scalar except a plain << or =, which have their own types in its YAML
// library.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !(isPlain(n) && (n.Value == "<<" || n.Value == "="))
}

// scalarText returns a value as text: the items of a list are joined with ", ",
// and a map is encoded as JSON.
func scalarText(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value
	case yaml.SequenceNode:
		return strings.Join(stringList(n, false), ", ")
	case yaml.MappingNode:
		if js, err := toJSON(n); err == nil {
			return string(js)
		}
	}
	return ""
}

// stringList returns the items of a list. A single string counts as a list of
// one item or, if split is set, is split at commas.
func stringList(n *yaml.Node, split bool) []string {
	var items []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content[:min(len(n.Content), maxListItems)] {
			if c = resolve(c); c.Kind == yaml.ScalarNode {
				items = append(items, c.Value)
			}
		}
	case yaml.ScalarNode:
		items = []string{n.Value}
		if split {
			items = strings.SplitN(n.Value, ",", maxListItems)
		}
	}
	out := items[:0]
	for _, it := range items {
		if it = strings.TrimSpace(it); it != "" {
			out = append(out, it)
		}
	}
	return out
}

// isToolList reports whether n is a list of tool declarations rather than names
// of allowed tools.
func isToolList(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode && len(n.Content) > 0 && resolve(n.Content[0]).Kind == yaml.MappingNode
}

func toolPatterns(n *yaml.Node) []string {
	if n.Kind == yaml.SequenceNode {
		var out []string
		for _, item := range stringList(n, false) {
			out = append(out, splitTools(item)...)
		}
		return out
	}
	return splitTools(scalarText(n))
}

// splitTools splits a list of tool patterns at commas or spaces outside
// parentheses, so that Bash(git add:*, git commit:*) is one pattern. An
// unclosed parenthesis extends to the end of s.
func splitTools(s string) []string {
	var out []string
	depth, start := 0, 0
	flush := func(end int) {
		if t := strings.TrimSpace(s[start:end]); t != "" && len(out) < maxListItems {
			out = append(out, t)
		}
	}
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth = max(depth-1, 0)
		case depth == 0 && (r == ',' || unicode.IsSpace(r)):
			flush(i)
			start = i + utf8.RuneLen(r)
		}
	}
	flush(len(s))
	return out
}

func quote(s string) string { return `"` + shorten(s) + `"` }

// shorten shortens untrusted text for a message and makes it valid UTF-8.
func shorten(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// list joins up to ten names for a message.
func list(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
