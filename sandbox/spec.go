package sandbox

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
)

// Spec describes a sandbox. It is plain data, except for the file systems in
// Trees and the logger. The zero value describes a sandbox without input files,
// mounts, network access and secrets, with [DefaultLimits].
type Spec struct {
	// Trees are copied into the sandbox. The files of read-only trees are
	// verified. If one differs, [Backend.Start] returns a [*ChangedError].
	Trees []Tree
	// Mounts are host files and directories to mount.
	Mounts []Mount
	// Env is added to the variables of the layout. Nothing is inherited from
	// the host environment.
	Env     map[string]string
	Limits  Limits // zero fields mean [DefaultLimits]
	Network Network
	// Secrets are written to files in /run/secrets. Names must not contain
	// slashes.
	Secrets []Secret
	// Digest identifies the code, for backends that require an opt-in for each
	// digest. Other backends ignore it.
	Digest string
}

// Tree is a file tree to copy to a path of the layout.
type Tree struct {
	// Path is /skill, /needs/NAME, /deps, /work or a path below /work.
	Path string
	// FS holds the files. It is read while the sandbox starts.
	FS fs.FS
	// Files are the files to copy, sorted by path without duplicates. A file
	// with a SHA256 is copied only if its content matches. In a read-only tree,
	// each file must have one.
	Files []File
}

// Writable reports whether code in the sandbox may change the tree: its path is
// /work or below it.
func (t *Tree) Writable() bool {
	return t.Path == mountpoint.Work || strings.HasPrefix(t.Path, mountpoint.Work+"/")
}

// File is a file in a tree, or one found by [Sandbox.Collect].
type File struct {
	Path   string `json:"path"`   // relative, with slashes
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // hex; "" if not verified
	Exec   bool   `json:"-"`      // executable
}

// Mount is a host directory or file to mount in the sandbox.
type Mount struct {
	Host string // absolute path on the host
	// Path is the path in the sandbox. It is equal to Host for interpreters,
	// and /workspace for the user's directory.
	Path     string
	Writable bool // whether code in the sandbox may write to Host
	// Overlay lets code change the directory as it sees it, while Host stays
	// as it is; see [Overlayer]. A backend without overlays makes the mount
	// read-only. At most one mount has it, and it is not Writable.
	Overlay bool
}

// Cmd describes a command to run in a sandbox.
type Cmd struct {
	// Args are the program and its arguments. It must not be empty, and is not
	// interpreted by a shell. The program is a path, or a name that is looked
	// up in the sandbox's PATH. An argument that is a path of the layout or
	// ends in =PATH is translated to the actual path.
	Args []string
	Env  map[string]string // added to the sandbox's environment; paths are translated too
	Dir  string            // path of the layout; default /work
	// Timeout is the time after which [Run] kills the command. Zero means the
	// sandbox's Limits.Wall. A negative value means no timeout, for servers.
	Timeout time.Duration
}

// NetworkMode selects the network access of a sandbox.
type NetworkMode string

// Network modes.
const (
	NoNetwork    NetworkMode = ""      // not even loopback
	ProxyNetwork NetworkMode = "proxy" // allowed hosts only, through an HTTP proxy
	HostNetwork  NetworkMode = "host"  // unrestricted access to the host's network
)

// Network configures the network access of a sandbox. The zero value permits
// none. All fields but Mode apply only to [ProxyNetwork].
type Network struct {
	Mode NetworkMode
	// Allow lists the allowed hosts: host, host:port, *.domain, *.domain:port,
	// * for all public hosts, and *:port. Without a port, ports 80 and 443 are
	// allowed. A host may be an IP address, IPv6 in brackets.
	Allow []string
	// Private are the non-public address ranges that the operator allows. Hosts
	// in them must be in Allow, too.
	Private []netip.Prefix
	// Inject lists headers with secrets that the proxy adds to requests, so
	// that code never sees the secrets.
	Inject []Injection
	// Log logs each decision at level info, with secrets redacted. Nil
	// discards them.
	Log *slog.Logger
}

// Injection is a header that the proxy adds to HTTPS requests to a host, which
// must be in Network.Allow, too. It replaces a header of the same name.
type Injection struct {
	Host   string // host or host:port, as in Network.Allow
	Header string // such as Authorization
	Prefix string // prepended to the secret, such as "Bearer "
	Secret Secret
}

// Secret is a named value. Formatting or encoding it yields only the name; see
// [Secret.Reveal]. The zero value has an empty value.
type Secret struct {
	Name  string
	value string
}

// NewSecret returns a secret. Its value is redacted from output if it has at
// least six bytes.
func NewSecret(name, value string) Secret { return Secret{name, value} }

// Reveal returns the secret value.
func (s Secret) Reveal() string { return s.value }

// String returns "secret " and the name.
func (s Secret) String() string { return "secret " + s.Name }

