package loadout

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Scripts configures how a runtime runs skill scripts. Scripts are disabled if
// it is nil or its Sandbox is nil. Its functions must be safe for concurrent
// use.
type Scripts struct {
	// Sandbox runs the scripts. Package sandbox/auto chooses a backend.
	Sandbox sandbox.Backend
	// Grants stores the approvals; nil means none. See [Options.Approve]. The
	// runtime does not close the store.
	Grants policy.Store
	// Audit records every decision before the operation; nil discards them. If
	// the time of a record is zero, the current time applies. If Audit returns
	// an error, the operation is refused.
	Audit func(ctx context.Context, r policy.Record) error
	// Bounds limits what any skill is granted, whatever it requests. The zero
	// value allows no network access and no secrets, and applies
	// the default [sandbox.Limits].
	Bounds policy.Bounds
	// Getenv returns the environment variables used to find interpreters:
	// PATH, HOME and those of version managers. If it is nil, only system
	// interpreters are found.
	Getenv func(string) string
	// ProtectedDirs are directories that must not overlap a workspace. They
	// hold data that this program bases decisions on, such as approvals.
	// FolderDir and HeldChangesDir are always protected.
	ProtectedDirs []string
	// DirectWorkspace lets code that may write to a workspace do so directly if
	// the sandbox cannot hold back the changes for review; see [HeldChange]. By
	// default, the workspace is then read-only.
	DirectWorkspace bool
	// HeldChangesDir is the directory in which held changes are stored if
	// nobody could be asked about them, until the user applies them with
	// loadout changes; "" stores none. It is created if necessary. At most 200
	// changes of a workspace are stored, for 30 days.
	HeldChangesDir string
	// FolderDir is the directory that contains the working folders; ""
	// disables them. It is created if necessary. A working folder is kept for
	// at least seven days after its last use.
	FolderDir string
	// Packages configures package installation. If it is nil, scripts that
	// need packages are refused.
	Packages *Packages
	// ReadServers reads a skill's MCP servers from the JSON value of its
	// mcpServers field and the file name. It must return exactly the servers
	// that would be started, in any supported format. It sets the Name,
	// Command, Hosts, Env and Variables of each. For a variable of kind platform
	// that has a value, it sets HasValue and the actual Target, which the
	// approval then covers. If it fails, the skill's servers are not started
	// and the skill cannot be approved. If it is nil, skill servers are refused.
	ReadServers func(configs json.RawMessage, file string) ([]RequestedService, error)
	// Secret returns the value of the named secret, or "" if it is not set;
	// nil means no secrets. If it returns an error, the run fails.
	Secret func(ctx context.Context, name string) (string, error)
	// SecretFor, if set, replaces Secret. It also receives the digest of the
	// skill that the value is for.
	SecretFor func(ctx context.Context, skill policy.Digest, name string) (string, error)
	// Principal is the default principal of this runtime. The zero value is the
	// user who runs this program.
	Principal policy.Principal
	// Executable is the path of the loadout command, which runs WebAssembly in
	// the sandbox. If it is "", WebAssembly scripts are refused.
	Executable string
	// CacheDir is a directory for data that can be regenerated; "" disables
	// the cache.
	CacheDir string
	// PrivateNetworks lists private address ranges that scripts may connect to,
	// if the host was also granted. Other private addresses are denied.
	PrivateNetworks []netip.Prefix
	// Logger logs decisions on network connections; nil discards them.
	Logger *slog.Logger
}

// Packages configures the installation of packages for scripts. Packages are
// installed in a sandbox, from these registries only.
type Packages struct {
	// Dir is the directory for installed packages. It must be absolute. It is
	// created if necessary.
	Dir string
	// PythonIndex is the URL of a simple index (PEP 503), and NPMRegistry that
	// of an npm registry; "" means the public one. They must not contain
	// credentials.
	PythonIndex, NPMRegistry string
	// AllowSource allows packages to be built from source and to run install
	// scripts. Both run in the sandbox.
	AllowSource bool
	// Offline disables downloads; only installed packages are used.
	Offline bool
	// Commands lists the Python packages that every [Command] can import, as
	// requirements with a name and versions, such as pandas>=2. They, and those
	// of its skills, are installed when a command contains a word such as python
	// or .py. The next commands do not repeat a failed installation for five
	// minutes.
	Commands []string
}

// ErrNoScripts indicates that a runtime does not run scripts, because it has no
// sandbox. [Runtime.Run] also wraps it for a WebAssembly script if
// [Scripts.Executable] is "".
var ErrNoScripts = execution.ErrNoScripts

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

