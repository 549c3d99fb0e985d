package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// trustedMerges contains, for each key that a trusted project file can set, a
// function that merges the project's value into the user's. Only the user can
// set other keys. The functions never weaken isolation.
var trustedMerges = map[string]func(mine, theirs any) error{
	"servers.files":            appendList,
	"servers.dirs":             appendList,
	"servers.connect":          replaceValue,
	"servers.deadline":         replaceValue,
	"servers.idle":             replaceValue,
	"servers.safety":           raiseLevel,
	"policy.rules":             appendList,
	"policy.threshold":         lowerLevel,
	"sandbox.enabled":          lowerBool,
	"sandbox.min_tier":         raiseNumber,
	"sandbox.memory_mb":        lowerNumber,
	"sandbox.seconds":          lowerNumber,
	"sandbox.disk_mb":          lowerNumber,
	"sandbox.network":          narrowList,
	"sandbox.private":          narrowList,
	"sandbox.build_scripts":    lowerBool,
	"sandbox.direct_workspace": lowerBool,
}

var errLooser = errors.New("is ignored: a project file can only make the setting stricter")

// userOnlyNote is the end of a note about a key that no project file may set.
const userOnlyNote = " is ignored: only you can set it, in your own file"

// untrustedNote returns the end of a note about a key that a project file can
// set only in a trusted project.
func untrustedNote(file string) string {
	return " is ignored until you trust the project, with: loadout trust " + shellQuote(ProjectDir(file))
}

// ProjectDir returns the directory of the project that a configuration file
// belongs to.
func ProjectDir(file string) string {
	dir := filepath.Dir(file)
	if filepath.Base(dir) == ".loadout" {
		dir = filepath.Dir(dir)
	}
	return dir
}

// shellQuote quotes a path for a shell command.
func shellQuote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%+=:,./_-~", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// appendList appends the project's items to the user's list, without
// duplicates.
func appendList(mine, theirs any) error {
	m, t := mine.(*[]string), theirs.(*[]string)
	for _, s := range *t {
		if !slices.Contains(*m, s) {
			*m = append((*m)[:len(*m):len(*m)], s)
		}
	}
	return nil
}

func replaceValue(mine, theirs any) error {
	switch m := mine.(type) {
	case *int:
		*m = *theirs.(*int)
	case *string:
		*m = *theirs.(*string)
	}
	return nil
}

func lowerBool(mine, theirs any) error {
	m, t := mine.(*bool), theirs.(*bool)
	if *t && !*m {
		return errLooser
	}
	*m = *t
	return nil
}

func lowerNumber(mine, theirs any) error { return mergeNumber(mine, theirs, 1) }
func raiseNumber(mine, theirs any) error { return mergeNumber(mine, theirs, -1) }

func mergeNumber(mine, theirs any, sign int) error {
	m, t := mine.(*int), theirs.(*int)
	if (*m-*t)*sign < 0 {
		return errLooser
	}
	*m = *t
	return nil
}

// narrowList replaces the user's list with the project's. It returns an error
// unless the project's list is a subset.
func narrowList(mine, theirs any) error {
	m, t := mine.(*[]string), theirs.(*[]string)
	if !slices.Contains(*m, "*") {
		for _, s := range *t {
			if !slices.Contains(*m, s) {
				return errLooser
			}
		}
	}
	*m = slices.Clone(*t)
	return nil
}

var levels = []string{"SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}

func raiseLevel(mine, theirs any) error { return mergeLevel(mine, theirs, -1) }
func lowerLevel(mine, theirs any) error { return mergeLevel(mine, theirs, 1) }

func mergeLevel(mine, theirs any, sign int) error {
	m, t := mine.(*string), theirs.(*string)
	i, j := slices.Index(levels, *m), slices.Index(levels, *t)
	if j < 0 || i >= 0 && (i-j)*sign < 0 {
		return errLooser
	}
	*m = *t
	return nil
}

// applyProjectValue applies a value from a project file. If the project is
// untrusted, it applies only deny rules.
func (l *loader) applyProjectValue(s setting, n *yaml.Node, file, root, where string) {
	join := trustedMerges[s.key]
	denials := s.key == "policy.rules" && !l.trusted
	switch {
	case join == nil:
		l.report(root, where, s.key+userOnlyNote)
		return
	case !l.trusted && !denials:
		l.report(root, where, s.key+untrustedNote(file))
		return
	}
	theirs := &Config{}
	err := decode(s.value(theirs), n)
	if err == nil {
		err = s.validate(theirs)
	}
	if err != nil {
		l.report(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	(&loader{c: theirs, in: l.in}).makeAbsolute(s, filepath.Dir(file))
	if list, ok := s.value(theirs).(*[]string); ok {
		*list = slices.DeleteFunc(*list, func(v string) bool { return !l.allowedFromProject(s, v, denials, file, root, where) })
		if len(*list) == 0 && denials {
			return
		}
	}
	if s.path {
		_ = join(&l.c.Servers.Project, s.value(theirs)) // separate from the user's own servers
		return
	}
	if err := join(s.value(l.c), s.value(theirs)); err != nil {
		l.report(root, where, s.key+" "+err.Error())
		return
	}
	if l.c.from[s.key] == "" {
		l.c.from[s.key] = file
	} else {
		l.c.from[s.key] += ", " + file
	}
}

// allowedFromProject reports whether a project file is allowed to add the item
// v to a list. If not, it adds a note.
func (l *loader) allowedFromProject(s setting, v string, denials bool, file, root, where string) bool {
	switch {
	case denials && !isDenyRule(v):
		l.report(root, where, "the rule "+quoteValue(v)+untrustedNote(file))
		return false
	case s.path && !isInside(root, v):
		l.report(root, where, quoteValue(v)+" is ignored: outside the project")
		return false
	}
	return true
}

// isDenyRule reports whether a rule starts with the word deny.
func isDenyRule(rule string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(strings.ToLower(rule)), "deny")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n:"))
}
