package library

import (
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/evalfile"
	"github.com/loadout-dev/loadout/internal/printable"
)

// Limits on the questions of a version. They are part of its package, so they may
// be written to be found for everything.
const (
	maxQuestions = 5
	maxQuestion  = 200 // characters
)

// readQuestions returns prompts for which the author wants an agent to load the
// skill, from the evaluation files in its package. Searches find the skill by
// them, with the weight of its body: less than by its description. Prompts that
// are too long or that repeat others are skipped.
func readQuestions(fsys fs.FS, name string) []string {
	var out []string
	known := map[string]bool{}
	for _, c := range evalfile.Read(fsys, name).Cases {
		q := printable.OneLine(c.Prompt)
		if !c.Trigger || q == "" || utf8.RuneCountInString(q) > maxQuestion || known[strings.ToLower(q)] {
			continue
		}
		known[strings.ToLower(q)] = true
		if out = append(out, q); len(out) == maxQuestions {
			break
		}
	}
	return out
}

// searchText returns the text by which searches find a skill in addition to its
// name, description and tags.
func (m *meta) searchText() string {
	return strings.Join(append([]string{m.Examples}, m.Questions...), "\n")
}
