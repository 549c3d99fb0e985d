package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/auto"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// stateDir is where what a person decided is kept, "" where there is no place
// for it.
func (a *app) stateDir() string {
	if d := a.getenv("LOADOUT_STATE"); d != "" {
		return d
	}
	if d := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "loadout")
	}
	if h := a.home(); h != "" {
		return filepath.Join(h, ".local", "state", "loadout")
	}
	return ""
}

// grants are the approvals of this person, kept in files.
func (a *app) grants() policy.Store {
	if d := a.stateDir(); d != "" {
		return policy.NewFiles(filepath.Join(d, "grants"))
	}
	return &policy.Memory{}
}

func (a *app) audit() loadout.Auditor {
	if d := a.stateDir(); d != "" {
		return policy.NewAudit(filepath.Join(d, "audit.jsonl"))
	}
	return nil
}

// candidates are the back ends as the configuration adjusts them.
func (a *app) candidates(c *config.Config) []sandbox.Backend {
	cache := a.cacheDir()
	if os.Geteuid() == 0 {
		cache = "" // code runs as another user, who reaches the back end's own place
	}
	return auto.Candidates(&auto.Settings{
		Cache: cache,
		Image: c.Sandbox.Image,
		Allow: func(digest string) bool { return a.unsandboxed(digest) },
	})
}

// unsandboxed reports whether this person lets a digest run without isolation.
func (a *app) unsandboxed(digest string) bool {
	g, err := a.grants().Find(context.Background(), policy.Local(), policy.Digest(digest), "")
	return err == nil && g.Allows.Unsandboxed
}

// backend is what the configuration chooses, when it is first needed.
func (a *app) backend(c *config.Config) *auto.Chosen {
	o := &auto.Options{Candidates: a.candidates(c), Name: c.Sandbox.Backend, MinTier: sandbox.Tier(c.Sandbox.MinTier)}
	if o.Name != "auto" && o.Name != "" && !c.IsSet("sandbox.min_tier") {
		o.MinTier = 0 // as much as that one has
	}
	return auto.New(o)
}

// skillServersOf reads the servers of a skill by the parser that reads them when
// they are started.
func skillServersOf(configs json.RawMessage, file string) ([]loadout.WishedService, error) {
	f, findings := upstream.ParseMap(configs, file)
	var wrong []string
	for _, d := range findings {
		if d.Severity == skill.Error {
			wrong = append(wrong, d.Message)
		}
	}
	if n := len(wrong); n > 0 {
		text := strings.Join(wrong[:min(n, 3)], "; ")
		if n > 3 {
			text += fmt.Sprintf("; and %d more", n-3)
		}
		return nil, errors.New(text)
	}
	var out []loadout.WishedService
	for _, c := range f.Servers {
		out = append(out, wishedOf(c))
	}
	return out, nil
}

// wishedOf is a server as a person is shown it.
func wishedOf(c *upstream.Config) loadout.WishedService {
	w := loadout.WishedService{Name: c.Name, Env: slices.Sorted(maps.Keys(c.Env))}
	if c.Command != "" {
		w.Command = append([]string{c.Command}, c.Args...)
	}
	for _, u := range c.URLs {
		if h := (&upstream.Config{URLs: []string{u}}).Target(); !slices.Contains(w.Hosts, h) {
			w.Hosts = append(w.Hosts, h)
		}
	}
	for _, u := range c.Uses() {
		w.Variables = append(w.Variables, loadout.WishedVariable{Kind: u.Kind, Name: u.Name, Where: u.Where, Target: u.Target})
	}
	return w
}

// variableText says where the value of a variable goes, or that there is none.
func variableText(v loadout.WishedVariable) string {
	name := v.Name
	switch v.Kind {
	case upstream.FromSecret:
		name = "secrets." + name
	case upstream.FromUser:
		name = "user." + name
	case upstream.FromInput:
		name = "input:" + name
	}
	if !v.Given {
		return "asks for " + name + ", which it does not get"
	}
	where := v.Where
	if !strings.Contains(where, " ") {
		where = "the " + where
	}
	return fmt.Sprintf("%s, in %s, to %s", name, where, v.Target)
}

// variableTexts are those of all variables, each once.
func variableTexts(vars []loadout.WishedVariable) []string {
	var out []string
	for _, v := range vars {
		if text := variableText(v); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// scripts is what the runtime needs to run scripts, nil where that is switched
// off.
func (a *app) scripts(c *config.Config) (*loadout.Scripts, error) {
	if !c.Sandbox.Enabled {
		return nil, nil
	}
	s := &loadout.Scripts{
		Sandbox: a.backend(c), Grants: a.grants(), Audit: a.audit(), Getenv: a.getenv, Servers: skillServersOf, Secret: a.secret, Logger: a.logger(),
		Bounds: boundsOf(c), Packages: a.packages(c),
	}
	for _, p := range c.Sandbox.Private {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			if addr, e := netip.ParseAddr(p); e == nil {
				prefix, err = addr.Prefix(addr.BitLen())
			}
		}
		if err != nil {
			return nil, fail(exitUsage, "write it as 10.1.2.0/24; see where it is set: loadout config show", "configuration: sandbox.private: %w", err)
		}
		s.Private = append(s.Private, prefix)
	}
	s.Protected = []string{config.UserFile(a.configInput()), a.stateDir(), a.cacheDir()}
	if d := a.stateDir(); d != "" {
		s.Folders = filepath.Join(d, "work")
	}
	if d := a.cacheDir(); d != "" {
		s.Cache = d
	}
	if exe, err := os.Executable(); err == nil {
		s.Command = exe
	}
	return s, nil
}

// boundsOf are the most that any skill is given.
func boundsOf(c *config.Config) policy.Bounds {
	return policy.Bounds{Network: c.Sandbox.Network, Secrets: []string{"*"}, MemoryMB: c.Sandbox.MemoryMB, Seconds: c.Sandbox.Seconds,
		DiskMB: c.Sandbox.DiskMB, WorkspaceWrite: true}
}

// packages is how what scripts need is installed, nil where there is no place for it.
func (a *app) packages(c *config.Config) *loadout.Packages {
	d := a.cacheDir()
	if d == "" {
		return nil
	}
	return &loadout.Packages{Dir: filepath.Join(d, "packages"), PythonIndex: c.Sandbox.PythonIndex, NPMRegistry: c.Sandbox.NPMRegistry, AllowSource: c.Sandbox.BuildScripts}
}
