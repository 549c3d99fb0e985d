package agentapi

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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

const (
	trialTimeout = 15 * time.Second
	maxTrials    = 8 // trials at the same time on a node
	trialErrors  = 2000
)

// serverTrial selects the server to test: a defined one, an operator server, or
// the given draft.
type serverTrial struct {
	Kind      string          `json:"kind,omitempty" enum:"MCPServer,Ghost,Bot"`
	Namespace string          `json:"namespace,omitempty" maxLength:"150"`
	Name      string          `json:"name,omitempty" maxLength:"256" doc:"Name of the defining item; with a config, the name to call the server"`
	Server    string          `json:"server,omitempty" maxLength:"256" doc:"Name of the server of a Ghost or Bot, or of the operator"`
	Config    json.RawMessage `json:"config,omitempty" doc:"A server as the spec of an MCPServer, which is not kept and gets no values of variables"`
}

// serverTried is the result of testing a server.
type serverTried struct {
	Success bool              `json:"success"`
	Error   string            `json:"error,omitempty" doc:"Why not, and what to do"`
	SignIn  bool              `json:"signIn,omitempty" doc:"Whether it requires a sign-in that you have not completed"`
	Tools   []serverTriedTool `json:"tools" nullable:"false"`
}

type serverTriedTool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	InputSchema any    `json:"inputSchema,omitempty" doc:"A JSON Schema of its arguments"`
	// Annotations are hints from the server, for example that the tool is
	// read-only.
	Annotations *mcp.ToolAnnotations `json:"annotations,omitempty" doc:"Annotations from the server"`
}

func (h *Handlers) serverTests() {
	turns := make(chan struct{}, maxTrials)
	api.Add(h.Server, api.Operation("test-server", "POST", "/servers/test", "Connect to an MCP server, for 15 s at most, and list its tools"),
		func(ctx context.Context, in *struct{ Body serverTrial }) (*api.Body[serverTried], error) {
			s, v, found, err := h.trialConfig(ctx, account.FromContext(ctx), in.Body)
			if err != nil {
				return nil, err
			}
			if found != "" {
				return api.BodyOf(newFailedTrial(found), nil)
			}
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			return api.BodyOf(h.tryServer(ctx, s, v), nil)
		})
}

// trialConfig returns the server to test and its variables. If the server is a
// draft with a problem, the returned string describes the problem.
func (h *Handlers) trialConfig(ctx context.Context, p account.Principal, t serverTrial) (agents.Server, upstream.Variables, string, error) {
	if t.Config != nil {
		s, findings, err := h.Agents.ParseServerDraft(p, t.serverName(), t.Config)
		if err == nil && !findings.Loads() {
			return s, upstream.Variables{}, firstError(findings), nil
		}
		return s, upstream.Variables{}, "", err
	}
	if t.Kind == "" && t.Server == "" {
		return agents.Server{}, upstream.Variables{}, "", &api.Problem{Status: 422, Code: "invalid", Detail: "no server given", Next: "send kind, namespace and name, or a config",
			Errors: []api.Fault{{Where: "body.kind", Message: "missing"}}}
	}
	s, v, err := h.Agents.ServerForTest(ctx, p, agents.Subject{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, Server: t.Server})
	return s, v, "", err
}

func (t serverTrial) serverName() string {
	if t.Name == "" {
		return "server"
	}
	return t.Name
}

// firstError returns the message and fix of the first error in ds.
func firstError(ds skill.Diagnostics) string {
	for _, d := range ds {
		if d.Severity == skill.Error {
			return d.Message + "; " + d.Fix
		}
	}
	return ""
}

func newFailedTrial(why string) serverTried {
	return serverTried{Error: printable.OneLine(why), Tools: []serverTriedTool{}}
}

