package loadout

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
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/skill"
)

// Package is an installed package that npx or uvx starts for a skill. It does
// not change until the installed packages are removed.
type Package struct {
	Registry  string `json:"registry"` // npm or pypi
	Requested string `json:"asked"`    // as written in the skill
	Name      string `json:"name"`
	Version   string `json:"version"`
	// Integrity is "sha256:" and a hash over the package and its dependencies.
	// For npm it covers the integrity that the registry states for each; for
	// PyPI, the file list of each package.
	Integrity string `json:"integrity"`
}

// packageCommand is a package to install and the program to start from it.
type packageCommand struct {
	by      string // npx or uvx
	pkg     string // package name
	version string // as requested; "" means the latest
	program string // "" means the only program, or the one named like the package
	args    []string
	files   memoryFS // input of the build step
}

var (
	npmPackage  = lazyregexp.New(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-zA-Z0-9~-][a-zA-Z0-9._~-]*$`)
	npmVersion  = lazyregexp.New(`^[A-Za-z0-9.*^~<>=|+ -]+$`)
	pypiPackage = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]*\])?$`)
	pypiVersion = lazyregexp.New(`^([=<>!~]=?=?)?[A-Za-z0-9.*+!,<>=~ -]+$`)
)

// parseNPX parses the arguments of npx.
func parseNPX(args []string) (*packageCommand, error) {
	f, spec := &packageCommand{by: "npx"}, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		switch flag {
		case "-y", "--yes", "-q", "--quiet", "--":
			continue
		case "-p", "--package":
			if !given {
				if len(args) == 0 {
					return nil, &CommandError{"npx", flag + " names no package"}
				}
				value, args = args[0], args[1:]
			}
			if spec != "" {
				return nil, &CommandError{"npx", "more than one package is not supported: name one that depends on the others"}
			}
			spec = value
		default:
			return nil, &CommandError{"npx", fmt.Sprintf("%q is not supported here: write npx -y PACKAGE@VERSION and its arguments", flag)}
		}
	}
	if len(args) == 0 {
		return nil, &CommandError{"npx", "it names no package: write npx -y PACKAGE@VERSION and its arguments"}
	}
	f.args = args[1:]
	if spec == "" {
		spec = args[0]
	} else {
		f.program = args[0]
	}
	f.pkg = spec
	if i := strings.LastIndex(spec, "@"); i > 0 {
		f.pkg, f.version = spec[:i], spec[i+1:]
	}
	if !npmPackage().MatchString(f.pkg) || f.version != "" && !npmVersion().MatchString(f.version) {
		return nil, &CommandError{"npx", fmt.Sprintf("%q is not a package of the registry: write PACKAGE@VERSION", spec)}
	}
	version := f.version
	if version == "" {
		version = "latest"
	}
	data, err := json.Marshal(map[string]any{"dependencies": map[string]string{f.pkg: version}})
	if err != nil {
		return nil, err
	}
	f.files = memoryFS{"main.js": nil, "package.json": data}
	return f, nil
}

// parseUVX parses the arguments of uvx.
func parseUVX(args []string) (*packageCommand, error) {
	f, spec := &packageCommand{by: "uvx"}, ""
	python := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		if flag == "-q" || flag == "--quiet" || flag == "--" {
			continue
		}
		if flag != "--from" && flag != "--python" && flag != "-p" {
			return nil, &CommandError{"uvx", fmt.Sprintf("%q is not supported here: write uvx PACKAGE==VERSION and its arguments", flag)}
		}
		if !given {
			if len(args) == 0 {
				return nil, &CommandError{"uvx", flag + " has no value"}
			}
			value, args = args[0], args[1:]
		}
		if flag == "--from" {
			spec = value
		} else {
			python = value
		}
	}
	if len(args) == 0 {
		return nil, &CommandError{"uvx", "it names no package: write uvx PACKAGE==VERSION and its arguments"}
	}
	f.args = args[1:]
	if spec == "" {
		spec = args[0]
	} else {
		f.program = args[0]
	}
	f.pkg = spec
	if i := strings.IndexAny(spec, "@=<>~!"); i > 0 {
		f.pkg, f.version = spec[:i], strings.TrimPrefix(spec[i:], "@")
	}
	if f.version == "latest" {
		f.version = ""
	}
	if !pypiPackage().MatchString(f.pkg) || f.version != "" && !pypiVersion().MatchString(f.version) {
		return nil, &CommandError{"uvx", fmt.Sprintf("%q is not a package of the index: write PACKAGE==VERSION", spec)}
	}
	version := f.version
	if version != "" && !strings.ContainsAny(version[:1], "=<>~!") {
		version = "==" + version
	}
	requires := ""
	if python = strings.TrimPrefix(python, "python"); python != "" {
		if !regexp.MustCompile(`^3(\.[0-9]+){0,2}$`).MatchString(python) {
			return nil, &CommandError{"uvx", fmt.Sprintf("%q is no version of Python: write one such as 3.12", python)}
		}
		requires = fmt.Sprintf("# requires-python = %q\n", "=="+python+".*")
	}
	f.files = memoryFS{"main.py": fmt.Appendf(nil, "# /// script\n%s# dependencies = [%q]\n# ///\n", requires, f.pkg+version)}
	return f, nil
}

