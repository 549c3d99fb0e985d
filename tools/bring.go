package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// Brought is what came of bringing the tools of skills.
type Brought struct {
	Tools    []Tool
	Problems []string // which servers failed and why, for the model and the person
}

// Bring connects the servers and providers of skills, in parallel and under one
// deadline, and returns the tools that can be called now. It never fails as a
// whole: what is wrong with one server is a problem, the others are there. What
// is still connecting at the deadline goes on in the background.
//
// Calls at the same time for one skill share its connections. What is brought so
// stays until its leave ends; a conversation that loads and unloads has a [Hold].
func (s *Set) Bring(ctx context.Context, entries []*catalog.Entry) *Brought {
	s.mu.Lock()
	for _, e := range entries {
		s.shared[e.Key()] = true
	}
	s.mu.Unlock()
	return s.bringAll(ctx, entries)
}

func (s *Set) bringAll(ctx context.Context, entries []*catalog.Entry) *Brought {
	out := &Brought{}
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
				sv.Retry() // a load is asked for: what was broken may be mended
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

// connect connects a server and lists its tools. The problem is "" where all is
// well.
func (s *Set) connect(ctx context.Context, sv *server) ([]Tool, string) {
	if sv.Server == nil {
		return nil, "MCP server " + sv.name + " is " + missing(sv.unset)
	}
	began := time.Now()
	l, err := sv.Tools(ctx)
	if err != nil {
		problem := fmt.Sprintf("MCP server %s: %v", sv.name, err)
		if ctx.Err() != nil {
			problem = fmt.Sprintf("MCP server %s did not answer in %v; it is tried further: ask find_tools for its tools later", sv.name, time.Since(began).Round(time.Second))
		}
		return nil, problem
	}
	return s.listed(sv, l), problems(s.screen(sv, l).problem, s.check(sv, l))
}

// problems joins those that there are.
func problems(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(p string) bool { return p == "" }), "; ")
}

// check compares the tools that a configuration names with those there are.
func (s *Set) check(sv *server, l *upstream.Listing) string {
	var gone []string
	for _, name := range sv.config.Tools {
		if !slices.ContainsFunc(l.Tools, func(t *mcp.Tool) bool { return t.Name == name }) {
			gone = append(gone, name)
		}
	}
	odd := slices.Clone(l.Problems)
	if len(gone) > 0 {
		odd = append(odd, "it does not have "+strings.Join(gone, ", ")+", which its configuration names")
	}
	if len(odd) == 0 {
		return ""
	}
	return "MCP server " + sv.name + ": " + strings.Join(odd, "; ")
}

// serversOf are the servers that a skill means: those that it names of the
// person's or the profile's, those that it defines, and its provider.
func (s *Set) serversOf(ctx context.Context, e *catalog.Entry) ([]*server, []string) {
	sk, src, err := s.opts.Skills.Catalog().Read(ctx, e)
	if err != nil {
		return nil, []string{err.Error()}
	}
	var servers []*server
	var problems []string
	if sk.MCPServers.Configs == nil {
		for _, name := range sk.MCPServers.Names {
			sv := s.named(name)
			if sv == nil {
				problems = append(problems, fmt.Sprintf("it names the MCP server %q, which nobody defines: define it in your configuration (loadout servers --help)", name))
				continue
			}
			servers = append(servers, sv)
		}
	}
	sk, loans, skipped := s.borrow(ctx, e, sk)
	problems = append(problems, skipped...)
	if sk.MCPServers.Configs == nil && sk.Provider == nil && len(loans) == 0 {
		return servers, problems
	}
	own, more := s.bring(ctx, e, sk, loans, skill.Hash(src))
	return append(servers, own...), append(problems, more...)
}

func (s *Set) named(name string) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sv := range s.own {
		if sv.name == name {
			return sv
		}
	}
	return nil
}

// bring returns the servers that a skill defines, and those of tools that it has
// on loan. They start only with leave for the skills as they are now, and end with
// it. hash is that of its SKILL.md.
func (s *Set) bring(ctx context.Context, e *catalog.Entry, sk *skill.Skill, loans []loan, hash string) ([]*server, []string) {
	b := &bundle{key: e.Key(), version: hash}
	problems := s.leaves(ctx, b, e, sk, &loans)
	if len(problems) > 0 && len(b.leaves) == 0 && len(loans) == 0 {
		s.drop(e.Key(), nil)
		return nil, problems
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		b.release()
		return nil, []string{ErrClosed.Error()}
	}
	if have := s.brought[e.Key()]; have != nil && have.version == b.version {
		s.mu.Unlock()
		b.release()
		return have.servers, problems
	}
	s.mu.Unlock()
	problems = append(problems, s.fill(ctx, b, e, sk, loans)...)
	kept, clashes := s.keep(e.Key(), b)
	return kept.servers, append(problems, clashes...)
}

// needsLeave reports whether anything of a skill, or on loan to it, is not the
// person's or the program's.
func needsLeave(sk *skill.Skill, loans []loan) bool {
	return sk.MCPServers.Configs != nil || sk.Provider != nil || slices.ContainsFunc(loans, func(l loan) bool { return l.entry != nil })
}

