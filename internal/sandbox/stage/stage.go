// Package stage implements the first process of a sandbox and its protocol. The
// stage creates the view of the sandbox, gives up its rights, starts and reaps
// commands, watches memory, and sends files back.
//
// The stage is this executable, started again: in a program that links this
// package, init runs the stage if the process was started under [Name] with a
// socket as file descriptor 3. So the package uses only a small part of the
// standard library: the runtime initializes a package as soon as its imports
// are initialized, and the stage starts within a millisecond, before the rest
// of the program.
//
// The stage never starts anything by itself, and only trusts its socket.
package stage

// Name is the suffix of the process name (argv[0]) that makes an executable a
// stage.
const Name = "loadout-stage"

// ProbeName is the first argument that makes an executable run a probe in a
// sandbox.
const ProbeName = "loadout-stage-probe"

// Guard is the argument with which a stage is started under a guard: a process
// that kills all remaining processes after the stage ended. Back ends without a
// PID namespace need it.
const Guard = "guard"

// ControlFD is the descriptor of the socket to the starter of a stage.
const ControlFD = 3

// Kinds of messages to the stage.
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

// Kinds of messages from the stage.
const (
	KindReady     = 20 // Ready, with a listener if requested
	KindStarted   = 21 // Started
	KindExited    = 22 // Exited
	KindCollected = 23 // Collected
)

// MaxMessage limits the size of a message in bytes.
const MaxMessage = 8 << 20

// Setup describes the view of the sandbox. Without Root the stage keeps the
// view that it was started with.
type Setup struct {
	Root     bool    // create and enter a root directory
	UID      int     // user and group to switch to; 0 means none
	Tmpfs    []Tmpfs // parents first
	Binds    []Bind
	Dirs     []string // created after the mounts
	Links    []Link
	Files    []Text
	Proc     bool
	Hostname string
	Loopback bool   // enable the loopback interface
	Listen   uint16 // port on 127.0.0.1 to listen on for the starter; 0 means none
	Reap     bool   // adopt orphans, if not the first process of a PID namespace
}

// Tmpfs is an in-memory file system.
type Tmpfs struct {
	Path   string
	Size   int64
	Inodes int
	Mode   uint32
}

// Bind is a part of the host that is visible in the sandbox.
type Bind struct {
	Host     string
	Path     string
	Writable bool
	Optional bool // ignore it if it does not exist on the host
	NoExec   bool
	File     bool // it is not a directory
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// Text is a small file.
type Text struct {
	Path string
	Data string
	Mode uint32
}

// File announces a file, whose content follows in data messages.
type File struct {
	Path string // absolute
	Size int64
	Mode uint32
}

// Restrictions are applied before commands run.
type Restrictions struct {
	ReadOnly []string // mounts to make read-only
	Rlimits  []Rlimit
	Landlock *Landlock
	Seccomp  bool // install the filter sent before
	Caps     bool // drop all capabilities
	Memory   int64
	CPU      int64 // seconds; to explain why a command ended
	Inodes   int64 // limit of used inodes in each file system of Counted
	Counted  []string
	Work     string // directory to collect from
	Skip     string // subdirectory that is not collected
	Nice     int
	Threads  int // created in advance, so that a full process table does not end the stage
}

// Rlimit is a resource limit.
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// Landlock are access rules. A kernel with an ABI lower than Least is an error.
type Landlock struct {
	Least int
	Read  []string // readable and executable
	Write []string // writable
	Files []string // files that may be opened for writing
	TCP   bool     // refuse to bind and connect
}

// Exec starts a command, with three descriptors as its standard files.
type Exec struct {
	ID   int
	Path string // absolute, or looked up in the PATH of Env
	Args []string
	Env  []string
	Dir  string
}

// Kill ends a command.
type Kill struct{ ID int }

// Collect writes the files below the work directory to its descriptor.
type Collect struct{ ID int }

// Ready reports that the sandbox is prepared, or why it is not.
type Ready struct {
	Error    string
	Step     string // the failed step
	Errno    int
	Landlock int // active ABI
}

// Started answers Exec.
type Started struct {
	ID    int
	PID   int
	Error string
	Errno int
}

// Exited reports how a command ended.
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

// Collected answers Collect.
type Collected struct {
	ID    int
	Error string
}

// Entry is a line of JSON that precedes the content of a file in the output of
// Collect. The last one has End.
type Entry struct {
	Path []byte `json:"path,omitempty"` // bytes, because JSON strings must be UTF-8
	Size int64  `json:"size,omitempty"`
	Exec bool   `json:"exec,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// ProbeInput is the argument of a probe: what it tries to reach.
type ProbeInput struct {
	Canary  string `json:"canary"` // a host file
	PID     int    `json:"pid"`    // a host process and its start time
	Started string `json:"started"`
	Port    int    `json:"port"`   // on the host's 127.0.0.1
	Marker  string `json:"marker"` // argument of a process to leave behind
}

// Probed reports what a probe could do. In a sandbox all fields except Seccomp
// and LeftBehind are false.
type Probed struct {
	File       bool `json:"file"`
	Process    bool `json:"process"`
	Network    bool `json:"network"`
	Namespaces bool `json:"namespaces"`
	Mount      bool `json:"mount"`
	Privileges bool `json:"privileges"`
	Seccomp    bool `json:"seccomp"`     // a filter is active
	LeftBehind bool `json:"left_behind"` // a process was left behind
}
