package evaluation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
)

// maxProposed is the maximum number of proposed cases that should load the skill, and of
// those that should not.
const maxProposed = 5

// Propose returns a first [evalfile.OwnFile] for a skill of the catalog. Its prompts are
// parts of the description and, as prompts for which the skill should not be loaded,
// parts of the descriptions of similar skills. The author replaces them.
func Propose(ctx context.Context, c *catalog.Catalog, e *catalog.Entry) (string, error) {
	hits, err := c.Search(ctx, e.Description, catalog.SearchOptions{Limit: maxProposed + 1, ForModel: true})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Prompts for which an agent should, or should not, load this skill.\n# Replace them with what your users write. Run: loadout test DIRECTORY\nversion: 1\ncases:\n")
	n := 0
	add := func(prompt string, trigger bool) {
		n++
		quoted, _ := json.Marshal(prompt) // cannot fail for a string; JSON strings are YAML strings
		fmt.Fprintf(&b, "  - id: case-%d\n    prompt: %s\n    trigger: %t\n", n, quoted, trigger)
	}
	for i, part := range clauses(e.Description) {
		if i == maxProposed {
			break
		}
		add(part, true)
	}
	for _, h := range hits {
		if parts := clauses(h.Description); h.Key() != e.Key() && len(parts) > 0 {
			add(parts[0], false)
		}
	}
	return b.String(), nil
}

// clauses returns the sentences and clauses of a description that could be tasks.
func clauses(description string) []string {
	const shortest = 12 // characters
	text := printable.OneLine(description)
	for _, lead := range []string{"Use this skill when ", "Use this when ", "Use when ", "Use for ", "Use to "} {
		text = strings.ReplaceAll(text, lead, "")
	}
	var out []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".;:。；：", r) }) {
		part = strings.TrimSpace(part)
		if utf8.RuneCountInString(part) >= shortest || hasWide(part) {
			out = append(out, part)
		}
	}
	return out
}

// hasWide reports whether a text has characters of a script in which a few characters
// say much.
func hasWide(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r >= 0x2e80 })
}
