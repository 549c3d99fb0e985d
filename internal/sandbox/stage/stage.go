// Package stage implements the first process of a sandbox and the protocol to
// control it. The stage creates the view of the sandbox, drops its privileges,
// starts and reaps commands, watches memory, and sends files back.
//
// The stage is the current executable, started again. In a program that links
// this package, init runs the stage if the process was started under [Name]
// with a socket as file descriptor 3. The package uses only a small part of the
// standard library: the runtime initializes a package as soon as its imports
// are initialized, so the stage starts within a millisecond, before the rest of
// the program.
//
// The stage never acts on its own, and trusts only its socket.
package stage

// Name is the suffix of the process name (argv[0]) that makes an executable run
// as a stage.
const Name = "loadout-stage"

// ProbeName is the first argument that makes an executable run a probe inside a
// sandbox.
const ProbeName = "loadout-stage-probe"

// Guard is the argument that starts a stage under a guard, which kills all
// remaining processes when the stage exits. Backends without a PID namespace
// need it.
const Guard = "guard"

// ControlFD is the file descriptor of a stage's control socket.
const ControlFD = 3

// Kinds of messages sent to a stage.
const (
	KindSetup    = 1 // Setup
	KindFile     = 2 // File; its content follows
	KindData     = 3 // content of a file
	KindFilter   = 4 // a seccomp program in the kernel's format
	KindRestrict = 5 // Restrictions
	KindExec     = 6 // Exec, with three descriptors
	KindKill     = 7 // Kill
	KindCollect  = 8 // Collect, with one descriptor
)

// Kinds of messages sent by a stage.
const (
	KindReady     = 20 // Ready, with a listener if requested
	KindStarted   = 21 // Started
	KindExited    = 22 // Exited
	KindCollected = 23 // Collected
)

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = 8 << 20

// Setup describes the file system view of the sandbox. If Root is false, the
// stage keeps the view it was started with.
type Setup struct {
	Root     bool    // create a root directory and enter it
	UID      int     // user and group to switch to; 0 means none
	Tmpfs    []Tmpfs // parents come first
	Binds    []Bind
	Overlay  *Overlay
	Dirs     []string // directories to create after mounting
	Links    []Link
	Files    []Text
	Proc     bool
	Hostname string
	Loopback bool   // enable the loopback interface
	Listen   uint16 // port on 127.0.0.1 on which to open the listener that is passed out; 0 means none
	Reap     bool   // adopt orphaned processes; only needed without a PID namespace
}

// Tmpfs is an in-memory file system to mount.
type Tmpfs struct {
	Path   string
	Size   int64
	Inodes int
	Mode   uint32
}

// Bind is a host file or directory to make visible in the sandbox.
type Bind struct {
	Host     string
	Path     string
	Writable bool
	Optional bool // ignored if it does not exist on the host
	NoExec   bool
	File     bool // a file, not a directory
}

// Overlay is a host directory to make visible at Path, with changes stored in
// another directory. If the kernel cannot mount it, the directory is read-only
// and [Ready] contains the reason.
type Overlay struct {
	Host string
	Path string
	Data string // host directory with the directories upper and work
}

// Link is a symbolic link to create.
type Link struct{ Path, Target string }

// Text is a small file to create.
type Text struct {
	Path string
	Data string
	Mode uint32
}

// File announces a file whose content follows in data messages.
type File struct {
	Path string // absolute
	Size int64
	Mode uint32
}

// Restrictions are the restrictions to apply before any command runs.
type Restrictions struct {
	ReadOnly []string // mounts to make read-only
	Rlimits  []Rlimit
	Landlock *Landlock
	Seccomp  bool // install the filter sent before
	Caps     bool // drop all capabilities
	Memory   int64
	Socket   int64 // maximum number of bytes that a socket can hold
	// GrowingTCP means that buffers of TCP connections can grow beyond Socket.
	// In that case, the memory that all TCP connections of the machine have
	// taken since the start counts towards the memory limit.
	GrowingTCP bool
	NetShared  bool  // the network namespace has sockets of other programs
	CPU        int64 // limit in seconds, to explain why a command was killed
	Inodes     int64 // limit of used inodes in each file system in Counted
	Counted    []string
	Work       string // directory whose files are collected
	Skip       string // subdirectory whose files are not collected
	Nice       int
	Threads    int // number of threads to create in advance, because a full process table would crash the stage
}

// Rlimit is a resource limit to set.
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// Landlock describes access rules. The stage fails if the kernel's ABI version
// is lower than Least.
type Landlock struct {
	Least int
	Read  []string // paths that are readable and executable
	Write []string // paths that are writable
	Files []string // files that may be opened for writing
	TCP   bool     // deny bind and connect
}

// Exec starts a command. It is sent with three descriptors for the command's
// standard input, output and error.
type Exec struct {
	ID   int
	Path string // absolute, or looked up in the PATH of Env
	Args []string
	Env  []string
	Dir  string
}

// Kill requests that a command be killed.
type Kill struct{ ID int }

// Collect requests the files below the work directory. It is sent with the
// descriptor to write them to.
type Collect struct{ ID int }

// Ready reports that the sandbox is prepared, or which step failed.
type Ready struct {
	Error    string
	Step     string // step that failed
	Errno    int
	Landlock int    // ABI version in use
	Overlay  string // why there is no overlay; "" if there is one or none was requested
}

// Started is the response to Exec. It reports whether the command was started.
type Started struct {
	ID    int
	PID   int
	Error string
	Errno int
}

// Exited reports the exit status of a command.
type Exited struct {
	ID     int
	Code   int
	Signal int
	CPU    int64 // nanoseconds
	MaxRSS int64 // bytes
	OOM    bool  // killed by the memory watch
	Full   bool  // killed by the inode watch
	Spent  bool  // exceeded the CPU time limit
}

// Collected is the response to Collect. It follows the last file.
type Collected struct {
	ID    int
	Error string
}

// Entry is the JSON line before each file's content in the output of Collect.
// The last line has End set.
type Entry struct {
	Path []byte `json:"path,omitempty"` // base64 in JSON, because a path need not be UTF-8
	Size int64  `json:"size,omitempty"`
	Exec bool   `json:"exec,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// ProbeInput is the argument of a probe, which describes what to try to access.
type ProbeInput struct {
	Canary  string `json:"canary"` // a file of the host
	PID     int    `json:"pid"`    // a process of the host, which the start time identifies
	Started string `json:"started"`
	Port    int    `json:"port"`   // a port on 127.0.0.1 of the host
	Marker  string `json:"marker"` // argument of a process to leave behind
}

// ProbeResult reports what a probe was able to do. In an isolated sandbox, only
// Seccomp and LeftBehind are true.
type ProbeResult struct {
	File       bool `json:"file"`
	Process    bool `json:"process"`
	Network    bool `json:"network"`
	Namespaces bool `json:"namespaces"`
	Mount      bool `json:"mount"`
	Privileges bool `json:"privileges"`
	Seccomp    bool `json:"seccomp"`     // a seccomp filter is active
	LeftBehind bool `json:"left_behind"` // a process was left behind
}
