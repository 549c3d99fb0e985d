package script

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Host describes the machine whose interpreters run scripts. The zero Host uses
// only the system directories.
type Host struct {
	// Path is the value of PATH. Relative entries are ignored.
	Path string
	// Home is the user's home directory, or "" if unknown. A [Plan] mounts only
	// runtimes inside it, never the directory itself.
	Home string
	// Getenv reads an environment variable that configures a version manager.
	// If nil, none is set.
	Getenv func(string) string
	// System lists the directories that every sandbox contains. The default
	// depends on the operating system. Only tests set it.
	System []string
	// Version returns the version of an interpreter, such as "22.18.0", or "".
	// It is called if the files of the interpreter do not contain the version,
	// and may run the interpreter. It may be nil.
	Version func(exe string) string
}

// HostOf returns the host described by environment variables.
func HostOf(getenv func(string) string) Host {
	home := getenv("HOME")
	if runtime.GOOS == "windows" {
		home = getenv("USERPROFILE")
	}
	return Host{Path: getenv("PATH"), Home: home, Getenv: getenv}
}

func (h Host) getenv(name string) string {
	if h.Getenv == nil {
		return ""
	}
	return h.Getenv(name)
}

// systemDirs returns the directories that are in every sandbox, so they need no
// mount.
func (h Host) systemDirs() []string {
	if h.System != nil {
		return h.System
	}
	switch runtime.GOOS {
	case "windows":
		return []string{filepath.Clean(h.envOr("SystemRoot", `C:\Windows`))}
	case "darwin":
		return []string{"/usr", "/bin", "/sbin", "/System"}
	}
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

func (h Host) envOr(variable, value string) string {
	if v := h.getenv(variable); v != "" && filepath.IsAbs(v) {
		return filepath.Clean(v)
	}
	return value
}

// inSystem reports whether a path is in a system directory, so it needs no
// mount.
func (h Host) inSystem(p string) bool {
	return slices.ContainsFunc(h.systemDirs(), func(dir string) bool { return isWithin(dir, p) })
}

// interpreter is a usable interpreter on the host.
type interpreter struct {
	exe      string   // path of the program
	before   []string // arguments before all others: the path of a JavaScript program
	prefixes []string
	version  string
	name     string // name that was searched for
}

// completePlan sets the fields of the plan that depend on the host.
func (h Host) completePlan(plan *Plan, how detected, requiresPython string) error {
	missing := &MissingError{Interpreter: strings.Join(how.interpreters, " or "), For: cmp.Or(plan.Script, "Python code with packages"), Hint: installHint(how.interpreters[0])}
	accept := func(interpreter) string { return "" }
	switch how.kind {
	case Python:
		missing.Interpreter = how.interpreters[0]
		if requiresPython != "" {
			missing.Interpreter += " (" + requiresPython + ")"
			accept = func(f interpreter) string {
				if f.version != "" && !satisfiesVersion(f.version, requiresPython) {
					return "version " + f.version + " does not satisfy " + requiresPython
				}
				return ""
			}
		}
	case Other:
		missing.Hint = defaultInstallHint
		accept = privilegeProblem
		h.Version = nil // do not run an interpreter chosen by a skill to determine its version
	case TypeScript:
		accept = typeScriptProblem
		if how.interpreters[0] == "node" {
			missing.Hint = installHint("ts")
			missing.Interpreter = "node (22.6 or newer)"
			if len(how.interpreters) > 1 {
				missing.Interpreter = "node (22.6 or newer), deno, bun or tsx"
			}
		}
	}
	f, tried, ok := h.findInterpreter(how, accept)
	if !ok {
		missing.Tried = tried
		return missing
	}
	plan.Interpreter, plan.Version, plan.Prefixes = f.name, f.version, f.prefixes
	plan.Argv = append([]string{f.exe}, f.before...)
	plan.Argv = append(plan.Argv, interpreterFlags(how, f)...)
	plan.Argv = append(plan.Argv, Placeholder)
	for _, p := range append([]string{f.exe}, f.before...) {
		if dir := filepath.Dir(p); !h.inSystem(p) && !slices.Contains(plan.Bin, dir) && filepath.Base(dir) == "bin" {
			plan.Bin = append(plan.Bin, dir)
		}
	}
	if f.name == "deno" {
		plan.Env["DENO_NO_UPDATE_CHECK"] = "1"
	}
	return nil
}

// privilegeProblem returns the reason why f must not be used if it is a setuid
// or setgid program, and "" otherwise.
func privilegeProblem(f interpreter) string {
	if info, err := os.Stat(f.exe); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "it runs with the rights of another user (setuid or setgid)"
	}
	return ""
}

// interpreterFlags returns the arguments to put between the interpreter and the
// script.
func interpreterFlags(how detected, f interpreter) []string {
	args := slices.Clone(how.args)
	switch {
	case f.name == "deno" && len(args) == 0:
		// The sandbox limits the script; without this flag, deno would prompt
		// for permissions.
		return []string{"run", "--allow-all"}
	case how.kind == TypeScript && f.name == "node" && !slices.Contains(args, stripTypesFlag) && needsTypeScriptFlag(f.version):
		return append(args, stripTypesFlag)
	}
	return append(args, byKind(how.kind).before...)
}