// tryServer connects to a server and lists its tools. Operator commands run outside
// the sandbox. Other commands must be approved and run inside it.
func (h *Handlers) tryServer(ctx context.Context, s agents.Server, v upstream.Variables) serverTried {
	switch {
	case !s.Usable():
		return newFailedTrial(fmt.Sprintf("command not run, because it is %s: another user has to review it: PUT %s/servers/{kind}/{namespace}/{name}/review", s.Review, api.Prefix))
	case s.NeedsSandbox() && h.Sandbox == nil:
		return newFailedTrial("command not run, because this hub has no sandbox: ask the operator for one")
	}
	c, unset := s.Resolve(v)
	if len(unset) > 0 {
		return newFailedTrial("not configured: " + strings.Join(unsetNames(unset), "; "))
	}
	ctx, stop := context.WithTimeoutCause(ctx, trialTimeout, errTrial)
	defer stop()
	start, end, err := h.starter(ctx, s)
	if err != nil {
		h.Log.Error("couldn't start the trial of a server", "request", api.RequestFrom(ctx).ID, "error", err)
		return newFailedTrial("the hub cannot start it: tell the operator")
	}
	defer end()
	pool := upstream.NewPool(&upstream.PoolOptions{Dialer: &upstream.Dialer{Spawn: start, Private: h.Private, OAuth: h.trialSignIn(ctx, s),
		Client: mcp.Implementation{Name: "loadout", Title: "Loadout", Version: h.Version}}})
	defer pool.Close()
	server := pool.Server(c, "")
	defer server.Release()
	listing, err := server.Tools(ctx)
	if err != nil {
		out := newFailedTrial(trialError(ctx, c, err))
		refused, ok := errors.AsType[*upstream.AuthError](err)
		out.SignIn = ok && refused.Status == http.StatusUnauthorized && refused.Next != "" && !isDraft(s)
		return out
	}
	out := serverTried{Success: true, Tools: make([]serverTriedTool, len(listing.Tools))}
	for i, t := range listing.Tools {
		out.Tools[i] = newTriedTool(t)
	}
	return out
}

// newTriedTool returns the description of a tool, with strings that are safe to
// display.
func newTriedTool(t *mcp.Tool) serverTriedTool {
	out := serverTriedTool{Name: untrusted.New(t.Name).ForPage(), Title: untrusted.New(t.Title).ForPage(), Description: untrusted.New(t.Description).ForPage()}
	if schema, err := json.Marshal(t.InputSchema); err == nil && t.InputSchema != nil {
		out.InputSchema = untrusted.CleanJSON(schema)
	}
	if t.Annotations != nil {
		a := *t.Annotations
		a.Title = untrusted.New(a.Title).ForPage()
		out.Annotations = &a
	}
	return out
}

// starter returns a function that starts a server's command: directly for operator
// servers, otherwise in an empty sandbox.
func (h *Handlers) starter(ctx context.Context, s agents.Server) (upstream.Spawner, func(), error) {
	if !s.NeedsSandbox() {
		return spawn.New(nil).Start, func() {}, nil
	}
	leave, err := h.Runs.Acquire(ctx, string(account.FromContext(ctx).User))
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "loadout-trial-")
	end := func() { os.RemoveAll(dir); leave() }
	if err == nil {
		err = os.Chmod(dir, 0o755) // the sandbox may run as another user; the directory is empty
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{}, Filter: catalog.Filter{Disabled: true}, Logger: h.Log,
		Scripts: &loadout.Scripts{Sandbox: h.Sandbox, Logger: h.Log}})
	if err != nil {
		end()
		return nil, nil, err
	}
	of := &execution.Project{Dir: dir, Name: "MCP server " + s.Name, Digest: s.PolicyDigest(), Check: func(ctx context.Context) error { return h.checkApproved(ctx, s) }}
	start := func(ctx context.Context, c *upstream.Config) (upstream.Process, error) {
		service := &execution.ServiceRequest{Project: of, Command: append([]string{c.Command}, c.Args...), Env: c.Env}
		for _, v := range c.SecretValues() {
			service.Redact = append(service.Redact, sandbox.NewSecret("of its configuration", v))
		}
		return rt.Runner().Serve(ctx, service)
	}
	return start, func() { rt.Close(); end() }, nil
}

// checkApproved returns an error if the server's command is no longer approved.
func (h *Handlers) checkApproved(ctx context.Context, s agents.Server) error {
	said, err := h.Agents.ReviewState(ctx, s.PolicyDigest())
	if err == nil && said != store.Approved {
		err = errors.New("approval of command was revoked")
	}
	return err
}

var errTrial = errors.New("no answer within 15 s")

// trialError explains why connecting to a server failed. It removes configured
// values, because the error may repeat them. It also omits the DNS server and
// details of non-public networks.
func trialError(ctx context.Context, c *upstream.Config, err error) string {
	text := err.Error()
	name, private := (*net.DNSError)(nil), (*upstream.PrivateAddressError)(nil)
	switch {
	case ctx.Err() != nil:
		text = context.Cause(ctx).Error()
	case errors.As(err, &private):
		text = fmt.Sprintf("connect to server %q: host %q has no public address: to allow it, ask the operator to list it in sandbox.private", c.Name, private.Host)
	case errors.As(err, &name):
		text = fmt.Sprintf("connect to server %q: host %q not found: check the spelling and try again", c.Name, name.Name)
	}
	for _, secret := range c.SecretValues() {
		text = strings.ReplaceAll(text, secret, "…")
	}
	if len(text) > trialErrors {
		text = strings.ToValidUTF8(text[:trialErrors], "") + "…"
	}
	return text
}
