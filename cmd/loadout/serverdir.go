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
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/upstream"
)

// serverDir is where commands of the person's own servers begin that name no
// directory: an empty one. In that of a client, which is a project that somebody
// else may have written, npx and the like would run what is there.
func (a *app) serverDir() string {
	for _, d := range []string{a.stateDir(), a.cacheDir()} {
		if abs, err := filepath.Abs(d); d != "" && err == nil {
			return filepath.Join(abs, "servers", "cwd")
		}
	}
	return filepath.Join(os.TempDir(), "loadout-servers-"+strconv.Itoa(os.Getuid()))
}

// inServerDir makes that directory before a command begins there.
func (a *app) inServerDir(start upstream.Spawner) upstream.Spawner {
	dir := a.serverDir()
	return func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		if c.Dir == dir {
			if err := makeOwn(dir); err != nil {
				return nil, fmt.Errorf("its working directory cannot be made: %w; mend that, or give the server cwd", err)
			}
		}
		return start(ctx, c)
	}
}

// makeOwn makes a directory that is this user's alone.
func makeOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Reading a file that is not there says whether its directory is safe.
	if _, err := policy.NewOwnFile(filepath.Join(dir, "none"), 1).Read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// envFile reads a file of envFile. One in the project around the working directory
// counts as far as that is trusted: else whoever wrote the project would choose
// what the person's own servers run.
func (a *app) envFile(path string) ([]byte, error) {
	data, err := readSmall(path, upstream.MaxEnvFile)
	root := a.projectAround(path)
	if err != nil || root == "" {
		return data, err
	}
	if p, err := a.readProject(root); err != nil || !p.trusted || !a.coversFile(p, path, data) {
		return nil, &upstream.EnvFileError{Why: "it is in the project " + root + ", and not of what you trusted there; move it out of the project and name its whole path, or write its values under env, as ${{secrets.NAME}}"}
	}
	return data, upstream.CheckEnvFile(data)
}

// projectAround is the project, or else the working directory, that a file is in;
// "" where it is in neither. What has the person's home in it is no project.
func (a *app) projectAround(file string) string {
	dir := a.configInput().WorkDir
	_, root := config.ProjectFile(dir)
	for _, d := range []string{root, dir} {
		if d == "" || within(d, a.home()) {
			continue
		}
		// By its name too: a link in the project leads where that wants.
		if rel, err := filepath.Rel(d, file); err == nil && filepath.IsLocal(rel) || within(d, file) {
			return d
		}
	}
	return ""
}
