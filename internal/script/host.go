package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Host is the machine whose interpreters are used. The zero Host has those of
// the system directories only.
type Host struct {
	// Path is the value of PATH; entries that are not absolute are passed over.
	Path string
	// Home is the home directory, of which nothing but runtimes is ever named
	// in a [Plan]. Empty: none is known.
	Home string
	// Getenv reads a variable, for the version managers; nil: none is set.
	Getenv func(string) string
	// System are the directories that a sandbox has anyway; nil: those usual on
	// this operating system. Tests give a directory of their own.
	System []string
	// Version says the version of an interpreter ("22.18.0", or empty) where
	// files do not tell; it may run it. Nil: not known.
	Version func(exe string) string
}

// HostOf returns the host as the environment describes it.
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

// system are the directories that need no mount.
func (h Host) system() []string {
	if h.System != nil {
		return h.System
	}
	switch runtime.GOOS {
	case "windows":
		return []string{filepath.Clean(h.orElse("SystemRoot", `C:\Windows`))}
	case "darwin":
		return []string{"/usr", "/bin", "/sbin", "/System"}
	}
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

func (h Host) orElse(variable, value string) string {
	if v := h.getenv(variable); v != "" && filepath.IsAbs(v) {
		return filepath.Clean(v)
	}
	return value
}

// inSystem reports whether a path needs no mount.
func (h Host) inSystem(p string) bool {
	return slices.ContainsFunc(h.system(), func(dir string) bool { return within(dir, p) })
}

// found is an interpreter that can be used.
type found struct {
	exe      string   // as it is to be started
	before   []string // what comes between exe and the arguments: a program in JavaScript
	prefixes []string
	version  string
	name     string // as it was looked for
}

// complete fills in the part of the plan that the host decides.
func (h Host) complete(plan *Plan, how recognised, requiresPython string) error {
	missing := &MissingError{Interpreter: strings.Join(how.interpreters, " or "), For: plan.Script, Hint: hint(how.interpreters[0])}
	accept := func(found) string { return "" }
	switch how.kind {
	case Python:
		missing.Interpreter = how.interpreters[0]
		if requiresPython != "" {
			missing.Interpreter += " (" + requiresPython + ")"
			accept = func(f found) string {
				if f.version != "" && !satisfies(f.version, requiresPython) {
					return "it is version " + f.version + ", and " + requiresPython + " is required"
				}
				return ""
			}
		}
	case Other:
		missing.Hint = otherHint
		accept = runsAsItself
		h.Version = nil // a skill does not choose what is run to learn that
	case TypeScript:
		accept = runsTypeScript
		if how.interpreters[0] == "node" {
			missing.Hint = hint("ts")
			missing.Interpreter = "node (22.6 or newer)"
			if len(how.interpreters) > 1 {
				missing.Interpreter = "node (22.6 or newer), deno, bun or tsx"
			}
		}
	}
	f, tried, ok := h.find(how, accept)
	if !ok {
		missing.Tried = tried
		return missing
	}
	plan.Interpreter, plan.Version, plan.Prefixes = f.name, f.version, f.prefixes
	plan.Argv = append([]string{f.exe}, f.before...)
	plan.Argv = append(plan.Argv, flags(how, f)...)
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

// runsAsItself says why a program cannot be the interpreter of a script: it gets
// the rights of another user. Or nothing.
func runsAsItself(f found) string {
	if info, err := os.Stat(f.exe); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "it takes the rights of another user (setuid or setgid)"
	}
	return ""
}

// flags are what stands between an interpreter and the script.
func flags(how recognised, f found) []string {
	args := slices.Clone(how.args)
	switch {
	case f.name == "deno" && len(args) == 0:
		// The sandbox is the boundary; deno would ask a person who is not there.
		return []string{"run", "--allow-all"}
	case how.kind == TypeScript && f.name == "node" && !slices.Contains(args, stripTypes) && typescriptByFlag(f.version):
		return append(args, stripTypes)
	}
	return append(args, byKind(how.kind).before...)
}

// find looks for the first usable interpreter: the very path of a shebang, then
// each name on PATH, in the system directories, and where version managers
// keep them. accept says why not, or nothing.
func (h Host) find(how recognised, accept func(found) string) (found, []Unusable, bool) {
	var tried []Unusable
	seen := map[string]bool{}
	try := func(p, name string) (found, bool) {
		place := p // but for links of directories, such as /bin to /usr/bin
		if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			place = filepath.Join(dir, filepath.Base(p))
		}
		if seen[place] || !executable(p) {
			return found{}, false
		}
		seen[place] = true
		f, err := h.use(p, name, 0)
		reason := ""
		if err != nil {
			reason = err.Error()
		} else {
			reason = accept(f)
		}
		if reason != "" {
			tried = append(tried, Unusable{p, reason})
			return found{}, false
		}
		return f, true
	}
	path := h.path()
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
		for _, p := range h.kept(name) {
			if f, ok := try(p, name); ok {
				return f, nil, true
			}
		}
	}
	return found{}, tried, false
}