// planPackage determines what to install and for which interpreter.
func (j *job) planPackage() error {
	f, name := j.service.fetch, "main.js"
	if f.by == "uvx" {
		name = "main.py"
	}
	var err error
	if j.scriptPlan, err = script.Resolve(f.files, name, j.scriptHost()); err != nil {
		return fmt.Errorf("%s: %s %s: %w", j.owner(), f.by, f.pkg, err)
	}
	if j.scriptPlan.Needs == nil {
		return fmt.Errorf("%s: %s %s: it names nothing to install", j.owner(), f.by, f.pkg)
	}
	j.scriptPlan.Needs.Source = f.by + " " + f.pkg
	return nil
}

// resolveEntryPoint finds the program in the installed packages.
func (j *job) resolveEntryPoint() error {
	f := j.service.fetch
	built, argv, err := f.resolve(j.packages)
	if err != nil {
		return err
	}
	if err := j.checkApprovedPackage(built); err != nil {
		return err
	}
	j.service.built = built
	j.service.argv = slices.Concat(j.scriptPlan.Argv[:len(j.scriptPlan.Argv)-1], argv, f.args)
	return nil
}

// resolve returns the installed package and the interpreter's arguments to run
// it.
func (f *packageCommand) resolve(p *packages.Packages) (*Package, []string, error) {
	if p == nil || len(p.Mounts) != 1 {
		return nil, nil, errors.New("nothing was installed")
	}
	root, err := os.OpenRoot(p.Mounts[0].Host)
	if err != nil {
		return nil, nil, fmt.Errorf("read what was installed: %w", err)
	}
	defer root.Close()
	if f.by == "uvx" {
		return f.fromPyPI(root.FS())
	}
	return f.fromNPM(root.FS())
}

func (f *packageCommand) asked() string {
	if f.version == "" {
		return f.pkg
	}
	return f.pkg + "@" + f.version
}

// maxMetadata is the size limit of a file that describes a package.
const maxMetadata = 16 << 20

func metadata(fsys fs.FS, name string) ([]byte, error) {
	in, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxMetadata+1))
	if err == nil && len(data) > maxMetadata {
		err = fmt.Errorf("%s is larger than %d MiB", name, maxMetadata>>20)
	}
	return data, err
}

