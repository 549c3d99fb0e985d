package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// ConnectSkills connects the servers and providers of skills concurrently and
// returns the callable tools. It waits up to [Options.Deadline]; slower servers
// continue to connect in the background. If individual servers fail or a skill
// is not approved, the result lists them as problems. The result is never nil.
//
// Concurrent calls for the same skill share its connections. The servers remain
// available until the permission ends or the set is closed. Conversations that
// load and unload skills should use [Set.ForSession] instead.
func (s *Set) ConnectSkills(ctx context.Context, entries []*catalog.Entry) *ToolList {
	s.mu.Lock()
	for _, e := range entries {
		s.persistent[e.Key()] = true
	}
	s.mu.Unlock()
	return s.connectSkills(ctx, entries)
}

func (s *Set) connectSkills(ctx context.Context, entries []*catalog.Entry) *ToolList {
	out := &ToolList{}
	var wanted []*server
	for _, e := range entries {
		servers, problems := s.serversOf(ctx, e)
		out.Problems = append(out.Problems, problems...)
		wanted = append(wanted, servers...)
	}
	if len(wanted) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Deadline)
	defer cancel()
	type answer struct {
		tools   []Tool
		problem string
	}
	answers := make([]answer, len(wanted))
	var running sync.WaitGroup
	for i, sv := range wanted {
		running.Go(func() {
			if sv.Server != nil {
				sv.Retry() // the user loads the skill again, and the server may work by now
			}
			answers[i].tools, answers[i].problem = s.connect(ctx, sv)
		})
	}
	running.Wait()
	for _, a := range answers {
		out.Tools = append(out.Tools, a.tools...)
		if a.problem != "" {
			out.Problems = append(out.Problems, a.problem)
		}
	}
	return out
}

// connect connects to a server and lists its tools. The problem is "" on
// success.
func (s *Set) connect(ctx context.Context, sv *server) ([]Tool, string) {
	if sv.Server == nil {
		return nil, sv.notConfigured()
	}
	began := time.Now()
	l, err := sv.Tools(ctx)
	if err != nil {
		problem := err.Error()
		if !strings.Contains(problem, fmt.Sprintf("server %q", sv.name)) {
			problem = "MCP server " + sv.name + ": " + problem
		}
		if ctx.Err() != nil {
			problem = fmt.Sprintf("MCP server %s did not answer within %v; still connecting: search for its tools later with find_tools", sv.name, time.Since(began).Round(time.Second))
		}
		return nil, problem
	}
	listed, problem := s.listedTools(sv, l), joinProblems(s.screenListing(sv, l).problem, s.checkListing(sv, l))
	if sv.group == nil && sv.KeepsSummaries() { // so that the next process finds it
		s.summaryWithoutProblem(sv, denials(s.rules.Load().Denials()))
	}
	return listed, problem
}

// joinProblems joins the nonempty problems.
func joinProblems(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), "; ")
}

// checkListing returns the problems with a listing: those reported by the
// server, and configured tools that are missing from it.
func (s *Set) checkListing(sv *server, l *upstream.Listing) string {
	var gone []string
	for _, name := range sv.config.Tools {
		if !slices.ContainsFunc(l.Tools, func(t *mcp.Tool) bool { return t.Name == name }) {
			gone = append(gone, name)
		}
	}
	odd := slices.Clone(l.Problems)
	if len(gone) > 0 {
		odd = append(odd, "tools named in its configuration are missing: "+strings.Join(gone, ", "))
	}
	if len(odd) == 0 {
		return ""
	}
	return "MCP server " + sv.name + ": " + strings.Join(odd, "; ")
}

// serversOf returns a skill's servers: those that it references in the user's
// configuration or the profile, those that it defines, and its provider.
func (s *Set) serversOf(ctx context.Context, e *catalog.Entry) ([]*server, []string) {
	sk, src, err := s.rt.Catalog().Read(ctx, e)
	if err != nil {
		return nil, []string{err.Error()}
	}
	var servers []*server
	var problems []string
	if sk.MCPServers.Configs == nil {
		for _, name := range sk.MCPServers.Names {
			sv := s.ownServer(name)
			if sv == nil {
				problems = append(problems, fmt.Sprintf("MCP server %q is not defined: add it to your configuration (loadout servers --help)", name))
				continue
			}
			servers = append(servers, sv)
		}
	}
	sk, loans, skipped := s.borrowTools(ctx, e, sk)
	problems = append(problems, skipped...)
	if sk.MCPServers.Configs == nil && sk.Provider == nil && len(loans) == 0 {
		return servers, problems
	}
	own, more := s.openSkillServers(ctx, e, sk, loans, skillfile.Hash(src))
	return append(servers, own...), append(problems, more...)
}

