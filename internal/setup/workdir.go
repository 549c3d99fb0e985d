package setup

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
)

// ResolveWorkspace returns the absolute path of the --workspace directory, or
// "" if path is "".
func ResolveWorkspace(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if err := CheckDirectory("workspace", path); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(path)
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if real, e := filepath.EvalSymlinks(dir); e == nil && real == filepath.Dir(real) {
		return "", exit.Errorf(exit.Usage, "give a directory below it", "--workspace %s: the root of the file system is not allowed", path)
	}
	if err != nil {
		code, hint := exit.FileHint(err, "the directory given with --workspace")
		return "", exit.Errorf(code, hint, "%s: %w", path, fileerror.Cause(err))
	}
	return dir, nil
}

// CheckDirectory returns an error if the path given with a directory flag is a
// file.
func CheckDirectory(flag, path string) error {
	if path == "" {
		return nil
	}
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		hint := "name a directory; it is created if needed"
		if flag == "workspace" {
			hint = "name its directory; to provide only this file: --in " + console.ShellQuote(path)
		}
		return exit.Errorf(exit.Usage, hint, "--%s %s: not a directory", flag, path)
	}
	return nil
}
