package loadout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// Scripts is what a runtime needs to run scripts of skills. Without it, and
// without a Sandbox in it, none runs.
type Scripts struct {
	// Sandbox is where scripts run; see sandbox/auto for the usual choice.
	Sandbox sandbox.Backend
	// Grants are the approvals; nil means that there are none.
	Grants policy.Store
	// Audit receives every decision; nil discards them. A decision that cannot
	// be recorded is a refusal.
	Audit Auditor
	// Bounds are the most that any skill is given, whatever it asks for; the
	// zero value gives no network, no secrets, and the limits of
	// [sandbox.DefaultLimits].
	Bounds policy.Bounds
	// Getenv finds interpreters (PATH, HOME, and what version managers set);
	// nil finds those of the system only.
	Getenv func(string) string
	// Protected are directories that no workspace may hold, be or be in: those
	// where this program keeps what it decides by, as approvals. The directory of
	// the working folders is one of them.
	Protected []string
	// Folders is the directory of the working folders; "" keeps none.
	Folders string
	// Packages installs what scripts need; nil refuses those that need any.
	Packages *Packages
	// Servers reads the MCP servers that a skill defines, from the value of its
	// mcpServers as JSON and the name of its file: exactly those that would be
	// started, in whatever form they are written. It fills in Name, Command, Hosts,
	// Env and Variables of each. An error refuses them all, and the approval; nil
	// refuses servers that skills define.
	Servers func(configs json.RawMessage, file string) ([]WishedService, error)
	// Secret returns the value of a secret by its name; nil knows none.
	Secret func(ctx context.Context, name string) (string, error)
	// SecretFor, where set, is asked in place of Secret, with the digest of the skill
	// that the value is for.
	SecretFor func(ctx context.Context, skill policy.Digest, name string) (string, error)
	// Principal is for whom a runtime of one principal does what it does; the zero
	// value is the person who runs this program.
	Principal policy.Principal
	// Command is an executable of the command loadout, which runs WebAssembly
	// in the sandbox; "" refuses such scripts.
	Command string
	// Cache is a directory for what can be made again; "" makes it again each
	// time.
	Cache string
	// Private are addresses that scripts may reach though they are private.
	Private []netip.Prefix
	// Logger receives the decisions on network connections; nil discards them.
	Logger *slog.Logger
}

// Auditor records decisions; [*policy.Audit] is one.
type Auditor interface {
	Append(ctx context.Context, r policy.Record) error
}

// Run asks for one run of a script.
type Run struct {
	Skill  string // reference to the skill
	Script string // path inside it, or the name of a script that only it has
	Args   []string
	Stdin  io.Reader
	Inputs []Input // put into /work/in

	// Principal is for whom it runs, the zero value for the person who runs
	// this program. Typed says that a person typed the command, which is their
	// leave for this run.
	Principal policy.Principal
	Typed     bool
	Session   string

	// Folder is the handle of the working folder, which a run before returned;
	// Keep gives the run one where Folder is "".
	Folder string
	Keep   bool
	// Out is a directory that receives what the script leaves in /work/out,
	// made where there is none. With Folder it is not used.
	Out string
	// Workspace is an absolute path of a directory of the person that the
	// script may read, and write where that was approved.
	Workspace string
	// WriteWorkspace and HostNetwork are what a person who typed the command
	// gives with it: writing in the workspace, and all of the machine's network.
	WriteWorkspace, HostNetwork bool
	// Secrets are values given with this run, besides those of [Scripts].
	Secrets []sandbox.Secret
	Timeout time.Duration // at most that of the bounds; 0 is those

	// Stdout and Stderr receive the output as it comes, and all of it where a
	// person typed the command; they may be nil.
	Stdout, Stderr io.Writer
	Progress       func(what string) // is told what is being done; may be nil
}

// Ran is what came of a run, in the stable shape of run --json.
type Ran struct {
	ExitCode    int               `json:"exit_code"`
	Stdout      string            `json:"stdout"`
	Stderr      string            `json:"stderr"`
	DurationMS  int64             `json:"duration_ms"`
	Killed      bool              `json:"killed"`
	Truncated   bool              `json:"truncated"`
	Reason      sandbox.Reason    `json:"reason"`
	Detail      string            `json:"detail,omitempty"` // more on the reason
	Backend     string            `json:"backend"`
	Tier        int               `json:"tier"`
	Limits      map[string]string `json:"limits"` // what is enforced, and by what
	DeniedHosts []string          `json:"denied_hosts"`
	Digest      string            `json:"digest"`
	Files       []sandbox.File    `json:"files"`
	Skill       string            `json:"skill"`
	Script      string            `json:"script"`
	Folder      string            `json:"folder,omitempty"` // handle of the working folder
	// Left is how many files the script left in its working directory that
	// nobody kept, as they are not in /work/out.
	Left  int      `json:"left,omitempty"`
	Notes []string `json:"notes,omitempty"` // for people, as of what was not granted
}

// RefusedError says that a script may not run.
type RefusedError struct {
	Skill    string
	Decision policy.Decision
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("skill %s may not run scripts: %s", e.Skill, e.Decision.Reason)
}

// ErrNoScripts says that this runtime runs no scripts.
var ErrNoScripts = errors.New("this program runs no scripts: it was given no sandbox")

// principal is for whom something is done where the caller names nobody.
func (s *Scripts) principal() policy.Principal {
	if s.Principal != (policy.Principal{}) {
		return s.Principal
	}
	return policy.Local()
}

// secret is the value of a secret for a skill, "" where there is none.
func (s *Scripts) secret(ctx context.Context, skill policy.Digest, name string) (string, error) {
	switch {
	case s.SecretFor != nil:
		return s.SecretFor(ctx, skill, name)
	case s.Secret != nil:
		return s.Secret(ctx, name)
	}
	return "", nil
}

// RunsScripts reports whether this runtime was given what running scripts needs.
func (r *Runtime) RunsScripts() bool { return r.scripts != nil && r.scripts.Sandbox != nil }