func (f *packageCommand) fromNPM(fsys fs.FS) (*Package, []string, error) {
	data, err := metadata(fsys, path.Join(f.pkg, "package.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("read what was installed: %w", err)
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
	file, err := f.choose(bins)
	if err != nil {
		return nil, nil, err
	}
	if file = path.Clean(file); !fs.ValidPath(file) {
		return nil, nil, fmt.Errorf("the program of %s is %q, which is not in it", f.pkg, file)
	}
	lock, err := metadata(fsys, ".package-lock.json")
	if err != nil {
		return nil, nil, fmt.Errorf("read what was installed: %w", err)
	}
	var locked struct {
		Packages map[string]struct{ Version, Integrity string } `json:"packages"`
	}
	if err := json.Unmarshal(lock, &locked); err != nil {
		return nil, nil, fmt.Errorf("read what was installed: %w", err)
	}
	var all []string
	for _, at := range slices.Sorted(maps.Keys(locked.Packages)) {
		all = append(all, fmt.Sprintf("%q %q %q", at, locked.Packages[at].Version, locked.Packages[at].Integrity))
	}
	p := &Package{Registry: "npm", Requested: f.asked(), Name: f.pkg, Version: doc.Version, Integrity: integrity(all)}
	return p, []string{path.Join(packages.ModulesDir, f.pkg, file)}, nil
}

// choose selects a program of a package, as npx and uvx do.
func (f *packageCommand) choose(programs map[string]string) (string, error) {
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
		return "", fmt.Errorf("the package %s has no program to start", f.pkg)
	}
	option := "-p"
	if f.by == "uvx" {
		option = "--from"
	}
	return "", fmt.Errorf("the package %s has the programs %s: name one by %s %s %[3]s PROGRAM", f.pkg, joinNames(slices.Sorted(maps.Keys(programs))), f.by, option+" "+f.pkg)
}

func integrity(lines []string) string {
	sum := sha256.Sum256([]byte("loadout package 1\n" + strings.Join(lines, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// normalizeName returns the normalized name of a Python package.
func normalizeName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return regexp.MustCompile(`[-_.]+`).ReplaceAllString(strings.ToLower(name), "-")
}

func (f *packageCommand) fromPyPI(fsys fs.FS) (*Package, []string, error) {
	dirs, err := fs.Glob(fsys, "*.dist-info")
	if err != nil {
		return nil, nil, err
	}
	p := &Package{Registry: "pypi", Requested: f.asked(), Name: normalizeName(f.pkg)}
	programs := map[string]string{}
	var all []string
	for _, dir := range dirs {
		record, err := metadata(fsys, path.Join(dir, "RECORD"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("read what was installed: %w", err)
		}
		all = append(all, fmt.Sprintf("%q %s", dir, skill.Hash(packagedFiles(record))))
		name, version, _ := strings.Cut(strings.TrimSuffix(dir, ".dist-info"), "-")
		if normalizeName(name) != p.Name {
			continue
		}
		p.Version = version
		points, err := metadata(fsys, path.Join(dir, "entry_points.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("read what was installed: %w", err)
		}
		programs = consoleScripts(points)
	}
	if p.Version == "" {
		return nil, nil, fmt.Errorf("the package %s is not among what was installed", f.pkg)
	}
	at, err := f.choose(programs)
	if err != nil {
		return nil, nil, err
	}
	m := entryPoint().FindStringSubmatch(at)
	if m == nil {
		return nil, nil, fmt.Errorf("the program of %s is %q, which is no function of a module", f.pkg, at)
	}
	p.Integrity = integrity(all)
	// This is the code that pip would write into a file in bin.
	start := fmt.Sprintf("import sys, importlib, functools; sys.argv[0] = %q; sys.exit(functools.reduce(getattr, %q.split('.'), importlib.import_module(%q))())", normalizeName(f.pkg), m[2], m[1])
	return p, []string{"-c", start}, nil
}

var entryPoint = lazyregexp.New(`^([A-Za-z0-9_.]+)\s*:\s*([A-Za-z0-9_.]+)(\s*\[.*\])?$`)

// packagedFiles returns the lines of a RECORD for files that came with the
// package. The installer writes the other lines, in an order and with values
// that vary.
func packagedFiles(record []byte) []byte {
	var lines []string
	for line := range strings.Lines(string(record)) {
		if fields := strings.Split(strings.TrimSpace(line), ","); len(fields) >= 3 && !strings.HasSuffix(fields[0], ".pyc") && !strings.HasPrefix(fields[0], "..") &&
			!strings.HasPrefix(fields[0], "bin/") && !strings.Contains(fields[0], ".dist-info/") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "\n"))
}

// consoleScripts reads the programs in an entry_points.txt.
func consoleScripts(text []byte) map[string]string {
	out, section := map[string]string{}, ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
			continue
		}
		if name, at, ok := strings.Cut(line, "="); ok && section == "console_scripts" && !strings.HasPrefix(line, "#") {
			out[strings.TrimSpace(name)] = strings.TrimSpace(at)
		}
	}
	return out
}