func (s *Set) ownServer(name string) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.own {
		if sv.name == name {
			return sv
		}
	}
	return nil
}

// openSkillServers opens the servers that a skill defines, and the servers of the
// tools that it borrows from other skills. The current version of each of these
// skills needs permission; when a permission ends, the servers are closed. hash is
// the hash of the skill's SKILL.md.
func (s *Set) openSkillServers(ctx context.Context, e *catalog.Entry, sk *skill.Skill, loans []borrowedTools, hash string) ([]*server, []string) {
	b := &serverGroup{key: e.Key(), version: hash}
	problems := s.acquirePermissions(ctx, b, e, sk, &loans)
	if len(problems) > 0 && len(b.permissions) == 0 && len(loans) == 0 {
		s.removeGroup(e.Key(), nil)
		return nil, problems
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		b.release()
		return nil, []string{errClosed.Error()}
	}
	if have := s.groups[e.Key()]; have != nil && have.version == b.version {
		s.mu.Unlock()
		b.release()
		return have.servers, problems
	}
	s.mu.Unlock()
	problems = append(problems, s.openServers(ctx, b, e, sk, loans)...)
	kept, clashes := s.storeGroup(e.Key(), b)
	return kept.servers, append(problems, clashes...)
}

// needsPermission reports whether the skill has servers, a provider or borrowed
// tools that belong neither to the user nor to the embedding program.
func needsPermission(sk *skill.Skill, loans []borrowedTools) bool {
	return sk.MCPServers.Configs != nil || sk.Provider != nil || slices.ContainsFunc(loans, func(l borrowedTools) bool { return l.entry != nil })
}

// describeNotStarted returns a message saying that a skill's servers are not
// started. The message begins with what the user can do, because clients and
// models truncate messages.
func describeNotStarted(err error) string {
	const what = "its MCP servers and providers are not started: "
	if e, ok := errors.AsType[*notApprovedError](err); ok {
		return "the user can " + e.how + ": " + what + e.reason
	}
	return what + err.Error()
}

// acquirePermissions acquires permission for the servers that the skill defines
// and for the providers that it uses. It removes borrowed tools whose
// permission is denied.
func (s *Set) acquirePermissions(ctx context.Context, b *serverGroup, e *catalog.Entry, sk *skill.Skill, loans *[]borrowedTools) []string {
	if !needsPermission(sk, *loans) {
		return nil // everything belongs to the embedding program
	}
	granted, err := s.access.acquire(ctx, e)
	if err != nil {
		*loans = nil
		return []string{describeNotStarted(err)}
	}
	b.permissions, b.version = append(b.permissions, granted), b.version+" "+string(granted.digest)
	var problems []string
	var usable []borrowedTools
	for _, l := range *loans {
		if l.entry != nil {
			if l.permission, err = s.access.acquire(ctx, l.entry); err != nil {
				problems = append(problems, fmt.Sprintf("tools of provider %s of skill %s skipped: %v", l.provider, l.entry.Name, err))
				continue
			}
			b.permissions, b.version = append(b.permissions, l.permission), b.version+" "+string(l.permission.digest)
		}
		usable = append(usable, l)
	}
	*loans = usable
	return problems
}

