// Package stage is the first process of a sandbox, and what is said between it
// and us: it builds the view of the sandbox, gives up every right it does not
// need, starts commands, reaps, watches memory, and hands over files.
//
// It is our own executable, started again: a program that links this package
// becomes a stage in the package's init when it is started under the name of
// [Name] with a socket as file descriptor 3. That is why it uses the standard
// library alone, little of it: the runtime initialises packages as soon as what
// they import is, so a stage is at work after one millisecond, before the rest
// of the program has been initialised.
//
// It never runs anything on its own account, and trusts nothing but its socket.
package stage

// Name is the end of the name (argv[0]) under which an executable becomes a
// stage.
const Name = "loadout-stage"

// ProbeName is the first argument by which an executable that links this
// package tries, in a sandbox, what must not work there.
const ProbeName = "loadout-stage-probe"

// Guard is the argument with which a stage is started by a guard, a process that
// ends all that is left when the stage has ended, however that came: for back
// ends without a namespace of processes.
const Guard = "guard"

// ControlFD is the file descriptor of the socket to whoever started a stage.
const ControlFD = 3

// Message kinds. To the stage:
const (
	KindSetup   = 1 // Setup
	KindFile    = 2 // File, and its bytes in the messages that follow
	KindData    = 3 // bytes of a file
	KindFilter  = 4 // a seccomp program as the kernel takes it
	KindSeal    = 5 // Seal
	KindExec    = 6 // Exec, with three descriptors
	KindKill    = 7 // Kill
	KindCollect = 8 // Collect, with one descriptor
)

// From the stage:
const (
	KindReady     = 20 // Ready, with a listener where one was asked for
	KindStarted   = 21 // Started
	KindExited    = 22 // Exited
	KindCollected = 23 // Collected
)

// MaxMessage bounds one message.
const MaxMessage = 8 << 20

// Setup is the view of the sandbox. Without Root the stage stays in the view
// that it was started in.
type Setup struct {
	Root     bool    // build a root directory and enter it
	UID      int     // become this user and group; 0 stays
	Tmpfs    []Tmpfs // in order, parents first
	Binds    []Bind
	Dirs     []string // to make, after what is mounted
	Links    []Link
	Files    []Text
	Proc     bool
	Hostname string
	Loopback bool   // bring up the loopback interface
	Listen   uint16 // a port on 127.0.0.1 to listen at for whoever started it; 0 is none
	Reap     bool   // adopt orphans, where it is not the first process of a namespace
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Path   string
	Size   int64
	Inodes int
	Mode   uint32
}

// Bind is a part of the host in the sandbox.
type Bind struct {
	Host     string
	Path     string
	Writable bool
	Optional bool // leave it out where the host has none
	NoExec   bool
	File     bool // it is a file
}

// Link is a symbolic link.
type Link struct{ Path, Target string }

// Text is a small file.
type Text struct {
	Path string
	Data string
	Mode uint32
}

// File is a file that follows, with its bytes in data messages.
type File struct {
	Path string // absolute
	Size int64
	Mode uint32
}

// Seal is what is given up before commands run.
type Seal struct {
	ReadOnly []string // mounts to make read-only
	Rlimits  []Rlimit
	Landlock *Landlock
	Seccomp  bool // install the filter that came before
	Caps     bool // give up all capabilities
	Memory   int64
	CPU      int64 // seconds; to tell why a command ended
	Inodes   int64 // that may be in use in each file system of Counted
	Counted  []string
	Work     string // directory to collect from
	Skip     string // directory below it that is not collected
	Nice     int
	Threads  int // to have ready, so that a full process table does not end the stage
}

// Rlimit is a resource limit.
type Rlimit struct {
	Resource   int
	Soft, Hard uint64
}

// Landlock are access rules. A kernel with a lower ABI than Least is an error.
type Landlock struct {
	Least int
	Read  []string // may be read and executed
	Write []string // may be changed in every way
	Files []string // may be opened for writing
	TCP   bool     // refuse to bind and connect
}

// Exec starts a command with the three descriptors as its standard files.
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

// Ready says that the sandbox is prepared, or why not.
type Ready struct {
	Error    string
	Step     string // what failed
	Errno    int
	Landlock int // ABI in force
}

// Started answers Exec.
type Started struct {
	ID    int
	PID   int
	Error string
	Errno int
}

// Exited says how a command ended.
type Exited struct {
	ID     int
	Code   int
	Signal int
	CPU    int64 // nanoseconds
	MaxRSS int64 // bytes
	OOM    bool  // ended by the memory watch
	Full   bool  // ended by the watch over files
	Spent  bool  // ended by the limit of processor time
}

// Collected answers Collect.
type Collected struct {
	ID    int
	Error string
}

// Entry precedes the bytes of a file in what Collect writes, as a line of JSON.
// The last has End.
type Entry struct {
	Path []byte `json:"path,omitempty"` // as it is: JSON would mend it
	Size int64  `json:"size,omitempty"`
	Exec bool   `json:"exec,omitempty"`
	End  bool   `json:"end,omitempty"`
}

// ProbeInput is the argument of a probe: what is not to be reached.
type ProbeInput struct {
	Canary  string `json:"canary"` // a file of the host
	PID     int    `json:"pid"`    // a process of the host, and when it started
	Started string `json:"started"`
	Port    int    `json:"port"`   // of the host's 127.0.0.1
	Marker  string `json:"marker"` // argument of a process to leave behind
}

// Probed is what a probe could do. In a sandbox all but Seccomp and LeftBehind
// are false.
type Probed struct {
	File       bool `json:"file"`
	Process    bool `json:"process"`
	Network    bool `json:"network"`
	Namespaces bool `json:"namespaces"`
	Mount      bool `json:"mount"`
	Privileges bool `json:"privileges"`
	Seccomp    bool `json:"seccomp"`     // a filter is in force
	LeftBehind bool `json:"left_behind"` // a process was left behind
}
