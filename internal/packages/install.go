// Package packages installs the packages that a script needs, in a separate
// sandbox, before the script runs.
//
// [Builder.Ensure] runs uv or pip for Python, and npm for Node.js. The sandbox
// contains only the requirements of the skill and, read-only, the installer and
// its interpreter. It can reach only the registries that the operator
// configured. It reads no configuration of the host or the skill and has no
// credentials. Package code (setup.py, lifecycle scripts) does not run unless
// [Options].AllowSource is set.
//
// The cache has one directory for each combination of needs, interpreter and
// platform. It stores only regular files, within [Limits], with their hashes in
// a manifest. Scripts mount the directory read-only and need no network. The
// builder checks the directory before each use and reinstalls the packages if
// anything changed. A failed build stores nothing. If several processes need
// the same packages, only one builds them.
//
// Python finds packages after its standard library and only once it has started,
// as in any installation. A package therefore replaces no module of the standard
// library, and runs no code in programs that do not import it.
//
// # Errors
//
// Callers can handle these errors: [MissingToolError] if there is no installer,
// [OfflineError] if packages are neither installed nor available, and
// [FailedError] if the installer failed. The sandbox returns
// [sandbox.UnavailableError] and [sandbox.UnsupportedError]. If the context is
// done, the error is its cause. All others are I/O errors of the cache.
package packages

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

// ModulesDir is the directory of Node.js packages in a script's sandbox. It is
// at the root, because imports of ES modules search there but ignore NODE_PATH.
const ModulesDir = "/node_modules"

// The default registries.
const (
	DefaultPythonIndex = "https://pypi.org/simple"
	DefaultNPMRegistry = "https://registry.npmjs.org/"
)

// Options configures a [Builder].
type Options struct {
	// Backend runs the installers and must support [sandbox.Network.Allow]. If
	// it is nil, nothing can be installed.
	Backend sandbox.Backend
	// Dir is the absolute path of the cache. It is created if necessary.
	Dir string
	// Host is the machine whose uv and npm are run.
	Host script.Host
	// PythonIndex is the URL of a simple index (PEP 503), and NPMRegistry the
	// URL of an npm registry. If empty, the public registries are used. They
	// must not contain credentials.
	PythonIndex string
	NPMRegistry string
	// Hosts lists additional hosts that installers may reach, such as the file
	// host of an index. The format is that of [sandbox.Network].Allow. The file
	// host of pypi.org is known, and npm downloads files from the registry.
	Hosts []string
	// Private lists the private address ranges that registries may use.
	Private []netip.Prefix
	// AllowSource allows package code to run in the sandbox during
	// installation: source distributions are built, and lifecycle scripts run.
	AllowSource bool
	// Offline disables installation.
	Offline bool
	Limits  Limits // zero fields mean [DefaultLimits]
	// MaxStored is the total size in bytes of the stored packages, above which an
	// installation removes those that were not used for a week, least recently used
	// first. 0 means 10 GiB.
	MaxStored int64
	// Log receives warnings and, at level info, network decisions. If nil, they
	// are discarded.
	Log *slog.Logger
}

// Limits holds the limits of an installation.
type Limits struct {
	Sandbox sandbox.Limits
	Files   int   // number of stored files
	Bytes   int64 // total size of all files
	Depth   int   // depth of directories
}

const (
	defaultMaxStored = 10 << 30
	// minUnused is how long packages are kept after their last use, because a
	// server of a skill may be using them.
	minUnused = 7 * 24 * time.Hour
)

