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

// Scripts configures a runtime to run scripts of skills. No script runs without
// it and its Sandbox.
type Scripts struct {
	// Sandbox runs the scripts; see sandbox/auto for the usual choice.
	Sandbox sandbox.Backend
	// Grants are the approvals; nil means none.
	Grants policy.Store
	// Audit receives every decision; nil discards them. A run is refused if its
	// decision cannot be recorded.
	Audit Auditor
	// Bounds limit what any skill gets, whatever it requests. The zero value
	// allows no network and no secrets, and applies the limits of
	// [sandbox.DefaultLimits].
	Bounds policy.Bounds
	// Getenv is used to find interpreters (PATH, HOME and variables of version
	// managers); nil finds only those of the system.
	Getenv func(string) string
	// ProtectedDirs are directories that no workspace may overlap. They hold
	// data that this program bases decisions on, such as approvals. FolderDir
	// is always protected.
	ProtectedDirs []string
	// FolderDir is the directory of the working folders; "" disables them.
	FolderDir string
	// Packages configures the installation of packages; nil refuses scripts
	// that need any.
	Packages *Packages
	// ReadServers reads the MCP servers of a skill, from the value of its
	// mcpServers as JSON and the name of its file. It must return exactly the
	// servers that would be started, in any supported format. It sets Name,
	// Command, Hosts, Env and Variables of each. An error refuses all servers
	// and the approval; nil refuses servers of skills.
	ReadServers func(configs json.RawMessage, file string) ([]RequestedService, error)
	// Secret returns the value of a secret by its name; nil means no secrets.
	Secret func(ctx context.Context, name string) (string, error)
	// SecretFor, if set, replaces Secret. It also gets the digest of the skill
	// that receives the value.
	SecretFor func(ctx context.Context, skill policy.Digest, name string) (string, error)
	// Principal is the default principal of this runtime. The zero value is the
	// user who runs this program.
	Principal policy.Principal
	// Executable is the path of the loadout command, which runs WebAssembly in
	// the sandbox; "" refuses such scripts.
	Executable string
	// CacheDir is a directory for data that can be generated again; "" disables
	// the cache.
	CacheDir string
	// PrivateNetworks are private addresses that scripts may reach.
	PrivateNetworks []netip.Prefix
	// Logger receives the decisions on network connections; nil discards them.
	Logger *slog.Logger
}

// Auditor records decisions; [*policy.Audit] is one.
type Auditor interface {
	Append(ctx context.Context, r policy.Record) error
}

// Run describes one run of a script.
type Run struct {
	Skill  string // reference to the skill
	Script string // path inside the skill, or the unique name of a script
	Args   []string
	Stdin  io.Reader
	Inputs []Input // files and directories for /work/in

	// Principal is the principal of the run; the zero value is that of
	// [Scripts]. ByUser is set if the user typed the command, which approves
	// this run.
	Principal policy.Principal
	ByUser    bool
	Session   string

	// Folder is the handle of a working folder, as returned by an earlier run.
	// NewFolder creates a working folder if Folder is "".
	Folder    string
	NewFolder bool
	// OutputDir is a directory for the files in /work/out. It is created if
	// necessary, and not used with a working folder.
	OutputDir string
	// Workspace is the absolute path of a user's directory. The script may read
	// it, and may write to it if that was approved.
	Workspace string
	// WriteWorkspace and HostNetwork are granted by a user who typed the
	// command: write access to the workspace, and full access to the machine's
	// network.
	WriteWorkspace, HostNetwork bool
	// Secrets are values for this run, in addition to those of [Scripts].
	Secrets []sandbox.Secret
	Timeout time.Duration // limited by the bounds; 0 means the limit

	// Stdout and Stderr receive the output as it is written. It is complete if
	// the user typed the command. Both may be nil.
	Stdout, Stderr io.Writer
	Progress       func(what string) // receives progress messages; may be nil
}

// RunResult is the result of a run, in the stable format of run --json.
type RunResult struct {
	ExitCode    int               `json:"exit_code"`
	Stdout      string            `json:"stdout"`
	Stderr      string            `json:"stderr"`
	DurationMS  int64             `json:"duration_ms"`
	Killed      bool              `json:"killed"`
	Truncated   bool              `json:"truncated"`
	Reason      sandbox.Reason    `json:"reason"`
	Detail      string            `json:"detail,omitempty"` // details of the reason
	Backend     string            `json:"backend"`
	Tier        int               `json:"tier"`
	Limits      map[string]string `json:"limits"` // enforced limits and how they are enforced
	DeniedHosts []string          `json:"denied_hosts"`
	Digest      string            `json:"digest"`
	Files       []sandbox.File    `json:"files"`
	Skill       string            `json:"skill"`
	Script      string            `json:"script"`
	Folder      string            `json:"folder,omitempty"` // handle of the working folder
	// UnsavedFiles is the number of files that the script wrote to its working
	// directory outside /work/out. They were not saved.
	UnsavedFiles int      `json:"left,omitempty"`
	Notes        []string `json:"notes,omitempty"` // for users, for example about permissions not granted
}

// RefusedError is returned if a script may not run.
type RefusedError struct {
	Skill    string
	Decision policy.Decision
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("skill %s may not run scripts: %s", e.Skill, e.Decision.Reason)
}

// ErrNoScripts is returned by a runtime that runs no scripts.
var ErrNoScripts = errors.New("this program runs no scripts: it was given no sandbox")

// principal returns the default principal.
func (s *Scripts) principal() policy.Principal {
	if s.Principal != (policy.Principal{}) {
		return s.Principal
	}
	return policy.LocalUser()
}

// secret returns the value of a secret for a skill, or "" if it is not set.
func (s *Scripts) secret(ctx context.Context, skill policy.Digest, name string) (string, error) {
	switch {
	case s.SecretFor != nil:
		return s.SecretFor(ctx, skill, name)
	case s.Secret != nil:
		return s.Secret(ctx, name)
	}
	return "", nil
}

// RunsScripts reports whether the runtime has a sandbox to run scripts.
func (r *Runtime) RunsScripts() bool { return r.scripts != nil && r.scripts.Sandbox != nil }