// openServers opens a group's servers and returns the problems. The group's
// first permission, if any, is for the skill itself.
func (s *Set) openServers(ctx context.Context, b *serverGroup, e *catalog.Entry, sk *skill.Skill, loans []borrowedTools) []string {
	var problems []string
	add := func(c *upstream.Config, of string, granted *permission, settings map[string]any) {
		name := e.Name
		if of != "" {
			name += "_" + of
		}
		if s.ownServer(name) != nil {
			problems = append(problems, fmt.Sprintf("MCP server %s skipped: you have a server of that name, and your rules apply to yours", name))
			return
		}
		c.Name = name
		v := upstream.Variables{}
		if granted != nil {
			v = granted.values
		}
		v.Skill, v.HowToSet = mountpoint.Skill, s.opts.Variables.HowToSet
		sv := s.openServer(name, e.Name, c, v)
		sv.group, sv.settings = b, settings
		sv.isolated = granted != nil && granted.isolated && c.Type == upstream.Stdio && c.Owner != "" && sv.full != nil && len(sv.full.SecretValues()) == 0
		b.servers = append(b.servers, sv)
	}
	if sk.MCPServers.Configs != nil || sk.Provider != nil {
		configs, wrong := s.definedServers(ctx, e, sk)
		problems = append(problems, wrong...)
		for _, c := range configs {
			c.Owner = upstream.SkillOwner(e.Key(), string(b.permissions[0].digest))
			add(c, c.Name, b.permissions[0], nil)
		}
	}
	for _, l := range loans {
		c, settings, notes, err := s.borrowedConfig(ctx, &l, sk)
		problems = append(problems, notes...)
		if err != nil {
			problems = append(problems, fmt.Sprintf("tools of provider %s: %v", l.provider, err))
			continue
		}
		if l.entry != nil {
			c.Owner = upstream.SkillOwner(l.entry.Key(), string(l.permission.digest))
		}
		add(c, l.provider, l.permission, settings)
	}
	return problems
}

// definedServers returns the servers in a skill's frontmatter and its
// provider's server.
func (s *Set) definedServers(ctx context.Context, e *catalog.Entry, sk *skill.Skill) ([]*upstream.Config, []string) {
	var configs []*upstream.Config
	var problems []string
	if sk.MCPServers.Configs != nil {
		f, findings := upstream.ParseMap(sk.MCPServers.Configs, e.File())
		for _, d := range findings {
			if d.Severity == skill.Error {
				problems = append(problems, d.Message)
			}
		}
		configs = slices.DeleteFunc(f.Servers, func(c *upstream.Config) bool { return c.Disabled })
	}
	if sk.Provider != nil {
		c, notes, err := s.access.provide(ctx, e, sk)
		problems = append(problems, notes...)
		if err != nil {
			return configs, append(problems, "provider: "+err.Error())
		}
		configs = append(configs, c)
	}
	return configs, problems
}

// storeGroup stores b as the skill's group and returns the current group, which
// a concurrent load may have stored first. The group is removed when its
// permission ends. Servers whose names another skill already uses are skipped,
// because rules refer to names.
func (s *Set) storeGroup(key string, b *serverGroup) (*serverGroup, []string) {
	s.mu.Lock()
	problems := s.removeNameClashes(b)
	old := s.groups[key]
	if s.closed || old != nil && old.version == b.version {
		s.mu.Unlock()
		b.release()
		if old == nil {
			old = &serverGroup{}
		}
		return old, problems
	}
	s.groups[key] = b
	for _, l := range b.permissions {
		if l.done != nil {
			s.running.Go(func() {
				<-l.done // release closes it too
				s.removeGroup(key, b)
			})
		}
	}
	s.mu.Unlock()
	if old != nil { // a group for another version
		old.close()
	}
	return b, problems
}

// removeNameClashes removes the servers in b whose names other skills use. The
// caller must hold s.mu.
func (s *Set) removeNameClashes(b *serverGroup) []string {
	var problems []string
	b.servers = slices.DeleteFunc(b.servers, func(sv *server) bool {
		for key, other := range s.groups {
			if key == b.key || !slices.ContainsFunc(other.servers, func(o *server) bool { return o.name == sv.name }) {
				continue
			}
			problems = append(problems, fmt.Sprintf("MCP server %s skipped: skill %s has a server of that name", sv.name, other.servers[0].skill))
			sv.release()
			return true
		}
		return false
	})
	return problems
}

// removeGroup removes a skill's group if it is b, or any group if b is nil.
func (s *Set) removeGroup(key string, b *serverGroup) {
	s.mu.Lock()
	have := s.groups[key]
	if have == nil || b != nil && have != b {
		s.mu.Unlock()
		return
	}
	delete(s.groups, key)
	s.mu.Unlock()
	have.close()
}

// close closes the group's connections, for all their users, and releases its
// permissions.
func (b *serverGroup) close() {
	for _, sv := range b.servers {
		if sv.Server != nil {
			sv.Close()
		}
	}
	b.release()
}
