package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

const (
	trialTime   = 15 * time.Second
	trialsMax   = 8 // at once on a node
	trialErrors = 2000
)

// serverTrial asks for a server to be tried: one that is defined somewhere, one of the
// operator by its name alone, or one that is written here.
type serverTrial struct {
	Kind      string          `json:"kind,omitempty" enum:"MCPServer,Ghost,Bot"`
	Namespace string          `json:"namespace,omitempty" maxLength:"150"`
	Name      string          `json:"name,omitempty" maxLength:"256" doc:"Of what defines it; with a config what to call it"`
	Server    string          `json:"server,omitempty" maxLength:"256" doc:"Which one, of a Ghost or Bot, or of the operator"`
	Config    json.RawMessage `json:"config,omitempty" doc:"A server as the spec of an MCPServer, which is not kept and gets no values of variables"`
}

// serverTried is what came of it.
type serverTried struct {
	Success bool              `json:"success"`
	Error   string            `json:"error,omitempty" doc:"Why not, and what to do"`
	SignIn  bool              `json:"signIn,omitempty" doc:"Whether it wants a sign-in that you have not made"`
	Tools   []serverTriedTool `json:"tools" nullable:"false"`
}

type serverTriedTool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	InputSchema any    `json:"inputSchema,omitempty" doc:"A JSON Schema of its arguments"`
	// Annotations are what it says of itself, as that it only reads.
	Annotations *mcp.ToolAnnotations `json:"annotations,omitempty" doc:"What it says of itself"`
}

func (h *Hub) serverTests(api huma.API) {
	turns := make(chan struct{}, trialsMax)
	add(h, api, operation("test-server", "POST", "/servers/test", "Connect to an MCP server, for 15 s at most, and say which tools it has"),
		func(ctx context.Context, in *struct{ Body serverTrial }) (*body[serverTried], error) {
			s, v, found, err := h.toTry(ctx, account.FromContext(ctx), in.Body)
			if err != nil {
				return nil, err
			}
			if found != "" {
				return answered(serverFailed(found), nil)
			}
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			return answered(h.tryServer(ctx, s, v), nil)
		})
}

// toTry is the server of a trial with its values, or what is wrong with how it is written.
func (h *Hub) toTry(ctx context.Context, p account.Principal, t serverTrial) (kinds.Server, upstream.Variables, string, error) {
	if t.Config != nil {
		s, findings, err := h.kinds.Draft(p, t.called(), t.Config)
		if err == nil && !findings.Loads() {
			return s, upstream.Variables{}, worst(findings), nil
		}
		return s, upstream.Variables{}, "", err
	}
	if t.Kind == "" && t.Server == "" {
		return kinds.Server{}, upstream.Variables{}, "", &Problem{Status: 422, Code: "invalid", Detail: "it does not say which server", Next: "send kind, namespace and name, or a config",
			Errors: []Fault{{"body.kind", "it is missing"}}}
	}
	s, v, err := h.kinds.Trial(ctx, p, kinds.Subject{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Server: t.Server})
	return s, v, "", err
}

func (t serverTrial) called() string {
	if t.Name == "" {
		return "server"
	}
	return t.Name
}

// worst is the first finding for which a document is refused.
func worst(ds skill.Diagnostics) string {
	for _, d := range ds {
		if d.Severity == skill.Error {
			return d.Message + "; " + d.Fix
		}
	}
	return ""
}

func serverFailed(why string) serverTried {
	return serverTried{Error: skill.OneLine(why), Tools: []serverTriedTool{}}
}

