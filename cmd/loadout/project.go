package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/upstream"
)

// projectServers starts the commands of the project around the working directory,
// in the sandbox, while its configuration is trusted as it was when they were read.
type projectServers struct {
	a      *app
	files  readAt // with the configuration file
	ghosts readAt // with the profiles
}

// readAt is a directory of a project, by the name that it was found by, and its
// configuration at the time; nil where that did not count.
type readAt struct {
	dir string
	*project
}

// projectServers is to be called before their configuration is read, so that it is
// none from before the trust that it is started with.
func (a *app) projectServers() *projectServers {
	file, root := config.ProjectFile(a.configInput().WorkDir)
	s := &projectServers{a: a, ghosts: a.readTrusted(root)}
	switch {
	case file == "":
	case config.ProjectDir(file) == root:
		s.files = s.ghosts
	default:
		s.files = a.readTrusted(config.ProjectDir(file))
	}
	return s
}

func (a *app) readTrusted(dir string) readAt {
	if dir != "" {
		if p, err := a.readProject(dir); err == nil && p.trusted {
			return readAt{dir, p}
		}
	}
	return readAt{dir: dir}
}

// service is the command of a server. Paths of the project in it are those that it
// has in the sandbox.
func (s *projectServers) service(c *upstream.Config) (loadout.Service, error) {
	at := s.files
	if !filepath.IsAbs(c.File) { // profiles are read by their paths in the project
		at = s.ghosts
	}
	if at.project == nil {
		return loadout.Service{}, untrusted("is not trusted", at.dir)
	}
	sub, err := at.below(c.Dir)
	if err != nil {
		return loadout.Service{}, err
	}
	out := loadout.Service{Command: []string{at.inside(c.Command)}, Env: map[string]string{},
		Project: &loadout.Project{Dir: at.project.dir, Sub: sub, Digest: at.digest, Check: func(context.Context) error { return s.a.still(at) }}}
	for _, arg := range c.Args {
		out.Command = append(out.Command, at.inside(arg))
	}
	for name, value := range c.Env {
		out.Env[name] = at.inside(value)
	}
	return out, nil
}

// inside is a text with the directory as the sandbox has it.
func (r readAt) inside(text string) string {
	for _, dir := range []string{r.dir, r.project.dir} {
		var out strings.Builder
		for rest := text; ; {
			i := strings.Index(rest, dir)
			if i < 0 {
				text = out.String() + rest
				break
			}
			before, after := rest[:i], rest[i+len(dir):]
			if ends(before, len(before)-1, "") && ends(after, 0, "/"+string(filepath.Separator)) {
				out.WriteString(before + sandbox.WorkspaceDir)
			} else {
				out.WriteString(before + dir)
			}
			rest = after
		}
	}
	return text
}

// ends reports whether a path ends at a byte of a text, or the text does.
func ends(text string, i int, besides string) bool {
	return i < 0 || i >= len(text) || strings.IndexByte(besides+"=:,;'\" ", text[i]) >= 0
}

// below is a working directory as a path below the project.
func (r readAt) below(dir string) (string, error) {
	at := filepath.ToSlash(r.inside(dir))
	if !path.IsAbs(at) {
		at = path.Join(sandbox.WorkspaceDir, at)
	}
	sub, ok := strings.CutPrefix(path.Clean(at)+"/", sandbox.WorkspaceDir+"/")
	if !ok {
		return "", fmt.Errorf("its working directory %s is not in the project, and a command of a project sees nothing else: leave cwd out, or name a directory in it", dir)
	}
	return strings.TrimSuffix(sub, "/"), nil
}

// still is nil where a project is trusted as it was read.
func (a *app) still(at readAt) error {
	now, err := a.readProject(at.dir)
	switch {
	case err != nil:
		return fmt.Errorf("whether the project %s is trusted cannot be said: %w", at.dir, reason(err))
	case now.trusted && now.digest == at.digest:
		return nil
	case now.trusted:
		return &upstream.NotAllowedError{Why: "the configuration of the project " + at.dir + " was trusted anew after it was read: start Loadout again"}
	case now.digest != at.digest:
		return untrusted("changed since it was trusted", at.dir)
	}
	return untrusted("is not trusted any more", at.dir)
}

func untrusted(why, dir string) error {
	return &upstream.NotAllowedError{Why: fmt.Sprintf("the configuration of the project %s %s: look at it, trust it with `loadout trust %s`, and start Loadout again", dir, why, quoted(dir))}
}
