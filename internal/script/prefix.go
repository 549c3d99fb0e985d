package script

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// prefixes returns the paths outside the system directories that the
// interpreter at exe needs. It chooses the smallest directory that contains the
// runtime. exe must be one of the paths returned by followSymlinks.
func (h Host) prefixes(exe, name string) ([]string, error) {
	if h.inSystem(exe) {
		return nil, nil
	}
	sep := string(filepath.Separator)
	if brew, _, ok := strings.Cut(exe, sep+"Cellar"+sep); ok {
		// A Homebrew keg refers to other kegs through opt, and adds packages to
		// lib.
		return existingPaths(brew, "Cellar", "opt", "lib"), h.checkMountable(brew)
	}
	if store := sep + filepath.Join("nix", "store"); isWithin(store, exe) {
		return []string{store}, nil // packages refer to other packages in the store
	}
	if name == "deno" || name == "bun" || name == "uv" {
		return []string{exe}, nil // a single file
	}
	if modules := sep + filepath.Join("lib", "node_modules"); strings.Contains(exe, modules+sep) {
		before, _, _ := strings.Cut(exe, modules+sep)
		return []string{before + modules}, h.checkMountable(before + modules)
	}
	dir := filepath.Dir(exe)
	switch filepath.Base(dir) {
	case "bin", "sbin", "Scripts":
		dir = filepath.Dir(dir)
	}
	if err := h.checkDirectory(dir); err != nil {
		return nil, err
	}
	return []string{dir}, nil
}

func existingPaths(dir string, names ...string) []string {
	var out []string
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(dir, n)); err == nil {
			out = append(out, filepath.Join(dir, n))
		}
	}
	return out
}

// checkDirectory returns an error if a directory must not be mounted in a
// sandbox. That is the case if its path, as given or with symlinks resolved, is
// forbidden, or if it contains files of a home directory in addition to a
// runtime.
func (h Host) checkDirectory(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, dir := range []string{dir, real} {
		if err := h.checkMountable(dir); err != nil {
			return err
		}
		if slices.ContainsFunc(append(h.homes(), "/home", "/Users", "/root"), func(home string) bool { return isWithin(home, dir) }) {
			if err := checkOnlyRuntime(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedDirs lists directories in a home directory that many programs use.
var sharedDirs = []string{".local/share", ".local/state", "Library", "Library/Application Support",
	"Documents", "Desktop", "Downloads", "AppData", "AppData/Local", "AppData/Roaming"}

// hiddenDirs lists names of shared directories in any user's home directory.
var hiddenDirs = []string{".local", ".config", ".cache", ".ssh", ".gnupg"}

const ownDirectoryHint = "install the interpreter in a separate directory (pyenv, uv, nvm, mise) or system-wide"

// checkMountable returns an error if a directory with this path must not be
// mounted in a sandbox.
func (h Host) checkMountable(dir string) error {
	parent := filepath.Dir(dir)
	if parent == dir || filepath.Dir(parent) == parent && runtime.GOOS != "windows" {
		return fmt.Errorf("directory %s is shared with other programs; %s", dir, ownDirectoryHint)
	}
	for _, pseudo := range []string{"/proc", "/sys", "/dev", "/etc", "/run"} {
		if isWithin(pseudo, dir) {
			return fmt.Errorf("interpreter is in the system directory %s; %s", pseudo, ownDirectoryHint)
		}
	}
	for _, home := range h.homes() {
		if isWithin(dir, home) {
			return fmt.Errorf("directory %s contains the home directory; %s", dir, ownDirectoryHint)
		}
		if rel, err := filepath.Rel(home, dir); err == nil && slices.Contains(sharedDirs, filepath.ToSlash(rel)) {
			return fmt.Errorf("directory %s is shared with other programs; %s", dir, ownDirectoryHint)
		}
	}
	if slices.Contains(hiddenDirs, filepath.Base(dir)) {
		return fmt.Errorf("directory %s is shared with other programs; %s", dir, ownDirectoryHint)
	}
	if parent == "/home" || parent == "/Users" {
		return fmt.Errorf("directory %s is a home directory; %s", dir, ownDirectoryHint)
	}
	return nil
}

// homes returns the home directory, both as named and with symlinks resolved.
func (h Host) homes() []string {
	if !filepath.IsAbs(h.Home) {
		return nil
	}
	homes := []string{filepath.Clean(h.Home)}
	if real, err := filepath.EvalSymlinks(h.Home); err == nil && real != homes[0] {
		homes = append(homes, real)
	}
	return homes
}

// runtimeEntry matches the names in the top directory of an installed runtime.
var runtimeEntry = lazyregexp.New(`^(s?bin|lib(32|64|exec)?|include|share|man|docs?|etc|ssl|envs|var|Scripts|Lib|DLLs|Tools|Include|libs|tcl|node_modules` +
	`|pyvenv\.cfg|pip-selfcheck\.json|CACHEDIR\.TAG|BUILD|install|\.lock|\.gitignore|\.npm|\.mise.*|\.asdf.*|\.DS_Store` +
	`|(README|LICENSE|CHANGELOG|COPYING|NOTICE|INSTALL|NEWS)(\..*)?|.*\.exe|.*\.dll|npm|npx|corepack|node|.*\.cmd)$`)

// runtimeMarkers lists files and directories that identify a runtime,
// regardless of the other files in its directory.
var runtimeMarkers = []string{"conda-meta", "pwsh.dll"}

// checkOnlyRuntime returns an error if a directory in a home directory contains
// files other than a runtime's, such as a project with a virtual environment at
// its top level.
func checkOnlyRuntime(dir string) error {
	if isManaged(dir) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, b := range runtimeMarkers {
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == b }) {
			return nil
		}
	}
	for _, e := range entries {
		if !runtimeEntry.MatchString(e.Name()) {
			return fmt.Errorf("directory %s contains other files, such as %s; %s", dir, e.Name(), ownDirectoryHint)
		}
	}
	return nil
}

// isManaged reports whether a directory belongs to a version manager.
func isManaged(dir string) bool {
	return managerPath.MatchString(filepath.ToSlash(dir))
}

var managerPath = lazyregexp.New(`/(\.?(pyenv|rbenv|nodenv|plenv|nvm|fnm)(/.*)?/versions|(asdf|mise)/installs|uv/python|tools/image)/`)

// isVenv reports whether an interpreter belongs to a virtual environment.
func isVenv(exe string) bool {
	_, err := os.Stat(venvConfigPath(exe))
	return err == nil
}

func venvConfigPath(exe string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(exe)), "pyvenv.cfg")
}

