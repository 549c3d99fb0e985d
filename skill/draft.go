package skill

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
)

// Draft holds the fields of a new skill. Only the name is required. The fields
// are not checked.
type Draft struct {
	Name        string // 1 to 64 lower-case ASCII letters, digits and single inner hyphens
	Description string // generated from the name if empty
	Version     string
	Category    string
	Tools       []Tool // listed in the default instructions
	// Instructions is the body of the skill. If it is empty, a template is
	// used.
	Instructions string
}

// Render returns the SKILL.md of the new skill. It is valid if the name has the
// form required by [Draft] and the description has at most 1,024 characters.
// Line breaks in fields are replaced, so that no value can add a field.
func (d Draft) Render() []byte {
	description := draftText(d.Description)
	if description == "" {
		words := strings.ReplaceAll(draftText(d.Name), "-", " ")
		description = fmt.Sprintf("Helps with %s. Use when the task is about %s.", words, words)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\nname: %s\ndescription: %s\n", yamlQuote(draftText(d.Name)), yamlQuote(description))
	if d.Version != "" || d.Category != "" {
		b.WriteString("metadata:\n")
		if d.Version != "" {
			fmt.Fprintf(&b, "  version: %s\n", yamlQuote(draftText(d.Version)))
		}
		if d.Category != "" {
			fmt.Fprintf(&b, "  category: %s\n", yamlQuote(draftText(d.Category)))
		}
	}
	if d.Instructions != "" {
		fmt.Fprintf(&b, "---\n\n%s\n", strings.Trim(d.Instructions, "\r\n"))
		return b.Bytes()
	}
	fmt.Fprintf(&b, "---\n\n# %s\n\n", strings.ReplaceAll(draftText(d.Name), "-", " "))
	b.WriteString("## When to use this\n\nName the situations, and what is out of scope.\n\n" +
		"## Steps\n\n1. Say what to do first, in the imperative.\n2. Say how to tell that it worked.\n\n")
	if len(d.Tools) > 0 {
		b.WriteString("## Tools\n\n")
		for _, t := range d.Tools {
			fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(draftText(t.Name), "`", "'"))
		}
		b.WriteString("\n")
	}
	b.WriteString("## Files\n\nPut long material into files under references/ and name them here, with a note on when to\n" +
		"read each; put programs under scripts/ and templates under assets/.\n")
	return b.Bytes()
}

// yamlQuote returns s as a plain YAML scalar if that is safe, and in double
// quotes otherwise.
func yamlQuote(s string) string {
	if s != "" && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z') && isPlainScalar(s) && strings.TrimSpace(s) == s && coreKind(s) == "str" && !strings.Contains(s, "---") {
		return s
	}
	var r renderer
	r.string(s) // a JSON string is a YAML string
	// The reference validator treats any --- as the end of the frontmatter.
	return strings.ReplaceAll(string(r.buf), "--", `-\u002d`)
}

// draftText returns s on one line, without characters that YAML does not allow.
func draftText(s string) string {
	return printable.OneLine(strings.Map(func(r rune) rune {
		if r == 0xfeff || r&0xfffe == 0xfffe {
			return -1
		}
		return r
	}, s))
}
