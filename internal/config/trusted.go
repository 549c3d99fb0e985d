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

// fromTrusted says for each key that a project's file may set once a person
// trusts it how its value joins the one in force. Keys that are not here stay
// the person's. What isolates may only become stricter.
var fromTrusted = map[string]func(mine, theirs any) error{
	"servers.files":         behind,
	"servers.dirs":          behind,
	"servers.connect":       instead,
	"servers.deadline":      instead,
	"servers.idle":          instead,
	"servers.safety":        levelUp,
	"policy.rules":          behind,
	"policy.threshold":      levelDown,
	"sandbox.enabled":       onlyFalse,
	"sandbox.min_tier":      onlyMore,
	"sandbox.memory_mb":     onlyLess,
	"sandbox.seconds":       onlyLess,
	"sandbox.disk_mb":       onlyLess,
	"sandbox.network":       onlyAmong,
	"sandbox.private":       onlyAmong,
	"sandbox.build_scripts": onlyFalse,
}

var errLooser = errors.New("is ignored: a project's file may only make it stricter")

// onlyYours ends what is said of a key that no project's file may set.
const onlyYours = " is ignored: only you can set it, in your own file"

// untilTrusted ends what is said of what a project's file may set once a person
// trusts the project.
func untilTrusted(file string) string {
	return " is ignored until you trust the project, with: loadout trust " + quoted(ProjectDir(file))
}

// ProjectDir is the directory that a project's configuration file is for.
func ProjectDir(file string) string {
	dir := filepath.Dir(file)
	if filepath.Base(dir) == ".loadout" {
		dir = filepath.Dir(dir)
	}
	return dir
}

// quoted is a path as a shell reads it.
func quoted(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%+=:,./_-~", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// behind adds texts after those there are.
func behind(mine, theirs any) error {
	m, t := mine.(*[]string), theirs.(*[]string)
	for _, s := range *t {
		if !slices.Contains(*m, s) {
			*m = append((*m)[:len(*m):len(*m)], s)
		}
	}
	return nil
}

func instead(mine, theirs any) error {
	switch m := mine.(type) {
	case *int:
		*m = *theirs.(*int)
	case *string:
		*m = *theirs.(*string)
	}
	return nil
}

func onlyFalse(mine, theirs any) error {
	m, t := mine.(*bool), theirs.(*bool)
	if *t && !*m {
		return errLooser
	}
	*m = *t
	return nil
}

func onlyLess(mine, theirs any) error { return ordered(mine, theirs, 1) }
func onlyMore(mine, theirs any) error { return ordered(mine, theirs, -1) }

func ordered(mine, theirs any, sign int) error {
	m, t := mine.(*int), theirs.(*int)
	if (*m-*t)*sign < 0 {
		return errLooser
	}
	*m = *t
	return nil
}

// onlyAmong takes a list of which everything is allowed already.
func onlyAmong(mine, theirs any) error {
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

func levelUp(mine, theirs any) error   { return byLevel(mine, theirs, -1) }
func levelDown(mine, theirs any) error { return byLevel(mine, theirs, 1) }

func byLevel(mine, theirs any, sign int) error {
	m, t := mine.(*string), theirs.(*string)
	i, j := slices.Index(levels, *m), slices.Index(levels, *t)
	if j < 0 || i >= 0 && (i-j)*sign < 0 {
		return errLooser
	}
	*m = *t
	return nil
}

// setByProject applies a value of a project's file, as far as the project is
// trusted. Of one that is not, only rules that deny count.
func (l *loader) setByProject(s setting, n *yaml.Node, file, root, where string) {
	join := fromTrusted[s.key]
	denials := s.key == "policy.rules" && !l.trusted
	switch {
	case join == nil:
		l.bad(root, where, s.key+onlyYours)
		return
	case !l.trusted && !denials:
		l.bad(root, where, s.key+untilTrusted(file))
		return
	}
	theirs := &Config{}
	err := decode(s.value(theirs), n)
	if err == nil {
		err = s.valid(theirs)
	}
	if err != nil {
		l.bad(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	(&loader{c: theirs, in: l.in}).makeAbsolute(s, filepath.Dir(file))
	if list, ok := s.value(theirs).(*[]string); ok {
		*list = slices.DeleteFunc(*list, func(v string) bool { return !l.projectMay(s, v, denials, file, root, where) })
		if len(*list) == 0 && denials {
			return
		}
	}
	if s.path {
		_ = join(&l.c.Servers.Project, s.value(theirs)) // apart from the person's own
		return
	}
	if err := join(s.value(l.c), s.value(theirs)); err != nil {
		l.bad(root, where, s.key+" "+err.Error())
		return
	}
	if l.c.from[s.key] == "" {
		l.c.from[s.key] = file
	} else {
		l.c.from[s.key] += ", " + file
	}
}

// projectMay reports whether a text of a list may come from a project.
func (l *loader) projectMay(s setting, v string, denials bool, file, root, where string) bool {
	switch {
	case denials && !denies(v):
		l.bad(root, where, "the rule "+shown(v)+untilTrusted(file))
		return false
	case s.path && !inside(root, v):
		l.bad(root, where, shown(v)+" is ignored: it is outside the project")
		return false
	}
	return true
}

// denies reports whether a rule begins with the word deny.
func denies(rule string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(strings.ToLower(rule)), "deny")
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n:"))
}
