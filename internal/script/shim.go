package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// shim is a program of a version manager that starts an interpreter. target
// returns the interpreter that the shim starts outside any project. Files in
// the working directory are ignored, because they do not belong to the skill.
type shim struct {
	manager string
	target  func() (string, error)
}

// envManagers maps languages to the version variables of pyenv and similar
// managers. Each of these managers has a "versions" directory with a
// subdirectory for each version.
var envManagers = map[string]string{"python": "PYENV_VERSION", "ruby": "RBENV_VERSION", "node": "NODENV_VERSION", "perl": "PLENV_VERSION"}

// asdfNames maps interpreters to their names in asdf, if asdf uses different
// names.
var asdfNames = map[string]string{"node": "nodejs"}

// findShim returns the shim in hops, the chain of symlinks to an interpreter.
// It returns false if there is none.
func (h Host) findShim(hops []string, name string) (shim, bool) {
	real := filepath.Base(hops[len(hops)-1])
	switch strings.TrimSuffix(real, ".exe") {
	case "snap":
		return shim{"snap", func() (string, error) {
			return "", errors.New("snaps do not run outside snapd; " + ownDirectoryHint)
		}}, true
	case "volta-shim":
		root := h.envOr("VOLTA_HOME", filepath.Join(h.Home, ".volta"))
		return shim{"volta", func() (string, error) { return voltaTarget(root, name) }}, true
	}
	for _, hop := range hops {
		dir := filepath.Dir(hop)
		if filepath.Base(dir) != "shims" {
			continue
		}
		root := filepath.Dir(dir)
		if isDir(filepath.Join(root, "installs")) || real == "mise" || real == "asdf" {
			return shim{"asdf or mise", func() (string, error) { return h.installTarget(root, name) }}, true
		}
		if isDir(filepath.Join(root, "versions")) {
			return shim{filepath.Base(root), func() (string, error) { return h.envTarget(root, name) }}, true
		}
		return shim{"shim", func() (string, error) { return "", errors.New("shim of an unknown version manager") }}, true
	}
	return shim{}, false
}

// envTarget returns the interpreter that a shim of pyenv, rbenv, nodenv or
// plenv starts.
func (h Host) envTarget(root, name string) (string, error) {
	wanted := strings.FieldsFunc(h.getenv(envManagers[toolName(name)]), func(r rune) bool { return r == ':' })
	if len(wanted) == 0 {
		text, err := os.ReadFile(filepath.Join(root, "version"))
		if err != nil {
			return "", fmt.Errorf("no version selected; run `%s global VERSION`", strings.TrimPrefix(filepath.Base(root), "."))
		}
		wanted = strings.Fields(string(text))
	}
	for _, v := range wanted {
		if v == "system" {
			break // use the next one in PATH
		}
		for _, v := range []string{v, strings.TrimPrefix(v, toolName(name)+"-")} {
			dir, ok := versionDir(filepath.Join(root, "versions"), v)
			if exe := filepath.Join(dir, "bin", name+exeSuffix); ok && isExecutable(exe) {
				return exe, nil
			}
		}
	}
	return "", fmt.Errorf("interpreter not installed in the selected version (%s)", strings.Join(wanted, " "))
}

// installTarget returns the interpreter that a shim of asdf or mise starts.
func (h Host) installTarget(root, name string) (string, error) {
	lang := toolName(name)
	for _, tool := range []string{lang, cmp.Or(asdfNames[lang], lang)} {
		var wanted []string
		upper := strings.ToUpper(tool)
		if v := cmp.Or(h.getenv("MISE_"+upper+"_VERSION"), h.getenv("ASDF_"+upper+"_VERSION")); v != "" {
			wanted = strings.Fields(v)
		}
		wanted = append(wanted, h.miseConfig(lang)...)
		wanted = append(wanted, h.toolVersions(tool)...)
		for _, v := range wanted {
			dir, ok := versionDir(filepath.Join(root, "installs", tool), v)
			if exe := filepath.Join(dir, "bin", name+exeSuffix); ok && isExecutable(exe) {
				return exe, nil
			}
		}
	}
	return "", fmt.Errorf("no global version of %s selected; run `mise use --global %[1]s` or write it to ~/.tool-versions", lang)
}