// resolveVenv returns a virtual environment's interpreter. Its path is hops[0],
// not a resolved path, because Python finds the environment by that path. The
// interpreter needs access to the environment, to the directories of the
// symlinks from hops[0] on, and to the directory of the base interpreter.
func (h Host) resolveVenv(f interpreter, hops []string) (interpreter, error) {
	exe := hops[0]
	if len(hops) > 1 && filepath.Base(hops[1]) == filepath.Base(exe) && isVenv(hops[1]) {
		exe = hops[1] // the same path with the symlinks of its directory resolved
	}
	config, err := os.ReadFile(venvConfigPath(exe))
	if err != nil {
		return interpreter{}, err
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(config)) {
		if k, v, ok := strings.Cut(line, "="); ok {
			settings[strings.ToLower(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	if home := settings["home"]; filepath.IsAbs(home) {
		base := filepath.Join(home, filepath.Base(f.exe))
		hops = append(slices.Clone(hops), base)
		if real, err := filepath.EvalSymlinks(base); err == nil {
			hops = append(hops, real)
		}
	}
	if v := settings["version_info"] + settings["version"]; f.version == "" && v != "" {
		f.version = releaseNumber.FindString(v)
	}
	f.exe = exe
	for _, hop := range hops {
		if _, err := os.Stat(hop); err != nil {
			continue // the directory name of another version in "home"
		}
		more, err := h.prefixes(hop, f.name)
		if err != nil {
			return interpreter{}, fmt.Errorf("check base interpreter %s of virtual environment: %w", hop, err)
		}
		f.prefixes = append(f.prefixes, more...)
	}
	if len(f.prefixes) == 0 && !h.inSystem(exe) {
		return interpreter{}, errors.New("invalid virtual environment")
	}
	return f, nil
}
