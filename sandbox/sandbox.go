// Package sandbox runs untrusted code in isolation. A [Backend] starts a
// [Sandbox] as described by a [Spec], with [Limits] and a [Network]. Start
// with [Backend].
//
// Each backend isolates code in a different way; package sandbox/auto probes
// the backends and chooses one. Code sees the same layout in all of them:
//
//	/skill      the whole skill, read-only, a copy verified against its manifest
//	/work       working directory and HOME, initially empty, limited in size
//	/work/in    input files
//	/work/out   output files
//	/workspace  the user's directory, read-only unless granted
//	/tmp        limited in size
//	/run/secrets  one file for each granted secret
//	/needs/NAME  the skills that the skill depends on, or that a command can use, read-only
//	/deps       packages installed for a script, read-only
//
// The variables LOADOUT_SKILL, LOADOUT_WORK, LOADOUT_OUT and LOADOUT_IN hold
// these paths. Backends without a mount namespace use different paths.
//
// The package never passes a string to a shell and never chooses a weaker
// backend than requested. It has no notion of skills, policies or users.
package sandbox

import (
	"context"
	"io"
	"strconv"
	"time"
)

// Tier is the degree of isolation of a backend. Missing layers lower it.
type Tier int

// Tiers, from the weakest to the strongest.
const (
	None     Tier = 0 // no effective isolation
	Limited  Tier = 1 // limits and a clean environment, on the host as the same user
	Confined Tier = 2 // access rules on the host's file system: Landlock, Seatbelt
	Isolated Tier = 3 // a separate view of the system: namespaces, containers
	Virtual  Tier = 4 // a separate kernel
)

// String returns the number of the tier with its name, such as "3 (isolated)".
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

// Backend is a way to isolate code. Implementations must be safe for concurrent
// use. A Backend does not need to be closed.
type Backend interface {
	// Name returns the name used in configuration and results, such as native.
	Name() string
	// Tier returns the tier if all layers are available.
	Tier() Tier
	// Probe starts a sandbox, tests its isolation from inside and closes it.
	// The report has the actual tier on this machine. The error matches
	// [*UnavailableError] if the backend cannot be used on this machine.
	Probe(ctx context.Context) (*Report, error)
	// Start starts a sandbox. ctx applies only to the start. The error may be
	// an [*UnavailableError], [*ChangedError] or [*UnsupportedError], or report
	// an invalid spec. The caller must close the sandbox, and must not modify
	// the spec before that.
	Start(ctx context.Context, spec *Spec) (Sandbox, error)
}

// Sandbox runs commands in isolation, sequentially or concurrently. It is safe
// for concurrent use. The caller must close it.
type Sandbox interface {
	// Exec starts a command. ctx applies only to the start. The error is a
	// [*StartError] if the program cannot be started. It may match [ErrEnded]
	// if the sandbox has ended.
	Exec(ctx context.Context, cmd *Cmd) (Process, error)
	// Collect calls visit for each regular file below /work except /work/in.
	// Files are sorted by path relative to /work. Collect does not follow
	// symlinks. It skips names that are not valid UTF-8 or are longer than
	// 4096 bytes. Backends limit the depth, and the number of files. The reader
	// is valid only during the call, and need not be read. If visit returns an
	// error, Collect stops and returns it. The error may match [ErrEnded].
	Collect(ctx context.Context, visit func(File, io.Reader) error) error
	// State returns which limits are enforced and which hosts were denied so
	// far.
	State() State
	// Close kills all processes in the sandbox and removes its files. It may
	// be called more than once.
	Close() error
}

// Process is a running command. It is safe for concurrent use. It ends when its
// sandbox is closed.
type Process interface {
	// Stdin returns the command's standard input. Close it to signal end of
	// file.
	Stdin() io.WriteCloser
	// Stdout and Stderr return the command's output. They end when the command
	// and all other processes that hold the descriptors have exited. Both must
	// be read, or the command may block.
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait waits for the command to exit. It may be called more than once and
	// always returns the same value.
	Wait() Exit
	// Kill kills the command and those of its child processes that the backend
	// knows about. It does not wait for them to exit.
	Kill()
}

// State describes what a sandbox enforced and denied.
type State struct {
	// Enforced maps each limit and layer, such as "memory" or "network", to
	// the mechanism that enforces it, or to "" if none does.
	Enforced map[string]string
	// Denied lists the hosts, with ports, that were denied, sorted. The
	// names come from untrusted code.
	Denied []string
	// Tier is the tier of this sandbox. It is lower than that of its backend if
	// the sandbox lacks a protection, such as a memory limit. Zero means that
	// of the backend.
	Tier Tier
}

// Exit describes how a command exited.
type Exit struct {
	Code   int           // 128 + signal number after a signal
	Signal string        // such as SIGKILL; "" if the command exited normally
	Reason Reason        // replaced if the caller killed the command
	CPU    time.Duration // CPU time of the command and its reaped children
	MaxRSS int64         // in bytes, of the largest of these processes
	Detail string        // explains Reason, for display
}

// Reason is the reason why a command exited.
type Reason string

// Reasons why a command exited.
const (
	OK          Reason = "ok"           // exit code 0
	Exited      Reason = "exit"         // another exit code, or a signal sent by the code itself
	Timeout     Reason = "timeout"      // time limit exceeded
	CPU         Reason = "cpu"          // CPU time limit exceeded
	OOM         Reason = "oom"          // memory limit exceeded
	Output      Reason = "output"       // output beyond four times the limit
	FileSize    Reason = "fsize"        // file size limit exceeded
	Denied      Reason = "denied"       // killed because of a forbidden operation
	StartFailed Reason = "start_failed" // could not be started
	Disabled    Reason = "disabled"     // permission revoked while the command ran
)
