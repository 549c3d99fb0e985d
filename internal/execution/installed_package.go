package execution

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/policy"
)

// Package is an installed package that a skill starts with npx or uvx. It does
// not change until the installed packages are removed.
type Package struct {
	Registry  string // npm or pypi
	Requested string // package name and version as written in the skill
	Name      string
	Version   string
	// Integrity is "sha256:" followed by a hash of the package and its
	// dependencies. For npm, it covers each package's integrity value in the
	// registry, which npm verifies; for PyPI, the installed files.
	Integrity string
}

// Need returns the package as a dependency to list in an approval.
func (p *Package) Need() policy.Need {
	return policy.Need{Name: p.Registry + ":" + p.Name + "@" + p.Version, Digest: policy.Digest(p.Integrity)}
}

// IsPackage reports whether n is the need for an installed package; see
// [Package.Need].
func IsPackage(n policy.Need) bool {
	return strings.HasPrefix(n.Name, "npm:") || strings.HasPrefix(n.Name, "pypi:")
}

// resolve returns the installed package and the interpreter arguments that run
// it.
func (f *packageCommand) resolve(p *packages.Packages) (*Package, []string, error) {
	if p == nil || len(p.Mounts) != 1 {
		return nil, nil, errors.New("package not installed")
	}
	root, err := os.OpenRoot(p.Mounts[0].Host)
	if err != nil {
		return nil, nil, fmt.Errorf("read installed package: %w", err)
	}
	defer root.Close()
	if f.launcher == "uvx" {
		return f.resolvePyPI(root.FS(), p.Files())
	}
	return f.resolveNPM(root.FS())
}

const (
	maxMetadata = 16 << 20 // maximum size of a package metadata file, in bytes
	maxPrograms = 20       // maximum number of programs listed in an error
)

func readMetadata(fsys fs.FS, name string) ([]byte, error) {
	in, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxMetadata+1))
	if err == nil && len(data) > maxMetadata {
		err = fmt.Errorf("%s is too large (limit %d MiB)", name, maxMetadata>>20)
	}
	return data, err
}

