package sandbox

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"time"
)

// Spec describes a sandbox. It is plain data, except for the file systems in
// Trees, and the logger and Answer of Network. The zero value describes a sandbox without input files,
// mounts, network access or secrets, and with the default limits.
type Spec struct {
	// Trees are copied into the sandbox. The files of read-only trees are
	// verified. If one differs, [Backend.Start] returns a [*ChangedError].
	Trees []Tree
	// Mounts are host files and directories to mount.
	Mounts []Mount
	// Env is added to the variables of the layout. Nothing is inherited from
	// the host environment.
	Env     map[string]string
	Limits  Limits
	Network Network
	// Secrets are written to files in /run/secrets. Names must not contain
	// slashes.
	Secrets []Secret
	// Digest identifies the code, for backends that require an opt-in for each
	// digest. Other backends ignore it.
	Digest string
}

// Tree is a file tree to copy to a path in the sandbox.
type Tree struct {
	// Path is /skill, /needs/NAME, /deps, /work or a path below /work.
	Path string
	// FS holds the files. It is read while the sandbox starts.
	FS fs.FS
	// Files are the files to copy, sorted by path without duplicates. A file
	// with a SHA256 is copied only if its content matches. In a read-only tree,
	// each file must have a SHA256.
	Files []File
}

// File is a file in a tree, or one found by [Sandbox.Collect].
type File struct {
	Path   string `json:"path"`   // relative, with slashes
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // hex; "" if not verified
	Exec   bool   `json:"-"`      // whether the file is executable
}

// Mount is a host directory or file to mount in the sandbox.
type Mount struct {
	Host string // absolute path on the host
	// Path is the path in the sandbox. It is equal to Host for interpreters,
	// and /workspace for the user's directory.
	Path     string
	Writable bool // whether code in the sandbox may write to Host
	// Overlay lets code in the sandbox change its view of the directory without
	// changing Host. A backend without overlays makes the mount read-only. At
	// most one mount may set Overlay, and that mount must not be Writable.
	Overlay bool
}

// Cmd describes a command to run in a sandbox.
type Cmd struct {
	// Args holds the program and its arguments. It must not be empty, and is
	// not interpreted by a shell. The program is a path, or a name that is
	// looked up in the sandbox's PATH. An argument that is a path of the layout
	// or ends in =PATH is translated to the actual path.
	Args []string
	Env  map[string]string // added to the sandbox's environment; paths are translated too
	Dir  string            // path of the layout; default /work
	// Timeout is the time after which the command is killed. Zero means the
	// sandbox's Limits.Wall. A negative value means no timeout, for servers.
	Timeout time.Duration
}

// Network configures the network access of a sandbox. The zero value permits
// none, not even to loopback addresses inside the sandbox. The fields below Allow
// apply only if it is set.
type Network struct {
	// Host permits unrestricted access to the host's network. It must not be
	// combined with Allow.
	Host bool
	// Allow lists the hosts that code can reach through an HTTP proxy: host,
	// host:port, *.domain, *.domain:port, * for all public hosts, and *:port.
	// Without a port, ports 80 and 443 are allowed. A host may be an IP address,
	// IPv6 in brackets.
	Allow []string
	// Private lists the non-public address ranges that the operator allows.
	// Hosts in them must be in Allow, too.
	Private []netip.Prefix
	// Inject lists headers with secrets that the proxy adds to requests, so
	// that code never sees the secrets.
	Inject []Injection
	// Answer, if set, receives all requests, even to hosts that Allow does not
	// list, and returns the content of the response. The proxy then connects to
	// nothing, and decrypts TLS if the code trusts the system's root
	// certificates. Answer may be called concurrently.
	Answer func(Request) []byte
	// Log receives each decision at level info, with secrets redacted. Nil
	// discards the decisions.
	Log *slog.Logger
}

// Request is a request of code in a sandbox; see [Network.Answer]. All fields
// come from untrusted code.
type Request struct {
	Host   string // normalized, unless the request is invalid
	Port   uint16 // 0 if the request is invalid
	Method string // CONNECT for a tunnel, such as a connection with TLS
	URL    string // as in the request line; "" for a tunnel
	// Data is the request line, the header and the body. For a tunnel, it is
	// the data sent if the proxy cannot parse it. It is truncated to 256 KiB.
	Data []byte
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

// Limits holds the resource limits of a sandbox. Sizes are in bytes. Zero
// fields have the defaults for a script: 512 MiB of memory, 64 processes, 30 s
// of CPU time, one core, and one minute for each command; 50 MiB for each file
// and 256 open files for each process; 64 MiB for /work, 32 MiB for /tmp, 16
// MiB for /dev/shm, and 16384 inodes for each of /work and /tmp; and 1 MiB of
// output. [Sandbox.State] reports which limits are enforced.
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
