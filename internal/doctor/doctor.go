// Package doctor diagnoses a setup: skill sources, the sandbox, MCP servers and
// secrets. It opens no connections and changes nothing. Its types are the JSON
// output of the doctor command.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/sandbox"
)

// Source describes a skill source.
type Source struct {
	Origin   string        `json:"origin"`
	Scope    catalog.Scope `json:"scope"`
	Path     string        `json:"path"`
	Exists   bool          `json:"exists"`
	Skills   int           `json:"skills"`
	Problems int           `json:"problems"`
}

// Sources returns a catalog's sources with the number of skills and problems in
// each.
func Sources(c *catalog.Catalog) []Source {
	snap := c.Snapshot()
	skills, problems := map[string]int{}, map[string]int{} // counts by origin
	for e := range snap.All() {
		skills[e.Origin]++
	}
	for _, p := range snap.Problems() {
		problems[p.Origin]++
	}
	out := []Source{}
	for _, src := range c.Sources() {
		s := Source{Origin: src.Origin(), Scope: src.Scope(), Exists: true, Skills: skills[src.Origin()], Problems: problems[src.Origin()]}
		if at, ok := src.(interface{ Root() string }); ok {
			s.Path = at.Root()
			_, err := os.Stat(s.Path)
			s.Exists = err == nil
		}
		out = append(out, s)
	}
	return out
}

// Oversized describes a skill that is too large for some MCP clients.
type Oversized struct {
	Name, Path string
	Files      int
	Bytes      int64
}

// OversizedSkills returns the skills that have more files or bytes than MCP
// clients are required to accept. It omits skills whose paths are in known.
func OversizedSkills(ctx context.Context, c *catalog.Catalog, known []string) []Oversized {
	var out []Oversized
	for e := range c.Snapshot().All() {
		if slices.Contains(known, e.Path) {
			continue
		}
		m, err := c.ListFiles(ctx, e)
		if err == nil && (len(m) > skillfile.PortableFiles || m.Size() > skillfile.PortableBytes) {
			out = append(out, Oversized{e.Name, e.Path, len(m), m.Size()})
		}
	}
	return out
}

// Sandbox describes the sandbox for scripts.
type Sandbox struct {
	Enabled bool            `json:"enabled"`
	Backend string          `json:"backend"` // "" if no backend is usable
	Tier    int             `json:"tier"`
	Layers  []sandbox.Layer `json:"layers"`
	Missing []string        `json:"missing"` // reasons why no backend is usable
	Fixes   []string        `json:"fixes"`   // steps that make a backend usable
}

// probeTimeout is the time limit for testing the sandboxes. A working sandbox
// responds within 0.1 seconds.
const probeTimeout = 5 * time.Second

// CheckSandbox tests the available sandboxes. choose returns the best one; if
// choose is nil, sandboxes are disabled. minTier is the configured minimum
// tier.
func CheckSandbox(ctx context.Context, choose func(context.Context) (sandbox.Backend, *sandbox.Report, error), minTier sandbox.Tier) Sandbox {
	out := Sandbox{Enabled: choose != nil, Layers: []sandbox.Layer{}, Missing: []string{}, Fixes: []string{}}
	if choose == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	b, report, err := choose(ctx)
	if err == nil {
		out.Backend, out.Tier, out.Layers = b.Name(), int(report.Tier), append(out.Layers, report.Layers...)
		return out
	}
	none, ok := errors.AsType[*selection.NoBackendError](err)
	if !ok {
		out.Missing = append(out.Missing, err.Error())
		return out
	}
	for _, o := range none.Outcomes {
		out.Missing = append(out.Missing, o.Err.Error())
	}
	if len(none.Outcomes) == 0 {
		out.Missing = append(out.Missing, fmt.Sprintf("no backend reaches tier %v, the value of sandbox.min_tier", minTier))
	}
	out.Fixes = append(out.Fixes, none.Fixes()...)
	return out
}

// Servers describes the user's MCP servers.
type Servers struct {
	Files         []ServerFile `json:"files"` // files with active servers
	Count         int          `json:"count"`
	NotConfigured []Server     `json:"not_configured"`
	Problems      []string     `json:"problems"`
}

// ServerFile describes a file that configures MCP servers.
type ServerFile struct {
	Path    string `json:"path"`
	Servers int    `json:"servers"`
}

// Server describes an MCP server that cannot be started.
type Server struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Problem string `json:"problem"` // variables without a value, and how to set them
}

// CheckServers reports servers whose variables have no value. problems lists
// problems from reading the configuration.
func CheckServers(all []*upstream.Config, problems []string, v upstream.Variables) Servers {
	out := Servers{Files: []ServerFile{}, Count: len(all), NotConfigured: []Server{}, Problems: append([]string{}, problems...)}
	for _, s := range all {
		i := slices.IndexFunc(out.Files, func(f ServerFile) bool { return f.Path == s.File })
		if i < 0 {
			i = len(out.Files)
			out.Files = append(out.Files, ServerFile{Path: s.File})
		}
		out.Files[i].Servers++
		if s.Disabled {
			continue
		}
		known := v
		if s.Owner != "" { // a trusted project's servers do not receive the user's variables
			known = upstream.Variables{User: v.User, Workspace: v.Workspace, HowToSet: v.HowToSet}
		}
		if _, unset := s.Resolve(known); len(unset) > 0 {
			out.NotConfigured = append(out.NotConfigured, Server{s.Name, s.File, upstream.JoinUnset(unset)})
		}
	}
	return out
}

// Secrets describes the store of the user's secrets.
type Secrets struct {
	Count   int    `json:"count"`
	Problem string `json:"problem"` // why the secrets cannot be read, or ""
}

// CheckSecrets counts the stored secrets, or reports why they cannot be read.
func CheckSecrets(s *secrets.Store) Secrets {
	list, err := s.List()
	if err != nil {
		return Secrets{Problem: err.Error()}
	}
	return Secrets{Count: len(list)}
}
