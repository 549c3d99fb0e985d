// Package sandbox runs code that nobody here wrote so that it can harm
// nothing: it says what a sandbox is ([Backend], [Sandbox], [Process]), what one
// is asked for ([Spec], [Cmd], [Limits], [Network]), and what came of it
// ([Result]). [Run] is the way to run one command to its end.
//
// The back ends are packages below this one, each another way to isolate;
// sandbox/auto probes and chooses. Whatever the back end, code finds the same
// layout:
//
//	/skill      the whole skill, read-only, a copy verified against its manifest
//	/work       working directory and HOME, empty at first, limited in size
//	/work/in    files that were given
//	/work/out   files to hand over
//	/workspace  the person's directory, read-only unless granted
//	/tmp        limited in size
//	/run/secrets  one file a granted secret
//
// and LOADOUT_SKILL, LOADOUT_WORK, LOADOUT_OUT, LOADOUT_IN name the places, which
// back ends without a mount namespace have elsewhere.
//
// The package never passes a string to a shell, never chooses a weaker back end
// than it was given, and knows nothing of skills, policy or people.
package sandbox

import (
	"context"
	"io"
	"strconv"
	"time"
)

// Places of the layout.
const (
	SkillDir     = "/skill"
	WorkDir      = "/work"
	InDir        = "/work/in"
	OutDir       = "/work/out"
	WorkspaceDir = "/workspace"
	TmpDir       = "/tmp"
	SecretsDir   = "/run/secrets"
	NeedsDir     = "/needs" // dependencies of a skill, one directory a name
	BuildDir     = "/deps"  // packages that were installed for a script
)

// Tier says how much a back end isolates. A missing layer lowers it.
type Tier int

// The tiers.
const (
	None     Tier = 0 // nothing that counts
	Limited  Tier = 1 // limits and a clean environment, on the host as its user
	Confined Tier = 2 // access rules on the host's own view: Landlock, Seatbelt
	Isolated Tier = 3 // a view of its own: namespaces, containers
	Virtual  Tier = 4 // a kernel of its own
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

// Backend is one way to isolate code. Implementations are safe for concurrent
// use and hold nothing that must be closed.
type Backend interface {
	// Name is the back end's name in configuration and results: native, bwrap,
	// container, landlock, process, seatbelt.
	Name() string
	// Tier is what the back end gives where nothing is missing.
	Tier() Tier
	// Probe sets up a sandbox as Start does and tries what must not work in it.
	// The report's tier is what this machine really gives. The error is an
	// [*UnavailableError] where it gives nothing.
	Probe(ctx context.Context) (*Report, error)
	// Start prepares a sandbox. ctx bounds the start only. The error is an
	// [*UnavailableError], [*ChangedError] or [*UnsupportedError] where these
	// are to blame. Close the sandbox when done.
	Start(ctx context.Context, spec *Spec) (Sandbox, error)
}

// Sandbox is a prepared place in which commands run one after another or at
// once. It is safe for concurrent use; close it when done.
type Sandbox interface {
	// Exec starts a command. ctx bounds the start only.
	Exec(ctx context.Context, cmd *Cmd) (Process, error)
	// Collect hands over each regular file below /work but not below /work/in,
	// with its path relative to /work, in order. It follows no link, and leaves
	// out names that are not UTF-8 or longer than 4096 bytes. A visit
	// that returns an error ends it with that error.
	Collect(ctx context.Context, visit func(File, io.Reader) error) error
	// State says what is enforced in this very sandbox, and what was refused.
	State() State
	// Close ends everything that runs in the sandbox and removes what there is
	// of it. It is safe to call twice.
	Close() error
}

// Process is a running command. It is safe for concurrent use.
type Process interface {
	// Stdin is the command's input; close it to end it.
	Stdin() io.WriteCloser
	// Stdout and Stderr end when the command and whatever holds them have.
	// Both must be read, or the command may wait for ever.
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait waits for the command to end. Every call returns the same.
	Wait() Exit
	// Kill ends the command and what it started as far as the back end can
	// tell. It does not wait.
	Kill()
}

// State is what is true of one sandbox.
type State struct {
	// Enforced names each limit and layer with the mechanism that enforces it,
	// "" where nothing does.
	Enforced map[string]string
	// Denied are the hosts, with ports, that were refused, sorted.
	Denied []string
}

// Exit is how a command ended.
type Exit struct {
	Code   int    // 128 + the signal's number where a signal ended it
	Signal string // as SIGKILL; "" where it exited
	Reason Reason
	CPU    time.Duration // of the command and the children it waited for
	MaxRSS int64         // bytes, of the largest of them
	Detail string        // more on the reason, for people
}

// Reason says why a command ended.
type Reason string

// The reasons.
const (
	OK          Reason = "ok"           // it exited with 0
	Exited      Reason = "exit"         // it exited with another code, or by a signal of its own
	Timeout     Reason = "timeout"      // it took longer than it may
	CPU         Reason = "cpu"          // it used more processor time than it may
	OOM         Reason = "oom"          // it used more memory than it may
	Output      Reason = "output"       // it wrote far more output than is kept
	FileSize    Reason = "fsize"        // it wrote a larger file than it may
	Denied      Reason = "denied"       // it did what ends a process here
	StartFailed Reason = "start_failed" // it could not be started
	Disabled    Reason = "disabled"     // leave to run was withdrawn while it ran
)