// path are the directories to look in.
func (h Host) path() []string {
	var dirs []string
	add := func(dir string) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, filepath.Clean(dir)) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	for _, dir := range filepath.SplitList(h.Path) {
		add(dir)
	}
	for _, dir := range h.system() {
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

// use turns an executable file into an interpreter, following links, shims and
// virtual environments. depth bounds the shims that lead to shims.
func (h Host) use(p, name string, depth int) (found, error) {
	hops, err := follow(p)
	if err != nil {
		return found{}, err
	}
	real := hops[len(hops)-1]
	if m, ok := h.shim(hops, name); ok {
		if depth > 2 {
			return found{}, errors.New("it leads to itself")
		}
		q, err := m.target()
		if err != nil {
			return found{}, err
		}
		if !executable(q) {
			return found{}, fmt.Errorf("%s chose %s, which is not there", m.manager, q)
		}
		return h.use(q, name, depth+1)
	}
	f := found{exe: real, name: name, version: h.version(real, name)}
	for i, hop := range hops {
		if isVenv(hop) {
			return h.venv(f, hops[i:])
		}
	}
	switch filepath.Base(real) {
	case "busybox", "toybox", "coreutils":
		f.exe = hops[0] // one program for all names: the name is what counts
		for i := len(hops) - 2; i >= 0 && h.inSystem(hops[i]); i-- {
			if filepath.Base(hops[i]) == name {
				f.exe = hops[i]
				break
			}
		}
	}
	if name == "tsx" || name == "npm" {
		return h.javascript(f)
	}
	f.prefixes, err = h.prefixes(real, name)
	return f, err
}

// javascript is for a program that node runs.
func (h Host) javascript(f found) (found, error) {
	src, err := os.ReadFile(f.exe)
	if err != nil {
		return found{}, err
	}
	sb, ok, err := parseShebang(src)
	if !ok || err != nil || filepath.Base(sb.interpreter) != "node" {
		return found{}, errors.New("it is not a program for node")
	}
	node, tried, ok := h.find(recognised{interpreters: []string{"node"}}, func(found) string { return "" })
	if !ok {
		return found{}, fmt.Errorf("it needs node, which is missing (%d tried)", len(tried))
	}
	own, err := h.prefixes(f.exe, f.name)
	if err != nil {
		return found{}, err
	}
	return found{exe: node.exe, before: []string{f.exe}, prefixes: append(node.prefixes, own...), name: f.name}, nil
}

// follow returns p and every path it leads to by links, the file itself last.
// Each hop comes also with the links of its directory resolved.
func follow(p string) ([]string, error) {
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
			// ".." counts from where links lead, which Clean cannot know.
			if d, err := filepath.EvalSymlinks(filepath.Dir(to)); err == nil {
				to = filepath.Join(d, filepath.Base(to))
			}
		}
		p = filepath.Clean(to)
	}
	return nil, errors.New("too many links")
}

var exeSuffix = map[bool]string{true: ".exe"}[runtime.GOOS == "windows"]

// executable reports whether p is a file that can be run.
func executable(p string) bool {
	info, err := os.Stat(p)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return runtime.GOOS == "windows" || info.Mode()&0o111 != 0
}

// within reports whether p is dir or lies in it. Both are clean.
func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
