package setup

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/tools"
)

// MinSkillWait is a lower bound for [Setup.SkillWait] and [Roots.Wait]. Only
// tests set it, directly or with the linker, so that a program on a slow machine
// does not start without its skills.
var MinSkillWait string

// skillWait returns wait, or MinSkillWait if that is longer and wait is not 0.
func skillWait(wait time.Duration) time.Duration {
	if least, err := time.ParseDuration(MinSkillWait); err == nil && wait > 0 {
		return max(wait, least)
	}
	return wait
}

// NewRuntime opens the skills selected by the configuration and the flags. The
// caller must close the runtime.
func (s *Setup) NewRuntime(ctx context.Context, c *config.Config, watch bool) (*loadout.Runtime, error) {
	p, err := s.FindProfile(s.ProfileName)
	if err != nil {
		return nil, err
	}
	rt, err := s.NewRuntimeWith(ctx, c, watch, ProfileSkills(p))
	if err == nil {
		s.NoteMissingSkills(ctx, c, p, rt)
	}
	return rt, err
}

// NewRuntimeWith is like NewRuntime but opens only the chosen skills, or all if
// chosen is empty. It also opens the sources in more.
func (s *Setup) NewRuntimeWith(ctx context.Context, c *config.Config, watch bool, chosen []string, more ...sources.Location) (*loadout.Runtime, error) {
	rt, _, err := s.openRuntime(ctx, c, watch, chosen, more...)
	return rt, err
}

// openRuntime implements NewRuntimeWith. It also returns the state of the project
// skills, or nil if none can be pending.
func (s *Setup) openRuntime(ctx context.Context, c *config.Config, watch bool, chosen []string, more ...sources.Location) (*loadout.Runtime, *projectSkills, error) {
	filter := catalogFilter(c)
	filter.Select = chosen
	if _, err := catalog.New(nil, &catalog.Options{Filter: filter}); err != nil {
		return nil, nil, exit.Errorf(exit.Usage, "see where it is set: loadout config show", "configuration: skills.allow: %w", err)
	}
	sources, err := s.skillSources(c, more...)
	if err != nil {
		return nil, nil, err
	}
	sources = append(sources, s.serverSkills(c, !watch || !c.Skills.Watch)...)
	scripts, err := s.scriptOptions(c)
	if err != nil {
		return nil, nil, err
	}
	grants := &configuredGrants{currentGrants: currentGrants{s}, stamps: s.statConfigFiles(), approved: policy.NewMemoryStore()}
	if scripts != nil {
		scripts.Grants = grants
	}
	defer s.ShowProgress("reading skills")()
	options := &loadout.Options{Sources: sources, Filter: filter, Wait: skillWait(s.SkillWait), Watch: watch && c.Skills.Watch, Scripts: scripts, Logger: s.Logger()}
	inProjects := s.newProjectSkills(c, sources)
	if inProjects != nil {
		options.Confirm = inProjects.confirm
	}
	rt, err := loadout.New(ctx, options)
	if err == nil && inProjects != nil {
		rt.Catalog().Subscribe(func(_, now *catalog.Snapshot) { inProjects.record(context.WithoutCancel(ctx), now) })
		if inProjects.record(ctx, rt.Catalog().Snapshot()) {
			err = rt.Catalog().SetFilter(filter) // more skills are pending
		}
	}
	if err == nil && scripts != nil {
		grants.open(ctx, rt, c)
	}
	return rt, inProjects, err
}

// OpenRuntime loads the configuration and opens the skills. The caller must
// close the runtime.
func (s *Setup) OpenRuntime(ctx context.Context) (*loadout.Runtime, error) {
	c, err := s.LoadConfig(nil)
	if err != nil {
		return nil, err
	}
	return s.NewRuntime(ctx, c, false)
}

// OpenScripts loads the configuration and opens the skills, for commands that
// run scripts.
func (s *Setup) OpenScripts(ctx context.Context) (*loadout.Runtime, *config.Config, error) {
	c, err := s.LoadConfig(nil)
	if err != nil {
		return nil, nil, err
	}
	hint := "see where it is set: loadout config show"
	if s.ConfigFile != "" {
		hint += " --config " + console.ShellQuote(s.ConfigFile)
	}
	switch {
	case !c.Skills.Enabled:
		return nil, nil, exit.Errorf(exit.Refused, hint, "skills are disabled (skills.enabled)")
	case !c.Sandbox.Enabled:
		return nil, nil, exit.Errorf(exit.Refused, hint, "scripts are disabled (sandbox.enabled)")
	}
	rt, err := s.NewRuntime(ctx, c, false)
	return rt, c, err
}

