package install

import (
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/skill"
)

// Match returns the skills in a collection that match a name: the skill whose
// directory equals the name, or else all skills with that name or install
// directory.
func Match(c *remote.Collection, name string) []remote.Skill {
	var found []remote.Skill
	for _, s := range c.Skills {
		switch {
		case s.Dir == name:
			return []remote.Skill{s}
		case s.Name == name || Name(c.Location, s) == name:
			found = append(found, s)
		}
	}
	return found
}

// FindProblem returns the problem of the unusable skill with the given name. ok
// is false if there is none.
func FindProblem(c *remote.Collection, name string) (dir, message string, ok bool) {
	for _, p := range c.Problems {
		if p.Severity == skill.Error && (p.Path == name || path.Base(p.Path) == name || path.Base(path.Dir(p.Path)) == name) {
			return p.Path, p.Message, true
		}
	}
	return "", "", false
}

// ParseChoice parses the user's choice among the skills of a collection:
// 1-based numbers, ranges such as 3-5, names, "all" or "none". unknown is the
// first word that matches no skill.
func ParseChoice(line string, c *remote.Collection) (chosen []remote.Skill, unknown string) {
	all, seen := c.Skills, map[remote.Skill]bool{}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		switch strings.ToLower(word) {
		case "all", "*":
			return all, ""
		case "none", "q":
			return nil, ""
		}
		found := Match(c, word)
		if first, last, ok := parseRange(word); ok && len(found) == 0 && first >= 1 && first <= last && last <= len(all) {
			found = all[first-1 : last]
		}
		if len(found) == 0 {
			return nil, word
		}
		for _, s := range found {
			if !seen[s] {
				seen[s], chosen = true, append(chosen, s)
			}
		}
	}
	return chosen, ""
}

// parseRange parses a number such as 3, or a range such as 3-5.
func parseRange(word string) (first, last int, ok bool) {
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.Atoi(from)
	last, also := strconv.Atoi(to)
	return first, last, err == nil && also == nil
}

// NearestName returns the skill name most similar to a mistyped name, or "" if
// none is similar.
func NearestName(name string, all []remote.Skill) string {
	best, most := "", 3
	for _, s := range all {
		if d := editdistance.Distance(editdistance.Normalize(name), editdistance.Normalize(s.Name), most); d < most {
			best, most = s.Name, d
		}
	}
	return best
}
