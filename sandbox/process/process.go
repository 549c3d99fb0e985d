// Package process runs code on the host as its user, with limits and a clean
// environment and nothing that isolates it. It is no sandbox, and runs only code
// to whose very bytes somebody has agreed: see [Options.Allow].
//
// On Linux the limits are those of sandbox/native that need no namespace, and all
// that a command started ends with its sandbox. On other systems of the Unix kind
// its process group does, and what it writes is limited; elsewhere it is
// unavailable.
package process

import (
	"fmt"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust the back end.
type Options struct {
	// Allow says whether code with this digest may run without isolation. It is
	// asked at each start; nil allows none.
	Allow func(digest string) bool
	// Stage is an executable that links internal/stage, for Linux; default is
	// this one.
	Stage string
	// UID is the user and group that code is when this program is root; default
	// 65534.
	UID int
	// Dir is the directory for the private directories of sandboxes; default is
	// run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees; default is loadout in
	// the user's cache directory, for root /var/cache/loadout.
	Cache string
	// NoGroups leaves control groups alone.
	NoGroups bool
}

// Backend is the back end that isolates nothing.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. Without options it runs nothing.
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

// Name is process.
func (b *Backend) Name() string { return "process" }

// Tier is [sandbox.Limited].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Limited }

// NotAllowedError says that nobody agreed that this code runs without isolation.
type NotAllowedError struct{ Digest string }

func (e *NotAllowedError) Error() string {
	if e.Digest == "" {
		return "sandbox process: code without a digest cannot be allowed to run without isolation"
	}
	return fmt.Sprintf("sandbox process: nobody has allowed %s to run without isolation", e.Digest)
}

// check refuses what was not allowed or cannot be given.
func (b *Backend) check(spec *sandbox.Spec) error {
	if err := spec.Check(); err != nil {
		return err
	}
	if spec.Digest == "" || b.opts.Allow == nil || !b.opts.Allow(spec.Digest) {
		return &NotAllowedError{spec.Digest}
	}
	if spec.Network.Mode != sandbox.HostNetwork {
		what := "a sandbox without a network: code here has the host's"
		if spec.Network.Mode == sandbox.ProxyNetwork {
			what = "a network by allow-list: code here has the host's"
		}
		return &sandbox.UnsupportedError{Backend: b.Name(), What: what, Fix: "allow it the network host, or use a back end that isolates"}
	}
	return nil
}
