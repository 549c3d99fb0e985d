package assembly

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/tools"
)

// newPool returns this node's pool of server connections. All setups share
// connections to an operator's servers that require no sign-in. Other connections
// are shared only among the setups of a base.
func (k *Assembler) newPool() *upstream.Pool {
	return upstream.NewPool(&upstream.PoolOptions{
		Dialer: &upstream.Dialer{
			Spawn: k.spawn, OAuth: k.oauthHandler, Private: k.o.PrivateNetworks, Logger: k.o.Logger,
			Client:     mcp.Implementation{Name: "loadout", Title: "Loadout", Version: k.o.Version},
			Transports: map[string]func(*upstream.Config, string) (mcp.Transport, error){upstream.Provider: upstream.MemoryTransport(k.o.Providers)},
		},
		IdleTimeout: serverIdle, MaxConns: maxConnections, Logger: k.o.Logger,
	})
}

// spawn starts a server's command. A command from a skill or document runs in the
// sandbox; an operator's command does not.
func (k *Assembler) spawn(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if c.Owner == "" {
		return k.spawner.Start(ctx, c)
	}
	b := k.findBase(c.Identity())
	if b == nil {
		return nil, &upstream.NotAllowedError{Reason: "its setup is closed; load the skill again, or send a message in the conversation"}
	}
	select {
	case <-b.ready: // the tools may connect while the base opens
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.err != nil {
		return nil, b.err
	}
	release, err := k.services.acquire(string(b.principal.User))
	if err != nil {
		return nil, &upstream.NotAllowedError{Reason: err.Error()}
	}
	started, err := toolset.Start(withService(ctx), b.set, c)
	if err != nil {
		release()
		return nil, err
	}
	return &service{started, release}, nil
}

// service is a server process that occupies a slot of serviceLimits until it is
// closed.
type service struct {
	upstream.Process
	release func()
}

func (s *service) Close() error {
	defer s.release()
	return s.Process.Close()
}

// skillServers returns the options for servers defined by skills and documents.
func (b *base) skillServers() tools.SkillServers {
	return tools.SkillServers{UserName: b.principal.Name, Values: b.skillValues}
}

// documentService describes how to run the command of a server that a document
// defines.
func (b *base) documentService(_ context.Context, c *upstream.Config) (*execution.ServiceRequest, error) {
	if !b.isDocumentServer(c) {
		return nil, &upstream.NotAllowedError{Reason: "its command was not reviewed"}
	}
	dir := b.assembler.createDir("empty") // a document has no files
	if dir == "" {
		return nil, errors.New("run server command: this node has no data directory")
	}
	digest := b.servers[c.Name].PolicyDigest()
	s := &execution.ServiceRequest{Command: append([]string{c.Command}, c.Args...), Env: c.Env, Project: &execution.Project{Dir: dir, Name: "MCP server " + c.Name, Digest: digest,
		Check: func(ctx context.Context) error { return b.checkReviewed(ctx, digest) }}}
	for _, v := range c.SecretValues() {
		s.Redact = append(s.Redact, sandbox.NewSecret("of its configuration", v))
	}
	return s, nil
}

// checkReviewed returns an error unless the server command with the given digest
// is approved.
func (b *base) checkReviewed(ctx context.Context, d policy.Digest) error {
	switch state, err := b.assembler.o.Agents.ReviewState(ctx, d); {
	case err != nil:
		return fmt.Errorf("check review of command: %w", err)
	case state == store.Rejected:
		return errors.New("command was rejected in review")
	case state != store.Approved:
		return errors.New("command is awaiting review")
	}
	return nil
}
