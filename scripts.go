package loadout

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
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

// Packages configures the installation of the packages that scripts need. They
// are installed in a sandbox, from these registries only.
type Packages struct {
	// Dir is the directory of installed packages, an absolute path.
	Dir string
	// PythonIndex and NPMRegistry are the registries; "" means the public ones.
	PythonIndex, NPMRegistry string
	// AllowSource allows packages to be built from source and to run install
	// scripts, in the sandbox.
	AllowSource bool
	// Offline installs nothing and uses packages that are already installed.
	Offline bool
}

// Auditor records decisions.
type Auditor interface {
	Append(ctx context.Context, r policy.Record) error
}

// ErrNoScripts is returned by a runtime that runs no scripts.
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

// RunsScripts reports whether the runtime has a sandbox to run scripts.
func (r *Runtime) RunsScripts() bool { return r.scripts != nil && r.scripts.Sandbox != nil }

// runner returns the runner of scripts. There is none without r.scripts.
func (r *Runtime) runner() *execution.Runner {
	s := r.scripts
	o := execution.Options{
		Catalog: r.catalog, Sandbox: s.Sandbox, Grants: s.Grants, Audit: s.Audit, Bounds: s.Bounds, Secret: s.secret, ProtectedDirs: s.protectedDirs(),
		Executable: s.Executable, CacheDir: s.CacheDir, PrivateNetworks: s.PrivateNetworks, Logger: s.Logger,
		Services: func(e *catalog.Entry, sk *skill.Skill) (bool, error) {
			all, err := r.requestedServices(e, sk)
			return slices.ContainsFunc(all, func(w RequestedService) bool { return w.NeedsInstall }), err
		},
	}
	if s.Getenv != nil {
		o.Host = script.HostOf(s.Getenv)
	}
	if p := s.Packages; p != nil {
		o.Packages = &packages.Options{Backend: s.Sandbox, Dir: p.Dir, Host: o.Host, PythonIndex: p.PythonIndex, NPMRegistry: p.NPMRegistry, Private: s.PrivateNetworks,
			AllowSource: p.AllowSource, Offline: p.Offline, Log: s.Logger}
	}
	return execution.New(o)
}

// caller returns the principal p, or the default one, as a caller.
func (s *Scripts) caller(p policy.Principal, session string) execution.Caller {
	if p == (policy.Principal{}) {
		p = s.principal()
	}
	return execution.Caller{Principal: p, Session: session}
}

// protectedDirs returns the directories that no workspace may overlap.
func (s *Scripts) protectedDirs() []string {
	return append([]string{s.FolderDir}, s.ProtectedDirs...)
}

// ErrWorkspace means that a directory cannot be given to scripts.
var ErrWorkspace = execution.ErrWorkspace

// CheckWorkspace reports whether scripts may be given a directory. The error
// matches [ErrWorkspace] for the whole file system and for any directory that
// overlaps Loadout's own state.
func (r *Runtime) CheckWorkspace(dir string) error {
	if !r.RunsScripts() {
		if err := execution.CheckWorkspace(dir); err != nil {
			return err
		}
		return ErrNoScripts
	}
	return execution.CheckWorkspace(dir, r.scripts.protectedDirs()...)
}

// ErrNoFolder is returned if no working folder has the given handle.
var ErrNoFolder = execution.ErrNoFolder

// FolderPath returns the path of a working folder on this machine.
func (r *Runtime) FolderPath(handle string) (string, error) {
	if r.scripts == nil {
		return "", ErrNoFolder
	}
	return execution.FolderPath(r.scripts.FolderDir, handle)
}