// tryServer connects to a server and asks for its tools. A command of anybody but the
// operator runs in the sandbox, and only where it was approved.
func (h *Hub) tryServer(ctx context.Context, s kinds.Server, v upstream.Variables) serverTried {
	switch {
	case !s.Usable():
		return serverFailed(fmt.Sprintf("its command is not run, as it is %s: somebody else than who applied it has to review it: PUT %s/servers/{kind}/{namespace}/{name}/review", s.Review, base))
	case s.Sandboxed() && h.opts.Sandbox == nil:
		return serverFailed("its command is not run, as this hub has no sandbox: ask the operator for one")
	}
	c, unset := s.Resolve(v)
	if len(unset) > 0 {
		return serverFailed("it is not configured: " + strings.Join(missing(unset), "; "))
	}
	ctx, stop := context.WithTimeoutCause(ctx, trialTime, errTrial)
	defer stop()
	start, end, err := h.starter(ctx, s)
	if err != nil {
		h.log.Error("a server cannot be tried", "request", visitOf(ctx).id, "error", err)
		return serverFailed("the hub cannot start it: tell the operator")
	}
	defer end()
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Spawn: start, Private: h.opts.Private, OAuth: h.trialSignIn(ctx, s),
		Client: mcp.Implementation{Name: "loadout", Title: "Loadout", Version: h.opts.Version}}})
	defer pool.Close()
	server := pool.Server(c, "")
	defer server.Release()
	listing, err := server.Tools(ctx)
	if err != nil {
		out := serverFailed(trialError(ctx, c, err))
		refused, ok := errors.AsType[*upstream.AuthError](err)
		out.SignIn = ok && refused.Status == http.StatusUnauthorized && refused.Next != "" && !isDraft(s)
		return out
	}
	out := serverTried{Success: true, Tools: make([]serverTriedTool, len(listing.Tools))}
	for i, t := range listing.Tools {
		out.Tools[i] = serverTriedTool{t.Name, t.Title, t.Description, t.InputSchema, t.Annotations}
	}
	return out
}

// starter starts the command of one server: plainly where it is the operator's own, else
// in a sandbox with nothing in it.
func (h *Hub) starter(ctx context.Context, s kinds.Server) (upstream.Spawner, func(), error) {
	if !s.Sandboxed() {
		return spawn.New(nil).Start, func() {}, nil
	}
	leave, err := h.runs.Enter(ctx, string(account.FromContext(ctx).User))
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "loadout-trial-")
	end := func() { os.RemoveAll(dir); leave() }
	if err == nil {
		err = os.Chmod(dir, 0o755) // a sandbox may be another user, and nothing is in it
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}, Filter: catalog.Filter{Disabled: true}, Logger: h.log,
		Scripts: &loadout.Scripts{Sandbox: h.opts.Sandbox, Logger: h.log}})
	if err != nil {
		end()
		return nil, nil, err
	}
	of := &loadout.Project{Dir: dir, Name: "MCP server " + s.Name, Digest: s.Subject(), Check: func(ctx context.Context) error { return h.stillApproved(ctx, s) }}
	start := func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		service := loadout.Service{Project: of, Command: append([]string{c.Command}, c.Args...), Env: c.Env}
		for _, v := range c.Hidden() {
			service.Redact = append(service.Redact, sandbox.NewSecret("of its configuration", v))
		}
		return rt.Serve(ctx, service)
	}
	return start, func() { rt.Close(); end() }, nil
}

// stillApproved is nil as long as the command of a server may run.
func (h *Hub) stillApproved(ctx context.Context, s kinds.Server) error {
	said, err := h.kinds.Reviewed(ctx, s.Subject())
	if err == nil && said != store.Approved {
		err = errors.New("the approval of its command was taken back")
	}
	return err
}

var errTrial = errors.New("it did not answer within 15 s")

// trialError is why a server cannot be connected to, without the values that its
// configuration was given: it may repeat them. Whom the hub asks for addresses, and what
// it is told of a network that is not public, is left out.
func trialError(ctx context.Context, c *upstream.Config, err error) string {
	text := err.Error()
	name, private := (*net.DNSError)(nil), (*upstream.PrivateAddressError)(nil)
	switch {
	case ctx.Err() != nil:
		text = context.Cause(ctx).Error()
	case errors.As(err, &private):
		text = fmt.Sprintf("connecting to server %q: its host %q is at no public address: if it may go there, ask the operator to list it in sandbox.private", c.Name, private.Host)
	case errors.As(err, &name):
		text = fmt.Sprintf("connecting to server %q: its host %q is not found: check how it is spelled, and try again", c.Name, name.Name)
	}
	for _, secret := range c.Hidden() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	if len(text) > trialErrors {
		text = strings.ToValidUTF8(text[:trialErrors], "") + "…"
	}
	return text
}