func (f *packageCommand) resolveNPM(fsys fs.FS) (*Package, []string, error) {
	data, err := readMetadata(fsys, path.Join(f.pkg, "package.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("read installed package: %w", err)
	}
	var doc struct {
		Version string          `json:"version"`
		Bin     json.RawMessage `json:"bin"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("read package.json of %s: %w", f.pkg, err)
	}
	bins := map[string]string{}
	var one string
	if json.Unmarshal(doc.Bin, &one) == nil {
		bins[path.Base(f.pkg)] = one
	} else if len(doc.Bin) > 0 {
		if err := json.Unmarshal(doc.Bin, &bins); err != nil {
			return nil, nil, fmt.Errorf("read package.json of %s: %w", f.pkg, err)
		}
	}
	file, err := f.selectProgram(bins)
	if err != nil {
		return nil, nil, err
	}
	if file = path.Clean(file); !fs.ValidPath(file) {
		return nil, nil, fmt.Errorf("program of package %s has a path outside the package: %q", f.pkg, file)
	}
	lock, err := readMetadata(fsys, ".package-lock.json")
	if err != nil {
		return nil, nil, fmt.Errorf("read installed package: %w", err)
	}
	var locked struct {
		Packages map[string]struct{ Version, Integrity string } `json:"packages"`
	}
	if err := json.Unmarshal(lock, &locked); err != nil {
		return nil, nil, fmt.Errorf("read installed package: %w", err)
	}
	var all []string
	for _, at := range slices.Sorted(maps.Keys(locked.Packages)) {
		all = append(all, fmt.Sprintf("%q %q %q", at, locked.Packages[at].Version, locked.Packages[at].Integrity))
	}
	p := &Package{Registry: "npm", Requested: f.spec(), Name: f.pkg, Version: doc.Version, Integrity: hashFileList(all)}
	return p, []string{path.Join(packages.ModulesDir, f.pkg, file)}, nil
}

// selectProgram selects the program of a package that npx or uvx would start.
func (f *packageCommand) selectProgram(programs map[string]string) (string, error) {
	for _, name := range []string{f.program, path.Base(f.pkg)} {
		if at, ok := programs[name]; ok && (name == f.program || f.program == "") {
			return at, nil
		}
	}
	if f.program == "" && len(programs) == 1 {
		for _, at := range programs {
			return at, nil
		}
	}
	if len(programs) == 0 {
		return "", fmt.Errorf("package %s has no programs", f.pkg)
	}
	option := "-p"
	if f.launcher == "uvx" {
		option = "--from"
	}
	names := slices.Sorted(maps.Keys(programs))
	return "", fmt.Errorf("package %s has several programs (%s): select one with %s %s %[3]s PROGRAM", f.pkg, strings.Join(names[:min(len(names), maxPrograms)], ", "), f.launcher, option+" "+f.pkg)
}

func hashFileList(lines []string) string {
	sum := sha256.Sum256([]byte("loadout package 1\n" + strings.Join(lines, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// normalizeName returns the normalized name of a Python package, as defined by
// PEP 503, without extras.
func normalizeName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return regexp.MustCompile(`[-_.]+`).ReplaceAllString(strings.ToLower(name), "-")
}

// resolvePyPI resolves a package in the directory fsys. files yields the paths and
// hashes of its files. The Integrity of the result covers these hashes and not those
// in RECORD, because installers copy RECORD from the package without checking it.
func (f *packageCommand) resolvePyPI(fsys fs.FS, files iter.Seq2[string, string]) (*Package, []string, error) {
	dirs, err := fs.Glob(fsys, "*.dist-info")
	if err != nil {
		return nil, nil, err
	}
	p := &Package{Registry: "pypi", Requested: f.spec(), Name: normalizeName(f.pkg)}
	programs := map[string]string{}
	written := map[string]bool{".lock": true} // by the installer; .lock by uv
	for _, dir := range dirs {
		points, err := readMetadata(fsys, path.Join(dir, "entry_points.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("read installed package: %w", err)
		}
		console, gui := entryPoints(points)
		for _, names := range []map[string]string{console, gui} {
			for name := range names {
				written["bin/"+name] = true
			}
		}
		for _, name := range installerFiles {
			written[path.Join(dir, name)] = true
		}
		if name, version, _ := strings.Cut(strings.TrimSuffix(dir, ".dist-info"), "-"); normalizeName(name) == p.Name {
			p.Version, programs = version, console
		}
	}
	if p.Version == "" {
		return nil, nil, fmt.Errorf("package %s is not installed", f.pkg)
	}
	at, err := f.selectProgram(programs)
	if err != nil {
		return nil, nil, err
	}
	m := entryPoint.FindStringSubmatch(at)
	if m == nil {
		return nil, nil, fmt.Errorf("package %s has an invalid entry point %q: want MODULE:FUNCTION", f.pkg, at)
	}
	var all []string
	for name, sum := range files {
		if !written[name] && !packages.IsCompiledPython(name) {
			all = append(all, fmt.Sprintf("%s %q", sum, name))
		}
	}
	p.Integrity = hashFileList(all)
	// pip would write the same code to a file in bin.
	start := fmt.Sprintf("import sys, importlib, functools; sys.argv[0] = %q; sys.exit(functools.reduce(getattr, %q.split('.'), importlib.import_module(%q))())", normalizeName(f.pkg), m[2], m[1])
	return p, []string{"-c", start}, nil
}

// installerFiles are the files of a .dist-info directory that pip or uv write.
// They differ between installers.
var installerFiles = []string{"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"}

var entryPoint = lazyregexp.New(`^([A-Za-z0-9_.]+)\s*:\s*([A-Za-z0-9_.]+)(\s*\[.*\])?$`)

// entryPoints returns the programs declared in an entry_points.txt file. It maps
// their names to their entry points.
func entryPoints(text []byte) (console, gui map[string]string) {
	console, gui = map[string]string{}, map[string]string{}
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		name, at, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		switch section {
		case "console_scripts":
			console[strings.TrimSpace(name)] = strings.TrimSpace(at)
		case "gui_scripts":
			gui[strings.TrimSpace(name)] = strings.TrimSpace(at)
		}
	}
	return console, gui
}