// DefaultLimits returns the default limits of an installation.
func DefaultLimits() Limits {
	return Limits{
		Sandbox: sandbox.Limits{
			Memory: 2 << 30, Processes: 256, CPU: 5 * time.Minute, Cores: 2, Wall: 5 * time.Minute,
			FileSize: 1 << 30, OpenFiles: 1024, Work: 1 << 30, Tmp: 1 << 30, Inodes: 80 << 10,
		},
		Files: 64 << 10, Bytes: 1 << 30, Depth: 48,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ v, d *int64 }{
		{&l.Sandbox.Memory, &d.Sandbox.Memory}, {&l.Sandbox.FileSize, &d.Sandbox.FileSize},
		{&l.Sandbox.Work, &d.Sandbox.Work}, {&l.Sandbox.Tmp, &d.Sandbox.Tmp}, {&l.Bytes, &d.Bytes},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	for _, f := range []struct{ v, d *int }{
		{&l.Sandbox.Processes, &d.Sandbox.Processes}, {&l.Sandbox.OpenFiles, &d.Sandbox.OpenFiles},
		{&l.Sandbox.Inodes, &d.Sandbox.Inodes}, {&l.Files, &d.Files}, {&l.Depth, &d.Depth},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	for _, f := range []struct{ v, d *time.Duration }{{&l.Sandbox.CPU, &d.Sandbox.CPU}, {&l.Sandbox.Wall, &d.Sandbox.Wall}} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	if l.Sandbox.Cores == 0 {
		l.Sandbox.Cores = d.Sandbox.Cores
	}
	return l
}

// Builder installs packages and finds installed packages. It does not need to
// be closed. It is safe for concurrent use, even if several processes share a
// cache.
type Builder struct {
	opts       Options
	limits     Limits
	index, npm registry
	log        *slog.Logger
}

// New returns a builder. The error describes all invalid options.
func New(opts Options) (*Builder, error) {
	b := &Builder{opts: opts, limits: opts.Limits.withDefaults(), log: opts.Log}
	b.opts.Hosts, b.opts.Private = slices.Clone(opts.Hosts), slices.Clone(opts.Private)
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	var faults []error
	if !filepath.IsAbs(opts.Dir) {
		faults = append(faults, errors.New("package directory must be an absolute path"))
	}
	var err error
	if b.index, err = parseRegistry("Python package index", opts.PythonIndex, DefaultPythonIndex); err != nil {
		faults = append(faults, err)
	}
	if b.npm, err = parseRegistry("npm registry", opts.NPMRegistry, DefaultNPMRegistry); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return b, nil
}

// Packages describes a script's installed packages.
type Packages struct {
	// Mounts lists the read-only mounts for the script's sandbox, at
	// /deps or [ModulesDir].
	Mounts []sandbox.Mount
	// Trees lists the files that let Python find the packages.
	Trees []sandbox.Tree
	// Env contains the environment variables that let the script find the
	// packages. It is never nil. The variables override the skill's own; in
	// particular, a skill must not set PYTHONPATH.
	Env map[string]string
	// Digest is "sha256:" and a hash of all paths and contents. It is empty if
	// there are no packages. Reinstalled packages may have a different digest,
	// because Python's compiled files vary.
	Digest string

	files []file
}

// Files yields the path and the SHA-256 hash of each installed file, sorted by
// path.
func (p *Packages) Files() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, f := range p.files {
			if !yield(f.Path, f.SHA256) {
				return
			}
		}
	}
}

// Ensure returns the packages that a script needs, installing them if
// necessary. skill contains the files that declare the packages, and plan is
// the script's plan. If needs is nil, the script needs no packages. progress
// receives status lines for the user and may be nil.
func (b *Builder) Ensure(ctx context.Context, needs *script.Needs, skill fs.FS, plan *script.Plan, progress func(string)) (*Packages, error) {
	if needs == nil {
		return noPackages(), nil
	}
	if progress == nil {
		progress = func(string) {}
	}
	j, err := b.job(needs, skill, plan)
	if err != nil {
		return nil, err
	}
	store := &store{dir: b.opts.Dir, log: b.log}
	e, err := store.lookup(j.entry)
	switch {
	case e != nil:
		return j.packages(e), nil
	case b.opts.Offline:
		return nil, j.offlineError(err)
	}
	unlock, err := store.lock(ctx, j.entry, func() { progress("waiting for another process that installs packages") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, err = store.lookup(j.entry) // another process may have installed it in the meantime
	if err != nil {
		b.log.Warn("reinstalling unusable packages", slog.String("directory", j.entry), slog.Any("error", err))
		progress("the installed packages were changed; reinstalling them")
	}
	if e == nil {
		if e, err = b.build(ctx, j, store, progress); err != nil {
			return nil, err
		}
		if _, err := b.Prune(ctx, cmp.Or(b.opts.MaxStored, defaultMaxStored), minUnused); err != nil {
			b.log.Warn("couldn't remove unused packages", slog.Any("error", err))
		}
	}
	return j.packages(e), nil
}

// Lookup returns installed packages like Ensure, but installs nothing. If
// packages are missing or changed, the error is an [OfflineError].
func (b *Builder) Lookup(needs *script.Needs, skill fs.FS, plan *script.Plan) (*Packages, error) {
	if needs == nil {
		return noPackages(), nil
	}
	j, err := b.job(needs, skill, plan)
	if err != nil {
		return nil, err
	}
	e, err := (&store{dir: b.opts.Dir, log: b.log}).lookup(j.entry)
	if e == nil {
		return nil, j.offlineError(err)
	}
	return j.packages(e), nil
}

// Prune removes the files of killed builds, and the least recently used
// packages until at most maxBytes remain. It keeps packages that were used
// within the retention time, because a script may still be using them. It
// returns the number of removed entries.
func (b *Builder) Prune(ctx context.Context, maxBytes int64, retention time.Duration) (int, error) {
	return (&store{dir: b.opts.Dir, log: b.log}).prune(ctx, maxBytes, retention)
}

func noPackages() *Packages { return &Packages{Env: map[string]string{}} }