// leaves asks for leave to start what the skill defines, and the providers that it
// uses; those without it are taken out of the loans.
func (s *Set) leaves(ctx context.Context, b *bundle, e *catalog.Entry, sk *skill.Skill, loans *[]loan) []string {
	if !needsLeave(sk, *loans) {
		return nil // all of it is the program's
	}
	if s.opts.Permit == nil {
		*loans = nil
		return []string{"the servers that it brings are not started here"}
	}
	leave, err := s.opts.Permit(ctx, e)
	if err != nil {
		*loans = nil
		return []string{"its MCP servers and providers are not started: " + err.Error()}
	}
	b.leaves, b.version = append(b.leaves, leave), b.version+" "+string(leave.Digest)
	var problems []string
	var usable []loan
	for _, l := range *loans {
		if l.entry != nil {
			if l.leave, err = s.opts.Permit(ctx, l.entry); err != nil {
				problems = append(problems, fmt.Sprintf("its tools of provider %s, which skill %s has, are skipped: %v", l.provider, l.entry.Name, err))
				continue
			}
			b.leaves, b.version = append(b.leaves, l.leave), b.version+" "+string(l.leave.Digest)
		}
		usable = append(usable, l)
	}
	*loans = usable
	return problems
}

// fill opens the servers of a bundle, and returns what is wrong with others. The
// first of its leaves, where there is one, is that of the skill itself.
func (s *Set) fill(ctx context.Context, b *bundle, e *catalog.Entry, sk *skill.Skill, loans []loan) []string {
	var problems []string
	add := func(c *upstream.Config, of string, leave *Leave, settings map[string]any) {
		name := e.Name
		if of != "" {
			name += "_" + of
		}
		if s.named(name) != nil {
			problems = append(problems, fmt.Sprintf("its MCP server %s is left out: you have one of that name, and your rules are for yours", name))
			return
		}
		c.Name = name
		v := upstream.Variables{Skill: sandbox.SkillDir}
		if leave != nil {
			v.User, v.Secret = leave.User, leave.Secret
		}
		sv := s.open(name, e.Name, c, v)
		sv.bundle, sv.settings = b, settings
		b.servers = append(b.servers, sv)
	}
	if sk.MCPServers.Configs != nil || sk.Provider != nil {
		configs, wrong := s.defined(ctx, e, sk)
		problems = append(problems, wrong...)
		for _, c := range configs {
			c.Owner = e.Key() + "@" + string(b.leaves[0].Digest)
			add(c, c.Name, b.leaves[0], nil)
		}
	}
	for _, l := range loans {
		c, settings, notes, err := s.configured(ctx, &l, sk)
		problems = append(problems, notes...)
		if err != nil {
			problems = append(problems, fmt.Sprintf("its tools of provider %s: %v", l.provider, err))
			continue
		}
		if l.entry != nil {
			c.Owner = l.entry.Key() + "@" + string(l.leave.Digest)
		}
		add(c, l.provider, l.leave, settings)
	}
	return problems
}

// defined are the servers in a skill's frontmatter and that of its provider.
func (s *Set) defined(ctx context.Context, e *catalog.Entry, sk *skill.Skill) ([]*upstream.Config, []string) {
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
	if sk.Provider != nil && s.opts.Provide != nil {
		c, notes, err := s.opts.Provide(ctx, e, sk)
		problems = append(problems, notes...)
		if err != nil {
			return configs, append(problems, "its provider: "+err.Error())
		}
		configs = append(configs, c)
	}
	return configs, problems
}

// keep makes b what the skill brought, and returns what is: that of a load at the
// same time where it was faster. It is dropped when its leave ends. A server whose
// name one of another skill has is left out, and said: rules go by names.
func (s *Set) keep(key string, b *bundle) (*bundle, []string) {
	s.mu.Lock()
	problems := s.apart(b)
	old := s.brought[key]
	if s.closed || old != nil && old.version == b.version {
		s.mu.Unlock()
		b.release()
		if old == nil {
			old = &bundle{}
		}
		return old, problems
	}
	s.brought[key] = b
	for _, l := range b.leaves {
		if l.Ended != nil {
			s.running.Go(func() {
				<-l.Ended // Release ends it too
				s.drop(key, b)
			})
		}
	}
	s.mu.Unlock()
	if old != nil { // of other bytes
		old.end()
	}
	return b, problems
}

// apart takes the servers out of b whose names other skills have. s.mu is held.
func (s *Set) apart(b *bundle) []string {
	var problems []string
	b.servers = slices.DeleteFunc(b.servers, func(sv *server) bool {
		for key, other := range s.brought {
			if key == b.key || !slices.ContainsFunc(other.servers, func(o *server) bool { return o.name == sv.name }) {
				continue
			}
			problems = append(problems, fmt.Sprintf("its MCP server %s is left out: the skill %s has one of that name", sv.name, other.servers[0].skill))
			sv.release()
			return true
		}
		return false
	})
	return problems
}

// drop takes back what a skill brought: b, or anything where b is nil.
func (s *Set) drop(key string, b *bundle) {
	s.mu.Lock()
	have := s.brought[key]
	if have == nil || b != nil && have != b {
		s.mu.Unlock()
		return
	}
	delete(s.brought, key)
	s.mu.Unlock()
	have.end()
}

// end takes back what was brought, and ends its connections: nobody else may use
// them either.
func (b *bundle) end() {
	for _, sv := range b.servers {
		if sv.Server != nil {
			sv.Close()
		}
	}
	b.release()
}
