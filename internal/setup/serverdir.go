package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// serverDir returns the path of an empty directory: the working directory of
// the user's servers that have no cwd. They must not start in the client's
// working directory, which may contain a project written by someone else.
// There, npx and similar commands would run the project's code.
func (s *Setup) serverDir() string {
	for _, d := range []string{s.StateDir(), s.CacheDir()} {
		if abs, err := filepath.Abs(d); d != "" && err == nil {
			return filepath.Join(abs, "servers", "cwd")
		}
	}
	return filepath.Join(os.TempDir(), "loadout-servers-"+strconv.Itoa(os.Getuid()))
}

// spawnInServerDir returns a spawner that creates the server directory before
// it starts a command.
func (s *Setup) spawnInServerDir(start upstream.Spawner) upstream.Spawner {
	dir := s.serverDir()
	return func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		if c.Dir == dir {
			if err := makePrivateDir(dir); err != nil {
				return nil, fmt.Errorf("create working directory of the server: %w; set cwd in the server's configuration to use another directory", err)
			}
		}
		return start(ctx, c)
	}
}

// makePrivateDir creates a directory that only this user can access.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Reading a nonexistent file checks whether the directory is safe.
	if _, err := privatefile.New(filepath.Join(dir, "none"), 1).Read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readEnvFile reads the envFile of a server. A file in the project that
// contains the working directory must be trusted. Otherwise the project's
// author would control the user's own servers.
func (s *Setup) readEnvFile(path string) ([]byte, error) {
	data, err := configfile.ReadFile(path, upstream.MaxEnvFile)
	root := s.enclosingProject(path)
	if err != nil || root == "" {
		return data, err
	}
	if p, err := s.ReadProject(root); err != nil || !p.Trusted || !p.Covers(path, data) {
		return nil, &upstream.EnvFileError{Reason: "file is in the project " + root + " and not trusted; move the file out of the project and name its absolute path, or write its values under env as ${{secrets.NAME}}"}
	}
	return data, upstream.CheckEnvFile(data)
}

// enclosingProject returns the project or working directory that contains a
// file, or "". A directory that contains the user's home is not a project.
func (s *Setup) enclosingProject(file string) string {
	dir := s.ConfigInput().WorkDir
	_, root := config.ProjectFile(dir)
	for _, d := range []string{root, dir} {
		if d == "" || IsInside(d, s.Home()) {
			continue
		}
		// Also check the name, because a symlink in the project may lead out of
		// it.
		if rel, err := filepath.Rel(d, file); err == nil && filepath.IsLocal(rel) || IsInside(d, file) {
			return d
		}
	}
	return ""
}

// IsInside reports whether path is dir or below it. It resolves symlinks.
func IsInside(dir, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, abs)
	return err == nil && filepath.IsLocal(rel)
}