// findInterpreter returns the first usable interpreter. It tries the path of a
// shebang, then each name in PATH, in the system directories, and in the
// directories of version managers. accept returns the reason why an interpreter
// is unsuitable, or "" if it is suitable.
func (h Host) findInterpreter(how detected, accept func(interpreter) string) (interpreter, []Unusable, bool) {
	var tried []Unusable
	seen := map[string]bool{}
	try := func(p, name string) (interpreter, bool) {
		location := p // with symlinks of directories resolved, such as /bin to /usr/bin
		if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			location = filepath.Join(dir, filepath.Base(p))
		}
		if seen[location] || !isExecutable(p) {
			return interpreter{}, false
		}
		seen[location] = true
		f, err := h.resolveInterpreter(p, name, 0)
		reason := ""
		if err != nil {
			reason = err.Error()
		} else {
			reason = accept(f)
		}
		if reason != "" {
			tried = append(tried, Unusable{p, reason})
			return interpreter{}, false
		}
		return f, true
	}
	path := h.searchPath()
	if p := how.exact; p != "" && (h.inSystem(p) || slices.Contains(path, filepath.Dir(p))) {
		if f, ok := try(p, filepath.Base(p)); ok {
			return f, nil, true
		}
	}
	for _, name := range how.interpreters {
		for _, dir := range path {
			if f, ok := try(filepath.Join(dir, name+exeSuffix), name); ok {
				return f, nil, true
			}
		}
		for _, p := range h.managedInterpreters(name) {
			if f, ok := try(p, name); ok {
				return f, nil, true
			}
		}
	}
	return interpreter{}, tried, false
}

// searchPath returns the directories in which to look for interpreters.
func (h Host) searchPath() []string {
	var dirs []string
	add := func(dir string) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, filepath.Clean(dir)) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	for _, dir := range filepath.SplitList(h.Path) {
		add(dir)
	}
	for _, dir := range h.systemDirs() {
		switch filepath.Base(dir) {
		case "usr":
			add(filepath.Join(dir, "local", "bin"))
			add(filepath.Join(dir, "bin"))
		case "bin", "sbin":
			add(dir)
		}
	}
	return dirs
}

// resolveInterpreter returns the interpreter that an executable file starts. It
// resolves symlinks, shims and virtual environments. depth is the number of
// nested shims so far.
func (h Host) resolveInterpreter(p, name string, depth int) (interpreter, error) {
	hops, err := followSymlinks(p)
	if err != nil {
		return interpreter{}, err
	}
	real := hops[len(hops)-1]
	if m, ok := h.findShim(hops, name); ok {
		if depth > 2 {
			return interpreter{}, errors.New("too many nested version manager shims")
		}
		q, err := m.target()
		if err != nil {
			return interpreter{}, err
		}
		if !isExecutable(q) {
			return interpreter{}, fmt.Errorf("%s selects %s, which is not an executable file", m.manager, q)
		}
		return h.resolveInterpreter(q, name, depth+1)
	}
	f := interpreter{exe: real, name: name, version: h.version(real, name)}
	for i, hop := range hops {
		if isVenv(hop) {
			return h.resolveVenv(f, hops[i:])
		}
	}
	switch filepath.Base(real) {
	case "busybox", "toybox", "coreutils":
		f.exe = hops[0] // a program whose behavior depends on the name it is started with
		for i := len(hops) - 2; i >= 0 && h.inSystem(hops[i]); i-- {
			if filepath.Base(hops[i]) == name {
				f.exe = hops[i]
				break
			}
		}
	}
	if name == "tsx" || name == "npm" {
		return h.nodeProgram(f)
	}
	f.prefixes, err = h.prefixes(real, name)
	return f, err
}

// nodeProgram returns the interpreter for a JavaScript program that runs on
// node, such as tsx.
func (h Host) nodeProgram(f interpreter) (interpreter, error) {
	src, err := os.ReadFile(f.exe)
	if err != nil {
		return interpreter{}, err
	}
	sb, ok, err := parseShebang(src)
	if !ok || err != nil || filepath.Base(sb.interpreter) != "node" {
		return interpreter{}, errors.New("not a Node.js program")
	}
	node, tried, ok := h.findInterpreter(detected{interpreters: []string{"node"}}, func(interpreter) string { return "" })
	if !ok {
		return interpreter{}, fmt.Errorf("requires Node.js, which was not found (%d locations tried)", len(tried))
	}
	own, err := h.prefixes(f.exe, f.name)
	if err != nil {
		return interpreter{}, err
	}
	return interpreter{exe: node.exe, before: []string{f.exe}, prefixes: append(node.prefixes, own...), name: f.name}, nil
}

// followSymlinks follows symlinks from p, one at a time. It returns p and the
// target of each symlink, so the last path is not a symlink. It also returns
// each path with the symlinks of its directory resolved.
func followSymlinks(p string) ([]string, error) {
	var hops []string
	p = filepath.Clean(p)
	for range 32 {
		hops = append(hops, p)
		dir, err := filepath.EvalSymlinks(filepath.Dir(p))
		if err != nil {
			return nil, err
		}
		if q := filepath.Join(dir, filepath.Base(p)); q != p {
			p = q
			hops = append(hops, p)
		}
		to, err := os.Readlink(p)
		if err != nil {
			return hops, nil
		}
		if !filepath.IsAbs(to) {
			to = dir + string(filepath.Separator) + to
			// ".." applies after symlinks are resolved, so filepath.Clean would
			// be wrong.
			if d, err := filepath.EvalSymlinks(filepath.Dir(to)); err == nil {
				to = filepath.Join(d, filepath.Base(to))
			}
		}
		p = filepath.Clean(to)
	}
	return nil, errors.New("too many symlinks")
}

var exeSuffix = map[bool]string{true: ".exe"}[runtime.GOOS == "windows"]

// isExecutable reports whether p is an executable regular file.
func isExecutable(p string) bool {
	info, err := os.Stat(p)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return runtime.GOOS == "windows" || info.Mode()&0o111 != 0
}

// isWithin reports whether p is dir or a path below it. Both must be clean.
func isWithin(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
