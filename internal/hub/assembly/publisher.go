package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// cachedSkillBytes is the maximum size of the files of a server's skills that a
// base keeps in memory.
const cachedSkillBytes = 2 << 20

// Publisher is an MCP server whose published skills a setup uses: a server of the
// operator, or an MCPServer document, with skills: ask or allow. It is safe for
// concurrent use. Its connections, and what it caches, belong to a user with the
// user's credentials for the server, so no user gets what the server showed to
// another.
type Publisher struct {
	// Label identifies the server in the names of its skills, and in the path of
	// its endpoint.
	Label  string
	Server agents.Server

	base      *base
	shared    *sharedSource
	source    *serverskill.Source // of shared
	skills    *visibleSkills      // source without the skills that the settings hide
	server    *upstream.Server    // nil if values of variables are missing
	unset     []upstream.UnsetVariable
	unwatched func() // unsubscribes from the pool
}

// planPublishers selects the servers whose skills are used. Servers that Ghosts,
// Bots and skills define are not among them.
func (p *plan) planPublishers() {
	byLabel := map[string][]agents.Server{}
	for _, s := range p.servers {
		if !s.PublishesSkills() || s.Kind != agents.ServerKind && s.Owner != "" {
			continue
		}
		label := s.SkillLabel()
		if !skillname.IsPortable(label) {
			p.problems = append(p.problems, fmt.Sprintf("skills of MCP server %s: not used: no label can be derived from its name; add a label to its configuration", s.Name))
			continue
		}
		byLabel[label] = append(byLabel[label], s)
	}
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		servers := byLabel[label]
		if len(servers) == 1 {
			p.publishers = append(p.publishers, servers[0])
			continue
		}
		for _, s := range servers { // use none, because one server could inherit the approvals of another
			p.problems = append(p.problems, fmt.Sprintf("skills of MCP server %s: not used: %d servers have the label %s; give each another label in its configuration", s.Name, len(servers), label))
		}
	}
}

// openPublishers opens the sources of the skills that servers publish. It connects
// to no server.
func (b *base) openPublishers(ctx context.Context) error {
	for _, s := range b.plan.publishers {
		p := &Publisher{Label: s.SkillLabel(), Server: s, base: b, unwatched: func() {}}
		resolved, unset := s.Resolve(b.plan.values[s.Name])
		if p.unset = unset; len(unset) == 0 {
			identity := "" // as for the tools of the server, which share the connection
			if s.Owner != "" || b.plan.stamps[s.Name] != "" {
				identity = b.key
			}
			p.server = b.assembler.pool.Server(resolved, identity)
		}
		b.publishers = append(b.publishers, p) // close releases it
		if err := p.openSource(resolved); err != nil {
			return err
		}
		p.skills = &visibleSkills{filteredSource: newFilteredSource(p.source, nil, nil), source: p.source}
		if p.server != nil {
			p.unwatched = serverskill.ListWhenConnected(b.assembler.pool, p.server, p.source)
		}
		if s.In.Group() == "" {
			continue
		}
		p.skills.setFilter(catalog.Filter{Disabled: true})
		if err := b.watchSettings(ctx, []store.Namespace{s.In}, func(f catalog.Filter) { p.skills.setFilter(f); b.signalChange() }); err != nil {
			return err
		}
	}
	return nil
}

// sharedSource is the source of a server's skills for all setups of a user with the same
// credentials for the server, so that they have the same entries.
type sharedSource struct {
	key    string
	source *serverskill.Source

	mu         sync.Mutex
	publishers []*Publisher // open ones
}

// openSource sets the source. resolved is the server's configuration with its variables
// resolved, or nil.
func (p *Publisher) openSource(resolved *upstream.Config) error {
	b := p.base
	text, err := json.Marshal([]any{b.principal.User, p.Label, p.Server.Skills, p.Server.SkillLimits, p.Server.Digest(), p.Server.ID, resolved, b.plan.stamps[p.Server.Name]})
	if err != nil {
		return fmt.Errorf("encode MCP server %q: %w", p.Server.Name, err)
	}
	sum := sha256.Sum256(text) // text includes secrets
	key := hex.EncodeToString(sum[:])
	k := b.assembler
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sources[key]
	if s == nil {
		s = &sharedSource{key: key}
		s.source = serverskill.New(serverskill.Options{Label: p.Label, Name: p.Server.Name, Ask: p.Server.Skills != upstream.SkillsAllow, Connector: s,
			Limits: p.Server.SkillLimits, Cache: &serverskill.Cache{MaxMemory: cachedSkillBytes}, Logger: k.o.Logger})
		k.sources[key] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishers = append(s.publishers, p)
	p.shared, p.source = s, s.source
	return nil
}

// Do implements [serverskill.Connector] with the connection of the newest setup.
func (s *sharedSource) Do(ctx context.Context, what string, f func(context.Context, serverskill.Conn) error) error {
	s.mu.Lock()
	if len(s.publishers) == 0 {
		s.mu.Unlock()
		return errors.New(what + ": the setup is closed")
	}
	p := s.publishers[len(s.publishers)-1]
	s.mu.Unlock()
	return p.Do(ctx, what, func(ctx context.Context, conn *upstream.Conn) error { return f(ctx, conn) })
}

// closeSource releases the source. It removes the source if no open setup uses it.
func (p *Publisher) closeSource() {
	if p.shared == nil {
		return
	}
	k := p.base.assembler
	k.mu.Lock()
	defer k.mu.Unlock()
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishers = slices.DeleteFunc(s.publishers, func(other *Publisher) bool { return other == p })
	if len(s.publishers) == 0 && k.sources[s.key] == s {
		delete(k.sources, s.key)
	}
}

func (p *Publisher) release() {
	p.unwatched()
	p.closeSource()
	if p.server != nil {
		p.server.Release()
	}
}

// ErrNotConfigured is returned for a server with variables that have no value for the
// user.
var ErrNotConfigured = errors.New("not configured")

// Do calls f with a connection to the server; see [upstream.Server.Do]. It returns
// [serverskill.ErrNotServed] if the server publishes no skills.
func (p *Publisher) Do(ctx context.Context, what string, f func(context.Context, *upstream.Conn) error) error {
	if p.server == nil {
		return fmt.Errorf("%s: MCP server %q: %w: %s", what, p.Server.Name, ErrNotConfigured, upstream.JoinUnset(p.unset))
	}
	return p.server.Do(ctx, what, func(ctx context.Context, c *upstream.Conn) error {
		if !c.ServesSkills() {
			return serverskill.ErrNotServed
		}
		return f(ctx, c)
	})
}

// HiddenReason returns the reason why the settings hide a skill of the server, or
// "" if they do not.
func (p *Publisher) HiddenReason(e *serverskill.Entry) string {
	c := p.source.CatalogEntry(e)
	if c == nil {
		return "its frontmatter cannot be read"
	}
	if why := p.skills.hiddenReason(c); why != "" {
		return why
	}
	hides, err := p.base.plan.withSelection(*p.base.settings.Load()).Matcher()
	if err != nil {
		return err.Error()
	}
	return hides(c)
}

// Publisher returns the server with the given label, or nil if the setup uses no
// skills of such a server.
func (k *Setup) Publisher(label string) *Publisher {
	for _, p := range k.base.publishers {
		if p.Label == label {
			return p
		}
	}
	return nil
}

// Publishers returns the servers whose skills the setup uses, sorted by label.
func (k *Setup) Publishers() []*Publisher { return k.base.publishers }
