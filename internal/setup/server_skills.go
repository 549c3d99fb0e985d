package setup

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// serverSkills returns the sources of the skills that the user's MCP servers
// publish, for servers with skills: ask or allow. Servers of projects and skills
// have none, because only the user decides whose instructions agents read. If
// wait is set, a source lists the skills of a server that has no stored listing
// before it returns; otherwise it does so in the background.
func (s *Setup) serverSkills(c *config.Config, wait bool) []catalog.Source {
	if !c.Skills.Enabled || len(s.Skills) > 0 && len(s.ServerFiles) == 0 {
		return nil
	}
	servers, _, err := s.ReadServers(c, s.ServerFiles)
	if err != nil {
		return nil // NewToolset reports it
	}
	cache := ""
	if d := s.CacheDir(); d != "" {
		cache = filepath.Join(d, "server-skills")
	}
	digests := map[*upstream.Config]string{}
	for _, server := range servers {
		digests[server] = server.Digest() // before ExtendTimeouts changes the timeouts
	}
	spawn.ExtendTimeouts(servers, time.Duration(c.Servers.Deadline)*time.Second)
	var out []catalog.Source
	var kept []string
	names := map[string]string{} // server names by label
	for _, server := range servers {
		if server.Owner != "" || !server.PublishesSkills() {
			continue
		}
		label := server.SkillLabel()
		if label == "" {
			s.Note("skills of MCP server %s ignored: no label can be derived from its name; add a label to its configuration", server.Name)
			continue
		}
		if other, taken := names[label]; taken {
			s.Note("skills of MCP server %s ignored: its label %s is that of %s; add another label to its configuration", server.Name, label, other)
			continue
		}
		names[label] = server.Name
		o := serverskill.Options{Label: label, Name: server.Name, Ask: server.Skills != upstream.SkillsAllow, Wait: wait, Logger: s.Logger(), Cache: &serverskill.Cache{},
			Limits: server.SkillLimits}
		if cache != "" {
			o.Cache.Dir = serverskill.CacheDir(cache, label, digests[server])
			kept = append(kept, o.Cache.Dir)
		}
		o.Connector = serverskill.OwnConnection(s.newDialer(c, s.ServerFiles), func() (*upstream.Config, error) {
			resolved, unset := server.Resolve(s.ServerVariables(c))
			if resolved == nil {
				return nil, fmt.Errorf("server %q is not configured: %s", server.Name, upstream.JoinUnset(unset))
			}
			return resolved, nil
		})
		out = append(out, serverskill.New(o))
	}
	if cache != "" && len(s.ServerFiles) == 0 { // otherwise the servers of other commands are unknown
		if err := serverskill.RemoveCaches(cache, kept); err != nil {
			s.Note("couldn't remove the cached skills of removed servers: %v", err)
		}
	}
	return out
}

// newDialer returns a dialer for the user's servers. given are the files of
// --mcp-config.
func (s *Setup) newDialer(c *config.Config, given []string) *upstream.Dialer {
	private, _ := address.ParsePrefixes(c.Sandbox.Private) // scriptOptions reports invalid ones
	return &upstream.Dialer{OAuth: s.NewOAuthHandler(given), Spawn: s.spawnInServerDir(spawn.New(nil).Start), Logger: s.Logger(), Private: private,
		Client: mcp.Implementation{Name: "loadout", Title: "Loadout", Version: ReadVersion().Version}}
}

// shareConnections makes the sources of server skills in rt use the connections
// of the toolset. stop ends that; it must be called before the toolset is closed.
func (t *Toolset) shareConnections(rt *loadout.Runtime) (stop func()) {
	var ends []func()
	pool := toolset.Pool(t.Set)
	for _, src := range rt.Catalog().Sources() {
		source, ok := src.(*serverskill.Source)
		if !ok {
			continue
		}
		resolved := t.ResolvedConfig(source.Name())
		if resolved == nil {
			continue
		}
		server := pool.Server(resolved, "")
		source.SetConnector(serverskill.SharedConnection(server))
		ends = append(ends, func() { source.SetConnector(nil); server.Release() }, serverskill.ListWhenConnected(pool, server, source))
	}
	return func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
}

// Close closes the connections of the toolset.
func (t *Toolset) Close() error {
	if t.unshare != nil {
		t.unshare()
	}
	return t.Set.Close()
}
