// Package process runs code on the host as the current user, with limits and a
// clean environment but without isolation. It is not a sandbox, and only runs
// code whose exact digest was approved: see [Options.Allow].
//
// On Linux it has the limits of package native that need no namespaces, and all
// processes of a command end with it. On other Unix systems the process group
// ends, and written data is limited. It is unavailable elsewhere.
package process

import (
	"fmt"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options configure the back end.
type Options struct {
	// Allow reports whether code with a digest may run without isolation. It is
	// called at each start. Nil allows none.
	Allow func(digest string) bool
	// Stage is an executable that links package stage, for Linux. The default
	// is this executable.
	Stage string
	// UID is the user and group of code if this program is root. The default is
	// 65534.
	UID int
	// Dir contains the directories of sandboxes. The default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees. The default is
	// loadout in the user's cache directory, for root /var/cache/loadout.
	Cache string
	// NoGroups disables control groups.
	NoGroups bool
}

// Backend is the back end that isolates nothing.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. opts may be nil, but then it runs nothing.
func New(opts *Options) *Backend {
	b := &Backend{}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.UID == 0 {
		b.opts.UID = 65534
	}
	return b
}

// Name returns "process".
func (b *Backend) Name() string { return "process" }

// Tier returns [sandbox.Limited].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Limited }

// NotAllowedError reports that code was not approved to run without isolation.
type NotAllowedError struct{ Digest string }

func (e *NotAllowedError) Error() string {
	if e.Digest == "" {
		return "sandbox process: code without a digest cannot be approved to run without isolation"
	}
	return fmt.Sprintf("sandbox process: %s is not approved to run without isolation", e.Digest)
}

// check returns an error if the spec is not allowed or not supported.
func (b *Backend) check(spec *sandbox.Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	if spec.Digest == "" || b.opts.Allow == nil || !b.opts.Allow(spec.Digest) {
		return &NotAllowedError{spec.Digest}
	}
	if spec.Network.Mode != sandbox.HostNetwork {
		what := "disabling the network: code uses the host's"
		if spec.Network.Mode == sandbox.ProxyNetwork {
			what = "a network with an allow-list: code uses the host's"
		}
		return &sandbox.UnsupportedError{Backend: b.Name(), What: what, Fix: "allow the network mode host, or use a back end that isolates"}
	}
	return nil
}
