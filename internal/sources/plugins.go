package sources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillname"
)

// plugin is an installation of a Claude plugin.
type plugin struct {
	id      string // NAME@MARKETPLACE
	skills  string // absolute path of the directory of its skills
	project string // project for which it is installed; "" for all projects
}

// installedPlugins returns the plugins in the directory of Claude plugins, in no
// particular order. It omits plugins that are installed only for projects other
// than the one in workDir.
func installedPlugins(dir, workDir string) (plugins []plugin) {
	var file struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	if readJSON(filepath.Join(dir, "installed_plugins.json"), &file) != nil {
		return nil
	}
	type install struct {
		InstallPath string `json:"installPath"`
		ProjectPath string `json:"projectPath"`
	}
	for id, raw := range file.Plugins {
		var many []install
		if json.Unmarshal(raw, &many) != nil {
			var one install
			if json.Unmarshal(raw, &one) != nil {
				continue
			}
			many = []install{one}
		}
		for _, in := range many {
			if filepath.IsAbs(in.InstallPath) && (in.ProjectPath == "" || within(workDir, in.ProjectPath)) {
				plugins = append(plugins, plugin{id, filepath.Join(in.InstallPath, "skills"), in.ProjectPath})
			}
		}
	}
	return plugins
}

// pluginLocations returns the locations of installed Claude plugins: first
// those installed for the project in the working directory, then those for all
// projects.
func pluginLocations(home, workDir string, noProject bool) []Location {
	var here, all []Location
	for _, p := range installedPlugins(filepath.Join(home, ".claude", "plugins"), workDir) {
		name, _, _ := strings.Cut(p.id, "@")
		l := Location{Path: p.skills, Scope: catalog.User, Label: "plugin." + skillname.Slug(name), Optional: true}
		switch {
		case p.project == "":
			all = append(all, l)
		case !noProject:
			here = append(here, l)
		}
	}
	for _, locations := range [][]Location{here, all} {
		slices.SortFunc(locations, func(a, b Location) int {
			return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Path, b.Path))
		})
	}
	return append(here, all...)
}

// EnabledPluginSkills returns the directories from which Claude Code lists skills
// of plugins when it runs in project, which is "" if unknown. dir is its
// directory of plugins, such as ~/.claude/plugins. A plugin is enabled by the
// settings of the user, of the project and of the user for the project, in
// increasing order of precedence. Managed settings and the options of Claude Code
// are not considered.
func EnabledPluginSkills(dir, project string) (dirs []string) {
	var markets map[string]json.RawMessage
	if readJSON(filepath.Join(dir, "known_marketplaces.json"), &markets) != nil {
		return nil
	}
	enabled := map[string]bool{}
	files := []string{filepath.Join(filepath.Dir(dir), "settings.json")}
	if project != "" {
		files = append(files, filepath.Join(project, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json"))
	}
	for _, file := range files {
		addEnabledPlugins(enabled, file)
	}
	for _, p := range installedPlugins(dir, project) {
		_, market, _ := strings.Cut(p.id, "@")
		if _, known := markets[market]; known && enabled[p.id] {
			dirs = append(dirs, p.skills)
		}
	}
	return dirs
}

// addEnabledPlugins records in enabled which plugins a settings file of Claude
// Code enables or disables. Like Claude Code, it ignores the whole file if a
// value has an unknown type.
func addEnabledPlugins(enabled map[string]bool, file string) {
	var settings struct {
		EnabledPlugins map[string]any `json:"enabledPlugins"`
	}
	if readJSON(file, &settings) != nil {
		return
	}
	for _, v := range settings.EnabledPlugins {
		switch v.(type) {
		case bool, []any: // Claude Code 2.1 lists no skills of a plugin with a list of versions
		default:
			return
		}
	}
	for id, v := range settings.EnabledPlugins {
		enabled[id] = v == true
	}
}

// readJSON decodes a small JSON file written by another program. It returns an
// error if the file is not regular or is too large.
func readJSON(path string, v any) error {
	const most = 4 << 20
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() > most {
		return fmt.Errorf("read %s: want a regular file of at most %d bytes", path, most)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
