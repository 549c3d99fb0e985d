package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/mcpproxy"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/mcpserver"
)

// profileFlag defines the flag --profile.
func (a *app) profileFlag(f *pflag.FlagSet) {
	f.StringVar(&a.ProfileName, "profile", "", "use only the skills and servers of the profile `NAME`")
}

// profileServer serves each profile at /mcp/p/NAME, with its tools listed
// directly. It creates a profile's server on the first request.
type profileServer struct {
	a       *app
	c       *config.Config
	options mcpserver.Options
	http    *mcpserver.HTTPOptions
	files   []string
	ctx     context.Context // context of the program

	published *statePublisher

	mu     sync.Mutex
	served map[string]*servedProfile
}

// servedProfile holds the server of one profile.
type servedProfile struct {
	handler http.Handler
	close   []func()
}

// ServeHTTP serves the profile named in the path.
func (s *profileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, err := s.open(strings.TrimPrefix(r.URL.Path, profilePath))
	if err != nil {
		code := http.StatusInternalServerError
		if e, ok := errors.AsType[*exit.Error](err); ok && e.Code == exit.NotFound {
			code = http.StatusNotFound
		}
		http.Error(w, err.Error(), code)
		return
	}
	p.handler.ServeHTTP(w, r)
}

// profilePath is the prefix of the URL paths under which profiles are served.
const profilePath = "/mcp/p/"

func (s *profileServer) open(name string) (*servedProfile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.served[name]; have != nil {
		return have, nil
	}
	if s.served == nil { // closed
		return nil, context.Canceled
	}
	p, err := s.a.FindProfile(name)
	if err == nil && p == nil {
		err = exit.Errorf(exit.NotFound, "append a profile name to "+profilePath, "no profile in the path")
	}
	if err != nil {
		return nil, err
	}
	rt, err := s.a.NewRuntimeWith(s.ctx, s.c, true, setup.ProfileSkills(p))
	if err != nil {
		return nil, err
	}
	s.a.NoteMissingSkills(s.ctx, s.c, p, rt)
	set, _, err := s.a.NewToolset(s.ctx, s.c, rt, s.files, p)
	if err != nil {
		rt.Close()
		return nil, err
	}
	follow := s.a.NewConfigWatcher(rt, s.c, set, p)
	o := s.options
	o.Preamble = setup.ProfilePrompt(p)
	o.Tools, o.Refresh = set.Set, follow.Refresh
	server := mcpserver.New(rt, &o)
	stop := follow.Start(s.ctx)
	d := s.a.newDirectServer(s.c, server, set, "server")
	out := &servedProfile{handler: d.Endpoint(s.http), close: []func(){stop, func() { d.Close() }, func() { server.Close() }, func() { set.Close() }, func() { rt.Close() }}}
	s.published.add(name, set)
	s.served[name] = out
	return out, nil
}

// Close closes the servers of all profiles. Later requests fail.
func (s *profileServer) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.served {
		for _, f := range p.close {
			f()
		}
	}
	s.served = nil
}

// mcpEndpoint serves MCP clients over a transport or HTTP.
type mcpEndpoint interface {
	Run(ctx context.Context, t mcp.Transport) error
	Handler(o *mcpserver.HTTPOptions) http.Handler
	Close() error
}

// newDirectServer returns a server that lists the tools of the MCP servers
// directly, together with those of s.
func (a *app) newDirectServer(c *config.Config, s *mcpserver.Server, set *setup.Toolset, prefix string) *mcpproxy.Server {
	ups := []mcpproxy.Upstream{{Name: "loadout", Opener: mcpproxy.NewTransportOpener(func(ctx context.Context) (mcp.Transport, error) {
		here, there := mcp.NewInMemoryTransports()
		go s.Run(context.WithoutCancel(ctx), there) // ends when its client disconnects or s closes
		return here, nil
	}, "")}}
	taken := map[string]bool{"loadout": true}
	for _, sv := range set.Servers() {
		c := set.ResolvedConfig(sv.Name)
		if c == nil || taken[sv.Name] {
			why := sv.Error
			if sv.Name == "loadout" {
				why = "the name is reserved for Loadout: rename the server"
			}
			a.Note("MCP server %s ignored: %s", sv.Name, why)
			continue
		}
		taken[sv.Name] = true
		up := mcpproxy.Upstream{Name: sv.Name, Opener: mcpproxy.NewDialOpener(toolset.Pool(set), c), Allow: func(t *mcp.Tool) bool {
			return c.Allows(t) && set.Usable(context.Background(), sv.Name, t)
		}}
		if prefix == "server" {
			up.Prefix = sv.Name
		}
		ups = append(ups, up)
	}
	return mcpproxy.New(ups, &mcpproxy.Options{Version: setup.ReadVersion().Version, Logger: a.Logger(),
		OnCall:  a.RecordDirectUse(c),
		OnError: func(server string, err error) { a.Note("MCP server %s: %v", server, err) },
		AuthorizeAccess: func(_ context.Context, server, kind, name string) error {
			if server == "loadout" {
				return nil
			}
			return set.AuthorizeResource(server, kind, name)
		},
		AuthorizeCall: func(ctx context.Context, req *mcp.CallToolRequest, server, tool string) (*mcp.CallToolResult, func(string) string, error) {
			if server == "loadout" {
				return nil, nil, nil // s authorizes its own calls
			}
			return s.Authorize(ctx, req, server, tool)
		}})
}
