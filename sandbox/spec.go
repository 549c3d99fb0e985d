package sandbox

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"
)

// Spec is what a sandbox is to have: data, in which only the trees of files
// hold something open.
type Spec struct {
	// Trees are files that are copied into the sandbox, read-only ones verified.
	Trees []Tree
	// Mounts are directories of the host.
	Mounts []Mount
	// Env is all of the environment besides what the layout sets. Nothing is
	// inherited.
	Env     map[string]string
	Limits  Limits // zero fields mean [DefaultLimits]
	Network Network
	// Secrets are put into /run/secrets, one file each.
	Secrets []Secret
	// Digest names the code, for back ends that demand an opt-in by digest.
	Digest string
}

// Tree is a tree of files for one place of the layout.
type Tree struct {
	// Path is the place: /skill, /needs/NAME, /deps, or /work and below.
	Path string
	// FS holds the files. It is read while the sandbox starts.
	FS fs.FS
	// Files are the files to copy, sorted. Those with a SHA256 are copied only
	// if their bytes have it.
	Files []File
}

// Writable reports whether the tree is for the sandbox to change.
func (t *Tree) Writable() bool { return t.Path == WorkDir || strings.HasPrefix(t.Path, WorkDir+"/") }

// File is one file of a tree, or one that a sandbox left.
type File struct {
	Path   string `json:"path"` // relative, slashed
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex; "" in a tree that is not verified
	Exec   bool   `json:"-"`      // may be executed
}

// Mount is a directory or file of the host.
type Mount struct {
	Host string // absolute path on the host
	// Path is where it is in the sandbox: the same as Host for runtimes,
	// /workspace for the person's own directory.
	Path     string
	Writable bool
}

// Cmd is a command to run.
type Cmd struct {
	// Args are the program and its arguments. The program is an absolute path
	// or found in the PATH of the sandbox. A word that is a path of the layout,
	// or ends in =PATH, is given as the place that it has in this sandbox.
	Args []string
	Env  map[string]string // besides the sandbox's
	Dir  string            // of the layout; default /work
	// Timeout ends the command; 0 means the sandbox's Limits.Wall, less than
	// zero means none, for servers.
	Timeout time.Duration
}

// NetworkMode says what of a network there is.
type NetworkMode string

// The network modes.
const (
	NoNetwork    NetworkMode = ""      // not even the host's loopback
	ProxyNetwork NetworkMode = "proxy" // what the allow-list has, by HTTP proxy
	HostNetwork  NetworkMode = "host"  // all of the host's
)

// Network says what a sandbox may reach.
type Network struct {
	Mode  NetworkMode
	Allow []string // host, host:port, *.domain, *.domain:port
	// Private are addresses that the operator lists though they are private.
	Private []netip.Prefix
	// Inject are secrets that the proxy adds to requests, so that code never
	// holds them.
	Inject []Injection
	// Log receives each decision; nil discards them.
	Log *slog.Logger
}

// Injection is a header that is added to requests to one host.
type Injection struct {
	Host   string // as in Allow
	Header string // as Authorization
	Prefix string // before the secret, as "Bearer "
	Secret Secret
}

// Secret is a value that is never shown: it prints as its name.
type Secret struct {
	Name  string
	value string
}

// NewSecret returns a secret.
func NewSecret(name, value string) Secret { return Secret{name, value} }

// Reveal returns the value, for the place where it is needed.
func (s Secret) Reveal() string { return s.value }

func (s Secret) String() string               { return "secret " + s.Name }
func (s Secret) GoString() string             { return s.String() }
func (s Secret) Format(f fmt.State, _ rune)   { fmt.Fprint(f, s.String()) }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(s.String()) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Limits bound what a sandbox uses. Sizes are bytes.
type Limits struct {
	Memory    int64         // of all processes together
	Processes int           // and threads
	CPU       time.Duration // of one process
	Cores     float64       // share of processors, where it can be enforced
	Wall      time.Duration // of one command
	FileSize  int64
	OpenFiles int
	Work      int64 // size of /work
	Tmp       int64 // size of /tmp
	Shm       int64 // size of /dev/shm
	Inodes    int   // of /work and /tmp each
	Output    int64 // kept of stdout and stderr each; at four times that the command ends
}

// DefaultLimits are the limits of a script.
func DefaultLimits() Limits {
	return Limits{
		Memory: 512 << 20, Processes: 64, CPU: 30 * time.Second, Cores: 1, Wall: time.Minute,
		FileSize: 50 << 20, OpenFiles: 256, Work: 64 << 20, Tmp: 32 << 20, Shm: 16 << 20, Inodes: 16 << 10, Output: 1 << 20,
	}
}

// WithDefaults fills in the fields that are zero.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	fill(&l.Memory, d.Memory)
	fill(&l.Processes, d.Processes)
	fill(&l.CPU, d.CPU)
	fill(&l.Cores, d.Cores)
	fill(&l.Wall, d.Wall)
	fill(&l.FileSize, d.FileSize)
	fill(&l.OpenFiles, d.OpenFiles)
	fill(&l.Work, d.Work)
	fill(&l.Tmp, d.Tmp)
	fill(&l.Shm, d.Shm)
	fill(&l.Inodes, d.Inodes)
	fill(&l.Output, d.Output)
	return l
}

