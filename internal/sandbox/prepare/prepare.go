// Package prepare contains the steps that all backends perform before they
// start a sandbox: checking its description, filling in the default limits, and
// translating the paths of the layout. Start with [Check].
package prepare

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// IsWritable reports whether code in the sandbox may change a tree at a path of
// the layout. It may change trees at /work and below it.
func IsWritable(at string) bool {
	return at == mountpoint.Work || strings.HasPrefix(at, mountpoint.Work+"/")
}

// DefaultLimits returns the defaults documented in [sandbox.Limits].
func DefaultLimits() sandbox.Limits {
	return sandbox.Limits{
		Memory: 512 << 20, Processes: 64, CPU: 30 * time.Second, Cores: 1, Wall: time.Minute,
		FileSize: 50 << 20, OpenFiles: 256, Work: 64 << 20, Tmp: 32 << 20, Shm: 16 << 20, Inodes: 16 << 10, Output: 1 << 20,
	}
}

// Limits returns the limits of a spec with zero fields set to the values of
// [DefaultLimits].
func Limits(s *sandbox.Spec) sandbox.Limits {
	l, d := s.Limits, DefaultLimits()
	setDefault(&l.Memory, d.Memory)
	setDefault(&l.Processes, d.Processes)
	setDefault(&l.CPU, d.CPU)
	setDefault(&l.Cores, d.Cores)
	setDefault(&l.Wall, d.Wall)
	setDefault(&l.FileSize, d.FileSize)
	setDefault(&l.OpenFiles, d.OpenFiles)
	setDefault(&l.Work, d.Work)
	setDefault(&l.Tmp, d.Tmp)
	setDefault(&l.Shm, d.Shm)
	setDefault(&l.Inodes, d.Inodes)
	setDefault(&l.Output, d.Output)
	return l
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Check returns an error that lists all problems in the spec: invalid paths and
// names, contradictory network access, and files that are out of order or lack a
// required hash. It reads no files. Backends call it first.
func Check(s *sandbox.Spec) error {
	var faults []string
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	seen := map[string]bool{}
	for _, t := range s.Trees {
		if !isTreePath(t.Path) {
			bad("no tree can be at %q", t.Path)
		}
		if seen[t.Path] {
			bad("two trees for %s", t.Path)
		}
		seen[t.Path] = true
		for i, f := range t.Files {
			switch {
			case !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsRune(f.Path, 0):
				bad("%s: invalid path %q", t.Path, f.Path)
			case f.Size < 0:
				bad("%s: %s has a negative size", t.Path, f.Path)
			case !IsWritable(t.Path) && len(f.SHA256) != 64:
				bad("%s: %s has no SHA-256", t.Path, f.Path)
			case i > 0 && t.Files[i-1].Path >= f.Path:
				bad("%s: %s is out of order", t.Path, f.Path)
			}
		}
	}
	overlays := 0
	for _, m := range s.Mounts {
		if m.Overlay {
			if overlays++; overlays > 1 || m.Writable {
				bad("invalid overlay of %q at %q", m.Host, m.Path)
			}
		}
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/" || m.Host == "" {
			bad("invalid mount of %q at %q", m.Host, m.Path)
		}
	}
	for k, v := range s.Env {
		if err := checkVariable(k, v); err != nil {
			bad("%v", err)
		}
	}
	for _, sec := range s.Secrets {
		if !fs.ValidPath(sec.Name) || strings.ContainsAny(sec.Name, "/\x00") {
			bad("invalid secret name %q", sec.Name)
		}
	}
	if s.Network.Host && len(s.Network.Allow) > 0 {
		bad("network: both the host's network and allowed hosts (%d)", len(s.Network.Allow))
	}
	if len(faults) > 0 {
		return fmt.Errorf("sandbox: %s", strings.Join(faults, "; "))
	}
	return nil
}

func isTreePath(p string) bool {
	if path.Clean(p) != p {
		return false
	}
	switch {
	case p == mountpoint.Skill, p == mountpoint.Build, p == mountpoint.Work, strings.HasPrefix(p, mountpoint.Work+"/"):
		return true
	case strings.HasPrefix(p, mountpoint.Needs+"/"):
		return path.Dir(p) == mountpoint.Needs
	}
	return false
}

// checkVariable returns an error if the name or value of an environment
// variable is invalid.
func checkVariable(name, value string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
		return fmt.Errorf("invalid environment variable %q", name)
	}
	return nil
}

// Environment returns the environment of a command as "name=value" strings, in
// no particular order: the variables of the layout, the spec and the command.
// Later ones replace earlier ones of the same name. translate maps a path of the
// layout to the path in the sandbox. If translate is nil, paths are unchanged.
// Backends call it.
func Environment(s *sandbox.Spec, cmd *sandbox.Cmd, translate func(string) string) []string {
	if translate == nil {
		translate = func(p string) string { return p }
	}
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": translate(mountpoint.Work), "TMPDIR": translate(mountpoint.Tmp), "LANG": "C.UTF-8", "USER": "loadout", "LOGNAME": "loadout",
		"LOADOUT_WORK": translate(mountpoint.Work), "LOADOUT_OUT": translate(mountpoint.Out), "LOADOUT_IN": translate(mountpoint.In),
	}
	for _, t := range s.Trees {
		if t.Path == mountpoint.Skill {
			env["LOADOUT_SKILL"] = translate(mountpoint.Skill)
		}
		if name, ok := strings.CutPrefix(t.Path, mountpoint.Needs+"/"); ok && !strings.HasPrefix(name, ".") { // others are not skills
			variable := needVariable(name)
			for n := 2; env[variable] != ""; n++ { // different names may map to the same variable
				variable = needVariable(name) + "_" + strconv.Itoa(n)
			}
			env[variable] = translate(t.Path)
		}
	}
	for _, m := range s.Mounts {
		if m.Path == mountpoint.Workspace {
			env["LOADOUT_WORKSPACE"] = translate(mountpoint.Workspace)
		}
	}
	if len(s.Secrets) > 0 {
		env["LOADOUT_SECRETS"] = translate(mountpoint.Secrets)
	}
	for _, vars := range []map[string]string{s.Env, cmd.Env} {
		for k, v := range vars {
			env[k] = translatePath(v, translate)
		}
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// needVariable returns the name of the variable for a dependency's path. If
// several dependencies map to the same variable, later ones get the suffix _2,
// _3 and so on.
func needVariable(name string) string {
	return "LOADOUT_SKILL_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// Arguments returns a copy of the command's arguments. translate maps a path of the
// layout to the path in the sandbox. If translate is nil, paths are unchanged.
// Backends call it.
func Arguments(c *sandbox.Cmd, translate func(string) string) []string {
	if translate == nil {
		return slices.Clone(c.Args)
	}
	out := make([]string, len(c.Args))
	for i, a := range c.Args {
		out[i] = translatePath(a, translate)
	}
	return out
}

// translatePath translates the path of the layout at the start of an argument,
// or after the first = in it. A colon ends the path. It returns other arguments
// unchanged.
func translatePath(word string, translate func(string) string) string {
	before, p, ok := strings.Cut(word, "=")
	if !ok {
		before, p = "", word
	} else {
		before += "="
	}
	for _, dir := range []string{mountpoint.Skill, mountpoint.Work, mountpoint.Workspace, mountpoint.Secrets, mountpoint.Needs, mountpoint.Build} {
		if rest, ok := strings.CutPrefix(p, dir); ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return before + translate(dir) + rest
		}
	}
	return word
}
