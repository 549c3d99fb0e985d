package main

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

// serverDir returns the working directory of the user's servers without a cwd:
// an empty directory. In the client's directory, which may be a project that
// someone else wrote, npx and similar commands would run the project's code.
func (a *app) serverDir() string {
	for _, d := range []string{a.stateDir(), a.cacheDir()} {
		if abs, err := filepath.Abs(d); d != "" && err == nil {
			return filepath.Join(abs, "servers", "cwd")
		}
	}
	return filepath.Join(os.TempDir(), "loadout-servers-"+strconv.Itoa(os.Getuid()))
}

// spawnInServerDir creates the server directory before a command starts in it.
func (a *app) spawnInServerDir(start upstream.Spawner) upstream.Spawner {
	dir := a.serverDir()
	return func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		if c.Dir == dir {
			if err := makePrivateDir(dir); err != nil {
				return nil, fmt.Errorf("create its working directory: %w; fix that, or set cwd for the server", err)
			}
		}
		return start(ctx, c)
	}
}

// makePrivateDir creates a directory that only this user can use.
func makePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Reading a missing file checks whether its directory is safe.
	if _, err := privatefile.New(filepath.Join(dir, "none"), 1).Read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readEnvFile reads an envFile of a server. A file in the project around the
// working directory must be trusted. Otherwise the author of the project would
// control the user's own servers.
func (a *app) readEnvFile(path string) ([]byte, error) {
	data, err := configfile.ReadFile(path, upstream.MaxEnvFile)
	root := a.enclosingProject(path)
	if err != nil || root == "" {
		return data, err
	}
	if p, err := a.readProject(root); err != nil || !p.Trusted || !p.Covers(path, data) {
		return nil, &upstream.EnvFileError{Reason: "it is in the project " + root + " and not trusted; move it out of the project and name its absolute path, or write its values under env as ${{secrets.NAME}}"}
	}
	return data, upstream.CheckEnvFile(data)
}

// enclosingProject returns the project or the working directory that contains a
// file, or "". A directory that contains the user's home is not a project.
func (a *app) enclosingProject(file string) string {
	dir := a.configInput().WorkDir
	_, root := config.ProjectFile(dir)
	for _, d := range []string{root, dir} {
		if d == "" || isInside(d, a.home()) {
			continue
		}
		// also check the name: a symlink in the project may lead out of it
		if rel, err := filepath.Rel(d, file); err == nil && filepath.IsLocal(rel) || isInside(d, file) {
			return d
		}
	}
	return ""
}