func fill[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Check reports everything that is wrong with the spec. Back ends call it
// first.
func (s *Spec) Check() error {
	var faults []string
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	seen := map[string]bool{}
	for _, t := range s.Trees {
		if !placeable(t.Path) {
			bad("no tree can be put at %q", t.Path)
		}
		if seen[t.Path] {
			bad("two trees for %s", t.Path)
		}
		seen[t.Path] = true
		for i, f := range t.Files {
			switch {
			case !fs.ValidPath(f.Path) || f.Path == "." || strings.ContainsRune(f.Path, 0):
				bad("%s: %q is not a path inside it", t.Path, f.Path)
			case f.Size < 0:
				bad("%s: %s has no size", t.Path, f.Path)
			case !t.Writable() && len(f.SHA256) != 64:
				bad("%s: %s has no SHA-256", t.Path, f.Path)
			case i > 0 && t.Files[i-1].Path >= f.Path:
				bad("%s: %s is out of order", t.Path, f.Path)
			}
		}
	}
	for _, m := range s.Mounts {
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/" || m.Host == "" {
			bad("mount of %q at %q", m.Host, m.Path)
		}
	}
	for k, v := range s.Env {
		if err := checkVariable(k, v); err != nil {
			bad("%v", err)
		}
	}
	for _, sec := range s.Secrets {
		if !fs.ValidPath(sec.Name) || strings.ContainsAny(sec.Name, "/\x00") {
			bad("%q cannot be the name of a secret", sec.Name)
		}
	}
	switch s.Network.Mode {
	case NoNetwork, ProxyNetwork, HostNetwork:
	default:
		bad("no network mode is called %q", s.Network.Mode)
	}
	if len(faults) > 0 {
		return fmt.Errorf("sandbox: %s", strings.Join(faults, "; "))
	}
	return nil
}

func placeable(p string) bool {
	if path.Clean(p) != p {
		return false
	}
	switch {
	case p == SkillDir, p == BuildDir, p == WorkDir, strings.HasPrefix(p, WorkDir+"/"):
		return true
	case strings.HasPrefix(p, NeedsDir+"/"):
		return path.Dir(p) == NeedsDir
	}
	return false
}

// checkVariable refuses what cannot be a variable.
func checkVariable(name, value string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
		return fmt.Errorf("%q cannot be a variable", name)
	}
	return nil
}

// Environment is the environment of commands in a sandbox in which the layout
// is at the given places: what the layout sets, the spec's and the command's
// variables, as "name=value".
func (s *Spec) Environment(cmd *Cmd, at func(string) string) []string {
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": at(WorkDir), "TMPDIR": at(TmpDir), "LANG": "C.UTF-8", "USER": "loadout", "LOGNAME": "loadout",
		"LOADOUT_WORK": at(WorkDir), "LOADOUT_OUT": at(OutDir), "LOADOUT_IN": at(InDir),
	}
	for _, t := range s.Trees {
		if t.Path == SkillDir {
			env["LOADOUT_SKILL"] = at(SkillDir)
		}
		if name, ok := strings.CutPrefix(t.Path, NeedsDir+"/"); ok {
			variable := NeedVariable(name)
			for n := 2; env[variable] != ""; n++ { // other names may give the same
				variable = NeedVariable(name) + "_" + strconv.Itoa(n)
			}
			env[variable] = at(t.Path)
		}
	}
	for _, m := range s.Mounts {
		if m.Path == WorkspaceDir {
			env["LOADOUT_WORKSPACE"] = at(WorkspaceDir)
		}
	}
	if len(s.Secrets) > 0 {
		env["LOADOUT_SECRETS"] = at(SecretsDir)
	}
	for _, vars := range []map[string]string{s.Env, cmd.Env} {
		for k, v := range vars {
			env[k] = place(v, at)
		}
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// NeedVariable is the variable that names the place of a dependency; of several
// that would have the same, the later ones have _2, _3 and so on behind it.
func NeedVariable(name string) string {
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

// Arguments are the arguments of cmd in a sandbox in which the layout is at the
// given places.
func (c *Cmd) Arguments(at func(string) string) []string {
	out := make([]string, len(c.Args))
	for i, a := range c.Args {
		out[i] = place(a, at)
	}
	return out
}

// place translates a word that is a path of the layout, or ends in =PATH; a
// colon ends a path.
func place(word string, at func(string) string) string {
	before, p, ok := strings.Cut(word, "=")
	if !ok {
		before, p = "", word
	} else {
		before += "="
	}
	for _, dir := range []string{SkillDir, WorkDir, WorkspaceDir, SecretsDir, NeedsDir, BuildDir} {
		if rest, ok := strings.CutPrefix(p, dir); ok && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return before + at(dir) + rest
		}
	}
	return word
}

// InPlace is the translation of back ends that have the layout where it says.
func InPlace(p string) string { return p }