// toolVersions returns the versions of tool in ~/.tool-versions, which asdf and
// mise use.
func (h Host) toolVersions(tool string) []string {
	text, err := os.ReadFile(filepath.Join(h.Home, ".tool-versions"))
	if err != nil || h.Home == "" {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && words[0] == tool {
			return words[1:]
		}
	}
	return nil
}

// miseConfig returns the versions of tool in mise's global configuration.
func (h Host) miseConfig(tool string) []string {
	dir := h.envOr("XDG_CONFIG_HOME", filepath.Join(h.Home, ".config"))
	var config struct {
		Tools map[string]any `toml:"tools"`
	}
	if _, err := toml.DecodeFile(filepath.Join(dir, "mise", "config.toml"), &config); err != nil {
		return nil
	}
	var versions func(v any) []string
	versions = func(v any) []string {
		switch v := v.(type) {
		case string:
			return []string{v}
		case map[string]any:
			return versions(v["version"])
		case []any:
			var out []string
			for _, e := range v {
				out = append(out, versions(e)...)
			}
			return out
		}
		return nil
	}
	return versions(config.Tools[tool])
}

// voltaTarget returns the interpreter that Volta starts outside a project.
func voltaTarget(root, name string) (string, error) {
	var platform struct {
		Node struct {
			Runtime string `json:"runtime"`
		} `json:"node"`
	}
	text, err := os.ReadFile(filepath.Join(root, "tools", "user", "platform.json"))
	if err == nil {
		err = json.Unmarshal(text, &platform)
	}
	dir, ok := versionDir(filepath.Join(root, "tools", "image", "node"), platform.Node.Runtime)
	if err != nil || !ok || name != "node" {
		return "", errors.New("volta has no default version; run `volta install node`")
	}
	return filepath.Join(dir, "bin", name+exeSuffix), nil
}

// versionDir returns the directory of a version below root, or of the newest
// version with that prefix. It rejects versions that contain a path separator.
func versionDir(root, version string) (string, bool) {
	if version == "" || version != filepath.Base(version) || strings.HasPrefix(version, ".") || strings.ContainsAny(version, `/\:`) {
		return "", false
	}
	if dir := filepath.Join(root, version); isDir(dir) {
		return dir, true
	}
	var dirs []string
	for _, dir := range globNewest(filepath.Join(root, "*")) {
		base := filepath.Base(dir)
		if (version == "latest" && releaseNumber.MatchString(base)) || strings.HasPrefix(base, version+".") || strings.HasPrefix(base, "v"+version+".") {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return "", false
	}
	return dirs[0], true
}

// managedInterpreters returns interpreters from version managers and installers
// that may not be in PATH, for example if the program was started from a
// desktop.
func (h Host) managedInterpreters(name string) []string {
	var out []string
	add := func(pattern ...string) { out = append(out, globNewest(filepath.Join(pattern...))...) }
	file := name + exeSuffix
	if h.System == nil {
		add(string(filepath.Separator), "opt", "homebrew", "bin", file)
	}
	if h.Home == "" || !filepath.IsAbs(h.Home) || strings.ContainsAny(h.Home, `*?[`) {
		return out
	}
	add(h.Home, ".local", "bin", file)
	switch toolName(name) {
	case "python":
		add(h.envOr("PYENV_ROOT", filepath.Join(h.Home, ".pyenv")), "versions", "*", "bin", file)
		add(h.Home, ".local", "share", "uv", "python", "cpython-*", "bin", file)
	case "node":
		add(h.envOr("NVM_DIR", filepath.Join(h.Home, ".nvm")), "versions", "node", "v*", "bin", file)
		add(h.envOr("VOLTA_HOME", filepath.Join(h.Home, ".volta")), "bin", file)
	case "deno", "bun":
		add(h.Home, "."+name, "bin", file)
	}
	add(h.Home, ".local", "share", "mise", "shims", file)
	return out
}

// globNewest returns the files that match a pattern, newest version first.
func globNewest(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(found, func(a, b string) int {
		return cmp.Or(compareRelease(releaseParts(releaseNumber.FindString(b)), releaseParts(releaseNumber.FindString(a))), cmp.Compare(a, b))
	})
	return found
}

// toolName returns the name that version managers use for an interpreter, such
// as python for python3.12.
func toolName(name string) string {
	if pythonName.MatchString(name) {
		return "python"
	}
	return name
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}
