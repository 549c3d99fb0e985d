package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/loadout-dev/loadout/installed"
	"github.com/loadout-dev/loadout/skill"
)

// installFlags say which directories of installed skills are meant.
type installFlags struct{ scope, dir string }

func (o *installFlags) flags(f *pflag.FlagSet, both bool) {
	what := "for you (user) or for the `PROJECT` (project)"
	if both {
		what = "only those for you (user) or those of the `PROJECT` (project)"
	}
	f.StringVar(&o.scope, "scope", "", what)
	f.StringVar(&o.dir, "dir", "", "the skills directory `DIR` instead of those")
	f.Lookup("scope").Usage = what
}

// place is a directory that skills are installed into.
type place struct {
	scope string // user, project, or "" for a directory that was named
	*installed.Dir
}

// installDir is the directory inside a home directory or a project.
var installDir = filepath.Join(".loadout", "skills")

// place is where a new skill goes: for the person, where nothing else is said.
func (a *app) place(o installFlags) (place, error) {
	if o.scope == "" {
		o.scope = "user"
	}
	all, err := a.places(o)
	if err != nil {
		return place{}, err
	}
	return all[0], nil
}

// places are those that are meant, the project's before the person's.
func (a *app) places(o installFlags) ([]place, error) {
	switch {
	case o.dir != "":
		dir, err := filepath.Abs(o.dir)
		if err != nil {
			return nil, fail(exitUsage, "give it as an absolute path", "--dir: %w", err)
		}
		return []place{{"", installed.Open(dir)}}, nil
	case o.scope != "" && o.scope != "user" && o.scope != "project":
		return nil, fail(exitUsage, "give user or project", "--scope is %q", o.scope)
	}
	var all []place
	project := filepath.Join(a.projectRoot(), installDir)
	home := a.home()
	if home != "" {
		home = filepath.Join(home, installDir)
	}
	if o.scope != "user" && project != home {
		if err := leadsOut(a.projectRoot(), project); err != nil {
			return nil, err
		}
		all = append(all, place{"project", installed.Open(project)})
	}
	if o.scope != "project" && home != "" {
		all = append(all, place{"user", installed.Open(home)})
	}
	if len(all) == 0 {
		hint := "name a directory with --dir, or take --scope project"
		if o.scope == "project" {
			hint = "this is your home directory: leave --scope out, or go to a project"
		}
		return nil, fail(exitUsage, hint, "there is no directory for skills of that scope")
	}
	return all, nil
}

// projectRoot is the top of the repository around the working directory, or that
// directory where there is none.
func (a *app) projectRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			if d == a.home() { // which some keep in Git, and which is no project
				return dir
			}
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// inRepository says whether the project is a repository.
func (a *app) inRepository() bool {
	_, err := os.Lstat(filepath.Join(a.projectRoot(), ".git"))
	return err == nil
}

// leadsOut refuses a directory of a project that a link in it, which somebody else may
// have put there, leads out of the project.
func leadsOut(root, dir string) error {
	top, err := filepath.EvalSymlinks(root)
	if err != nil {
		return fmt.Errorf("find the project: %w", err)
	}
	for d := dir; len(d) > len(root); d = filepath.Dir(d) {
		if _, err := os.Lstat(d); err != nil {
			continue // it is made below what is there
		}
		real, err := filepath.EvalSymlinks(d)
		rel, notBelow := filepath.Rel(top, real)
		if err != nil || notBelow != nil || !filepath.IsLocal(rel) {
			return fail(exitRefused, "remove the link, or take --scope user", "%s is a link that leads out of the project", d)
		}
		break
	}
	return nil
}

// flag names the place in a command that a person is told to type.
func (p place) flag() string {
	if p.scope == "" {
		return " --dir " + quoted(p.Path())
	}
	return " --scope " + p.scope
}

// brought are the names, in the lock of each place, of the skills that a person names,
// or of all where they name none. One that is in no place is an error.
func brought(all []place, names []string) ([][]string, error) {
	out := make([][]string, len(all))
	if len(names) == 0 {
		for i, p := range all {
			lock, err := p.Lock()
			if err != nil {
				return nil, err
			}
			out[i] = locked(lock)
		}
		return out, nil
	}
	for _, name := range names {
		found := false
		for i, p := range all {
			key, err := p.nameOf(name)
			if err != nil {
				return nil, err
			}
			if key == "" {
				continue
			}
			found = true
			if !slices.Contains(out[i], key) {
				out[i] = append(out[i], key)
			}
		}
		if !found {
			return nil, notBrought(all, name)
		}
	}
	return out, nil
}

// nameOf is the name in the lock of a skill that a person calls so, by its directory or,
// where no directory can have that name, by what its SKILL.md says; "" where there is
// none.
func (p place) nameOf(name string) (string, error) {
	lock, err := p.Lock()
	if err != nil {
		return "", err
	}
	if _, ok := lock.Skills[name]; ok {
		return name, nil
	}
	if canBeDir(name) {
		return "", nil
	}
	for _, key := range locked(lock) {
		b, err := skill.OpenDir(filepath.Join(p.Path(), key))
		if err != nil {
			continue // verify tells
		}
		parsed, _, err := skill.Parse(b, b.Folder)
		_ = b.Close()
		if err == nil && parsed.Name == name {
			return key, nil
		}
	}
	return "", nil
}

func notBrought(all []place, name string) error {
	hint := "see what there is and where: loadout explain " + quoted(name)
	if !skill.PortableName(name) {
		hint = "give the name of a skill, as loadout list shows it"
	}
	dirs := make([]string, 0, len(all))
	for _, p := range all {
		dirs = append(dirs, p.Path())
	}
	return fail(exitNotFound, hint, "%q is no skill that loadout add brought into %s", name, strings.Join(dirs, " or "))
}
