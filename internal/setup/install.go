package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// InstallFlags selects directories of installed skills.
type InstallFlags struct {
	Scope string // user, project, or "" for both
	Dir   string // this directory only; "" if not given
}

// SkillsDir is a directory in which skills are installed.
type SkillsDir struct {
	Scope string // user, project, or "" for --dir
	*installed.Dir
}

// installDir is the skills directory, relative to the home directory or a
// project.
var installDir = filepath.Join(".loadout", "skills")

// InstallTarget returns the directory for new skills. The default is the user's
// directory.
func (s *Setup) InstallTarget(o InstallFlags) (SkillsDir, error) {
	if o.Scope == "" {
		o.Scope = "user"
	}
	all, err := s.InstallDirs(o)
	if err != nil {
		return SkillsDir{}, err
	}
	return all[0], nil
}

// InstallDirs returns the selected directories, with the project's before the
// user's.
func (s *Setup) InstallDirs(o InstallFlags) ([]SkillsDir, error) {
	switch {
	case o.Dir != "":
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, exit.Errorf(exit.Usage, "give an absolute path", "--dir: %w", err)
		}
		return []SkillsDir{{"", installed.Open(dir)}}, nil
	case o.Scope != "" && o.Scope != "user" && o.Scope != "project":
		return nil, exit.Errorf(exit.Usage, "use user or project", "unknown value %q of --scope", o.Scope)
	}
	var all []SkillsDir
	project := filepath.Join(s.projectRoot(), installDir)
	home := s.Home()
	if home != "" {
		home = filepath.Join(home, installDir)
	}
	if o.Scope != "user" && project != home {
		if err := checkInsideProject(s.projectRoot(), project); err != nil {
			return nil, err
		}
		all = append(all, SkillsDir{"project", installed.Open(project)})
	}
	if o.Scope != "project" && home != "" {
		all = append(all, SkillsDir{"user", installed.Open(home)})
	}
	if len(all) == 0 {
		hint := "name a directory with --dir, or use --scope project"
		if o.Scope == "project" {
			hint = "this is your home directory: omit --scope, or change to a project"
		}
		return nil, exit.Errorf(exit.Usage, hint, "no skills directory for this scope")
	}
	return all, nil
}

// projectRoot returns the root of the repository that contains the working
// directory, or the working directory itself if there is none.
func (s *Setup) projectRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	root := config.RepositoryRoot(dir)
	if root == "" || root == s.Home() { // a home directory under version control is not a project
		return dir
	}
	return root
}

// InRepository reports whether the working directory is in a repository.
func (s *Setup) InRepository() bool {
	_, err := os.Lstat(filepath.Join(s.projectRoot(), ".git"))
	return err == nil
}

// checkInsideProject returns an error if a symlink in the path dir points
// outside the project. Someone else may have created the symlink.
func checkInsideProject(root, dir string) error {
	top, err := filepath.EvalSymlinks(root)
	if err != nil {
		return fmt.Errorf("find project: %w", err)
	}
	for d := dir; len(d) > len(root); d = filepath.Dir(d) {
		if _, err := os.Lstat(d); err != nil {
			continue // will be created below an existing directory
		}
		real, err := filepath.EvalSymlinks(d)
		rel, notBelow := filepath.Rel(top, real)
		if err != nil || notBelow != nil || !filepath.IsLocal(rel) {
			return exit.Errorf(exit.Refused, "remove the symlink, or use --scope user", "symlink %s leads out of the project", d)
		}
		break
	}
	return nil
}

// InstalledNames returns, for each directory, the names under which its
// lockfile records the given skills, or all skills if names is empty. It
// returns an error if a name is not installed in any directory.
func InstalledNames(all []SkillsDir, names []string) ([][]string, error) {
	out := make([][]string, len(all))
	if len(names) == 0 {
		for i, p := range all {
			lock, err := p.Lockfile()
			if err != nil {
				return nil, err
			}
			out[i] = lock.Names()
		}
		return out, nil
	}
	for _, name := range names {
		found := false
		for i, p := range all {
			key, err := p.FindName(name)
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
			return nil, notInstalledError(all, name)
		}
	}
	return out, nil
}

func notInstalledError(all []SkillsDir, name string) error {
	hint := "find out where it comes from: loadout explain " + console.ShellQuote(name)
	if !skillname.IsPortable(name) {
		hint = "give the name of a skill as loadout list shows it"
	}
	dirs := make([]string, 0, len(all))
	for _, p := range all {
		dirs = append(dirs, p.Path())
	}
	return exit.Errorf(exit.NotFound, hint, "skill %q not installed in %s", name, strings.Join(dirs, " or "))
}

// Flag returns the flag that selects this directory, for use in a hint.
func (p SkillsDir) Flag() string {
	if p.Scope == "" {
		return " --dir " + console.ShellQuote(p.Path())
	}
	return " --scope " + p.Scope
}
