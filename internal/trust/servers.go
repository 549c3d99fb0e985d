package trust

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Servers provides a project's server commands as services, while the project
// is trusted and unchanged since its configuration was read.
type Servers struct {
	store    *Store
	hint     func(dir string) string
	files    projectSnapshot // project that contains the configuration file
	profiles projectSnapshot // project that contains the profiles
}

// projectSnapshot is the trusted configuration of a directory when it was read.
// Project is nil if the directory was not trusted. path is the directory's
// path, possibly with symlinks.
type projectSnapshot struct {
	path string
	*Project
}

// NewServers reads the project that contains a working directory. Call it
// before reading the configuration. Otherwise a server could start with a
// configuration that was read before it was trusted. hint returns instructions
// for trusting a directory, for error messages.
func NewServers(workDir string, store *Store, hint func(dir string) string) *Servers {
	file, root := config.ProjectFile(workDir)
	s := &Servers{store: store, hint: hint, profiles: readTrusted(root, store)}
	switch {
	case file == "":
	case config.ProjectDir(file) == root:
		s.files = s.profiles
	default:
		s.files = readTrusted(config.ProjectDir(file), store)
	}
	return s
}

func readTrusted(dir string, store *Store) projectSnapshot {
	if dir != "" {
		if p, err := Read(dir, store); err == nil && p.Trusted {
			return projectSnapshot{dir, p}
		}
	}
	return projectSnapshot{path: dir}
}

// Service returns the command of a server. It replaces project paths with paths
// in the sandbox. If the project is not trusted, the error is a
// [*upstream.NotAllowedError].
func (s *Servers) Service(_ context.Context, c *upstream.Config) (*execution.ServiceRequest, error) {
	at := s.files
	if !filepath.IsAbs(c.File) { // profiles have paths relative to the project
		at = s.profiles
	}
	if at.Project == nil {
		return nil, s.untrustedError("is not trusted", at.path)
	}
	sub, err := at.sandboxSubdir(c.Dir)
	if err != nil {
		return nil, err
	}
	out := &execution.ServiceRequest{Command: []string{at.sandboxPath(c.Command)}, Env: map[string]string{},
		Project: &execution.Project{Dir: at.Dir, Subdir: sub, Digest: at.Digest, Check: func(context.Context) error { return s.checkUnchanged(at) }}}
	for _, arg := range c.Args {
		out.Command = append(out.Command, at.sandboxPath(arg))
	}
	for name, value := range c.Env {
		out.Env[name] = at.sandboxPath(value)
	}
	return out, nil
}

// checkUnchanged returns an error unless the project is still trusted and
// unchanged.
func (s *Servers) checkUnchanged(at projectSnapshot) error {
	now, err := Read(at.path, s.store)
	switch {
	case err != nil:
		return fmt.Errorf("check whether the project %s is trusted: %w", at.path, err)
	case now.Trusted && now.Digest == at.Digest:
		return nil
	case now.Trusted:
		return &upstream.NotAllowedError{Reason: "the project " + at.path + " was trusted again after its configuration was read: restart Loadout"}
	case now.Digest != at.Digest:
		return s.untrustedError("changed since it was trusted", at.path)
	}
	return s.untrustedError("is no longer trusted", at.path)
}

func (s *Servers) untrustedError(why, dir string) error {
	return &upstream.NotAllowedError{Reason: fmt.Sprintf("the configuration of the project %s %s: review it, %s, and restart Loadout", dir, why, s.hint(dir))}
}

// sandboxPath replaces occurrences of the project directory in text with its
// path in the sandbox.
func (at projectSnapshot) sandboxPath(text string) string {
	for _, dir := range []string{at.path, at.Dir} {
		var out strings.Builder
		for rest := text; ; {
			i := strings.Index(rest, dir)
			if i < 0 {
				text = out.String() + rest
				break
			}
			before, after := rest[:i], rest[i+len(dir):]
			if isPathEnd(before, len(before)-1, "") && isPathEnd(after, 0, "/"+string(filepath.Separator)) {
				out.WriteString(before + mountpoint.Workspace)
			} else {
				out.WriteString(before + dir)
			}
			rest = after
		}
	}
	return text
}

// isPathEnd reports whether a path in text ends before byte i: at the end of
// text, at a delimiter, or at one of the bytes in more.
func isPathEnd(text string, i int, more string) bool {
	return i < 0 || i >= len(text) || strings.IndexByte(more+"=:,;'\" ", text[i]) >= 0
}

// sandboxSubdir converts a working directory to a path relative to the project.
func (at projectSnapshot) sandboxSubdir(dir string) (string, error) {
	inside := filepath.ToSlash(at.sandboxPath(dir))
	if !path.IsAbs(inside) {
		inside = path.Join(mountpoint.Workspace, inside)
	}
	sub, ok := strings.CutPrefix(path.Clean(inside)+"/", mountpoint.Workspace+"/")
	if !ok {
		return "", fmt.Errorf("working directory %s is outside the project, and project commands have no access there: omit cwd, or use a directory in the project", dir)
	}
	return strings.TrimSuffix(sub, "/"), nil
}