// skillSources returns the skill sources selected by the configuration and the
// flags.
func (s *Setup) skillSources(c *config.Config, more ...sources.Location) ([]catalog.Source, error) {
	o := s.sourceOptions(c)
	if _, err := os.Getwd(); err != nil {
		if !o.NoProject && len(s.Skills) == 0 {
			s.Note("skills of the project ignored: cannot read the working directory: %v", fileerror.Cause(err))
		}
		o.NoProject, o.WorkDir = true, string(filepath.Separator)
	}
	for _, d := range c.Skills.Dirs {
		switch project := c.ProjectOf(d); {
		case project == "":
			o.Extra = append(o.Extra, sources.Location{Path: d, Scope: catalog.User})
		case c.Skills.Project:
			o.Extra = append(o.Extra, sources.Location{Path: d, Scope: catalog.Project, Within: project})
		}
	}
	for _, d := range c.Inherited {
		o.Extra = append(o.Extra, sources.Location{Path: d, Scope: catalog.User})
	}
	if len(s.Skills) > 0 {
		var err error
		if o.Extra, err = s.flagLocations(catalog.Project); err != nil {
			return nil, err
		}
		o.NoHome, o.NoProject, o.NoBundled = true, true, true
	}
	o.Extra = append(o.Extra, more...)
	all, err := sources.New(o)
	return append(all, s.MoreSources...), err
}

// sourceOptions returns the default locations that the configuration selects.
func (s *Setup) sourceOptions(c *config.Config) *sources.Options {
	return &sources.Options{WorkDir: s.ConfigInput().WorkDir, Home: s.Home(), NoHome: !c.Skills.Home, NoProject: !c.Skills.Project, NoBundled: !c.Skills.Bundled,
		Depth: c.Skills.Depth, CacheDir: s.CacheDir()}
}

// flagLocations returns the locations given with --skills. Each must exist.
func (s *Setup) flagLocations(scope catalog.Scope) ([]sources.Location, error) {
	var out []sources.Location
	for _, d := range s.Skills {
		path, err := filepath.Abs(d)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			code, hint := exit.FileHint(err, "the path given with --skills")
			return nil, exit.Errorf(code, hint, "%s: %w", d, fileerror.Cause(err))
		}
		out = append(out, sources.Location{Path: path, Scope: scope})
	}
	return out, nil
}

// HubSources returns the skill directories of a hub: those given with --skills
// or, without that flag, those in skills.dirs and, if single is set, the user's
// own. single means that the hub serves only this user. Project files have no
// effect.
func (s *Setup) HubSources(c *config.Config, single bool) ([]catalog.Source, error) {
	o := &sources.Options{WorkDir: string(filepath.Separator), Home: s.Home(), NoHome: !single || !c.Skills.Home, NoProject: true, NoBundled: true,
		Depth: c.Skills.Depth, CacheDir: s.CacheDir()}
	for _, d := range c.Skills.Dirs {
		if c.ProjectOf(d) == "" {
			o.Extra = append(o.Extra, sources.Location{Path: d, Scope: catalog.User})
		}
	}
	if len(s.Skills) > 0 {
		var err error
		if o.Extra, err = s.flagLocations(catalog.User); err != nil {
			return nil, err
		}
		o.NoHome = true
	}
	return sources.New(o)
}

// catalogFilter returns the configured skill filter.
func catalogFilter(c *config.Config) catalog.Filter {
	return catalog.Filter{Disabled: !c.Skills.Enabled, Allow: c.Skills.Allow, Shell: c.Skills.Shell}
}

// sandboxCache returns the cache directory for sandboxes. It is "" for root: code
// runs as another user, who cannot read root's cache.
func (s *Setup) sandboxCache() string {
	if os.Geteuid() == 0 {
		return ""
	}
	return s.CacheDir()
}

