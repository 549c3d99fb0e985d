package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/sandbox"
)

// projectServers starts the server commands of the project around the working
// directory in the sandbox, as long as the project is trusted and unchanged
// since its configuration was read.
type projectServers struct {
	a        *app
	files    projectSnapshot // with the configuration file
	profiles projectSnapshot // with the profiles
}

// projectSnapshot is the trusted configuration of a project directory when it
// was read. project is nil if it was not trusted. dir is the path as it was
// found.
type projectSnapshot struct {
	dir string
	*project
}

// newProjectServers must be called before the configuration is read. Otherwise
// a server could start with a configuration from before it was trusted.
func (a *app) newProjectServers() *projectServers {
	file, root := config.ProjectFile(a.configInput().WorkDir)
	s := &projectServers{a: a, profiles: a.readTrustedProject(root)}
	switch {
	case file == "":
	case config.ProjectDir(file) == root:
		s.files = s.profiles
	default:
		s.files = a.readTrustedProject(config.ProjectDir(file))
	}
	return s
}

func (a *app) readTrustedProject(dir string) projectSnapshot {
	if dir != "" {
		if p, err := a.readProject(dir); err == nil && p.trusted {
			return projectSnapshot{dir, p}
		}
	}
	return projectSnapshot{dir: dir}
}

// newService returns the command of a server. Paths of the project in it become
// paths in the sandbox.
func (s *projectServers) newService(_ context.Context, c *upstream.Config) (loadout.Service, error) {
	at := s.files
	if !filepath.IsAbs(c.File) { // profiles have paths relative to the project
		at = s.profiles
	}
	if at.project == nil {
		return loadout.Service{}, notTrustedError("is not trusted", at.dir)
	}
	sub, err := at.sandboxSubdir(c.Dir)
	if err != nil {
		return loadout.Service{}, err
	}
	out := loadout.Service{Command: []string{at.sandboxPath(c.Command)}, Env: map[string]string{},
		Project: &loadout.Project{Dir: at.project.dir, Subdir: sub, Digest: at.digest, Check: func(context.Context) error { return s.a.checkUnchanged(at) }}}
	for _, arg := range c.Args {
		out.Command = append(out.Command, at.sandboxPath(arg))
	}
	for name, value := range c.Env {
		out.Env[name] = at.sandboxPath(value)
	}
	return out, nil
}

// sandboxPath replaces the project directory in a text with its path in the
// sandbox.
func (r projectSnapshot) sandboxPath(text string) string {
	for _, dir := range []string{r.dir, r.project.dir} {
		var out strings.Builder
		for rest := text; ; {
			i := strings.Index(rest, dir)
			if i < 0 {
				text = out.String() + rest
				break
			}
			before, after := rest[:i], rest[i+len(dir):]
			if isPathEnd(before, len(before)-1, "") && isPathEnd(after, 0, "/"+string(filepath.Separator)) {
				out.WriteString(before + sandbox.WorkspaceDir)
			} else {
				out.WriteString(before + dir)
			}
			rest = after
		}
	}
	return text
}

// isPathEnd reports whether byte i of a text ends a path, or is outside of the
// text.
func isPathEnd(text string, i int, besides string) bool {
	return i < 0 || i >= len(text) || strings.IndexByte(besides+"=:,;'\" ", text[i]) >= 0
}

// sandboxSubdir returns a working directory relative to the project.
func (r projectSnapshot) sandboxSubdir(dir string) (string, error) {
	at := filepath.ToSlash(r.sandboxPath(dir))
	if !path.IsAbs(at) {
		at = path.Join(sandbox.WorkspaceDir, at)
	}
	sub, ok := strings.CutPrefix(path.Clean(at)+"/", sandbox.WorkspaceDir+"/")
	if !ok {
		return "", fmt.Errorf("working directory %s is not in the project, and commands of a project see nothing else: omit cwd, or name a directory in the project", dir)
	}
	return strings.TrimSuffix(sub, "/"), nil
}

// checkUnchanged returns an error unless the project is still trusted as it was
// read.
func (a *app) checkUnchanged(at projectSnapshot) error {
	now, err := a.readProject(at.dir)
	switch {
	case err != nil:
		return fmt.Errorf("check whether the project %s is trusted: %w", at.dir, fileCause(err))
	case now.trusted && now.digest == at.digest:
		return nil
	case now.trusted:
		return &upstream.NotAllowedError{Reason: "the project " + at.dir + " was trusted again after its configuration was read: restart Loadout"}
	case now.digest != at.digest:
		return notTrustedError("changed since it was trusted", at.dir)
	}
	return notTrustedError("is not trusted any more", at.dir)
}

func notTrustedError(why, dir string) error {
	return &upstream.NotAllowedError{Reason: fmt.Sprintf("the configuration of the project %s %s: review it, trust it with `loadout trust %s`, and restart Loadout", dir, why, shellQuote(dir))}
}