// heldChanges returns the store for held changes, or nil.
func (s *Scripts) heldChanges() *heldchange.Store {
	if s.HeldChangesDir == "" {
		return nil
	}
	return heldchange.New(s.HeldChangesDir)
}

// RunsScripts reports whether the runtime has a sandbox for scripts.
func (r *Runtime) RunsScripts() bool { return r.scripts != nil && r.scripts.Sandbox != nil }

// Runner returns the runner for the code of skills, or nil if [Options.Scripts]
// is nil. Only packages of this module can use it, such as package tools, which
// starts the servers of skills. Other programs call [Runtime.Run].
func (r *Runtime) Runner() *execution.Runner {
	if r.approve == nil {
		return r.newRunner(nil)
	}
	return r.newRunner(func(ctx context.Context, e *execution.RefusedError, a execution.Attempt) error {
		return r.requestApproval(ctx, newRefusedError(e), a)
	})
}

// newRunner returns a runner that calls approve as described in
// [execution.Options], or nil if [Options.Scripts] is nil. Only Runner passes a
// function, to keep the code for approval requests out of programs that only
// load skills.
func (r *Runtime) newRunner(approve func(context.Context, *execution.RefusedError, execution.Attempt) error) *execution.Runner {
	s := r.scripts
	if s == nil {
		return nil
	}
	o := execution.Options{
		Catalog: r.catalog, Sandbox: s.Sandbox, Grants: s.Grants, Audit: s.Audit, Bounds: s.Bounds, Secret: s.secret, ProtectedDirs: s.protectedDirs(), DirectWorkspace: s.DirectWorkspace, HeldChanges: s.heldChanges(),
		Executable: s.Executable, CacheDir: s.CacheDir, PrivateNetworks: s.PrivateNetworks, Logger: s.Logger, Principal: s.principal(), Approve: approve,
		Refused: func(e *execution.RefusedError) error { return newRefusedError(e) },
		Services: func(e *catalog.Entry, sk *skill.Skill) (execution.ServiceNeeds, error) {
			all, err := r.requestedServices(e, sk)
			return execution.ServiceNeeds{Installs: slices.ContainsFunc(all, func(w RequestedService) bool { return w.NeedsInstall }), Variables: variableNeeds(all)}, err
		},
	}
	if s.Getenv != nil {
		o.Host = script.HostOf(s.Getenv)
	}
	if p := s.Packages; p != nil {
		o.Packages = &packages.Options{Backend: s.Sandbox, Dir: p.Dir, Host: o.Host, PythonIndex: p.PythonIndex, NPMRegistry: p.NPMRegistry, Private: s.PrivateNetworks,
			AllowSource: p.AllowSource, Offline: p.Offline, Log: s.Logger}
		o.CommandPackages, o.Failures = p.Commands, &r.installFailures
	}
	return execution.New(o)
}

// protectedDirs returns the directories that must not overlap a workspace.
func (s *Scripts) protectedDirs() []string {
	return append([]string{s.FolderDir, s.HeldChangesDir}, s.ProtectedDirs...)
}

// ErrWorkspace indicates that scripts must not be given access to a directory;
// see [Runtime.CheckWorkspace].
var ErrWorkspace = execution.ErrWorkspace

// CheckWorkspace returns an error if scripts must not be given access to dir.
// The error wraps [ErrWorkspace] if dir is not absolute, is the root of the
// file system, or overlaps a protected directory of [Scripts]. It is
// [ErrNoScripts] if the runtime has no sandbox. CheckWorkspace follows symbolic
// links. Another error means that dir does not exist or cannot be read.
func (r *Runtime) CheckWorkspace(dir string) error {
	if !r.RunsScripts() {
		if err := execution.CheckWorkspace(dir); err != nil {
			return err
		}
		return ErrNoScripts
	}
	return execution.CheckWorkspace(dir, r.scripts.protectedDirs()...)
}

// ErrNoFolder indicates that no working folder has the given handle, or that
// working folders are disabled.
var ErrNoFolder = execution.ErrNoFolder

// FolderPath returns the host path of the working folder with the given handle.
// It returns [ErrNoFolder] if the handle is malformed or working folders are
// disabled. It does not check whether the folder exists.
func (r *Runtime) FolderPath(handle string) (string, error) {
	if r.scripts == nil {
		return "", ErrNoFolder
	}
	return execution.FolderPath(r.scripts.FolderDir, handle)
}
