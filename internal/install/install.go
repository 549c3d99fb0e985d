// Package install gets the packages that a script needs before the script runs:
// a step of its own, in a sandbox of its own.
//
// [Builder.Ensure] runs uv or pip for Python and npm for Node.js. Of the skill
// the sandbox has the requirements and nothing else; of the network the
// registries that the operator has chosen and nothing else; of the host the
// installer and its interpreter, read-only. No configuration of the host or of
// the skill is read and there are no credentials. Code of packages does not run
// (no setup.py, no lifecycle scripts) unless [Options].AllowSource is set.
//
// What was installed is collected into a directory of the cache, one for each
// set of needs, interpreter and platform. Only regular files are kept, within
// [Limits], each with its hash in a manifest. Scripts have the directory
// read-only and need no network. It is checked each time before it is handed
// out, and made anew where anything was changed. A build that fails leaves
// nothing; processes that need the same packages at once build once.
//
// # Errors
//
// What a program can act on: [MissingToolError] of the installer, [OfflineError]
// where packages are neither there nor to be had, [FailedError] of the
// installer; [sandbox.UnavailableError] and [sandbox.UnsupportedError] of the
// back end; the cause of the context's end. Anything else is I/O in the cache.
package install

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

// ModulesDir is where scripts have packages for Node.js: above every directory
// of the layout, so that also imports of ES modules, which know no NODE_PATH,
// find them.
const ModulesDir = "/node_modules"

// The registries that are used where the operator names none.
const (
	DefaultPythonIndex = "https://pypi.org/simple"
	DefaultNPMRegistry = "https://registry.npmjs.org/"
)

// Options are the operator's settings.
type Options struct {
	// Backend runs the installers; it must give [sandbox.ProxyNetwork]. Nil:
	// nothing can be installed, only what is there is found.
	Backend sandbox.Backend
	// Dir is the cache, an absolute path. It is made when needed.
	Dir string
	// Host is where uv and npm are looked for.
	Host script.Host
	// PythonIndex is the address of a simple index (PEP 503), NPMRegistry that
	// of a registry; empty: the public ones. Neither may hold credentials.
	PythonIndex string
	NPMRegistry string
	// Hosts are further hosts that may be reached, as in
	// [sandbox.Network].Allow: those on which an index keeps its files. The one
	// of pypi.org is known, and npm asks the registry for all files.
	Hosts []string
	// Private are addresses at which registries may be although these are
	// private.
	Private []netip.Prefix
	// AllowSource lets code of packages run, in the sandbox, while they are
	// installed: source distributions are built, lifecycle scripts run.
	AllowSource bool
	// Offline installs nothing.
	Offline bool
	Limits  Limits // zero fields mean [DefaultLimits]
	// Log receives warnings and, at info, the decisions on the network; nil
	// discards them.
	Log *slog.Logger
}

// Limits bound one installation.
type Limits struct {
	Sandbox sandbox.Limits
	Files   int   // to be kept
	Bytes   int64 // of all files together
	Depth   int   // of directories
}

// DefaultLimits are the limits of an installation.
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

// Builder installs packages and finds those that were installed. It is safe for
// concurrent use, also by several processes with the same cache, and holds
// nothing that must be closed.
type Builder struct {
	opts       Options
	limits     Limits
	index, npm registry
	log        *slog.Logger
}

// New returns a builder. The error names everything that is wrong with the
// options.
func New(opts Options) (*Builder, error) {
	b := &Builder{opts: opts, limits: opts.Limits.withDefaults(), log: opts.Log}
	b.opts.Hosts, b.opts.Private = slices.Clone(opts.Hosts), slices.Clone(opts.Private)
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	var faults []error
	if !filepath.IsAbs(opts.Dir) {
		faults = append(faults, errors.New("the directory for installed packages is not an absolute path"))
	}
	var err error
	if b.index, err = parseRegistry("index of Python packages", opts.PythonIndex, DefaultPythonIndex); err != nil {
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

// Packages are what was installed for a script.
type Packages struct {
	// Mounts are what the sandbox of the script has to have: at
	// [sandbox.BuildDir] or [ModulesDir], read-only.
	Mounts []sandbox.Mount
	// Env are variables by which the packages are found; never nil. They come
	// after, and so replace, those of a skill: PYTHONPATH in particular is not
	// for a skill to set.
	Env map[string]string
	// Digest is "sha256:" and the hash of all paths and contents; empty where
	// nothing is needed. The same packages installed again may have another one,
	// as Python does not always compile to the same bytes.
	Digest string
}

// Ensure returns the packages that needs names for a script that is run by plan,
// and installs them if they are not there. skill is where needs was read from.
// Nil needs are met by nothing. progress receives a line for a person now and
// then; it may be nil.
func (b *Builder) Ensure(ctx context.Context, needs *script.Needs, skill fs.FS, plan *script.Plan, progress func(string)) (*Packages, error) {
	if needs == nil {
		return nothing(), nil
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
		return nil, j.offline(err)
	}
	unlock, err := store.lock(ctx, j.entry, func() { progress("waiting for another process that installs packages") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	e, err = store.lookup(j.entry) // another may have made it meanwhile
	if err != nil {
		b.log.Warn("installed packages cannot be used and are installed anew", slog.String("directory", j.entry), slog.Any("error", err))
		progress("the installed packages were changed; they are installed anew")
	}
	if e == nil {
		if e, err = b.build(ctx, j, store, progress); err != nil {
			return nil, err
		}
	}
	return j.packages(e), nil
}

// Lookup is Ensure that installs nothing: what is not there, or was changed, is
// an [OfflineError].
func (b *Builder) Lookup(needs *script.Needs, skill fs.FS, plan *script.Plan) (*Packages, error) {
	if needs == nil {
		return nothing(), nil
	}
	j, err := b.job(needs, skill, plan)
	if err != nil {
		return nil, err
	}
	e, err := (&store{dir: b.opts.Dir, log: b.log}).lookup(j.entry)
	if e == nil {
		return nil, j.offline(err)
	}
	return j.packages(e), nil
}

// Prune removes packages, those that were not asked for the longest first, until
// at most maxBytes are left, and what builds that were killed left behind. Those
// that were asked for within the time of keep stay, as a script may have them.
// It returns how many it removed.
func (b *Builder) Prune(ctx context.Context, maxBytes int64, keep time.Duration) (int, error) {
	return (&store{dir: b.opts.Dir, log: b.log}).prune(ctx, maxBytes, keep)
}

func nothing() *Packages { return &Packages{Env: map[string]string{}} }