// Candidates returns the sandbox backends with their settings.
func (s *Setup) Candidates(c *config.Config) []sandbox.Backend {
	return selection.Candidates(&selection.Settings{
		Cache: s.sandboxCache(),
		Image: c.Sandbox.Image,
		Allow: func(digest string) bool { return s.allowsUnsandboxed(digest) },
		Spare: s.Backends != nil,
	})
}

// allowsUnsandboxed reports whether the user allows code with the given digest
// to run without isolation.
func (s *Setup) allowsUnsandboxed(digest string) bool {
	g, err := s.GrantStore().Find(context.Background(), policy.LocalUser(), policy.Digest(digest), "")
	return err == nil && g.Permissions.Unsandboxed
}

// ProbeRecord returns the record of successful tests of sandboxes. It is nil if
// there is no state directory, and in managed mode, where the user must not
// decide how much a sandbox isolates.
func (s *Setup) ProbeRecord() *selection.Record {
	if d := s.StateDir(); d != "" && !s.IsManaged() {
		return selection.NewRecord(filepath.Join(d, "sandbox-probe.json"))
	}
	return nil
}

// NewBackend returns the configured sandbox backend, which is selected on first
// use. It is shared if s.Backends is set.
func (s *Setup) NewBackend(c *config.Config) *selection.Backend {
	o := selection.Options{Name: c.Sandbox.Backend, MinTier: sandbox.Tier(c.Sandbox.MinTier), Record: s.ProbeRecord()}
	if o.Name != "auto" && o.Name != "" && !c.IsSet("sandbox.min_tier") {
		o.MinTier = 0 // accept any tier of the named backend
	}
	create := func() *selection.Backend {
		o.Candidates = s.Candidates(c)
		return selection.New(&o)
	}
	if s.Backends == nil {
		return create()
	}
	return s.Backends.share(backendSettings{
		name: o.Name, minTier: o.MinTier, image: c.Sandbox.Image, cache: s.sandboxCache(), state: s.StateDir(), managed: o.Record == nil,
	}, create)
}

// scriptOptions returns the settings for running scripts, or nil if scripts are
// disabled.
func (s *Setup) scriptOptions(c *config.Config) (*loadout.Scripts, error) {
	if !c.Sandbox.Enabled {
		return nil, nil
	}
	out := &loadout.Scripts{
		Sandbox: s.NewBackend(c), Grants: s.GrantStore(), Audit: s.AuditLog(), Getenv: s.scriptEnv(c.Managed()), ReadServers: tools.ReadServersWith(s.ServerVariables(c)), Secret: s.SecretValue, Logger: s.Logger(),
		Bounds: PolicyBounds(c), Packages: s.PackageOptions(c), DirectWorkspace: c.Sandbox.DirectWorkspace,
	}
	var err error
	if out.PrivateNetworks, err = address.ParsePrefixes(c.Sandbox.Private); err != nil {
		return nil, exit.Errorf(exit.Usage, "write it as 10.1.2.0/24; see where it is set: loadout config show", "configuration: sandbox.private: %w", err)
	}
	out.ProtectedDirs = []string{config.UserFile(s.ConfigInput()), s.StateDir(), s.CacheDir()}
	if d := s.StateDir(); d != "" {
		out.FolderDir = filepath.Join(d, "work")
		out.HeldChangesDir = filepath.Join(d, "changes")
	}
	if d := s.CacheDir(); d != "" {
		out.CacheDir = d
	}
	if exe, err := os.Executable(); err == nil {
		out.Executable = exe
	}
	return out, nil
}

// PolicyBounds returns the maximum permissions that the configuration lets any
// skill have.
func PolicyBounds(c *config.Config) policy.Bounds {
	return policy.Bounds{Network: c.Sandbox.Network, Secrets: []string{"*"}, MemoryMB: c.Sandbox.MemoryMB, Seconds: c.Sandbox.Seconds,
		DiskMB: c.Sandbox.DiskMB, WorkspaceWrite: true}
}

// PackageOptions returns the settings for installing script packages, or nil if
// there is no cache directory.
func (s *Setup) PackageOptions(c *config.Config) *loadout.Packages {
	d := s.CacheDir()
	if d == "" {
		return nil
	}
	return &loadout.Packages{Dir: filepath.Join(d, "packages"), PythonIndex: c.Sandbox.PythonIndex, NPMRegistry: c.Sandbox.NPMRegistry, AllowSource: c.Sandbox.BuildScripts, Commands: c.Sandbox.Packages}
}
