// Package process runs code on the host as the current user, with limits and a
// clean environment but without isolation. It is not a sandbox, so it runs only
// code whose exact digest was approved; see [Options.Allow].
//
// On Linux it has the limits of package native that work without namespaces,
// and kills all processes of a command when the command exits. On other Unix
// systems, it kills only the process group and limits only the size of written
// data. It is not available elsewhere.
package process

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures the backend.
type Options struct {
	// Allow reports whether code with the given digest may run without
	// isolation. It is called at each start. If Allow is nil, no code may run.
	Allow func(digest string) bool
	// Stage is an executable that links package stage, for Linux. The default
	// is the current executable.
	Stage string
	// UID is the user and group that run the code if this program runs as root.
	// The default is 65534.
	UID int
	// Dir is the parent of the sandboxes' directories. The default is run in
	// Cache.
	Dir string
	// Cache is the directory for verified copies of trees. The default is
	// loadout in the user's cache directory, or /var/cache/loadout for root.
	Cache string
	// NoGroups disables the use of control groups.
	NoGroups bool
}

// Backend runs approved code without isolation.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns a backend with the given options. If opts is nil, no code is
// allowed to run.
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

// check returns an error if the spec is not approved or not supported.
func (b *Backend) check(spec *sandbox.Spec) error {
	if err := prepare.Check(spec); err != nil {
		return err
	}
	if spec.Digest == "" || b.opts.Allow == nil || !b.opts.Allow(spec.Digest) {
		return &NotAllowedError{spec.Digest}
	}
	if !spec.Network.Host {
		what := "a disabled network: code uses the host's network"
		if len(spec.Network.Allow) > 0 {
			what = "a network with a host allowlist: code uses the host's network"
		}
		return &sandbox.UnsupportedError{Backend: b.Name(), What: what, Fix: "allow the whole network of the host, or use a backend that isolates"}
	}
	return nil
}
