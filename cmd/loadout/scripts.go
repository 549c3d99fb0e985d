package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/tools"
)

// stateDir returns the directory for decisions of the user and other state, or
// "" if there is none.
func (a *app) stateDir() string {
	if d := a.Getenv("LOADOUT_STATE"); d != "" {
		return d
	}
	if d := a.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := a.home(); h != "" {
		return filepath.Join(h, ".local", "state", "loadout")
	}
	return ""
}

// grantStore returns the store of the user's approvals.
func (a *app) grantStore() policy.Store {
	if d := a.stateDir(); d != "" {
		return policy.NewFileStore(filepath.Join(d, "grants"))
	}
	return &policy.MemoryStore{}
}

func (a *app) auditLog() loadout.Auditor {
	if d := a.stateDir(); d != "" {
		return audit.New(filepath.Join(d, "audit.jsonl"))
	}
	return nil
}

// candidates returns the sandbox back ends with their settings.
func (a *app) candidates(c *config.Config) []sandbox.Backend {
	cache := a.cacheDir()
	if os.Geteuid() == 0 {
		cache = "" // code runs as another user, who cannot read this cache
	}
	return auto.Candidates(&auto.Settings{
		Cache: cache,
		Image: c.Sandbox.Image,
		Allow: func(digest string) bool { return a.allowsUnsandboxed(digest) },
	})
}

// allowsUnsandboxed reports whether the user allows a digest to run without
// isolation.
func (a *app) allowsUnsandboxed(digest string) bool {
	g, err := a.grantStore().Find(context.Background(), policy.LocalUser(), policy.Digest(digest), "")
	return err == nil && g.Permissions.Unsandboxed
}

// newBackend returns the configured sandbox back end. It is chosen on first
// use.
func (a *app) newBackend(c *config.Config) *auto.Backend {
	o := &auto.Options{Candidates: a.candidates(c), Name: c.Sandbox.Backend, MinTier: sandbox.Tier(c.Sandbox.MinTier)}
	if o.Name != "auto" && o.Name != "" && !c.IsSet("sandbox.min_tier") {
		o.MinTier = 0 // accept the tier of the named back end
	}
	return auto.New(o)
}

// scriptOptions returns what the runtime needs to run scripts, or nil if
// scripts are disabled.
func (a *app) scriptOptions(c *config.Config) (*loadout.Scripts, error) {
	if !c.Sandbox.Enabled {
		return nil, nil
	}
	s := &loadout.Scripts{
		Sandbox: a.newBackend(c), Grants: a.grantStore(), Audit: a.auditLog(), Getenv: a.Getenv, ReadServers: tools.ReadServers, Secret: a.secretValue, Logger: a.logger(),
		Bounds: policyBounds(c), Packages: a.packageOptions(c),
	}
	for _, p := range c.Sandbox.Private {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			if addr, e := netip.ParseAddr(p); e == nil {
				prefix, err = addr.Prefix(addr.BitLen())
			}
		}
		if err != nil {
			return nil, exit.Errorf(exit.Usage, "write it as 10.1.2.0/24; see where it is set: loadout config show", "configuration: sandbox.private: %w", err)
		}
		s.PrivateNetworks = append(s.PrivateNetworks, prefix)
	}
	s.ProtectedDirs = []string{config.UserFile(a.configInput()), a.stateDir(), a.cacheDir()}
	if d := a.stateDir(); d != "" {
		s.FolderDir = filepath.Join(d, "work")
	}
	if d := a.cacheDir(); d != "" {
		s.CacheDir = d
	}
	if exe, err := os.Executable(); err == nil {
		s.Executable = exe
	}
	return s, nil
}

// policyBounds returns the maximum permissions of any skill.
func policyBounds(c *config.Config) policy.Bounds {
	return policy.Bounds{Network: c.Sandbox.Network, Secrets: []string{"*"}, MemoryMB: c.Sandbox.MemoryMB, Seconds: c.Sandbox.Seconds,
		DiskMB: c.Sandbox.DiskMB, WorkspaceWrite: true}
}

// packageOptions returns the settings for installing packages of scripts, or
// nil if there is no cache directory.
func (a *app) packageOptions(c *config.Config) *loadout.Packages {
	d := a.cacheDir()
	if d == "" {
		return nil
	}
	return &loadout.Packages{Dir: filepath.Join(d, "packages"), PythonIndex: c.Sandbox.PythonIndex, NPMRegistry: c.Sandbox.NPMRegistry, AllowSource: c.Sandbox.BuildScripts}
}
