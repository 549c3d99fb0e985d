package skilldiff

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// maxPackageBytes is the maximum total size of a version's files that are
// searched for packages.
const maxPackageBytes = 32 << 20

// addPackages adds the packages in SKILL.md, requirements files, package.json
// files and the inline metadata of Python scripts. It does not determine which
// of them a script uses.
func (c *comparison) addPackages(s *versionFiles, w *requests, name string) error {
	for _, r := range s.skill.Requirements {
		w.addPythonPackage(r)
	}
	var total int64
	for _, f := range s.manifest {
		find := packageReader(f.Path)
		if find == nil {
			continue
		}
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		if total += f.Size; total > maxPackageBytes {
			c.addProblem("%s: only the first %d bytes of its files were searched for packages", name, maxPackageBytes)
			return nil
		}
		data, err := readFile(s.fsys, f, MaxTextBytes)
		switch {
		case err != nil:
			c.addProblem("%s: %s: %v", name, f.Path, err)
		case data == nil:
			c.addProblem("%s: %s: too large to search for packages", name, f.Path)
		default:
			find(w, strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"))
		}
	}
	return nil
}

// packageReader returns the function that finds packages in the file at a path.
// It returns nil if the file cannot declare any.
func packageReader(p string) func(*requests, string) {
	base := strings.ToLower(path.Base(p))
	switch {
	case strings.Contains("/"+p, "/node_modules/"):
		return nil
	case base == "package.json":
		return nodePackages
	case strings.HasPrefix(base, "requirements") && path.Ext(base) == ".txt":
		return readRequirements
	case path.Ext(base) == ".py":
		return inlinePackages
	}
	return nil
}

// requirement matches the name and version of a Python package.
var requirement = lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(.*)$`)

func (w *requests) addPythonPackage(line string) {
	line, _, _ = strings.Cut(line, " #")
	line = strings.TrimSpace(line)
	switch m := requirement.FindStringSubmatch(line); {
	case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "--hash"):
	case m == nil: // an option, such as another index, or a path
		w.add(Package, "pypi:"+line, "")
	default:
		w.add(Package, "pypi:"+strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(m[1])), m[2])
	}
}

// readRequirements adds the packages in a requirements file.
func readRequirements(w *requests, text string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		w.addPythonPackage(strings.TrimSuffix(line, "\n"))
	}
}

// inlineBlock is the regular expression of the specification
// (packaging.python.org, "Inline script metadata").
var inlineBlock = lazyregexp.New(`(?m)^# /// script$\s((?:^#(?:| .*)$\s)+)^# ///$`)

// inlinePackages adds the packages in the inline metadata of a Python script.
func inlinePackages(w *requests, text string) {
	m := inlineBlock.FindStringSubmatch(text)
	if m == nil {
		return
	}
	var block strings.Builder
	for line := range strings.Lines(m[1]) {
		block.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	var meta struct {
		Dependencies []string `toml:"dependencies"`
	}
	if _, err := toml.Decode(block.String(), &meta); err != nil {
		return // such a script does not run
	}
	for _, d := range meta.Dependencies {
		w.addPythonPackage(d)
	}
}

// nodePackages adds the packages in a package.json.
func nodePackages(w *requests, text string) {
	doc, _ := decodeObject(json.RawMessage(text))
	for _, key := range []string{"dependencies", "optionalDependencies", "peerDependencies"} {
		var all map[string]string
		if json.Unmarshal(doc[key], &all) != nil {
			continue // npm rejects it
		}
		for name, versions := range all {
			w.add(Package, "npm:"+name, versions)
		}
	}
}
