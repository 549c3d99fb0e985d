// Package sandbox runs untrusted code in isolation. A [Backend] starts a
// [Sandbox] as a [Spec] describes, with [Limits] and a [Network]. [Run] is the
// simplest way to run one [Cmd] and get its [Result]. Start reading there.
//
// Each back end isolates in another way; package sandbox/auto probes and
// chooses one. Code sees the same layout in all of them:
//
//	/skill      the whole skill, read-only, a copy verified against its manifest
//	/work       working directory and HOME, initially empty, limited in size
//	/work/in    input files
//	/work/out   output files
//	/workspace  the user's directory, read-only unless granted
//	/tmp        limited in size
//	/run/secrets  one file for each granted secret
//	/needs/NAME  the skills that the skill depends on, read-only
//	/deps       packages installed for a script, read-only
//
// The variables LOADOUT_SKILL, LOADOUT_WORK, LOADOUT_OUT and LOADOUT_IN hold
// these paths. Back ends without a mount namespace use other paths.
//
// The package never passes a string to a shell and never chooses a weaker back
// end than requested. It does not know skills, policy or users.
package sandbox

import (
	"context"
	"io"
	"strconv"
	"time"
)

// Tier is the degree of isolation of a back end. A missing layer lowers it.
type Tier int

// The tiers.
const (
	None     Tier = 0 // no effective isolation
	Limited  Tier = 1 // limits and a clean environment, on the host as the same user
	Confined Tier = 2 // access rules in the host's file system: Landlock, Seatbelt
	Isolated Tier = 3 // an own view of the system: namespaces, containers
	Virtual  Tier = 4 // an own kernel
)

func (t Tier) String() string {
	switch t {
	case Limited:
		return "1 (limited)"
	case Confined:
		return "2 (confined)"
	case Isolated:
		return "3 (isolated)"
	case Virtual:
		return "4 (virtual)"
	}
	return strconv.Itoa(int(t)) + " (none)"
}

// Backend isolates code in one way. Implementations are safe for concurrent use
// and need no closing.
type Backend interface {
	// Name returns the name in configuration and results: native, bwrap,
	// container, landlock, process or seatbelt.
	Name() string
	// Tier returns the tier with all layers available.
	Tier() Tier
	// Probe starts a sandbox and tests its isolation from inside. The report
	// has the tier of this machine. The error is an [*UnavailableError] if the
	// back end cannot be used.
	Probe(ctx context.Context) (*Report, error)
	// Start starts a sandbox. ctx limits the start only. The error may be an
	// [*UnavailableError], [*ChangedError] or [*UnsupportedError]. The caller
	// closes the sandbox.
	Start(ctx context.Context, spec *Spec) (Sandbox, error)
}

// Sandbox runs commands in isolation, one after another or concurrently. It is
// safe for concurrent use. The caller closes it.
type Sandbox interface {
	// Exec starts a command. ctx limits the start only.
	Exec(ctx context.Context, cmd *Cmd) (Process, error)
	// Collect calls visit for each regular file below /work except /work/in,
	// sorted by the path relative to /work. It does not follow symlinks. It
	// skips names that are not UTF-8 or longer than 4096 bytes. It stops at the
	// first error of visit and returns it.
	Collect(ctx context.Context, visit func(File, io.Reader) error) error
	// State describes what this sandbox enforces and what it refused.
	State() State
	// Close ends all processes of the sandbox and removes its files. It may be
	// called twice.
	Close() error
}

// Process is a running command. It is safe for concurrent use.
type Process interface {
	// Stdin returns the command's input. Closing it means end of input.
	Stdin() io.WriteCloser
	// Stdout and Stderr return the command's output. They end when the command
	// and all holders of the descriptors have ended. Both must be read, or the
	// command may block.
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait waits for the end of the command. All calls return the same value.
	Wait() Exit
	// Kill ends the command and, as far as the back end knows them, its child
	// processes. It does not wait.
	Kill()
}

// State is the state of one sandbox.
type State struct {
	// Enforced maps each limit and layer to the mechanism that enforces it, ""
	// for none.
	Enforced map[string]string
	// Denied are the refused hosts with ports, sorted.
	Denied []string
}

// Exit describes how a command ended.
type Exit struct {
	Code   int    // 128 + signal number after a signal
	Signal string // such as SIGKILL; "" after an exit
	Reason Reason
	CPU    time.Duration // of the command and its reaped children
	MaxRSS int64         // bytes, of the largest of these processes
	Detail string        // explains Reason, for display
}

// Reason says why a command ended.
type Reason string

// The reasons.
const (
	OK          Reason = "ok"           // exit code 0
	Exited      Reason = "exit"         // another exit code, or a signal that the code sent
	Timeout     Reason = "timeout"      // time limit exceeded
	CPU         Reason = "cpu"          // CPU time limit exceeded
	OOM         Reason = "oom"          // memory limit exceeded
	Output      Reason = "output"       // far more output than the limit
	FileSize    Reason = "fsize"        // file size limit exceeded
	Denied      Reason = "denied"       // a forbidden operation killed it
	StartFailed Reason = "start_failed" // could not be started
	Disabled    Reason = "disabled"     // permission was revoked while it ran
)