// Format implements [fmt.Formatter]. It writes the name for every verb, so that
// %#v does not print the value.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText implements [encoding.TextMarshaler]. It returns the name without
// the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Limits holds the resource limits of a sandbox. Sizes are in bytes. In a
// [Spec], zero fields mean those of [DefaultLimits]. [Sandbox.State] reports
// which limits are enforced.
type Limits struct {
	Memory    int64         // for all processes together
	Processes int           // including threads
	CPU       time.Duration // for one process, in whole seconds
	Cores     float64       // number of CPU cores, if the backend can limit it
	Wall      time.Duration // for one command
	FileSize  int64         // size of one file
	OpenFiles int           // for one process
	Work      int64         // size of /work
	Tmp       int64         // size of /tmp
	Shm       int64         // size of /dev/shm
	Inodes    int           // in /work and in /tmp
	Output    int64         // stored for each of stdout and stderr; a command with four times as much is killed
}

// DefaultLimits returns the default limits for a script: 512 MiB of memory, 64
// processes, 30 s of CPU time, one core, and one minute for each command. A
// file may have 50 MiB, and a process 256 open files. /work has 64 MiB, /tmp 32
// MiB, /dev/shm 16 MiB, and /work and /tmp have 16384 inodes. Output has 1 MiB.
func DefaultLimits() Limits {
	return Limits{
		Memory: 512 << 20, Processes: 64, CPU: 30 * time.Second, Cores: 1, Wall: time.Minute,
		FileSize: 50 << 20, OpenFiles: 256, Work: 64 << 20, Tmp: 32 << 20, Shm: 16 << 20, Inodes: 16 << 10, Output: 1 << 20,
	}
}

// WithDefaults returns l with zero fields set to the values of [DefaultLimits].
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
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

// Check returns an error that lists all faults in the spec. Faults are invalid
// paths and names, an unknown network mode, and files that are out of order or
// lack a required hash. It reads no files. Backends call it first.
func (s *Spec) Check() error {
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
			case !t.Writable() && len(f.SHA256) != 64:
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
	switch s.Network.Mode {
	case NoNetwork, ProxyNetwork, HostNetwork:
	default:
		bad("unknown network mode %q", s.Network.Mode)
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
// Later ones replace earlier ones of the same name. at maps a path of the
// layout to the path in the sandbox. If at is nil, paths are unchanged.
// Backends call it.
func (s *Spec) Environment(cmd *Cmd, at func(string) string) []string {
	if at == nil {
		at = func(p string) string { return p }
	}
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": at(mountpoint.Work), "TMPDIR": at(mountpoint.Tmp), "LANG": "C.UTF-8", "USER": "loadout", "LOGNAME": "loadout",
		"LOADOUT_WORK": at(mountpoint.Work), "LOADOUT_OUT": at(mountpoint.Out), "LOADOUT_IN": at(mountpoint.In),
	}
	for _, t := range s.Trees {
		if t.Path == mountpoint.Skill {
			env["LOADOUT_SKILL"] = at(mountpoint.Skill)
		}
		if name, ok := strings.CutPrefix(t.Path, mountpoint.Needs+"/"); ok {
			variable := needVariable(name)
			for n := 2; env[variable] != ""; n++ { // different names may map to the same variable
				variable = needVariable(name) + "_" + strconv.Itoa(n)
			}
			env[variable] = at(t.Path)
		}
	}
	for _, m := range s.Mounts {
		if m.Path == mountpoint.Workspace {
			env["LOADOUT_WORKSPACE"] = at(mountpoint.Workspace)
		}
	}
	if len(s.Secrets) > 0 {
		env["LOADOUT_SECRETS"] = at(mountpoint.Secrets)
	}
	for _, vars := range []map[string]string{s.Env, cmd.Env} {
		for k, v := range vars {
			env[k] = translatePath(v, at)
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

// Arguments returns a copy of the command's arguments. at maps a path of the
// layout to the path in the sandbox. If at is nil, paths are unchanged.
// Backends call it.
func (c *Cmd) Arguments(at func(string) string) []string {
	if at == nil {
		return slices.Clone(c.Args)
	}
	out := make([]string, len(c.Args))
	for i, a := range c.Args {
		out[i] = translatePath(a, at)
	}
	return out
}

// translatePath translates an argument that is a path of the layout or ends in
// =PATH. A colon ends a path.
func translatePath(word string, at func(string) string) string {
	before, p, ok := strings.Cut(word, "=")
	if !ok {
		before, p = "", word
	} else {
		before += "="
	}
	for _, dir := range []string{mountpoint.Skill, mountpoint.Work, mountpoint.Workspace, mountpoint.Secrets, mountpoint.Needs, mountpoint.Build} {
		if rest, ok := strings.CutPrefix(p, dir); ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return before + at(dir) + rest
		}
	}
	return word
}
