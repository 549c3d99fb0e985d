package assembly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

// newPool makes what keeps the connections of this node. Those to servers of the
// operator that want no sign-in are shared by all, and others by the kits of one base.
func (k *Assembler) newPool() *upstream.Pool {
	return upstream.NewPool(&upstream.PoolOptions{
		Dialer: &upstream.Dialer{
			Spawn: k.spawn, OAuth: k.oauth, Private: k.o.PrivateNetworks, Logger: k.o.Logger,
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

// spawn starts the command of a server: plainly where it is the operator's own, and in
// the sandbox where it is of a skill or a document.
func (k *Assembler) spawn(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
	if c.Owner == "" {
		return k.plain.Start(ctx, c)
	}
	b := k.baseOf(c.Identity())
	if b == nil {
		return nil, &upstream.NotAllowedError{Reason: "what it was for has ended; load the skill again, or say something in the conversation"}
	}
	leave, err := k.services.enter(string(b.principal.User))
	if err != nil {
		return nil, &upstream.NotAllowedError{Reason: err.Error()}
	}
	served, err := b.serve(asService(ctx), c)
	if err != nil {
		leave()
		return nil, err
	}
	return &service{served, leave}, nil
}

// service is a process that is counted until it is closed.
type service struct {
	*loadout.RunningService
	leave func()
}

func (s *service) Close() error {
	defer s.leave()
	return s.RunningService.Close()
}

// serve starts a server of a skill or of a document in the sandbox.
func (b *base) serve(ctx context.Context, c *upstream.Config) (*loadout.RunningService, error) {
	s := loadout.Service{Command: append([]string{c.Command}, c.Args...), Env: c.Env}
	for _, v := range c.SecretValues() { // it must not say what its configuration was given
		s.Redact = append(s.Redact, sandbox.NewSecret("of its configuration", v))
	}
	if b.defines(c) {
		dir := b.kits.dir("empty") // a document brings no files
		if dir == "" {
			return nil, errors.New("this node has no place for commands of servers")
		}
		digest := b.servers[c.Name].PolicyDigest()
		s.Project = &loadout.Project{Dir: dir, Name: "MCP server " + c.Name, Digest: digest, Check: func(ctx context.Context) error {
			return b.reviewed(ctx, digest)
		}}
		return b.rt.Serve(ctx, s)
	}
	i := strings.LastIndex(c.Owner, "@sha256:")
	if i < 0 {
		return nil, &upstream.NotAllowedError{Reason: "nobody reviewed its command"}
	}
	s.Skill, s.Digest = c.Owner[:i], policy.Digest(c.Owner[i+1:])
	if files, ok := b.files.Load(c.Env[provider.Variant]); ok {
		s.Files = files.(map[string][]byte)
	}
	return b.rt.Serve(ctx, s)
}

// reviewed is nil as long as the command of a server is approved.
func (b *base) reviewed(ctx context.Context, d policy.Digest) error {
	switch said, err := b.kits.o.Agents.ReviewState(ctx, d); {
	case err != nil:
		return fmt.Errorf("whether its command was reviewed cannot be known: %w", err)
	case said == store.Rejected:
		return errors.New("its command was rejected in review")
	case said != store.Approved:
		return errors.New("its command waits for a review")
	}
	return nil
}

// permit asks for leave to use what a skill brings.
func (b *base) permit(ctx context.Context, e *catalog.Entry) (*tools.Permission, error) {
	l, err := b.rt.AcquireLease(ctx, e.Key(), policy.Principal{}, "")
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return nil, errors.New(refused.Decision.Reason)
	}
	if err != nil {
		return nil, err
	}
	granted, err := b.granted(ctx, b.skillID(e.Origin, e.Dir), l.Digest)
	if err != nil {
		l.Release()
		return nil, err
	}
	return &tools.Permission{Digest: l.Digest, Done: l.Done(), Release: l.Release, Check: l.Check, User: granted.User, Secret: granted.Secret}, nil
}

// permits reports whether leave would be given.
func (b *base) permits(ctx context.Context, e *catalog.Entry) bool {
	return b.rt.CanAcquireLease(ctx, e.Key(), policy.Principal{}, "")
}

// provide is the server of a skill's provider.
func (b *base) provide(_ context.Context, _ *catalog.Entry, sk *skill.Skill) (*upstream.Config, []string, error) {
	start, err := provider.Plan(sk, provider.Options{Person: b.principal.Name})
	if err != nil {
		return nil, nil, err
	}
	b.files.Store(start.Env[provider.Variant], start.Files)
	return &upstream.Config{Type: upstream.Stdio, Command: start.Command[0], Args: start.Command[1:], Env: start.Env}, nil, nil
}

// wished reads the servers of a skill by the parser that reads them when they are
// started.
func wished(configs json.RawMessage, file string) ([]loadout.RequestedService, error) {
	f, findings := upstream.ParseMap(configs, file)
	for _, d := range findings {
		if d.Severity == skill.Error {
			return nil, errors.New(d.Message)
		}
	}
	var out []loadout.RequestedService
	for _, c := range f.Servers {
		w := loadout.RequestedService{Name: c.Name, Env: slices.Sorted(maps.Keys(c.Env))}
		if c.Command != "" {
			w.Command = append([]string{c.Command}, c.Args...)
		}
		for _, u := range c.Variables() {
			w.Variables = append(w.Variables, loadout.RequestedVariable{Kind: u.Kind, Name: u.Name, Location: u.Where, Target: u.Target})
		}
		out = append(out, w)
	}
	return out, nil
}
