package assembly

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/tools"
)

// newPool makes what keeps the connections of this node. Those to servers of the
// operator that want no sign-in are shared by all, and others by the kits of one base.
func (k *Assembler) newPool() *upstream.Pool {
	return upstream.NewPool(&upstream.PoolOptions{
		Dialer: &upstream.Dialer{
			Spawn: k.spawn, OAuth: k.oauthHandler, Private: k.o.PrivateNetworks, Logger: k.o.Logger,
			Client:     mcp.Implementation{Name: "loadout", Title: "Loadout", Version: k.o.Version},
			Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){builtin: tools.MemoryTransport(k.o.Providers)},
		},
		IdleTimeout: serverIdle, MaxConns: maxConnections, Logger: k.o.Logger,
	})
}

// builtin is the transport of servers that are part of this program.
const builtin = "builtin"

// providers are the servers of the program by which skills may have tools.
func (k *Assembler) providers() map[string]*upstream.Config {
	out := map[string]*upstream.Config{}
	for name := range k.o.Providers {
		out[name] = &upstream.Config{Name: name, Type: builtin, URLs: []string{name}}
	}
	return out
}

// spawn starts the command of a server: as a process for the operator's own servers,
// and in the sandbox for those of skills and documents.
func (k *Assembler) spawn(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if c.Owner == "" {
		return k.spawner.Start(ctx, c)
	}
	b := k.findBase(c.Identity())
	if b == nil {
		return nil, &upstream.NotAllowedError{Reason: "what it was for has ended; load the skill again, or say something in the conversation"}
	}
	select {
	case <-b.ready: // its set may connect servers before
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.err != nil {
		return nil, b.err
	}
	leave, err := k.services.acquire(string(b.principal.User))
	if err != nil {
		return nil, &upstream.NotAllowedError{Reason: err.Error()}
	}
	started, err := b.set.Start(withService(ctx), c)
	if err != nil {
		leave()
		return nil, err
	}
	return &service{started, leave}, nil
}

// service is a process that is counted until it is closed.
type service struct {
	upstream.Process
	leave func()
}

func (s *service) Close() error {
	defer s.leave()
	return s.Process.Close()
}

// skillServers configure the servers of skills and documents.
func (b *base) skillServers() tools.SkillServers {
	return tools.SkillServers{UserName: b.principal.Name, Values: b.skillValues, OtherService: b.documentService}
}

// documentService describes the command of a server that a document defines.
func (b *base) documentService(_ context.Context, c *upstream.Config) (loadout.Service, error) {
	if !b.isDocumentServer(c) {
		return loadout.Service{}, &upstream.NotAllowedError{Reason: "its command was not reviewed"}
	}
	dir := b.assembler.dir("empty") // a document has no files
	if dir == "" {
		return loadout.Service{}, errors.New("this node has no directory for commands of servers")
	}
	digest := b.servers[c.Name].PolicyDigest()
	s := loadout.Service{Command: append([]string{c.Command}, c.Args...), Env: c.Env, Project: &loadout.Project{Dir: dir, Name: "MCP server " + c.Name, Digest: digest,
		Check: func(ctx context.Context) error { return b.reviewed(ctx, digest) }}}
	for _, v := range c.SecretValues() { // redacted from the output of the server
		s.Redact = append(s.Redact, sandbox.NewSecret("of its configuration", v))
	}
	return s, nil
}

// reviewed returns an error unless the command of a server is approved.
func (b *base) reviewed(ctx context.Context, d policy.Digest) error {
	switch said, err := b.assembler.o.Agents.ReviewState(ctx, d); {
	case err != nil:
		return fmt.Errorf("check the review of its command: %w", err)
	case said == store.Rejected:
		return errors.New("its command was rejected in review")
	case said != store.Approved:
		return errors.New("its command waits for a review")
	}
	return nil
}

// skillValues returns the user values and secrets granted to a skill.
func (b *base) skillValues(ctx context.Context, e *catalog.Entry, d policy.Digest) (upstream.Variables, error) {
	granted, err := b.grantedValues(ctx, b.skillID(e.Origin, e.Dir), d)
	if err != nil {
		return upstream.Variables{}, err
	}
	return upstream.Variables{User: granted.User, Secret: granted.Secret}, nil
}
