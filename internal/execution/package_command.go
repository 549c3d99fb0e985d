package execution

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// packageCommand describes a package to install and which of its programs to
// run.
type packageCommand struct {
	launcher string // npx or uvx
	pkg      string // package name
	version  string // requested version; "" means the latest
	program  string // "" means the program named after the package, or the only program
	args     []string
	files    memoryFS // files that declare the package for the installation
}

var (
	npmPackage  = lazyregexp.New(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-zA-Z0-9~-][a-zA-Z0-9._~-]*$`)
	npmVersion  = lazyregexp.New(`^[A-Za-z0-9.*^~<>=|+ -]+$`)
	pypiPackage = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]*\])?$`)
	pypiVersion = lazyregexp.New(`^([=<>!~]=?=?)?[A-Za-z0-9.*+!,<>=~ -]+$`)
)

// parseNPX parses the arguments of npx.
func parseNPX(args []string) (*packageCommand, error) {
	f, spec := &packageCommand{launcher: "npx"}, ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		switch flag {
		case "-y", "--yes", "-q", "--quiet", "--":
			continue
		case "-p", "--package":
			if !given {
				if len(args) == 0 {
					return nil, &CommandError{"npx", flag + " needs a package"}
				}
				value, args = args[0], args[1:]
			}
			if spec != "" {
				return nil, &CommandError{"npx", "multiple packages are not supported: write one that depends on the others"}
			}
			spec = value
		default:
			return nil, &CommandError{"npx", fmt.Sprintf("unsupported option %q: write npx -y PACKAGE@VERSION and its arguments", flag)}
		}
	}
	if len(args) == 0 {
		return nil, &CommandError{"npx", "missing package: write npx -y PACKAGE@VERSION and its arguments"}
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
	if !npmPackage.MatchString(f.pkg) || f.version != "" && !npmVersion.MatchString(f.version) {
		return nil, &CommandError{"npx", fmt.Sprintf("%q is not a package name: write PACKAGE@VERSION", spec)}
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
	f, spec := &packageCommand{launcher: "uvx"}, ""
	python := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		if flag == "-q" || flag == "--quiet" || flag == "--" {
			continue
		}
		if flag != "--from" && flag != "--python" && flag != "-p" {
			return nil, &CommandError{"uvx", fmt.Sprintf("unsupported option %q: write uvx PACKAGE==VERSION and its arguments", flag)}
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
		return nil, &CommandError{"uvx", "missing package: write uvx PACKAGE==VERSION and its arguments"}
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
	if !pypiPackage.MatchString(f.pkg) || f.version != "" && !pypiVersion.MatchString(f.version) {
		return nil, &CommandError{"uvx", fmt.Sprintf("%q is not a package name: write PACKAGE==VERSION", spec)}
	}
	version := f.version
	if version != "" && !strings.ContainsAny(version[:1], "=<>~!") {
		version = "==" + version
	}
	requires := ""
	if python = strings.TrimPrefix(python, "python"); python != "" {
		if !regexp.MustCompile(`^3(\.[0-9]+){0,2}$`).MatchString(python) {
			return nil, &CommandError{"uvx", fmt.Sprintf("invalid Python version %q: write one such as 3.12", python)}
		}
		requires = fmt.Sprintf("# requires-python = %q\n", "=="+python+".*")
	}
	f.files = memoryFS{"main.py": fmt.Appendf(nil, "# /// script\n%s# dependencies = [%q]\n# ///\n", requires, f.pkg+version)}
	return f, nil
}

// spec returns the requested package in the form NAME or NAME@VERSION.
func (f *packageCommand) spec() string {
	if f.version == "" {
		return f.pkg
	}
	return f.pkg + "@" + f.version
}
